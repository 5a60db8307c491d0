//go:build explore

package atomicx

import "unsafe"

// StoreRelease stores v into x. In a scenario the store waits in the thread's store buffer: the thread sees it at once,
// the others when the scheduler lets it out, which the thread's next store, read-modify-write, mutex or parker operation
// forces.
func StoreRelease(x *Uint64, v uint64) {
	if s := current(); s != nil {
		s.StoreRelease(unsafe.Pointer(x), v)
		return
	}
	x.v.Store(v)
}

// Pause passes a little time in a spin loop. In a scenario it is nothing.
func Pause(n uint32) {
	if current() != nil {
		return
	}
	var x Uint32
	for range n {
		x.v.Load()
	}
}

// Prefetch does nothing.
func Prefetch(unsafe.Pointer) {}

// PrefetchWrite does nothing.
func PrefetchWrite(unsafe.Pointer, int) {}
