package engine_test

import (
	"context"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// kinds calls f for each kind of group and each mode.
func kinds(t *testing.T, f func(t *testing.T, e *engine.Engine, c engine.GroupConfig)) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for mode, name := range []string{"at least once", "at most once", "manual"} {
			t.Run(kind.String()+"/"+name, func(t *testing.T) {
				f(t, open(t, engine.Config{}), engine.GroupConfig{Kind: kind, Mode: engine.Mode(mode)})
			})
		}
	}
}

// TestConsumer_WhatCommits: when the position moves, in each mode.
func TestConsumer_WhatCommits(t *testing.T) {
	kinds(t, func(t *testing.T, e *engine.Engine, c engine.GroupConfig) {
		topic := create(t, e, "t", engine.TopicConfig{})
		g := newGroup(t, e, "g", c, "t")
		publish(t, topic, 0, 20)
		k := consumer(t, g, engine.MemberConfig{Name: "k"})
		at := func() engine.Offset { return committed(t, g, "t", 0) }
		assert.Equal(t, upTo(0, 5), offsetsOf(poll(t, k, 5)))
		assert.Equal(t, map[engine.Mode]engine.Offset{engine.AtMostOnce: 5}[c.Mode], at())
		ms := poll(t, k, 5)
		assert.Equal(t, upTo(5, 10), offsetsOf(ms))
		assert.Equal(t, map[engine.Mode]engine.Offset{engine.AtLeastOnce: 5, engine.AtMostOnce: 10}[c.Mode], at())
		if c.Mode == engine.Manual {
			assert.NoError(t, ms[0].Ack())
		} else {
			assert.ErrorIs(t, ms[0].Ack(), engine.ErrNoToken)
		}
		require.NoError(t, k.CommitTo("t", 0, 7))
		if c.Mode != engine.AtMostOnce {
			assert.Equal(t, engine.Offset(7), at())
		}
		require.NoError(t, k.CommitTo("t", 0, 3), "what is committed stays so")
		var out *engine.OffsetError
		assert.ErrorAs(t, k.CommitTo("t", 0, 11), &out)
		assert.ErrorAs(t, k.CommitTo("t", 0, -1), &out)
		assert.ErrorIs(t, k.CommitTo("u", 0, 3), engine.ErrUnknownTopic)
		assert.ErrorIs(t, k.CommitTo("t", 1, 3), engine.ErrUnknownPartition)
		assert.ErrorIs(t, k.CommitSync(gone()), context.Canceled)
		require.NoError(t, k.CommitSync(background))
		assert.Equal(t, engine.Offset(10), at())

		// Close commits with AtLeastOnce only; what is not committed comes to the next one.
		assert.Equal(t, upTo(10, 13), offsetsOf(poll(t, k, 3)))
		k.Close()
		<-k.Done()
		want := engine.Offset(13)
		if c.Mode == engine.Manual {
			want = 10
		}
		assert.Equal(t, want, at())
		_, err := k.Poll(background, 1)
		assert.ErrorIs(t, err, engine.ErrMemberClosed)
		assert.ErrorIs(t, k.Commit(), engine.ErrMemberClosed)
		assert.ErrorIs(t, k.CommitTo("t", 0, 3), engine.ErrMemberClosed)
		assert.ErrorIs(t, k.Seek("t", 0, engine.Earliest()), engine.ErrMemberClosed)
		assert.ErrorIs(t, k.Pause("t"), engine.ErrMemberClosed)
		k.Close()
		next := consumer(t, g, engine.MemberConfig{Name: "k"})
		offs := offsetsOf(poll(t, next, 100))
		slices.Sort(offs) // in a shared group what comes again has no order
		assert.Equal(t, upTo(want, 20), offs)
		_, err = next.Poll(background, 0)
		assert.ErrorIs(t, err, engine.ErrConfig)
	})
}

