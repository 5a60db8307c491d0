package load

import (
	"runtime"
	"sync"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// member is one member of a group: the handler that a target calls.
type member struct {
	g    *groupRun
	id   uint32 // from 1
	slot int    // whose place it has: members that come and go have those of others
	name string
	seat Seat

	ledgers []*ledger // by partition
}

// Deliver implements Sink.
func (m *member) Deliver(d Delivery, how Settler) error {
	g := m.g
	if g.isCut.Load() {
		return nil
	}
	l := m.ledgers[d.Partition]
	if g.plain {
		l.plain(m, &d)
		return nil
	}
	t := l.begin(m, &d)
	m.work()
	if g.isCut.Load() {
		return nil // it may have slept for less than it should: it is still at work
	}
	failed := t.ok && g.fails(d.Partition, t)
	switch {
	case g.once:
		l.end(m, t, settled) // it does not come again, whatever came of it
	case g.manual && !failed:
		p := settled
		if how.Ack() != nil {
			p = again
			g.fenced.Add(1)
		}
		l.end(m, t, p)
		return nil
	case failed:
		l.end(m, t, again) // before the target knows: then it may come at any time
		if g.manual {
			if how.Nack(-1) != nil {
				g.fenced.Add(1)
			}
			return nil
		}
	default:
		l.end(m, t, settled)
	}
	if failed {
		return ErrHandler
	}
	return nil
}

// Batch implements Sink.
func (m *member) Batch(ds []Delivery, ack func() error) {
	if m.g.isCut.Load() {
		return
	}
	tickets := make([]ticket, len(ds))
	in := make(map[*ledger]bool, 1) // where the member is inside until all is acknowledged
	for i := range ds {
		l := m.ledgers[ds[i].Partition]
		l.mu.Lock()
		if m.g.ordered && !in[l] {
			in[l] = true
			l.overlap(m.id)
		}
		tickets[i] = l.enter(m, &ds[i])
		l.mu.Unlock()
		m.work()
		if m.g.isCut.Load() {
			return
		}
	}
	err := ack()
	if err != nil {
		m.g.fenced.Add(1)
	}
	for i, t := range tickets {
		l := m.ledgers[ds[i].Partition]
		l.mu.Lock()
		l.exit(t, settled, err != nil)
		l.mu.Unlock()
	}
	for l := range in {
		l.mu.Lock()
		l.leave(m.id)
		l.mu.Unlock()
	}
}

// Lost implements Sink.
func (m *member) Lost(partitions []int) {
	if m.g.closing.Load() {
		return
	}
	for _, p := range partitions {
		m.ledgers[p].lost()
	}
	m.g.lost.Add(uint64(len(partitions)))
}

// work is what a handler does.
func (m *member) work() {
	g := m.g
	if m.slot == 0 && g.slowOn.Load() {
		if g.c.Hang {
			<-g.recovered
		} else {
			g.spend(g.c.Slow, g.recovered)
		}
		return
	}
	g.spend(g.c.Handler, g.quit)
}

// computes is up to how long a handler computes instead of sleeping, which is late by up to a millisecond.
const computes = 200 * time.Microsecond

// spend takes a time, but ends soon if end is closed.
func (g *groupRun) spend(d time.Duration, end <-chan struct{}) {
	c := g.r.clock
	switch {
	case d <= 0:
	case d > sleepMost:
		g.asleep.Add(1)
		defer g.asleep.Add(-1)
		late := time.NewTimer(d)
		defer late.Stop()
		select {
		case <-late.C:
		case <-end:
		}
	case d >= computes || c.exact:
		time.Sleep(d)
	default:
		for until := c.Now() + int64(d); c.Now() < until; {
			runtime.KeepAlive(d)
		}
	}
}

// fails decides whether a delivery fails: the same ones in each run with the same seed.
func (g *groupRun) fails(partition int, t ticket) bool {
	if g.c.Fail == 0 {
		return false
	}
	x := (g.r.s.Seed + 1) * 0x9E3779B97F4A7C15
	for _, v := range []uint64{uint64(partition), uint64(t.producer), t.seq, uint64(t.number)} {
		x = (x ^ v) * 0x9E3779B97F4A7C15
		x ^= x >> 29
		x *= 0xBF58476D1CE4E5B9
		x ^= x >> 32
	}
	return float64(x>>11)/(1<<53) < g.c.Fail
}

// gaps are how long partitions stood still when the group changed.
type gaps struct {
	mu            sync.Mutex
	stayed, moved *Histogram
}

// record counts one. It comes seldom.
func (g *gaps) record(into **Histogram, d int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if *into == nil {
		*into = NewHistogram()
	}
	(*into).Record(d)
}

func (g *gaps) latency(h *Histogram) Latency {
	if h == nil {
		return Latency{}
	}
	return h.Latency()
}

// change counts a change of the group that begins or has ended.
func (g *groupRun) change() { g.epoch.Add(1) }

// counters of a group run that handlers write.
type groupCounters struct {
	_ atomicx.Pad
	// slowOn says that the first member is slow. Stored by the collector, loaded by handlers; publishes nothing else.
	slowOn atomicx.Bool
	// isCut says that nothing counts any more. Stored by the collector, loaded by handlers; publishes nothing else.
	isCut atomicx.Bool
	// epoch counts changes of the group. Raised by the churner, loaded by handlers; publishes nothing else.
	epoch atomicx.Uint32
	_     atomicx.Pad
	// fenced counts acknowledgements that were refused, and lost the partitions that members have lost. Raised by handlers,
	// loaded by the collector after they have ended; publish nothing else.
	fenced, lost atomicx.Uint64
	// asleep is how many handlers are in a long sleep. Written by handlers, loaded by the collector; publishes nothing else.
	asleep atomicx.Int64
	// closing says that the target is about to be closed. Stored by the collector, loaded by Lost; publishes nothing else.
	closing atomicx.Bool
}
