package atomicx

// counter reads the processor's time stamp counter. The processor may do so before loads that come earlier in the program have
// their values.
//
//go:noescape
func counter() uint64
