package storage_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// pair is a log in memory and its files.
type pair struct {
	*storage.Log
	mem *segment.Log
	t   testing.TB
}

func openPair(t testing.TB, fsys vfs.FS, p storage.Policy) pair {
	t.Helper()
	l, err := storage.Open(storage.Config{Dir: "log", Disk: disk.Config{FS: fsys, SegmentBytes: 8 << 10}, Policy: p, Interval: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	mem, err := l.Load(storage.Loading{})
	require.NoError(t, err)
	return pair{l, mem, t}
}

// put publishes n records of all kinds, in one go.
func (p pair) put(n int) error {
	p.t.Helper()
	for range n {
		i := int(p.mem.Staged())
		r := segment.Record{Key: fmt.Append(nil, "k", i), Value: fmt.Append(nil, "v", i)}
		switch i % 5 {
		case 1:
			r.Key = nil
		case 2:
			r.Value = nil
		case 3:
			r.Headers = segment.MakeHeaders(segment.Header{Name: "h", Value: []byte("x")})
		case 4:
			r.Timestamp = int64(-i)
		}
		require.NoError(p.t, p.mem.Append(&r, int64(1000+i/3)))
	}
	if err := p.Commit(p.mem); err != nil {
		p.mem.Unstage()
		return err
	}
	return p.mem.Publish()
}

// all returns what is in memory.
func (p pair) all() (rs []segment.Record) {
	r := p.mem.NewReader()
	defer r.Close()
	var rec segment.Record
	for r.Refill() == segment.Ready {
		for r.Next(&rec) {
			rs = append(rs, rec.Clone())
		}
	}
	return rs
}

func TestLog_ComesBackAsItWas(t *testing.T) {
	m := vfs.NewMem()
	p := openPair(t, m, storage.Always)
	for n := range 40 {
		require.NoError(t, p.put(1+n%7))
	}
	want := p.all()
	q := openPair(t, m.Crash(func(int) bool { return false }), storage.Always)
	assert.Equal(t, want, q.all())
	for off := range q.mem.Committed() {
		a, ok := p.mem.TimeOf(off)
		b, ok2 := q.mem.TimeOf(off)
		require.True(t, ok && ok2)
		require.Equal(t, a, b)
	}
}

// TestLog_LittleMemory loads what fits: the newest.
func TestLog_LittleMemory(t *testing.T) {
	m := vfs.NewMem()
	p := openPair(t, m, storage.Always)
	for range 100 {
		require.NoError(t, p.put(10))
	}
	want := p.all()
	require.NoError(t, p.Close())
	l, err := storage.Open(storage.Config{Dir: "log", Disk: disk.Config{FS: m, SegmentBytes: 8 << 10}})
	require.NoError(t, err)
	defer l.Close()
	mem, err := l.Load(storage.Loading{Log: segment.Config{Pool: segment.NewPool(16<<10, 0), SegmentBytes: 4 << 10}})
	require.NoError(t, err)
	assert.Equal(t, uint64(1000), mem.Committed())
	assert.Greater(t, mem.First(), uint64(100))
	got := pair{l, mem, t}.all()
	assert.Equal(t, want[mem.First():], got)
	mem, err = l.Load(storage.Loading{Log: segment.Config{SegmentRecords: 10}, Over: func(records, _ int64) bool { return records > 95 }})
	require.NoError(t, err)
	assert.Equal(t, uint64(910), mem.First())
	pool := segment.NewPool(4<<10, 0)
	require.NoError(t, segment.NewLog(segment.Config{Pool: pool}).Append(&segment.Record{}, 0)) // somebody else has it
	_, err = l.Load(storage.Loading{Log: segment.Config{Pool: pool}})
	require.ErrorIs(t, err, segment.ErrNoMemory)
}

// TestLog_ResumeWritesAgain: the disk has lost what was visible, and memory still has it.
func TestLog_ResumeWritesAgain(t *testing.T) {
	var broken atomic.Bool
	m := vfs.NewMem()
	p := openPair(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if broken.Load() && o.Kind == vfs.OpWrite {
			return &vfs.Fault{Err: errors.New("broken")}
		}
		return nil
	}), storage.Never)
	require.NoError(t, p.put(5))
	require.NoError(t, p.Sync(context.Background(), 5))
	require.NoError(t, p.put(5))
	require.NoError(t, p.put(5))
	want := p.all()
	broken.Store(true)
	require.ErrorIs(t, p.put(1), storage.ErrIndefinite)
	_, err := p.Resume(p.mem)
	require.ErrorIs(t, err, storage.ErrReadOnly)
	broken.Store(false)

	// What was not synced is gone.
	names, err := m.List("log")
	require.NoError(t, err)
	for _, n := range names {
		if strings.HasSuffix(n, ".leat") {
			f, err := m.Open(filepath.Join("log", n))
			require.NoError(t, err)
			size, err := f.Size()
			require.NoError(t, err)
			at := int64(p.Files().Files()[0].Bytes) - 100
			_, err = f.WriteAt(make([]byte, size-at), at)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
	}
	// Until it is written again nobody is told that it is safe.
	require.NoError(t, p.Files().Resume())
	require.Less(t, p.Durable(), uint64(15))
	require.NoError(t, p.Sync(context.Background(), p.Durable()))
	require.ErrorIs(t, p.Sync(context.Background(), 15), storage.ErrReadOnly)

	came, err := p.Resume(p.mem)
	require.NoError(t, err)
	assert.Zero(t, came)
	assert.Equal(t, want, p.all())
	assert.Equal(t, uint64(15), p.Durable())
	require.NoError(t, p.put(3))
	require.NoError(t, p.Sync(context.Background(), 18))
	q := openPair(t, m.Crash(func(int) bool { return false }), storage.Never)
	assert.Equal(t, p.all(), q.all())
}

func TestLog_Closed(t *testing.T) {
	p := openPair(t, vfs.NewMem(), storage.Every)
	require.NoError(t, p.put(1))
	p.Dropped(1)
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.put(1), storage.ErrReadOnly)
	require.ErrorIs(t, p.Trim(1), storage.ErrReadOnly)
	require.ErrorIs(t, p.Sync(context.Background(), 2), storage.ErrReadOnly)
	p.Dropped(2)
	require.NoError(t, p.Close())
}

