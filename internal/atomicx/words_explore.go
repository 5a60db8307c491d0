//go:build explore

package atomicx

import (
	"sync/atomic"
	"unsafe"
)

// Exploring reports whether this is an explore build.
const Exploring = true

// The shims below have the size and the methods of the types of sync/atomic that they stand for. Each method tells the
// scheduler, does the real operation, and tells the scheduler what came of it. Outside a scenario only the real operation
// is left.

// Uint64 is atomic.Uint64, explored.
type Uint64 struct{ v atomic.Uint64 }

// Load returns the value.
func (x *Uint64) Load() uint64 {
	s := step(OpLoad, unsafe.Pointer(x))
	if s != nil {
		if v, ok := s.Forward(unsafe.Pointer(x)); ok {
			return v
		}
	}
	v := x.v.Load()
	done(s, OpLoad, unsafe.Pointer(x), v, 0, false)
	return v
}

// Store stores val.
func (x *Uint64) Store(val uint64) {
	s := step(OpStore, unsafe.Pointer(x))
	x.v.Store(val)
	done(s, OpStore, unsafe.Pointer(x), val, 0, true)
}

// Swap stores new and returns the value before.
func (x *Uint64) Swap(new uint64) (old uint64) {
	s := step(OpSwap, unsafe.Pointer(x))
	old = x.v.Swap(new)
	done(s, OpSwap, unsafe.Pointer(x), new, old, true)
	return old
}

// CompareAndSwap stores new if the value is old.
func (x *Uint64) CompareAndSwap(old, new uint64) (swapped bool) {
	s := step(OpCAS, unsafe.Pointer(x))
	swapped = x.v.CompareAndSwap(old, new)
	done(s, OpCAS, unsafe.Pointer(x), old, new, swapped)
	return swapped
}

// Add adds delta and returns the new value.
func (x *Uint64) Add(delta uint64) (new uint64) {
	s := step(OpAdd, unsafe.Pointer(x))
	new = x.v.Add(delta)
	done(s, OpAdd, unsafe.Pointer(x), delta, new, true)
	return new
}

// And clears the bits that are not in mask and returns the value before.
func (x *Uint64) And(mask uint64) (old uint64) {
	s := step(OpAnd, unsafe.Pointer(x))
	old = x.v.And(mask)
	done(s, OpAnd, unsafe.Pointer(x), mask, old, true)
	return old
}

// Or sets the bits of mask and returns the value before.
func (x *Uint64) Or(mask uint64) (old uint64) {
	s := step(OpOr, unsafe.Pointer(x))
	old = x.v.Or(mask)
	done(s, OpOr, unsafe.Pointer(x), mask, old, true)
	return old
}

// Int64 is atomic.Int64, explored.
type Int64 struct{ v atomic.Int64 }

// Load returns the value.
func (x *Int64) Load() int64 {
	s := step(OpLoad, unsafe.Pointer(x))
	v := x.v.Load()
	done(s, OpLoad, unsafe.Pointer(x), uint64(v), 0, false)
	return v
}

// Store stores val.
func (x *Int64) Store(val int64) {
	s := step(OpStore, unsafe.Pointer(x))
	x.v.Store(val)
	done(s, OpStore, unsafe.Pointer(x), uint64(val), 0, true)
}

// Swap stores new and returns the value before.
func (x *Int64) Swap(new int64) (old int64) {
	s := step(OpSwap, unsafe.Pointer(x))
	old = x.v.Swap(new)
	done(s, OpSwap, unsafe.Pointer(x), uint64(new), uint64(old), true)
	return old
}

// CompareAndSwap stores new if the value is old.
func (x *Int64) CompareAndSwap(old, new int64) (swapped bool) {
	s := step(OpCAS, unsafe.Pointer(x))
	swapped = x.v.CompareAndSwap(old, new)
	done(s, OpCAS, unsafe.Pointer(x), uint64(old), uint64(new), swapped)
	return swapped
}

// Add adds delta and returns the new value.
func (x *Int64) Add(delta int64) (new int64) {
	s := step(OpAdd, unsafe.Pointer(x))
	new = x.v.Add(delta)
	done(s, OpAdd, unsafe.Pointer(x), uint64(delta), uint64(new), true)
	return new
}

// And clears the bits that are not in mask and returns the value before.
func (x *Int64) And(mask int64) (old int64) {
	s := step(OpAnd, unsafe.Pointer(x))
	old = x.v.And(mask)
	done(s, OpAnd, unsafe.Pointer(x), uint64(mask), uint64(old), true)
	return old
}

// Or sets the bits of mask and returns the value before.
func (x *Int64) Or(mask int64) (old int64) {
	s := step(OpOr, unsafe.Pointer(x))
	old = x.v.Or(mask)
	done(s, OpOr, unsafe.Pointer(x), uint64(mask), uint64(old), true)
	return old
}

// Uint32 is atomic.Uint32, explored.
type Uint32 struct{ v atomic.Uint32 }

