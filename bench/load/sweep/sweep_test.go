package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/sweep"
)

// sharp is a target that meets up to a knee.
func sharp(knee float64) func(context.Context, float64) (sweep.Outcome, error) {
	return func(_ context.Context, rate float64) (sweep.Outcome, error) {
		return sweep.Outcome{Met: rate <= knee, Result: rate}, nil
	}
}

func TestFind_Sharp(t *testing.T) {
	for _, knee := range []float64{10, 999, 1000, 1001, 2000, 123_456, 1e9} {
		for _, precision := range []float64{0.001, 0.05, 0.5} {
			for _, factor := range []float64{1.1, 2, 10} {
				c := sweep.Config{From: 1000, Precision: precision, Factor: factor, Runs: 500}
				k, err := sweep.Find(t.Context(), c, sharp(knee))
				require.NoError(t, err)
				require.Equal(t, sweep.Found, k.Ending, "knee %v: %+v", knee, k)
				assert.LessOrEqual(t, k.Knee, knee)
				assert.Greater(t, k.Above, knee)
				assert.LessOrEqual(t, k.Above, k.Knee*(1+precision)*1.000001)
				checkPoints(t, k)
			}
		}
	}
}

// TestFind_Refused: a rate at which there can be no run is no miss: what is below it has no limit that was found. It is asked for once.
func TestFind_Refused(t *testing.T) {
	refused := errors.New("more than there is")
	asked := map[float64]int{}
	k, err := sweep.Find(t.Context(), sweep.Config{From: 1000, Precision: 0.1}, func(_ context.Context, rate float64) (sweep.Outcome, error) {
		if rate > 5000 {
			asked[rate]++
			return sweep.Outcome{Refused: refused}, nil
		}
		return sweep.Outcome{Met: true, Result: rate}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, sweep.NoLimit, k.Ending)
	assert.Zero(t, k.Above)
	assert.LessOrEqual(t, k.Knee, 5000.0)
	assert.Greater(t, k.Knee*1.1, 5000.0)
	assert.Contains(t, k.String(), " a second still meets the SLO, and more was not tried: more than there is")
	assert.NotEmpty(t, asked)
	for rate, n := range asked {
		assert.Equal(t, 1, n, "%v", rate)
	}
	checkPoints(t, k)

	k, err = sweep.Find(t.Context(), sweep.Config{From: 1000}, func(_ context.Context, rate float64) (sweep.Outcome, error) {
		if rate > 3000 {
			return sweep.Outcome{Refused: refused}, nil
		}
		return sweep.Outcome{Met: rate < 1500, Result: rate}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, sweep.Found, k.Ending, "the limit is below what cannot be tried")
	assert.Positive(t, k.Above)
	assert.Empty(t, k.Why)
}

// TestFind_Bounds: nothing is tried beyond them, and the text says why.
func TestFind_Bounds(t *testing.T) {
	c := sweep.Config{From: 1000, Least: 100, To: 8000, LeastWhy: "too few", ToWhy: "too many"}
	never := func(context.Context, float64) (sweep.Outcome, error) { return sweep.Outcome{}, nil }
	k, err := sweep.Find(t.Context(), c, never)
	require.NoError(t, err)
	assert.Equal(t, sweep.TooHigh, k.Ending)
	assert.Equal(t, 125.0, k.Points[0].Rate)
	assert.Equal(t, "no rate that was tried meets the SLO, down to 125 a second: too few", k.String())
	c.Least = 0.5 // less than a thousandth of From
	k, err = sweep.Find(t.Context(), c, never)
	require.NoError(t, err)
	assert.NotContains(t, k.String(), "too few")
	k, err = sweep.Find(t.Context(), c, sharp(1e9))
	require.NoError(t, err)
	assert.Equal(t, sweep.NoLimit, k.Ending)
	assert.Equal(t, "8000 a second still meets the SLO, and more was not tried: too many", k.String())
	for _, least := range []float64{-1, 1001, math.NaN()} {
		c.Least = least
		_, err := sweep.Find(t.Context(), c, never)
		require.ErrorIs(t, err, sweep.ErrConfig)
		assert.ErrorContains(t, err, "least is ")
	}
}

// checkPoints checks what holds of every search.
func checkPoints(t *testing.T, k sweep.Knee) {
	t.Helper()
	runs := 0
	for i, p := range k.Points {
		runs += len(p.Runs)
		require.NotEmpty(t, p.Runs)
		require.True(t, i == 0 || k.Points[i-1].Rate < p.Rate)
		for _, r := range p.Runs {
			require.Equal(t, p.Rate, r.Rate)
		}
		if p.Rate == k.Knee {
			require.True(t, p.Met)
		}
		if p.Rate == k.Above {
			require.False(t, p.Met)
		}
	}
	require.Equal(t, k.Runs, runs)
}

// TestFind_Noisy has a target whose chance to meet falls softly around the knee, and that misses for no reason now and then.
func TestFind_Noisy(t *testing.T) {
	var off []float64
	runs := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		const knee = 70_000
		k, err := sweep.Find(t.Context(), sweep.Config{From: 1000}, func(_ context.Context, rate float64) (sweep.Outcome, error) {
			p := 0.95 / (1 + math.Exp((rate/knee-1)/0.03))
			return sweep.Outcome{Met: r.Float64() < p}, nil
		})
		require.NoError(t, err)
		require.Equal(t, sweep.Found, k.Ending)
		checkPoints(t, k)
		off = append(off, k.Knee/knee-1)
		runs += k.Runs
	}
	slices.Sort(off)
	t.Logf("off by %.3f %.3f %.3f (p2, p50, p98), %d runs each", off[10], off[250], off[490], runs/500)
	assert.InDelta(t, 0, off[250], 0.06)
	assert.Greater(t, off[10], -0.15, "nearly all searches are near")
	assert.Less(t, off[490], 0.15)
	assert.Less(t, runs/500, 40)
}

func TestFind_Ends(t *testing.T) {
	k, err := sweep.Find(t.Context(), sweep.Config{From: 100, To: 5000}, sharp(1e9))
	require.NoError(t, err)
	assert.Equal(t, sweep.NoLimit, k.Ending)
	assert.Equal(t, 5000.0, k.Knee)
	assert.Zero(t, k.Above)
	assert.Equal(t, "5000 a second still meets the SLO, and more was not tried", k.String())

	assert.Equal(t, "the highest rate that meets the SLO is 987.7 k a second (1.235 M does not)", sweep.Knee{Knee: 987_654, Above: 1_234_567}.String())

	k, err = sweep.Find(t.Context(), sweep.Config{From: 100}, sharp(0))
	require.NoError(t, err)
	assert.Equal(t, sweep.TooHigh, k.Ending)
	assert.Zero(t, k.Knee)
	assert.Equal(t, "no rate that was tried meets the SLO, down to 0.1953 a second", k.String())

	k, err = sweep.Find(t.Context(), sweep.Config{From: 100}, sharp(3))
	require.NoError(t, err)
	assert.Equal(t, sweep.Found, k.Ending)
	assert.InEpsilon(t, 3, k.Knee, 0.06)

	k, err = sweep.Find(t.Context(), sweep.Config{From: 100, Runs: 3}, sharp(1e9))
	require.NoError(t, err)
	assert.Equal(t, sweep.OutOfRun, k.Ending)
	assert.Equal(t, []float64{400, 0, 3}, []float64{k.Knee, k.Above, float64(k.Runs)})
	k, err = sweep.Find(t.Context(), sweep.Config{From: 100, Runs: 5}, sharp(150))
	require.NoError(t, err)
	assert.Equal(t, sweep.OutOfRun, k.Ending)
	assert.Equal(t, []float64{141, 200}, []float64{math.Trunc(k.Knee), k.Above})
	assert.Equal(t, "the highest rate that meets the SLO is 141.4 a second (200 does not); the search was not over when its runs were used up", k.String())
}

func TestFind_Stops(t *testing.T) {
	boom := errors.New("boom")
	n := 0
	k, err := sweep.Find(t.Context(), sweep.Config{From: 100}, func(context.Context, float64) (sweep.Outcome, error) {
		if n++; n == 3 {
			return sweep.Outcome{}, boom
		}
		return sweep.Outcome{Met: true}, nil
	})
	assert.ErrorIs(t, err, boom)
	assert.Equal(t, 200.0, k.Knee, "what was found so far")

	ctx, cancel := context.WithCancel(t.Context())
	k, err = sweep.Find(ctx, sweep.Config{From: 100, Step: func(r sweep.Run) {
		if r.Rate == 400 {
			cancel()
		}
	}}, sharp(1e9))
	assert.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 400.0, k.Knee)
}

