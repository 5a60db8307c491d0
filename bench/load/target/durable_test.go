package target_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/target"
	"github.com/leatlog/leat/internal/testkit"
)

// inFiles is a short scenario with files in a folder of the test's.
func inFiles(t *testing.T, sync string) load.Scenario {
	s := brief(t, "durable")
	s.Producers, s.Partitions, s.Messages, s.Sync, s.Dir = 2, 2, 200, sync, t.TempDir() // a sync takes milliseconds
	return s
}

// TestLeat_Durable: whatever the policy and the way to publish, all that was sent is there when the files are opened again, and the
// files are gone in the end.
func TestLeat_Durable(t *testing.T) {
	t.Cleanup(func() { testkit.NoLeaks(t) })
	for _, sync := range []string{"always", "1ms", "never"} {
		for _, publish := range []string{"async", "sync", "batch", "appender", "reserve"} {
			t.Run(sync+"/"+publish, func(t *testing.T) {
				t.Parallel() // they wait for the disk
				s := inFiles(t, sync)
				s.Publish, s.Stages = publish, 2
				res, err := load.Run(t.Context(), target.Leat{}, s)
				require.NoError(t, err)
				require.NoError(t, res.Err())
				assert.Equal(t, sync, res.Sync)
				var again uint64
				for _, l := range res.Lanes {
					if l.Consumer == "opened again" {
						again += l.Received
					}
				}
				assert.Equal(t, res.Sent, again)
				left, err := os.ReadDir(s.Dir)
				require.NoError(t, err)
				assert.Empty(t, left)
			})
		}
	}
}

func TestLeat_DurableRefused(t *testing.T) {
	for _, sync := range []string{"x", "10", "-1s", "0s", "0.1ns", "8761h", "always:1"} {
		err := load.Check(target.Leat{}, inFiles(t, sync))
		require.ErrorIs(t, err, load.ErrUnsupported)
		assert.ErrorContains(t, err, "must be one of always, never, or a time above 0s, at most 8760h, such as 10ms")
	}
	for _, tgt := range []load.Target{target.Chan{}, target.MutexLog{}} {
		require.ErrorIs(t, load.Check(tgt, inFiles(t, "always")), load.ErrNoFiles)
	}
}
