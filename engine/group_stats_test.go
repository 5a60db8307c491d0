package engine_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

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
