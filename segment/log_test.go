package segment_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

func TestLog_Empty(t *testing.T) {
	pool := segment.NewPool(0, 0)
	l := segment.NewLog(segment.Config{First: 7, Pool: pool})
	first, next := l.Snapshot()
	require.EqualValues(t, 7, first)
	require.EqualValues(t, 7, next)
	require.EqualValues(t, 7, l.Staged())
	require.Zero(t, l.Unpublished())
	require.EqualValues(t, 7, l.Since(math.MinInt64))
	records, bytes, segments := l.Retained()
	require.Zero(t, records)
	require.Zero(t, bytes)
	require.Zero(t, segments)
	_, ok := l.Oldest()
	require.False(t, ok)
	require.False(t, l.DropOldest())
	l.TruncateBefore(100)
	l.Roll()
	l.Unstage()
	require.NoError(t, l.Publish())
	require.EqualValues(t, 7, l.First())
	require.Zero(t, pool.Used(), "no block before the first append")

	n, err := l.ReadAt(7, make([]segment.Record, 1))
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = l.ReadAt(6, make([]segment.Record, 1))
	require.ErrorIs(t, err, segment.ErrBelow)
	_, err = l.ReadAt(8, make([]segment.Record, 1))
	require.ErrorIs(t, err, segment.ErrBeyond)
	_, ok = l.TimeOf(7)
	require.False(t, ok)

	r := l.NewReader()
	require.EqualValues(t, 7, r.Position())
	require.Equal(t, segment.CaughtUp, r.Refill())
	require.False(t, r.Next(new(segment.Record)))
	require.EqualValues(t, 7, l.Seal())
	require.Equal(t, segment.Sealed, r.Refill())
	require.NoError(t, l.Publish(), "nothing to publish")
}

func TestLog_Publish_AllAtOnceAcrossSegments(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 2})
	for _, v := range []string{"a", "b", "c", "d", "e"} {
		require.NoError(t, l.Append(&segment.Record{Value: []byte(v)}, 1))
	}
	r := l.NewReader()
	require.Equal(t, segment.CaughtUp, r.Refill(), "staged records are not visible")
	require.Equal(t, 5, l.Unpublished())
	require.NoError(t, l.Publish())
	require.Zero(t, l.Unpublished())
	values, s := read(r)
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, values)
	require.Equal(t, segment.CaughtUp, s)
	_, _, segments := l.Retained()
	require.Equal(t, 3, segments)
}

func TestLog_Reserve_TooLarge(t *testing.T) {
	l := segment.NewLog(segment.Config{Pool: segment.NewPool(64<<10, 0)})
	huge := segment.NewLog(segment.Config{})
	for _, s := range []segment.Shape{
		{Key: 64 << 10},
		{Value: 64<<10 - 27},
		{Headers: 64 << 10},
		{Key: 30 << 10, Value: 30 << 10, Headers: 30 << 10, Timestamp: 1},
	} {
		_, err := l.Reserve(s, 1)
		require.ErrorIs(t, err, segment.ErrTooLarge)
		var size *segment.SizeError
		require.ErrorAs(t, err, &size)
		require.EqualValues(t, 64<<10-28, size.Limit)
		require.Greater(t, size.Size, size.Limit)
		require.Contains(t, err.Error(), "65508")
	}
	for _, s := range []segment.Shape{
		{Key: math.MaxInt},
		{Value: math.MaxInt},
		{Key: math.MaxInt, Value: math.MaxInt},
		{Headers: math.MaxInt, Key: math.MaxInt, Value: math.MaxInt, Timestamp: 1},
		{Key: segment.MaxRecordBytes, Value: 1},
		{Value: segment.MaxRecordBytes + 1, Timestamp: 1},
	} {
		_, err := huge.Reserve(s, 1)
		require.ErrorIs(t, err, segment.ErrTooLarge, "%+v", s)
	}
	for _, l := range []*segment.Log{l, huge} {
		_, _, segments := l.Retained()
		require.Zero(t, segments, "nothing has changed")
		require.Zero(t, l.Staged())
	}
	dst, err := l.Reserve(segment.Shape{Key: -1, Value: 60 << 10, Headers: 4<<10 - 28, Timestamp: 1}, 1)
	require.NoError(t, err, "the largest")
	require.Len(t, dst, 64<<10-28)
}

