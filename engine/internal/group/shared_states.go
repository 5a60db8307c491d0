package group

import (
	"math"
	"time"

	"github.com/leatlog/leat/internal/mutant"
)

// Death is why a record is dead.
type Death uint8

// Why a record is dead.
const (
	DeathFailed   Death = iota + 1 // its last delivery was nacked
	DeathExpired                   // its last delivery was not acknowledged in time
	DeathReleased                  // the member that had it for the last time has left
	DeathRejected                  // a member has rejected it
)

var deaths = [...]string{
	DeathFailed:   "failed",
	DeathExpired:  "not acknowledged in time",
	DeathReleased: "member left",
	DeathRejected: "rejected",
}

// String says it in a few words, for the dead letter's header.
func (d Death) String() string {
	if d > 0 && int(d) < len(deaths) {
		return deaths[d]
	}
	return "alive"
}

// Dead is a record to be buried: to be published to the dead-letter topic.
type Dead struct {
	Token   Token
	Member  MemberID // who had it last
	Attempt int      // how often it has been delivered
	Cause   Death
}

// TakeDead returns the next record to be buried, or false if there is none now. What comes of it has to be told to Buried
// or Unburied.
func (s *Shared) TakeDead() (Dead, bool) {
	if s.dead.n == 0 {
		return Dead{}, false
	}
	low := s.dead.head
	s.unlink(&s.dead, low)
	x := s.at(low)
	x.state = stateTaken
	return Dead{Token{s.offset(low), x.id}, x.member, int(x.attempt), x.cause}, true
}

// ToBury returns how many records TakeDead would return now.
func (s *Shared) ToBury() int { return s.dead.n }

// Buried settles a dead record: it is safe in the dead-letter topic. A TokenError says that the record is no longer the
// window's: retention has dropped it, or the position was set.
func (s *Shared) Buried(t Token) error {
	x, err := s.findTaken(t)
	if err != nil {
		return err
	}
	s.counts.Dead--
	s.counts.Buried++
	s.settle(x)
	return nil
}

// Unburied says that a dead record could not be published. It is to be taken again after the delay.
func (s *Shared) Unburied(t Token, delay time.Duration, now int64) error {
	x, err := s.findTaken(t)
	if err != nil {
		return err
	}
	low := uint32(t.Offset)
	if due := after(now, delay); due > now {
		s.wait(low, x, stateUnburied, due)
	} else {
		x.state = stateDead
		s.pushBack(&s.dead, low)
	}
	return nil
}

func (s *Shared) findTaken(t Token) (*slot, error) {
	if t.Offset >= s.floor && t.Offset < s.next {
		if x := s.at(uint32(t.Offset)); x.id == t.ID && x.state == stateTaken {
			return x, nil
		}
	}
	return nil, s.refuse(0, t, stateTaken)
}

// NextDue returns when Tick has something to do, or false if nothing waits for a time.
func (s *Shared) NextDue() (at int64, ok bool) {
	at, ok = s.waiting.Next()
	if first := s.firstHeld(); first != nil {
		if due := s.at(first.head).due; !ok || due < at {
			at, ok = due, true
		}
	}
	return at, ok
}

// firstHeld returns the list of held records whose first one has the earliest deadline, or nil.
func (s *Shared) firstHeld() (first *list) {
	for i := range s.held {
		if l := &s.held[i]; l.n > 0 && (first == nil || s.at(l.head).due < s.at(first.head).due) {
			first = l
		}
	}
	return first
}

// Expired is a hold that has ended because its time was up.
type Expired struct {
	Member  MemberID
	Token   Token
	Attempt int
	Fate    Fate
}

// Tick ends the holds whose deadline has passed and makes available what has waited long enough. It appends the former to
// dst, for those who want to tell the members.
func (s *Shared) Tick(now int64, dst []Expired) []Expired {
	for l := s.firstHeld(); l != nil && s.at(l.head).due <= now; l = s.firstHeld() {
		low := l.head
		x := s.at(low)
		e := Expired{Member: x.member, Token: Token{s.offset(low), x.id}, Attempt: int(x.attempt)}
		rest := of(s.cfg.Backoff, e.Attempt) - of(s.cfg.AckWait, e.Attempt)
		s.drop(low, x)
		s.counts.Expired++
		if mutant.Enabled && mutant.Is(mutant.ForgetExpired) {
			s.settle(x)
			continue
		}
		e.Fate = s.fail(low, x, DeathExpired, after(x.due, rest), now)
		dst = append(dst, e)
	}
	for low, ok := s.waiting.Pop(now); ok; low, ok = s.waiting.Pop(now) {
		x := s.at(low)
		if x.state == stateUnburied {
			x.state = stateDead
			s.pushBack(&s.dead, low)
			continue
		}
		s.counts.Delayed--
		s.fail(low, x, x.cause, now, now) // looks once more whether it may be delivered again: the limit may be lower now
	}
	return dst
}

// hold puts a held record behind those with the same wait that have the same deadline or an earlier one. Unless the clock
// goes back or the configuration changes that is the end of the list.
func (s *Shared) hold(low uint32, x *slot, now int64) {
	step := step(len(s.cfg.AckWait), int(x.attempt))
	x.step = uint8(step)
	x.due = after(now, s.cfg.AckWait[step])
	s.insert(&s.held[step], low, x)
}

