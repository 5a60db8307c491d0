package disk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// TestLog_FullDiskOfTheSystem lets the system refuse longer files, in a write that comes half and in taking space for a new file,
// and then lets it be.
func TestLog_FullDiskOfTheSystem(t *testing.T) {
	t.Chdir(t.TempDir())
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	limit := func(bytes uint64) {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: min(bytes, old.Max), Max: old.Max}))
	}
	t.Cleanup(func() { limit(old.Cur) })
	c := small(vfs.OS{})
	l := open(t, c)
	end := uint64(0)
	for _, bytes := range []uint64{700, 64, disk.MinSegmentBytes - 1} {
		write(t, l, 1, end+10)
		end = l.Next()
		limit(bytes)
		var err error
		for err == nil {
			_, err = l.Write(batch(l.Next(), 3, 0))
		}
		limit(old.Cur)
		require.ErrorIs(t, err, disk.ErrFull)
		_, err = l.Sync()
		require.ErrorIs(t, err, disk.ErrFailed)
		written := l.Next()
		assert.GreaterOrEqual(t, written, end)
		requireHolds(t, l, 0, written)
		require.NoError(t, l.Resume())
		requireHolds(t, l, 0, written)
		end = written
	}
	write(t, l, 2, end+20)
	end = l.Next()
	require.NoError(t, l.Close())
	l = open(t, c)
	requireHolds(t, l, 0, end)
	require.NoError(t, l.Close())
}
