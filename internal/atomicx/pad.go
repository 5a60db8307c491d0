package atomicx

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// PadSize is how many bytes a padded word keeps between its value and any neighbour. 128 covers the lines of arm64 and
// ppc64 and the pairs of 64-byte lines that amd64 fetches together; a platform with longer lines gets its own.
const PadSize = max(128, unsafe.Sizeof(cpu.CacheLinePad{}))

// Pad goes before and after a hot field. It is whole on both sides: a Go object's address promises no alignment beyond
// that of its fields (an object of over 512 bytes that holds pointers starts 8 bytes into its slot), so only distance on
// both sides keeps a neighbour off the line.
type Pad struct{ _ [PadSize]byte }

// PaddedUint64 is a Uint64 that shares its cache lines with nothing else. The zero value is 0 and ready to use. It must
// not be copied after first use.
type PaddedUint64 struct {
	_ Pad
	Uint64
	_ Pad
}

// Ratchet raises x to v and reports whether it moved. A value at v or beyond stays: a ratchet never goes back.
//
// Progress: the loop ends because each failed CAS means that somebody else raised x.
func Ratchet(x *Uint64, v uint64) bool {
	for {
		old := x.Load()
		if old >= v {
			return false
		}
		if x.CompareAndSwap(old, v) {
			return true
		}
	}
}
