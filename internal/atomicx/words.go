//go:build !explore

package atomicx

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// The atomic words. Aliases: a method call on one is the compiler's own intrinsic.
type (
	Uint64         = atomic.Uint64
	Int64          = atomic.Int64
	Uint32         = atomic.Uint32
	Bool           = atomic.Bool
	Pointer[T any] = atomic.Pointer[T]
	Mutex          = sync.Mutex
)

// Exploring reports whether this is an explore build.
const Exploring = false

// Cell is a plain value that several goroutines touch, never two at the same time: something else orders them, and the
// owner of the cell says what. The explorer checks that claim; so does the race detector.
type Cell[T any] struct{ v T }

// Get returns the value.
func (c *Cell[T]) Get() T { return c.v }

// Set replaces the value.
func (c *Cell[T]) Set(v T) { c.v = v }

// Reads notes that the caller is about to read the plain memory that starts at p. It is empty outside an explore build.
func Reads(p unsafe.Pointer) {}

// Writes notes that the caller is about to write the plain memory that starts at p. It is empty outside an explore build.
func Writes(p unsafe.Pointer) {}

// Yield lets another goroutine run.
func Yield() { runtime.Gosched() }

// Relax passes the turn-th turn (from 0) of a loop that waits for another goroutine to finish something short: a few pauses
// of growing length, and then it lets others run. Loops that spin longer before they give way lose 100x when more
// goroutines want to run than there are processors (engine/DESIGN.md, "Waiting").
func Relax(turn uint32) {
	if turn < 4 {
		Pause(1 << turn)
		return
	}
	runtime.Gosched()
}

// Now returns the time.
func (c *Clock) Now() int64 { return c.wall + int64(time.Since(c.from)) }

// Parker puts one goroutine to sleep. It holds at most one token: Unpark leaves it, Park takes it. A token that is left
// before Park is called is not lost; Park then returns at once.
type Parker struct{ token chan struct{} }

// NewParker returns a Parker without a token.
func NewParker() Parker { return Parker{token: make(chan struct{}, 1)} }

// Park waits for the token, takes it and returns true; or returns false once done is closed. A nil done never ends the
// wait. If both hold, either may win.
func (p *Parker) Park(done <-chan struct{}) bool {
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
	select {
	case p.token <- struct{}{}:
	default:
	}
}
