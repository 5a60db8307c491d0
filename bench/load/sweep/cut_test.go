package sweep_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/sweep"
)

// TestFind_Cut: a search that is interrupted says so, and claims nothing that it has not seen.
func TestFind_Cut(t *testing.T) {
	for after, knee := range map[int]float64{0: 0, 1: 100, 2: 200} {
		n := 0
		ctx, cancel := context.WithCancel(t.Context())
		k, err := sweep.Find(ctx, sweep.Config{From: 100}, func(ctx context.Context, _ float64) (sweep.Outcome, error) {
			if n++; n > after {
				cancel()
				return sweep.Outcome{}, ctx.Err()
			}
			return sweep.Outcome{Met: true}, nil
		})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, sweep.Cut, k.Ending, "after %d", after)
		assert.InDelta(t, knee, k.Knee, 0)
		assert.Contains(t, k.String(), "it was interrupted")
	}
}

// TestFind_Failed: a search one of whose runs has failed tells of those before it, and that it was not over.
func TestFind_Failed(t *testing.T) {
	boom := errors.New("boom")
	for after, knee := range map[int]float64{0: 0, 1: 100, 2: 200} {
		n := 0
		k, err := sweep.Find(t.Context(), sweep.Config{From: 100}, func(context.Context, float64) (sweep.Outcome, error) {
			if n++; n > after {
				return sweep.Outcome{}, boom
			}
			return sweep.Outcome{Met: true}, nil
		})
		require.ErrorIs(t, err, boom)
		assert.Equal(t, sweep.Failed, k.Ending, "after %d", after)
		assert.InDelta(t, knee, k.Knee, 0)
		assert.Len(t, k.Points, after)
		assert.Contains(t, k.String(), "when a run failed")
	}
}

// TestFind_Undecided: a rate that met once and missed once, when the search ended early, is not the knee.
func TestFind_Undecided(t *testing.T) {
	boom := errors.New("boom")
	for knee, from := range map[float64]float64{0: 100, 50: 50} {
		at100 := 0
		k, err := sweep.Find(t.Context(), sweep.Config{From: from, Factor: 2, Precision: 1}, func(_ context.Context, rate float64) (sweep.Outcome, error) {
			if rate == 100 {
				if at100++; at100 > 2 {
					return sweep.Outcome{}, boom
				}
				return sweep.Outcome{Met: at100 == 1}, nil
			}
			return sweep.Outcome{Met: rate < 100}, nil
		})
		require.ErrorIs(t, err, boom)
		assert.InDelta(t, knee, k.Knee, 0)
		assert.InDelta(t, 200, k.Above, 0)
	}
}
