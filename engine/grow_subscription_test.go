package engine_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestSetPartitions_Paused: a subscription that is paused as a whole is paused in the new partitions, too, until it is resumed as a
// whole; one of which some partitions are paused is not.
func TestSetPartitions_Paused(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{})
	var whole, part book
	a := subscribe(t, topic, &whole, engine.SubscribeConfig{ID: "a"})
	b := subscribe(t, topic, &part, engine.SubscribeConfig{ID: "b"})
	require.NoError(t, a.Pause())
	require.NoError(t, a.Resume(0))
	require.NoError(t, b.Pause(0))
	paused := func(s *engine.Subscription) (all []bool) {
		for _, l := range s.Stats().Lanes {
			all = append(all, l.Paused)
		}
		return all
	}
	grow(t, topic, 3)
	assert.Equal(t, []bool{false, true, true}, paused(a))
	assert.Equal(t, []bool{true, false, false}, paused(b))
	publish(t, topic, 0, 1)
	publish(t, topic, 1, 2)
	publish(t, topic, 2, 2)
	await(func() bool { return part.len() == 4 && whole.len() == 1 })
	caughtUpBut := func(s *engine.Subscription, lag int64) { await(func() bool { return s.Drained() && s.Lag() == lag }) }
	caughtUpBut(a, 4)
	require.NoError(t, a.Resume(2))
	caughtUpBut(a, 2)
	grow(t, topic, 4)
	assert.Equal(t, []bool{false, true, false, true}, paused(a))
	require.NoError(t, a.Resume())
	grow(t, topic, 5)
	assert.Equal(t, []bool{false, false, false, false, false}, paused(a))
	publish(t, topic, 3, 1)
	publish(t, topic, 4, 1)
	caughtUp(a)
	assert.Equal(t, 7, whole.len())
	require.NoError(t, a.Pause(7-3), "a partition that is new")
	assert.ErrorIs(t, a.Pause(5), engine.ErrUnknownPartition)
}

// TestSetPartitions_Remembered: a named subscription that ended before there were more partitions, or while they came, finds
// itself at the first record of the new ones when it comes back. What was dropped there it gets as a gap. If it asks for a
// start it gets that one.
func TestSetPartitions_Remembered(t *testing.T) {
	watchdog(t)
	for _, inside := range []bool{false, true} { // whether its handler still runs when the topic grows
		topic := newTopic(t, bounded(3, engine.DropOldest))
		b := newBlocker()
		s := subscribe(t, topic, b, engine.SubscribeConfig{ID: "s"})
		publish(t, topic, 0, 2)
		<-b.in
		if !inside {
			b.release()
			caughtUp(s)
		}
		s.Close()
		grow(t, topic, 3)
		publish(t, topic, 1, 2)
		publish(t, topic, 2, 5)
		if inside {
			b.release()
		}
		<-s.Done()
		require.Len(t, s.Stats().Lanes, 1)
		for _, c := range []engine.SubscribeConfig{{ID: "s", Start: engine.Latest()}, {ID: "other"}} {
			s := subscribe(t, topic, ignore, c)
			assert.Equal(t, engine.Offset(2), position(t, s, 1))
			assert.Zero(t, s.Lag())
			s.Close()
			<-s.Done()
		}
		require.NoError(t, topic.ForgetPositions("s"))
	}

	topic := newTopic(t, bounded(3, engine.DropOldest))
	s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "s"})
	publish(t, topic, 0, 2)
	caughtUp(s)
	s.Close()
	<-s.Done()
	grow(t, topic, 3)
	publish(t, topic, 1, 2)
	publish(t, topic, 2, 5)
	var got book
	var gaps []engine.GapError
	s = subscribe(t, topic, &got, engine.SubscribeConfig{ID: "s", OnGap: func(g engine.GapError) { gaps = append(gaps, g) }})
	caughtUp(s)
	assert.Empty(t, got.offsets(0))
	assert.Equal(t, upTo(0, 2), got.offsets(1))
	assert.Equal(t, upTo(2, 5), got.offsets(2))
	assert.Equal(t, []engine.GapError{{Partition: 2, From: 0, To: 2}}, gaps)
	s.Close()
	<-s.Done()

	// And back again, now with all of them remembered.
	grow(t, topic, 4)
	publish(t, topic, 2, 1)
	publish(t, topic, 3, 1)
	s = subscribe(t, topic, &got, engine.SubscribeConfig{ID: "s"})
	caughtUp(s)
	assert.Equal(t, upTo(2, 6), got.offsets(2))
	assert.Equal(t, upTo(0, 1), got.offsets(3))
	assert.Equal(t, upTo(0, 2), got.offsets(1), "not again")
}