// TestLog_ResumeThatFails has files lose what is not in memory any more either: they stay unusable, also for those who look at nothing but
// the files, until somebody opens them anew.
func TestLog_ResumeThatFails(t *testing.T) {
	broken := false
	m := vfs.NewMem()
	p := openPair(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if broken && o.Kind == vfs.OpWrite {
			return &vfs.Fault{Err: errors.New("broken")}
		}
		return nil
	}), storage.Never)
	require.NoError(t, p.put(5))
	require.NoError(t, p.Sync(context.Background(), 5))
	name := p.Files().Files()[0].Name
	synced := p.Files().Files()[0].Bytes
	require.NoError(t, p.put(5))
	p.mem.Roll()
	require.NoError(t, p.put(5))
	broken = true
	require.ErrorIs(t, p.put(1), storage.ErrIndefinite)
	broken = false
	f, err := m.Open(name)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, size-synced), synced)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.True(t, p.mem.DropOldest())
	require.EqualValues(t, 10, p.mem.First())

	for range 2 {
		_, err = p.Resume(p.mem)
		require.ErrorIs(t, err, storage.ErrForgotten)
		require.ErrorIs(t, p.Err(), storage.ErrReadOnly)
		require.ErrorIs(t, p.put(1), storage.ErrReadOnly)
	}
	require.ErrorIs(t, p.Close(), storage.ErrForgotten)
	q := openPair(t, m, storage.Never)
	require.Len(t, q.all(), 5)
	require.NoError(t, q.put(1))
}

// TestLog_TellsOfARollThatFails lets the sync of a file that is full fail beside the commits, and commits nothing after that.
func TestLog_TellsOfARollThatFails(t *testing.T) {
	boom, failed, goOn := errors.New("boom"), make(chan error, 1), make(chan struct{})
	var armed atomic.Bool
	fsys := vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op) *vfs.Fault {
		if armed.Load() && o.Kind == vfs.OpSync {
			<-goOn
			return &vfs.Fault{Err: boom}
		}
		return nil
	})
	l, err := storage.Open(storage.Config{Dir: "log", Disk: disk.Config{FS: fsys, SegmentBytes: 8 << 10}, Policy: storage.Never,
		Failed: func(err error) { failed <- err }})
	require.NoError(t, err)
	mem, err := l.Load(storage.Loading{})
	require.NoError(t, err)
	p := pair{l, mem, t}
	armed.Store(true)
	for l.Stats().Files < 2 {
		require.NoError(t, p.put(10), "it is not waited for")
	}
	close(goOn)
	require.ErrorIs(t, <-failed, boom)
	require.ErrorIs(t, l.Err(), boom)
	require.Error(t, p.put(1))
	next := mem.Committed()
	armed.Store(false)
	came, err := l.Resume(mem)
	require.NoError(t, err)
	require.Zero(t, came, "all that is visible was written")
	require.Equal(t, next, l.Durable())
	require.NoError(t, p.put(1))
	require.NoError(t, l.Close())
}

// TestLog_TrimBesideARoll drops what is in older files while a full one is being sealed, for which the disk takes its time.
func TestLog_TrimBesideARoll(t *testing.T) {
	testkit.Watchdog(t)
	var armed atomic.Bool
	stuck, goOn := make(chan struct{}), make(chan struct{})
	fsys := vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op) *vfs.Fault {
		if o.Kind == vfs.OpSync && armed.CompareAndSwap(true, false) {
			close(stuck)
			<-goOn
		}
		return nil
	})
	l, err := storage.Open(storage.Config{Dir: "log", Disk: disk.Config{FS: fsys, SegmentBytes: 8 << 10}, Policy: storage.Never})
	require.NoError(t, err)
	mem, err := l.Load(storage.Loading{})
	require.NoError(t, err)
	p := pair{l, mem, t}
	for l.Stats().Files < 3 {
		require.NoError(t, p.put(10))
	}
	require.NoError(t, l.Sync(context.Background(), mem.Committed()))
	old := l.Files().Files()[1].End
	armed.Store(true)
	for files := l.Stats().Files; l.Stats().Files == files; {
		require.NoError(t, p.put(10))
	}
	<-stuck
	require.NoError(t, l.Trim(0))
	require.NoError(t, l.Trim(1))
	l.Dropped(old)
	for l.Files().First() < old || l.Stats().Files > 2 {
		runtime.Gosched()
	}
	require.False(t, l.Files().Files()[0].Sealed)
	close(goOn)
	require.NoError(t, l.Trim(mem.Committed()))
	require.NoError(t, l.Close())
}
