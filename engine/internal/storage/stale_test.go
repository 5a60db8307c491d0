package storage_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// TestLog_StressTellsNothingStale resumes as soon as a roll has failed beside the commits: who finds that it had failed must not tell
// so any more once Resume has returned.
func TestLog_StressTellsNothingStale(t *testing.T) {
	testkit.Watchdog(t)
	var armed, fits atomic.Bool
	var stale, told atomic.Int64
	fsys := vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op) *vfs.Fault {
		if armed.Load() && o.Kind == vfs.OpSync {
			return &vfs.Fault{Err: errors.New("boom")}
		}
		return nil
	})
	l, err := storage.Open(storage.Config{Dir: "log", Disk: disk.Config{FS: fsys, SegmentBytes: 4 << 10}, Policy: storage.Never,
		Failed: func(error) {
			told.Add(1)
			if fits.Load() {
				stale.Add(1)
			}
		}})
	require.NoError(t, err)
	mem, err := l.Load(storage.Loading{})
	require.NoError(t, err)
	p := pair{l, mem, t}
	for range testkit.Rounds(2000) {
		fits.Store(false)
		armed.Store(true)
		for files := l.Stats().Files; l.Stats().Files == files && l.Err() == nil; {
			_ = p.put(10)
		}
		for l.Err() == nil {
			runtime.Gosched()
		}
		armed.Store(false)
		_, err := l.Resume(mem)
		require.NoError(t, err)
		require.NoError(t, mem.Publish())
		fits.Store(true)
		require.NoError(t, l.Trim(mem.Committed()))
	}
	require.NoError(t, l.Close())
	require.Positive(t, told.Load())
	require.Zero(t, stale.Load())
}

// TestLog_FailsAgainDuringAResume has the files fail once more while Resume reads what they hold. Who finds that is still taken for one
// who tells of the first time; so Resume tells.
func TestLog_FailsAgainDuringAResume(t *testing.T) {
	first, again := errors.New("first"), errors.New("again")
	var l *storage.Log
	var on vfs.OpKind
	fails := map[vfs.OpKind]func() *vfs.Fault{
		vfs.OpSync: func() *vfs.Fault { return &vfs.Fault{Err: first} },
		vfs.OpOpen: func() *vfs.Fault {
			if l.Err() == nil && l.Files().Epoch() == 2 { // they have been resumed, and what they hold is read
				on = 0
				l.Files().Fail(again)
				_ = l.Sync(context.Background(), 1<<40)
			}
			return nil
		},
	}
	fsys := vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op) *vfs.Fault {
		if on != 0 && o.Kind == on {
			return fails[on]()
		}
		return nil
	})
	var told []error
	l, err := storage.Open(storage.Config{Dir: "log", Disk: disk.Config{FS: fsys, SegmentBytes: 8 << 10},
		Failed: func(err error) { told = append(told, err) }})
	require.NoError(t, err)
	mem, err := l.Load(storage.Loading{})
	require.NoError(t, err)
	p := pair{l, mem, t}
	require.NoError(t, p.put(3))
	on = vfs.OpSync
	require.ErrorIs(t, p.put(2), storage.ErrIndefinite)
	require.Len(t, told, 1)
	on = vfs.OpOpen
	came, err := l.Resume(mem)
	require.NoError(t, err)
	require.Equal(t, 2, came)
	require.Zero(t, on, "they failed meanwhile")
	require.Len(t, told, 2)
	require.ErrorIs(t, told[0], first)
	require.ErrorIs(t, told[1], again)
	require.NoError(t, mem.Publish())
	require.ErrorIs(t, p.put(1), again)
	require.Len(t, told, 2)
	_, err = l.Resume(mem)
	require.NoError(t, err)
	require.NoError(t, p.put(1))
	require.NoError(t, l.Close())
}
