package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/mutant"
)

// claim is one member's time with one partition, from Assign to Released or Lost.
//
//	        OnAssigned                Revoke              handler ended         OnRevoked
//	waiting ----------> delivering ------------> freezing -------------> giving ---------> over
//	    |                    |                       |                      |
//	    +--------------------+----- Lost: fenced ----+----------------------+------------> over, then OnLost
//
// All of it is under g.mu.
type claim struct {
	m          *Member
	part       *groupPart
	generation uint64

	phase    phase
	told     bool // OnAssigned has been called, or is being
	gave     bool // OnRevoked has
	revoking bool // it is to be given back
	lost     bool
	paused   bool  // it is to begin so
	ended    bool  // the runner has
	seen     int64 // what done was when the group looked last whether there is progress
	runner   delivery.Runner
	seat     *delivery.Seat // if the runner is one
	stop     context.CancelCauseFunc
}

type phase uint8

const (
	phaseWaiting    phase = iota // for OnAssigned
	phaseDelivering              // the runner runs
	phaseFreezing                // it has been stopped
	phaseGiving                  // OnRevoked is to be called, or is being
	phaseOver
)

// owns reports whether the partition is the member's, and not on its way to another.
func (c *claim) owns() bool { return !c.lost && !c.revoking && c.phase != phaseOver }

// over reports whether the claim has ended.
func (c *claim) over() bool { return c.phase == phaseOver }

func (c *claim) assignment() Assignment {
	return Assignment{Topic: c.part.at.Topic, Partition: c.part.at.Index, Generation: c.generation, Position: c.position()}
}

func (c *claim) position() Offset {
	if c.runner != nil {
		return c.runner.Position()
	}
	return c.part.position()
}

// done is a number that changes when a record is done with.
func (c *claim) done() int64 {
	if c.seat != nil {
		return c.seat.Finished()
	}
	return c.runner.Position()
}

func compareAssignments(a, b Assignment) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// apply carries out what the coordinator has decided, in order; what it decides meanwhile comes behind that. The caller holds
// mu.
func (g *Group) apply(actions []group.Action) {
	g.todo = append(g.todo, actions...)
	if g.applying {
		return
	}
	g.applying = true
	for len(g.todo) > 0 {
		a := g.todo[0]
		g.todo = g.todo[1:]
		g.carryOut(a)
	}
	g.todo, g.applying = nil, false
	g.recount()
	g.setAlarm()
	g.e.rested.Broadcast()
}

func (g *Group) carryOut(a group.Action) {
	m := g.byID[a.Member]
	switch a.Kind {
	case group.Assign:
		g.assign(m, g.part(a.Partition), a)
	case group.Revoke:
		g.revoke(g.part(a.Partition).owner)
	case group.Lost:
		g.lose(m, a)
	case group.Left:
		delete(g.byID, a.Member)
		m.gone = true
		g.settle(m)
	case group.Evict:
		g.evicted(m, a)
	}
}

// assign gives a partition to a member.
func (g *Group) assign(m *Member, p *groupPart, a group.Action) {
	c := &claim{m: m, part: p, generation: a.Generation}
	p.owner = c
	m.claims.add(p.at, c)
	if m.cfg.OnAssigned != nil {
		m.call(callAssigned, c, nil)
		return
	}
	c.told = true
	c.begin()
}

// begin lets the deliveries begin.
func (c *claim) begin() {
	m, p, g := c.m, c.part, c.m.g
	c.phase = phaseDelivering
	ctx, stop := context.WithCancelCause(m.ctx)
	c.stop = stop
	onEnd := func(cause error) { g.runnerEnded(c, cause) }
	if m.pull == nil {
		m.running++
	}
	switch {
	case m.pull != nil:
		c.seat = p.sharing().NewSeat(delivery.SeatConfig{Slots: pollSlots, Notify: m.pull.news.Broadcast})
		c.runner = c.seat
	case g.cfg.Mode == Manual:
		c.seat = p.sharing().NewSeat(delivery.SeatConfig{
			Context:   partition.WithOrigin(ctx, p.gate, !m.opt.Dedicated),
			Handler:   m.handler,
			BatchSize: m.cfg.BatchSize,
			Options:   m.opt,
			OnFailure: g.onFailure,
			OnEnd:     onEnd,
		})
		c.runner = c.seat
	default:
		c.runner = m.newLane(ctx, p, onEnd)
	}
	c.seen = c.done()
	if c.paused {
		c.runner.Pause()
	}
	c.runner.Start()
	if m.pull != nil {
		m.pull.news.Broadcast()
	}
}

