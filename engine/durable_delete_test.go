package engine_test

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// onThatCannotRename returns an engine with a topic of ten records, and what makes renaming on its file system fail.
func onThatCannotRename(t *testing.T) (m *vfs.Mem, e *engine.Engine, top *engine.Topic, broken *atomic.Bool) {
	t.Helper()
	m, broken = vfs.NewMem(), new(atomic.Bool)
	e = on(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if broken.Load() && o.Kind == vfs.OpRename {
			return &vfs.Fault{Err: errors.New("broken")}
		}
		return nil
	}), engine.Config{})
	top = create(t, e, "t", durable(engine.Always, 1))
	send(t, top, 10)
	return m, e, top, broken
}

// TestDurable_GroupThatCannotBeDropped: a deletion that fails is told, and a new group of the name takes the place of the old one.
func TestDurable_GroupThatCannotBeDropped(t *testing.T) {
	m, e, _, broken := onThatCannotRename(t)
	c := engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest()}
	_, err := e.CreateGroup("g", c)
	require.NoError(t, err)
	broken.Store(true)
	require.Error(t, e.DeleteGroup("g"))
	_, err = e.CreateGroup("h", c)
	require.Error(t, err)
	assert.Empty(t, e.Groups())
	broken.Store(false)
	newGroup(t, e, "g", engine.GroupConfig{}, "t")
	require.NoError(t, e.Close())
	e = on(t, m, engine.Config{})
	assert.Equal(t, []string{"g"}, e.Groups())
	g := groupOf(t, e, "g")
	at := committed(t, g, "t", 0)
	assert.Equal(t, engine.Offset(10), at)
}

// TestDurable_TopicThatCannotBeDropped: the topic has ended, its name stays taken, and it may come back.
func TestDurable_TopicThatCannotBeDropped(t *testing.T) {
	m, e, top, broken := onThatCannotRename(t)
	broken.Store(true)
	require.Error(t, e.DeleteTopic("t"))
	_, err := top.Publish(background, engine.Record{})
	require.ErrorIs(t, err, engine.ErrTopicDeleted)
	_, err = e.CreateTopic("t", durable(engine.Always, 1))
	require.ErrorIs(t, err, engine.ErrTopicExists)
	crashed := lost(m)
	holds(t, topicOf(t, on(t, crashed, engine.Config{}), "t"), 10)
	broken.Store(false)
	require.NoError(t, e.DeleteTopic("t")) // again
	require.NoError(t, e.Close())
	assert.Empty(t, on(t, m, engine.Config{}).Topics())
}

// TestDurable_GrowthThatFailed: what is left of partitions that could not be made, when the catalog could not be written, goes with
// those that are made after that, or with the topic.
func TestDurable_GrowthThatFailed(t *testing.T) {
	for _, again := range []int{0, 1, 2, 4, 6} {
		m, broken := vfs.NewMem(), false
		changes := 0
		e := on(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			if !broken || o.Kind != vfs.OpRename || !strings.HasPrefix(filepath.Base(o.Name), "catalog") {
				return nil
			}
			if changes++; changes == 1 {
				return nil // that they are being made is written
			}
			return &vfs.Fault{Err: errors.New("broken")}
		}), engine.Config{PositionsEvery: time.Hour})
		top, err := e.CreateTopic("t", durable(engine.Always, 1))
		require.NoError(t, err)
		broken = true
		require.Error(t, top.SetPartitions(4))
		broken = false
		require.Equal(t, 1, top.Partitions())
		if again > 0 {
			require.NoError(t, top.SetPartitions(again))
			send(t, top, 3)
		}
		other := on(t, lost(m), engine.Config{})
		require.Equal(t, max(again, 1), topicOf(t, other, "t").Partitions())
		require.NoError(t, e.DeleteTopic("t"))
		names, err := m.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"LOCK", "catalog"}, names, "again %d", again)
		require.NoError(t, e.Close())
	}
}

// TestDurable_NothingOfADeletedTopicIsLeft cuts the power while topics are made and deleted: each directory is of a topic that is there,
// at the latest when the engine has been opened again. (btrfs was seen to keep an empty one.)
func TestDurable_NothingOfADeletedTopicIsLeft(t *testing.T) {
	m := vfs.NewMem()
	var states []*vfs.Mem
	e := on(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if o.Kind.Changes() {
			for state := range m.Crashes(8, uint64(o.N)) {
				states = append(states, state)
			}
		}
		return nil
	}), engine.Config{PositionsEvery: time.Hour})
	for n := range 2 {
		top := create(t, e, "t", durable(engine.Always, 1+n))
		send(t, top, 2)
		require.NoError(t, e.DeleteTopic("t"))
	}
	require.Greater(t, len(states), 100)
	deleted := 0
	for _, m := range states {
		e := on(t, m, engine.Config{PositionsEvery: time.Hour})
		known := map[string]bool{}
		for _, name := range e.Topics() {
			known[topicOf(t, e, name).ID().String()] = true
		}
		names, err := m.List(dir)
		require.NoError(t, err)
		for _, name := range names {
			info, err := m.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, known[name], info.Dir, name)
		}
		if len(known) == 0 {
			deleted++
		}
		require.NoError(t, e.Close())
	}
	require.Positive(t, deleted)
}
