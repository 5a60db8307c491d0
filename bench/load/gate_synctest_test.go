package load_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/target"
)

// TestRun_Stop stops the readers of a channel for a second, in which 500 messages come: the latencies of those go evenly from a second
// down to 0, and then the readers have caught up.
func TestRun_Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(500, 4*time.Second)
		s.Readers, s.Stop = 1, time.Second
		res, err := load.Run(t.Context(), target.Chan{}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err(), "producers have room, and hold their rate")
		require.NotNil(t, res.Backlog)
		assert.InDelta(t, 1, res.Backlog.StoppedS, 1e-3)
		assert.InDelta(t, 500, float64(res.Backlog.Messages), 3)
		assert.Positive(t, res.Backlog.CatchUpS)
		assert.LessOrEqual(t, res.Backlog.CatchUpS, 5e-3)
		assert.Equal(t, uint64(2*2000), res.Latency.E2E.Count)
		assert.InDelta(t, float64(time.Second), float64(res.Latency.E2E.Max), float64(3*time.Millisecond), "the first has waited for all of it")
		assert.Zero(t, res.Latency.E2E.P50, "three of four never met it")
		assert.InDelta(t, float64(600*time.Millisecond), float64(res.Latency.E2E.P90), float64(6*time.Millisecond),
			"p90: of the quarter that did, three fifths are below; messages are 2 ms apart")
		var most uint64
		for _, w := range res.Windows {
			most = max(most, w.Lag)
		}
		assert.Greater(t, most, uint64(400), "windows show it")
	})
}