// newLane returns what delivers the records of a partition in order.
func (m *Member) newLane(ctx context.Context, p *groupPart, onEnd func(error)) delivery.Runner {
	g, floor := m.g, uint64(p.position())
	cfg := &delivery.Config{
		Topic:         p.at.Topic,
		Handler:       m.handler,
		AtMostOnce:    g.cfg.Mode == AtMostOnce,
		Backoff:       g.cfg.Backoff,
		MaxDeliveries: g.cfg.MaxDeliveries,
		BatchSize:     m.cfg.BatchSize,
		ErrorOnGap:    g.cfg.Gap == FailOnGap,
		GateKept:      true,
		Tried:         p.tried,
		Parallel:      m.cfg.ByKey.Handlers,
		MaxInFlight:   m.cfg.ByKey.MaxInFlight,
		MaxKeys:       m.cfg.ByKey.MaxKeys,
		Clock:         &g.e.clock,
		Rested:        &g.e.rested,
		OnGap:         func(_ int, from, to int64) { g.onGap(p.at, from, to) },
		OnFailure:     g.onFailure,
		OnDrop:        g.onDrop,
		Bury:          g.bury,
		OnEnd:         onEnd,
	}
	if mutant.Enabled && mutant.Is(mutant.ResumeBehind) {
		floor++
	}
	if mutant.Enabled && mutant.Is(mutant.ResumeBefore) && floor > 0 {
		floor--
	}
	start := func(_, next uint64) (uint64, error) { return min(floor, next), nil }
	r, err := newRunner(ctx, cfg, p.p.p, p.gate, g.e.work, m.opt, start)
	if err != nil {
		panic(err) // only a start can fail, and this one does not
	}
	return r
}

// revoke asks an owner to give a partition back.
func (g *Group) revoke(c *claim) {
	c.revoking = true
	switch c.phase {
	case phaseWaiting:
		if c.m.uncall(c) { // it never knew
			c.release()
		}
	case phaseDelivering:
		c.phase = phaseFreezing
		c.runner.Stop(errRevoked)
		if c.m.pull != nil {
			c.m.pull.revoked(c)
		}
		if c.ended || mutant.Enabled && mutant.Is(mutant.ReleaseTooEarly) {
			c.give()
		}
	}
}

// errRevoked is what ends the runner of a partition that is given back.
var errRevoked = errors.New("leat: partition given back")

// give calls the revoked callback, after which the partition is given back.
func (c *claim) give() {
	c.phase = phaseGiving
	if c.m.cfg.OnRevoked != nil {
		c.m.call(callRevoked, c, nil)
		return
	}
	c.release()
}

// release gives the partition back.
func (c *claim) release() {
	g := c.m.g
	c.finish(errRevoked)
	if actions, err := g.assigned.Released(c.part.at, c.m.id, c.generation, g.now()); err == nil {
		g.apply(actions)
	}
}

// finish takes the position over from the runner, and ends the claim.
func (c *claim) finish(cause error) {
	if c.seat != nil {
		c.seat.Release()
		if c.m.pull != nil {
			c.m.pull.drop(c)
		}
	}
	if c.runner != nil {
		c.part.floor = uint64(c.runner.Position())
		c.part.seated = c.seat != nil
		c.part.tried = 0
		if l, ok := c.runner.(*delivery.Lane); ok {
			c.part.tried = l.Tried()
		}
	}
	if c.stop != nil {
		c.stop(cause)
	}
	if c.part.owner == c {
		c.part.owner = nil
	}
	c.phase = phaseOver
	if c.m.claims.get(c.part.at) == c {
		c.m.claims.remove(c.part.at)
	}
}

