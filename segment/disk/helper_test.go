package disk_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

var topic = frame.ID{1, 2, 3}

const dir = "p"

// errBoom is what a file system that is made to fail says.
var errBoom = errors.New("boom")

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

// read returns what is in a file.
func read(t testing.TB, fsys vfs.FS, name string) []byte {
	f, err := fsys.OpenRead(name)
	require.NoError(t, err)
	defer f.Close()
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	if size > 0 {
		_, err = f.ReadAt(b, 0)
		require.NoError(t, err)
	}
	return b
}

// put makes a file.
func put(t testing.TB, fsys vfs.FS, name string, b []byte) {
	f, err := fsys.Create(name)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

// snapshot returns all files of a log.
func snapshot(t testing.TB, m *vfs.Mem) map[string]string {
	names, err := m.List(dir)
	require.NoError(t, err)
	all := map[string]string{}
	for _, name := range names {
		all[name] = string(read(t, m, filepath.Join(dir, name)))
	}
	return all
}