// Load returns the value.
func (x *Uint32) Load() uint32 {
	s := step(OpLoad, unsafe.Pointer(x))
	v := x.v.Load()
	done(s, OpLoad, unsafe.Pointer(x), uint64(v), 0, false)
	return v
}

// Store stores val.
func (x *Uint32) Store(val uint32) {
	s := step(OpStore, unsafe.Pointer(x))
	x.v.Store(val)
	done(s, OpStore, unsafe.Pointer(x), uint64(val), 0, true)
}

// Swap stores new and returns the value before.
func (x *Uint32) Swap(new uint32) (old uint32) {
	s := step(OpSwap, unsafe.Pointer(x))
	old = x.v.Swap(new)
	done(s, OpSwap, unsafe.Pointer(x), uint64(new), uint64(old), true)
	return old
}

// CompareAndSwap stores new if the value is old.
func (x *Uint32) CompareAndSwap(old, new uint32) (swapped bool) {
	s := step(OpCAS, unsafe.Pointer(x))
	swapped = x.v.CompareAndSwap(old, new)
	done(s, OpCAS, unsafe.Pointer(x), uint64(old), uint64(new), swapped)
	return swapped
}

// Add adds delta and returns the new value.
func (x *Uint32) Add(delta uint32) (new uint32) {
	s := step(OpAdd, unsafe.Pointer(x))
	new = x.v.Add(delta)
	done(s, OpAdd, unsafe.Pointer(x), uint64(int32(delta)), uint64(new), true)
	return new
}

// And clears the bits that are not in mask and returns the value before.
func (x *Uint32) And(mask uint32) (old uint32) {
	s := step(OpAnd, unsafe.Pointer(x))
	old = x.v.And(mask)
	done(s, OpAnd, unsafe.Pointer(x), uint64(mask), uint64(old), true)
	return old
}

// Or sets the bits of mask and returns the value before.
func (x *Uint32) Or(mask uint32) (old uint32) {
	s := step(OpOr, unsafe.Pointer(x))
	old = x.v.Or(mask)
	done(s, OpOr, unsafe.Pointer(x), uint64(mask), uint64(old), true)
	return old
}

// Bool is atomic.Bool, explored.
type Bool struct{ v atomic.Bool }

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// Load returns the value.
func (x *Bool) Load() bool {
	s := step(OpLoad, unsafe.Pointer(x))
	v := x.v.Load()
	done(s, OpLoad, unsafe.Pointer(x), bit(v), 0, false)
	return v
}

// Store stores val.
func (x *Bool) Store(val bool) {
	s := step(OpStore, unsafe.Pointer(x))
	x.v.Store(val)
	done(s, OpStore, unsafe.Pointer(x), bit(val), 0, true)
}

// Swap stores new and returns the value before.
func (x *Bool) Swap(new bool) (old bool) {
	s := step(OpSwap, unsafe.Pointer(x))
	old = x.v.Swap(new)
	done(s, OpSwap, unsafe.Pointer(x), bit(new), bit(old), true)
	return old
}

// CompareAndSwap stores new if the value is old.
func (x *Bool) CompareAndSwap(old, new bool) (swapped bool) {
	s := step(OpCAS, unsafe.Pointer(x))
	swapped = x.v.CompareAndSwap(old, new)
	done(s, OpCAS, unsafe.Pointer(x), bit(old), bit(new), swapped)
	return swapped
}

// Pointer is atomic.Pointer, explored.
type Pointer[T any] struct{ v atomic.Pointer[T] }

// AddressMark is the top byte of an address among the values that a Scheduler is told of.
const AddressMark = 0xA5

func address[T any](p *T) uint64 {
	if p == nil {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(p))) | AddressMark<<56
}

// Load returns the value.
func (x *Pointer[T]) Load() *T {
	s := step(OpLoad, unsafe.Pointer(x))
	v := x.v.Load()
	done(s, OpLoad, unsafe.Pointer(x), address(v), 0, false)
	return v
}

// Store stores val.
func (x *Pointer[T]) Store(val *T) {
	s := step(OpStore, unsafe.Pointer(x))
	x.v.Store(val)
	done(s, OpStore, unsafe.Pointer(x), address(val), 0, true)
}

// Swap stores new and returns the value before.
func (x *Pointer[T]) Swap(new *T) (old *T) {
	s := step(OpSwap, unsafe.Pointer(x))
	old = x.v.Swap(new)
	done(s, OpSwap, unsafe.Pointer(x), address(new), address(old), true)
	return old
}

// CompareAndSwap stores new if the value is old.
func (x *Pointer[T]) CompareAndSwap(old, new *T) (swapped bool) {
	s := step(OpCAS, unsafe.Pointer(x))
	swapped = x.v.CompareAndSwap(old, new)
	done(s, OpCAS, unsafe.Pointer(x), address(old), address(new), swapped)
	return swapped
}
