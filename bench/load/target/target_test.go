package target_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/stream"
	"github.com/leatlog/leat/bench/load/target"
	"github.com/leatlog/leat/internal/testkit"
)

// brief makes a scenario end after some thousand messages.
func brief(t *testing.T, name string) load.Scenario {
	s, ok := load.ScenarioNamed(name)
	require.True(t, ok)
	s.Warmup, s.Duration, s.Messages, s.NoPlacement, s.NoFloor = 0, time.Minute, 3000, true, true
	s.Stop = min(s.Stop, 20*time.Millisecond)
	return s
}

// TestTargets runs every scenario on every target, saturating and paced, and with messages of several sizes.
func TestTargets(t *testing.T) {
	for _, tgt := range target.All() {
		for _, named := range load.Scenarios() {
			for _, size := range []int{load.MinSize, 64, 65, 1000} {
				for _, rate := range []float64{0, 1e6} {
					if rate > 0 && size != 64 {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/size=%d/rate=%g", tgt.Name(), named.Name, size, rate), func(t *testing.T) {
						defer testkit.NoLeaks(t)
						s := brief(t, named.Name)
						if s.Replays > 0 && tgt.Name() != "leat" {
							_, err := load.Run(t.Context(), tgt, s)
							require.ErrorIs(t, err, load.ErrUnsupported)
							return
						}
						s.Size, s.Sizes, s.Rate = size, stream.Sizes{}, rate
						if rate == 0 {
							s.Arrival = stream.Arrival{}
						}
						res, err := load.Run(t.Context(), tgt, s)
						require.NoError(t, err)
						require.False(t, res.Faults.Any(), "%+v", res.Lanes)
						assert.Equal(t, uint64(s.Messages), res.Sent)
						assert.Equal(t, uint64(s.Messages)*uint64(s.Consumers()), res.Received)
						assert.Equal(t, tgt.Name(), res.Engine)
						for _, note := range res.Notes {
							assert.Contains(t, note, "too soon to say", "with a rate, so few are due at once; there is nothing else")
						}
						assert.True(t, rate > 0 || len(res.Notes) == 0)
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
		require.ErrorIs(t, err, load.ErrUnsupported, tgt.Name())
		require.ErrorIs(t, err, load.ErrTarget)
		assert.ErrorContains(t, err, `publish "nonsense": must be one of `)
		require.ErrorContains(t, err, " (on "+tgt.Name()+")")

		s = brief(t, "unicast")
		s.Wait = "nonsense"
		_, err = load.Run(t.Context(), tgt, s)
		require.ErrorIs(t, err, load.ErrUnsupported, tgt.Name())
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

// TestLeat_EveryWay runs each way to publish with each way to wait.
func TestLeat_EveryWay(t *testing.T) {
	for _, publish := range []string{"", "async", "sync", "batch", "appender", "reserve"} {
		for _, wait := range []string{"", "park", "yield", "spin"} {
			t.Run("publish="+publish+"/wait="+wait, func(t *testing.T) {
				defer testkit.NoLeaks(t)
				s := brief(t, "mixed")
				s.Publish, s.Wait = publish, wait
				s.Producers, s.Partitions = 2, 3 // one producer has two partitions for itself
				s.Messages = 3001                // and the last batch is not full
				res, err := load.Run(t.Context(), target.Leat{}, s)
				require.NoError(t, err)
				require.NoError(t, res.Err())
				assert.Equal(t, uint64(3001), res.Sent)
				assert.Equal(t, uint64(2*3001), res.Received)
				assert.Equal(t, publish, res.Publish)
			})
		}
	}
}

// TestLeat_FlushLetsGo publishes one message where 64 or 256 would go together.
func TestLeat_FlushLetsGo(t *testing.T) {
	for _, publish := range []string{"async", "sync", "batch", "appender", "reserve"} {
		t.Run("publish="+publish, func(t *testing.T) {
			defer testkit.NoLeaks(t)
			s := brief(t, "unicast")
			s.Publish = publish
			in, err := target.Leat{}.Open(s)
			require.NoError(t, err)
			p, err := in.Producer(0)
			require.NoError(t, err)
			delivered, ended := make(chan []byte, 1), make(chan error, 1)
			go func() { ended <- in.Read(0, 0, func(b []byte) { delivered <- bytes.Clone(b) }) }()
			message := bytes.Repeat([]byte{7}, 64)
			require.NoError(t, p.Publish(t.Context(), 0, message))
			require.NoError(t, p.Flush(t.Context()))
			assert.Equal(t, message, <-delivered)
			require.NoError(t, in.Close())
			assert.NoError(t, <-ended)
		})
	}
}

func TestLeat_AppenderNeedsAPartitionEach(t *testing.T) {
	s := brief(t, "fan-in")
	s.Publish = "appender"
	_, err := load.Run(t.Context(), target.Leat{}, s)
	require.ErrorIs(t, err, load.ErrUnsupported)
	assert.ErrorContains(t, err, "3 producers need at least 3 partitions, not 1")
}

// TestLeat_Backlog: the readers stop, everything that comes meanwhile waits for them, and producers do not.
func TestLeat_Backlog(t *testing.T) {
	defer testkit.NoLeaks(t)
	s := brief(t, "backlog")
	s.Messages, s.Duration, s.Stop, s.Rate, s.Subscribers = 0, time.Hour, 100*time.Millisecond, 20_000, 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Window = 50 * time.Millisecond
	windows := 0
	s.Intervals = func(_, to time.Duration, _, _, _ *load.Histogram) { // by who stops the readers and lets them go on, after that
		if to > 200*time.Millisecond {
			if windows++; windows == 3 {
				cancel()
			}
		}
	}
	res, err := load.Run(ctx, target.Leat{}, s)
	require.NoError(t, err)
	require.False(t, res.Faults.Any())
	require.NotNil(t, res.Backlog)
	assert.GreaterOrEqual(t, res.Backlog.StoppedS, 0.1)
	assert.LessOrEqual(t, res.Backlog.Messages, res.Sent)
	var b bytes.Buffer
	require.NoError(t, res.WriteText(&b))
	assert.Contains(t, b.String(), "\nbacklog    readers stood still for ")
}

// TestLeat_BacklogMustFit: what cannot be kept is refused beforehand.
func TestLeat_BacklogMustFit(t *testing.T) {
	s := brief(t, "backlog")
	s.Stop, s.Rate = 59*time.Second, 1e8
	err := load.Check(target.Leat{}, s)
	require.ErrorIs(t, err, load.ErrUnsupported)
	assert.ErrorContains(t, err, "what comes while the readers are stopped")
}

// TestLeat_ReplayStorm reads all again and again while the ring drops what is old.
func TestLeat_ReplayStorm(t *testing.T) {
	defer testkit.NoLeaks(t)
	s := brief(t, "replay-storm")
	s.Messages, s.Duration, s.Rate, s.Size = 40_000, time.Hour, 0, 1000 // more than leat keeps of each partition
	res, err := load.Run(t.Context(), target.Leat{}, s)
	require.NoError(t, err)
	require.False(t, res.Faults.Any(), "%v", res.Lanes)
	require.NotNil(t, res.Replay)
	assert.Positive(t, res.Replay.Passes)
	assert.Positive(t, res.Replay.Messages)
	assert.Equal(t, uint64(40_000), res.Received)
}

// TestLeat_KeysInEveryWay: keys choose partitions whatever the way to publish.
func TestLeat_KeysInEveryWay(t *testing.T) {
	for _, publish := range []string{"async", "sync", "batch", "appender", "reserve"} {
		s := brief(t, "hot-key")
		s.Publish, s.Rate, s.Producers = publish, 0, 1
		res, err := load.Run(t.Context(), target.Leat{}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err(), publish)
		most, least := uint64(0), uint64(s.Messages)
		for _, l := range res.Lanes {
			most, least = max(most, l.Received), min(least, l.Received)
		}
		assert.Greater(t, most, least+uint64(s.Messages)/20, "%s: partitions have far from equal shares", publish)
	}
}

// TestTargets_MixedSizes: every target, every way to publish, and a group, with messages of many sizes and keys.
func TestTargets_MixedSizes(t *testing.T) {
	soak := brief(t, "soak")
	soak.Rate, soak.Arrival = 0, stream.Arrival{}
	group := brief(t, "group")
	group.Sizes, group.Keys = soak.Sizes, soak.Keys
	for _, c := range []struct {
		tgt load.Target
		s   load.Scenario
		how string
	}{
		{target.Chan{}, soak, ""}, {target.MutexLog{}, soak, ""}, {target.Leat{}, group, ""}, {target.Leat{}, group, "batch"},
		{target.Leat{}, soak, "async"}, {target.Leat{}, soak, "sync"}, {target.Leat{}, soak, "batch"}, {target.Leat{}, soak, "appender"}, {target.Leat{}, soak, "reserve"},
	} {
		t.Run(c.tgt.Name()+"/"+c.s.Name+"/"+c.how, func(t *testing.T) {
			defer testkit.NoLeaks(t)
			c.s.Publish = c.how
			res, err := load.Run(t.Context(), c.tgt, c.s)
			require.NoError(t, err)
			require.NoError(t, res.Err(), "%v", res.Lanes)
			assert.Equal(t, uint64(c.s.Messages)*uint64(c.s.Consumers()), res.Received)
			assert.Equal(t, "lognormal:200:1:16384", res.Sizes)
			assert.InDelta(t, 329, res.SizeMean, 1, "200 * exp(1/2), about")
		})
	}
}

// TestPipeline_EveryTarget: through five stages, in order, all of it, and the time counts from the first.
func TestPipeline_EveryTarget(t *testing.T) {
	for _, tgt := range target.All() {
		t.Run(tgt.Name(), func(t *testing.T) {
			defer testkit.NoLeaks(t)
			s := brief(t, "pipeline")
			s.Stages, s.Rate, s.Readers, s.Subscribers, s.Producers = 5, 0, 2, 1, 3
			res, err := load.Run(t.Context(), tgt, s)
			require.NoError(t, err)
			require.NoError(t, res.Err(), "%v", res.Lanes)
			assert.Equal(t, uint64(3*s.Messages), res.Received)
			assert.Equal(t, 5, res.Stages)
		})
	}
}

// TestBacklog_Interrupted: Ctrl-C while the readers stand still and the producers wait for room.
func TestBacklog_Interrupted(t *testing.T) {
	t.Cleanup(func() { testkit.NoLeaks(t) })
	for _, tgt := range target.All() {
		t.Run(tgt.Name(), func(t *testing.T) {
			t.Parallel() // they wait
			s := brief(t, "backlog")
			s.Messages, s.Rate, s.Duration, s.Stop, s.Window = 0, 0, time.Hour, 50*time.Minute, 50*time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last uint64
			s.Live = func(w load.Window) {
				if w.Lag > 0 && w.Sent == last { // everything is full
					cancel()
				}
				last = w.Sent
			}
			res, err := load.Run(ctx, tgt, s)
			require.NoError(t, err)
			assert.True(t, res.Interrupted)
			assert.False(t, res.Faults.Any())
			assert.Positive(t, res.Backlog.Messages)
		})
	}
}
