package cursor

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/internal/atomicx"
)

// TestCursor_Layout: a cursor's position shares its lines with nothing, also where cursors lie next to each other.
func TestCursor_Layout(t *testing.T) {
	var cs [2]Cursor
	at := unsafe.Offsetof(cs[0].pos) + unsafe.Offsetof(cs[0].pos.Uint64)
	assert.GreaterOrEqual(t, at, atomicx.PadSize)
	assert.GreaterOrEqual(t, unsafe.Sizeof(cs[0]), at+8+atomicx.PadSize)
}

// TestBUG125_CursorIsAligned: 64-bit atomics need it on 32-bit platforms too, wherever the cursor is embedded.
func TestBUG125_CursorIsAligned(t *testing.T) {
	for range 100 {
		x := new(struct {
			b byte
			c Cursor
		})
		assert.Zero(t, uintptr(unsafe.Pointer(&x.c.pos.Uint64))%8)
		x.c.Raise(1)
	}
}
