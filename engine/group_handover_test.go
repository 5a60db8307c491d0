package engine_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestGroup_Assignors shares six partitions of one topic and three of another out, by each of the assignors.
func TestGroup_Assignors(t *testing.T) {
	watchdog(t)
	for assignor, want := range map[engine.Assignor][2][]string{
		engine.Range: {
			{"a", "a", "a", "b", "b", "b", "a", "a", "b"},
			{"a", "a", "b", "b", "c", "c", "a", "b", "c"},
		},
		engine.Deal: {
			{"a", "b", "a", "b", "a", "b", "a", "b", "a"},
			{"a", "b", "c", "a", "b", "c", "a", "b", "c"},
		},
	} {
		t.Run(assignor.String(), func(t *testing.T) {
			e := open(t, engine.Config{})
			create(t, e, "x", engine.TopicConfig{Partitions: 6})
			create(t, e, "y", engine.TopicConfig{Partitions: 3})
			g := newGroup(t, e, "g", engine.GroupConfig{Assignor: assignor}, "x", "y")
			assert.Equal(t, []string{"", "", "", "", "", "", "", "", ""}, owners(g))
			join(t, g, ignore, engine.MemberConfig{Name: "b"})
			a := join(t, g, ignore, engine.MemberConfig{Name: "a"})
			settledAs(g, want[0]...)
			join(t, g, ignore, engine.MemberConfig{Name: "c"})
			settledAs(g, want[1]...)
			a.Close()
			<-a.Done()
			await(func() bool {
				n := map[string]int{}
				for _, o := range owners(g) {
					n[o]++
				}
				return n["a"] == 0 && n[""] == 0 && max(n["b"], n["c"])-min(n["b"], n["c"]) <= 1
			})
		})
	}
}

// TestGroup_StickyMovesFew: members come and go, and of the partitions of those that stay only as many move as have to, each
// with one pair of callbacks; the others go on without a break.
func TestGroup_StickyMovesFew(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	create(t, e, "t", engine.TopicConfig{Partitions: 6})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	l := newLedger(t)
	a := join(t, g, ignore, l.member("a", engine.MemberConfig{}))
	settledAs(g, "a", "a", "a", "a", "a", "a")
	assert.Equal(t, []string{"a assigned t/0 t/1 t/2 t/3 t/4 t/5"}, l.take())
	before := a.Assignment()
	b := join(t, g, ignore, l.member("b", engine.MemberConfig{}))
	await(func() bool { return len(b.Assignment()) == 3 && !describe(t, g, "b").Calling })
	lines := l.take()
	assert.Equal(t, map[string]int{"a revoked": 3, "b assigned": 3}, counts(lines))
	assert.Contains(t, lines[0], "a revoked", "who gives back is told first")
	after := a.Assignment()
	assert.Len(t, after, 3)
	assert.Subset(t, before, after, "under the generation that they had")
	b.Close()
	<-b.Done()
	settledAs(g, "a", "a", "a", "a", "a", "a")
	assert.Subset(t, a.Assignment(), after)
	assert.Equal(t, map[string]int{"b revoked": 3, "a assigned": 3}, counts(l.take()))
	a.Close()
	<-a.Done()
	assert.Equal(t, map[string]int{"a revoked": 6}, counts(l.take()))
	l.closed()
	assert.ErrorIs(t, a.Err(), engine.ErrMemberClosed)
	assert.Empty(t, a.Assignment())
}

// TestGroup_OnlyMovedPartitionsStop: while a partition waits to be given back, because its handler is busy, its owner gets the
// records of the others.
func TestGroup_OnlyMovedPartitionsStop(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 4})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	g := newGroup(t, e, "g", engine.GroupConfig{Assignor: engine.Deal}, "t")
	block := newBlocker()
	var other, late book
	a := join(t, g, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		if m.Partition == 1 {
			return block.OnMessage(ctx, m)
		}
		return other.OnMessage(ctx, m)
	}), engine.MemberConfig{Name: "a"})
	publish(t, topic, 1, 5)
	<-block.in
	b := join(t, g, &late, engine.MemberConfig{Name: "b"})
	s := g.Stats()
	assert.Equal(t, "a", s.Partitions[1].Owner)
	assert.True(t, s.Partitions[1].Revoking)
	assert.Len(t, a.Assignment(), 1, "what is to be given back is the member's no more")
	assert.Equal(t, 1, describe(t, g, "a").Running, "and yet it shows who is busy there")
	assert.Empty(t, b.Assignment())
	publish(t, topic, 0, 100)
	await(func() bool { return other.len() == 100 })
	assert.Zero(t, late.len())
	block.release()
	await(func() bool { return late.len() == 4 })
	assert.Equal(t, upTo(1, 5), late.offsets(1), "nothing comes twice, and nothing in between")
	assert.Equal(t, upTo(0, 100), other.offsets(0))
}

