package storage_test

import (
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
