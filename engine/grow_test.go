package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// grow adds partitions.
func grow(t testing.TB, topic *engine.Topic, n int) {
	t.Helper()
	require.NoError(t, topic.SetPartitions(n))
	require.Equal(t, n, topic.Partitions())
}

// TestSetPartitions: everything that says or uses the number of partitions goes by the new one.
func TestSetPartitions(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.FirstAt(engine.TopicConfig{Partitions: 2, Partitioner: engine.RoundRobin()}, 100))
	s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "s"})
	_, err := topic.Partition(2)
	require.ErrorIs(t, err, engine.ErrUnknownPartition)
	_, err = s.Position(2)
	require.ErrorIs(t, err, engine.ErrUnknownPartition)

	grow(t, topic, 5)
	assert.Equal(t, 5, topic.Config().Partitions)
	for range 10 {
		_, err := topic.Publish(background, value("x"))
		require.NoError(t, err)
	}
	require.NoError(t, topic.PublishBatch(background, make([]engine.Record, 5)))
	require.NoError(t, topic.Flush(background))
	caughtUp(s)
	stats, err := e.Describe("t")
	require.NoError(t, err)
	require.Len(t, stats.Partitions, 5)
	require.Len(t, stats.Subscriptions[0].Lanes, 5)
	for i := range 5 {
		p := part(t, topic, i)
		assert.Equal(t, i, p.Index())
		assert.Same(t, topic, p.Topic())
		assert.Equal(t, engine.Offset(100), p.First())
		assert.Equal(t, engine.Offset(103), p.Next())
		assert.Equal(t, engine.Offset(103), position(t, s, i))
		assert.Equal(t, i, stats.Partitions[i].Partition)
		assert.Equal(t, int64(3), stats.Subscriptions[0].Lanes[i].Delivered)
		recs := make([]engine.Record, 4)
		n, err := p.ReadAt(100, recs)
		require.NoError(t, err)
		assert.Equal(t, 3, n)
		assert.Equal(t, int32(i), recs[0].Partition)
		require.NoError(t, s.Seek(i, engine.Last(1)))
	}
	_, err = topic.Partition(5)
	assert.ErrorIs(t, err, engine.ErrUnknownPartition)
	assert.ErrorIs(t, s.Seek(5, engine.Earliest()), engine.ErrUnknownPartition)
}

// TestSetPartitions_AfterTheEnd: a topic that has ended does not grow, and says why; nor does one that drains.
func TestSetPartitions_AfterTheEnd(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	a, b := create(t, e, "a", engine.TopicConfig{}), create(t, e, "b", engine.TopicConfig{})
	require.NoError(t, e.DeleteTopic("a"))
	assert.ErrorIs(t, a.SetPartitions(2), engine.ErrTopicDeleted)
	assert.ErrorIs(t, a.SetPartitions(1), engine.ErrTopicDeleted)
	require.NoError(t, e.Drain(background))
	assert.ErrorIs(t, b.SetPartitions(2), engine.ErrDraining)
	require.NoError(t, e.Close())
	assert.ErrorIs(t, b.SetPartitions(2), engine.ErrClosed)
	assert.ErrorIs(t, b.SetPartitions(0), engine.ErrConfig)
	assert.Equal(t, 1, b.Partitions())
}

// TestSetPartitions_EndInBetween: partitions that nobody can publish to yet end with their topic, and drain with it. Subscriptions
// that come in between have a lane for them, and Stats show both.
func TestSetPartitions_EndInBetween(t *testing.T) {
	watchdog(t)
	for _, end := range []struct {
		cause error
		f     func(e *engine.Engine) error
	}{
		{engine.ErrTopicDeleted, func(e *engine.Engine) error { return e.DeleteTopic("t") }},
		{engine.ErrDraining, func(e *engine.Engine) error { return e.Drain(background) }},
		{engine.ErrClosed, func(e *engine.Engine) error { return e.Close() }},
	} {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{Partitioner: engine.Explicit()})
		early := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "early"})
		appear, err := topic.Coming(3)
		require.NoError(t, err)
		late := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "late"})
		assert.Equal(t, 1, topic.Partitions())
		_, err = topic.Publish(background, engine.Record{Partition: 2})
		assert.ErrorIs(t, err, engine.ErrUnknownPartition)
		stats := topic.Stats()
		assert.Len(t, stats.Partitions, 3)
		assert.Len(t, stats.Subscriptions[0].Lanes, 3)
		assert.Len(t, stats.Subscriptions[1].Lanes, 3)
		require.NoError(t, early.Seek(2, engine.Since(time.Now())))
		require.NoError(t, end.f(e))
		appear()
		assert.Equal(t, 3, topic.Partitions())
		_, err = topic.Publish(background, engine.Record{Partition: 2})
		assert.ErrorIs(t, err, end.cause)
		_, err = topic.Coming(4)
		assert.ErrorIs(t, err, end.cause)
		require.NoError(t, e.Close())
		<-early.Done()
		<-late.Done()
	}
}

