package engine_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestGroup_Config: what makes no sense is refused, with a text that says which field it is.
func TestGroup_Config(t *testing.T) {
	e := open(t, engine.Config{})
	create(t, e, "t", engine.TopicConfig{})
	create(t, e, "dead", engine.TopicConfig{})
	for what, c := range map[string]engine.GroupConfig{
		"no topics":     {},
		"twice":         {Topics: []string{"t", "t"}},
		"Kind":          {Topics: []string{"t"}, Kind: 9},
		"Mode":          {Topics: []string{"t"}, Mode: 9},
		"Assignor":      {Topics: []string{"t"}, Assignor: 9},
		"Gap":           {Topics: []string{"t"}, Gap: 9},
		"MaxDeliveries": {Topics: []string{"t"}, MaxDeliveries: -2},
		"Backoff":       {Topics: []string{"t"}, Backoff: []time.Duration{-1}},
		"time":          {Topics: []string{"t"}, RevokeTimeout: -1},
		"a time":        {Topics: []string{"t"}, Grace: -1},
		"negative":      {Topics: []string{"t"}, ExpireAfter: -2},
		"is negative":   {Topics: []string{"t"}, ProgressTimeout: -2},
		"MaxInFlight":   {Topics: []string{"t"}, Settling: engine.Settling{MaxInFlight: -1}},
		"AckWait":       {Topics: []string{"t"}, Settling: engine.Settling{AckWait: []time.Duration{0}}},
		"DeadLetter":    {Topics: []string{"t"}, DeadLetter: "t"},
		"Shift":         {Topics: []string{"t"}, Start: engine.Shift(1)},
	} {
		_, err := e.CreateGroup("g", c)
		assert.ErrorIs(t, err, engine.ErrConfig, what)
		assert.ErrorContains(t, err, what)
	}
	for _, c := range []engine.GroupConfig{{Topics: []string{"t", "nope"}}, {Topics: []string{"t"}, DeadLetter: "nope"}} {
		_, err := e.CreateGroup("g", c)
		assert.ErrorIs(t, err, engine.ErrUnknownTopic)
	}
	var out *engine.OffsetError
	_, err := e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.At(1)})
	assert.ErrorAs(t, err, &out)
	for _, name := range []string{"", ".", "a b", strings.Repeat("x", 250)} {
		_, err := e.CreateGroup(name, engine.GroupConfig{Topics: []string{"t"}})
		assert.ErrorIs(t, err, engine.ErrName)
	}
	assert.Empty(t, e.Groups(), "nothing is left of those")
	topics := []string{"t"}
	g, err := e.CreateGroup("g", engine.GroupConfig{Topics: topics, DeadLetter: "dead"})
	require.NoError(t, err)
	topics[0], g.Config().Topics[0] = "other", "other"
	assert.Equal(t, []string{"t"}, g.Config().Topics, "a copy")
	assert.Equal(t, 30*time.Second, g.Config().RevokeTimeout)
	assert.Equal(t, 10, g.Config().MaxDeliveries)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}})
	assert.ErrorIs(t, err, engine.ErrGroupExists)

	shared := newGroup(t, e, "s", engine.GroupConfig{Kind: engine.Shared}, "t")
	for what, c := range map[string]engine.MemberConfig{
		"Static":         {Static: true},
		"MaxConcurrency": {MaxConcurrency: -1},
		"BatchSize":      {BatchSize: 1<<16 + 1},
		"ByKey":          {ByKey: engine.Parallelism{Handlers: -1}},
	} {
		_, err := g.Join(ignore, c)
		assert.ErrorIs(t, err, engine.ErrConfig, what)
		assert.ErrorContains(t, err, what)
	}
	_, err = g.Join(nil, engine.MemberConfig{})
	assert.ErrorIs(t, err, engine.ErrConfig)
	_, err = g.Join(engine.HandlerFunc(nil), engine.MemberConfig{})
	assert.ErrorIs(t, err, engine.ErrConfig)
	_, err = g.Join(batchFunc(nil), engine.MemberConfig{ByKey: engine.Parallelism{Handlers: 2}})
	assert.ErrorIs(t, err, engine.ErrConfig)
	_, err = shared.Join(ignore, engine.MemberConfig{Name: "a", Static: true})
	assert.ErrorIs(t, err, engine.ErrConfig)
	_, err = shared.Join(ignore, engine.MemberConfig{ByKey: engine.Parallelism{Handlers: 2}})
	assert.ErrorIs(t, err, engine.ErrConfig)
	_, err = g.Consumer(engine.MemberConfig{ByKey: engine.Parallelism{Handlers: 2}})
	assert.ErrorIs(t, err, engine.ErrConfig)
	_, err = g.Join(ignore, engine.MemberConfig{Topics: []string{"dead"}})
	assert.ErrorIs(t, err, engine.ErrUnknownTopic)
	_, err = g.Join(ignore, engine.MemberConfig{Name: "no name"})
	assert.ErrorIs(t, err, engine.ErrName)
	assert.Empty(t, names(g))
	assert.Empty(t, names(shared))
}

