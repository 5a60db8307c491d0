package engine_test

import (
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
		m := join(t, g, x.handler("m"), l.member("m", engine.MemberConfig{Static: true}))
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