// TestFind_KneeIsConfirmed has a target that meets a too high rate once, by luck.
func TestFind_KneeIsConfirmed(t *testing.T) {
	lucky := true
	k, err := sweep.Find(t.Context(), sweep.Config{From: 100}, func(_ context.Context, rate float64) (sweep.Outcome, error) {
		met := rate <= 500
		if rate > 700 && rate < 790 && lucky {
			lucky, met = false, true
		}
		return sweep.Outcome{Met: met}, nil
	})
	require.NoError(t, err)
	assert.LessOrEqual(t, k.Knee, 500.0)
	assert.Greater(t, k.Knee, 450.0)
	checkPoints(t, k)
}

func TestFind_Refuses(t *testing.T) {
	for wrong, c := range map[string]sweep.Config{
		"from is 0":        {},
		"from is -1":       {From: -1},
		"from is NaN":      {From: math.NaN()},
		"from is +Inf":     {From: math.Inf(1)},
		"to is 1":          {From: 2, To: 1},
		"factor is 1":      {From: 1, Factor: 1},
		"precision is 1e-": {From: 1, Precision: 1e-6},
		"precision is 2":   {From: 1, Precision: 2},
		"runs is -1":       {From: 1, Runs: -1},
	} {
		_, err := sweep.Find(t.Context(), c, nil)
		require.ErrorIs(t, err, sweep.ErrConfig)
		assert.ErrorContains(t, err, wrong)
	}
}

func ExampleFind() {
	// A target whose 99th percentile grows as that of a queue does, and an SLO of 1 ms.
	p99 := func(rate float64) float64 { return 0.1 / (1 - min(rate/1e6, 0.9999)) }
	knee, err := sweep.Find(context.Background(), sweep.Config{From: 10_000, Precision: 0.01},
		func(_ context.Context, rate float64) (sweep.Outcome, error) {
			return sweep.Outcome{Met: p99(rate) < 1, Result: p99(rate)}, nil
		})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s: %.0f\n", knee.Ending, knee.Knee/1e4)
	// Output: found: 90
}
