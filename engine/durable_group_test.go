package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

func TestDurable_GroupsComeBack(t *testing.T) {
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, crash), func(t *testing.T) {
				m := vfs.NewMem()
				e := on(t, m, engine.Config{PositionsEvery: time.Hour})
				top := create(t, e, "t", durable(engine.Always, 2))
				g := newGroup(t, e, "g", engine.GroupConfig{Kind: kind, Start: engine.Earliest(), Mode: engine.Manual}, "t")
				conf := g.Config()
				send(t, top, 10)
				c := consumer(t, g, engine.MemberConfig{})
				got := 0
				for got < 20 {
					ms, err := c.Poll(background, 20)
					require.NoError(t, err)
					for i := range ms {
						if ms[i].Offset < 7 {
							require.NoError(t, ms[i].Ack())
						}
					}
					got += len(ms)
				}
				require.NoError(t, c.CommitSync(background))
				at := []engine.Offset{}
				for p := range 2 {
					off := committed(t, g, "t", p)
					at = append(at, off)
				}
				if crash {
					m = lost(m)
				} else {
					require.NoError(t, e.Close())
				}
				e = on(t, m, engine.Config{})
				assert.Equal(t, []string{"g"}, e.Groups())
				g = groupOf(t, e, "g")
				assert.Equal(t, conf, g.Config())
				for p := range 2 {
					off := committed(t, g, "t", p)
					assert.Equal(t, at[p], off)
				}
				require.NoError(t, e.DeleteGroup("g"))
				require.NoError(t, e.Close())
				e = on(t, m, engine.Config{})
				assert.Empty(t, e.Groups())
			})
		}
	}
}

func TestDurable_SubscriptionsComeBack(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top := create(t, e, "t", durable(engine.Always, 2))
	send(t, top, 10)
	var mu sync.Mutex
	seen := 0
	h := engine.HandlerFunc(func(context.Context, *engine.Message) error {
		mu.Lock()
		defer mu.Unlock()
		seen++
		return nil
	})
	subscribe(t, top, h, engine.SubscribeConfig{ID: "s", Start: engine.Earliest()})
	require.NoError(t, e.Drain(background))
	require.NoError(t, e.Close())
	assert.Equal(t, 20, seen)
	e = on(t, m, engine.Config{})
	top = topicOf(t, e, "t")
	send(t, top, 3)
	subscribe(t, top, h, engine.SubscribeConfig{ID: "s"})
	require.NoError(t, e.Drain(background))
	require.NoError(t, e.Close())
	assert.Equal(t, 26, seen)
}

// TestDurable_PositionsAreWritten waits for the keeper, which is told of nothing.
func TestDurable_PositionsAreWritten(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{PositionsEvery: time.Millisecond})
	top := create(t, e, "t", durable(engine.Always, 1))
	g := newGroup(t, e, "g", engine.GroupConfig{Start: engine.Earliest()}, "t")
	send(t, top, 10)
	join(t, g, ignore, engine.MemberConfig{})
	await(func() bool {
		other, err := engine.Open(engine.Config{Dir: dir}.WithFS(lost(m)))
		require.NoError(t, err)
		defer other.Close()
		g := groupOf(t, other, "g")
		off := committed(t, g, "t", 0)
		return off == 10
	})
}

