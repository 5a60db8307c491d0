package disk_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

var topic = frame.ID{1, 2, 3}

const dir = "p"

// small returns a config with the smallest files.
func small(fsys vfs.FS) disk.Config {
	return disk.Config{FS: fsys, Topic: topic, Partition: 4, SegmentBytes: disk.MinSegmentBytes, Now: func() int64 { return 1 }}
}

// value is the value of the record at an offset. Its first bytes say which it is.
func value(off uint64, life uint32) []byte {
	b := make([]byte, 12+(off*37+uint64(life)*11)%90)
	binary.LittleEndian.PutUint64(b, off)
	binary.LittleEndian.PutUint32(b[8:], life)
	for i := 12; i < len(b); i++ {
		b[i] = byte(off) + byte(i)
	}
	return b
}

// batch returns a builder with n records from first on.
func batch(first uint64, n int, life uint32) *frame.Builder {
	var b frame.Builder
	for i := range n {
		off := first + uint64(i)
		b.Add(&frame.Record{Value: value(off, life), Appended: int64(off) * 10})
	}
	return &b
}

// open opens a log that must be sound.
func open(t testing.TB, c disk.Config) *disk.Log {
	l, err := disk.Open(dir, c)
	require.NoError(t, err)
	return l
}

// write writes and syncs batches of n records until the log ends at least at upTo.
func write(t testing.TB, l *disk.Log, n int, upTo uint64) {
	for l.Next() < upTo {
		want := l.Next()
		first, err := l.Write(batch(want, n, 0))
		require.NoError(t, err)
		require.Equal(t, want, first)
		require.Equal(t, want+uint64(n), l.Next())
	}
	durable, err := l.Sync()
	require.NoError(t, err)
	require.Equal(t, l.Next(), durable)
	require.Equal(t, durable, l.Durable())
}

// lives reads a log from an offset on, checks each record, and returns the lives in them. Offsets that are lost have
// math.MaxUint32.
func lives(l *disk.Log, from uint64) (all []uint32, err error) {
	r, err := l.NewReader(from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	next := from
	for {
		b, err := r.Next()
		if err == io.EOF {
			if next != r.Offset() || next != l.Next() {
				return all, fmt.Errorf("came to %d of %d", next, l.Next())
			}
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if b.Kind == frame.Lost {
			for ; next < b.Next(); next++ {
				all = append(all, math.MaxUint32)
			}
			continue
		}
		var rec frame.Record
		it := b.Records()
		for it.Next(&rec) {
			if rec.Offset < from {
				continue
			}
			if rec.Offset != next || len(rec.Value) < 12 {
				return all, fmt.Errorf("offset %d where %d should be", rec.Offset, next)
			}
			life := binary.LittleEndian.Uint32(rec.Value[8:])
			if !bytes.Equal(rec.Value, value(next, life)) || rec.Appended != int64(next)*10 || rec.Key != nil || rec.Headers != nil {
				return all, fmt.Errorf("wrong bytes at offset %d", next)
			}
			all = append(all, life)
			next++
		}
		if err := it.Err(); err != nil {
			return all, err
		}
	}
}

// requireHolds checks that a log holds [first, next) of life 0.
func requireHolds(t testing.TB, l *disk.Log, first, next uint64) {
	require.Equal(t, first, l.First())
	require.Equal(t, next, l.Next())
	all, err := lives(l, first)
	require.NoError(t, err)
	require.Len(t, all, int(next-first))
	for _, life := range all {
		require.Zero(t, life)
	}
}

// each runs a test on the real file system and in memory.
func each(t *testing.T, test func(t *testing.T, c disk.Config)) {
	testkit.Watchdog(t)
	t.Run("os", func(t *testing.T) {
		t.Chdir(t.TempDir())
		test(t, small(vfs.OS{}))
	})
	t.Run("mem", func(t *testing.T) { test(t, small(vfs.NewMem())) })
}

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

func TestLog_Trim(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		l := open(t, c)
		write(t, l, 2, 100)
		n := len(l.Files())
		require.NoError(t, l.Trim(0))
		require.NoError(t, l.Trim(1))
		require.Len(t, l.Files(), n, "only whole files go")
		_, err := l.NewReader(0)
		require.ErrorIs(t, err, disk.ErrBelow)
		requireHolds(t, l, 1, 100)

		r, err := l.NewReader(1)
		require.NoError(t, err)
		_, err = r.Next()
		require.NoError(t, err)
		require.NoError(t, l.Trim(51))
		require.Less(t, len(l.Files()), n)
		requireHolds(t, l, 51, 100)
		for err == nil { // to the end of its file, which is gone
			_, err = r.Next()
		}
		var gap *disk.OffsetError
		require.ErrorAs(t, err, &gap)
		assert.ErrorIs(t, err, disk.ErrBelow)
		assert.NotErrorIs(t, err, disk.ErrBeyond)
		assert.EqualValues(t, 51, gap.First)
		require.NoError(t, r.Close())

		require.ErrorIs(t, l.Trim(101), disk.ErrBeyond)
		require.NoError(t, l.Trim(40), "below First it does nothing")
		require.NoError(t, l.Abandon())
		l = open(t, c)
		requireHolds(t, l, 51, 100)
		require.NoError(t, l.Close())
	})
}

