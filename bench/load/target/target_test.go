package target_test

import (
	"context"
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

// TestLeat_EveryWay runs each way to publish with each way to wait.
func TestLeat_EveryWay(t *testing.T) {
	for _, publish := range []string{"", "async", "sync", "batch", "appender"} {
		for _, wait := range []string{"", "park", "yield", "spin"} {
			t.Run("publish="+publish+"/wait="+wait, func(t *testing.T) {
				defer goleak.VerifyNone(t)
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

// TestLeat_BatchesAreNotHeldBack: with a rate, a record must not wait in a batch until the next one is due. Here the next one
// is not published before the first has been delivered.
func TestLeat_BatchesAreNotHeldBack(t *testing.T) {
	for _, publish := range []string{"batch", "appender"} {
		s := brief(t, "unicast")
		s.Publish, s.Rate, s.Messages = publish, 100, 3
		res, err := load.Run(t.Context(), oneByOne{target.Leat{}}, s)
		require.NoError(t, err, publish)
		require.NoError(t, res.Err(), publish)
		assert.Equal(t, uint64(3), res.Received)
	}
}

// oneByOne is a target that publishes only what follows on a message that has been delivered.
type oneByOne struct{ load.Target }

func (o oneByOne) Open(s load.Scenario) (load.Instance, error) {
	in, err := o.Target.Open(s)
	first := make(chan struct{}, s.Messages)
	first <- struct{}{}
	return oneByOneInstance{in, first}, err
}

type oneByOneInstance struct {
	load.Instance
	delivered chan struct{}
}

func (o oneByOneInstance) Read(reader, partition int, deliver func([]byte)) error {
	return o.Instance.Read(reader, partition, func(p []byte) {
		deliver(p)
		select {
		case o.delivered <- struct{}{}:
		default: // nobody asks after the last
		}
	})
}

func (o oneByOneInstance) Producer(i int) (load.Producer, error) {
	p, err := o.Instance.Producer(i)
	return oneByOneProducer{p, o.delivered}, err
}

type oneByOneProducer struct {
	load.Producer
	delivered chan struct{}
}

func (o oneByOneProducer) Publish(ctx context.Context, partition int, payload []byte) error {
	select {
	case <-o.delivered:
		return o.Producer.Publish(ctx, partition, payload)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestLeat_AppenderNeedsAPartitionEach(t *testing.T) {
	s := brief(t, "fan-in")
	s.Publish = "appender"
	_, err := load.Run(t.Context(), target.Leat{}, s)
	require.ErrorIs(t, err, target.ErrUnsupported)
	assert.ErrorContains(t, err, "3 producers need at least 3 partitions, not 1")
}
