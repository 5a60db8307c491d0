package report_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/export"
	"github.com/leatlog/leat/bench/load/report"
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
	r, err := report.Read("a run", &b)
	require.NoError(t, err)
	page := write(t, r)
	wellFormed(t, page)
	for _, want := range []string{`id="percentiles-e2e"`, "chan, scenario unicast, as fast as possible", ">GOMAXPROCS<", "all messages arrived"} {
		assert.Contains(t, page, want)
	}
}

// TestRead_WindowsOfExport reads windows in the form that package export documents.
func TestRead_WindowsOfExport(t *testing.T) {
	h := hdr.New(1, 1<<40, 3)
	require.NoError(t, h.RecordValue(500))
	whole, err := export.Encode(h)
	require.NoError(t, err)
	s := export.Summary{Count: 9, P50: 11, P90: 12, P99: 13, P999: 14, Max: 15}
	o := object{
		"schema": 1, "rate_msgs_per_s": 1, "latency_ns": object{"e2e": object{"count": 1, "p50": 500, "max": 500, "hdr": whole}},
		"windows": []export.Window{
			{ToS: 1, Warmup: true, RateMsgsPerS: 5, PublishMsgsPerS: 6, Lag: 7, E2E: s, Delay: s, Publish: s, Cores: 1.5, GCs: 2},
			{FromS: 1, ToS: 2, RateMsgsPerS: 5, PublishMsgsPerS: 6, Lag: 7, E2E: s, Delay: s, Publish: s, Cores: 1.5, GCs: 2},
		},
	}
	data, err := json.Marshal(o)
	require.NoError(t, err)
	r, err := report.Read("x", bytes.NewReader(data))
	require.NoError(t, err)
	page := write(t, r)
	for _, id := range []string{"rate", "published", "lag", "e2e-p50", "e2e-p99", "e2e-max", "delay-max", "cores", "gcs"} {
		assert.Contains(t, page, `<figure id="time-`+id+`">`)
	}
	assert.NotContains(t, page, "a few percentiles only")
}
