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
