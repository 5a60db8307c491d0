package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// TestDurable_LeaksNothing fails each operation on files in turn, and looks what is left open, or in the directory, when all has been
// deleted.
func TestDurable_LeaksNothing(t *testing.T) {
	boom := errors.New("boom")
	for n := 1; ; n++ {
		m := vfs.NewMem()
		fsys, failed := vfs.FailNth(n, m, boom)
		lives(t, fsys)
		require.Empty(t, fsys.Left(), "operation %d", n)
		if !failed() {
			return
		}
		e := on(t, fsys, engine.Config{PositionsEvery: time.Hour})
		for _, name := range e.Topics() {
			require.NoError(t, e.DeleteTopic(name), "operation %d", n)
		}
		for _, name := range e.Groups() {
			require.NoError(t, e.DeleteGroup(name), "operation %d", n)
		}
		require.NoError(t, e.Close())
		require.Empty(t, fsys.Left(), "operation %d", n)
		names, err := m.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"LOCK", "catalog"}, names, "operation %d", n)
	}
}

// lives lets two engines do all that one does with files.
func lives(t *testing.T, fsys vfs.FS) {
	ctx := context.Background()
	for range 2 {
		e, err := engine.Open(engine.Config{Dir: dir, PositionsEvery: time.Hour}.WithFS(fsys).WithWarm(1))
		if err != nil {
			continue
		}
		c := durable(engine.Always, 1)
		c.Retention.MaxRecords = 300
		c.OnFull = engine.DropOldest
		c.SegmentRecords = 50
		_, _ = e.CreateTopic("t", c)
		_, _ = e.CreateTopic("u", durable(engine.Never, 1))
		_, _ = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest()})
		if top, err := e.Topic("t"); err == nil {
			p, err := top.Partition(0)
			require.NoError(t, err)
			for range 8 {
				rs := make([]engine.Record, 50)
				for i := range rs {
					rs[i].Value = make([]byte, 100)
				}
				if err := p.PublishBatch(ctx, rs); err != nil {
					_ = top.Resume(ctx)
				}
			}
			_ = top.SetPartitions(2)
			_ = p.TruncateBefore(ctx, p.Next()-60)
			_, _ = p.ReadAt(p.First(), make([]engine.Record, 100))
			_ = top.Flush(ctx)
		}
		_ = e.ResetOffsets("g", "t", engine.Latest(), engine.ResetOptions{})
		_, _ = e.CreateGroup("h", engine.GroupConfig{Topics: []string{"t"}})
		_ = e.DeleteGroup("h")
		_ = e.DeleteTopic("u")
		_ = e.Close()
	}
}