func TestLog_Reserve_NoMemory(t *testing.T) {
	pool := segment.NewPool(8<<10, 0)
	other := segment.NewLog(segment.Config{Pool: pool})
	put(t, other, 1, "x")
	l := segment.NewLog(segment.Config{Pool: pool})
	big := segment.Shape{Value: 4000}
	_, err := l.Reserve(big, 1)
	require.NoError(t, err)
	require.NoError(t, l.Publish())
	bases := l.Bases()
	records, bytes, segments := l.Retained()

	for range 3 {
		_, err = l.Reserve(big, 2)
		require.ErrorIs(t, err, segment.ErrNoMemory)
	}
	require.Equal(t, bases, l.Bases())
	gotRecords, gotBytes, gotSegments := l.Retained()
	require.Equal(t, records, gotRecords)
	require.Equal(t, bytes, gotBytes)
	require.Equal(t, segments, gotSegments)
	_, err = l.Reserve(segment.Shape{Value: 50}, 2)
	require.NoError(t, err, "what fits into the active segment needs no memory")

	require.True(t, other.DropOldest())
	_, err = l.Reserve(big, 3)
	require.NoError(t, err)
	require.EqualValues(t, 3, l.Staged())
}

func TestLog_Reserve_SmallerBlockWhenTheBudgetIsLow(t *testing.T) {
	pool := segment.NewPool(16<<10, 0)
	l := segment.NewLog(segment.Config{SegmentBytes: 8 << 10, Pool: pool})
	appended := 0
	for {
		_, err := l.Reserve(segment.Shape{Value: 1000}, 1)
		if errors.Is(err, segment.ErrNoMemory) {
			break
		}
		require.NoError(t, err)
		appended++
	}
	require.EqualValues(t, 16<<10, pool.Used(), "4 + 8 + 4 KiB: nothing is left over")
	require.Equal(t, 4+8+4, appended)
}

