package engine_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// counting is a file system that knows what is open.
type counting struct {
	vfs.FS
	mu   sync.Mutex
	open map[*counted]string
}

type counted struct {
	vfs.File
	io.Closer
	of *counting
}

func (c *counting) add(name string, f vfs.File, l io.Closer, err error) (*counted, error) {
	if err != nil {
		return nil, err
	}
	x := &counted{f, l, c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[x] = name
	return x, nil
}

func (c *counting) file(name string, f vfs.File, err error) (vfs.File, error) {
	x, err := c.add(name, f, f, err)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (c *counting) Create(name string) (vfs.File, error) {
	f, err := c.FS.Create(name)
	return c.file(name, f, err)
}

func (c *counting) Open(name string) (vfs.File, error) {
	f, err := c.FS.Open(name)
	return c.file(name, f, err)
}

func (c *counting) OpenRead(name string) (vfs.File, error) {
	f, err := c.FS.OpenRead(name)
	return c.file(name, f, err)
}

func (c *counting) Lock(name string) (io.Closer, error) {
	l, err := c.FS.Lock(name)
	x, err := c.add(name, nil, l, err)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (f *counted) Close() error {
	f.of.mu.Lock()
	delete(f.of.open, f)
	f.of.mu.Unlock()
	return f.Closer.Close()
}

func (c *counting) left() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.open {
		names = append(names, name)
	}
	return names
}

// TestDurable_LeaksNothing fails each operation on files in turn, and looks what is left open, or in the directory, when all has been
// deleted.
func TestDurable_LeaksNothing(t *testing.T) {
	boom := errors.New("boom")
	for n := 1; ; n++ {
		failed := false
		var mu sync.Mutex
		nth := vfs.Nth(n, vfs.Fault{Err: boom}, everyOp...)
		m := vfs.NewMem()
		fsys := &counting{FS: vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			mu.Lock()
			defer mu.Unlock()
			f := nth(o)
			failed = failed || f != nil
			return f
		}), open: map[*counted]string{}}
		lives(t, fsys)
		require.Empty(t, fsys.left(), "operation %d", n)
		if !failed {
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
		require.Empty(t, fsys.left(), "operation %d", n)
		names, err := m.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"LOCK", "catalog"}, names, "operation %d", n)
	}
}

var everyOp = []vfs.OpKind{vfs.OpCreate, vfs.OpOpen, vfs.OpRename, vfs.OpRemove, vfs.OpList, vfs.OpMkdir, vfs.OpStat, vfs.OpSyncDir,
	vfs.OpLock, vfs.OpRead, vfs.OpWrite, vfs.OpSync, vfs.OpTruncate, vfs.OpAllocate}

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
