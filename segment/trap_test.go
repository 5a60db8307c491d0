package segment_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// A reader was inside segment 0, or exactly at the start of the next one, when retention took both.
func TestBUG007_ReaderAtTheEndOfADroppedSegment(t *testing.T) {
	for _, stand := range []int{3, 4} {
		l := segment.NewLog(segment.Config{SegmentRecords: 4})
		puts(t, l, 4)
		r := l.NewReader()
		var rec segment.Record
		require.Equal(t, segment.Ready, r.Refill())
		for range stand {
			require.True(t, r.Next(&rec))
		}
		for range 40 {
			puts(t, l, 1)
			retain(l, 2)
		}
		for r.Next(&rec) { // what is left of the window is still right
			require.EqualValues(t, rec.Offset, rec.Value[0]-'0')
		}
		require.Equal(t, segment.Below, r.Refill(), "never caught up")
		first := l.First()
		require.EqualValues(t, 36, first, "the first that still exists, no further")
		require.EqualValues(t, 32, first-r.Position(), "the size of the gap")
		r.Seek(first)
		values, s := read(r)
		require.Len(t, values, 44-36)
		require.Equal(t, segment.CaughtUp, s)
	}
}

// The caller scribbles over what it passed in, a reader scribbles over the copies it made, and blocks are recycled
// meanwhile.
func TestBUG017_BytesAreCopiedAndNeverReusedUnderAView(t *testing.T) {
	pool := segment.NewPool(0, 1<<20).Poison()
	l := segment.NewLog(segment.Config{SegmentRecords: 8, Pool: pool})
	key, value := make([]byte, 8), make([]byte, 30)
	header := segment.MakeHeaders(segment.Header{Name: "n", Value: []byte("h")})
	r := l.NewReader()
	var held []segment.Record
	for i := range 200 {
		copy(key, fmt.Sprintf("k%07d", i))
		copy(value, fmt.Sprintf("v%029d", i))
		require.NoError(t, l.Append(&segment.Record{Key: key, Value: value, Headers: header}, 1))
		require.NoError(t, l.Publish())
		clear(key)
		clear(value)
		var rec segment.Record
		for !r.Next(&rec) {
			require.Equal(t, segment.Ready, r.Refill())
		}
		require.Equal(t, fmt.Sprintf("k%07d", i), string(rec.Key))
		require.Equal(t, len(rec.Key), cap(rec.Key))
		require.Equal(t, len(rec.Value), cap(rec.Value))
		c := rec.Clone()
		clear(c.Value)
		require.Equal(t, fmt.Sprintf("v%029d", i), string(rec.Value))
		if i%50 == 3 {
			var dst [1]segment.Record
			_, err := l.ReadAt(uint64(i), dst[:])
			require.NoError(t, err)
			held = append(held, dst[0])
		}
		retain(l, 2)
	}
	for i, rec := range held {
		require.Equal(t, fmt.Sprintf("v%029d", 50*i+3), string(rec.Value))
	}
	require.Positive(t, pool.Kept())
}

// Age is a matter of append times, which never go back, whatever the records' own timestamps say.
func TestBUG032_AgeIsByAppendTime(t *testing.T) {
	const year = int64(365 * 24 * 3600 * 1e9)
	l := segment.NewLog(segment.Config{SegmentRecords: 2})
	for i, ts := range []int64{10 * year, 1, 9 * year, 5, 0, 0} {
		require.NoError(t, l.Append(&segment.Record{Timestamp: ts}, int64(1000+i)))
	}
	require.NoError(t, l.Append(&segment.Record{}, 3)) // the clock was set back
	require.NoError(t, l.Publish())
	var newest []int64
	for {
		info, ok := l.Oldest()
		if !ok {
			break
		}
		newest = append(newest, info.NewestAppend)
		require.True(t, l.DropOldest())
	}
	require.Equal(t, []int64{1001, 1003, 1005, 1005}, newest)
}

