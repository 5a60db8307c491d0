package group

import (
	"math"
	"time"

	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/internal/mutant"
)

// Shared is one partition of a shared group: a window over the log, from the floor, below which everything is settled, to
// the next record that was never handed out. It has no clock; times are nanoseconds of the engine's, which do not go back.
// It is not safe for concurrent use.
//
// # States of a record
//
//	            Acquire                       Ack
//	available ----------> held by a member --------------------------> settled
//	    ^                     |
//	    |   Nack, time up,    |  and it was the last of MaxDeliveries, or Reject
//	    +---- member left, ---+---------------------> dead ------------> settled
//	    ^  Return, Postpone                             |  TakeDead, Buried
//	    |   (after a delay)                             |
//	    |                                               |
//	    +- never: dead records are not delivered -------+  Unburied: dead again after a delay
//
// # Invariants
//
// Floor. Every record below the floor is settled, lost to retention (which DropBefore has reported), or was passed by
// Reset; the one at the floor is none of these. The floor goes back by Reset only.
//
// One holder. A record is held by at most one member under one token, and a token is never given out twice. Each token is
// accepted at most once by all of Ack, AckThrough, Nack, NackAfter, Reject, Return, Postpone, and none of them after the hold
// has ended by Tick, Release, ReleaseBut, AckHeld, DropBefore, Reset or the AckThrough of a later record: of two that race one
// wins, and the other gets a TokenError.
//
// Every record. Each record in the window is in exactly one state, and the counts say how many are in which. So no record is
// forgotten: it is acquired again, or settled, or dead, once its time has come.
//
// Attempts. The first delivery of a record is attempt 1, and each later one is one more than the one before, until the
// record is settled or Reset; Return and Postpone take back a delivery that did not happen.
//
// Order. With InOrder no record is handed out for the first time while one is available that was delivered before, and of
// those the one with the lowest offset comes first. Without it the one that has become available first comes first, but what
// Return gives back goes before all others, and apart from that new records have every second turn.
//
// Bounds. At most MaxInFlight records are held, all within MaxWindow of the floor. Records that wait for their time or are
// dead hold no place in flight.
//
// Quiet. A hold ends by time in the Tick at or after its deadline and not before. After Tick(now) the next is due after now.
//
// Cost. Acquire, Ack, Nack, Extend and Return take a constant number of steps, but for records that wait for their time, or
// with InOrder to be delivered again, which take the logarithm of how many do, as Postpone does; moving the floor takes as many
// as it moves, AckThrough as many as there are from the floor to its record, and AckHeld, Release and ReleaseBut as many as are
// in flight. Nothing is allocated but when the window is larger than
// it has ever been.
type Shared struct {
	cfg SharedConfig

	floor, next uint64
	lost        uint64 // everything below was dropped by retention
	ids         uint64 // how many acquisitions there were
	resetIDs    uint64 // how many there were at the last Reset
	retryNew    bool   // of records to deliver again and new ones, it is a new one's turn

	// slots are a ring: a record in the window is at its offset modulo their number, a power of two.
	slots []slot

	held    []list            // by step of AckWait, each in the order of deadlines; see hold
	again   list              // available, and delivered before, in the order in which they became so; not with InOrder
	sorted  *due.Heap[uint32] // the same in the order of offsets; nil without InOrder
	dead    list              // dead, and to be taken
	waiting *due.Heap[uint32] // in the order of times

	counts  Counts
	settled int // in the window
}

// slot is what is known of a record in the window. Offsets in it are their low 32 bits: the window is smaller than that.
type slot struct {
	id         uint64   // of the latest acquisition
	due        int64    // when held, the deadline; when waiting, the time
	member     MemberID // of the latest acquisition
	prev, next uint32   // neighbours in the list that the state says
	place      int32    // in waiting or sorted
	attempt    int32    // of the latest acquisition
	state      state
	step       uint8 // when held, which list
	returned   bool  // when again, by Return
	cause      Death // of its latest failure
}

type state uint8

const (
	stateSettled  state = iota
	stateHeld           // in held[step]
	stateAgain          // in again or sorted
	stateDelayed        // in waiting, and then in again or sorted
	stateDead           // in dead
	stateUnburied       // in waiting, and then in dead
	stateTaken          // by TakeDead
)