func TestLog_Reserve_Exhausted(t *testing.T) {
	l := segment.NewLog(segment.Config{First: segment.MaxOffset - 2})
	puts(t, l, 2)
	require.Equal(t, uint64(segment.MaxOffset), l.Committed())
	_, err := l.Reserve(segment.Shape{}, 1)
	require.ErrorIs(t, err, segment.ErrExhausted)
	_, err = l.Reserve(segment.Shape{Headers: 1}, 1)
	require.ErrorIs(t, err, segment.ErrExhausted)
	require.NoError(t, l.Publish())
	values, s := read(l.NewReader())
	require.Len(t, values, 2)
	require.Equal(t, segment.CaughtUp, s)
	var dst [3]segment.Record
	n, err := l.ReadAt(segment.MaxOffset-1, dst[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, int64(segment.MaxOffset-1), dst[0].Offset)
	require.Equal(t, uint64(segment.MaxOffset), l.Seal())
}

func TestLog_Seal(t *testing.T) {
	pool := segment.NewPool(0, 0)
	l := segment.NewLog(segment.Config{SegmentRecords: 2, Pool: pool})
	puts(t, l, 3)
	for range 4 {
		require.NoError(t, l.Append(&segment.Record{Value: []byte("never")}, 9))
	}
	require.False(t, l.Sealed())
	require.EqualValues(t, 3, l.Seal())
	require.EqualValues(t, 3, l.Seal())
	require.True(t, l.Sealed())

	require.ErrorIs(t, l.Publish(), segment.ErrSealed)
	require.EqualValues(t, 3, l.Staged(), "what was staged is gone")
	require.EqualValues(t, 3, l.Committed())
	records, bytes, segments := l.Retained()
	require.EqualValues(t, 3, records)
	require.EqualValues(t, 3*17, bytes)
	require.Equal(t, 2, segments)
	for _, s := range []segment.Shape{{Value: 1}, {Value: 1, Timestamp: 1}, {Value: 1 << 28}} {
		_, err := l.Reserve(s, 9)
		require.ErrorIs(t, err, segment.ErrSealed)
	}
	values, s := read(l.NewReader())
	require.Equal(t, []string{"0", "1", "2"}, values)
	require.Equal(t, segment.Sealed, s)

	l.TruncateBefore(1) // a sealed log can still be cut
	require.True(t, l.DropOldest())
	require.True(t, l.DropOldest())
	require.False(t, l.DropOldest())
	require.EqualValues(t, 3, l.First())
	require.Zero(t, pool.Used())
}

func TestLog_Publish_TwoAppendersPanic(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	puts(t, l, 3)
	require.NoError(t, l.Append(&segment.Record{}, 1))
	l.SetPublished(2)
	require.PanicsWithValue(t, "segment: two appenders", func() { l.Publish() })
	l.Seal()
	require.PanicsWithValue(t, "segment: two appenders", func() { l.Publish() })
}

func TestLog_SegmentsGrow(t *testing.T) {
	pool := segment.NewPool(0, 0)
	l := segment.NewLog(segment.Config{SegmentBytes: 16 << 10, Pool: pool})
	var used []int64
	for range 60 {
		put(t, l, 1, strings.Repeat("x", 1000))
		if u := pool.Used() >> 10; len(used) == 0 || used[len(used)-1] != u {
			used = append(used, u)
		}
	}
	require.Equal(t, []int64{4, 4 + 8, 4 + 8 + 16, 4 + 8 + 16 + 16, 4 + 8 + 16 + 16 + 16}, used)

	quiet := segment.NewLog(segment.Config{SegmentRecords: 1, Pool: segment.NewPool(5*4<<10, 0)})
	puts(t, quiet, 5) // segments that were not filled by bytes do not grow
}

func TestLog_SegmentBytes(t *testing.T) {
	for _, size := range []int{1, 16, 100, 1000, 4096, 5000} {
		l := segment.NewLog(segment.Config{SegmentBytes: size, Pool: segment.NewPool(0, 0)})
		for range 100 {
			put(t, l, 1, strings.Repeat("x", 40))
		}
		records, bytes, _ := l.Retained()
		require.EqualValues(t, 100, records)
		require.EqualValues(t, 100*56, bytes)
		for {
			info, ok := l.Oldest()
			if !ok {
				break
			}
			require.EqualValues(t, (info.End-info.First)*56, info.Bytes)
			if size >= 56 { // else each record needs more, and gets a block of its own size, which is at least 4 KiB
				require.LessOrEqual(t, info.Bytes, int64(size), "SegmentBytes=%d", size)
			}
			if size >= 112 && !info.Active && size <= 4096 {
				require.Greater(t, info.Bytes+56, int64(size)&^15, "SegmentBytes=%d", size)
			}
			require.True(t, l.DropOldest())
		}
	}
}

func TestLog_Unstage(t *testing.T) {
	for _, tc := range []struct {
		name              string
		published, staged int
		roll              bool
		segments          int
	}{
		{"nothing staged", 2, 0, false, 1},
		{"in the active segment", 1, 2, false, 1},
		{"all of the active segment", 3, 2, false, 1},
		{"over several segments", 2, 7, false, 1},
		{"from the middle of one over several", 4, 7, false, 2},
		{"in a segment that was rolled", 1, 1, true, 1},
		{"all of a rolled segment", 0, 1, true, 0},
		{"everything", 0, 8, false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pool := segment.NewPool(0, 1<<20).Poison()
			l := segment.NewLog(segment.Config{SegmentRecords: 3, Pool: pool})
			puts(t, l, tc.published)
			_, want, _ := l.Retained()
			for range tc.staged {
				require.NoError(t, l.Append(&segment.Record{Value: []byte("staged"), Timestamp: 99}, 50))
			}
			if tc.roll {
				l.Roll()
			}
			l.Unstage()
			records, bytes, segments := l.Retained()
			require.EqualValues(t, tc.published, records)
			require.Equal(t, want, bytes)
			require.Equal(t, tc.segments, segments)
			require.EqualValues(t, segments*4096, pool.Used())
			puts(t, l, 5)
			values, _ := read(l.NewReader())
			require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}[:tc.published+5], values)
			require.EqualValues(t, tc.published+5, l.Since(99), "what was taken back is not found")
		})
	}
}

func TestLog_Unstage_AfterTruncation(t *testing.T) {
	pool := segment.NewPool(0, 0)
	l := segment.NewLog(segment.Config{Pool: pool})
	puts(t, l, 3)
	require.NoError(t, l.Append(&segment.Record{Value: []byte("staged")}, 9))
	l.TruncateBefore(3)
	require.EqualValues(t, 4096, pool.Used(), "the staged record keeps the segment")
	l.Unstage()
	require.Zero(t, pool.Used(), "now nothing does")
	puts(t, l, 1)
	info, ok := l.Oldest()
	require.True(t, ok)
	require.EqualValues(t, 3, info.First)
}