// TestBUG016_NothingFlowsToWhoIsRevoked moves partitions to and fro under a steady stream, with callbacks that take their
// time: every record comes once.
func TestBUG016_NothingFlowsToWhoIsRevoked(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 4, Partitioner: engine.RoundRobin()})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	x, l := newTally(), newLedger(t)
	yield := func([]engine.Assignment) {
		for range 20 {
			runtime.Gosched()
		}
	}
	slow := engine.MemberConfig{OnAssigned: yield, OnRevoked: yield}
	a := join(t, g, x.handler("a"), l.member("a", slow))
	n := rounds(4000)
	var b *engine.Member
	had := 0 // what b had before it joined
	for i := range n {
		_, err := topic.Publish(background, value("x"))
		require.NoError(t, err)
		if i%(n/20) != 0 {
			continue
		}
		if b == nil {
			had = x.of("b")
			b = join(t, g, x.handler("b"), l.member("b", slow))
			await(func() bool { return len(b.Assignment()) == 2 && !describe(t, g, "b").Calling })
		} else {
			await(func() bool { return x.of("b") > had }) // two of the partitions are its own, and some records went there
			b.Close()
			b = nil
		}
	}
	require.NoError(t, e.Drain(soon(t)))
	x.once(t, n)
	a.Close()
	<-a.Done()
	await(func() bool { return len(names(g)) == 0 })
	l.closed()
}

// TestBUG053_StaleAssignment: a member that leaves while it is told of its partitions never gets a record of them, nor does
// the one of its name that comes after it get them twice.
func TestBUG053_StaleAssignment(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 3})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	l, x := newLedger(t), newTally()
	out := make(chan struct{})
	for i := range 5 {
		name := "m"
		m := join(t, g, x.handler("stale"), l.member(name, engine.MemberConfig{OnAssigned: func([]engine.Assignment) { <-out }}))
		if i%2 == 0 {
			await(func() bool { return describe(t, g, name).Calling })
		}
		m.Close()
	}
	last := join(t, g, x.handler("last"), l.member("m", engine.MemberConfig{}))
	for i := range 3 {
		publish(t, topic, i, 5)
	}
	close(out)
	await(func() bool { return x.total() == 15 })
	x.once(t, 15)
	assert.Zero(t, x.of("stale"))
	last.Close()
	<-last.Done()
	await(func() bool { return len(names(g)) == 0 })
	l.closed()
}

// TestGroup_HandlersThatEndBadly panic or end their goroutine, in every kind of group: that is a failure, and the record comes
// again.
func TestGroup_HandlersThatEndBadly(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.Manual} {
			e := open(t, engine.Config{Workers: 2})
			topic := create(t, e, "t", engine.TopicConfig{})
			g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Mode: mode, Backoff: []time.Duration{1}}, "t")
			var b book
			join(t, g, handle(func(m *engine.Message) error {
				b.add(m)
				switch m.Attempt {
				case 1:
					panic("bad")
				case 2:
					runtime.Goexit()
				case 3:
					return errPoison
				}
				return done(m, mode)
			}), engine.MemberConfig{})
			publish(t, topic, 0, 1)
			committedIs(t, g, "t", 0, 1)
			assert.Equal(t, []delivered{{0, 0, 1, "0/0"}, {0, 0, 2, "0/0"}, {0, 0, 3, "0/0"}, {0, 0, 4, "0/0"}}, b.entries())
			assert.EqualValues(t, 3, g.Stats().Partitions[0].Failed)
		}
	}
}