// TestConsumer_Pause: a paused partition is not polled, and a poll that waits for it goes on when it is resumed, or moved by
// a seek. What is paused is others' in a shared group.
func TestConsumer_Pause(t *testing.T) {
	kinds(t, func(t *testing.T, e *engine.Engine, c engine.GroupConfig) {
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
		g := newGroup(t, e, "g", c, "t")
		publish(t, topic, 0, 5)
		publish(t, topic, 1, 5)
		k := consumer(t, g, engine.MemberConfig{})
		require.NoError(t, k.Pause("t", 0))
		ms := poll(t, k, 100)
		for i := range ms {
			assert.Equal(t, int32(1), ms[i].Partition)
		}
		assert.Len(t, ms, 5)
		require.NoError(t, k.Pause("t"))
		_, err := k.Poll(gone(), 5)
		assert.ErrorIs(t, err, context.Canceled)
		got := make(chan []engine.Offset)
		wait := func() {
			ms, err := k.Poll(background, 100)
			assert.NoError(t, err)
			got <- offsetsOf(ms)
		}
		go wait()
		require.NoError(t, k.Resume("t", 0))
		assert.Equal(t, upTo(0, 5), <-got)
		go wait()
		require.NoError(t, k.Seek("t", 0, engine.At(3)))
		assert.Equal(t, upTo(3, 5), <-got)
		go wait()
		require.NoError(t, k.Seek("t", 1, engine.At(1)))
		require.NoError(t, k.Resume("t"))
		assert.Equal(t, upTo(1, 5), <-got)
		if c.Kind == engine.Shared {
			require.NoError(t, k.Pause("t"))
			publish(t, topic, 0, 1)
			other := consumer(t, g, engine.MemberConfig{})
			assert.Equal(t, upTo(5, 6), offsetsOf(poll(t, other, 100)))
		}
	})
}

// TestBUG068_PausedConsumer in random order while records flow and partitions move, against a model: nothing of a paused
// partition comes, and each record once.
func TestBUG068_PausedConsumer(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 3, Partitioner: engine.RoundRobin()})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	k := consumer(t, g, engine.MemberConfig{})
	rnd := rand.New(rand.NewPCG(1, 2))
	paused := map[int]bool{}
	seen := map[engine.Published]int{}
	n := rounds(3000)
	for range n {
		_, err := topic.Publish(background, value("x"))
		require.NoError(t, err)
		var parts []int
		if rnd.IntN(3) > 0 {
			parts = []int{rnd.IntN(3)}
		}
		all := parts
		if parts == nil {
			all = []int{0, 1, 2}
		}
		on := rnd.IntN(2) == 0
		for _, i := range all {
			paused[i] = on
		}
		if on {
			require.NoError(t, k.Pause("t", parts...))
		} else {
			require.NoError(t, k.Resume("t", parts...))
		}
		ms, err := k.Poll(gone(), 1+rnd.IntN(4))
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		for i := range ms {
			require.False(t, paused[int(ms[i].Partition)], "paused")
			seen[engine.Published{Partition: int(ms[i].Partition), Offset: ms[i].Offset}]++
		}
	}
	require.NoError(t, k.Resume("t"))
	for len(seen) < n {
		ms := poll(t, k, 100)
		for i := range ms {
			seen[engine.Published{Partition: int(ms[i].Partition), Offset: ms[i].Offset}]++
		}
	}
	for p, times := range seen {
		require.Equal(t, 1, times, "%+v", p)
	}
}

// TestConsumer_TwoPolls: the second of two at once is refused; Close ends one that waits.
func TestConsumer_TwoPolls(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	k := consumer(t, g, engine.MemberConfig{})
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			_, err := k.Poll(background, 1)
			if err == engine.ErrConsumerBusy {
				continue
			}
			assert.ErrorIs(t, err, engine.ErrMemberClosed)
			return
		}
	})
	await(func() bool {
		_, err := k.Poll(gone(), 1)
		return err == engine.ErrConsumerBusy
	})
	k.Close()
	wait.Wait()
	<-k.Done()
}