// TestSetPartitions_Evicted: a subscription that lags too far behind in a new partition ends as a whole.
func TestSetPartitions_Evicted(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{})
	b := newBlocker()
	s := subscribe(t, topic, b, engine.SubscribeConfig{ID: "s", MaxLag: 3})
	grow(t, topic, 2)
	publish(t, topic, 1, 3)
	<-b.in
	require.NoError(t, s.Err())
	publish(t, topic, 1, 1)
	await(func() bool { return s.Err() != nil })
	assert.ErrorIs(t, s.Err(), engine.ErrEvicted)
	select {
	case <-s.Done():
		t.Error("done, and its handler runs")
	default:
	}
	b.release()
	<-s.Done()
}

// TestSetPartitions_HungByName: Close names a handler that hangs in a partition that came later.
func TestSetPartitions_HungByName(t *testing.T) {
	watchdog(t)
	e, err := engine.Open(engine.Config{CloseTimeout: time.Millisecond})
	require.NoError(t, err)
	topic := create(t, e, "t", engine.TopicConfig{})
	b := newBlocker()
	subscribe(t, topic, b, engine.SubscribeConfig{ID: "s", Dedicated: true})
	grow(t, topic, 3)
	publish(t, topic, 2, 1)
	<-b.in
	var hung *engine.HungError
	require.ErrorAs(t, e.Close(), &hung)
	require.NotEmpty(t, hung.Handlers) // a hook may not have been told in so short a time either
	assert.Contains(t, hung.Handlers[0], "t/s/2 for ")
	b.release()
	require.NoError(t, e.CloseContext(soon(t)))
}

// TestSetPartitions_Drain: Drain waits for what is in partitions that have come, and what handlers publish there.
func TestSetPartitions_Drain(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitioner: engine.Explicit()})
	var got atomic.Int64
	s := subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		got.Add(1)
		if m.Partition+1 < int32(topic.Partitions()) {
			_, err := topic.Publish(ctx, engine.Record{Partition: m.Partition + 1})
			return err
		}
		return nil
	}), engine.SubscribeConfig{})
	require.NoError(t, s.Pause())
	publish(t, topic, 0, 10)
	grow(t, topic, 6)
	require.NoError(t, s.Resume())
	require.NoError(t, e.Drain(soon(t)))
	assert.EqualValues(t, 60, got.Load())
	_, err := topic.Publish(background, engine.Record{Partition: 5})
	assert.ErrorIs(t, err, engine.ErrDraining)
}

// TestSetPartitions_KindsOfSubscription: batches, dedicated goroutines, at most once and not gating: all get the new ones.
func TestSetPartitions_KindsOfSubscription(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{})
	var got [5]atomic.Int64
	count := func(i int) engine.Handler { return handle(func(*engine.Message) error { got[i].Add(1); return nil }) }
	subs := []*engine.Subscription{
		subscribe(t, topic, batchFunc(func(_ context.Context, ms []engine.Message) error { got[0].Add(int64(len(ms))); return nil }),
			engine.SubscribeConfig{BatchSize: 3}),
		subscribe(t, topic, count(1), engine.SubscribeConfig{Dedicated: true}),
		subscribe(t, topic, count(2), engine.SubscribeConfig{Mode: engine.AtMostOnce}),
		subscribe(t, topic, count(3), engine.SubscribeConfig{NonGating: true, Start: engine.Earliest()}),
		subscribe(t, topic, count(4), engine.SubscribeConfig{MaxConcurrency: 1, Gap: engine.FailOnGap}),
	}
	grow(t, topic, 4)
	for i := range 4 {
		publish(t, topic, i, 25)
	}
	caughtUp(subs...)
	for i := range got {
		assert.EqualValues(t, 100, got[i].Load(), "kind %d", i)
	}
}