// Records larger than a segment are stored and read; what can never fit is refused with the sizes.
func TestBUG035_RecordLargerThanASegment(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentBytes: 64 << 10, Pool: segment.NewPool(8<<20, 0)})
	sizes := []int{1, 65 << 10, 300 << 10, 1 << 20, 1<<20 + 1, 64<<10 - 16, 64<<10 - 15, 7}
	for _, size := range sizes {
		require.NoError(t, l.Append(&segment.Record{Value: bytes.Repeat([]byte{byte(size)}, size)}, 1))
	}
	require.NoError(t, l.Publish())
	r := l.NewReader()
	var rec segment.Record
	for off, size := range sizes {
		for !r.Next(&rec) {
			require.Equal(t, segment.Ready, r.Refill())
		}
		require.EqualValues(t, off, rec.Offset)
		require.Len(t, rec.Value, size)
		require.Equal(t, size, bytes.Count(rec.Value, []byte{byte(size)}))
	}
	var size *segment.SizeError
	_, err := l.Reserve(segment.Shape{Value: 8 << 20}, 1)
	require.ErrorAs(t, err, &size)
	require.EqualValues(t, 8<<20, size.Size)
	require.EqualValues(t, 8<<20-28, size.Limit)
}

func TestBUG061_TruncationMovesNoReaderBack(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 7})
	puts(t, l, 100)
	r := l.NewReader()
	r.Seek(80)
	l.TruncateBefore(50)
	require.Equal(t, segment.Ready, r.Refill())
	require.EqualValues(t, 80, r.Position())
	l.TruncateBefore(90)
	require.Equal(t, segment.Below, r.Refill())
	require.EqualValues(t, 80, r.Position())
	require.EqualValues(t, 10, l.First()-r.Position(), "the size of the gap")
	l.TruncateBefore(40)
	require.EqualValues(t, 90, l.First())
}

// Truncating at the end never takes a record that is appended next, staged or published.
func TestBUG062_TruncationTakesNoNewRecord(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 3})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		staged := rng.IntN(4)
		for range staged {
			require.NoError(t, l.Append(&segment.Record{Value: fmt.Append(nil, l.Staged())}, 1))
		}
		next := l.Committed()
		l.TruncateBefore(next + rng.Uint64N(3))
		require.Equal(t, next, l.First())
		for l.DropOldest() {
		}
		require.Equal(t, next, l.First())
		require.NoError(t, l.Publish())
		require.Equal(t, next+uint64(staged), l.Committed())
		values, _ := read(l.NewReader())
		require.Len(t, values, staged)
		if staged > 0 {
			require.Equal(t, fmt.Sprint(next), values[0])
		}
	}
}

// After each cut everything that is remembered about times is still right, with the greatest at the front.
func TestBUG064_TimesAfterACut(t *testing.T) {
	for _, cut := range []uint64{0, 1, 5, 6, 9, 10} {
		l := segment.NewLog(segment.Config{SegmentRecords: 3})
		for i := range 10 {
			require.NoError(t, l.Append(&segment.Record{Timestamp: int64(1000 - i)}, int64(i)))
		}
		require.NoError(t, l.Publish())
		l.TruncateBefore(cut)
		check := func() {
			first, next := l.Snapshot()
			require.Equal(t, first, l.Since(0))
			if first < 10 {
				require.Equal(t, first, l.Since(int64(1000-first)))
				require.Equal(t, next, l.Since(int64(1001-first)))
			}
			_, ok := l.TimeOf(first)
			require.Equal(t, first < next, ok)
			_, ok = l.Oldest()
			require.Equal(t, first < next, ok)
		}
		check()
		require.NoError(t, l.Append(&segment.Record{Timestamp: 1}, 99))
		require.NoError(t, l.Publish())
		check()
		drain(l)
		check()
	}
}

