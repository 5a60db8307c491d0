package storage_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// filled returns a file system with a log of files of 16 KiB that was closed: n records, each of a batch of its own of up to some.
func filled(t testing.TB, n int) *vfs.Mem {
	m := vfs.NewMem()
	p := openPair(t, m, storage.Never)
	for int(p.mem.Staged()) < n {
		require.NoError(t, p.put(min(7, n-int(p.mem.Staged()))))
	}
	require.NoError(t, p.Close())
	return m
}

// reopen opens the files.
func reopen(t testing.TB, fsys vfs.FS) *storage.Log {
	l, err := storage.Open(storage.Config{Dir: "log", Disk: disk.Config{FS: fsys, SegmentBytes: 8 << 10}, Policy: storage.Never})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// all reads all records of a log.
func all(t testing.TB, mem *segment.Log) []segment.Record {
	first, next := mem.Snapshot()
	recs := make([]segment.Record, next-first)
	n, err := mem.ReadAt(first, recs)
	require.NoError(t, err)
	require.Len(t, recs, n)
	return recs
}

// TestLoad_Cold leaves what is old in the files, and reads it when somebody wants it: no more than that.
func TestLoad_Cold(t *testing.T) {
	m := filled(t, 3000)
	var mu sync.Mutex
	read := map[string]int64{}
	counted := vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if o.Kind == vfs.OpRead {
			mu.Lock()
			defer mu.Unlock()
			read[o.Name] += int64(o.Len)
		}
		return nil
	})
	total := func() (n int64) {
		mu.Lock()
		defer mu.Unlock()
		for _, b := range read {
			n += b
		}
		return n
	}
	l := reopen(t, counted)
	opened := total()
	mem, err := l.Load(storage.Loading{Log: segment.Config{SegmentBytes: 4096}, Warm: 10_000})
	require.NoError(t, err)
	assert.Greater(t, mem.Cold(), 10)
	assert.Less(t, total()-opened, int64(30_000), "the newest only")
	loaded := total()
	var one [1]segment.Record
	_, err = mem.ReadAt(500, one[:])
	require.NoError(t, err)
	assert.Equal(t, "k500", string(one[0].Key))
	assert.Less(t, total()-loaded, int64(10_000), "one segment")

	warm := reopen(t, m.Crash(func(int) bool { return true }))
	want, err := warm.Load(storage.Loading{Warm: -1})
	require.NoError(t, err)
	assert.Zero(t, want.Cold())
	assert.Equal(t, all(t, want), all(t, mem))
	assert.Zero(t, mem.Cold())
	_, wantBytes, _ := want.Retained()
	_, bytes, _ := mem.Retained()
	assert.Equal(t, wantBytes, bytes)

	// A small one is read as a whole.
	small, err := warm.Load(storage.Loading{})
	require.NoError(t, err)
	assert.Zero(t, small.Cold())
}

// TestLoad_ColdLimits drops what is over, and what does not fit into memory, as if all had been read.
func TestLoad_ColdLimits(t *testing.T) {
	m := filled(t, 3000)
	for _, c := range []storage.Loading{
		{Over: func(records, _ int64) bool { return records > 1000 }},
		{Over: func(_, bytes int64) bool { return bytes > 20_000 }},
		{Log: segment.Config{Pool: segment.NewPool(32<<10, 0)}},
		{Log: segment.Config{SegmentRecords: 50}},
		{RollAfter: 100},
	} {
		c.Log.SegmentBytes = 4096
		l := reopen(t, m.Crash(func(int) bool { return true }))
		c.Warm = 4096
		mem, err := l.Load(c)
		require.NoError(t, err)
		if c.Log.Pool != nil {
			assert.LessOrEqual(t, c.Log.Pool.Used(), int64(32<<10))
		}
		records, bytes, segments := mem.Retained()
		assert.Positive(t, mem.Cold())
		if c.Over != nil {
			assert.False(t, c.Over(records, bytes))
			assert.True(t, c.Over(records+300, bytes+5000), "no more than that")
		}
		assert.EqualValues(t, 3000, mem.Committed())
		list := all(t, mem)
		assert.Len(t, list, int(records))
		if c.Log.Pool != nil {
			assert.LessOrEqual(t, c.Log.Pool.Used(), int64(32<<10), "what was loaded had been counted")
		}
		if c.RollAfter > 0 || c.Log.SegmentRecords > 0 {
			assert.Greater(t, segments, 9)
		}
		free(mem)
		if c.Log.Pool != nil {
			assert.Zero(t, c.Log.Pool.Used())
		}
	}
}

