package atomicx_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/internal/atomicx"
)

// TestRatchet_Model raises a word to random values and compares it with the greatest of them.
func TestRatchet_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x atomicx.Uint64
		greatest := uint64(0)
		for _, v := range rapid.SliceOf(rapid.Uint64()).Draw(t, "values") {
			require.Equal(t, v > greatest, atomicx.Ratchet(&x, v))
			greatest = max(greatest, v)
			require.Equal(t, greatest, x.Load())
		}
	})
}

// TestRatchet_Stress makes sure that a ratchet never goes back and ends at the greatest value, and that no value is reached
// twice: those who raise it to the same value cannot all be told that it moved.
func TestRatchet_Stress(t *testing.T) {
	const goroutines = 4
	rounds := uint64(20_000)
	if testing.Short() {
		rounds = 2_000
	}
	var (
		x     atomicx.Uint64
		moved atomicx.Uint64
		wg    sync.WaitGroup
	)
	for range goroutines {
		wg.Go(func() {
			last := uint64(0)
			for v := uint64(1); v <= rounds; v++ {
				if atomicx.Ratchet(&x, v) {
					moved.Add(1)
				}
				now := x.Load()
				assert.GreaterOrEqual(t, now, max(v, last))
				last = now
			}
		})
	}
	wg.Wait()
	assert.Equal(t, rounds, x.Load())
	assert.LessOrEqual(t, moved.Load(), rounds)
	assert.NotZero(t, moved.Load())
}