func TestBUG070_NilAndEmptyStayDifferent(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	kinds := [][]byte{nil, {}, []byte("x")}
	for _, timestamp := range []int64{0, 5} {
		for _, h := range []segment.Headers{{}, segment.MakeHeaders(segment.Header{})} {
			for _, key := range kinds {
				for _, value := range kinds {
					require.NoError(t, l.Append(&segment.Record{Key: key, Value: value, Headers: h, Timestamp: timestamp}, 1))
				}
			}
		}
	}
	require.NoError(t, l.Publish())
	r := l.NewReader()
	rec := segment.Record{Key: []byte("stale"), Value: []byte("stale"), Headers: segment.MakeHeaders(segment.Header{Name: "stale"})}
	for n := range 36 {
		if n == 0 {
			require.Equal(t, segment.Ready, r.Refill())
		}
		require.True(t, r.Next(&rec))
		require.Equal(t, kinds[n/3%3], rec.Key)
		require.Equal(t, kinds[n%3], rec.Value)
		require.Equal(t, n/9%2, rec.Headers.Len())
		c := rec.Clone()
		require.Equal(t, rec.Key, c.Key)
		require.Equal(t, rec.Value, c.Value)
	}
}

func TestBUG071_EmptyRecords(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentBytes: 64})
	require.NoError(t, l.Publish(), "an empty batch is nothing")
	require.Zero(t, l.Committed())
	empty := []segment.Record{{}, {Key: []byte{}, Value: []byte{}}, {Value: []byte("middle")}, {Headers: segment.MakeHeaders(segment.Header{})}}
	for range 10 {
		for i := range empty {
			require.NoError(t, l.Append(&empty[i], 1))
		}
	}
	require.NoError(t, l.Publish())
	values, s := read(l.NewReader())
	require.Len(t, values, 40)
	require.Equal(t, "middle", values[38])
	require.Equal(t, segment.CaughtUp, s)
	dst := make([]segment.Record, 50)
	n, err := l.ReadAt(0, dst)
	require.NoError(t, err)
	require.Equal(t, 40, n)
	require.EqualValues(t, 39, dst[39].Offset)
	require.Equal(t, 1, dst[39].Headers.Len())
}

// The last n records, by way of one snapshot.
func TestBUG073_LastN(t *testing.T) {
	for _, records := range []int{0, 1, 4, 10} {
		for _, cut := range []uint64{0, 3} {
			l := segment.NewLog(segment.Config{SegmentRecords: 4})
			puts(t, l, records)
			l.TruncateBefore(cut)
			first, next := l.Snapshot()
			for _, n := range []uint64{0, 1, 2, 9, 10, 11, math.MaxInt64} {
				r := l.NewReader()
				r.Seek(next - min(n, next-first))
				values, _ := read(r)
				require.Len(t, values, int(min(n, next-first)))
			}
			r := l.NewReader()
			r.Seek(next)
			puts(t, l, 1)
			values, _ := read(r)
			require.Equal(t, []string{fmt.Sprint(records)}, values)
		}
	}
}

