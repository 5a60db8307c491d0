package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestSubscription_MaxConcurrency runs no more lanes of a subscription at a time than it may, by default one less than there
// are workers.
func TestSubscription_MaxConcurrency(t *testing.T) {
	watchdog(t)
	for _, try := range []struct{ workers, max, want int }{{4, 0, 3}, {4, 1, 1}, {4, 2, 2}, {4, 100, 4}, {1, 0, 1}, {2, 0, 1}} {
		e := open(t, engine.Config{Workers: try.workers})
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 8})
		b := newBlocker()
		s := subscribe(t, topic, b, engine.SubscribeConfig{MaxConcurrency: try.max})
		for i := range 8 {
			publish(t, topic, i, 2)
		}
		for range try.want {
			<-b.in
		}
		if try.want < try.workers { // another subscription gets a worker, by the time it has run this one has taken what it may
			var got book
			other := subscribe(t, topic, &got, engine.SubscribeConfig{Start: engine.Earliest()})
			caughtUp(other)
			assert.Equal(t, 16, got.len())
		}
		await(func() bool { return e.Stats().Running == try.want })
		assert.Empty(t, b.in)
		b.release()
		caughtUp(s)
	}
}

// TestSEED15_BlockedHandlers: a subscription whose handlers never return leaves a worker for others, Stats name it, and a
// dedicated one works even when all workers are taken.
func TestSEED15_BlockedHandlers(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 2})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	stuck, stuck2 := newBlocker(), newBlocker()
	defer stuck.release()
	defer stuck2.release()
	subscribe(t, topic, stuck, engine.SubscribeConfig{ID: "stuck"})
	publish(t, topic, 0, 1)
	publish(t, topic, 1, 1)
	<-stuck.in

	var got book
	third := subscribe(t, topic, &got, engine.SubscribeConfig{Start: engine.Earliest()})
	caughtUp(third)
	assert.Equal(t, 2, got.len())

	subscribe(t, topic, stuck2, engine.SubscribeConfig{ID: "stuck-too", Start: engine.Earliest()})
	<-stuck2.in
	await(func() bool { return e.Stats().Running == 2 })
	var names []string
	for _, s := range e.Stats().Topics[0].Subscriptions {
		for _, l := range s.Lanes {
			if l.Running {
				names = append(names, s.ID)
			}
		}
	}
	assert.Equal(t, []string{"stuck", "stuck-too"}, names)

	var own book
	dedicated := subscribe(t, topic, &own, engine.SubscribeConfig{Dedicated: true, Start: engine.Earliest()})
	caughtUp(dedicated)
	assert.Equal(t, 2, own.len())
}

// TestSEED01_SlowHandlersStopNobodyElse: no lock is held over a handler. While one hangs, the same topic can be published to,
// read, subscribed to and looked at, and others are delivered to.
func TestSEED01_SlowHandlersStopNobodyElse(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	b := newBlocker()
	s := subscribe(t, topic, b, engine.SubscribeConfig{ID: "slow"})
	var got book
	other := subscribe(t, topic, &got, engine.SubscribeConfig{ID: "other"})
	publish(t, topic, 0, 1)
	<-b.in
	publish(t, topic, 0, 100)
	publish(t, topic, 1, 100)
	caughtUp(other)
	assert.Equal(t, 201, got.len())
	await(func() bool { return s.Stats().Lanes[0].Running })
	assert.Len(t, e.Stats().Topics[0].Subscriptions, 2)
	require.NoError(t, s.Pause(1))
	require.NoError(t, s.Resume(1))
	third := subscribe(t, topic, ignore, engine.SubscribeConfig{Start: engine.Earliest()})
	caughtUp(third)
	third.Close()
	<-third.Done()
	require.NoError(t, topic.Flush(background))
	b.release()
	caughtUp(s)
}

// TestSubscription_SelfBlock publishes from inside a handler to the handler's own full partition: that would wait for itself,
// so it fails, in every way of publishing that waits, and goes on once there is room.
func TestSubscription_SelfBlock(t *testing.T) {
	watchdog(t)
	const n = 4
	topic := newTopic(t, bounded(n, engine.Block))
	type result struct {
		how string
		err error
	}
	results := make(chan result, 10)
	filled := make(chan struct{})
	s := subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		if m.Offset != 0 {
			return nil
		}
		<-filled
		_, err := topic.Publish(ctx, value("x"))
		results <- result{"Publish", err}
		results <- result{"PublishBatch", topic.PublishBatch(ctx, []engine.Record{value("x"), value("y")})}
		results <- result{"Flush", topic.Flush(ctx)} // nothing is under way
		return nil
	}), engine.SubscribeConfig{})
	publish(t, topic, 0, n)
	close(filled)
	assert.ErrorIs(t, (<-results).err, engine.ErrSelfBlock)
	assert.ErrorIs(t, (<-results).err, engine.ErrSelfBlock)
	<-results
	caughtUp(s)
	assert.Equal(t, engine.Offset(n), part(t, topic, 0).Next(), "what failed is not there")
	publish(t, topic, 0, 10)
}

