package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

func TestInspect(t *testing.T) {
	m := vfs.NewMem()
	_, err := engine.InspectOn(m, dir)
	require.Error(t, err, "there is none")
	e := on(t, m, engine.Config{})
	top := create(t, e, "t", durable(engine.Never, 2))
	create(t, e, "memory", engine.TopicConfig{})
	send(t, top, 5)
	newGroup(t, e, "g", engine.GroupConfig{Start: engine.At(3), Mode: engine.Manual}, "t")
	require.NoError(t, top.Flush(background))
	require.NoError(t, e.SavePositions())
	for range 2 { // beside the engine, and after it
		all, err := engine.InspectOn(m, dir)
		require.NoError(t, err)
		require.Len(t, all.Topics, 1)
		c := all.Topics[0]
		assert.Equal(t, "t", c.Name)
		assert.Equal(t, top.ID(), c.ID)
		assert.Len(t, c.Dirs, 2)
		assert.Equal(t, engine.Never, c.Config.Durable.Sync)
		assert.NoError(t, c.Err)
		assert.False(t, c.Salvaged)
		require.Len(t, all.Groups, 1)
		assert.Equal(t, map[string][]engine.Offset{"t": {3, 3}}, all.Groups[0].Positions)
		assert.Equal(t, engine.Manual, all.Groups[0].Config.Mode)
		require.NoError(t, e.Close())
	}
}

// imported returns n records from an offset on, of all kinds.
func imported(p int32, from, n engine.Offset) (rs []engine.Record) {
	for off := from; off < from+n; off++ {
		r := engine.Record{Partition: p, Offset: off, Key: fmt.Append(nil, "k", off), Value: fmt.Append(nil, "v", off)}
		switch off % 4 {
		case 1:
			r.Key, r.Timestamp = nil, -off
		case 2:
			r.Value = []byte{}
		case 3:
			r.Headers = engine.MakeHeaders(engine.Header{Name: "h", Value: []byte("x")}, engine.Header{Name: "h"})
		}
		rs = append(rs, r)
	}
	return rs
}

func TestImport(t *testing.T) {
	m := vfs.NewMem()
	imp, err := engine.ImportOn(m, dir, "t", nil, []engine.Offset{7, 1 << 40})
	require.NoError(t, err)
	want := append(imported(0, 7, 100), imported(1, 1<<40, 30)...)
	for i := range want {
		require.NoError(t, imp.Add(&want[i], int64(1000+i)))
	}
	bad := want[0]
	require.Error(t, imp.Add(&bad, 0), "an offset again")
	bad.Partition = 2
	require.ErrorIs(t, imp.Add(&bad, 0), engine.ErrUnknownPartition)
	_, err = engine.Open(engine.Config{Dir: dir}.WithFS(m))
	require.ErrorIs(t, err, engine.ErrLocked)
	require.NoError(t, imp.Close())
	require.NoError(t, imp.Close())
	require.NoError(t, imp.Abort(), "it has ended")
	require.ErrorIs(t, imp.Add(&bad, 0), engine.ErrClosed)

	_, err = engine.ImportOn(m, dir, "t", nil, []engine.Offset{0})
	require.ErrorIs(t, err, engine.ErrTopicExists)
	_, err = engine.ImportOn(m, dir, "a b", nil, []engine.Offset{0})
	require.ErrorIs(t, err, engine.ErrName)
	for _, first := range [][]engine.Offset{nil, {-1}} {
		_, err = engine.ImportOn(m, dir, "u", nil, first)
		require.ErrorIs(t, err, engine.ErrConfig)
	}
	_, err = engine.ImportOn(m, dir, "u", []byte("{"), []engine.Offset{0})
	require.ErrorIs(t, err, engine.ErrConfig)

	e := on(t, lost(m), engine.Config{})
	top := topicOf(t, e, "t")
	for p, n := range []engine.Offset{100, 30} {
		part := part(t, top, p)
		first := part.First()
		assert.Equal(t, []engine.Offset{7, 1 << 40}[p], first)
		assert.Equal(t, first+n, part.Next())
		got := make([]engine.Record, n)
		k, err := part.ReadAt(first, got)
		require.NoError(t, err)
		require.Equal(t, int(n), k)
		for i, r := range got {
			w := want[i+100*p]
			if w.Timestamp == 0 {
				w.Timestamp = int64(1000 + i + 100*p)
			}
			require.Equal(t, w, r)
		}
	}
	send(t, top, 3)
}

// TestImport_Unfinished leaves nothing, however it ends.
func TestImport_Unfinished(t *testing.T) {
	m := vfs.NewMem()
	imp, err := engine.ImportOn(m, dir, "t", nil, []engine.Offset{0, 0})
	require.NoError(t, err)
	for _, r := range imported(1, 0, 10) {
		require.NoError(t, imp.Add(&r, 1))
	}
	for _, end := range []func() vfs.FS{
		func() vfs.FS { return lost(m) },
		func() vfs.FS { return kept(m) },
		func() vfs.FS { require.NoError(t, imp.Abort()); return m },
	} {
		fsys := end()
		e := on(t, fsys, engine.Config{})
		_, err := e.Topic("t")
		require.ErrorIs(t, err, engine.ErrUnknownTopic)
		create(t, e, "t", durable(engine.Always, 1))
		names, err := fsys.List(dir)
		require.NoError(t, err)
		assert.Len(t, names, 3, "the lock, the catalog, and the new topic: %v", names)
		require.NoError(t, e.Close())
	}
}

// TestImport_FaultAnywhere lets each operation on a file fail in turn: the import fails, and there is no topic; or it has not failed.
func TestImport_FaultAnywhere(t *testing.T) {
	for n := 0; ; n++ {
		m, ops := vfs.NewMem(), 0
		fsys := vfs.NewFaulty(m, func(vfs.Op) *vfs.Fault {
			if ops++; ops-1 == n {
				return &vfs.Fault{Err: errors.New("broken")}
			}
			return nil
		})
		imp, err := engine.ImportOn(fsys, dir, "t", nil, []engine.Offset{5})
		for _, r := range imported(0, 5, 20) {
			if err == nil {
				err = imp.Add(&r, 1)
			}
		}
		if err == nil {
			err = imp.Close()
		} else if imp != nil {
			_ = imp.Abort()
		}
		e := on(t, lost(m), engine.Config{})
		top, lookErr := e.Topic("t")
		if err != nil {
			require.ErrorIs(t, lookErr, engine.ErrUnknownTopic, "fault %d: %v", n, err)
		} else {
			require.NoError(t, lookErr, "fault %d", n)
			part := part(t, top, 0)
			require.Equal(t, engine.Offset(25), part.Next())
		}
		require.NoError(t, e.Close())
		if ops <= n {
			require.NoError(t, err)
			require.Greater(t, n, 20)
			return
		}
	}
}
