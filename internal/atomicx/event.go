package atomicx

// Event is an eventcount: goroutines that have found a condition false wait on it for somebody to make the condition true.
// The condition itself lives elsewhere, in atomic words.
//
// To wait:
//
//	e.Prepare(w)          // from here on a Broadcast reaches w
//	if condition() {      // look once more
//		e.Cancel(w)
//		return
//	}
//	if !e.Wait(w, done) { // parked until a Broadcast, or until done is closed
//		...               // w is deregistered again
//	}
//
// To wake: make the condition true by an atomic operation that is a full barrier (any of sync/atomic; not StoreRelease, unless
// a read-modify-write comes behind it, of whatever word), then call Broadcast. When nobody waits, Broadcast is one atomic load.
//
// # Roles
//
//   - waiter: any goroutine, each with a Waiter of its own. One Waiter is on at most one Event at a time.
//   - waker: any goroutine that makes the condition true.
//
// # Shared state
//
//	waiting   written under mu by waiters and wakers, read without it by wakers: how many waiters are registered
//	the list  under mu: registered waiters, oldest first, each with the round it registered in
//	round     under mu: raised by each Broadcast
//
// # Proof
//
// No lost wake-up. The waker makes the condition true and then loads waiting. The waiter raises waiting and then loads the
// condition. All four are sync/atomic operations, and so happen in one total order: either the waiter's look comes after
// the waker's store and it does not park, or the waker's load comes after the waiter's registration and it goes on to the
// list, where the waiter is, since it registers before it raises waiting and both are done under mu. If the waker's store is
// a StoreRelease, the read-modify-write behind it takes its place: when that has happened the store is visible, so a look
// that comes after it finds the condition true.
//
// One token each. A waiter leaves the list in one of two ways, both under mu: Broadcast takes it off and then leaves exactly
// one token (or calls the wake function once), or Cancel takes it off and there is no token. Wait consumes the token when it
// returns true; Cancel that finds the waiter already taken off consumes the token it then knows to be coming. A waiter
// registers only if it has done one of these since it last did (prepared). So no token is ever left behind to wake a later
// wait for nothing, and none is lost.
//
// A Broadcast ends. It takes off only waiters that registered in an earlier round, one at a time; waiters that come while
// it runs carry its own round.
//
// Progress. A waker that finds waiting at zero does one load. Otherwise wakers and waiters hold mu for a few instructions;
// nothing is called and nobody parks under it.
//
// Not promised. Order of running between those that were woken. That a woken waiter finds its condition true: another may
// have used it up; it must look again in a loop.
type Event struct {
	_ Pad
	// waiting is written under mu by whoever registers or takes off a waiter, and read by wakers without mu. It
	// publishes no memory.
	waiting Uint32
	_       Pad

	mu    Mutex
	round uint64
	first *Waiter
	last  *Waiter
}

// Waiter is one goroutine's place on an Event, to be reused for its later waits. It must not be copied after first use.
type Waiter struct {
	parker Parker
	wake   func() // called instead of the token, if not nil; immutable

	// prepared is the waiting goroutine's own: the event that it has called Prepare on, and neither Wait nor Cancel since.
	// It is nil in a call waiter.
	prepared *Event

	// Under the mu of the event that it is on.
	on         *Event
	round      uint64
	prev, next *Waiter
}

// NewWaiter returns a Waiter that parks its goroutine in Wait.
func NewWaiter() *Waiter { return &Waiter{parker: NewParker()} }

// NewCallWaiter returns a Waiter that does not park: the Broadcast that reaches it takes it off the event and calls wake,
// on the waker's goroutine and under no lock. It is for state machines that run on a pool. Wait must not be called on it.
func NewCallWaiter(wake func()) *Waiter { return &Waiter{wake: wake} }

// Prepare registers w. After it the caller must look at its condition once more, and then call Wait or Cancel.
// Preparing again before that changes nothing. It panics if w is prepared on another event.
func (e *Event) Prepare(w *Waiter) {
	if w.wake == nil {
		switch w.prepared {
		case nil:
			w.prepared = e
		case e:
			return // w is still registered, or its token is there
		default:
			panic("atomicx: the waiter is prepared on another event")
		}
	}
	e.mu.Lock()
	if w.on == nil {
		w.on, w.round = e, e.round
		w.prev, w.next = e.last, nil
		if e.last != nil {
			e.last.next = w
		} else {
			e.first = w
		}
		e.last = w
		e.waiting.Add(1) // the barrier before the caller's second look; pairs with the load in Broadcast
	}
	e.mu.Unlock()
}

// Wait parks until a Broadcast reaches w and returns true, or returns false once done is closed; a nil done never ends the
// wait. Either way w is registered no longer.
func (e *Event) Wait(w *Waiter, done <-chan struct{}) bool {
	if w.parker.Park(done) {
		w.prepared = nil
		return true
	}
	// A Broadcast may have come just before done: then its wake-up is used up here, and the caller, who looks at its
	// condition once more before it gives up, misses nothing.
	e.Cancel(w)
	return false
}

// Cancel takes w off the event and reports whether it still was on it; if not, a Broadcast had reached it, and that wake-up
// is used up. (For a waiter made by NewCallWaiter: then its function has been or is about to be called.) Cancelling a waiter
// that is not prepared changes nothing.
func (e *Event) Cancel(w *Waiter) bool {
	if w.wake == nil {
		if w.prepared != e {
			return false
		}
		w.prepared = nil
	}
	e.mu.Lock()
	was := w.on == e
	if was {
		e.unlink(w)
	}
	e.mu.Unlock()
	if !was && w.wake == nil {
		w.parker.Park(nil) // the Broadcast that took w off is about to leave the token, or has
	}
	return was
}

// Broadcast wakes all who were registered when it was called. It never waits for them.
func (e *Event) Broadcast() {
	if e.waiting.Load() != 0 { // pairs with the Add in Prepare
		e.broadcast()
	}
}

func (e *Event) broadcast() {
	e.mu.Lock()
	e.round++
	round := e.round
	for {
		w := e.first
		if w == nil || w.round >= round {
			break
		}
		e.unlink(w)
		e.mu.Unlock()
		if w.wake != nil {
			w.wake()
		} else {
			w.parker.Unpark()
		}
		e.mu.Lock()
	}
	e.mu.Unlock()
}

// Waiting returns how many waiters are registered, for statistics.
func (e *Event) Waiting() int { return int(e.waiting.Load()) }

// unlink takes w off the list. The caller holds mu.
func (e *Event) unlink(w *Waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		e.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		e.last = w.prev
	}
	w.on, w.prev, w.next = nil, nil, nil
	e.waiting.Add(^uint32(0))
}
