//go:build (amd64 || arm64) && !race && !explore

package atomicx

import "unsafe"

// StoreRelease stores v into x: whoever loads v sees everything that the caller wrote before. Unlike x.Store it is no full
// barrier: a load that the caller makes next may be answered before others see the store (see the package comment). It is
// for a word with a single writer at a time, where the barrier of x.Store would cost 14 ns for each record while another
// core polls the word (0.5 ns without it).
func StoreRelease(x *Uint64, v uint64) { storeRelease64((*uint64)(unsafe.Pointer(x)), v) }

//go:noescape
func storeRelease64(p *uint64, v uint64)

// Pause tells the processor n times that this is a spin loop: PAUSE on amd64 (about 25 ns each on AMD EPYC), YIELD on
// arm64.
func Pause(n uint32) {
	if n != 0 {
		pause(n)
	}
}

//go:noescape
func pause(n uint32)

// Prefetch tells the processor that the memory at p will be read soon. It reads nothing as far as anybody can tell, so p need
// not be ordered with whoever writes there.
func Prefetch(p unsafe.Pointer) { prefetch(p) }

//go:noescape
func prefetch(p unsafe.Pointer)

// PrefetchWrite is Prefetch for n bytes that the caller will write soon: their lines are taken away from other processors. A processor
// that does not know how does nothing.
func PrefetchWrite(p unsafe.Pointer, n int) {
	if fetchesForWrite {
		prefetchWrite(p, n)
	}
}

//go:noescape
func prefetchWrite(p unsafe.Pointer, n int)