// TestSetPartitions_FromInside: handlers, callbacks, hooks and partitioners may make the topic grow that they work for.
func TestSetPartitions_FromInside(t *testing.T) {
	watchdog(t)
	var topic *engine.Topic
	more := func() { assert.NoError(t, topic.SetPartitions(topic.Partitions()+1)) }
	e := open(t, engine.Config{Workers: 1, Hooks: engine.Hooks{
		HandlerFailed: func(context.Context, string, *engine.Message, error) { more() },
	}})
	armed := false
	topic = create(t, e, "t", engine.TopicConfig{Partitioner: engine.PartitionerFunc(func(_ *engine.Record, n int) int {
		if armed {
			more()
			assert.Less(t, n, topic.Partitions())
		}
		return n - 1
	})})
	var got book
	s := subscribe(t, topic, handle(func(m *engine.Message) error {
		got.add(m)
		if string(m.Value) == "grow" {
			more()
			return errPoison
		}
		return nil
	}), engine.SubscribeConfig{MaxDeliveries: 1})
	_, err := topic.Publish(background, value("grow"))
	require.NoError(t, err)
	caughtUp(s)
	require.Equal(t, 3, topic.Partitions(), "the handler, and the hook")
	require.NoError(t, topic.PublishAsync(background, value("x"), func(_ engine.Published, err error) {
		assert.NoError(t, err)
		more()
	}))
	require.NoError(t, topic.Flush(background))
	require.Equal(t, 4, topic.Partitions())

	armed = true // each record of the batch adds a partition, and all go by the number there was
	rs := make([]engine.Record, 3)
	require.NoError(t, topic.PublishBatch(background, rs))
	for i, r := range rs {
		assert.Equal(t, int32(3), r.Partition)
		assert.Equal(t, engine.Offset(i), r.Offset)
	}
	require.Equal(t, 7, topic.Partitions())
	at, err := topic.Publish(background, value("x"))
	require.NoError(t, err)
	assert.Equal(t, engine.Published{Partition: 6}, at)
	caughtUp(s)
	assert.Equal(t, upTo(0, 3), got.offsets(3))
	assert.Equal(t, upTo(0, 1), got.offsets(6))
	assert.Equal(t, 8, topic.Partitions())
}

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

