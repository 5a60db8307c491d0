package atomicx

// What the processor can do is asked once: a virtual machine traps CPUID, which takes microseconds.
var (
	// constantSpeed reports whether the time stamp counter always has the same speed (Intel SDM vol. 3, 19.17.1; AMD APM vol. 3,
	// E.4.7: leaf 0x80000007, bit 8 of DX).
	constantSpeed = can(0x80000007, dx, 8)

	// fetchesForWrite reports whether there is PREFETCHW (AMD APM vol. 3, E.4.2; Intel SDM vol. 2A, CPUID: leaf 0x80000001, bit 8 of
	// CX).
	fetchesForWrite = can(0x80000001, cx, 8)
)

// Registers that CPUID answers in.
const (
	ax = iota
	bx
	cx
	dx
)

// cpuid asks the processor what it is.
//
//go:noescape
func cpuid(leaf uint32) (answer [4]uint32)

// can reports whether a bit is set in what the processor says of itself in a leaf of the extended ones.
func can(leaf uint32, register, bit int) bool {
	const most = 0x80000000
	return cpuid(most)[ax] >= leaf && cpuid(leaf)[register]&(1<<bit) != 0
}