func free(mem *segment.Log) {
	for mem.DropOldest() {
	}
}

// TestLoad_ColdFails has a load meet a file that cannot be read, one that is damaged or gone, and a log that is closed.
func TestLoad_ColdFails(t *testing.T) {
	m := filled(t, 3000)
	var fault *vfs.Fault
	l := reopen(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if o.Kind == vfs.OpRead {
			return fault
		}
		return nil
	}))
	mem, err := l.Load(storage.Loading{Log: segment.Config{SegmentBytes: 4096}, Warm: 1})
	require.NoError(t, err)
	r := mem.NewReader()
	defer r.Close()
	try := func() error {
		if s := r.Refill(); s != segment.Unreadable {
			assert.Equal(t, segment.Ready, s)
			return nil
		}
		assert.Zero(t, r.Position())
		return r.Err()
	}
	boom := errors.New("boom")
	fault = &vfs.Fault{Err: boom}
	var load *storage.LoadError
	err = try()
	require.ErrorAs(t, err, &load)
	require.ErrorIs(t, err, boom)
	require.NotErrorIs(t, err, storage.ErrCorrupt)
	require.Zero(t, load.From)
	require.NotZero(t, load.To)

	name := l.Files().Files()[0].Name
	flip := func() {
		f, err := m.Open(name)
		require.NoError(t, err)
		defer f.Close()
		var b [1]byte
		_, err = f.ReadAt(b[:], 300)
		require.NoError(t, err)
		b[0] ^= 0x40
		_, err = f.WriteAt(b[:], 300)
		require.NoError(t, err)
	}
	fault = nil
	flip()
	var bad *disk.CorruptError
	err = try()
	require.ErrorIs(t, err, storage.ErrCorrupt)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, name, bad.File)
	require.NotZero(t, bad.Pos)
	flip()
	moved := name + "x"
	require.NoError(t, m.Rename(name, moved))
	err = try()
	require.ErrorIs(t, err, storage.ErrCorrupt)
	require.ErrorAs(t, err, &bad)
	require.Equal(t, name, bad.File)
	require.NoError(t, m.Rename(moved, name))
	require.NoError(t, try(), "now it can be read")
	r.Seek(1000)
	require.NoError(t, l.Close())
	require.Equal(t, segment.Unreadable, r.Refill())
	require.ErrorIs(t, r.Err(), disk.ErrClosed)
	require.NotErrorIs(t, r.Err(), fs.ErrNotExist)
}

// TestLoad_ColdResume has the files fail and be resumed: what had been left in them is read as before.
func TestLoad_ColdResume(t *testing.T) {
	m := filled(t, 1000)
	l := reopen(t, m)
	mem, err := l.Load(storage.Loading{Log: segment.Config{SegmentBytes: 4096}, Warm: 1})
	require.NoError(t, err)
	p := pair{l, mem, t}
	m.SetLimit(0)
	for err == nil {
		err = p.put(10)
	}
	require.ErrorIs(t, err, storage.ErrNoSpace)
	var recs [20]segment.Record
	n, err := mem.ReadAt(100, recs[:])
	require.NoError(t, err, "readers go on")
	require.Equal(t, 20, n)
	m.SetLimit(-1)
	_, err = l.Resume(mem)
	require.NoError(t, err)
	require.NoError(t, mem.Publish())
	require.Positive(t, mem.Cold())
	require.NoError(t, p.put(10))
	for i, r := range all(t, mem) {
		require.EqualValues(t, i, r.Offset)
		if i%5 != 1 {
			require.Equal(t, fmt.Sprint("k", i), string(r.Key))
		}
	}
	require.NoError(t, l.Close())
}

