package load

import (
	"context"
	"fmt"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// groupRun is the receiving side of a run with a group. But for the members, it is the collector's.
type groupRun struct {
	r    *run
	c    Group
	inst GroupInstance

	// What the mode and the kind allow. Immutable.
	ordered bool // first deliveries come in order, and one at a time
	once    bool // at most once
	manual  bool
	counted bool // each delivery says which one of its message it is
	plain   bool // handlers do nothing and do not fail

	groupCounters
	ledgers   []*ledger // consumers x partitions: there is one consumer, but for a Broadcast
	members   []*member // by slot; the churner's while it runs
	ids       uint32
	gaps      gaps
	recovered chan struct{} // closed when the slow member is not slow any more
	over      bool          // it is closed: members are not slowed any more
	quit      chan struct{} // closed when the run is cut: handlers sleep no more

	churning chan struct{} // closed to end the churner
	churned  chan struct{} // closed by the churner at its end: publishes what it has counted
	churn    churnCounts
	leaver   Seat // who left last; the churner's while it runs

	middle, last     []uint64 // deliveries by slot in the middle of the measured time and at its end
	middleAt, lastAt int64
	behind           uint64 // how far positions are behind at the end
	figures          Figures
	done             *Histogram
}

type churnCounts struct{ joins, leaves, evictions uint64 }

// openGroup opens a target for a scenario with a group.
func (r *run) openGroup(target Target) error {
	t, ok := target.(GroupTarget)
	if !ok {
		return fmt.Errorf("%s %w", target.Name(), ErrNoGroups)
	}
	inst, err := t.OpenGroup(r.s)
	if err != nil {
		return err
	}
	c := r.s.Group
	g := &groupRun{
		r: r, c: c, inst: inst,
		ordered: c.Kind != Shared, once: c.Mode == AtMostOnce, manual: c.Mode == Manual,
		counted:   c.Churn == 0 && !c.Hang && c.Timeout == 0,
		plain:     c.Handler == 0 && c.Fail == 0 && c.Slow == 0 && !c.Hang && c.Mode != Manual,
		recovered: make(chan struct{}),
		quit:      make(chan struct{}),
	}
	if g.once && c.Poll && (c.Hang || c.Evict > 0) {
		g.ordered = false // what one has polled and not looked at yet, another goes on behind
	}
	r.g, r.source = g, inst
	return nil
}

// consumers returns how many times each message is to be processed.
func (g *groupRun) consumers() int {
	if g.c.Kind == Broadcast {
		return g.c.Members
	}
	return 1
}

// slots returns how many members there are at the most.
func (g *groupRun) slots() int {
	if g.c.Churn > 0 {
		return g.c.Members + 1
	}
	return g.c.Members
}

// atOnce returns how many messages of a partition a member may have at a time that it has said are processed, and that do not
// count if it loses the partition.
func (g *groupRun) atOnce() uint64 {
	switch {
	case g.c.Poll:
		return PollMost
	case g.c.Kind == Shared:
		return uint64(max(g.c.Concurrency, 1))
	case g.c.Ack == AckBatch:
		return BatchMost
	}
	return 1
}

// PollMost is how many messages a GroupTarget may give to a member that polls at a time, and BatchMost how many to
// Sink.Batch otherwise.
const (
	PollMost  = 256
	BatchMost = 64
)

// attach makes ledgers and members.
func (g *groupRun) attach(ctx context.Context) error {
	r, s := g.r, &g.r.s
	live, n := r.windowed(), g.consumers()*s.Partitions
	rec, done := newRecorders(&r.turn, live, n), newRecorders(&r.turn, live, n)
	before, during := newRecorders(&r.turn, false, n), newRecorders(&r.turn, false, n)
	for c := range g.consumers() {
		name, first, slots := "group", 0, g.slots()
		if g.c.Kind == Broadcast {
			name, first, slots = fmt.Sprintf("subscriber %d", c), c, 1
		}
		for p := range s.Partitions {
			l := &ledger{
				g: g, partition: p, by: make([]atomicx.Uint64, slots), first: first, books: make([]book, s.Producers),
				result: Lane{Consumer: name, Partition: p}, rec: rec.one(),
				timing: timing{clock: r.clock},
			}
			if !g.plain {
				l.done = done.one()
			}
			if g.slows() {
				l.timing.before, l.timing.during = before.one(), during.one()
			}
			g.ledgers = append(g.ledgers, l)
		}
	}
	g.done = NewHistogram()
	g.members = make([]*member, g.slots())
	for i := range g.c.Members {
		if ctx.Err() != nil {
			return errEarly
		}
		if err := g.join(i); err != nil {
			return fmt.Errorf("%w: member %d: %w", ErrTarget, i, err)
		}
	}
	err := g.inst.Dead(func(member, partition int, payload []byte, attempts int) {
		g.consumer(member)[partition].dead(payload, attempts)
	})
	if err != nil {
		return fmt.Errorf("%w: dead letters: %w", ErrTarget, err)
	}
	return nil
}

func (g *groupRun) slows() bool { return g.c.Hang || g.c.Slow > 0 }

// consumer returns the ledgers of one consumer.
func (g *groupRun) consumer(c int) []*ledger {
	n := g.r.s.Partitions
	return g.ledgers[c*n : (c+1)*n]
}

// join lets a member in.
func (g *groupRun) join(slot int) error {
	g.ids++
	m := &member{g: g, id: g.ids, slot: slot, name: fmt.Sprintf("m%d", g.ids-1), ledgers: g.consumer(0)}
	if g.c.Kind == Broadcast {
		m.ledgers = g.consumer(slot)
	}
	g.members[slot] = m
	var err error
	m.seat, err = g.inst.Join(m.name, m)
	return err
}

// launch says when the run is measured, and starts the churner.
func (g *groupRun) launch(ph phases) {
	for _, l := range g.ledgers {
		l.mu.Lock() // handlers are there, with nothing to do
		l.timing.measured, l.timing.end = ph.measured, ph.end
		l.mu.Unlock()
	}
	g.churned, g.churning = make(chan struct{}), make(chan struct{})
	if g.c.Churn == 0 {
		close(g.churned)
		return
	}
	go func() {
		defer close(g.churned)
		if err := g.churner(); err != nil {
			select {
			case g.r.failed <- fmt.Errorf("%w: %w", ErrTarget, err):
			default:
			}
		}
	}()
}

// churner lets members come and go.
func (g *groupRun) churner() error {
	tick := time.NewTicker(g.c.Churn)
	defer tick.Stop()
	free, oldest, evict := g.c.Members, 0, 0.0
	for {
		select {
		case <-g.churning:
			return nil
		case <-tick.C:
		}
		g.change()
		if err := g.join(free); err != nil {
			return fmt.Errorf("join: %w", err)
		}
		g.churn.joins++
		leaver := g.members[oldest]
		if evict += g.c.Evict; evict >= 1 {
			evict--
			g.churn.evictions++
			if g.c.Kind == Shared { // what it holds in any of them
				for _, l := range g.ledgers {
					l.lost()
				}
			}
			if err := leaver.seat.Evict(); err != nil {
				return fmt.Errorf("evict %s: %w", leaver.name, err)
			}
		} else {
			g.churn.leaves++
			leaver.seat.Leave()
		}
		g.leaver = leaver.seat
		g.change()
		free, oldest = oldest, (oldest+1)%len(g.members)
		select { // else members that take long to leave would pile up
		case <-leaver.seat.Gone():
		case <-g.churning:
			return nil
		}
	}
}

// phase does what is due at a time.
func (g *groupRun) phase(now int64) {
	if g.middle == nil && g.slows() && now >= g.middleTime() && !g.over {
		g.middle, g.middleAt = g.delivered(), now
		g.slowOn.Store(true)
	}
	if now >= g.r.phases.end {
		g.recover(now) // producers may be waiting for room
	}
}

// recover ends what slows the slow member.
func (g *groupRun) recover(now int64) {
	if !g.over {
		g.over = true
		g.last, g.lastAt = g.delivered(), now
		g.slowOn.Store(false)
		close(g.recovered)
	}
}

// middleTime is when the slow member becomes slow.
func (g *groupRun) middleTime() int64 {
	return (g.r.phases.measured + g.r.phases.end) / 2
}

// next returns when phase is due again.
func (g *groupRun) next(at int64) int64 {
	if g.middle == nil && g.slows() {
		return min(at, g.middleTime())
	}
	return at
}

// ended is told that nothing is published any more.
func (g *groupRun) ended(ctx context.Context) error {
	g.recover(g.r.clock.Now())
	close(g.churning)
	if !g.r.waitFor(ctx, func() { <-g.churned }) {
		return fmt.Errorf("%w: a member cannot join or leave", ErrStuck)
	}
	return nil
}

// cut makes what handlers do from now on count no more, and ends their sleep.
func (g *groupRun) cut(now int64) {
	if g.isCut.Load() {
		return
	}
	g.isCut.Store(true) // before anybody wakes up
	close(g.quit)
	g.recover(now)
}

// gone returns how many members' seats are given up.
func (g *groupRun) gone() (n int) {
	for _, m := range g.members {
		if m == nil || m.seat == nil {
			continue
		}
		select {
		case <-m.seat.Gone():
			n++
		default:
		}
	}
	return n
}

// delivered returns how many deliveries each slot has had.
func (g *groupRun) delivered() []uint64 {
	n := make([]uint64, g.slots())
	for _, l := range g.ledgers {
		for i := range l.by {
			n[l.first+i] += l.by[i].Load()
		}
	}
	return n
}

// dropped returns how many messages have been jumped over and have not come since.
func (g *groupRun) dropped() (n uint64) {
	for _, l := range g.ledgers {
		n += l.dropped.Load()
	}
	return n
}

// close makes what is taken from members from now on count no more: the target is about to be closed. What was taken from who
// left last has been told when that is gone; nobody waits for it long after an interruption, or when what happens counts no more anyway.
func (g *groupRun) close(interrupt <-chan struct{}) {
	defer g.closing.Store(true)
	if g.leaver == nil || g.r.isCut {
		return
	}
	late := time.NewTimer(g.r.s.Patience)
	defer late.Stop()
	for {
		select {
		case <-g.leaver.Gone():
			return
		case <-interrupt:
			interrupt = nil
			late.Reset(min(g.r.s.Patience, afterInterrupt))
		case <-late.C:
			g.r.notes = append(g.r.notes, "a member that left is not gone")
			return
		}
	}
}

// collect takes what was recorded for a live window.
func (g *groupRun) collect() {
	for _, l := range g.ledgers {
		l.rec.collect(g.r.win.e2e)
		if l.done != nil {
			l.done.collect(g.done)
		}
	}
}

// settled returns how many messages a consumer has settled.
func (g *groupRun) settled(c int) (n uint64) {
	for _, l := range g.consumer(c) {
		n += l.settled.Load()
	}
	return n
}

// room reports whether not too much is published and not processed.
func (g *groupRun) room() bool {
	most := uint64(0)
	var sent uint64
	for _, p := range g.r.producers {
		sent += p.sent.Load()
	}
	for c := range g.consumers() {
		if n := g.settled(c); n < sent {
			most = max(most, sent-n)
		}
	}
	return most < uint64(g.c.Backlog)
}

// progress changes while anything is delivered or settled.
func (g *groupRun) progress() (n uint64) {
	for c := range g.consumers() {
		n += g.settled(c)
	}
	for _, k := range g.delivered() {
		n += k
	}
	return n
}

// arrived reports whether everything that was sent is settled.
func (g *groupRun) arrived() bool {
	for p := range g.r.s.Partitions {
		want := g.r.sentTo(p)
		for c := range g.consumers() {
			if g.consumer(c)[p].settled.Load() < want {
				return false
			}
		}
	}
	return true
}

// positions waits until the target's positions say that everything is processed, or do not move any more, and notes how far
// behind they are. If ctx ends, nobody knows.
func (g *groupRun) positions(ctx context.Context) error {
	start := g.r.clock.Now()
	still := quietFrom(start)
	for last := uint64(0); ; {
		g.behind = 0
		for c := range g.consumers() {
			for p := range g.r.s.Partitions {
				at, end, err := g.inst.Positions(c, p)
				if err != nil {
					return fmt.Errorf("%w: position of partition %d: %w", ErrTarget, p, err)
				}
				if at < end {
					g.behind += uint64(end - at)
				}
			}
		}
		now := g.r.clock.Now()
		nothing := still.look(now, g.behind != last)
		if last = g.behind; last == 0 || nothing >= int64(g.r.s.Patience) {
			return nil
		}
		if ctx.Err() != nil && now-start >= int64(afterInterrupt) {
			g.behind = 0
			g.r.notes = append(g.r.notes, "ended before positions had been compared")
			return nil
		}
		time.Sleep(time.Millisecond)
	}
}