// TestBUG098_NamesOfMembers: of many that join under one name at once one is let in, and the others have no effect; and names
// that the engine gives are all different.
func TestBUG098_NamesOfMembers(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		e := open(t, engine.Config{Workers: 2})
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
		g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind}, "t")
		x := newTally()
		for range rounds(20) {
			var mu sync.Mutex
			var in []*engine.Member
			together(8, func() {
				m, err := g.Join(x.handler("m"), engine.MemberConfig{Name: "m"})
				if err != nil {
					assert.ErrorIs(t, err, engine.ErrMemberExists)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				in = append(in, m)
			})
			require.Len(t, in, 1)
			publish(t, topic, 0, 1)
			publish(t, topic, 1, 1)
			await(func() bool { return g.Stats().Partitions[0].Lag+g.Stats().Partitions[1].Lag == 0 })
			in[0].Close()
			<-in[0].Done()
		}
		x.once(t, 2*rounds(20))
		seen := map[string]bool{}
		for range rounds(100) {
			m := join(t, g, ignore, engine.MemberConfig{})
			assert.False(t, seen[m.Name()])
			seen[m.Name()] = true
		}
	}
}

// TestBUG098_StaticNames: of static members that join under one name at once each has the partition for some time, one after
// the other, and the last one keeps it.
func TestBUG098_StaticNames(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 2})
	topic := create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{Grace: time.Nanosecond}, "t")
	l, x := newLedger(t), newTally()
	var mu sync.Mutex
	var all []*engine.Member
	together(rounds(40), func() {
		m, err := g.Join(x.handler("m"), l.member("m", engine.MemberConfig{Static: true}))
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, m)
	})
	publish(t, topic, 0, 10)
	await(func() bool { return x.total() == 10 })
	alive := slices.DeleteFunc(slices.Clone(all), func(m *engine.Member) bool { return m.Err() != nil })
	require.Len(t, alive, 1)
	for _, m := range all {
		if m != alive[0] {
			assert.ErrorIs(t, m.Err(), engine.ErrReplaced)
			<-m.Done()
		}
	}
	alive[0].Close()
	<-alive[0].Done()
	x.once(t, 10)
	l.closed()
}

// TestGroup_EvictOneOfAName: a member that is leaving and the next one of its name are both put out.
func TestGroup_EvictOneOfAName(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 4})
	topic := create(t, e, "t", engine.TopicConfig{})
	for range 20 { // whichever is found first
		g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
		b := newBlocker()
		old := join(t, g, b, engine.MemberConfig{Name: "m"})
		publish(t, topic, 0, 1)
		<-b.in
		old.Close()
		m := join(t, g, ignore, engine.MemberConfig{Name: "m"})
		assert.Equal(t, []string{"m", "m"}, names(g))
		require.NoError(t, g.Evict("m"))
		assert.ErrorIs(t, m.Err(), engine.ErrRemoved)
		assert.ErrorIs(t, old.Err(), engine.ErrMemberClosed)
		<-m.Done()
		assert.ErrorIs(t, g.Evict("m"), engine.ErrUnknownMember)
		b.release()
		<-old.Done()
		require.NoError(t, e.DeleteGroup("g"))
		assert.ErrorIs(t, g.Evict("m"), engine.ErrGroupDeleted)
	}
}

