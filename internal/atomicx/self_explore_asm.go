//go:build explore && (amd64 || 386 || arm64)

package atomicx

// Self returns a number that no other live goroutine has: the address of the runtime's g.
func Self() uintptr