// TestBUG085_NumberingGoesOnWhenEverythingHasBeenTrimmed drops every record, ends cleanly and not, and goes on.
func TestBUG085_NumberingGoesOnWhenEverythingHasBeenTrimmed(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		next := uint64(0)
		for round := range 6 {
			l := open(t, c)
			requireHolds(t, l, next, next)
			write(t, l, 1, next+30)
			next += 30
			require.NoError(t, l.Trim(next))
			requireHolds(t, l, next, next)
			if round%2 == 0 {
				require.NoError(t, l.Close())
			} else {
				require.NoError(t, l.Abandon())
			}
		}
	})
}

func TestReader_FollowsTheWriter(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		l := open(t, c)
		r, err := l.NewReader(0)
		require.NoError(t, err)
		for n := range uint64(100) {
			_, err = r.Next()
			require.ErrorIs(t, err, io.EOF)
			_, err = l.Write(batch(n, 1, 0))
			require.NoError(t, err)
			b, err := r.Next()
			require.NoError(t, err)
			require.Equal(t, n, b.First)
			require.Equal(t, n+1, r.Offset())
		}
		_, err = l.NewReader(101)
		require.ErrorIs(t, err, disk.ErrBeyond)
		require.NoError(t, l.Close())
		_, err = r.Next()
		require.ErrorIs(t, err, disk.ErrClosed)
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
	})
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

func TestLog_FullDisk(t *testing.T) {
	m := vfs.NewMem()
	c := small(m)
	l := open(t, c)
	m.SetLimit(40_000)
	var err error
	for err == nil {
		_, err = l.Write(batch(l.Next(), 3, 0))
		if err == nil {
			_, err = l.Sync()
		}
	}
	require.ErrorIs(t, err, disk.ErrFull)
	require.ErrorIs(t, err, disk.ErrFailed)
	require.True(t, vfs.IsFull(err))
	end := l.Next()
	require.Greater(t, end, uint64(50))
	requireHolds(t, l, 0, end)
	_, err = l.Write(batch(end, 1, 0))
	require.ErrorIs(t, err, disk.ErrFull, "it stays")
	_, err = l.Sync()
	require.ErrorIs(t, err, disk.ErrFull)
	m.SetLimit(m.Used())
	require.ErrorIs(t, l.Resume(), disk.ErrFull)
	requireHolds(t, l, 0, end)
	_, err = l.Write(batch(end, 1, 0))
	require.ErrorIs(t, err, disk.ErrFull)

	m.SetLimit(100_000)
	require.NoError(t, l.Resume())
	require.NoError(t, l.Err())
	require.NoError(t, l.Resume(), "when it works there is nothing to do")
	requireHolds(t, l, 0, end)
	write(t, l, 3, end+9)
	require.NoError(t, l.Close())
	l = open(t, c)
	requireHolds(t, l, 0, end+9)
	require.NoError(t, l.Close())
}

