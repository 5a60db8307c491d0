package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestSubscription_DefaultBackoff: a record that always fails is tried 10 times in about a minute, then given up, and the next
// one follows.
func TestSubscription_DefaultBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		start := time.Now()
		var got, told []string
		since := func() time.Duration { return time.Since(start) }
		e := open(t, engine.Config{Hooks: engine.Hooks{
			HandlerFailed: func(_ context.Context, sub string, m *engine.Message, err error) {
				assert.Equal(t, errPoison, err)
				told = append(told, fmt.Sprintf("failed %s %d/%d@%v", sub, m.Offset, m.Attempt, since()))
			},
			Dropped: func(_ context.Context, sub string, m *engine.Message, err error) {
				assert.Equal(t, errPoison, err)
				told = append(told, fmt.Sprintf("dropped %s %d/%d@%v", sub, m.Offset, m.Attempt, since()))
			},
		}})
		topic := create(t, e, "t", engine.TopicConfig{})
		s := subscribe(t, topic, handle(func(m *engine.Message) error {
			got = append(got, fmt.Sprintf("%d/%d@%v", m.Offset, m.Attempt, since()))
			if m.Offset == 0 {
				return errPoison
			}
			return nil
		}), engine.SubscribeConfig{ID: "s"})
		publish(t, topic, 0, 2)
		pass(time.Hour)
		assert.Equal(t, []string{
			"0/1@0s", "0/2@10ms", "0/3@110ms", "0/4@1.11s", "0/5@11.11s", "0/6@21.11s", "0/7@31.11s", "0/8@41.11s", "0/9@51.11s",
			"0/10@1m1.11s", "1/1@1m1.11s",
		}, got)
		require.Len(t, told, 11)
		assert.Equal(t, "failed s 0/1@0s", told[0])
		assert.Equal(t, "failed s 0/10@1m1.11s", told[9])
		assert.Equal(t, "dropped s 0/10@1m1.11s", told[10])
		l := s.Stats().Lanes[0]
		assert.Equal(t, int64(10), l.Failed)
		assert.Equal(t, int64(9), l.Redelivered)
		assert.Equal(t, int64(1), l.Dropped)
		assert.Equal(t, int64(1), l.Delivered)
		assert.Equal(t, engine.Offset(2), l.Position)
	})
}

// TestSubscription_MaxDeliveries: the first delivery counts, and without a limit a record is tried for ever.
func TestSubscription_MaxDeliveries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		topic := create(t, open(t, engine.Config{Workers: 1}), "t", engine.TopicConfig{})
		attempts := map[int]int{}
		for _, limit := range []int{1, 2, 3, engine.Unlimited} {
			subscribe(t, topic, handle(func(m *engine.Message) error {
				attempts[limit]++
				assert.Equal(t, attempts[limit], m.Attempt)
				return errPoison
			}), engine.SubscribeConfig{MaxDeliveries: limit, Backoff: []time.Duration{time.Second}})
		}
		publish(t, topic, 0, 1)
		pass(time.Hour - time.Second/2)
		assert.Equal(t, map[int]int{1: 1, 2: 2, 3: 3, engine.Unlimited: 3600}, attempts)
	})
}

// TestBUG023_BackoffOfEachRecord: records of different partitions that fail at different times come back each at its own.
func TestBUG023_BackoffOfEachRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		topic := newTopic(t, engine.TopicConfig{Partitions: 3})
		start := time.Now()
		got := make([][]time.Duration, 3)
		subscribe(t, topic, handle(func(m *engine.Message) error {
			got[m.Partition] = append(got[m.Partition], time.Since(start))
			return errPoison
		}), engine.SubscribeConfig{MaxDeliveries: 5, Backoff: []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}})
		first := []time.Duration{0, 500 * time.Millisecond, 3 * time.Second}
		for i, at := range first {
			pass(at - time.Since(start))
			publish(t, topic, i, 1)
		}
		pass(time.Hour)
		for i, at := range first {
			assert.Equal(t, []time.Duration{at, at + time.Second, at + 6*time.Second, at + 26*time.Second, at + 46*time.Second}, got[i])
		}
	})
}