// list is a list of records by their low offsets, linked through the slots. The links at its two ends mean nothing.
type list struct {
	head, tail uint32
	n          int
}

// Counts is how many records are in which state now, and how many came to which end so far.
type Counts struct {
	InFlight int // held by members
	Again    int // available, and delivered before
	Delayed  int // waiting for their time
	Dead     int // waiting to be buried, or being buried
	Ahead    int // settled above the floor

	Deliveries   uint64 // all, but those that were taken back
	Redeliveries uint64 // those that were not a record's first
	Acked        uint64
	Failed       uint64 // nacked
	Expired      uint64 // not acknowledged in time
	Released     uint64 // held by members that left
	Rejected     uint64
	Buried       uint64 // in the dead-letter topic
	Dropped      uint64 // failed or rejected, and given up
	Lost         uint64 // dropped by retention before they were settled
}

// NewShared returns a window that begins at floor. It panics if cfg.Check fails.
func NewShared(cfg SharedConfig, floor uint64) *Shared {
	s := &Shared{cfg: cfg.withDefaults(), floor: floor, next: floor}
	s.waiting = due.New(s.placed)
	if s.cfg.InOrder {
		s.sorted = due.New(s.placed)
	}
	s.held = make([]list, len(s.cfg.AckWait))
	return s
}

// Floor returns the group's position: everything below is settled.
func (s *Shared) Floor() uint64 { return s.floor }

// Next returns the offset of the next record that was never handed out.
func (s *Shared) Next() uint64 { return s.next }

// Settled reports whether the record at an offset is settled, or has been lost or passed.
func (s *Shared) Settled(offset uint64) bool {
	return offset < s.floor || offset < s.next && s.at(uint32(offset)).state == stateSettled
}

// Counts returns how many records are in which state.
func (s *Shared) Counts() Counts {
	c := s.counts
	c.Again, c.Ahead = s.agains(), s.settled
	return c
}

// Outcome is what came of an Acquire.
type Outcome uint8

// What came of an Acquire.
const (
	// Empty: there is nothing to deliver now. There is when the log grows, or when NextDue has come and Tick been called.
	Empty Outcome = iota
	// Acquired: the member holds the record.
	Acquired
	// InFlightFull: members hold as many records as they may. One has to be settled first.
	InFlightFull
	// WindowFull: the record at the floor has to be settled first.
	WindowFull
)

// Delivery is one acquired record, to be delivered.
type Delivery struct {
	Token    Token
	Attempt  int   // 1 the first time
	Deadline int64 // until when it has to be settled or extended
}

// Acquire gives a member the next record: what has been returned, and then by turns one that has to be delivered again and one
// that was never handed out, if there are both; with InOrder always the former. End is the log's committed length: the offset of the first record that is
// not there yet.
func (s *Shared) Acquire(m MemberID, end uint64, now int64) (Delivery, Outcome) {
	if s.counts.InFlight >= s.cfg.MaxInFlight {
		return Delivery{}, InFlightFull
	}
	outcome := s.news(end)
	var low uint32
	if s.agains() > 0 && (outcome != Acquired || !s.retryNew || s.cfg.InOrder || s.at(s.again.head).returned) {
		low = s.takeAgain()
		s.retryNew = s.retryNew || !s.at(low).returned
		s.at(low).returned = false
	} else {
		if outcome != Acquired {
			return Delivery{}, outcome
		}
		if s.next-s.floor >= uint64(len(s.slots)) {
			s.grow()
		}
		low = uint32(s.next)
		*s.at(low) = slot{} // the ring comes round: nothing of the record that was here before
		s.next++
		s.retryNew = false
	}
	s.ids++
	s.counts.InFlight++
	s.counts.Deliveries++
	x := s.at(low)
	x.id, x.member, x.state = s.ids, m, stateHeld
	if x.attempt < math.MaxInt32 {
		x.attempt++
	}
	if x.attempt > 1 {
		s.counts.Redeliveries++
	}
	s.hold(low, x, now)
	return Delivery{Token{s.offset(low), x.id}, int(x.attempt), x.due}, Acquired
}

// news returns what a member that is to get a new record would get.
func (s *Shared) news(end uint64) Outcome {
	switch {
	case s.next >= end:
		return Empty
	case s.next-s.floor >= uint64(s.cfg.MaxWindow):
		return WindowFull
	}
	return Acquired
}

