package atomicx_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/internal/atomicx"
)

// turns returns how many turns b takes, at most limit.
func turns(b *atomicx.Backoff, limit int) (n int) {
	for n < limit && b.Again() {
		n++
	}
	return n
}

func TestBackoff_Turns(t *testing.T) {
	if atomicx.Exploring {
		t.Skip("there are no turns in an explore build: waiting starts with parking")
	}
	assert.Zero(t, turns(&atomicx.Backoff{}, 10), "the zero value parks at once")
	for _, b := range []atomicx.Backoff{{Spins: 3}, {Yields: 3}, {Spins: 1, Yields: 2}, {Spins: 2, Yields: 1}} {
		assert.Equal(t, 3, turns(&b, 10))
		assert.EqualValues(t, 3, b.Turns())
		assert.False(t, b.Again(), "it starts over without Reset")
		b.Reset()
		assert.Zero(t, b.Turns())
		assert.Equal(t, 3, turns(&b, 10))
	}
}

func TestBackoff_Waited(t *testing.T) {
	if atomicx.NoteProcs(); atomicx.Exploring || atomicx.OneProc() {
		t.Skip("nobody pauses")
	}
	waited := func(b atomicx.Backoff) (w []uint32) {
		for w = append(w, b.Waited()); b.Again() && len(w) < 10; {
			w = append(w, b.Waited())
		}
		return w
	}
	assert.Equal(t, []uint32{0, 1, 3, 7, 15, 31, 47}, waited(atomicx.Backoff{Spins: 6}))
	assert.Equal(t, []uint32{0, 1, 2, 3, 7, 11}, waited(atomicx.Backoff{Spins: 3, Steady: true, Yields: 2}))
	assert.Equal(t, []uint32{0, 1, 5, 9, 10, 14, 18, 19, 23, 27}, waited(atomicx.Backoff{Spins: 1, Yields: 1, Endless: true}), "it does not start over with the turns")
	b := atomicx.Backoff{Spins: 3}
	b.Again()
	b.Reset()
	assert.Zero(t, b.Waited())
}

func TestBackoff_ManyTurns(t *testing.T) {
	if atomicx.Exploring {
		t.Skip("there are no turns in an explore build: waiting starts with parking")
	}
	// The sum of the two does not fit.
	assert.Equal(t, 100, turns(&atomicx.Backoff{Spins: 4, Yields: math.MaxUint32}, 100))
	assert.Equal(t, 100, turns(&atomicx.Backoff{Spins: math.MaxUint32, Yields: 1}, 100))
}

func TestBackoff_Endless(t *testing.T) {
	for _, b := range []atomicx.Backoff{{Endless: true}, {Spins: 2, Yields: 1, Endless: true}} {
		assert.Equal(t, 100, turns(&b, 100), "it must never park")
	}
}
