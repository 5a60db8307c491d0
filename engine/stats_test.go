package engine_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG107_StatsAreCopies takes snapshots, checks that each is consistent in itself, and scribbles over it, while everything
// they tell of changes.
func TestBUG107_StatsAreCopies(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 2, MaxMemory: 8 << 20})
	for i := range 3 {
		topic := create(t, e, fmt.Sprint("t", i), engine.TopicConfig{
			Partitions: 2, OnFull: engine.OnFull(i), Retention: engine.Retention{MaxRecords: 64}, Partitioner: engine.RoundRobin(),
		})
		subscribe(t, topic, handle(func(m *engine.Message) error {
			if m.Offset%9 == 0 && m.Attempt == 1 {
				return errPoison
			}
			return nil
		}), engine.SubscribeConfig{ID: "a", NonGating: true, Backoff: []time.Duration{1}})
	}
	var over atomic.Bool
	var work sync.WaitGroup
	for i := range 3 {
		topic, err := e.Topic(fmt.Sprint("t", i))
		require.NoError(t, err)
		work.Go(func() { // traffic
			for !over.Load() {
				_, _ = topic.Publish(background, value("x"))
				runtime.Gosched() // with one processor others would wait for their turn
			}
		})
		work.Go(func() { // churn
			for n := 0; !over.Load(); n++ {
				s, err := topic.Subscribe(ignore, engine.SubscribeConfig{NonGating: true, Start: engine.Earliest()})
				if err == nil {
					_ = s.Seek(0, engine.Latest())
					s.Close()
					<-s.Done() // or those that are ending become more and more
				}
				a, err := topic.Subscription("a")
				if err == nil {
					_ = a.Seek(n%2, engine.Earliest())
				}
				runtime.Gosched()
			}
		})
	}
	published := map[string][]engine.Offset{}
	for range rounds(600) {
		s := e.Stats()
		require.LessOrEqual(t, s.Running, s.Workers)
		require.LessOrEqual(t, s.MemoryUsed+s.MemoryKept, int64(8<<20))
		require.True(t, slices.IsSortedFunc(s.Topics, func(a, b engine.TopicStats) int { return int(a.Name[1]) - int(b.Name[1]) }))
		for i := range s.Topics {
			topic := &s.Topics[i]
			for j := range topic.Partitions {
				p := &topic.Partitions[j]
				require.LessOrEqual(t, p.First, p.Next)
				require.GreaterOrEqual(t, p.Bytes, int64(0))
				if last := published[topic.Name]; last != nil {
					require.GreaterOrEqual(t, p.Next, last[j])
				} else {
					published[topic.Name] = make([]engine.Offset, 2)
				}
				published[topic.Name][j] = p.Next
			}
			for _, sub := range topic.Subscriptions {
				for j, l := range sub.Lanes {
					p := topic.Partitions[j]
					require.Equal(t, j, l.Partition)
					require.LessOrEqual(t, l.Position, p.Next)
					require.GreaterOrEqual(t, l.Lag, int64(0))
					require.LessOrEqual(t, l.Lag, int64(64))
					require.GreaterOrEqual(t, l.LagTime, time.Duration(0))
				}
				clear(sub.Lanes)
			}
			clear(topic.Partitions)
			clear(topic.Subscriptions)
		}
		clear(s.Topics)
		topics := e.Topics()
		require.Equal(t, []string{"t0", "t1", "t2"}, topics)
		clear(topics)
	}
	over.Store(true)
	work.Wait()
}

// TestStats_Counts: at rest the counters of a topic and its subscriptions add up.
func TestStats_Counts(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 3})
	topic := create(t, e, "t", bounded(8, engine.DropOldest))
	b := newBlocker()
	s := subscribe(t, topic, b, engine.SubscribeConfig{ID: "slow"})
	publish(t, topic, 0, 1)
	<-b.in
	publish(t, topic, 0, 19)
	b.release()
	require.NoError(t, e.Drain(background))
	d, err := e.Describe("t")
	require.NoError(t, err)
	_, err = e.Describe("u")
	assert.ErrorIs(t, err, engine.ErrUnknownTopic)
	assert.Equal(t, topic.ID(), d.ID)
	assert.Equal(t, "t", d.Name)
	p := d.Partitions[0]
	assert.Equal(t, engine.Offset(20), p.Next)
	assert.Equal(t, engine.Offset(12), p.First)
	assert.Equal(t, int64(12), p.Reclaimed)
	assert.Equal(t, 8, p.Segments)
	l := d.Subscriptions[0].Lanes[0]
	assert.Equal(t, int64(20), l.Delivered+l.Lost)
	assert.Equal(t, int64(11), l.Lost)
	assert.Zero(t, l.Failed+l.Dropped+l.Redelivered+l.Lag)
	assert.Zero(t, s.Lag())
	await(func() bool { return e.Stats().Queued == 0 }) // a wake-up that came to nothing may have been late
	all := e.Stats()
	assert.Equal(t, 3, all.Workers)
	assert.Positive(t, all.MemoryUsed)
	s.Close()
	<-s.Done()
	assert.Empty(t, topic.Stats().Subscriptions, "one that has ended is not shown")
}

// TestBUG040_LagAfterTrimming: read 1 of 5, trim to 1, read 1: nothing is left; and no other cut makes it wrong.
func TestBUG040_LagAfterTrimming(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{SegmentRecords: 1})
	step := make(chan struct{})
	var got book
	s := subscribe(t, topic, handle(func(m *engine.Message) error { <-step; got.add(m); return nil }), engine.SubscribeConfig{})
	assert.Zero(t, s.Lag())
	publish(t, topic, 0, 5)
	step <- struct{}{}
	await(func() bool { return position(t, s, 0) == 1 })
	assert.Equal(t, int64(4), s.Lag())
	require.NoError(t, part(t, topic, 0).TruncateBefore(background, 4))
	assert.Equal(t, int64(1), s.Lag())
	close(step)
	caughtUp(s)
	assert.Zero(t, s.Lag())
	l := s.Stats().Lanes[0]
	assert.Equal(t, int64(5), int64(got.len())+l.Lost)
	require.NoError(t, part(t, topic, 0).TruncateBefore(background, 5))
	assert.Zero(t, s.Lag())
	require.NoError(t, s.Pause())
	publish(t, topic, 0, 3)
	assert.Equal(t, int64(3), s.Lag())
	require.NoError(t, part(t, topic, 0).TruncateBefore(background, 8))
	assert.Zero(t, s.Lag())
	require.NoError(t, s.Seek(0, engine.Earliest()))
	assert.Zero(t, s.Lag())
}

// TestSubscription_HeldBy: Stats say who keeps a full topic from making room, as it changes hands.
func TestSubscription_HeldBy(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, bounded(4, engine.Block))
	a := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "a"})
	b := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "b"})
	c := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "c", NonGating: true})
	for _, s := range []*engine.Subscription{a, b, c} {
		require.NoError(t, s.Pause())
	}
	publish(t, topic, 0, 4)
	require.NoError(t, b.Seek(0, engine.At(1)))
	done := make(chan struct{})
	go func() { defer close(done); publish(t, topic, 0, 2) }()
	held := func() string { return part(t, topic, 0).Stats().HeldBy }
	await(func() bool { return held() == "a" })
	require.NoError(t, a.Seek(0, engine.At(2)))
	await(func() bool { return held() == "b" })
	b.Close()
	<-done
	assert.Empty(t, held())
}