// Available reports whether an Acquire would give out a record now.
func (s *Shared) Available(end uint64) bool {
	return s.counts.InFlight < s.cfg.MaxInFlight && (s.agains() > 0 || s.news(end) == Acquired)
}

// Ack settles a record that the member holds.
func (s *Shared) Ack(m MemberID, t Token) error {
	x, err := s.find(m, t)
	if err != nil {
		return err
	}
	s.drop(uint32(t.Offset), x)
	s.counts.Acked++
	s.settle(x)
	return nil
}

// AckThrough settles a record that the member holds, and with it each one before it that the member holds too or that waits
// to be delivered again, whoever has failed with that. It returns how many these are together. What other members hold, what
// is dead, and what has been given back without a delivery stays as it is. If the member does not hold the record nothing
// changes.
func (s *Shared) AckThrough(m MemberID, t Token) (n int, err error) {
	if _, err := s.find(m, t); err != nil {
		return 0, err
	}
	for off := s.floor; off <= t.Offset; off++ {
		low := uint32(off)
		x := s.at(low)
		switch {
		case x.state == stateHeld && x.member == m:
			s.drop(low, x)
		case x.state == stateAgain && x.attempt > 0:
			s.dropAgain(low, x)
		case x.state == stateDelayed && x.attempt > 0:
			s.waiting.Remove(int(x.place))
			s.counts.Delayed--
		default:
			continue
		}
		x.state = stateSettled
		s.settled++
		n++
	}
	s.counts.Acked += uint64(n)
	s.advance()
	return n, nil
}

// Fate is what becomes of a record whose delivery has failed.
type Fate uint8

// What becomes of a record.
const (
	FateAgain   Fate = iota + 1 // it is available again
	FateDelayed                 // it will be, after a while
	FateDead                    // it waits to be buried
	FateDropped                 // it is given up: settled
)

// Nack says that a member has failed with a record that it holds. The record is delivered again after its Backoff, or dies.
func (s *Shared) Nack(m MemberID, t Token, now int64) (Fate, error) {
	x, err := s.find(m, t)
	if err != nil {
		return 0, err
	}
	return s.nack(t, x, after(now, of(s.cfg.Backoff, int(x.attempt))), now), nil
}

// NackAfter is Nack with another delay than the Backoff. What is below 0 counts as 0.
func (s *Shared) NackAfter(m MemberID, t Token, delay time.Duration, now int64) (Fate, error) {
	x, err := s.find(m, t)
	if err != nil {
		return 0, err
	}
	return s.nack(t, x, after(now, delay), now), nil
}

func (s *Shared) nack(t Token, x *slot, due, now int64) Fate {
	s.drop(uint32(t.Offset), x)
	s.counts.Failed++
	return s.fail(uint32(t.Offset), x, DeathFailed, due, now)
}

// Reject says that a record that the member holds must never be delivered again.
func (s *Shared) Reject(m MemberID, t Token) (Fate, error) {
	x, err := s.find(m, t)
	if err != nil {
		return 0, err
	}
	s.drop(uint32(t.Offset), x)
	s.counts.Rejected++
	return s.die(uint32(t.Offset), x, DeathRejected), nil
}

// Extend gives the member all of its AckWait from now on, and returns the new deadline. It counts as no delivery.
func (s *Shared) Extend(m MemberID, t Token, now int64) (deadline int64, err error) {
	x, err := s.find(m, t)
	if err != nil {
		return 0, err
	}
	s.unlink(&s.held[x.step], uint32(t.Offset))
	s.hold(uint32(t.Offset), x, now)
	return x.due, nil
}

// AckHeld settles all records below an offset that the member holds, and returns how many.
func (s *Shared) AckHeld(m MemberID, below uint64) (n int) {
	s.each(m, func(low uint32, x *slot) {
		if s.offset(low) < below {
			s.drop(low, x)
			x.state = stateSettled
			s.settled++
			n++
		}
	})
	s.counts.Acked += uint64(n)
	s.advance()
	return n
}

// Deadline returns until when the member has to settle a record that it holds, or false if it does not hold it.
func (s *Shared) Deadline(m MemberID, t Token) (at int64, ok bool) {
	if !s.holds(m, t) {
		return 0, false
	}
	return s.at(uint32(t.Offset)).due, true
}

