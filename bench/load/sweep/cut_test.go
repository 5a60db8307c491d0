package sweep_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/sweep"
)

// TestFind_Cut: a search that is interrupted says so, and claims nothing that it has not seen.
func TestFind_Cut(t *testing.T) {
	for after, knee := range map[int]float64{0: 0, 1: 100, 2: 200} {
		n := 0
		k, err := sweep.Find(t.Context(), sweep.Config{From: 100}, func(context.Context, float64) (sweep.Outcome, error) {
			if n++; n > after {
				return sweep.Outcome{}, context.Canceled
			}
			return sweep.Outcome{Met: true}, nil
		})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, sweep.Cut, k.Ending, "after %d", after)
		assert.InDelta(t, knee, k.Knee, 0)
		assert.Contains(t, k.String(), "it was interrupted")
	}
}