// TestGroup_ResetOffsets: each kind of target, of all and of some partitions, without members.
func TestGroup_ResetOffsets(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		t.Run(kind.String(), func(t *testing.T) {
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
			create(t, e, "other", engine.TopicConfig{})
			publish(t, topic, 0, 10)
			publish(t, topic, 1, 4)
			truncate(t, topic, 2)
			g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Start: engine.Earliest()}, "t")
			at := func() [2]engine.Offset {
				return [2]engine.Offset{committed(t, g, "t", 0), committed(t, g, "t", 1)}
			}
			first := part(t, topic, 0).First()
			assert.Equal(t, [2]engine.Offset{first, 0}, at())
			reset := func(to engine.Start, parts ...int) error {
				return e.ResetOffsets("g", "t", to, engine.ResetOptions{Partitions: parts})
			}
			require.NoError(t, reset(engine.Latest()))
			assert.Equal(t, [2]engine.Offset{10, 4}, at())
			require.NoError(t, reset(engine.At(3)))
			assert.Equal(t, [2]engine.Offset{3, 3}, at())
			require.NoError(t, reset(engine.Shift(1)))
			assert.Equal(t, [2]engine.Offset{4, 4}, at())
			require.NoError(t, reset(engine.Shift(-100), 1, 1))
			assert.Equal(t, [2]engine.Offset{4, 0}, at())
			require.NoError(t, reset(engine.Shift(100)))
			assert.Equal(t, [2]engine.Offset{10, 4}, at())
			require.NoError(t, reset(engine.Last(1)))
			assert.Equal(t, [2]engine.Offset{9, 3}, at())
			require.NoError(t, reset(engine.Since(time.Unix(0, 0)), 0))
			assert.Equal(t, [2]engine.Offset{first, 3}, at())
			require.NoError(t, reset(engine.Since(time.Now().Add(time.Hour))))
			assert.Equal(t, [2]engine.Offset{10, 4}, at())
			require.NoError(t, reset(engine.Earliest()))

			var out *engine.OffsetError
			assert.ErrorAs(t, reset(engine.At(5)), &out, "partition 1 has no such offset")
			assert.ErrorContains(t, reset(engine.At(5)), "partition 1")
			assert.Equal(t, [2]engine.Offset{first, 0}, at(), "so none is set")
			assert.ErrorIs(t, reset(engine.At(3), 0, 2), engine.ErrUnknownPartition)
			assert.ErrorIs(t, reset(engine.At(3), -1), engine.ErrUnknownPartition)
			assert.ErrorIs(t, e.ResetOffsets("nobody", "t", engine.At(3), engine.ResetOptions{}), engine.ErrUnknownGroup)
			for _, name := range []string{"other", "nope"} {
				assert.ErrorIs(t, e.ResetOffsets("g", name, engine.At(0), engine.ResetOptions{Force: true}), engine.ErrUnknownTopic)
			}
			assert.Equal(t, [2]engine.Offset{first, 0}, at())
			_, err := g.Committed("t", 2)
			assert.ErrorIs(t, err, engine.ErrUnknownPartition)
			_, err = g.Committed("nope", 0)
			assert.ErrorIs(t, err, engine.ErrUnknownTopic)

			// Members begin there.
			require.NoError(t, reset(engine.Last(2)))
			var b book
			m := join(t, g, &b, engine.MemberConfig{})
			await(func() bool { return b.len() == 4 })
			assert.Equal(t, []engine.Offset{8, 9}, b.offsets(0))
			assert.Equal(t, []engine.Offset{2, 3}, b.offsets(1))
			assert.ErrorIs(t, reset(engine.Earliest()), engine.ErrGroupActive)
			m.Close()
			<-m.Done()
			require.NoError(t, reset(engine.Earliest(), 1))
			assert.Equal(t, [2]engine.Offset{10, 0}, at())
		})
	}
}

// TestGroup_ForcedReset: with members a forced reset fences what they are doing, and they go on where it says, also if that is
// where they are.
func TestGroup_ForcedReset(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		t.Run(kind.String(), func(t *testing.T) {
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{})
			g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Mode: engine.Manual}, "t")
			l := newLedger(t)
			tokens := make(chan engine.Token, 100)
			join(t, g, handle(func(m *engine.Message) error { tokens <- m.Token(); return nil }), l.member("m", engine.MemberConfig{}))
			publish(t, topic, 0, 3)
			old := []engine.Token{<-tokens, <-tokens, <-tokens}
			require.NoError(t, old[1].Ack())
			assert.Equal(t, engine.Offset(0), committed(t, g, "t", 0))
			before := g.Stats()
			require.NoError(t, e.ResetOffsets("g", "t", engine.At(0), engine.ResetOptions{Force: true}))
			assert.ErrorIs(t, old[0].Ack(), engine.ErrFenced)
			assert.ErrorIs(t, old[2].AckThrough(), map[engine.GroupKind]error{engine.Assigned: engine.ErrFenced, engine.Shared: engine.ErrNotOwner}[kind])
			fresh := []engine.Token{<-tokens, <-tokens, <-tokens} // the one that was acknowledged as well
			for _, k := range fresh {
				assert.NoError(t, k.Ack())
			}
			committedIs(t, g, "t", 0, 3)
			after := g.Stats()
			if kind == engine.Shared {
				assert.Less(t, before.Generation, after.Generation)
				return
			}
			assert.Less(t, before.Partitions[0].Generation, after.Partitions[0].Generation)
			await(func() bool { return !describe(t, g, "m").Calling })
			assert.Equal(t, []string{"m assigned t/0", "m lost t/0", "m assigned t/0"}, l.take())
		})
	}
}

