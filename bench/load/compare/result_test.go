package compare_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/compare"
	"github.com/leatlog/leat/bench/load/export"
	"github.com/leatlog/leat/bench/load/target"
)

// TestRead_ResultOfARun reads what leatload writes: the names of the fields are agreed upon by this test.
func TestRead_ResultOfARun(t *testing.T) {
	chosen, ok := target.Named("chan")
	require.True(t, ok)
	s, ok := load.ScenarioNamed("unicast")
	require.True(t, ok)
	s.Warmup, s.Duration, s.Messages, s.NoPlacement = 0, 10*time.Second, 5000, true
	res, err := load.Run(t.Context(), chosen, s)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, res.WriteJSON(&b))
	r, err := compare.Read(&b)
	require.NoError(t, err)
	c := compare.Compare(r, r, compare.Options{})
	assert.Equal(t, compare.Same, c.Verdict)
	assert.Empty(t, c.Reasons)
	got := map[string]float64{}
	for _, row := range c.Rows {
		got[row.Name] = row.B
	}
	assert.Equal(t, res.RateMsgsPerS, got["rate"])
	assert.Equal(t, res.PublishMsgsPerS, got["published"])
	assert.InDelta(t, res.Latency.E2E.P50, got["e2e p50"], 0)
	assert.InDelta(t, res.Latency.E2E.Max, got["e2e max"], 0)
	assert.Equal(t, "unicast", r.Scenario)

	res.Lost = 3
	b.Reset()
	require.NoError(t, res.WriteJSON(&b))
	bad, err := compare.Read(&b)
	require.NoError(t, err)
	assert.Equal(t, "B is wrong: lost 3", compare.Compare(r, bad, compare.Options{}).Text)
}

// TestRead_WindowsOfExport reads windows in the form that package export documents.
func TestRead_WindowsOfExport(t *testing.T) {
	s := export.Summary{Count: 9, P50: 11, P90: 12, P99: 13, P999: 14, Max: 15}
	var windows []export.Window
	for i := range 10 {
		windows = append(windows, export.Window{
			FromS: float64(i), ToS: float64(i + 1), RateMsgsPerS: 5, PublishMsgsPerS: 6, E2E: s, Publish: s, Delay: s, CPUNsPerMsg: 7,
		})
	}
	data, err := json.Marshal(object{"schema": 1, "rate_msgs_per_s": 1, "windows": windows})
	require.NoError(t, err)
	r, err := compare.Read(bytes.NewReader(data))
	require.NoError(t, err)
	got := map[string]float64{}
	for _, row := range compare.Compare(r, r, compare.Options{}).Rows {
		assert.Equal(t, [2]int{10, 10}, row.Windows, row.Name)
		got[row.Name] = row.A
	}
	assert.Equal(t, map[string]float64{
		"rate": 5, "published": 6, "e2e p50": 11, "e2e p90": 12, "e2e p99": 13, "e2e p99.9": 14, "publish p50": 11, "publish p99": 13,
		"delay p99": 13, "cpu per message": 7,
	}, got)
}
