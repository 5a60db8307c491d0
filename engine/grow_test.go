package engine_test

import (
	"context"
	"fmt"
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