// TestLoad_ColdTrimmed drops from memory, and so from the files, what others are about to load: they are below the log's beginning
// then, and nothing else.
func TestLoad_ColdTrimmed(t *testing.T) {
	for range 20 {
		m := filled(t, 3000)
		l := reopen(t, m)
		mem, err := l.Load(storage.Loading{Log: segment.Config{SegmentBytes: 4096}, Warm: 1})
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				r := mem.NewReader()
				defer r.Close()
				var rec segment.Record
				for want := r.Position(); want < 3000; {
					switch s := r.Refill(); s {
					case segment.Ready:
						for r.Next(&rec) {
							if rec.Offset != int64(want) || want%5 != 1 && string(rec.Key) != fmt.Sprint("k", want) {
								t.Errorf("%d: %+v", want, rec)
							}
							want++
						}
					case segment.Below:
						want = mem.First()
						r.Seek(want)
					default:
						t.Errorf("%v at %d of %d: %v", s, want, mem.First(), r.Err())
						return
					}
				}
			})
		}
		wg.Go(func() {
			for mem.First() < 2900 && mem.DropOldest() {
				l.Dropped(mem.First())
			}
		})
		wg.Wait()
		require.NoError(t, l.Close())
	}
}

// TestLoad_ColdModel compares a log that was loaded cold with one that was read: over random appends of all kinds of records, files
// of several openings, trims, crashes, and reads and searches anywhere.
func TestLoad_ColdModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := vfs.NewMem()
		now, own := int64(1000), rapid.IntRange(0, 2).Draw(rt, "own timestamps")
		fileBytes := rapid.SampledFrom([]int64{4 << 10, 8 << 10, 64 << 10}).Draw(rt, "file bytes")
		open := func() *storage.Log {
			l, err := storage.Open(storage.Config{Dir: "log", Disk: disk.Config{FS: m, SegmentBytes: fileBytes}, Policy: storage.Never})
			require.NoError(rt, err)
			return l
		}
		for range rapid.IntRange(1, 3).Draw(rt, "openings") {
			l := open()
			mem, err := l.Load(storage.Loading{Log: segment.Config{SegmentBytes: 4096}, Warm: rapid.SampledFrom([]int64{-1, 1, 5000}).Draw(rt, "warm")})
			require.NoError(rt, err)
			for range rapid.IntRange(0, 60).Draw(rt, "batches") {
				for range rapid.IntRange(1, 9).Draw(rt, "records") {
					now += rapid.Int64Range(0, 3).Draw(rt, "later")
					r := segment.Record{Value: make([]byte, rapid.IntRange(0, 100).Draw(rt, "size"))}
					switch rapid.IntRange(0, 4).Draw(rt, "kind") {
					case 0:
						r.Key = []byte("key")
					case 1:
						r.Value = nil
					case 2:
						r.Headers = segment.MakeHeaders(segment.Header{Name: "h", Value: []byte("v")})
					}
					if own == 2 || own == 1 && rapid.IntRange(0, 9).Draw(rt, "own") == 0 {
						r.Timestamp = now + rapid.Int64Range(-500, 100).Draw(rt, "timestamp")
					}
					require.NoError(rt, mem.Append(&r, now))
				}
				require.NoError(rt, l.Commit(mem))
				require.NoError(rt, mem.Publish())
			}
			if rapid.Bool().Draw(rt, "trim") {
				mem.TruncateBefore(rapid.Uint64Range(mem.First(), mem.Committed()).Draw(rt, "below"))
				l.Dropped(mem.First())
			}
			if rapid.Bool().Draw(rt, "crash") {
				_, err := l.Files().Sync()
				require.NoError(rt, err)
				require.NoError(rt, l.Abandon())
				m = m.Crash(func(int) bool { return true })
			} else {
				require.NoError(rt, l.Close())
			}
		}
		l := open()
		defer l.Close()
		c := storage.Loading{Log: segment.Config{SegmentBytes: rapid.SampledFrom([]int{0, 4096}).Draw(rt, "segment bytes")}, Warm: 1}
		if rapid.Bool().Draw(rt, "roll") {
			c.RollAfter = 50
		}
		got, err := l.Load(c)
		require.NoError(rt, err)
		c.Warm = -1
		want, err := l.Load(c)
		require.NoError(rt, err)
		first, next := want.Snapshot()
		same := func(from uint64, n int) {
			a, b := make([]segment.Record, n), make([]segment.Record, n)
			i, err := got.ReadAt(from, a)
			k, wrong := want.ReadAt(from, b)
			require.Equal(rt, wrong, err)
			require.Equal(rt, k, i)
			require.Equal(rt, b[:k], a[:i])
		}
		search := func(at int64) {
			a, err := got.OffsetAt(at)
			require.NoError(rt, err)
			b, err := want.OffsetAt(at)
			require.NoError(rt, err)
			require.Equal(rt, b, a, "time %d", at)
		}
		f, n := got.Snapshot()
		require.Equal(rt, []uint64{first, next}, []uint64{f, n})
		for range 20 {
			if rapid.Bool().Draw(rt, "search") {
				search(rapid.Int64Range(400, now+200).Draw(rt, "time"))
			} else {
				same(rapid.Uint64Range(first, next).Draw(rt, "from"), rapid.IntRange(1, 40).Draw(rt, "n"))
			}
		}
		search(math.MinInt64)
		search(math.MaxInt64)
		same(first, int(next-first)+1)
	})
}