// lose takes a partition away from its owner.
func (g *Group) lose(m *Member, a group.Action) {
	c := m.claims.get(a.Partition) // of that generation: what it had before has ended
	cause := &LostError{a.Cause.String()}
	closing := a.Cause == group.CauseDeleted && g.closing
	if closing {
		cause.Cause = "engine closed"
	}
	c.lost = true
	if c.runner != nil {
		c.runner.Fence(cause)
		if !c.ended && m.pull == nil {
			m.late.add(c, c)
		}
	}
	m.uncall(c)
	c.finish(cause)
	if off, ok := g.resets[a.Partition]; ok {
		c.part.reset(off)
	}
	if c.told && !c.gave && m.cfg.OnLost != nil {
		m.call(callLost, c, cause)
	}
	if a.Cause != group.CauseReset && !closing {
		g.note(slog.LevelWarn, "leat: partition lost", "group", g.name, "member", m.name, "topic", a.Partition.Topic,
			"partition", a.Partition.Index, "generation", a.Generation, "cause", a.Cause.String())
	}
}

// evicted notes that a member has been put out. What it had is lost already.
func (g *Group) evicted(m *Member, a group.Action) {
	delete(g.byID, a.Member)
	g.note(slog.LevelWarn, "leat: member put out", "group", g.name, "member", m.name, "cause", a.Cause.String())
	switch a.Cause {
	case group.CauseNoProgress:
		if !m.cfg.NoRejoin && !m.leaving {
			m.out = true
			if f := g.e.cfg.Hooks.MemberPutOut; f != nil {
				g.tell(func() { f(g.name, m.name) })
			}
			g.rejoin(m)
			return
		}
		m.end(ErrNoProgress)
	case group.CauseReplaced:
		m.end(ErrReplaced)
	default:
		m.end(ErrRemoved)
	}
	m.gone = true
	if m.pull != nil {
		m.pull.news.Broadcast()
	}
	g.settle(m)
}

// end notes what ended a member, if nothing has yet. The caller holds g.mu.
func (m *Member) end(cause error) {
	m.leaving = true
	if m.err == nil {
		m.err = cause
	}
}

// rejoin lets a member in again that was put out, once its handlers and callbacks have returned. The caller holds mu.
func (g *Group) rejoin(m *Member) {
	if m.pull == nil && m.running == 0 {
		g.enterAgain(m)
	}
}

// enterAgain lets a member in that was put out, unless a callback of it runs, or somebody has its name by now. The caller holds
// mu.
func (g *Group) enterAgain(m *Member) {
	if !m.out || m.leaving || m.calling || m.calls.size() > 0 {
		return
	}
	if g.assigned.Sits(m.name) || g.enter(m) != nil { // a static one would put the other out, which came later
		m.end(ErrReplaced)
		m.gone = true
		g.settle(m)
		return
	}
	g.note(slog.LevelInfo, "leat: member joined again", "group", g.name, "member", m.name)
}

// runnerEnded is told by each runner when its last handler has returned.
func (g *Group) runnerEnded(c *claim, cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.ended = true
	m := c.m
	m.running--
	m.late.remove(c)
	switch {
	case c.phase == phaseFreezing:
		c.give()
	case mutant.Enabled && mutant.Is(mutant.CommitAfterFence) && c.lost && c.part.owner != nil && c.part.owner.runner != nil:
		late := uint64(c.runner.Position())
		_ = c.part.owner.runner.Seek(func(uint64, uint64) (uint64, error) { return late, nil })
	case c.phase == phaseDelivering: // by itself: its topic is gone, as we shall be told, or there was a gap
		if c.part.p.p.Ended() {
			break
		}
		g.dismiss(m, cause)
	}
	g.rejoin(m)
	g.settle(m)
}