// TestSubscription_OthersGoOnDuringABackoff: a failing partition holds up itself, and neither other partitions of its
// subscription nor other subscriptions, even with one worker.
func TestSubscription_OthersGoOnDuringABackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := open(t, engine.Config{Workers: 1})
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 4})
		var got, other book
		subscribe(t, topic, handle(func(m *engine.Message) error {
			if m.Partition == 2 {
				return errPoison
			}
			got.add(m)
			return nil
		}), engine.SubscribeConfig{Backoff: []time.Duration{time.Hour}})
		subscribe(t, topic, &other, engine.SubscribeConfig{})
		for i := range 4 {
			publish(t, topic, i, 10)
		}
		synctest.Wait()
		assert.Equal(t, 30, got.len())
		assert.Equal(t, 40, other.len())
	})
}

// TestStats_LagTime is the age of the oldest record that waits.
func TestStats_LagTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		topic := newTopic(t, engine.TopicConfig{})
		s := subscribe(t, topic, ignore, engine.SubscribeConfig{})
		lane := func() engine.LaneStats { return s.Stats().Lanes[0] }
		assert.Zero(t, lane().LagTime)
		require.NoError(t, s.Pause())
		publish(t, topic, 0, 1)
		pass(time.Minute)
		publish(t, topic, 0, 1)
		pass(time.Minute)
		assert.Equal(t, 2*time.Minute, lane().LagTime)
		require.NoError(t, s.Seek(0, engine.At(1)))
		assert.Equal(t, time.Minute, lane().LagTime)
		require.NoError(t, s.Resume())
		synctest.Wait()
		assert.Zero(t, lane().LagTime)
	})
}

// TestStats_RunningFor names a handler that does not return, and for how long it has not.
func TestStats_RunningFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		topic := newTopic(t, engine.TopicConfig{})
		b := newBlocker()
		s := subscribe(t, topic, b, engine.SubscribeConfig{})
		publish(t, topic, 0, 1)
		pass(time.Hour)
		l := s.Stats().Lanes[0]
		assert.True(t, l.Running)
		assert.Equal(t, time.Hour, l.RunningFor)
		assert.Equal(t, int64(1), l.Lag)
		b.release()
		synctest.Wait()
		l = s.Stats().Lanes[0]
		assert.False(t, l.Running)
		assert.Zero(t, l.RunningFor)
		assert.Equal(t, time.Hour, l.HandlerTime)
	})
}

// TestClose_Timeout hangs a handler and a callback: Close returns after its timeout and names them, and again; once they have
// returned it is done.
func TestClose_Timeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, err := engine.Open(engine.Config{CloseTimeout: 3 * time.Second})
		require.NoError(t, err)
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
		deleted := create(t, e, "deleted", engine.TopicConfig{})
		b := newBlocker()
		subscribe(t, topic, b, engine.SubscribeConfig{ID: "hung"})
		closed := subscribe(t, topic, b, engine.SubscribeConfig{ID: "closed"})
		subscribe(t, deleted, b, engine.SubscribeConfig{ID: "orphan"})
		subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "fine"})
		publish(t, topic, 1, 1)
		publish(t, deleted, 0, 1)
		require.NoError(t, part(t, topic, 1).PublishAsync(background, value("x"), func(engine.Published, error) { <-b.out }))
		synctest.Wait()
		closed.Close()
		require.NoError(t, e.DeleteTopic("deleted"))
		pass(time.Second)

		start := time.Now()
		for i := range 2 {
			err = e.Close()
			assert.Equal(t, time.Duration(i+1)*3*time.Second, time.Since(start))
			var hung *engine.HungError
			require.ErrorAs(t, err, &hung)
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.ElementsMatch(t, []string{
				fmt.Sprintf("t/hung/1 for %ds", 4+3*i), fmt.Sprintf("t/closed/1 for %ds", 4+3*i),
				fmt.Sprintf("deleted/orphan/0 for %ds", 4+3*i), "t/callback/1",
			}, hung.Handlers)
		}
		ctx, cancel := context.WithCancelCause(background)
		cancel(errPoison)
		err = e.CloseContext(ctx)
		assert.ErrorIs(t, err, errPoison)
		_, err = topic.Publish(background, value("x"))
		assert.ErrorIs(t, err, engine.ErrClosed)

		b.release()
		require.NoError(t, e.Close())
		assert.Equal(t, 6*time.Second, time.Since(start))
		require.NoError(t, e.CloseContext(ctx), "it is closed")
	})
}

