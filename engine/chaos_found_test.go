package engine_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// What TestChaos has found, each for itself.

// A gap that nobody has been told of when its owner leaves is told to the next one, whatever kind of member that is.
func TestChaos_UntoldGapIsTheNextOwners(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", bounded(4, engine.DropOldest))
	var mu sync.Mutex
	var gaps []engine.GapError
	g := newGroup(t, e, "g", engine.GroupConfig{Start: engine.Earliest(), OnGap: func(_ string, gap engine.GapError) {
		mu.Lock()
		defer mu.Unlock()
		gaps = append(gaps, gap)
	}}, "t")
	c := consumer(t, g, engine.MemberConfig{})
	publish(t, topic, 0, 3)
	ms, err := c.Poll(soon(t), 1)
	require.NoError(t, err)
	require.Len(t, ms, 1)

	publish(t, topic, 0, 10)
	first := part(t, topic, 0).First()
	require.Positive(t, first)
	c.Close()
	<-c.Done()
	require.Less(t, committed(t, g, "t", 0), first, "the position passes nothing that nobody was told of")

	var got book
	join(t, g, &got, engine.MemberConfig{})
	await(func() bool {
		s := g.Stats()
		return s.Lag() == 0 && committed(t, g, "t", 0) == part(t, topic, 0).Next()
	})
	require.Equal(t, upTo(first, part(t, topic, 0).Next()), got.offsets(0))
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, gaps, 1)
	require.LessOrEqual(t, gaps[0].From, engine.Offset(1))
	require.Equal(t, first, gaps[0].To)
}

// What was polled before the position was set cannot be committed after it.
func TestChaos_CommitToAfterReset(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{Start: engine.Earliest(), Mode: engine.Manual}, "t")
	c := consumer(t, g, engine.MemberConfig{})
	publish(t, topic, 0, 4)
	ms, err := c.Poll(soon(t), 4)
	require.NoError(t, err)
	require.NotEmpty(t, ms)

	require.NoError(t, e.ResetOffsets("g", "t", engine.Earliest(), engine.ResetOptions{Force: true}))
	require.Error(t, c.CommitTo("t", 0, 1))
	require.Zero(t, committed(t, g, "t", 0))
	_, err = c.Poll(soon(t), 4)
	require.NoError(t, err)
	require.NoError(t, c.CommitTo("t", 0, 1))
	require.Equal(t, engine.Offset(1), committed(t, g, "t", 0))
}

// What was dropped while it was held cannot be committed, what lies behind it can: whoever is told of the gap goes on after that.
func TestChaos_CommitToBehindWhatWasDropped(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	var gaps []engine.GapError // by Poll, which this goroutine calls
	g := newGroup(t, e, "g", engine.GroupConfig{Start: engine.Earliest(), Mode: engine.Manual, OnGap: func(_ string, gap engine.GapError) {
		gaps = append(gaps, gap)
	}}, "t")
	c := consumer(t, g, engine.MemberConfig{})
	publish(t, topic, 0, 4)
	ms, err := c.Poll(soon(t), 3)
	require.NoError(t, err)
	require.Len(t, ms, 3)

	require.NoError(t, part(t, topic, 0).TruncateBefore(background, 1))
	require.NoError(t, c.Pause("t")) // looks at what has become of the partition
	require.ErrorIs(t, c.CommitTo("t", 0, 3), engine.ErrFenced)
	require.Zero(t, committed(t, g, "t", 0), "nobody has been told of the gap")
	c.Close()
	<-c.Done()

	c = consumer(t, g, engine.MemberConfig{})
	ms, err = c.Poll(soon(t), 3)
	require.NoError(t, err)
	require.Equal(t, []engine.GapError{{Partition: 0, From: 0, To: 1}}, gaps)
	require.Len(t, ms, 1)
	require.Equal(t, engine.Offset(3), ms[0].Offset, "1 and 2 are committed")
	require.Equal(t, engine.Offset(3), committed(t, g, "t", 0))
}

// A partition is not another's before its gap has been told.
func TestChaos_GivenBackAfterTheGapIsTold(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	both := func(g *engine.Group) (one *engine.Consumer, join func() *engine.Consumer) {
		one = consumer(t, g, engine.MemberConfig{Name: "one"})
		return one, func() *engine.Consumer {
			other := consumer(t, g, engine.MemberConfig{Name: "other"})
			return other
		}
	}
	one, join := both(newGroup(t, e, "first", engine.GroupConfig{}, "t"))
	moves := join().Assignment()[0].Partition // as it does the next time

	var other *engine.Consumer
	g := newGroup(t, e, "g", engine.GroupConfig{Start: engine.Earliest(), RevokeTimeout: time.Hour, OnGap: func(string, engine.GapError) {
		other = join()
		require.Empty(t, other.Assignment())
	}}, "t")
	for i := range 2 {
		publish(t, topic, i, 4)
	}
	require.NoError(t, part(t, topic, moves).TruncateBefore(background, 4))
	one, join = both(g)
	_, err := one.Poll(soon(t), 1)
	require.NoError(t, err)
	if other == nil { // it has looked at the other partition first
		_, err = one.Poll(soon(t), 1)
		require.NoError(t, err)
	}
	require.Len(t, other.Assignment(), 1)
	require.Equal(t, moves, other.Assignment()[0].Partition)
	require.Equal(t, engine.Offset(4), other.Assignment()[0].Position)
}

// OnAssigned says where the partition begins, also if somebody has set the position since it was decided that it be called.
func TestChaos_AssignedPosition(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{Start: engine.Earliest()}, "t")
	in, out := make(chan []engine.Assignment), make(chan struct{})
	m := join(t, g, ignore, engine.MemberConfig{OnAssigned: func(as []engine.Assignment) {
		in <- as
		<-out
	}})
	require.Len(t, <-in, 1)
	require.NoError(t, topic.SetPartitions(2))
	publish(t, topic, 1, 5)
	require.NoError(t, m.Seek("t", 1, engine.At(3)))
	out <- struct{}{}
	as := <-in
	close(out)
	require.Len(t, as, 1)
	require.Equal(t, 1, as[0].Partition)
	require.Equal(t, engine.Offset(3), as[0].Position)
	await(func() bool { return committed(t, g, "t", 1) == 5 })
}
