package due

import (
	"math"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// Never is the time of an alarm that is not set. Setting an alarm to Never clears it.
const Never int64 = math.MaxInt64

// Alarms rings many alarms with one timer.
//
// # Roles
//
//   - setter: any goroutine, also under locks of its own and inside a ring: Set, SetEarlier, Clear, Close.
//   - ringer: the timer's goroutine that rings what is due. There is one at a time at most.
//
// # Shared state
//
//	Alarm.at   written under mu; read without it by setters: the time that the alarm is set to, or Never
//	the rest   under mu
//
// # Proof
//
// One at a time. Whoever wants to ring raises ringing under mu, where it was not raised, and takes it down under mu after
// its last ring. So rings follow each other, each sees what the one before has done, and no two overlap.
//
// Set and cleared as in one order. At is written only under mu. A call that writes takes effect there; one that reads what
// it would have written, and returns without mu, takes effect with that load. Both are operations on one atomic word.
//
// Nothing is missed. While nobody rings the timer runs to the heap's first time or to an earlier one: a setter that puts
// something in front of it sets it again under the same hold of mu, and a ringer sets it before it takes ringing down. While
// somebody rings setters leave the timer alone, since the ringer looks at the heap again under mu before it ends. A timer
// that fires too early, or while another goroutine rings, does no harm: it finds nothing due, or lets the other one do it.
// And a setter that returns without mu because the alarm is set already has loaded a time from at before the ringer stored
// Never there. The ringer stores Never before it rings. So the ring sees each atomic word that the setter had changed before
// its call, and what it had changed under a lock that the ring takes.
//
// Nobody starves. A time that has passed already counts as that of the ringer's last look at the clock, and of those with
// the same time the first one set comes first. The ringer looks at the clock before each ring. So an alarm whose ring sets
// it again, however far back, comes after all that were due by then.
//
// Close is final. The mark is set under mu and the heap is empty from then on: nothing is put into it, and the ringer, which
// takes one alarm at a time under mu, takes none. So what begins to ring after Close can only be the one alarm that the
// ringer took before. Done is closed under mu when there is no ringer, by Close or by the ringer as it ends: after it there
// is no such alarm either. Close waits for nobody and so may be called inside a ring.
//
// Progress. SetEarlier is one load if the alarm is set to that time or an earlier one, Set and Clear if nothing changes.
// Who needs mu waits for some steps in the heap at most; nothing is called under it.
//
// Not promised. That an alarm that has been cleared does not ring: the ringer may have taken it before. That it rings once
// for each Set: those that come before a ring share it. So whoever is rung looks what is due. That the timer
// never fires for nothing: that of a cleared alarm is left running, and fires once at most.
type Alarms struct {
	clock *atomicx.Clock // immutable
	done  chan struct{}  // closed under mu

	mu      atomicx.Mutex // a leaf: no other lock is taken under it
	heap    *Heap[*Alarm]
	timer   *time.Timer // nil until the first Set
	fires   int64       // when the timer fires, or Never; no matter while ringing
	looked  int64       // the latest time that a ringer has seen
	ringing bool
	closed  bool
}

// NewAlarms returns alarms that go by that clock. There is no goroutine between rings, and no timer until something is set.
func NewAlarms(clock *atomicx.Clock) *Alarms {
	return &Alarms{
		clock:  clock,
		done:   make(chan struct{}),
		heap:   New(func(a *Alarm, place int) { a.place = place }),
		fires:  Never,
		looked: math.MinInt64,
	}
}

// Alarm is something that rings at a time, for instance when the earliest of somebody's deadlines has come. It must be
// initialized by Init before anything else, and not be copied after that.
type Alarm struct {
	// Immutable after Init.
	alarms *Alarms
	ring   func(now int64)

	// at is written by setters and by the ringer under alarms.mu, and read by setters without it. It is the time that the
	// alarm is set to, or Never. The store of Never before a ring publishes nothing itself: see "Nothing is missed".
	at atomicx.Int64

	place int // in the heap; under alarms.mu
}

// Init makes a an alarm that calls ring when it is due. Ring is called under no lock, on a goroutine that all alarms share:
// it must not block, must not call user code, and must not end the goroutine. Its argument is the clock's time, at or after
// the time that the alarm was set to. The alarm is not set any more when ring begins, and ring may set it again.
func (a *Alarm) Init(alarms *Alarms, ring func(now int64)) {
	a.alarms, a.ring = alarms, ring
	a.at.Store(Never)
}

// At returns the time that the alarm is set to, or Never.
func (a *Alarm) At() int64 { return a.at.Load() }

// Set sets the alarm to a time of the clock, or moves it there. What has passed already rings at once. After Close it does
// nothing.
func (a *Alarm) Set(at int64) {
	if a.at.Load() == at {
		return
	}
	a.alarms.set(a, at, false)
}

// SetEarlier is Set if the alarm is not set, or to a later time. Otherwise it does nothing.
func (a *Alarm) SetEarlier(at int64) {
	if a.at.Load() <= at {
		return
	}
	a.alarms.set(a, at, true)
}

// Clear takes the alarm down. If it is just about to ring it may still do so.
func (a *Alarm) Clear() { a.Set(Never) }

func (s *Alarms) set(a *Alarm, at int64, onlyEarlier bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || onlyEarlier && a.at.Load() <= at {
		return
	}
	a.at.Store(at)
	due := max(at, s.looked) // see "Nobody starves"
	switch {
	case at == Never && a.place == 0:
	case at == Never:
		s.heap.Remove(a.place)
	case a.place == 0:
		s.heap.Push(a, due)
	default:
		s.heap.Move(a.place, due)
	}
	if !s.ringing {
		s.arm()
	}
}

// arm sees to it that the timer fires when the first alarm is due. The caller holds mu, and nobody rings.
func (s *Alarms) arm() {
	at, ok := s.heap.Next()
	if !ok || at >= s.fires {
		return // a timer that is too early looks again then; it costs less than setting it each time
	}
	s.fires = at
	wait := until(at, s.clock.Now())
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.fire)
	} else {
		s.timer.Reset(wait)
	}
}

