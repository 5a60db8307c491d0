package engine_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestSetPartitions_Stress attacks "Nothing is missed" and "Nothing is left behind": publishers of all kinds, a subscription that
// stays, one that ends and comes back under its name, one that is paused and resumed, and two that add partitions, until one
// of the three ends comes at a random moment. After Drain the one that stayed has had every record of every partition once,
// in order, and the one that came back has skipped none. After the other ends, or if it is paused, a subscription has had a
// beginning of that. Nothing hangs, and nothing is left running.
func TestSetPartitions_Stress(t *testing.T) {
	watchdog(t)
	var grown, refused, resumed atomic.Int64
	for i := 0; i < rounds(100) || grown.Load() == 0 || refused.Load() == 0 || resumed.Load() == 0; i++ {
		e, err := engine.Open(engine.Config{Workers: 3})
		require.NoError(t, err)
		topic := create(t, e, "t", engine.TopicConfig{Partitioner: engine.RoundRobin(), HandoverSlots: 16})
		var stays, comes, pauses book
		at := func(b *book, id string, c engine.SubscribeConfig) *engine.Subscription {
			c.ID, c.Start = id, engine.Earliest()
			return subscribe(t, topic, b, c)
		}
		s := at(&stays, "stays", engine.SubscribeConfig{Dedicated: i%3 == 0})
		p := at(&pauses, "pauses", engine.SubscribeConfig{MaxConcurrency: 1, MaxLag: 1 << 40})
		guest := at(&comes, "comes", engine.SubscribeConfig{})

		until := func(f func() error) func() { // does it until all is over
			return func() {
				for {
					if err := f(); err != nil {
						assert.True(t, over(err), err)
						return
					}
					runtime.Gosched()
				}
			}
		}
		grower := func() {
			for n := 2; n < 40; n += 1 + rand.N(3) {
				switch err := topic.SetPartitions(n); {
				case err == nil:
					grown.Add(1)
					if got := topic.Partitions(); got < n {
						t.Errorf("%d partitions, and %d were asked for", got, n)
					}
					_, err := topic.Partition(n - 1)
					assert.NoError(t, err)
				case assert.True(t, over(err) || n < topic.Partitions(), err):
					refused.Add(1)
				}
				runtime.Gosched()
			}
		}
		together(1, grower, grower,
			until(func() error { _, err := topic.Publish(background, value("x")); return err }),
			until(func() error { return topic.PublishBatch(background, make([]engine.Record, 1+rand.N(5))) }),
			until(func() error { return topic.PublishAsync(background, value("x"), nil) }),
			until(func() error {
				guest.Close()
				if i%2 == 0 {
					<-guest.Done()
				}
				next, err := topic.Subscribe(&comes, engine.SubscribeConfig{ID: "comes"})
				if err == nil {
					guest = next
					resumed.Add(1)
				}
				return err
			}),
			until(func() error {
				_ = p.Pause()
				runtime.Gosched()
				_ = p.Resume()
				topic.Stats()
				return p.Err()
			}),
			func() {
				for range rand.N(50) {
					runtime.Gosched()
				}
				switch i % 3 {
				case 0:
					assert.NoError(t, e.Drain(background))
					checkWhole(t, topic, &stays, &comes)
					assert.NoError(t, e.Close())
				case 1:
					assert.NoError(t, e.DeleteTopic("t"))
				default:
					assert.NoError(t, e.Close())
				}
			},
		)
		<-s.Done()
		<-p.Done()
		<-guest.Done()
		for _, l := range s.Stats().Lanes {
			require.Equal(t, upTo(0, l.Position), stays.offsets(int32(l.Partition)))
		}
		for _, l := range p.Stats().Lanes { // Drain does not wait for what is paused
			require.Equal(t, upTo(0, l.Position), pauses.offsets(int32(l.Partition)))
		}
		require.NoError(t, e.Close())
	}
}

// checkWhole checks that everything has been delivered: to the one once, in order, to the other without a hole.
func checkWhole(t *testing.T, topic *engine.Topic, stays, comes *book) {
	for i := range topic.Partitions() {
		next := topicNext(t, topic, i)
		assert.Equal(t, upTo(0, next), stays.offsets(int32(i)), "partition %d", i)
		at := engine.Offset(0)
		for _, off := range comes.offsets(int32(i)) {
			if off > at {
				t.Errorf("partition %d: %d to %d were skipped", i, at, off)
			}
			at = max(at, off+1)
		}
	}
}

// TestSetPartitions_StressEvict: subscriptions that are put out for their lag, by records in partitions that are just being
// added, end as a whole, and take every lane with them.
func TestSetPartitions_StressEvict(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 2})
	var evicted atomic.Int64
	for i := 0; i < rounds(200) || evicted.Load() == 0; i++ {
		topic := create(t, e, "t", engine.TopicConfig{Partitioner: engine.RoundRobin()})
		s := subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
			if m.Partition > 2 {
				<-ctx.Done() // which is when it has been put out
			}
			return nil
		}), engine.SubscribeConfig{MaxLag: 1 + rand.Int64N(3), Dedicated: true})
		together(1,
			func() {
				for n := 2; n < 12; n++ {
					assert.NoError(t, topic.SetPartitions(n))
				}
			},
			func() {
				for s.Err() == nil {
					_, err := topic.Publish(background, value("x"))
					assert.NoError(t, err)
				}
			},
		)
		<-s.Done()
		if assert.ErrorIs(t, s.Err(), engine.ErrEvicted) {
			evicted.Add(1)
		}
		require.Equal(t, 11, topic.Partitions())
		require.NoError(t, e.DeleteTopic("t"))
	}
}
