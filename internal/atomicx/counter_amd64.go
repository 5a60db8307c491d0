package atomicx

// counter reads the processor's time stamp counter. The processor may do so before loads that come earlier in the program have
// their values.
//
//go:noescape
func counter() uint64

// cpuid asks the processor what it is.
//
//go:noescape
func cpuid(leaf uint32) (ax, dx uint32)

// constantSpeed is counterSteady, asked once: a virtual machine traps CPUID, which takes microseconds.
var constantSpeed = counterSteady()

// counterSteady reports whether the processor says that its counter always has the same speed (Intel SDM vol. 3, 19.17.1; AMD APM
// vol. 3, E.4.7: leaf 0x80000007, bit 8 of DX).
func counterSteady() bool {
	const most, leaf = 0x80000000, 0x80000007
	if highest, _ := cpuid(most); highest < leaf {
		return false
	}
	_, dx := cpuid(leaf)
	return dx&(1<<8) != 0
}
