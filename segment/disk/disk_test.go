package disk_test

import (
	"bytes"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

func TestLog_HoldsWhatWasWritten(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		l := open(t, c)
		assert.True(t, l.Recovery().New)
		assert.EqualValues(t, 1, l.Epoch())
		write(t, l, 3, 99)
		requireHolds(t, l, 0, 99)
		files := l.Files()
		assert.Greater(t, len(files), 3)
		for i, f := range files {
			assert.Equal(t, i < len(files)-1, f.Sealed)
			if i > 0 {
				assert.Equal(t, files[i-1].End, f.First)
			}
		}
		for from := range uint64(100) {
			all, err := lives(l, from)
			require.NoError(t, err)
			require.Len(t, all, int(99-from))
		}
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		_, err := l.Write(batch(99, 1, 0))
		assert.ErrorIs(t, err, disk.ErrClosed)
		_, err = l.Sync()
		assert.ErrorIs(t, err, disk.ErrClosed)
		assert.ErrorIs(t, l.Trim(1), disk.ErrClosed)
		assert.ErrorIs(t, l.Roll(), disk.ErrClosed)
		assert.ErrorIs(t, l.Resume(), disk.ErrClosed)
		_, err = l.NewReader(0)
		assert.ErrorIs(t, err, disk.ErrClosed)

		l = open(t, c)
		assert.True(t, l.Recovery().Clean)
		assert.Nil(t, l.Recovery().Cut)
		assert.EqualValues(t, 2, l.Epoch())
		assert.EqualValues(t, 99, l.Durable())
		write(t, l, 1, 130)
		requireHolds(t, l, 0, 130)
		require.NoError(t, l.Abandon())
		require.NoError(t, l.Close())

		l = open(t, c)
		assert.False(t, l.Recovery().Clean)
		assert.EqualValues(t, 3, l.Epoch())
		requireHolds(t, l, 0, 130)
		require.NoError(t, l.Close())
	})
}

func TestLog_OpensThatWriteNothingLeaveNothing(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		write0 := func(n uint64) {
			l := open(t, c)
			write(t, l, 1, n)
			require.NoError(t, l.Close())
		}
		write0(0)
		for i := range 5 {
			l := open(t, c)
			assert.Len(t, l.Files(), 1)
			assert.EqualValues(t, i+2, l.Epoch())
			require.NoError(t, l.Abandon())
		}
		write0(3)
		for range 3 {
			l := open(t, c)
			assert.Len(t, l.Files(), 2)
			requireHolds(t, l, 0, 3)
			require.NoError(t, l.Close())
		}
	})
}

func TestLog_LargeBatchGetsAFile(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		l := open(t, c)
		var b frame.Builder
		for range 3 {
			for _, size := range []int{10, 100_000, 10, 400_000} {
				b.Reset(0)
				b.Add(&frame.Record{Value: bytes.Repeat([]byte{7}, size)})
				_, err := l.Write(&b)
				require.NoError(t, err)
			}
		}
		require.NoError(t, l.Abandon())
		l = open(t, c)
		r, err := l.NewReader(0)
		require.NoError(t, err)
		for i := range 12 {
			f, err := r.Next()
			require.NoError(t, err)
			var rec frame.Record
			it := f.Records()
			require.True(t, it.Next(&rec))
			require.Len(t, rec.Value, []int{10, 100_000, 10, 400_000}[i%4])
		}
		_, err = r.Next()
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, r.Close())
		require.NoError(t, l.Close())
	})
}

func TestLog_FirstOffset(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		c.First = frame.MaxOffset - 20
		l := open(t, c)
		requireHolds(t, l, c.First, c.First)
		write(t, l, 5, frame.MaxOffset-5)
		_, err := l.Write(batch(l.Next(), 6, 0))
		require.ErrorIs(t, err, disk.ErrTooLarge)
		write(t, l, 5, frame.MaxOffset)
		_, err = l.Write(batch(0, 1, 0))
		require.ErrorIs(t, err, disk.ErrTooLarge)
		require.NoError(t, l.Close())
		c.First = 0 // for a log that is there it does not matter
		l = open(t, c)
		requireHolds(t, l, frame.MaxOffset-20, frame.MaxOffset)
		require.NoError(t, l.Close())
	})
}

func TestConfig_Wrong(t *testing.T) {
	for _, c := range []disk.Config{{SegmentBytes: 1}, {SegmentBytes: -1}, {SegmentBytes: 1 << 50}, {First: 1 << 63}} {
		c.FS = vfs.NewMem()
		_, err := disk.Open(dir, c)
		assert.Error(t, err)
		_, err = disk.Salvage(dir, "q", c)
		assert.Error(t, err)
	}
}

func TestLog_OffsetAt(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		c.SegmentBytes = 64 << 10
		l := open(t, c)
		write(t, l, 3, 3000) // record n is of time 10n
		require.NoError(t, l.Trim(4))
		check := func() {
			for _, at := range []int64{math.MinInt64, 0, 31, 59, 60, 61, 4711, 29_990} {
				got, err := l.OffsetAt(at)
				require.NoError(t, err)
				want := uint64(max(at+9, 0)/10) / 3 * 3
				require.Equal(t, max(want, 4), got, "%d", at)
			}
			got, err := l.OffsetAt(29_991)
			require.NoError(t, err)
			require.EqualValues(t, 3000, got)
		}
		check()
		require.NoError(t, l.Close())
		l = open(t, c)
		check()
		require.NoError(t, l.Close())
	})
}

func TestSegmentName(t *testing.T) {
	for _, base := range []uint64{0, 1, 4711, frame.MaxOffset} {
		got, ok := disk.ParseName(disk.SegmentName(base))
		assert.True(t, ok)
		assert.Equal(t, base, got)
	}
	for _, name := range []string{"", "1.leat", disk.SegmentName(0) + ".tmp", "99999999999999999999.leat", "0000000000000000000x.leat",
		"09223372036854775808.leat", "18446744073709551616.leat"} {
		_, ok := disk.ParseName(name)
		assert.False(t, ok, name)
	}
	assert.True(t, strings.Compare(disk.SegmentName(9), disk.SegmentName(10)) < 0)
}

func TestRemove(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		require.NoError(t, disk.Remove(dir, c.FS))
		l := open(t, c)
		write(t, l, 2, 50)
		require.ErrorIs(t, disk.Remove(dir, c.FS), disk.ErrLocked)
		requireHolds(t, l, 0, 50)
		require.NoError(t, l.Close())
		put(t, c.FS, filepath.Join(dir, disk.SegmentName(999)+".tmp"), nil)
		put(t, c.FS, filepath.Join(dir, "other"), nil)
		require.NoError(t, disk.Remove(dir, c.FS))
		names, err := c.FS.List(dir)
		require.NoError(t, err)
		require.Equal(t, []string{"other"}, names)
		l = open(t, c)
		assert.True(t, l.Recovery().New)
		require.NoError(t, l.Close())
		require.NoError(t, c.FS.Remove(filepath.Join(dir, "other")))
		require.NoError(t, disk.Remove(dir, c.FS))
		_, err = c.FS.Stat(dir)
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}