func TestBUG085_NumberingGoesOnWhenAllHasExpired(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 8})
	for round := range uint64(3) {
		puts(t, l, 100)
		drain(l)
		first, next := l.Snapshot()
		require.Equal(t, 100*(round+1), first)
		require.Equal(t, first, next)
		put(t, l, 1, "next")
		var dst [1]segment.Record
		n, err := l.ReadAt(next, dst[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.EqualValues(t, next, dst[0].Offset)
		l.TruncateBefore(next + 1)
		require.Equal(t, next+1, l.First())
		l = segment.NewLog(segment.Config{SegmentRecords: 8, First: 100 * (round + 1)})
	}
}

// Counters are 64 bit everywhere, and what is added comes off again, exactly.
func TestBUG089_ByteAccounting(t *testing.T) {
	pool := segment.NewPool(0, 64<<10)
	l := segment.NewLog(segment.Config{SegmentBytes: 4096, Pool: pool})
	rng := rand.New(rand.NewPCG(2, 3))
	put(t, l, 1, "x")
	l.Roll()
	const inflated = int64(5 << 30)
	l.Inflate(inflated)
	pool.InflatePool(inflated)
	want := inflated + 17
	for range scaled(300_000) {
		rec := segment.Record{Value: make([]byte, rng.IntN(300))}
		size := int64(len(rec.Value)) + 16
		if rng.IntN(4) == 0 {
			rec.Headers = rec.Headers.Add("n", nil)
			size += 4 + int64(rec.Headers.Size())
		}
		if rng.IntN(4) == 0 {
			rec.Timestamp = 7
			size += 8
		}
		require.NoError(t, l.Append(&rec, 1))
		if rng.IntN(50) == 0 {
			l.Unstage()
			_, want, _ = l.Retained()
			continue
		}
		require.NoError(t, l.Publish())
		want += size
		_, bytes, segments := l.Retained()
		require.Equal(t, want, bytes)
		if segments > 5 {
			info, ok := l.Oldest()
			require.True(t, ok)
			require.True(t, l.DropOldest())
			want -= info.Bytes
		}
	}
	drain(l)
	_, bytes, _ := l.Retained()
	require.Zero(t, bytes)
	require.Equal(t, inflated, pool.Used())
}

// The same at offsets where narrower arithmetic breaks.
func TestBUG091_LargeOffsetsAndTimes(t *testing.T) {
	for _, first := range []uint64{1<<31 - 2, 1<<32 - 2, 1 << 53, 1<<63 - 100} {
		l := segment.NewLog(segment.Config{First: first, SegmentRecords: 3})
		r := l.NewReader()
		for i := range uint64(20) {
			require.NoError(t, l.Append(&segment.Record{Value: fmt.Append(nil, first+i), Timestamp: math.MaxInt64 - int64(20-i)}, math.MaxInt64-1))
			require.NoError(t, l.Publish())
		}
		values, s := read(r)
		require.Len(t, values, 20)
		require.Equal(t, fmt.Sprint(first+19), values[19])
		require.Equal(t, segment.CaughtUp, s)
		require.Equal(t, first+20, l.Committed())
		require.Equal(t, first+5, l.Since(math.MaxInt64-15))
		require.Equal(t, first+20, l.Since(math.MaxInt64))
		l.TruncateBefore(first + 10)
		for _, off := range []uint64{0, 1, first, first + 9} {
			_, err := l.ReadAt(off, make([]segment.Record, 1))
			require.ErrorIs(t, err, segment.ErrBelow)
		}
		for _, off := range []uint64{first + 21, 1<<63 - 1, 1 << 63, math.MaxUint64} {
			_, err := l.ReadAt(off, make([]segment.Record, 1))
			require.ErrorIs(t, err, segment.ErrBeyond)
			r.Seek(off)
			require.Equal(t, segment.Beyond, r.Refill())
			_, ok := l.TimeOf(off)
			require.False(t, ok)
		}
	}
}

func TestBUG109_UnsetTimestampIsTheAppendTime(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	times := []int64{0, -5, 0, 7, 0, math.MinInt64, 0, -1}
	for _, at := range times {
		require.NoError(t, l.Append(&segment.Record{Timestamp: at}, 100))
	}
	require.NoError(t, l.Publish())
	dst := make([]segment.Record, len(times))
	_, err := l.ReadAt(0, dst)
	require.NoError(t, err)
	for off, want := range times {
		if want == 0 {
			want = 100
		}
		require.Equal(t, want, dst[off].Timestamp)
		at, ok := l.TimeOf(uint64(off))
		require.True(t, ok)
		require.EqualValues(t, 100, at, "retention goes by the append time")
	}
}

// Every 64-bit atomic, wherever a Log or a Reader lies in memory, also where a word has 32 bits: the first operation on a
// misaligned one would panic.
func TestBUG125_AtomicsAreAligned(t *testing.T) {
	type odd struct {
		_ uint32
		r segment.Reader
		_ uint32
	}
	l := segment.NewLog(segment.Config{SegmentRecords: 1})
	puts(t, l, 3)
	rs := make([]odd, 3)
	for i := range rs {
		rs[i].r.Init(l)
		values, _ := read(&rs[i].r)
		require.Len(t, values, 3)
	}
	l.Seal()
	drain(l)
}
