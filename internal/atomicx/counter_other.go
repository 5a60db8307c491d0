//go:build !amd64

package atomicx

// counter would read a counter of the processor's; nothing uses it here.
func counter() uint64 { return 0 }
