//go:build (!(amd64 || arm64) || race) && !explore

package atomicx

import "unsafe"

// StoreRelease stores v into x: whoever loads v sees everything that the caller wrote before. On this platform, or under
// the race detector, it is an ordinary atomic store.
func StoreRelease(x *Uint64, v uint64) { x.Store(v) }

// Pause passes a little time in a spin loop: about n times the work of one atomic load.
func Pause(n uint32) {
	var x Uint32
	for range n {
		x.Load()
	}
}

// Prefetch would tell the processor that the memory at p will be read soon; on this platform, or under the race detector, it
// does nothing.
func Prefetch(p unsafe.Pointer) {}

// PrefetchWrite is Prefetch for n bytes that will be written.
func PrefetchWrite(p unsafe.Pointer, n int) {}