// TestSEED05_RewindHoldsNobody: a group that is put back does not hold publishers back with what it reads again, whoever puts
// it back; SEED-08: a group with members does hold them, and one without does not.
func TestSEED05_RewindHoldsNobody(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, how := range []string{"seek", "reset"} {
			t.Run(fmt.Sprint(kind, how), func(t *testing.T) {
				e := open(t, engine.Config{})
				topic := create(t, e, "t", bounded(8, engine.Block))
				p := part(t, topic, 0)
				g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind}, "t")
				publish(t, topic, 0, 20) // nobody is there
				m := join(t, g, ignore, engine.MemberConfig{Name: "m"})
				committedIs(t, g, "t", 0, 20)
				// The gate follows the position when the member rests.
				publish(t, topic, 0, 8)
				committedIs(t, g, "t", 0, 28)
				await(func() bool { s := e.Stats(); return s.Running+s.Queued == 0 })
				require.NoError(t, m.Pause("t"))
				if how == "seek" {
					require.NoError(t, m.Seek("t", 0, engine.Earliest()))
				} else {
					require.NoError(t, e.ResetOffsets("g", "t", engine.Earliest(), engine.ResetOptions{Force: true}))
					await(func() bool { return !describe(t, g, "m").Calling })
					require.NoError(t, m.Pause("t"))
				}
				for range 8 { // room that was given already
					_, err := p.Publish(soon(t), value("x"))
					require.NoError(t, err)
				}
				assert.NoError(t, m.Resume("t"))
				committedIs(t, g, "t", 0, 36)

				// And now it holds.
				require.NoError(t, m.Pause("t"))
				n := 0
				for ; n < 100 && p.TryPublish(value("x")) == nil; n++ {
					require.NoError(t, p.Flush(background))
				}
				assert.Less(t, n, 17)
				m.Close()
				<-m.Done()
				publish(t, topic, 0, 100)
				assert.Equal(t, engine.Offset(36), committed(t, g, "t", 0), "the position stays, and may fall out of what is there")
				s := g.Stats()
				assert.Equal(t, s.Partitions[0].Next-s.Partitions[0].First, s.Partitions[0].Lag)
				var b book
				join(t, g, &b, engine.MemberConfig{})
				committedIs(t, g, "t", 0, p.Next())
				assert.Equal(t, upTo(p.Next()-8, p.Next()), b.offsets(0))
				lost := p.Next() - 8 - 36
				if kind == engine.Shared { // it counts for all members that there have been
					lost += 20
				}
				assert.Equal(t, lost, g.Stats().Partitions[0].Lost)
			})
		}
	}
}

// TestSEED08_LastOneLeavesSlowly: the group stops holding publishers when the last member has given everything back, also if
// that comes later than its Close, by whatever way it leaves.
func TestSEED08_LastOneLeavesSlowly(t *testing.T) {
	watchdog(t)
	for _, how := range []string{"close", "evict", "callback"} {
		for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
			e := open(t, engine.Config{})
			topic := create(t, e, "t", bounded(4, engine.Block))
			g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind}, "t")
			b := newBlocker()
			out := make(chan struct{})
			m := join(t, g, b, engine.MemberConfig{Name: "m", OnRevoked: func([]engine.Assignment) {
				if how == "callback" {
					<-out
				}
			}})
			publish(t, topic, 0, 3)
			<-b.in
			if how == "evict" {
				require.NoError(t, g.Evict("m"))
				publish(t, topic, 0, 20)
			} else {
				m.Close()
			}
			b.release()
			close(out)
			<-m.Done()
			publish(t, topic, 0, 20)
			require.NoError(t, e.DeleteGroup("g"))
			assert.Empty(t, e.Groups())
			_, err := g.Join(ignore, engine.MemberConfig{})
			assert.ErrorIs(t, err, engine.ErrGroupDeleted)
			_, err = g.Committed("t", 0)
			assert.ErrorIs(t, err, engine.ErrGroupDeleted)
			assert.ErrorIs(t, e.DeleteGroup("g"), engine.ErrUnknownGroup)
			_, err = e.DescribeGroup("g")
			assert.ErrorIs(t, err, engine.ErrUnknownGroup)
		}
	}
}