// TestSetPartitions_Policies: the limits of the topic hold in new partitions, and so does what subscriptions hold back there.
func TestSetPartitions_Policies(t *testing.T) {
	watchdog(t)
	for _, full := range []engine.OnFull{engine.Block, engine.Reject, engine.DropOldest} {
		topic := newTopic(t, bounded(3, full))
		var gaps []engine.GapError
		var got book
		s := subscribe(t, topic, &got, engine.SubscribeConfig{ID: "s", OnGap: func(g engine.GapError) { gaps = append(gaps, g) }})
		require.NoError(t, s.Pause())
		grow(t, topic, 2)
		p := part(t, topic, 1)
		publish(t, topic, 1, 3)
		if full == engine.DropOldest {
			publish(t, topic, 1, 3)
			require.NoError(t, s.Resume())
			caughtUp(s)
			assert.Equal(t, upTo(3, 6), got.offsets(1))
			assert.Equal(t, []engine.GapError{{Partition: 1, From: 0, To: 3}}, gaps)
			continue
		}
		more := make(chan error, 1)
		if full == engine.Reject {
			require.ErrorIs(t, p.TryPublish(value("x")), engine.ErrFull)
			more <- nil
		} else {
			go func() { _, err := p.Publish(background, value("x")); more <- err }()
			await(func() bool { s := p.Stats(); return s.Full && s.HeldBy == "s" })
		}
		require.NoError(t, s.Resume())
		require.NoError(t, <-more)
		caughtUp(s)
		assert.Equal(t, upTo(0, p.Next()), got.offsets(1))
		assert.Empty(t, gaps)
	}
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

// TestSetPartitions_MaxMemory: partitions take no memory before they hold records, and then what the engine has.
func TestSetPartitions_MaxMemory(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{MaxMemory: 8 << 10})
	topic := create(t, e, "t", engine.TopicConfig{OnFull: engine.Reject, SegmentBytes: 4 << 10, Partitioner: engine.Explicit()})
	publish(t, topic, 0, 1)
	used := e.Stats().MemoryUsed
	grow(t, topic, 100)
	assert.Equal(t, used, e.Stats().MemoryUsed)
	var refused error
	for i := int32(1); refused == nil; i++ {
		require.Less(t, i, int32(100), "there is no end to it")
		_, refused = topic.Publish(background, engine.Record{Partition: i, Value: make([]byte, 2<<10)})
	}
	assert.ErrorIs(t, refused, engine.ErrFull)
	assert.LessOrEqual(t, e.Stats().MemoryUsed, int64(8<<10))
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

// TestBUG116_GrowthMakesDenseNumbers grows 1 to 4, and on by several at once, and asks for nonsense in between, while others
// publish by key: numbers have no gap, the most that anybody asked for is what there is, and every key lies where its hash
// says for one of the numbers that there have been.
func TestBUG116_GrowthMakesDenseNumbers(t *testing.T) {
	watchdog(t)
	for _, n := range []int{1, 4, 4} {
		topic := newTopic(t, engine.TopicConfig{})
		grow(t, topic, n)
		for _, bad := range []struct {
			n   int
			err error
		}{{n - 1, engine.ErrShrink}, {0, engine.ErrConfig}, {-1, engine.ErrConfig}, {1_000_000, engine.ErrConfig}, {1<<16 + 1, engine.ErrConfig}} {
			if bad.n == 0 {
				bad.err = engine.ErrConfig
			}
			require.ErrorIs(t, topic.SetPartitions(bad.n), bad.err, "%d to %d", n, bad.n)
			require.Equal(t, n, topic.Partitions())
		}
		grow(t, topic, n)
	}

	for range rounds(100) {
		topic := newTopic(t, engine.TopicConfig{})
		byKey := engine.ByKey()
		var moved atomic.Int64
		stop := make(chan struct{})
		publisher := func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				r := engine.Record{Key: fmt.Append(nil, i%50)}
				least := topic.Partitions()
				at, err := topic.Publish(background, r)
				if !assert.NoError(t, err) {
					return
				}
				most := topic.Partitions()
				ok := false
				for n := least; n <= most; n++ {
					ok = ok || byKey.Partition(&r, n) == at.Partition
				}
				assert.True(t, ok, "key %s is in partition %d, when there were %d to %d", r.Key, at.Partition, least, most)
				if at.Partition > 0 {
					moved.Add(1)
				}
			}
		}
		grower := func(to ...int) func() {
			return func() {
				for _, n := range to {
					if err := topic.SetPartitions(n); err != nil {
						assert.ErrorIs(t, err, engine.ErrShrink)
						assert.Greater(t, topic.Partitions(), n)
					}
				}
			}
		}
		go func() {
			defer close(stop)
			together(1, grower(2, 3, 5, 8), grower(4, 6), grower(8, 7), grower(3, 2))
			await(func() bool { return moved.Load() > 0 })
		}()
		together(1, publisher, publisher)
		require.Equal(t, 8, topic.Partitions())
		for i := range 8 {
			require.Equal(t, i, part(t, topic, i).Index())
		}
		require.NotZero(t, moved.Load())
		stats := topic.Stats()
		for i, p := range stats.Partitions {
			require.Equal(t, i, p.Partition)
		}
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
