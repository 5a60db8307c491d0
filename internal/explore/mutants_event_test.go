//go:build explore

package explore_test

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

func at[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

// miniEvent is atomicx.Event in small. fault names what is wrong with it, or with how it is used; "" is nothing.
type miniEvent struct {
	fault string

	waiting atomicx.Uint32
	mu      atomicx.Mutex
	round   atomicx.Cell[int]
	list    atomicx.Cell[[]*miniWaiter]
}

type miniWaiter struct {
	parker atomicx.Parker
	round  atomicx.Cell[int]
	woken  int
}

func newMiniWaiter() *miniWaiter { return &miniWaiter{parker: atomicx.NewParker()} }

func (e *miniEvent) lock() {
	if e.fault != "no mutex" {
		e.mu.Lock()
	}
}

func (e *miniEvent) unlock() {
	if e.fault != "no mutex" {
		e.mu.Unlock()
	}
}

func (e *miniEvent) prepare(w *miniWaiter) {
	e.lock()
	w.round.Set(e.round.Get())
	e.list.Set(append(slices.Clone(e.list.Get()), w))
	if e.fault != "registers after the second look" {
		e.waiting.Add(1)
	}
	e.unlock()
}

// remove takes w off the list and reports whether it was on it. The caller holds mu.
func (e *miniEvent) remove(w *miniWaiter) bool {
	list := e.list.Get()
	i := slices.Index(list, w)
	if i < 0 {
		return false
	}
	e.list.Set(slices.Delete(slices.Clone(list), i, i+1))
	e.waiting.Add(^uint32(0))
	return true
}

func (e *miniEvent) cancel(w *miniWaiter) {
	if e.fault == "registers after the second look" {
		e.waiting.Add(1)
	}
	e.lock()
	was := e.remove(w)
	e.unlock()
	if !was && e.fault != "leaves a token behind" {
		w.parker.Park(nil)
	}
}

func (e *miniEvent) wait(w *miniWaiter, done <-chan struct{}) bool {
	if e.fault == "registers after the second look" {
		e.waiting.Add(1)
	}
	if w.parker.Park(done) {
		w.woken++
		return true
	}
	e.cancel(w)
	return false
}

func (e *miniEvent) broadcast() {
	if e.waiting.Load() == 0 {
		return
	}
	e.lock()
	round := e.round.Get() + 1
	e.round.Set(round)
	for {
		list := e.list.Get()
		if len(list) == 0 || list[0].round.Get() >= round && e.fault != "wakes those who come while it runs" {
			break
		}
		e.remove(list[0])
		e.unlock()
		list[0].parker.Unpark()
		if e.fault == "wakes one" {
			return
		}
		e.lock()
	}
	e.unlock()
}

// await waits until ready holds or done is closed.
func (e *miniEvent) await(w *miniWaiter, ready func() bool, done <-chan struct{}) {
	for !ready() {
		e.prepare(w)
		if e.fault != "no second look" && ready() {
			e.cancel(w)
			return
		}
		if !e.wait(w, done) {
			return
		}
	}
}

// makeTrue stores 1 to ready and broadcasts.
func (e *miniEvent) makeTrue(ready *atomicx.Uint64) {
	switch e.fault {
	case "broadcast before the store":
		e.broadcast()
		ready.Store(1)
		return
	case "release store before the broadcast":
		atomicx.StoreRelease(ready, 1)
	default:
		ready.Store(1)
	}
	e.broadcast()
}

// miniPark is one who makes a condition true and two who wait for it.
func miniPark(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		e := &miniEvent{fault: fault}
		var ready atomicx.Uint64
		s.Go("waker", func() { e.makeTrue(&ready) })
		for i := range 2 {
			s.Go(fmt.Sprint("waiter", i), func() {
				e.await(newMiniWaiter(), func() bool { return ready.Load() == 1 }, nil)
			})
		}
	}
}

// miniCancel is one who gives up, and must have no token left for its next wait.
func miniCancel(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		e := &miniEvent{fault: fault}
		var ready, over atomicx.Uint64
		s.Go("waker", func() { e.makeTrue(&ready); over.Store(1) })
		s.Go("waiter", func() {
			w := newMiniWaiter()
			e.await(w, func() bool { return ready.Load() == 1 }, nil)
			for over.Load() == 0 {
				atomicx.Relax(0)
			}
			explore.Assert(!w.parker.Park(closedChannel()), "a token is left")
		})
	}
}

// miniAgain is one whose condition stays false for a while and who registers again at once.
func miniAgain(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		e := &miniEvent{fault: fault}
		var ready atomicx.Uint64
		s.Go("waiter", func() {
			w := newMiniWaiter()
			e.await(w, func() bool { return ready.Load() == 1 }, nil)
			explore.Assert(w.woken <= 2, "woken %d times by two broadcasts", w.woken)
		})
		s.Go("waker", func() { e.broadcast(); e.makeTrue(&ready) })
	}
}

var eventMutants = []mutant{
	{"no second look", explore.Deadlock, 2, miniPark, ""},
	{"registers after the second look", explore.Deadlock, 3, miniPark, ""},
	{"broadcast before the store", explore.Deadlock, 1, miniPark, ""},
	{"release store before the broadcast", explore.Deadlock, 0, miniPark, ""},
	{"wakes one", explore.Deadlock, 1, miniPark, ""},
	{"no mutex", explore.Race, 1, miniPark, ""},
	{"leaves a token behind", explore.Panic, 2, miniCancel, ""},
	{"wakes those who come while it runs", explore.Panic, 2, miniAgain, ""},
}

func TestMutants_Event(t *testing.T) { kill(t, eventMutants) }

// TestMutants_RealEvent uses the real Event wrongly: a release store is no full barrier before Broadcast.
func TestMutants_RealEvent(t *testing.T) {
	use := func(fault string) func(s *explore.S) {
		return func(s *explore.S) {
			var e atomicx.Event
			var ready atomicx.Uint64
			s.Go("waker", func() {
				if fault == "" {
					ready.Store(1)
				} else {
					atomicx.StoreRelease(&ready, 1)
				}
				e.Broadcast()
			})
			s.Go("waiter", func() { await(&e, atomicx.NewWaiter(), func() bool { return ready.Load() == 1 }, nil) })
		}
	}
	kill(t, []mutant{{"a release store before Broadcast", explore.Deadlock, 0, use, ""}})
}
