package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestConsumer_LostWithRecordsOut: what a consumer that was put out had polled and not committed comes to another one.
func TestConsumer_LostWithRecordsOut(t *testing.T) {
	kinds(t, func(t *testing.T, e *engine.Engine, c engine.GroupConfig) {
		topic := create(t, e, "t", engine.TopicConfig{})
		g := newGroup(t, e, "g", c, "t")
		publish(t, topic, 0, 10)
		k := consumer(t, g, engine.MemberConfig{Name: "k"})
		ms := poll(t, k, 10)
		require.NoError(t, g.Evict("k"))
		for i := range ms {
			assert.Equal(t, fmt.Sprintf("0/%d", i), string(ms[i].Value), "valid until the next Poll")
		}
		if c.Mode == engine.Manual {
			assert.ErrorIs(t, ms[0].Ack(), engine.ErrFenced)
		}
		assert.ErrorIs(t, k.Commit(), engine.ErrRemoved)
		assert.ErrorIs(t, k.CommitTo("t", 0, 3), engine.ErrRemoved)
		_, err := k.Poll(background, 1)
		assert.ErrorIs(t, err, engine.ErrRemoved)
		k.Close()
		<-k.Done()
		if c.Mode == engine.AtMostOnce {
			assert.Equal(t, engine.Offset(10), committed(t, g, "t", 0))
			return
		}
		assert.Equal(t, engine.Offset(0), committed(t, g, "t", 0))
		next := consumer(t, g, engine.MemberConfig{})
		assert.Equal(t, upTo(0, 10), offsetsOf(poll(t, next, 100)))
	})
}

// TestConsumer_HandsOver: a partition moves when its records have been dealt with, and no record comes twice.
func TestConsumer_HandsOver(t *testing.T) {
	watchdog(t)
	for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual} {
		for _, how := range []string{"poll", "commit", "close"} {
			t.Run(fmt.Sprint(mode, how), func(t *testing.T) {
				e := open(t, engine.Config{})
				topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
				g := newGroup(t, e, "g", engine.GroupConfig{Mode: mode, Assignor: engine.Deal}, "t")
				l := newLedger(t)
				publish(t, topic, 0, 10)
				publish(t, topic, 1, 10)
				var a *engine.Consumer
				a = consumer(t, g, l.member("a", engine.MemberConfig{OnRevoked: func(as []engine.Assignment) {
					for _, x := range as {
						if how == "close" && x.Partition == 1 {
							assert.NoError(t, a.CommitTo("t", 1, 3))
							assert.NoError(t, a.Commit())
						}
					}
				}}))
				got := map[string][]engine.Offset{}
				take := func(name string, c *engine.Consumer, max int) {
					ms := poll(t, c, max)
					for i := range ms {
						key := fmt.Sprint(name, ms[i].Partition)
						got[key] = append(got[key], ms[i].Offset)
						if mode == engine.Manual && how != "close" {
							assert.NoError(t, ms[i].Ack())
						}
					}
				}
				for len(got["a0"]) == 0 || len(got["a1"]) == 0 {
					take("a", a, 5)
				}
				before := g.Stats().Partitions[1].Generation
				b := consumer(t, g, l.member("b", engine.MemberConfig{}))
				switch how {
				case "poll":
					take("a", a, 1)
				case "commit":
					require.NoError(t, a.Commit())
				default:
					a.Close()
				}
				await(func() bool { p := g.Stats().Partitions[1]; return p.Owner == "b" && p.Generation > before })
				for len(got["a1"])+len(got["b1"]) < 10 {
					take("b", b, 100)
				}
				assert.Equal(t, upTo(0, 10), append(got["a1"], got["b1"]...))
				a.Close()
				b.Close()
				<-a.Done()
				<-b.Done()
				l.closed()
				for _, how := range l.over {
					assert.Equal(t, "revoked", how)
				}
			})
		}
	}
}

// TestBUG113_ManyRebalancesBetweenPolls: after any number of them the next Poll has what there is.
func TestBUG113_ManyRebalancesBetweenPolls(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 16, Partitioner: engine.RoundRobin()})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	l := newLedger(t)
	k := consumer(t, g, l.member("k", engine.MemberConfig{}))
	for i := range rounds(300) {
		other := consumer(t, g, engine.MemberConfig{Name: "other"})
		if i%3 == 0 {
			for p := range 16 {
				publish(t, topic, p, 1)
			}
			if i%2 == 0 {
				assert.NotNil(t, poll(t, k, 1))
			}
		}
		other.Close()
		<-other.Done()
	}
	for i := range 16 {
		publish(t, topic, i, 1)
	}
	for s := g.Stats(); s.Lag() > 0; s = g.Stats() {
		_, err := k.Poll(gone(), 100)
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	}
	k.Close()
	<-k.Done()
	l.closed()
}

// TestBUG118_CommitDuringARebalance: commits return although a callback blocks, inside of it and outside.
func TestBUG118_CommitDuringARebalance(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	publish(t, topic, 0, 5)
	publish(t, topic, 1, 5)
	in, out := make(chan struct{}), make(chan struct{})
	var k *engine.Consumer
	k = consumer(t, g, engine.MemberConfig{Name: "k", OnRevoked: func(as []engine.Assignment) {
		assert.NoError(t, k.CommitSync(background))
		assert.ErrorIs(t, k.CommitSync(gone()), context.Canceled)
		in <- struct{}{}
		<-out
	}})
	for got := 0; got < 10; {
		got += len(poll(t, k, 3))
	}
	other := consumer(t, g, engine.MemberConfig{Name: "other"})
	require.NoError(t, k.Commit())
	<-in
	assert.NoError(t, k.CommitSync(background))
	assert.ErrorIs(t, k.CommitSync(gone()), context.Canceled)
	_, err := k.Poll(gone(), 1)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, other.Assignment())
	close(out)
	await(func() bool { return len(other.Assignment()) == 1 })
	assert.Equal(t, engine.Offset(5), other.Assignment()[0].Position)
	go func() { <-in }() // of Close
	k.Close()
	<-k.Done()
}

// TestConsumer_CommitToIsNoFence: what CommitTo has settled is not settled again with the rest, and counted as too late.
func TestConsumer_CommitToIsNoFence(t *testing.T) {
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	publish(t, topic, 0, 10)
	k := consumer(t, g, engine.MemberConfig{})
	poll(t, k, 10)
	require.NoError(t, k.CommitTo("t", 0, 7))
	require.NoError(t, k.Commit())
	assert.Zero(t, g.Stats().Partitions[0].Fenced)
}
