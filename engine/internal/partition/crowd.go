package partition

import (
	"github.com/leatlog/leat/internal/atomicx"
)

// Crowd counts, over all partitions of an engine, the handlers on workers of the pool that wait inside a publish for room. Were
// all workers to wait like that, nobody would be left to run the very handlers that make room: a pipeline of topics would
// stand still for ever. So the one that would be the last is refused with ErrWorkersBlocked.
//
// Only holders of a role that wait for room count, each for its own partition: what is in the ring when they look. Whoever
// comes later broadcasts room, and so has the holder look again.
type Crowd struct {
	// waiting is added to by holders that wait for room; nobody else reads it. It publishes no memory.
	waiting atomicx.Int64
	workers int64 // immutable
}

// NewCrowd returns the crowd of a pool of so many workers.
func NewCrowd(workers int) *Crowd { return &Crowd{workers: int64(workers)} }

// count has *mine, which is a holder's contribution so far, be n, and reports whether all workers wait.
func (c *Crowd) count(mine *int64, n int64) bool {
	d := n - *mine
	*mine = n
	return c.waiting.Add(d) >= c.workers
}

// gone stands in the ring for a request that has been refused.
var gone = func() *request {
	r := &request{}
	r.state.Store(left)
	return r
}()

// relieve counts the handlers that wait for this partition, and refuses one of them if all workers of the pool wait. It
// reports whether it did. The caller holds the role and waits for room.
func (p *Partition) relieve() bool {
	if p.cfg.Crowd == nil {
		return false
	}
	n, last := int64(0), (*slot)(nil)
	for pos := p.ring.Head(); p.ring.IsReady(pos); {
		s := p.ring.Slot(pos, 0)
		if s.kind() == kindRequest && s.req.handler && s.req.wanted() {
			n, last = n+1, s
		}
		pos = p.ring.Advance(pos, s.slots())
	}
	p.insideMu.Lock()
	defer p.insideMu.Unlock()
	var insiders int64
	for in := range p.inside {
		if in.claims {
			insiders++
		}
	}
	if !p.cfg.Crowd.count(&p.a.crowd, n+insiders) || n+insiders == 0 {
		return false
	}
	if last != nil && last.req.take() {
		req := last.req
		last.req = gone
		req.finish(-1, ErrWorkersBlocked)
	} else {
		for in := range p.inside {
			if in.claims {
				in.abort(ErrWorkersBlocked)
				break
			}
		}
	}
	p.cfg.Crowd.count(&p.a.crowd, n+insiders-1)
	return true
}

// dissolve takes back what relieve has counted.
func (p *Partition) dissolve() {
	if p.cfg.Crowd != nil && p.a.crowd != 0 {
		p.cfg.Crowd.count(&p.a.crowd, 0)
	}
}

// crowdIn is called by a handler's publish that waits, after an operation that is a full barrier: a holder that waits for
// room looks again, at this one as well.
func (p *Partition) crowdIn() {
	if p.full.Load() != 0 { // pairs with waitForRoom: it stores full, then looks
		p.room.Broadcast()
	}
}
