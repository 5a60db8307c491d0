package cursor_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/cursor"
)

func TestCursor_ZeroValue(t *testing.T) {
	var c cursor.Cursor
	assert.Zero(t, c.Load())
	assert.False(t, c.Raise(0))
}

func TestCursorStore(t *testing.T) {
	var c cursor.Cursor
	for _, p := range []uint64{5, 3, math.MaxUint64, 1 << 63, 0} {
		c.Store(p)
		assert.Equal(t, p, c.Load())
		c.StoreRelease(p + 1)
		assert.Equal(t, p+1, c.Load())
	}
}

// TestBUG061_CursorRaiseNeverGoesBack: a log of 100 is cut to 50, to 90, and its beginning is made anew, under a cursor at 80.
func TestBUG061_CursorRaiseNeverGoesBack(t *testing.T) {
	var c cursor.Cursor
	assert.True(t, c.Raise(80))
	assert.False(t, c.Raise(50))
	assert.EqualValues(t, 80, c.Load())
	assert.True(t, c.Raise(90))
	assert.EqualValues(t, 90, c.Load())
	assert.False(t, c.Raise(0))
	assert.EqualValues(t, 90, c.Load())
}

// TestBUG091_CursorNearTheLastPosition: positions are compared as they are, without sums that could wrap.
func TestBUG091_CursorNearTheLastPosition(t *testing.T) {
	for _, p := range []uint64{1<<31 - 2, 1<<32 - 2, 1 << 53, 1<<63 - 100, 1<<63 - 1, 1 << 63, math.MaxUint64 - 1} {
		var c, last cursor.Cursor
		c.Store(p)
		last.Store(math.MaxUint64)
		assert.True(t, c.Raise(p+1))
		assert.False(t, c.Raise(p))
		assert.False(t, last.Raise(p))

		var s cursor.Set
		s.Add(&last)
		low, holder, ok := s.Min()
		assert.True(t, ok)
		assert.Same(t, &last, holder)
		assert.EqualValues(t, uint64(math.MaxUint64), low, "the highest position is no mark for an empty set")
		s.Add(&c)
		low, _, _ = s.Min()
		assert.Equal(t, p+1, low)
	}
}

func TestCursor_AllocatesNothing(t *testing.T) {
	var c cursor.Cursor
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		c.Raise(c.Load() + 1)
		c.StoreRelease(c.Load() + 1)
		c.Store(c.Load() + 1)
	}))
}
