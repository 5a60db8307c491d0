package ring

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/internal/atomicx"
)

// TestMPSC_Layout: what producers write, what the consumer writes, and what nobody writes lie on lines of their own.
func TestMPSC_Layout(t *testing.T) {
	var r MPSC[int]
	const pad = atomicx.PadSize
	tail := unsafe.Offsetof(r.tail) + unsafe.Offsetof(r.tail.Uint64)
	head := unsafe.Offsetof(r.head) + unsafe.Offsetof(r.head.Uint64)
	waiting := unsafe.Offsetof(r.line) + unsafe.Offsetof(r.line.waiting)
	mu := unsafe.Offsetof(r.line) + unsafe.Offsetof(r.line.mu)
	assert.GreaterOrEqual(t, unsafe.Offsetof(r.slots), pad, "the immutable fields against what lies before the ring")
	assert.GreaterOrEqual(t, tail, unsafe.Offsetof(r.limit)+8+pad)
	assert.GreaterOrEqual(t, head, tail+8+pad)
	assert.GreaterOrEqual(t, waiting, head+8+pad)
	assert.GreaterOrEqual(t, mu, waiting+4+pad)
	assert.LessOrEqual(t, unsafe.Sizeof(r), uintptr(1280), "a size class of the allocator")
}

// TestBUG125_MPSCWordsAreAligned: 64-bit atomics need it on 32-bit platforms too, whatever T is.
func TestBUG125_MPSCWordsAreAligned(t *testing.T) {
	type odd struct{ b [3]byte }
	for range 100 {
		r := New[odd](4)
		words := []*atomicx.Uint64{&r.tail.Uint64, &r.head.Uint64}
		for i := range r.slots {
			words = append(words, &r.slots[i].seq)
		}
		for _, w := range words {
			assert.Zero(t, uintptr(unsafe.Pointer(w))%8)
			w.Add(1)
		}
	}
}