// drop ends a hold: the record is in no list then.
func (s *Shared) drop(low uint32, x *slot) {
	s.unlink(&s.held[x.step], low)
	s.counts.InFlight--
}

// fail decides what becomes of a record, in no list, whose delivery has failed.
func (s *Shared) fail(low uint32, x *slot, cause Death, due, now int64) Fate {
	switch {
	case s.spent(x):
		return s.die(low, x, cause)
	case due > now:
		x.cause = cause
		s.counts.Delayed++
		s.wait(low, x, stateDelayed, due)
		return FateDelayed
	}
	x.state, x.cause = stateAgain, cause
	s.putAgain(low)
	return FateAgain
}

// agains returns how many records are available that were delivered before.
func (s *Shared) agains() int {
	if s.sorted != nil {
		return s.sorted.Len()
	}
	return s.again.n
}

// putAgain makes a record, in no list, one of these.
func (s *Shared) putAgain(low uint32) {
	if s.sorted != nil {
		s.sorted.Push(low, int64(s.offset(low)^1<<63)) // as a signed number, and in the same order
		return
	}
	s.pushBack(&s.again, low)
}

// takeAgain takes the first of them out. There must be one.
func (s *Shared) takeAgain() (low uint32) {
	if s.sorted != nil {
		low, _ = s.sorted.Pop(math.MaxInt64)
		return low
	}
	low = s.again.head
	s.unlink(&s.again, low)
	return low
}

// dropAgain takes a certain one out.
func (s *Shared) dropAgain(low uint32, x *slot) {
	if s.sorted != nil {
		s.sorted.Remove(int(x.place))
		return
	}
	s.unlink(&s.again, low)
}

// spent reports whether a record has been delivered as often as it may.
func (s *Shared) spent(x *slot) bool {
	return s.cfg.MaxDeliveries > 0 && int(x.attempt) >= s.cfg.MaxDeliveries
}

// die ends the life of a record, in no list.
func (s *Shared) die(low uint32, x *slot, cause Death) Fate {
	bury := s.cfg.DeadLetter
	if cause == DeathRejected {
		bury = s.cfg.DeadLetterRejected
	}
	if !bury {
		s.counts.Dropped++
		s.settle(x)
		return FateDropped
	}
	x.state, x.cause = stateDead, cause
	s.counts.Dead++
	s.pushBack(&s.dead, low)
	return FateDead
}

// settle ends a record's time in the window, and moves the floor as far as it goes.
func (s *Shared) settle(x *slot) {
	x.state = stateSettled
	s.settled++
	s.advance()
}

func (s *Shared) advance() {
	for s.floor < s.next && s.at(uint32(s.floor)).state == stateSettled {
		s.floor++
		s.settled--
	}
}

func (s *Shared) wait(low uint32, x *slot, in state, due int64) {
	x.state, x.due = in, due
	s.waiting.Push(low, due)
}

func (s *Shared) placed(low uint32, place int) { s.at(low).place = int32(place) }

func (s *Shared) at(low uint32) *slot { return &s.slots[low&uint32(len(s.slots)-1)] }

// offset returns the offset in the window that has these low bits.
func (s *Shared) offset(low uint32) uint64 { return s.floor + uint64(low-uint32(s.floor)) }

const firstSlots = 16

// grow doubles the ring. Links are offsets, so they stay.
func (s *Shared) grow() {
	old := s.slots
	s.slots = make([]slot, max(firstSlots, 2*len(old)))
	for off := s.floor; off < s.next; off++ {
		*s.at(uint32(off)) = old[uint32(off)&uint32(len(old)-1)]
	}
}

func (s *Shared) pushBack(l *list, low uint32) {
	s.at(low).prev = l.tail
	if l.n > 0 {
		s.at(l.tail).next = low
	} else {
		l.head = low
	}
	l.tail = low
	l.n++
}

func (s *Shared) pushFront(l *list, low uint32) {
	s.at(low).next = l.head
	if l.n > 0 {
		s.at(l.head).prev = low
	} else {
		l.tail = low
	}
	l.head = low
	l.n++
}

// insert puts a record into a list that is in the order of times, behind those with the same.
func (s *Shared) insert(l *list, low uint32, x *slot) {
	behind := l.tail
	for n := l.n; n > 0; n-- {
		y := s.at(behind)
		if y.due <= x.due {
			break
		}
		if n == 1 {
			s.pushFront(l, low)
			return
		}
		behind = y.prev
	}
	if l.n == 0 || behind == l.tail {
		s.pushBack(l, low)
		return
	}
	y := s.at(behind)
	x.prev, x.next = behind, y.next
	s.at(y.next).prev = low
	y.next = low
	l.n++
}

func (s *Shared) unlink(l *list, low uint32) {
	x := s.at(low)
	if low == l.head {
		l.head = x.next
	} else {
		s.at(x.prev).next = x.next
	}
	if low == l.tail {
		l.tail = x.prev
	} else {
		s.at(x.next).prev = x.prev
	}
	l.n--
}
