package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// Handlers that publish into the next topic of a pipeline hold a worker while they wait for room. Were all workers to wait
// like that, nobody would run the handlers that make room. It must go on, whatever the number of workers, and lose nothing.
func TestPipeline_DoesNotStandStill(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprint("workers=", workers), func(t *testing.T) {
			e, err := engine.Open(engine.Config{Workers: workers})
			require.NoError(t, err)
			defer e.Close()
			ctx, cancel := context.WithTimeout(background, 3*time.Minute)
			defer cancel()
			c := engine.TopicConfig{Partitions: 4, Partitioner: engine.RoundRobin(), Retention: engine.Retention{MaxRecords: 8}}
			topics := map[string]*engine.Topic{}
			for _, name := range []string{"a", "b", "c"} {
				topics[name], err = e.CreateTopic(name, c)
				require.NoError(t, err)
			}
			forward := func(to *engine.Topic, times int) engine.HandlerFunc {
				return func(ctx context.Context, m *engine.Message) error {
					for range times {
						if _, err := to.Publish(ctx, m.Record); err != nil {
							return err
						}
					}
					return nil
				}
			}
			backoff := engine.SubscribeConfig{Backoff: []time.Duration{time.Millisecond}}
			var got atomic.Int64
			_, err = topics["c"].Subscribe(engine.HandlerFunc(func(context.Context, *engine.Message) error {
				got.Add(1)
				return nil
			}), backoff)
			require.NoError(t, err)
			_, err = topics["b"].Subscribe(forward(topics["c"], 1), backoff)
			require.NoError(t, err)
			_, err = topics["a"].Subscribe(forward(topics["b"], 2), backoff)
			require.NoError(t, err)
			n := int64(rounds(2000))
			for range n {
				_, err := topics["a"].Publish(ctx, engine.Record{Value: []byte("x")})
				require.NoError(t, err)
			}
			require.NoError(t, e.Drain(ctx))
			require.GreaterOrEqual(t, got.Load(), 2*n, "at least once: what was refused half way comes again")
			for _, topic := range topics {
				for _, s := range topic.Stats().Subscriptions {
					for _, l := range s.Lanes {
						require.Zero(t, l.Dropped)
						require.Zero(t, l.Lost)
					}
				}
			}
		})
	}
}
