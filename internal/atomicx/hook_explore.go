//go:build explore

package atomicx

import (
	"sync/atomic"
	"unsafe"
)

// Op says what a thread of a scenario does with a word, a mutex, a parker or a channel.
type Op uint8

// The operations that a Scheduler is told of.
const (
	OpLoad Op = iota
	OpStore
	OpStoreRelease
	OpAdd
	OpSwap
	OpCAS
	OpAnd
	OpOr
	OpLock
	OpTryLock
	OpUnlock
	OpPark
	OpUnpark
	OpRelax
	OpClose // closing a channel; the explorer's own
)

// Scheduler decides in which order the threads of a scenario run. Only package internal/explore implements it. Its
// methods are called by the goroutine that runs a thread of the scenario, and by no other.
type Scheduler interface {
	// Step comes before an operation. It returns when the thread may go on with it.
	Step(op Op, p unsafe.Pointer)
	// Done comes after an operation: a and b are its values for the trace, and wrote says that p was changed.
	Done(op Op, p unsafe.Pointer, a, b uint64, wrote bool)
	// Forward returns the value that the thread has stored to p with StoreRelease and that others do not see yet.
	Forward(p unsafe.Pointer) (v uint64, ok bool)
	// StoreRelease puts a store into the thread's store buffer.
	StoreRelease(p unsafe.Pointer, v uint64)
	// Plain comes before the access of plain memory.
	Plain(p unsafe.Pointer, write bool)
	// Park and Unpark are the two halves of a Parker that keeps its token in the channel.
	Park(token chan struct{}, done <-chan struct{}) bool
	Unpark(token chan struct{})
	// Relax is one turn of a loop that has found nothing to do.
	Relax()
	// Now is the virtual clock.
	Now() int64
}

// hook is the scenario that runs now, if any.
type hook struct {
	scheduler Scheduler
	driver    uintptr // the goroutine that runs Setup and Finally; immutable

	// thread is the goroutine that runs a thread of the scenario right now, or 0. It is stored by the driver at each
	// hand-over and loaded by every goroutine that touches a word, so that goroutines which are no part of the scenario
	// are left alone.
	thread atomic.Uintptr
}

// installed is stored by Install and loaded by every operation.
var installed atomic.Pointer[hook]

// Install makes s the scheduler of this process, or ends that when s is nil. The caller becomes the driver.
func Install(s Scheduler) {
	if s == nil {
		installed.Store(nil)
		return
	}
	installed.Store(&hook{scheduler: s, driver: Self()})
}

// Enter says which goroutine (a value of Self, or 0 for none) runs a thread of the scenario from now on.
func Enter(goroutine uintptr) { installed.Load().thread.Store(goroutine) }

// current returns the scheduler if the calling goroutine runs a thread of the scenario, and nil otherwise.
func current() Scheduler {
	h := installed.Load()
	if h == nil || h.thread.Load() != Self() {
		return nil
	}
	return h.scheduler
}

// step announces an operation. It returns nil if the calling goroutine is no thread of a scenario.
func step(op Op, p unsafe.Pointer) Scheduler {
	s := current()
	if s != nil {
		s.Step(op, p)
	}
	return s
}

// done tells of an operation that step has announced.
func done(s Scheduler, op Op, p unsafe.Pointer, a, b uint64, wrote bool) {
	if s != nil {
		s.Done(op, p, a, b, wrote)
	}
}
