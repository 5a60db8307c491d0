//go:build explore

package atomicx

import (
	"runtime"
	"sync"
	"time"
	"unsafe"
)

// Mutex is sync.Mutex, explored. The scheduler lets a thread lock it only while it is free, so that the real lock never
// waits.
type Mutex struct{ mu sync.Mutex }

// Lock locks m.
func (m *Mutex) Lock() {
	s := step(OpLock, unsafe.Pointer(m))
	m.mu.Lock()
	done(s, OpLock, unsafe.Pointer(m), 0, 0, true)
}

// TryLock locks m if it is free, and reports whether it did.
func (m *Mutex) TryLock() bool {
	s := step(OpTryLock, unsafe.Pointer(m))
	ok := m.mu.TryLock()
	done(s, OpTryLock, unsafe.Pointer(m), bit(ok), 0, ok)
	return ok
}

// Unlock unlocks m.
func (m *Mutex) Unlock() {
	s := step(OpUnlock, unsafe.Pointer(m))
	if s != nil && m.mu.TryLock() {
		panic("atomicx: unlock of an unlocked Mutex") // in place of the runtime's fatal error, which leaves no trace
	}
	done(s, OpUnlock, unsafe.Pointer(m), 0, 0, true)
	m.mu.Unlock()
}

// Cell is a plain value that several goroutines touch, never two at the same time: something else orders them, and the
// owner of the cell says what. In a scenario that claim is checked.
type Cell[T any] struct{ v T }

// Get returns the value.
func (c *Cell[T]) Get() T {
	Reads(unsafe.Pointer(c))
	return c.v
}

// Set replaces the value.
func (c *Cell[T]) Set(v T) {
	Writes(unsafe.Pointer(c))
	c.v = v
}

// Reads notes that the caller is about to read the plain memory that starts at p.
func Reads(p unsafe.Pointer) {
	if s := current(); s != nil {
		s.Plain(p, false)
	}
}

// Writes notes that the caller is about to write the plain memory that starts at p.
func Writes(p unsafe.Pointer) {
	if s := current(); s != nil {
		s.Plain(p, true)
	}
}

// Yield lets another goroutine run.
func Yield() {
	if s := current(); s != nil {
		s.Relax()
		return
	}
	runtime.Gosched()
}

// Relax passes the turn-th turn (from 0) of a loop that waits for another goroutine to finish something short. In a
// scenario the thread then waits until something that it has read since its last turn is changed by another.
func Relax(turn uint32) {
	if s := current(); s != nil {
		s.Relax()
		return
	}
	if turn < 4 {
		Pause(1 << turn)
		return
	}
	runtime.Gosched()
}

// Now returns the time. In a scenario it stands still unless a thread moves it on.
func (c *Clock) Now() int64 {
	if h := installed.Load(); h != nil {
		if self := Self(); self == h.thread.Load() || self == h.driver {
			return h.scheduler.Now()
		}
	}
	return c.wall + int64(time.Since(c.from))
}

// Parker puts one goroutine to sleep. It holds at most one token: Unpark leaves it, Park takes it. A token that is left
// before Park is called is not lost; Park then returns at once.
type Parker struct{ token chan struct{} }

// NewParker returns a Parker without a token.
func NewParker() Parker { return Parker{token: make(chan struct{}, 1)} }

// Park waits for the token, takes it and returns true; or returns false once done is closed. A nil done never ends the
// wait. If both hold, either may win.
func (p *Parker) Park(done <-chan struct{}) bool {
	if s := current(); s != nil {
		return s.Park(p.token, done)
	}
	if done == nil {
		<-p.token
		return true
	}
	select {
	case <-p.token:
		return true
	case <-done:
		return false
	}
}

// Unpark leaves the token. It never waits. Any goroutine may call it.
func (p *Parker) Unpark() {
	if s := current(); s != nil {
		s.Unpark(p.token)
		return
	}
	select {
	case p.token <- struct{}{}:
	default:
	}
}
