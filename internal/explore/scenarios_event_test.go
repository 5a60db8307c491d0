//go:build explore

package explore_test

import (
	"fmt"
	"testing"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// await waits on e until ready holds or done is closed, as every user of an Event does, and reports which.
func await(e *atomicx.Event, w *atomicx.Waiter, ready func() bool, done <-chan struct{}) bool {
	for !ready() {
		e.Prepare(w)
		if ready() {
			e.Cancel(w)
			return true
		}
		if !e.Wait(w, done) {
			return ready()
		}
	}
	return true
}

// idle returns a check that nobody is left on e.
func idle(e *atomicx.Event) func() error {
	return func() error {
		if n := e.Waiting(); n != 0 {
			return fmt.Errorf("%d waiters are left", n)
		}
		return nil
	}
}

// noToken makes sure, in a thread, that w is on no event and that no token was left behind in it. It needs that nobody
// broadcasts on e any more.
func noToken(e *atomicx.Event, w *atomicx.Waiter) {
	e.Prepare(w)
	explore.Assert(!e.Wait(w, closedChannel()), "a token is left")
}

// publishAgainstPark is one thread that makes a condition true and others that wait for it.
func publishAgainstPark(waiters, rounds int) func(s *explore.S) {
	return func(s *explore.S) {
		var e atomicx.Event
		var committed atomicx.Uint64
		var record [3]atomicx.Cell[int]
		s.Go("publisher", func() {
			for i := range rounds {
				record[i].Set(i + 1)
				committed.Store(uint64(i + 1))
				e.Broadcast()
			}
		})
		for i := range waiters {
			s.Go(fmt.Sprint("reader", i), func() {
				w := atomicx.NewWaiter()
				for i := range rounds {
					await(&e, w, func() bool { return committed.Load() > uint64(i) }, nil)
					explore.Assert(record[i].Get() == i+1, "no record")
				}
			})
		}
		s.Finally(idle(&e))
	}
}

var eventScenarios = []scenario{
	{"event: publish against park", explore.Exhaustive, publishAgainstPark(1, 1)},
	{"event: publish against park, two readers", 8, publishAgainstPark(2, 1)},
	{"event: publish against park again", 8, publishAgainstPark(1, 3)},
	{"event: publish against park again, two readers", 6, publishAgainstPark(2, 2)},
	{"event: cancel against wake", 8, func(s *explore.S) {
		// Whoever wins, the waiter ends, knows whether the condition holds, and has no token left.
		var e atomicx.Event
		var ready, over atomicx.Bool
		done := make(chan struct{})
		s.Go("waiter", func() {
			w := atomicx.NewWaiter()
			await(&e, w, ready.Load, done)
			for !over.Load() {
				atomicx.Relax(0)
			}
			noToken(&e, w)
		})
		s.Go("waker", func() { ready.Store(true); e.Broadcast(); over.Store(true) })
		s.Go("canceller", func() { s.Close(done) })
		s.Finally(idle(&e))
	}},
	{"event: one is cancelled, the other must be woken", 6, func(s *explore.S) {
		var e atomicx.Event
		var ready atomicx.Bool
		done := make(chan struct{})
		s.Go("patient", func() { await(&e, atomicx.NewWaiter(), ready.Load, nil) })
		s.Go("impatient", func() { await(&e, atomicx.NewWaiter(), ready.Load, done) })
		s.Go("waker", func() { ready.Store(true); e.Broadcast() })
		s.Go("canceller", func() { s.Close(done) })
		s.Finally(idle(&e))
	}},
	{"event: two broadcasts at once", 8, func(s *explore.S) {
		// Two make a condition true, each its own half; a waiter needs both, and registers again in between.
		var e atomicx.Event
		var sum, over atomicx.Uint64
		for _, name := range []string{"waker1", "waker2"} {
			s.Go(name, func() { sum.Add(1); e.Broadcast(); over.Add(1) })
		}
		s.Go("waiter", func() {
			w := atomicx.NewWaiter()
			await(&e, w, func() bool { return sum.Load() == 2 }, nil)
			for over.Load() != 2 {
				atomicx.Relax(0)
			}
			noToken(&e, w)
		})
		s.Finally(idle(&e))
	}},
	{"event: broadcast against registering again", 6, func(s *explore.S) {
		// A waiter whose condition stays false registers again at once; the broadcast must end all the same.
		var e atomicx.Event
		var ready atomicx.Uint64
		for i := range 2 {
			s.Go(fmt.Sprint("waiter", i), func() {
				await(&e, atomicx.NewWaiter(), func() bool { return ready.Load() > uint64(i) }, nil)
			})
		}
		s.Go("waker", func() { ready.Add(1); e.Broadcast(); ready.Add(1); e.Broadcast() })
		s.Finally(idle(&e))
	}},
	{"event: a broadcast wakes each once", 8, func(s *explore.S) {
		// One whose condition is false registers again while the broadcast that has woken it still runs.
		var e atomicx.Event
		var ready atomicx.Bool
		s.Go("waiter", func() {
			w, woken := atomicx.NewWaiter(), 0
			for {
				e.Prepare(w)
				if ready.Load() {
					e.Cancel(w)
					break
				}
				e.Wait(w, nil)
				woken++
			}
			explore.Assert(woken <= 2, "woken %d times by two broadcasts", woken)
		})
		s.Go("waker", func() { e.Broadcast(); ready.Store(true); e.Broadcast() })
		s.Finally(idle(&e))
	}},
	{"event: call waiter", explore.Exhaustive, func(s *explore.S) {
		// A call waiter that is prepared once is either cancelled or called, once.
		var e atomicx.Event
		var ready atomicx.Bool
		var calls atomicx.Uint32
		var cancelled, missed bool
		w := atomicx.NewCallWaiter(func() { calls.Add(1) })
		s.Go("waiter", func() {
			e.Prepare(w)
			if ready.Load() {
				cancelled = e.Cancel(w)
				missed = !cancelled
			}
		})
		s.Go("waker", func() { ready.Store(true); e.Broadcast() })
		s.Finally(func() error {
			if n := calls.Load(); n == 1 == cancelled || n > 1 || missed && n != 1 {
				return fmt.Errorf("called %d times, cancelled %v", n, cancelled)
			}
			return idle(&e)()
		})
	}},
	{"event: call waiter of a task that goes on", 7, func(s *explore.S) {
		// What a task on a pool does: it drains, registers, looks, and ends its run; being called queues it again, and being
		// called during a run has it run once more.
		var e atomicx.Event
		var committed, state atomicx.Uint64 // state: how many runs were asked for
		worker := atomicx.NewParker()
		w := atomicx.NewCallWaiter(func() { state.Add(1); worker.Unpark() })
		s.Go("task", func() {
			var seen, position uint64
			for position < 2 {
				for seen == state.Load() {
					if seen == 0 {
						break // the first run needs nobody to ask for it
					}
					worker.Park(nil)
				}
				seen = max(1, state.Load())
				if seen == 1 {
					state.CompareAndSwap(0, 1)
				}
				for {
					position = committed.Load()
					e.Prepare(w)
					if committed.Load() == position || !e.Cancel(w) {
						break
					}
				}
			}
			e.Cancel(w)
		})
		s.Go("publisher", func() {
			for range 2 {
				committed.Add(1)
				e.Broadcast()
			}
		})
		s.Finally(idle(&e))
	}},
	{"event: parked and called", 7, func(s *explore.S) {
		var e atomicx.Event
		var ready atomicx.Bool
		var called atomicx.Uint32
		w := atomicx.NewCallWaiter(func() { called.Add(1) })
		e.Prepare(w)
		done := make(chan struct{})
		s.Go("waiter", func() { await(&e, atomicx.NewWaiter(), ready.Load, done) })
		s.Go("waker1", func() { ready.Store(true); e.Broadcast() })
		s.Go("waker2", func() { e.Broadcast(); s.Close(done) })
		s.Finally(func() error {
			if called.Load() != 1 {
				return fmt.Errorf("called %d times", called.Load())
			}
			return idle(&e)()
		})
	}},
	{"parker: two wake one", explore.Exhaustive, func(s *explore.S) {
		p := atomicx.NewParker()
		var ready atomicx.Uint64
		s.Go("sleeper", func() {
			for ready.Load() != 2 {
				p.Park(nil)
			}
		})
		for _, name := range []string{"waker1", "waker2"} {
			s.Go(name, func() { ready.Add(1); p.Unpark() })
		}
	}},
	{"parker: token against done", explore.Exhaustive, func(s *explore.S) {
		// If done won, the token is still there for the next Park.
		p := atomicx.NewParker()
		done := make(chan struct{})
		s.Go("sleeper", func() {
			if !p.Park(done) {
				p.Park(nil)
			}
			explore.Assert(!p.Park(closedChannel()), "two tokens")
		})
		s.Go("waker", func() { p.Unpark() })
		s.Go("canceller", func() { s.Close(done) })
	}},
}

func TestEvent(t *testing.T) { run(t, eventScenarios) }