// TestSubscription_FromInside calls everything that a handler may call of its own topic and subscription.
func TestSubscription_FromInside(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 1})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	var s *engine.Subscription
	ready, done := make(chan struct{}), make(chan error, 1)
	s = subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		<-ready
		if m.Offset > 0 || m.Partition > 0 {
			return nil
		}
		done <- func() error {
			for _, f := range []func() error{
				func() error { _, err := topic.Publish(ctx, value("x")); return err },
				func() error { return topic.TryPublish(value("x")) },
				func() error { return topic.PublishBatch(ctx, make([]engine.Record, 3)) },
				func() error {
					called := make(chan struct{})
					err := topic.PublishAsync(ctx, value("x"), func(engine.Published, error) { close(called) })
					<-called // callbacks do not need the worker that we have
					return err
				},
				func() error { return topic.Flush(ctx) },
				func() error { return s.Pause(1) },
				func() error { return s.Seek(1, engine.Latest()) },
				func() error { return s.Resume() },
				func() error {
					other, err := topic.Subscribe(ignore, engine.SubscribeConfig{Start: engine.Earliest()})
					if err == nil {
						other.Close()
					}
					return err
				},
				func() error {
					if _, err := e.CreateTopic("new", engine.TopicConfig{}); err != nil {
						return err
					}
					return e.DeleteTopic("new")
				},
				func() error {
					p, err := topic.Partition(0)
					if err != nil {
						return err
					}
					if err := p.TruncateBefore(ctx, 1); err != nil {
						return err
					}
					x, err := p.Appender(ctx)
					if err != nil {
						return err
					}
					if _, err := x.Append(ctx, value("x")); err != nil {
						return err
					}
					return x.Close()
				},
				func() error { e.Stats(); _, err := e.Describe("t"); return err },
				func() error {
					if err := e.Drain(ctx); !errors.Is(err, engine.ErrSelfBlock) {
						return fmt.Errorf("Drain: %w", err)
					}
					return nil
				},
			} {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		}()
		return nil
	}), engine.SubscribeConfig{})
	close(ready)
	publish(t, topic, 0, 1)
	require.NoError(t, <-done)
	caughtUp(s)
	assert.NoError(t, s.Err())
}

// TestSubscription_Pipeline has more handlers that publish to a full topic than there are workers, so that at times all workers
// wait for the one handler that nobody is left to run. One of them is refused and its record comes again: everything gets
// through, in order, and nothing is given up though each record has one delivery only.
func TestSubscription_Pipeline(t *testing.T) {
	watchdog(t)
	for _, workers := range []int{1, 2, 3} {
		refused := 0
		var mu sync.Mutex
		e := open(t, engine.Config{Workers: workers, Hooks: engine.Hooks{
			HandlerFailed: func(_ context.Context, _ string, m *engine.Message, err error) {
				assert.ErrorIs(t, err, engine.ErrWorkersBlocked)
				assert.Equal(t, 1, m.Attempt)
				mu.Lock()
				refused++
				mu.Unlock()
			},
			Dropped: func(context.Context, string, *engine.Message, error) { t.Error("given up") },
		}})
		const n = 20
		sources := workers + 1
		sink := create(t, e, "sink", bounded(1, engine.Block))
		var got book
		drained := subscribe(t, sink, &got, engine.SubscribeConfig{})
		require.NoError(t, drained.Pause())
		for i := range sources {
			source := create(t, e, fmt.Sprint("source-", i), engine.TopicConfig{})
			subscribe(t, source, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
				_, err := sink.Publish(ctx, value(fmt.Sprintf("%d/%02d", i, m.Offset)))
				return err
			}), engine.SubscribeConfig{MaxDeliveries: 1, Backoff: []time.Duration{time.Millisecond}})
			publish(t, source, 0, n)
		}
		await(func() bool { // all wait, whom a worker has been found for
			mu.Lock()
			defer mu.Unlock()
			return refused > 0
		})
		require.NoError(t, drained.Resume())
		require.NoError(t, e.Drain(background))
		next := make([]int, sources)
		for _, d := range got.entries() {
			var source, off int
			_, err := fmt.Sscanf(d.value, "%d/%d", &source, &off)
			require.NoError(t, err)
			assert.Equal(t, next[source], off)
			next[source]++
		}
		for i := range sources {
			assert.Equal(t, n, next[i])
		}
	}
}
