package partition

import (
	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/segment"
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
// Segments are dropped under gateMu, by the holder of the role, after a look at the gates. A gate is added under gateMu, at
// an offset between first and next as they stand then. So a drop comes before the gate is added, and then the gate starts at
// or above the new first; or after, and then the drop has seen it.
type Gate struct {
	cursor.Cursor

	// Immutable after Add.
	p       *Partition
	Name    string // who it is, for Stats
	Gating  bool   // it holds back the dropping of segments
	MaxLag  uint64 // it is put out when it lags by more records than this; 0 means never
	Evicted func() // told when that happens, on the holder's goroutine; must be quick

	// Under gateMu.
	in    bool // it has been added and not removed
	held  int  // its place in gates.all, if it is Gating
	limit int  // its place in limited, if it has a MaxLag
}

// AddGate registers g, which must be new, at the offset that start chooses between the oldest retained offset and the one past
// the newest; one below is taken for the oldest, and returned as it is.
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
	g.in = true
	if g.Gating {
		p.gates.add(g)
	}
	if g.MaxLag > 0 {
		g.limit = len(p.limited)
		p.limited = append(p.limited, g)
		p.evictAt.Store(min(p.evictAt.Load(), g.overAt()))
	}
	return pos, nil
}

// RemoveGate takes g out. Removing it twice is fine.
func (p *Partition) RemoveGate(g *Gate) {
	p.gateMu.Lock()
	if g.p == p && g.in {
		p.removeGate(g)
	}
	p.gateMu.Unlock()
	p.room.Broadcast()
}

// removeGate is RemoveGate for a caller that holds gateMu, and knows that g is there.
func (p *Partition) removeGate(g *Gate) {
	g.in = false
	// Once the partition closes its gates stay where they are: those that wait for room are to fail, and must not get it
	// because the readers that they wait for end as well.
	if g.Gating && p.state.Load()&stateClosing == 0 {
		p.gates.remove(g)
	}
	if g.MaxLag > 0 { // evictAt stays: too low is a walk for nothing, once
		last := p.limited[len(p.limited)-1]
		p.limited[g.limit], last.limit = last, g.limit
		p.limited[len(p.limited)-1] = nil
		p.limited = p.limited[:len(p.limited)-1]
	}
}

// Advance says that its reader is done with everything below pos.
func (g *Gate) Advance(pos uint64) {
	if g.Raise(pos) && g.Gating {
		g.p.room.Broadcast() // Raise is the barrier before its look at who waits
	}
}

// overAt returns the committed length at which g is over its limit, as long as it does not move.
func (g *Gate) overAt() uint64 { return g.Load() + g.MaxLag + 1 }

// evict puts out whoever is over its lag limit, and works out when that may happen next: gates only rise, so evictAt is never
// too high. The caller holds the role.
func (p *Partition) evict() {
	committed := p.log.Published()
	if committed < p.evictAt.Load() {
		return
	}
	p.gateMu.Lock()
	var out []*Gate
	at := uint64(noEviction)
	for _, g := range p.limited {
		if over := g.overAt(); over <= committed {
			out = append(out, g)
		} else {
			at = min(at, over)
		}
	}
	for _, g := range out {
		p.removeGate(g)
	}
	p.evictAt.Store(at)
	p.gateMu.Unlock()
	for _, g := range out {
		g.Evicted()
	}
	if len(out) > 0 {
		p.room.Broadcast()
	}
}

// holdup returns a gate that keeps the oldest segment from being dropped, or nil.
func (p *Partition) holdup() *Gate {
	p.gateMu.Lock()
	defer p.gateMu.Unlock()
	s, ok := p.log.Oldest()
	if !ok {
		return nil
	}
	return p.holder(s)
}

// holder returns a gate that keeps s, the oldest segment, from being dropped, or nil. The caller holds gateMu.
func (p *Partition) holder(s segment.Info) *Gate {
	if p.cfg.OnFull == DropOldest {
		return nil
	}
	return p.gates.below(s.End)
}

// gates are the gating gates of a partition, which knows for any offset whether one of them is below. It is under gateMu;
// only the positions change without.
//
// # Invariant
//
// Each of all[:passed] is at low or beyond. They were when they were counted in, and gates only rise. Whoever goes by that has
// taken gateMu after the one who looked, so what the readers did below low comes before it here as well.
//
// # Cost
//
// Adding and removing take a few steps, however many there are. A look at an offset goes on where the last one stopped: at
// the gate that is below, if it still is. So all looks while a segment waits to be dropped walk over the gates once. And a
// walk goes by the lowest position that it has met: the next one begins when the segments dropped have got there, not with
// the next segment. For readers that keep up that is once for each time that the log is replaced as a whole.
type gates struct {
	all    []*Gate
	passed int
	low    uint64
}

func (s *gates) add(g *Gate) {
	g.held = len(s.all)
	s.all = append(s.all, g)
}

// remove closes the gap with the last of those that have been passed, and the gap that this one leaves with the last of all.
func (s *gates) remove(g *Gate) {
	i := g.held
	if i < s.passed {
		s.passed--
		i = s.move(s.passed, i)
	}
	i = s.move(len(s.all)-1, i)
	s.all[i] = nil
	s.all = s.all[:i]
}

// move moves the gate at one place to another, where there is none, and returns where there is none now.
func (s *gates) move(from, to int) int {
	if from != to {
		s.all[to] = s.all[from]
		s.all[to].held = to
	}
	return from
}

// below returns a gate that is below end, or nil if all are at end or beyond.
func (s *gates) below(end uint64) *Gate {
	if end > s.low || s.passed == 0 {
		s.passed, s.low = 0, noEviction
	}
	for ; s.passed < len(s.all); s.passed++ {
		g := s.all[s.passed]
		pos := g.Load()
		if pos < end {
			return g
		}
		s.low = min(s.low, pos)
	}
	return nil
}

// lagging returns how far its reader may fall behind of its own accord, if it would by most: well below the MaxLag, and not at all where
// what comes while it does not look might be more. g may be nil.
func (g *Gate) lagging(most int) int {
	if g == nil || g.MaxLag == 0 || g.MaxLag/4 >= uint64(most) {
		return most
	}
	if g.MaxLag/4 < chaseSome {
		return 0
	}
	return int(g.MaxLag / 4)
}