// TestBUG040_LagOfAGroup: the lag is what there is to read, whatever has been dropped, and wherever the position is.
func TestBUG040_LagOfAGroup(t *testing.T) {
	watchdog(t)
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{SegmentRecords: 1})
		g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind}, "t")
		lag := func() int64 { s := g.Stats(); return s.Lag() }
		assert.Zero(t, lag())
		c := consumer(t, g, engine.MemberConfig{})
		publish(t, topic, 0, 5)
		assert.EqualValues(t, 5, lag())
		assert.Len(t, poll(t, c, 1), 1)
		require.NoError(t, c.Commit())
		assert.EqualValues(t, 4, lag())
		truncate(t, topic, 4)
		assert.EqualValues(t, 1, lag())
		ms := poll(t, c, 1)
		assert.Equal(t, engine.Offset(4), ms[0].Offset)
		require.NoError(t, c.Commit())
		assert.Zero(t, lag())
		assert.EqualValues(t, 3, g.Stats().Partitions[0].Lost)
		require.NoError(t, c.Seek("t", 0, engine.Earliest()))
		assert.EqualValues(t, 1, lag())
		truncate(t, topic, 5)
		assert.Zero(t, lag())
		publish(t, topic, 0, 2)
		assert.EqualValues(t, 2, lag())
		c.Close()
		<-c.Done()
		assert.EqualValues(t, 2, lag())
		truncate(t, topic, 7)
		assert.Zero(t, lag())
	}
}

// TestBUG107_GroupStatsAreCopies changes everything in what statistics return, while the group changes, and looks whether positions
// are within what there is.
func TestBUG107_GroupStatsAreCopies(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 4, Partitioner: engine.RoundRobin()})
	g := newGroup(t, e, "g", engine.GroupConfig{}, "t")
	shared := newGroup(t, e, "s", engine.GroupConfig{Kind: engine.Shared}, "t")
	a := join(t, g, ignore, engine.MemberConfig{Name: "a"})
	join(t, shared, ignore, engine.MemberConfig{Name: "a"})
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for range rounds(400) {
			b := join(t, g, ignore, engine.MemberConfig{Name: "b"})
			_, err := topic.Publish(background, value("x"))
			assert.NoError(t, err)
			b.Close()
			<-b.Done()
		}
		close(stop)
	})
	looks := 0
	for done := false; !done; {
		select {
		case <-stop:
			done = true
		default:
		}
		for _, s := range []engine.GroupStats{g.Stats(), shared.Stats()} {
			for i := range s.Partitions {
				p := &s.Partitions[i]
				assert.LessOrEqual(t, p.First, p.Next)
				assert.LessOrEqual(t, p.Position, p.Next)
				assert.GreaterOrEqual(t, p.Lag, int64(0))
				p.Owner, p.Topic = "?", "?"
			}
			for i := range s.Members {
				m := &s.Members[i]
				m.Name = "?"
				for j := range m.Assignment {
					m.Assignment[j].Topic = "?"
				}
			}
		}
		for i, as := 0, a.Assignment(); i < len(as); i++ {
			as[i].Topic = "?"
		}
		groups := e.Groups()
		groups[0] = "?"
		looks++
		runtime.Gosched()
	}
	work.Wait()
	assert.Positive(t, looks)
	assert.Equal(t, []string{"g", "s"}, e.Groups())
	assert.Equal(t, []string{"a"}, names(g))
	await(func() bool { return len(a.Assignment()) == 4 })
}

// TestGroup_Describe: what the statistics say of each kind of group.
func TestGroup_Describe(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	g := newGroup(t, e, "g", engine.GroupConfig{Mode: engine.Manual}, "t")
	b := newBlocker()
	join(t, g, b, engine.MemberConfig{Name: "m"})
	publish(t, topic, 0, 3)
	<-b.in
	s, err := e.DescribeGroup("g")
	require.NoError(t, err)
	assert.Equal(t, "g", s.Name)
	assert.Equal(t, engine.Manual, s.Mode)
	assert.EqualValues(t, 3, s.Lag())
	assert.Equal(t, 1, s.Members[0].Running)
	p := s.Partitions[0]
	assert.Equal(t, "m", p.Owner)
	assert.Positive(t, p.InFlight)
	assert.Equal(t, engine.Offset(3), p.Next)
	assert.Equal(t, []engine.Assignment{{Topic: "t", Generation: p.Generation}}, s.Members[0].Assignment)
	b.release()
	await(func() bool { return describe(t, g, "m").Running == 0 })
	c := consumer(t, g, engine.MemberConfig{Name: "pull"})
	assert.True(t, describe(t, g, "pull").Pull)
	assert.Same(t, g, c.Group())
	assert.Equal(t, "pull", c.Name())
}