// TestBUG038_SubscriptionsNoticeNewPartitions: a topic grows 2 to 5 to 6 while subscriptions are at work and come, and records are
// published to new partitions the moment anybody can see these: each subscription that was there gets all, whatever it had
// started with; those that come later get what they ask for.
func TestBUG038_SubscriptionsNoticeNewPartitions(t *testing.T) {
	watchdog(t)
	for i := range rounds(100) {
		topic := newTopic(t, engine.TopicConfig{Partitions: 2, Partitioner: engine.RoundRobin()})
		var books [4]book
		subs := []*engine.Subscription{
			subscribe(t, topic, &books[0], engine.SubscribeConfig{ID: "latest"}),
			subscribe(t, topic, &books[1], engine.SubscribeConfig{ID: "earliest", Start: engine.Earliest(), NonGating: true}),
			subscribe(t, topic, &books[2], engine.SubscribeConfig{Start: engine.Last(0), Dedicated: i%2 == 0}),
		}
		const each = 8
		newest := func() { // publishes to the newest partition as soon as it is there
			for seen := 2; seen < 6; {
				for n := topic.Partitions(); seen < n; seen++ {
					publish(t, topic, seen, each)
				}
			}
		}
		var wide atomic.Int64
		all := func() { // publishes anywhere
			for topic.Partitions() < 6 || wide.Load() == 0 {
				at, err := topic.Publish(background, value("x"))
				if !assert.NoError(t, err) {
					return
				}
				if at.Partition >= 2 {
					wide.Add(1)
				}
				runtime.Gosched() // to the one that adds partitions
			}
		}
		var late *engine.Subscription
		together(1, newest, all, all,
			func() {
				assert.NoError(t, topic.SetPartitions(5))
				assert.NoError(t, topic.SetPartitions(6))
			},
			func() {
				var err error
				late, err = topic.Subscribe(&books[3], engine.SubscribeConfig{Start: engine.Earliest()})
				assert.NoError(t, err)
			},
			func() { // one that comes and goes meanwhile
				s, err := topic.Subscribe(ignore, engine.SubscribeConfig{ID: "guest"})
				if assert.NoError(t, err) {
					s.Close()
					<-s.Done()
				}
			},
		)
		caughtUp(append(subs, late)...)
		for part := range int32(6) {
			next := topicNext(t, topic, int(part))
			if part >= 2 {
				require.GreaterOrEqual(t, next, engine.Offset(each))
			}
			for j := range books {
				require.Equal(t, upTo(0, next), books[j].offsets(part), "subscription %d, partition %d", j, part)
			}
		}
	}
}

// topicNext returns the end of a partition.
func topicNext(t testing.TB, topic *engine.Topic, i int) engine.Offset {
	return part(t, topic, i).Next()
}

// TestBUG034_ConcurrencyHoldsForWhatExists: the limit of a subscription holds for all of its partitions together, also if
// there were fewer than that when it began, and for those that are at work already.
func TestBUG034_ConcurrencyHoldsForWhatExists(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 8})
	topic := create(t, e, "t", engine.TopicConfig{})
	b := newBlocker()
	s := subscribe(t, topic, b, engine.SubscribeConfig{ID: "s", MaxConcurrency: 2})
	publish(t, topic, 0, 1)
	<-b.in
	grow(t, topic, 5)
	for i := range 5 {
		publish(t, topic, i, 1)
	}
	<-b.in
	running := func() (n int) {
		for _, l := range s.Stats().Lanes {
			if l.Running {
				n++
			}
		}
		return n
	}
	free := subscribe(t, topic, ignore, engine.SubscribeConfig{Start: engine.Earliest()}) // there are workers enough for others
	caughtUp(free)
	assert.Equal(t, 2, running())
	assert.Empty(t, b.in)
	b.release()
	caughtUp(s)
	assert.False(t, errors.Is(s.Err(), engine.ErrEvicted))
}
