package disk_test

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

func TestOpen_Refuses(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		l := open(t, c)
		_, err := disk.Open(dir, c)
		require.ErrorIs(t, err, disk.ErrLocked)
		write(t, l, 1, 3)
		require.NoError(t, l.Close())
		other := c
		other.Topic[0]++
		_, err = disk.Open(dir, other)
		require.ErrorIs(t, err, disk.ErrForeign)
		other.ReadOnly = true
		_, err = disk.Open(dir, other)
		require.ErrorIs(t, err, disk.ErrForeign)
		other = c
		other.Partition++
		_, err = disk.Open(dir, other)
		require.ErrorIs(t, err, disk.ErrForeign)

		for _, name := range []string{disk.SegmentName(0), disk.StateName} {
			f, err := c.FS.Open(filepath.Join(dir, name))
			require.NoError(t, err)
			_, err = f.WriteAt([]byte{2}, 8) // the version
			require.NoError(t, err)
			_, err = disk.Open(dir, c)
			require.ErrorIs(t, err, disk.ErrVersion)
			_, err = f.WriteAt([]byte{1}, 8)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		l = open(t, c)
		requireHolds(t, l, 0, 3)
		require.NoError(t, l.Close())
	})
}

func TestOpen_ReadOnly(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		ro := disk.Config{FS: vfs.NewFaulty(c.FS, func(o vfs.Op) *vfs.Fault {
			if o.Kind.Changes() || o.Kind == vfs.OpLock {
				t.Errorf("%s", o)
			}
			return nil
		}), ReadOnly: true}
		_, err := disk.Open(dir, ro)
		require.ErrorIs(t, err, fs.ErrNotExist)
		l := open(t, c)
		write(t, l, 2, 50)
		seen := open(t, ro) // while it is open
		requireHolds(t, seen, 0, 50)
		write(t, l, 2, 60)
		requireHolds(t, seen, 0, 50)
		_, err = seen.Write(batch(50, 1, 0))
		require.ErrorIs(t, err, disk.ErrReadOnly)
		_, err = seen.Sync()
		require.ErrorIs(t, err, disk.ErrReadOnly)
		require.ErrorIs(t, seen.Trim(10), disk.ErrReadOnly)
		require.ErrorIs(t, seen.Roll(), disk.ErrReadOnly)
		require.ErrorIs(t, seen.Resume(), disk.ErrReadOnly)
		require.NoError(t, seen.Close())
		require.NoError(t, l.Close())
		seen = open(t, ro)
		requireHolds(t, seen, 0, 60)
		assert.True(t, seen.Recovery().Clean)
		require.NoError(t, seen.Close())
	})
}

// TestOpen_ReadsLittle counts what an open reads: the last file if it was not sealed, and the two ends of the others.
func TestOpen_ReadsLittle(t *testing.T) {
	m := vfs.NewMem()
	c := small(m)
	c.SegmentBytes = 1 << 20
	l := open(t, c)
	for len(l.Files()) < 12 {
		write(t, l, 100, l.Next()+1000)
	}
	require.NoError(t, l.Abandon())
	const ends = frame.SegmentBytes + frame.SealBytes
	for _, most := range []int64{1<<20 + 13*ends, 13 * ends, 14 * ends} {
		read := int64(0)
		c.FS = vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			if o.Kind == vfs.OpRead {
				read += int64(o.Len)
			}
			return nil
		})
		l := open(t, c)
		assert.LessOrEqual(t, l.Recovery().BytesRead, most)
		assert.LessOrEqual(t, read, 2*most, "with what is written again")
		require.NoError(t, l.Close())
	}
}
