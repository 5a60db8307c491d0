package target_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/target"
)

// brief makes a scenario end after some thousand messages.
func brief(t *testing.T, name string) load.Scenario {
	s, ok := load.ScenarioNamed(name)
	require.True(t, ok)
	s.Warmup, s.Duration, s.Messages, s.NoPlacement = 0, time.Minute, 3000, true
	return s
}

// TestTargets runs every scenario on every target, saturating and paced, and with messages of several sizes.
func TestTargets(t *testing.T) {
	for _, tgt := range target.All() {
		for _, named := range load.Scenarios() {
			for _, size := range []int{load.MinSize, 64, 65, 1000} {
				for _, rate := range []float64{0, 1e6} {
					t.Run(fmt.Sprintf("%s/%s/size=%d/rate=%g", tgt.Name(), named.Name, size, rate), func(t *testing.T) {
						defer goleak.VerifyNone(t)
						s := brief(t, named.Name)
						s.Size, s.Rate = size, rate
						res, err := load.Run(t.Context(), tgt, s)
						require.NoError(t, err)
						require.False(t, res.Faults.Any(), "%+v", res.Lanes)
						assert.Equal(t, uint64(s.Messages), res.Sent)
						assert.Equal(t, uint64(s.Messages)*uint64(s.Consumers()), res.Received)
						assert.Equal(t, tgt.Name(), res.Engine)
						assert.Empty(t, res.Notes)
					})
				}
			}
		}
	}
}

func TestTargets_NobodyReads(t *testing.T) {
	for _, tgt := range target.All() {
		s := brief(t, "unicast")
		s.Readers, s.Messages = 0, 100_000 // more than any buffer holds
		res, err := load.Run(t.Context(), tgt, s)
		require.NoError(t, err, tgt.Name())
		assert.Equal(t, uint64(100_000), res.Sent)
		assert.Zero(t, res.Received)
	}
}

func TestTargets_RefuseWhatTheyDoNotKnow(t *testing.T) {
	for _, tgt := range target.All() {
		s := brief(t, "unicast")
		s.Publish = "nonsense"
		_, err := load.Run(t.Context(), tgt, s)
		require.ErrorIs(t, err, target.ErrUnsupported, tgt.Name())
		require.ErrorIs(t, err, load.ErrTarget)
		assert.ErrorContains(t, err, `publish "nonsense": `+tgt.Name()+" knows")

		s = brief(t, "unicast")
		s.Wait = "nonsense"
		_, err = load.Run(t.Context(), tgt, s)
		require.ErrorIs(t, err, target.ErrUnsupported, tgt.Name())
		assert.ErrorContains(t, err, `wait "nonsense"`)
	}
}

func TestNamed(t *testing.T) {
	for _, n := range target.Names() {
		tgt, ok := target.Named(n)
		require.True(t, ok)
		assert.Equal(t, n, tgt.Name())
	}
	_, ok := target.Named("nonsense")
	assert.False(t, ok)
}