// Return gives back a record that was acquired and not delivered. It is the next one to be acquired, under the same attempt;
// so of several the last one is returned first. With InOrder it comes in the order of its offset.
func (s *Shared) Return(m MemberID, t Token) error {
	x, err := s.find(m, t)
	if err != nil {
		return err
	}
	s.undo(uint32(t.Offset), x)
	x.state = stateAgain
	if s.sorted != nil {
		s.putAgain(uint32(t.Offset))
	} else {
		x.returned = true
		s.pushFront(&s.again, uint32(t.Offset))
	}
	return nil
}

// Postpone is Return that makes the record available after a delay, behind what is available then. What is below 0 counts as
// 0.
func (s *Shared) Postpone(m MemberID, t Token, delay time.Duration, now int64) error {
	x, err := s.find(m, t)
	if err != nil {
		return err
	}
	s.undo(uint32(t.Offset), x)
	if due := after(now, delay); due > now {
		s.counts.Delayed++
		s.wait(uint32(t.Offset), x, stateDelayed, due)
	} else {
		x.state = stateAgain
		s.putAgain(uint32(t.Offset))
	}
	return nil
}

// undo ends a hold as if the record had not been acquired: it is in no list then.
func (s *Shared) undo(low uint32, x *slot) {
	s.drop(low, x)
	if x.attempt > 1 {
		s.counts.Redeliveries--
	}
	s.counts.Deliveries--
	x.attempt--
}

// Release ends all holds of a member, at once and without a delay, and returns how many. It is called when the member has
// left, after which nothing is acquired for it.
func (s *Shared) Release(m MemberID, now int64) (n int) {
	return s.ReleaseBut(m, func(uint64) bool { return false }, now)
}

// ReleaseBut is Release that leaves the member the records whose offsets keep wants. Keep must not call anything of s.
func (s *Shared) ReleaseBut(m MemberID, keep func(offset uint64) bool, now int64) (n int) {
	s.each(m, func(low uint32, x *slot) {
		if keep(s.offset(low)) {
			return
		}
		s.drop(low, x)
		s.counts.Released++
		s.fail(low, x, DeathReleased, now, now)
		n++
	})
	return n
}

// each calls f with what a member holds: by the lists, and in each of them in the order of deadlines. F may end the hold.
func (s *Shared) each(m MemberID, f func(low uint32, x *slot)) {
	for i := range s.held {
		low := s.held[i].head
		for range s.held[i].n {
			x := s.at(low)
			following := x.next
			if x.member == m {
				f(low, x)
			}
			low = following
		}
	}
}

// holds reports whether the member holds a record under the token.
func (s *Shared) holds(m MemberID, t Token) bool {
	if t.Offset < s.floor || t.Offset >= s.next {
		return false
	}
	x := s.at(uint32(t.Offset))
	return x.id == t.ID && x.state == stateHeld && x.member == m
}

// find returns the record that the member holds under the token.
func (s *Shared) find(m MemberID, t Token) (*slot, error) {
	if t.Offset >= s.floor && t.Offset < s.next {
		if x := s.at(uint32(t.Offset)); x.id == t.ID && x.state == stateHeld && x.member == m ||
			mutant.Enabled && mutant.Is(mutant.AckOfAnother) && x.state == stateHeld {
			return x, nil
		}
	}
	return nil, s.refuse(m, t, stateHeld)
}

// refuse says why a token does not stand for a record in the wanted state.
func (s *Shared) refuse(m MemberID, t Token, wanted state) error {
	e := &TokenError{Member: m, Token: t}
	var x *slot
	if t.Offset >= s.floor && t.Offset < s.next {
		x = s.at(uint32(t.Offset))
		e.Current, e.Attempt = x.id, int(x.attempt)
	}
	switch {
	case t.ID == 0 || t.ID > s.ids:
		e.Reason = TokenUnknown
	case t.ID <= s.resetIDs:
		e.Reason = TokenReset
	case t.Offset >= s.next:
		e.Reason = TokenUnknown
	case x == nil && t.Offset < s.lost:
		e.Reason = TokenLost
	case x == nil || x.state == stateSettled:
		e.Reason = TokenSettled
	case x.id == t.ID && x.state == wanted:
		e.Reason = TokenForeign
	default:
		e.Reason = TokenExpired
	}
	return e
}