// TestClose_ContextReachesHandlers: a handler that watches its context returns at Close, at once.
func TestClose_ContextReachesHandlers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, err := engine.Open(engine.Config{Hooks: engine.Hooks{Dropped: func(context.Context, string, *engine.Message, error) {
			t.Error("given up because of Close")
		}}})
		require.NoError(t, err)
		for _, end := range []func(topic *engine.Topic, s *engine.Subscription){
			func(_ *engine.Topic, s *engine.Subscription) { s.Close() },
			func(topic *engine.Topic, _ *engine.Subscription) { require.NoError(t, e.DeleteTopic(topic.Name())) },
			func(*engine.Topic, *engine.Subscription) { require.NoError(t, e.Close()) },
		} {
			topic := create(t, e, fmt.Sprint(len(e.Topics())), engine.TopicConfig{})
			s := subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, _ *engine.Message) error {
				<-ctx.Done()
				return ctx.Err()
			}), engine.SubscribeConfig{MaxDeliveries: 1})
			publish(t, topic, 0, 1)
			synctest.Wait()
			start := time.Now()
			end(topic, s)
			<-s.Done()
			assert.Zero(t, time.Since(start))
			assert.Zero(t, position(t, s, 0))
		}
	})
}

// TestDrain_Ends at its context, and says what is behind: a handler that fails for ever, one that hangs, and a partition that
// is full.
func TestDrain_Ends(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 3})
		b := newBlocker()
		defer b.release()
		subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
			switch m.Partition {
			case 0:
				return errPoison
			case 1:
				return b.OnMessage(ctx, m)
			}
			return nil
		}), engine.SubscribeConfig{ID: "s", MaxDeliveries: engine.Unlimited})
		for i := range 3 {
			publish(t, topic, i, 1)
		}
		full := create(t, e, "full", bounded(2, engine.Block))
		paused := subscribe(t, full, ignore, engine.SubscribeConfig{ID: "paused"})
		require.NoError(t, paused.Pause())
		publish(t, full, 0, 2)
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		start := time.Now()
		err := e.Drain(ctx)
		assert.Equal(t, time.Minute, time.Since(start))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Contains(t, err.Error(), "[t/s/0 t/s/1]")

		// A publisher that has been accepted, and waits for a paused subscription.
		ctx, cancel = context.WithCancel(background)
		published := make(chan error)
		go func() {
			_, err := full.Publish(ctx, value("x"))
			published <- err
		}()
		synctest.Wait()
		cancel()
		assert.ErrorIs(t, <-published, engine.ErrDraining, "it came too late")
	})
}

// TestDrain_FullPartition: a publish that was accepted before and waits for a paused subscription is under way.
func TestDrain_FullPartition(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := open(t, engine.Config{})
		topic := create(t, e, "full", bounded(2, engine.Block))
		paused := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "paused"})
		require.NoError(t, paused.Pause())
		publish(t, topic, 0, 2)
		published := make(chan error, 1)
		go func() {
			_, err := topic.Publish(background, value("x"))
			published <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(background, time.Minute)
		defer cancel()
		err := e.Drain(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Contains(t, err.Error(), `full/0 held by "paused"`)
		require.NoError(t, paused.Resume())
		require.NoError(t, e.Drain(background))
		require.NoError(t, <-published)
		assert.Equal(t, engine.Offset(3), position(t, paused, 0))
	})
}

// TestDrain_WaitsForRetries until the record succeeds or is dropped.
func TestDrain_WaitsForRetries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{})
		s := subscribe(t, topic, handle(func(m *engine.Message) error {
			if m.Offset == 0 || m.Attempt < 3 {
				return errPoison
			}
			return nil
		}), engine.SubscribeConfig{MaxDeliveries: 5, Backoff: []time.Duration{time.Second}})
		publish(t, topic, 0, 2)
		start := time.Now()
		require.NoError(t, e.Drain(background))
		assert.Equal(t, 6*time.Second, time.Since(start))
		l := s.Stats().Lanes[0]
		assert.Equal(t, int64(1), l.Dropped)
		assert.Equal(t, int64(1), l.Delivered)
		assert.Zero(t, l.Lag)
		assert.True(t, errors.Is(e.Drain(background), nil), "again")
	})
}
