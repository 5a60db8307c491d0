package partition

import (
	"github.com/leatlog/leat/cursor"
)

// Gate is how far one reader is done, as far as the partition is concerned: under Block and Reject nothing at or above the
// lowest gate is dropped, and a reader that lags too far behind is put out.
//
// A gate only rises. A reader that seeks back reads old records again while its gate stays where it was: room that was once
// given is never taken back, so a rewind cannot block publishers (what it reads again may be dropped under it; then it gets
// a gap notice like everybody).
//
// # Proof: nothing that a new gate protects is dropped
//
// Segments are dropped under gateMu, by the holder of the role, after a look at the lowest gate. A gate is added under
// gateMu, at an offset between first and next as they stand then. So a drop comes before the gate is added, and then the
// gate starts at or above the new first; or after, and then the drop has seen it.
type Gate struct {
	cursor.Cursor

	// Immutable after Add.
	p       *Partition
	Name    string // who it is, for Stats
	Gating  bool   // it holds back the dropping of segments
	MaxLag  uint64 // it is put out when it lags by more records than this; 0 means never
	Evicted func() // told when that happens, on the holder's goroutine; must be quick
}

// AddGate registers g at the offset that start chooses between the oldest retained offset and the one past the newest; one
// below is taken for the oldest, and returned as it is.
func (p *Partition) AddGate(g *Gate, start func(first, next uint64) (uint64, error)) (uint64, error) {
	p.gateMu.Lock()
	defer p.gateMu.Unlock()
	first, next := p.log.Snapshot()
	pos, err := start(first, next)
	if err != nil {
		return 0, err
	}
	g.p = p
	g.Raise(max(pos, first)) // who resumes below has lost that, and does not lag by it
	p.gateOf[&g.Cursor] = g
	if g.Gating {
		p.gates.Add(&g.Cursor)
	}
	p.setEvictAt()
	return pos, nil
}

// RemoveGate takes g out. Removing it twice is fine.
func (p *Partition) RemoveGate(g *Gate) {
	p.gateMu.Lock()
	if p.gateOf[&g.Cursor] == g {
		p.removeGate(g)
	}
	p.gateMu.Unlock()
	p.room.Broadcast()
}

// removeGate is RemoveGate for a caller that holds gateMu.
func (p *Partition) removeGate(g *Gate) {
	delete(p.gateOf, &g.Cursor)
	// Once the partition closes its gates stay where they are: those that wait for room are to fail, and must not get it
	// because the readers that they wait for end as well.
	if g.Gating && p.state.Load()&stateClosing == 0 {
		p.gates.Remove(&g.Cursor)
	}
	p.setEvictAt()
}

// Advance says that its reader is done with everything below pos.
func (g *Gate) Advance(pos uint64) {
	if g.Raise(pos) && g.Gating {
		g.p.room.Broadcast() // Raise is the barrier before its look at who waits
	}
}

// setEvictAt works out the committed length at which a gate may first be over its limit. Gates only rise, so it is never
// too late. The caller holds gateMu.
func (p *Partition) setEvictAt() {
	at := uint64(noEviction)
	for _, g := range p.gateOf {
		if g.MaxLag > 0 {
			at = min(at, g.Load()+g.MaxLag+1)
		}
	}
	p.evictAt.Store(at)
}

// evict puts out whoever is over its lag limit. The caller holds the role.
func (p *Partition) evict() {
	committed := p.log.Committed()
	if committed < p.evictAt.Load() {
		return
	}
	p.gateMu.Lock()
	var out []*Gate
	for _, g := range p.gateOf {
		if pos := g.Load(); g.MaxLag > 0 && pos < committed && committed-pos > g.MaxLag {
			out = append(out, g)
		}
	}
	for _, g := range out {
		p.removeGate(g)
	}
	p.setEvictAt()
	p.gateMu.Unlock()
	for _, g := range out {
		g.Evicted()
	}
	if len(out) > 0 {
		p.room.Broadcast()
	}
}

// holdup returns the gate that keeps the oldest segment from being dropped, or nil.
func (p *Partition) holdup() *Gate {
	if p.cfg.OnFull == DropOldest {
		return nil
	}
	p.gateMu.Lock()
	defer p.gateMu.Unlock()
	s, ok := p.log.Oldest()
	low, holder, gated := p.gates.Min()
	if !ok || !gated || low >= s.End {
		return nil
	}
	return p.gateOf[holder]
}
