package load_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
)

// TestWindows_CoverTheRun: no message and no measurement is in none of the windows, or in two.
func TestWindows_CoverTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(1000, 5*time.Second)
		s.Warmup = time.Second
		var intervals int
		var counted uint64
		var until time.Duration
		s.Intervals = func(from, to time.Duration, e2e, publish, delay *load.Histogram) {
			assert.Equal(t, until, from, "one after the other")
			until = to
			intervals++
			counted += e2e.Count()
			assert.Equal(t, publish.Count(), delay.Count())
		}
		res, err := load.Run(t.Context(), &direct{publish: func(_ context.Context, _, n int) error {
			if n == 3000 {
				time.Sleep(200 * time.Millisecond) // from 3.0 s to 3.2 s
			}
			return nil
		}}, s)
		require.NoError(t, err)
		require.Len(t, res.Windows, 24, "a quarter of a second each")
		assert.Equal(t, 24, intervals)
		assert.Equal(t, uint64(5000), counted)
		var sent, measured uint64
		for i, w := range res.Windows {
			assert.Equal(t, i < 4, w.Warmup, "%d", i)
			assert.InDelta(t, float64(i)*0.25, w.FromS, 0.002)
			assert.InDelta(t, float64(i+1)*0.25, w.ToS, 0.002)
			sent += w.Sent
			measured += w.E2E.Count
			if i >= 4 && i != 12 && i != 13 {
				assert.InDelta(t, 1000, w.PublishMsgsPerS, 10)
				assert.InDelta(t, 1000, w.RateMsgsPerS, 10)
			}
		}
		assert.Equal(t, res.Sent, sent)
		assert.Equal(t, res.Latency.E2E.Count, measured)
		stalled := res.Windows[12]
		at(t, 200*time.Millisecond, stalled.E2E.Max, "the stall is in its window")
		at(t, 199*time.Millisecond, stalled.Delay.Max, "and who came next was late by that")
		assert.Equal(t, 200*time.Millisecond, time.Duration(stalled.BlockedNs), "and a producer was not let in")
		assert.Zero(t, res.Windows[11].E2E.Max)
		assert.Zero(t, res.Windows[15].BlockedNs)
		assert.Equal(t, 200*time.Millisecond, time.Duration(res.BlockedNs))
	})
}

func TestWindows_Lengths(t *testing.T) {
	for of, want := range map[time.Duration]time.Duration{
		time.Second: 50 * time.Millisecond, 3 * time.Second: 100 * time.Millisecond, 9 * time.Second: 250 * time.Millisecond,
		4 * time.Minute: 250 * time.Millisecond, 30 * time.Minute: 2 * time.Second, 24 * time.Hour: 5 * time.Minute,
	} {
		s := load.Scenario{Duration: of}
		assert.Equal(t, want, s.WindowLength(), "%v", of)
	}
	s := load.Scenario{Duration: time.Minute, Window: -1}
	assert.Zero(t, s.WindowLength())
	s.Live = func(load.Window) {}
	assert.Equal(t, 250*time.Millisecond, s.WindowLength(), "the live view needs them")
	s.Window = time.Second
	assert.Equal(t, time.Second, s.WindowLength())
}

func TestWindows_None(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(1000, time.Second)
		s.Window = -1
		res, err := load.Run(t.Context(), &direct{}, s)
		require.NoError(t, err)
		assert.Empty(t, res.Windows)
		assert.Equal(t, uint64(1000), res.Latency.E2E.Count)
	})
}