// TestBUG086_PositionBeyondTheLog: older files of the topic are brought back below a group that was further.
func TestBUG086_PositionBeyondTheLog(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top := create(t, e, "t", durable(engine.Never, 1))
	for _, gap := range []engine.GapPolicy{engine.SkipGap, engine.FailOnGap} {
		newGroup(t, e, fmt.Sprint("g", gap), engine.GroupConfig{Start: engine.Earliest(), Gap: gap}, "t")
	}
	send(t, top, 5)
	require.NoError(t, top.Flush(background))
	send(t, top, 5)
	for _, name := range e.Groups() {
		require.NoError(t, e.ResetOffsets(name, "t", engine.At(10), engine.ResetOptions{}))
		g := groupOf(t, e, name)
		off := committed(t, g, "t", 0)
		require.Equal(t, engine.Offset(10), off)
	}
	// Never more than what is durable is written.
	require.NoError(t, e.SavePositions())
	other := on(t, lost(m), engine.Config{Hooks: engine.Hooks{Truncated: func(string, string, *engine.TruncatedError) { t.Error("told") }}})
	g := groupOf(t, other, "g0")
	off := committed(t, g, "t", 0)
	assert.Equal(t, engine.Offset(5), off)

	// But a disk may lie.
	require.NoError(t, e.SavePositionsUnsafely())
	var told []string
	other = on(t, lost(m), engine.Config{Hooks: engine.Hooks{Truncated: func(topic, consumer string, err *engine.TruncatedError) {
		told = append(told, fmt.Sprint(consumer, topic, err.Partition, err.Committed, err.Next))
	}}})
	assert.ElementsMatch(t, []string{"g0t0 10 5", "g1t0 10 5"}, told)
	g = groupOf(t, other, "g1")
	off = committed(t, g, "t", 0)
	assert.Equal(t, engine.Offset(5), off)
	_, err := g.Consumer(engine.MemberConfig{})
	require.ErrorIs(t, err, engine.ErrTruncated)
	var cut *engine.TruncatedError
	require.ErrorAs(t, err, &cut)
	assert.Equal(t, engine.TruncatedError{Topic: "t", Committed: 10, Next: 5}, *cut)
	_, err = g.Consumer(engine.MemberConfig{}) // once
	require.NoError(t, err)
}

// TestBUG086_OtherRecordsAtItsOffset: the log lost what a group had processed, and has other records there by the time that the group is
// opened again. It goes back to where the log had ended.
func TestBUG086_OtherRecordsAtItsOffset(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top := create(t, e, "t", durable(engine.Never, 1))
	newGroup(t, e, "g", engine.GroupConfig{Start: engine.Earliest(), Gap: engine.FailOnGap}, "t")
	send(t, top, 5)
	require.NoError(t, top.Flush(background))
	send(t, top, 5)
	require.NoError(t, e.ResetOffsets("g", "t", engine.At(10), engine.ResetOptions{}))
	require.NoError(t, e.SavePositionsUnsafely())
	cut := lost(m)
	group := filepath.Join(dir, "group-1")
	require.NoError(t, cut.Rename(group, group+".kept"))
	other := on(t, cut, engine.Config{})
	_, err := other.Group("g")
	require.ErrorIs(t, err, engine.ErrCorrupt, "its file is missing")
	send(t, topicOf(t, other, "t"), 20)
	require.NoError(t, other.Close())
	require.NoError(t, cut.Rename(group+".kept", group))
	other = on(t, cut, engine.Config{})
	g := groupOf(t, other, "g")
	off := committed(t, g, "t", 0)
	assert.Equal(t, engine.Offset(5), off)
	_, err = g.Consumer(engine.MemberConfig{})
	var told *engine.TruncatedError
	require.ErrorAs(t, err, &told)
	assert.Equal(t, engine.TruncatedError{Topic: "t", Committed: 10, Next: 5}, *told)

	// What is where it belongs stays.
	require.NoError(t, other.ResetOffsets("g", "t", engine.At(22), engine.ResetOptions{}))
	require.NoError(t, other.Close())
	for range 3 {
		other = on(t, cut, engine.Config{Hooks: engine.Hooks{Truncated: func(string, string, *engine.TruncatedError) { t.Error("told") }}})
		g = groupOf(t, other, "g")
		off = committed(t, g, "t", 0)
		assert.Equal(t, engine.Offset(22), off)
		send(t, topicOf(t, other, "t"), 3)
		require.NoError(t, other.Close())
	}
}

func TestDurable_GroupsOfBothKinds(t *testing.T) {
	e := on(t, vfs.NewMem(), engine.Config{})
	create(t, e, "d", durable(engine.Always, 1))
	create(t, e, "m", engine.TopicConfig{})
	_, err := e.CreateGroup("g", engine.GroupConfig{Topics: []string{"d", "m"}})
	require.ErrorIs(t, err, engine.ErrConfig)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"d"}, DeadLetter: "m"})
	require.ErrorIs(t, err, engine.ErrConfig)
	newGroup(t, e, "g", engine.GroupConfig{DeadLetter: "d"}, "m")
}
