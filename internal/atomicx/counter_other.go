//go:build !amd64

package atomicx

// counter would read a counter of the processor's; nothing uses it here.
func counter() uint64 { return 0 }

// counterSteady reports whether there is one that always has the same speed.
func counterSteady() bool { return false }
