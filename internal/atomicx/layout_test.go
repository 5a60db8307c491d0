package atomicx_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/cpu"

	"github.com/leatlog/leat/internal/atomicx"
)

// TestLayout makes sure that pads are whole on both sides, and that no size has drifted.
func TestLayout(t *testing.T) {
	assert.GreaterOrEqual(t, atomicx.PadSize, uintptr(128))
	assert.GreaterOrEqual(t, atomicx.PadSize, unsafe.Sizeof(cpu.CacheLinePad{}))
	assert.Zero(t, atomicx.PadSize%8)
	assert.Equal(t, atomicx.PadSize, unsafe.Sizeof(atomicx.Pad{}))

	var p atomicx.PaddedUint64
	assert.Equal(t, atomicx.PadSize, unsafe.Offsetof(p.Uint64), "distance to what comes before")
	assert.Equal(t, 2*atomicx.PadSize+8, unsafe.Sizeof(p))
	assert.Equal(t, uintptr(8), unsafe.Alignof(p))

	waiting, next, size := atomicx.EventLayout()
	assert.GreaterOrEqual(t, waiting, atomicx.PadSize)
	assert.GreaterOrEqual(t, next, waiting+4+atomicx.PadSize)
	assert.Less(t, size, 2*atomicx.PadSize+64, "an Event has grown")
}

// TestLayout_Alignment makes sure that 64-bit words are aligned wherever they stand, also where int has 32 bits.
func TestLayout_Alignment(t *testing.T) {
	x := new(struct {
		_ bool
		a atomicx.Uint64
		_ bool
		b atomicx.Int64
		_ bool
		c atomicx.PaddedUint64
		_ bool
		d [3]struct {
			_ bool
			e atomicx.Uint64
		}
	})
	for i, p := range []unsafe.Pointer{
		unsafe.Pointer(&x.a), unsafe.Pointer(&x.b), unsafe.Pointer(&x.c.Uint64),
		unsafe.Pointer(&x.d[0].e), unsafe.Pointer(&x.d[1].e), unsafe.Pointer(&x.d[2].e),
	} {
		assert.Zero(t, uintptr(p)%8, i)
	}
	x.a.Add(1)
	x.b.Add(1)
	x.c.Add(1)
	x.d[1].e.Add(1)
	atomicx.StoreRelease(&x.c.Uint64, 1<<40)
	assert.Equal(t, uint64(1<<40), x.c.Load())
}