// TestLoad_ColdDamage flips each of some bytes of each file: the log opens or is refused, and what it then gives is right or an
// error that says so.
func TestLoad_ColdDamage(t *testing.T) {
	m := filled(t, 1200)
	l := reopen(t, m.Crash(func(int) bool { return true }))
	right, err := l.Load(storage.Loading{Warm: -1})
	require.NoError(t, err)
	want := all(t, right)
	files := l.Files().Files()
	step := int64(97)
	if testing.Short() {
		step = 997
	}
	opened, found, refused := 0, 0, 0
	for _, file := range files {
		for at := int64(0); at < file.Bytes+frame.SealSize(2); at += step {
			x := m.Crash(func(int) bool { return true })
			f, err := x.Open(file.Name)
			if err != nil {
				break // it was made by the open above
			}
			var b [1]byte
			if n, _ := f.ReadAt(b[:], at); n == 0 {
				break
			}
			b[0] ^= 0x24
			_, err = f.WriteAt(b[:], at)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			l, err := storage.Open(storage.Config{Dir: "log", Disk: disk.Config{FS: x, SegmentBytes: 8 << 10}, Policy: storage.Never})
			if err != nil {
				refused++
				continue
			}
			mem, err := l.Load(storage.Loading{Log: segment.Config{SegmentBytes: 4096}, Warm: 1})
			if err != nil {
				require.ErrorIs(t, err, storage.ErrCorrupt)
				refused++
				require.NoError(t, l.Abandon())
				continue
			}
			opened++
			for off := uint64(0); off < uint64(len(want)); {
				var recs [64]segment.Record
				n, err := mem.ReadAt(off, recs[:])
				if err != nil {
					var load *storage.LoadError
					require.ErrorIs(t, err, storage.ErrCorrupt, "%s at %d", file.Name, at)
					require.ErrorAs(t, err, &load)
					require.LessOrEqual(t, load.From, off)
					require.Greater(t, load.To, off)
					found++
					off = load.To
					continue
				}
				require.Equal(t, want[off:off+uint64(n)], recs[:n], "%s at %d", file.Name, at)
				off += uint64(n)
			}
			require.NoError(t, l.Abandon())
		}
	}
	t.Logf("%d refused, %d opened, %d found later", refused, opened, found)
	assert.Positive(t, refused)
	assert.Positive(t, found)
}