// TestBUG080_FailedSyncIsFinal fails one sync, and lets all later ones succeed, of which the kernel says nothing is wrong. What
// it had lost must not count as durable, then or after Resume or an open.
func TestBUG080_FailedSyncIsFinal(t *testing.T) {
	boom := errors.New("boom")
	for _, how := range []string{"resume", "open"} {
		for n := 1; n < 40; n++ {
			m := vfs.NewMem()
			failed := false
			nth := vfs.Nth(n, vfs.Fault{Err: boom, Lose: true}, vfs.OpSync)
			c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
				f := nth(o)
				failed = failed || f != nil
				return f
			}))
			l, err := disk.Open(dir, c)
			acked := uint64(0)
			for round := 0; err == nil && round < 20; round++ {
				for range 2 {
					if err == nil {
						_, err = l.Write(batch(l.Next(), 2, 0))
					}
				}
				if err == nil {
					acked, err = l.Sync()
				}
			}
			require.Equal(t, failed, err != nil)
			if l != nil && failed {
				require.ErrorIs(t, err, boom)
				require.Equal(t, acked, l.Durable())
				for range 3 {
					_, err = l.Sync()
					require.ErrorIs(t, err, boom, "it is not tried again")
					_, err = l.Write(batch(0, 1, 0))
					require.ErrorIs(t, err, disk.ErrFailed)
				}
				if how == "resume" {
					require.NoError(t, l.Resume())
				} else {
					require.ErrorIs(t, l.Close(), boom)
					l = nil
				}
			}
			if l == nil {
				l = open(t, c)
			}
			requireHolds(t, l, 0, l.Next())
			end := l.Next()
			require.GreaterOrEqual(t, end, acked)
			require.Equal(t, end, l.Durable())
			// What it says now is true: a power cut that takes all that is not safe takes nothing of it.
			c.FS = m.Crash(func(int) bool { return false })
			after := open(t, c)
			requireHolds(t, after, 0, end)
			require.NoError(t, after.Close())
			require.NoError(t, l.Close())
		}
	}
}

// TestBUG119_EachFailingOperationOfATrim fails each operation of a trim, and then looks at what there is.
func TestBUG119_EachFailingOperationOfATrim(t *testing.T) {
	boom := errors.New("boom")
	for _, fault := range []vfs.Fault{{Err: boom}, {Err: boom, Done: true}, {Err: boom, Keep: 10}, {Err: boom, Lose: true}} {
		for n := 1; ; n++ {
			m := vfs.NewMem()
			armed := false
			nth := vfs.Nth(n, fault)
			c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
				if !armed {
					return nil
				}
				return nth(o)
			}))
			l := open(t, c)
			write(t, l, 2, 60)
			_, err := l.Write(batch(60, 2, 0))
			require.NoError(t, err)
			armed = true
			err = l.Trim(61)
			armed = false
			first := l.First()
			if err == nil {
				require.EqualValues(t, 61, first)
				require.NoError(t, l.Close())
				require.Greater(t, n, 6)
				break
			}
			require.ErrorIs(t, err, boom)
			require.Contains(t, []uint64{0, 61}, first)
			requireHolds(t, l, first, 62)
			require.ErrorIs(t, l.Trim(62), boom)
			require.ErrorIs(t, l.Close(), boom)
			l = open(t, c)
			require.Contains(t, []uint64{first, 61}, l.First())
			requireHolds(t, l, l.First(), 62)
			require.NoError(t, l.Trim(61))
			require.NoError(t, l.Close())
			l = open(t, c)
			requireHolds(t, l, 61, 62)
			require.NoError(t, l.Close())
		}
	}
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

// TestReader_OutlivesAResume lets readers stand before, in and behind what a Resume takes away.
func TestReader_OutlivesAResume(t *testing.T) {
	boom := errors.New("boom")
	m := vfs.NewMem()
	var fault func(vfs.Op) *vfs.Fault
	l := open(t, small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if fault == nil {
			return nil
		}
		return fault(o)
	})))
	write(t, l, 2, 30)
	_, err := l.Write(batch(30, 2, 0))
	require.NoError(t, err)
	var readers []*disk.Reader
	for _, from := range []uint64{0, 26, 30, 32} {
		r, err := l.NewReader(from)
		require.NoError(t, err)
		readers = append(readers, r)
	}
	for _, r := range readers[:2] {
		_, err = r.Next()
		require.NoError(t, err)
	}
	fault = vfs.Nth(1, vfs.Fault{Err: boom, Lose: true}, vfs.OpSync)
	_, err = l.Sync()
	require.ErrorIs(t, err, boom)
	path := l.Files()[len(l.Files())-1].Name
	f, err := m.Open(path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(l.Files()[len(l.Files())-1].Bytes-8)) // the last frame is gone
	require.NoError(t, f.Close())
	require.NoError(t, l.Resume())
	require.EqualValues(t, 30, l.Next())
	for i, want := range []uint64{30, 30, 30, 32} {
		r := readers[i]
		for err = nil; err == nil; {
			_, err = r.Next()
		}
		if i < 3 {
			require.ErrorIs(t, err, io.EOF)
		} else {
			require.ErrorIs(t, err, disk.ErrBeyond)
		}
		require.Equal(t, want, r.Offset())
	}
	write(t, l, 2, 34)
	for _, r := range readers {
		for err = nil; err == nil; {
			_, err = r.Next()
		}
		require.ErrorIs(t, err, io.EOF)
		require.EqualValues(t, 34, r.Offset())
		require.NoError(t, r.Close())
	}
	require.NoError(t, l.Close())
}
