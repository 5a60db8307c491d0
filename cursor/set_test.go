package cursor_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/cursor"
)

func TestSet_Empty(t *testing.T) {
	var s cursor.Set
	low, holder, ok := s.Min()
	assert.Zero(t, low)
	assert.Nil(t, holder)
	assert.False(t, ok)
	assert.Zero(t, s.Len())
	assert.False(t, s.Remove(&cursor.Cursor{}))

	// Empty again is as empty as at first.
	var c cursor.Cursor
	s.Add(&c)
	s.Remove(&c)
	_, holder, ok = s.Min()
	assert.Nil(t, holder)
	assert.False(t, ok)
}

func TestSetMin(t *testing.T) {
	var s cursor.Set
	var a, b, c cursor.Cursor
	a.Store(5)
	b.Store(3)
	c.Store(3)
	min := func() (uint64, *cursor.Cursor) {
		low, holder, ok := s.Min()
		require.True(t, ok)
		return low, holder
	}
	assert.True(t, s.Add(&a))
	low, holder := min()
	assert.EqualValues(t, 5, low)
	assert.Same(t, &a, holder)

	assert.True(t, s.Add(&b))
	assert.True(t, s.Add(&c))
	low, holder = min()
	assert.EqualValues(t, 3, low)
	assert.Same(t, &b, holder, "of two at the same position, the one that was added first")

	b.Raise(4)
	low, holder = min()
	assert.EqualValues(t, 3, low)
	assert.Same(t, &c, holder)

	assert.True(t, s.Remove(&c))
	low, holder = min()
	assert.EqualValues(t, 4, low)
	assert.Same(t, &b, holder)

	c.Store(0) // no member
	a.Store(1)
	low, holder = min()
	assert.EqualValues(t, 1, low)
	assert.Same(t, &a, holder)
}

func TestSet_AddAndRemoveTwice(t *testing.T) {
	var s cursor.Set
	var a, b cursor.Cursor
	assert.True(t, s.Add(&a))
	assert.False(t, s.Add(&a))
	assert.True(t, s.Add(&b))
	assert.Equal(t, 2, s.Len())
	assert.True(t, s.Remove(&a))
	assert.False(t, s.Remove(&a))
	assert.Equal(t, 1, s.Len())
	assert.True(t, s.Add(&a))
	assert.Equal(t, 2, s.Len())
}

func TestSetMin_AllocatesNothing(t *testing.T) {
	var s cursor.Set
	for range 100 {
		s.Add(&cursor.Cursor{})
	}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { s.Min() }))
}