// fire rings what is due, on the timer's goroutine.
func (s *Alarms) fire() {
	s.mu.Lock()
	if s.ringing || s.closed {
		s.mu.Unlock()
		return
	}
	s.ringing = true
	for a := s.take(); a != nil; a = s.take() {
		now := s.looked
		s.mu.Unlock()
		a.ring(now)
		s.mu.Lock()
	}
	s.ringing = false
	if s.closed {
		close(s.done)
	} else {
		s.fires = Never // it may be running, if it was set again just as it fired; then it is set once more
		s.arm()
	}
	s.mu.Unlock()
}

// take takes the next alarm that is due, or returns nil. The caller holds mu.
func (s *Alarms) take() *Alarm {
	s.looked = max(s.looked, s.clock.Now())
	a, ok := s.heap.Pop(s.looked)
	if !ok {
		return nil
	}
	a.at.Store(Never) // before the ring: see "Nothing is missed"
	return a
}

// Close takes all alarms down, and no alarm can be set any more. It does not wait: one ring may be in progress or about to
// begin, and Done is closed when there is none. It may be called from anywhere, also inside a ring, and more than once.
func (s *Alarms) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for i := range s.heap.items {
		s.heap.items[i].key.at.Store(Never)
	}
	s.heap.Clear()
	if s.timer != nil {
		s.timer.Stop()
	}
	if !s.ringing {
		close(s.done)
	}
}

// Done returns a channel that is closed once Close has been called and no ring is in progress or will begin. A ring must not
// wait for it.
func (s *Alarms) Done() <-chan struct{} { return s.done }

// until returns how long it is from now to at: nothing if that has passed, and the longest time there is if it is longer.
func until(at, now int64) time.Duration {
	switch {
	case at <= now:
		return 0
	case now < 0 && at > math.MaxInt64+now:
		return math.MaxInt64
	}
	return time.Duration(at - now)
}
