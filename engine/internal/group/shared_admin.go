package group

import (
	"cmp"
	"slices"

	"github.com/leatlog/leat/engine/internal/due"
)

// Loss is what retention has taken from a group: of the records in [From, To), of which From is the first one lost, so many
// were not settled. The zero value is no loss.
type Loss struct {
	From, To uint64
	Records  uint64
	Held     int // of these members were holding so many
}

// DropBefore says that retention has dropped all records below first, and returns what that means for the group: once for
// each record. Their tokens are refused from now on. A floor at first or beyond stays where it is.
func (s *Shared) DropBefore(first uint64) Loss {
	if first <= s.floor {
		return Loss{}
	}
	loss := Loss{From: first, To: first}
	for off := s.floor; off < min(first, s.next); off++ {
		low := uint32(off)
		x := s.at(low)
		switch x.state {
		case stateSettled:
			s.settled--
			continue
		case stateHeld:
			s.drop(low, x)
			loss.Held++
		case stateAgain:
			s.dropAgain(low, x)
		case stateDelayed:
			s.waiting.Remove(int(x.place))
			s.counts.Delayed--
		case stateUnburied:
			s.waiting.Remove(int(x.place))
			s.counts.Dead--
		case stateDead:
			s.unlink(&s.dead, low)
			s.counts.Dead--
		case stateTaken:
			s.counts.Dead--
		}
		loss.From = min(loss.From, off)
		loss.Records++
	}
	if s.next < first {
		loss.From = min(loss.From, s.next)
		loss.Records += first - s.next
		s.next = first
	}
	s.floor, s.lost = first, first
	s.advance()
	s.counts.Lost += loss.Records
	if loss.Records == 0 {
		return Loss{}
	}
	return loss
}

// Reset puts the group at an offset, forward or back: everything that was known is forgotten, all tokens are refused from
// now on, and attempts begin at 1 again.
func (s *Shared) Reset(to uint64) {
	s.clear()
	s.resetIDs = s.ids
	s.floor, s.next, s.lost = to, to, 0
}

func (s *Shared) clear() {
	s.waiting.Clear()
	if s.sorted != nil {
		s.sorted.Clear()
	}
	clear(s.held)
	s.again, s.dead, s.settled = list{}, list{}, 0
	s.counts.InFlight, s.counts.Delayed, s.counts.Dead = 0, 0, 0
}

// Shrink gives the window's memory back if nothing is in it. It costs the next Acquire an allocation.
func (s *Shared) Shrink() {
	if s.floor == s.next {
		s.clear() // of empty lists, and the memory behind them
		s.slots = nil
	}
}

// Configure changes the configuration. It panics if cfg.Check fails.
//
// It counts at once: a hold lasts no longer than the new AckWait from now, records that wait to be delivered again and have
// been so as often as is allowed now are dead, and one that waits for its time is looked at then. What is in flight may
// end, also above a MaxInFlight or a MaxWindow that is lower than before, and is looked at when it fails. What is dead
// already is still to be taken.
func (s *Shared) Configure(cfg SharedConfig, now int64) {
	s.cfg = cfg.withDefaults()
	var held []uint32
	for i := range s.held {
		l := &s.held[i]
		low := l.head
		for range l.n {
			held = append(held, low)
			low = s.at(low).next
		}
	}
	for _, low := range held {
		x := s.at(low)
		x.step = uint8(step(len(s.cfg.AckWait), int(x.attempt)))
		x.due = min(x.due, after(now, s.cfg.AckWait[x.step]))
	}
	slices.SortStableFunc(held, func(a, b uint32) int { return cmp.Compare(s.at(a).due, s.at(b).due) })
	s.held = make([]list, len(s.cfg.AckWait))
	for _, low := range held {
		s.pushBack(&s.held[s.at(low).step], low)
	}
	var again []uint32
	for s.agains() > 0 {
		again = append(again, s.takeAgain())
	}
	s.sorted = nil
	if s.cfg.InOrder {
		s.sorted = due.New(s.placed)
	}
	for _, low := range again {
		s.at(low).returned = false
		if x := s.at(low); s.spent(x) {
			s.die(low, x, x.cause)
		} else {
			s.putAgain(low)
		}
	}
}

// Holding is one record in flight.
type Holding struct {
	Token    Token
	Member   MemberID
	Attempt  int
	Deadline int64
}

// InFlight appends the records that members hold to dst, in the order of their offsets.
func (s *Shared) InFlight(dst []Holding) []Holding {
	from := len(dst)
	for i := range s.held {
		low := s.held[i].head
		for range s.held[i].n {
			x := s.at(low)
			dst = append(dst, Holding{Token{s.offset(low), x.id}, x.member, int(x.attempt), x.due})
			low = x.next
		}
	}
	slices.SortFunc(dst[from:], func(a, b Holding) int { return cmp.Compare(a.Token.Offset, b.Token.Offset) })
	return dst
}

// Snapshot is what has to outlive a Shared: where it stands, what is settled above the floor, and how often each of the
// others has been delivered.
type Snapshot struct {
	Floor   uint64
	IDs     uint64 // tokens up to this one have been given out
	Records []RecordSnapshot
}

// RecordSnapshot is one record in the window of a Snapshot. Records without one have never been delivered.
type RecordSnapshot struct {
	Offset  uint64
	Attempt int
	Settled bool
	Dead    bool
	Cause   Death // of its last failure
}

// Snapshot returns a copy of what has to outlive s, in the order of offsets.
func (s *Shared) Snapshot() Snapshot {
	snap := Snapshot{Floor: s.floor, IDs: s.ids}
	for off := s.floor; off < s.next; off++ {
		x := s.at(uint32(off))
		r := RecordSnapshot{Offset: off, Attempt: int(x.attempt), Cause: x.cause}
		switch x.state {
		case stateSettled:
			r.Settled = true
		case stateHeld:
			r.Cause = DeathReleased // its holder will not be there after the restore
		case stateDead, stateUnburied, stateTaken:
			r.Dead = true
		}
		snap.Records = append(snap.Records, r)
	}
	return snap
}

// RestoreShared returns a window that goes on where a snapshot was taken. Nothing is held or waits any more: what is not
// settled is available at once, or dead if its last delivery may not be repeated. Tokens from before are refused. It panics
// if cfg.Check fails, or if the records of the snapshot are not those from its floor on in order.
func RestoreShared(cfg SharedConfig, snap Snapshot, now int64) *Shared {
	s := NewShared(cfg, snap.Floor)
	s.ids, s.resetIDs = snap.IDs, snap.IDs
	for _, r := range snap.Records {
		if r.Offset != s.next {
			panic("group: snapshot with a gap")
		}
		if s.next-s.floor >= uint64(len(s.slots)) {
			s.grow()
		}
		low := uint32(s.next)
		s.next++
		x := s.at(low)
		s.ids++ // a number of its own, for the token of a dead one
		*x = slot{id: s.ids, attempt: int32(r.Attempt)}
		switch {
		case r.Settled:
			s.settled++
		case r.Dead:
			s.die(low, x, r.Cause)
		default:
			s.fail(low, x, r.Cause, now, now)
		}
	}
	s.advance()
	return s
}