// The greatest timestamp is that of what stayed.
func TestLog_Unstage_Times(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	appendAt := func(timestamp int64) {
		require.NoError(t, l.Append(&segment.Record{Timestamp: timestamp}, 50))
	}
	appendAt(500)
	appendAt(7)
	require.NoError(t, l.Publish())
	appendAt(900)
	l.Unstage()
	l.Roll()
	require.EqualValues(t, 500, l.Newest(0))
	require.EqualValues(t, 0, l.Since(500))
	require.EqualValues(t, 2, l.Since(501))
}

func TestLog_OldestAndDropOldest(t *testing.T) {
	pool := segment.NewPool(0, 1<<20)
	l := segment.NewLog(segment.Config{SegmentRecords: 3, Pool: pool})
	puts(t, l, 8)
	l.TruncateBefore(1)
	info, ok := l.Oldest()
	require.True(t, ok)
	require.Equal(t, segment.Info{First: 1, End: 3, Bytes: 3 * 17, NewestAppend: 2}, info)
	require.True(t, l.DropOldest())
	info, _ = l.Oldest()
	require.Equal(t, segment.Info{First: 3, End: 6, Bytes: 3 * 17, NewestAppend: 5}, info)
	require.EqualValues(t, 3, l.First())
	require.True(t, l.DropOldest())

	require.NoError(t, l.Append(&segment.Record{Value: []byte("8")}, 100))
	info, ok = l.Oldest()
	require.True(t, ok)
	require.Equal(t, segment.Info{First: 6, End: 8, Bytes: 3 * 17, NewestAppend: 7, Active: true}, info)
	require.False(t, l.DropOldest(), "staged records are never dropped")
	require.NoError(t, l.Append(&segment.Record{Value: []byte("9")}, 100))
	require.False(t, l.DropOldest(), "nor when the next segment has begun")
	require.EqualValues(t, 6, l.First())
	require.NoError(t, l.Publish())
	require.True(t, l.DropOldest())
	require.True(t, l.DropOldest(), "the active segment can go")
	require.False(t, l.DropOldest())
	first, next := l.Snapshot()
	require.EqualValues(t, 10, first)
	require.EqualValues(t, 10, next)
	require.Zero(t, pool.Used())
	require.EqualValues(t, 3*4096, pool.Kept())

	put(t, l, 200, "10")
	require.EqualValues(t, 2*4096, pool.Kept(), "and its block is reused at once")
	values, _ := read(l.NewReader())
	require.Equal(t, []string{"10"}, values)
}

func TestLog_TruncateBefore(t *testing.T) {
	pool := segment.NewPool(0, 0)
	l := segment.NewLog(segment.Config{SegmentRecords: 3, Pool: pool})
	puts(t, l, 10)
	check := func(first uint64, records int64, segments int) {
		t.Helper()
		gotRecords, bytes, gotSegments := l.Retained()
		require.Equal(t, first, l.First())
		require.Equal(t, records, gotRecords)
		require.Equal(t, segments, gotSegments)
		require.EqualValues(t, segments*4096, pool.Used())
		require.GreaterOrEqual(t, bytes, records*17)
	}
	l.TruncateBefore(0)
	check(0, 10, 4)
	l.TruncateBefore(2)
	check(2, 8, 4)
	l.TruncateBefore(1)
	check(2, 8, 4)
	l.TruncateBefore(3)
	check(3, 7, 3)
	l.TruncateBefore(8)
	check(8, 2, 2)
	require.NoError(t, l.Append(&segment.Record{Value: []byte("10")}, 10))
	l.TruncateBefore(math.MaxUint64)
	check(10, 1, 1) // the staged record stays
	require.NoError(t, l.Publish())
	values, _ := read(l.NewReader())
	require.Equal(t, []string{"10"}, values)
	l.TruncateBefore(11)
	check(11, 0, 0)
	puts(t, l, 1)
	check(11, 1, 1)
}

func TestLog_NewLog_Misuse(t *testing.T) {
	for _, c := range []segment.Config{{SegmentBytes: -1}, {SegmentBytes: 1<<30 + 1}, {SegmentRecords: -1}, {First: math.MaxUint64}} {
		assert.Panics(t, func() { segment.NewLog(c) }, "%+v", c)
	}
	assert.Panics(t, func() { segment.NewPool(-1, 0) })
	assert.Panics(t, func() { segment.NewPool(0, -1) })
}
