package disk_test

import (
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// bytesOrNil draws a slice that may be nil, or empty.
func bytesOrNil(t *rapid.T, name string) []byte {
	b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, name)
	switch {
	case len(b) > 0:
		return b
	case rapid.Bool().Draw(t, name+" nil"):
		return nil
	}
	return []byte{}
}

// TestFill_RestoresALog appends random records to a log in memory and to files, opens the files again, and fills another log in
// memory, with so little memory at times that it has to go on where it stopped. Both hold the same.
func TestFill_RestoresALog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint64Range(0, 1<<40).Draw(t, "first")
		c := small(vfs.NewMem())
		c.First = first
		files, err := disk.Open(dir, c)
		require.NoError(t, err)
		from := segment.NewLog(segment.Config{First: first, SegmentBytes: 1 << 12})
		now := rapid.Int64().Draw(t, "now") / 2
		var b frame.Builder
		for range rapid.IntRange(1, 10).Draw(t, "batches") {
			b.Reset(0)
			for range rapid.IntRange(1, 6).Draw(t, "records") {
				r := segment.Record{Key: bytesOrNil(t, "key"), Value: bytesOrNil(t, "value")}
				for range rapid.IntRange(0, 2).Draw(t, "headers") {
					r.Headers = r.Headers.Add(rapid.String().Draw(t, "name"), bytesOrNil(t, "header"))
				}
				if rapid.Bool().Draw(t, "stamped") {
					r.Timestamp = rapid.Int64().Draw(t, "timestamp")
				}
				require.NoError(t, from.Append(&r, now))
				require.True(t, disk.Add(&b, &r, now))
				now += rapid.SampledFrom([]int64{0, 0, 1, 1 << 40, -5}).Draw(t, "later")
			}
			_, err := files.Write(&b)
			require.NoError(t, err)
			require.NoError(t, from.Publish())
		}
		require.NoError(t, files.Abandon())
		files, err = disk.Open(dir, c)
		require.NoError(t, err)
		require.Equal(t, from.Committed(), files.Next())

		to := segment.NewLog(segment.Config{First: first, SegmentBytes: 1 << 11, Pool: segment.NewPool(rapid.Int64Range(1<<13, 1<<20).Draw(t, "memory"), 0)})
		r, err := files.NewReader(first)
		require.NoError(t, err)
		for {
			f, err := r.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			for {
				err := disk.Fill(to, f)
				require.NoError(t, to.Publish())
				if errors.Is(err, segment.ErrNoMemory) {
					to.DropOldest()
					continue
				}
				require.NoError(t, err)
				break
			}
		}
		require.NoError(t, r.Close())
		require.Equal(t, from.Committed(), to.Committed())
		for off := to.First(); off < to.Committed(); off++ {
			var x, y [1]segment.Record
			_, err := from.ReadAt(off, x[:])
			require.NoError(t, err)
			_, err = to.ReadAt(off, y[:])
			require.NoError(t, err)
			require.Equal(t, x, y)
		}
		require.NoError(t, files.Close())
	})
}

func TestFill_Refuses(t *testing.T) {
	var seed frame.Seed
	decode := func(b []byte) *frame.Batch {
		f, err := frame.Decode(b, seed, 0)
		require.NoError(t, err)
		return &f
	}
	to := segment.NewLog(segment.Config{First: 10})
	require.ErrorIs(t, disk.Fill(to, decode(frame.AppendLost(nil, seed, 0, frame.Header{First: 10, Count: 1}))), disk.ErrLost)
	var b frame.Builder
	b.Add(&frame.Record{})
	require.ErrorIs(t, disk.Fill(to, decode(b.Finish(seed, 0, frame.Header{First: 11}))), disk.ErrBeyond)
	require.NoError(t, disk.Fill(to, decode(b.Finish(seed, 0, frame.Header{First: 9}))), "it has that already")
	require.EqualValues(t, 10, to.Staged())
}