// TestBUG049_PollsThatAreCancelled at any moment lose nothing and repeat nothing.
func TestBUG049_PollsThatAreCancelled(t *testing.T) {
	kinds(t, func(t *testing.T, e *engine.Engine, c engine.GroupConfig) {
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2, Partitioner: engine.RoundRobin()})
		g := newGroup(t, e, "g", c, "t")
		k := consumer(t, g, engine.MemberConfig{})
		n := rounds(2000)
		var taken atomic.Int64
		var work sync.WaitGroup
		work.Go(func() {
			for i := range n {
				await(func() bool { return taken.Load() >= int64(i-2) }) // so that polls often have to wait
				_, err := topic.Publish(background, value("x"))
				assert.NoError(t, err)
			}
		})
		next := map[int32]engine.Offset{}
		got, cancelled := 0, 0
		for i := 0; got < n || cancelled == 0; i++ {
			ctx, cancel := context.WithCancel(background)
			go func() {
				for range i % 7 {
					runtime.Gosched()
				}
				cancel()
			}()
			ms, err := k.Poll(ctx, 10)
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				require.Empty(t, ms)
				cancelled++
			} else {
				require.NotEmpty(t, ms)
			}
			for i := range ms {
				require.Equal(t, next[ms[i].Partition], ms[i].Offset)
				next[ms[i].Partition]++
			}
			got += len(ms)
			taken.Store(int64(got))
			<-ctx.Done()
		}
		work.Wait()
		require.NoError(t, k.Commit())
		s := g.Stats()
		assert.Zero(t, s.Lag())
	})
}

// TestConsumer_ViewsStay checks the bytes of what was polled just before the next Poll, while segments are dropped and used
// again all the time.
func TestConsumer_ViewsStay(t *testing.T) {
	kinds(t, func(t *testing.T, e *engine.Engine, c engine.GroupConfig) {
		topic := create(t, e, "t", engine.TopicConfig{OnFull: engine.DropOldest, Retention: engine.Retention{MaxRecords: 64}, SegmentRecords: 8})
		g := newGroup(t, e, "g", c, "t")
		stop := make(chan struct{})
		var work sync.WaitGroup
		work.Go(func() {
			rnd := rand.New(rand.NewPCG(3, 4))
			for {
				select {
				case <-stop:
					return
				default:
				}
				v := make([]byte, 4+rnd.IntN(100))
				for i := range v {
					v[i] = byte(rnd.Uint32())
				}
				sum := crc32.ChecksumIEEE(v[4:])
				v[0], v[1], v[2], v[3] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
				assert.NoError(t, topic.PublishAsync(background, engine.Record{Value: v}, nil))
				runtime.Gosched() // also to the consumer, if there is one processor
			}
		})
		k := consumer(t, g, engine.MemberConfig{})
		for i := range rounds(200) {
			ms := poll(t, k, 20)
			for range i % 4 {
				runtime.Gosched()
			}
			for i := range ms {
				v := ms[i].Value
				require.Equal(t, crc32.ChecksumIEEE(v[4:]), uint32(v[0])|uint32(v[1])<<8|uint32(v[2])<<16|uint32(v[3])<<24)
			}
		}
		close(stop)
		work.Wait()
	})
}

// TestBUG101_ManyPolls: many consumers of a shared group poll with contexts that end at any moment: each record comes to one
// of them that was still asking.
func TestBUG101_ManyPolls(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2, Partitioner: engine.RoundRobin()})
	g := newGroup(t, e, "g", engine.GroupConfig{Kind: engine.Shared}, "t")
	x := newTally()
	n := rounds(4000)
	stop, end := context.WithCancel(background)
	var work sync.WaitGroup
	for i := range 16 {
		k := consumer(t, g, engine.MemberConfig{})
		h := x.handler("x")
		work.Go(func() {
			defer k.Close()
			for j := 0; stop.Err() == nil; j++ {
				ctx, cancel := context.WithCancel(stop)
				if (i+j)%3 == 0 {
					go cancel()
				}
				ms, err := k.Poll(ctx, 1+j%9)
				cancel()
				if err != nil {
					assert.ErrorIs(t, err, context.Canceled)
				}
				for i := range ms {
					_ = h.OnMessage(background, &ms[i])
				}
			}
		})
	}
	for range n {
		_, err := topic.Publish(background, value("x"))
		require.NoError(t, err)
	}
	await(func() bool { return x.total() >= n })
	end()
	work.Wait()
	x.once(t, n)
	assert.Zero(t, g.Stats().Partitions[0].Fenced)
	for i := range 2 {
		committedIs(t, g, "t", i, part(t, topic, i).Next())
	}
}
