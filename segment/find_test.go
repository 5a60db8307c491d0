package segment_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

func TestLog_AppendTimesNeverGoBack(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	for _, now := range []int64{100, 50, 99, 100, 120, -1} {
		put(t, l, now, "x")
	}
	var times []int64
	for off := range l.Committed() {
		at, ok := l.TimeOf(off)
		require.True(t, ok)
		times = append(times, at)
	}
	require.Equal(t, []int64{100, 100, 100, 100, 120, 120}, times)
}

func TestLog_AppendTimesFarApart(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	times := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1<<56 - 2, 1<<56 - 1, 1 << 56, math.MaxInt64 - 1, math.MaxInt64}
	for _, now := range times {
		put(t, l, now, "x")
	}
	for off, want := range times {
		at, ok := l.TimeOf(uint64(off))
		require.True(t, ok)
		require.Equal(t, want, at)
		require.EqualValues(t, off, l.Since(want))
	}
}

func TestLog_OffsetAt(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 3})
	for i := range int64(10) { // append times 100, 110, ...
		put(t, l, 100+10*i, "x")
	}
	for _, tc := range []struct {
		at   int64
		want uint64
	}{{math.MinInt64, 0}, {100, 0}, {101, 1}, {120, 2}, {121, 3}, {129, 3}, {189, 9}, {190, 9}, {191, 10}, {math.MaxInt64, 10}} {
		require.Equal(t, tc.want, l.Since(tc.at), "time %d", tc.at)
	}
	l.TruncateBefore(5)
	require.EqualValues(t, 5, l.Since(0))
	require.EqualValues(t, 9, l.Since(190))
}

func TestLog_OffsetAt_OwnTimestamps(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 3})
	times := []int64{500, 100, 0, 400, -3, 0, 7, 7, 600, 2}
	for _, at := range times {
		require.NoError(t, l.Append(&segment.Record{Timestamp: at}, 1000))
		require.NoError(t, l.Publish())
	}
	want := func(at int64) uint64 {
		for i, v := range times {
			if v == 0 {
				v = 1000
			}
			if v >= at {
				return uint64(i)
			}
		}
		return uint64(len(times))
	}
	for _, at := range []int64{math.MinInt64, -3, 0, 1, 7, 8, 100, 101, 400, 401, 500, 501, 600, 601, 1000, 1001} {
		require.Equal(t, want(at), l.Since(at), "time %d", at)
	}
	require.EqualValues(t, 1000, l.Newest(0))
	require.EqualValues(t, 1000, l.Newest(1))
	require.EqualValues(t, 600, l.Newest(2), "a segment with nothing but its own timestamps has their greatest")
}

func TestLog_ReadAt(t *testing.T) {
	pool := segment.NewPool(0, 1<<20).Poison()
	l := segment.NewLog(segment.Config{SegmentRecords: 3, Partition: 5, Pool: pool})
	puts(t, l, 10)
	dst := make([]segment.Record, 5)
	n, err := l.ReadAt(2, dst)
	require.NoError(t, err)
	require.Equal(t, 5, n, "over segments")
	for i := range dst {
		require.Equal(t, string(rune('2'+i)), string(dst[i].Value))
		require.EqualValues(t, 2+i, dst[i].Offset)
		require.EqualValues(t, 5, dst[i].Partition)
		require.EqualValues(t, 2+i, dst[i].Timestamp)
	}
	n, err = l.ReadAt(8, make([]segment.Record, 5))
	require.NoError(t, err)
	require.Equal(t, 2, n)
	n, err = l.ReadAt(3, nil)
	require.NoError(t, err)
	require.Zero(t, n)

	_, kept := l.Pins(3)
	require.True(t, kept)
	used := pool.Used()
	drain(l)
	require.EqualValues(t, 0, pool.Used())
	require.Less(t, pool.Kept(), used, "blocks with views are not kept for reuse")
	puts(t, l, 30)
	for i := range dst {
		require.Equal(t, string(rune('2'+i)), string(dst[i].Value), "views stay")
	}
}

func TestLog_ReadAt_Allocates(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	puts(t, l, 10)
	dst := make([]segment.Record, 3)
	read := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		n, _ := l.ReadAt(3, dst)
		read += n
	}))
	require.Equal(t, 101*3, read, "one run is not counted")
	r := l.NewReader()
	read = 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Seek(0)
		for r.Refill() == segment.Ready {
			for r.Next(&dst[0]) {
				read++
			}
		}
	}))
	require.Equal(t, 101*10, read)
	rec := segment.Record{Key: []byte("k"), Value: []byte("v"), Headers: segment.MakeHeaders(segment.Header{Name: "n"})}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		l.Append(&rec, 1)
		l.Publish()
		l.Since(1)
		l.TimeOf(1)
	}))
	_, next := l.Snapshot()
	require.EqualValues(t, 10+1001, next)
}
