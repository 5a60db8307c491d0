package rivals_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/tool"
	"github.com/leatlog/leat/bench/rivals"
)

// TestTargets runs every rival that the load harness can drive in every scenario that it knows: all that was sent has arrived once,
// in order, and unharmed.
func TestTargets(t *testing.T) {
	targets := rivals.Targets()
	require.Greater(t, len(targets), 10)
	for _, x := range targets {
		t.Run(x.Name(), func(t *testing.T) {
			known := 0
			for _, s := range load.Scenarios() {
				s.Warmup, s.Duration, s.Stop, s.Messages = 0, time.Minute, min(s.Stop, 5*time.Millisecond), int64(min(1000, 6<<20/max(s.Size, 64)))
				if s.Rate > 0 {
					s.Rate = 50_000
				}
				s.NoFloor, s.NoPlacement = true, true
				if load.Check(x, s) != nil {
					continue
				}
				known++
				res, err := load.Run(t.Context(), x, s)
				require.NoError(t, err, s.Name)
				require.NotErrorIs(t, res.Err(), load.ErrFaults, s.Name)
				assert.Positive(t, res.Sent, s.Name)
				assert.Equal(t, res.Sent*uint64(s.Consumers()), res.Received, s.Name)
			}
			assert.GreaterOrEqual(t, known, 3)
		})
	}
}

// TestTargets_Tool: the program knows them, and says what one cannot do.
func TestTargets_Tool(t *testing.T) {
	call := func(args ...string) (code int, stdout, stderr string) {
		var out, err bytes.Buffer
		code = tool.Run(t.Context(), rivals.Targets(), args, &out, &err)
		return code, out.String(), err.String()
	}
	_, _, stderr := call("-h")
	for _, name := range []string{"chan-batch", "xsync-mpmc", "watermill", "jetstream", "kfake"} {
		assert.Contains(t, stderr, name)
	}
	assert.NotContains(t, stderr, "leat/async", "the tool's own leat has flags for that")
	assert.NotContains(t, stderr, "lmax")

	code, stdout, stderr := call("-engine", "watermill", "-scenario", "unicast", "-messages", "1000", "-duration", "1m", "-warmup", "0s", "-q")
	assert.Equal(t, 0, code, stderr)
	assert.Contains(t, stdout, "engine     watermill, scenario unicast")
	for want, args := range map[string][]string{
		"-sizes uniform:64-128: messages of watermill have one size": {"-engine", "watermill", "-sizes", "uniform:64-128"},
		"and 100 bytes: it has messages of 64 16 1024 bytes":         {"-engine", "ring", "-scenario", "unicast", "-size", "100"},
		`-publish "batch": ring has one way to publish`:              {"-engine", "ring", "-scenario", "unicast", "-publish", "batch"},
		`-wait "spin": must be one of park (on watermill)`:           {"-engine", "watermill", "-wait", "spin"},
		"-stages 3: nats is one":                                     {"-engine", "nats", "-scenario", "pipeline"},
		"-replays 2: what nats has delivered is gone":                {"-engine", "nats", "-scenario", "replay-storm"},
		"-engine ring: not with 3 producers, 2 partitions, 2 readers and subscribers, and 64 bytes: it has one producer": {"-engine", "ring"},
		"it has one group, which gets one copy of several partitions":                                                    {"-engine", "kfake"},
	} {
		code, _, stderr := call(args...)
		assert.Equal(t, 2, code, want)
		assert.Contains(t, stderr, want)
	}
}
