package engine_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// numbers publishes n records whose values are their offsets.
func numbers(t testing.TB, p *engine.Partition, n int) {
	t.Helper()
	for range n {
		_, err := p.Publish(background, value(fmt.Sprint(p.Next())))
		require.NoError(t, err)
	}
}

// holding returns a partition of segments of two records that holds the offsets from first up to next.
func holding(t testing.TB, first, next int64) *engine.Partition {
	t.Helper()
	p := newPartition(t, engine.TopicConfig{SegmentRecords: 2})
	numbers(t, p, int(next))
	require.NoError(t, p.TruncateBefore(background, first))
	return p
}

func newReader(t testing.TB, p *engine.Partition, c engine.ReaderConfig) *engine.Reader {
	t.Helper()
	r, err := p.Reader(c)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// wantNext checks that the reader's next record is the one at off.
func wantNext(t testing.TB, r *engine.Reader, off int64) {
	t.Helper()
	rec, err := r.Next(background)
	require.NoError(t, err)
	require.Equal(t, off, rec.Offset)
	require.Equal(t, fmt.Sprint(off), string(rec.Value))
}

func TestReadAt(t *testing.T) {
	p := holding(t, 3, 10)
	rs := make([]engine.Record, 4)
	for off := int64(3); off <= 10; off++ {
		n, err := p.ReadAt(off, rs)
		require.NoError(t, err)
		require.EqualValues(t, min(4, 10-off), n, "over the ends of segments")
		for i, r := range rs[:n] {
			require.Equal(t, off+int64(i), r.Offset)
			require.Equal(t, fmt.Sprint(r.Offset), string(r.Value))
		}
	}
	var out *engine.OffsetError
	for _, off := range []int64{2, 0, -5, 11} {
		_, err := p.ReadAt(off, rs)
		require.ErrorAs(t, err, &out)
		require.Equal(t, engine.OffsetError{Asked: off, First: 3, Next: 10}, *out)
	}
}

// What ReadAt returned stays what it is, whatever becomes of the log.
func TestReadAt_StaysValid(t *testing.T) {
	p := newPartition(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 4}, OnFull: engine.DropOldest})
	var held []engine.Record
	for range 200 {
		numbers(t, p, 1)
		rs := make([]engine.Record, 1)
		_, err := p.ReadAt(p.Next()-1, rs)
		require.NoError(t, err)
		held = append(held, rs[0])
	}
	for off, r := range held {
		require.Equal(t, fmt.Sprint(off), string(r.Value))
	}
}

func TestRecords(t *testing.T) {
	p := holding(t, 3, 10)
	for from, want := range map[int64]int64{math.MinInt64: 3, -1: 3, 0: 3, 3: 3, 5: 5, 9: 9, 10: 10, 11: 11, math.MaxInt64: math.MaxInt64} {
		for off, r := range p.Records(from) {
			require.Equal(t, want, off)
			require.Equal(t, want, r.Offset)
			want++
		}
		require.GreaterOrEqual(t, want, int64(10), "from %d", from)
	}
	for off := range p.Records(0) { // what comes while it runs is not part of it
		if off == 9 {
			break
		}
		numbers(t, p, 1)
	}
	require.EqualValues(t, 16, p.Next())

	// Retention may pass it: then it goes on behind.
	var seen []int64
	for off := range p.Records(4) {
		seen = append(seen, off)
		if off == 4 {
			require.NoError(t, p.TruncateBefore(background, 13))
		}
	}
	require.Equal(t, []int64{4, 5, 13, 14, 15}, seen, "the segment that it stands in stays")
}

func TestFollow(t *testing.T) {
	watchdog(t)
	p := holding(t, 3, 10)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	want := int64(5)
	for r, err := range p.Follow(ctx, 5) {
		if want == 20 {
			require.Equal(t, context.Canceled, err)
			require.Zero(t, r)
			want++
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, r.Offset)
		if want++; want == 10 {
			go numbers(t, p, 10)
		}
		if want == 20 {
			cancel()
		}
	}
	require.EqualValues(t, 21, want, "it ends after the error")

	// Retention that passes it is an error.
	var failed error
	for r, err := range p.Follow(background, 3) {
		if failed = err; err == nil && r.Offset == 3 {
			require.NoError(t, p.TruncateBefore(background, 15))
		}
	}
	var out *engine.OffsetError
	require.ErrorAs(t, failed, &out)
	require.Equal(t, engine.OffsetError{Asked: 4, First: 15, Next: 20}, *out)
}

func TestReader_Starts(t *testing.T) {
	for _, c := range []struct {
		start engine.Start
		want  int64
	}{
		{engine.Start{}, 10},
		{engine.Latest(), 10},
		{engine.Earliest(), 3},
		{engine.At(3), 3},
		{engine.At(7), 7},
		{engine.At(10), 10},
		{engine.Since(time.Time{}), 3},
		{engine.Since(time.Unix(0, 0)), 3},
		{engine.Since(time.Unix(0, math.MaxInt64)), 10},
		{engine.Since(time.Date(5000, 1, 1, 0, 0, 0, 0, time.UTC)), 10},
		{engine.Since(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)), 3},
	} {
		p := holding(t, 3, 10)
		r := newReader(t, p, engine.ReaderConfig{Start: c.start})
		require.Equal(t, c.want, r.Position())
		require.Equal(t, 10-c.want, r.Lag())
		require.NoError(t, r.Seek(engine.Earliest()))
		require.NoError(t, r.Seek(c.start))
		require.Equal(t, c.want, r.Position())
		numbers(t, p, 1)
		wantNext(t, r, c.want)
	}
}

// A gap is told once, from and to, and the reader goes on behind it; what is lost is counted.
func TestReader_Gap(t *testing.T) {
	p := holding(t, 0, 10)
	r := newReader(t, p, engine.ReaderConfig{Start: engine.At(1)})
	wantNext(t, r, 1)
	require.NoError(t, p.TruncateBefore(background, 5))
	_, err := r.Next(background)
	var gap *engine.GapError
	require.ErrorAs(t, err, &gap)
	require.Equal(t, engine.GapError{From: 2, To: 5}, *gap)
	require.EqualValues(t, 5, r.Position())
	require.EqualValues(t, 3, r.Lost())
	wantNext(t, r, 5)
	require.NoError(t, p.TruncateBefore(background, 8))
	batch := make([]engine.Record, 5)
	_, err = r.NextBatch(background, batch)
	require.ErrorAs(t, err, &gap)
	require.Equal(t, engine.GapError{From: 6, To: 8}, *gap)
	n, err := r.NextBatch(background, batch)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.EqualValues(t, 5, r.Lost())
	require.Zero(t, r.Lag())
	require.NoError(t, r.Seek(engine.At(8)))
	require.NoError(t, p.TruncateBefore(background, 9))
	values := make([][]byte, 5)
	_, err = r.NextValues(background, values)
	require.ErrorAs(t, err, &gap)
	require.Equal(t, engine.GapError{From: 8, To: 9}, *gap)
	n, err = r.NextValues(background, values)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, batch[1].Value, values[0])
	require.EqualValues(t, 6, r.Lost())
}

// Under FailOnGap it fails until somebody moves it.
func TestReader_FailOnGap(t *testing.T) {
	p := holding(t, 0, 10)
	r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest(), Gap: engine.FailOnGap})
	require.NoError(t, p.TruncateBefore(background, 5))
	for range 3 {
		_, err := r.Next(background)
		var out *engine.OffsetError
		require.ErrorAs(t, err, &out)
		require.Equal(t, engine.OffsetError{Asked: 0, First: 5, Next: 10}, *out)
	}
	require.EqualValues(t, 5, r.Lag(), "of what is there")
	require.NoError(t, r.Seek(engine.Last(2)))
	wantNext(t, r, 8)
	require.Zero(t, r.Lost())
}

func TestReader_Errors(t *testing.T) {
	watchdog(t)
	p := holding(t, 0, 3)
	r := newReader(t, p, engine.ReaderConfig{})
	ctx, cancel := context.WithTimeout(background, time.Millisecond)
	defer cancel()
	_, err := r.Next(ctx)
	require.Equal(t, context.DeadlineExceeded, err)
	_, err = r.NextBatch(ctx, make([]engine.Record, 1))
	require.Equal(t, context.DeadlineExceeded, err)
	_, err = r.NextValues(ctx, make([][]byte, 1))
	require.Equal(t, context.DeadlineExceeded, err)
	_, n, err := r.NextRun(ctx, 1)
	require.Equal(t, context.DeadlineExceeded, err)
	require.Zero(t, n)
	n, err = r.NextBatch(ctx, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	_, n, err = r.NextRun(ctx, 0)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = r.NextValues(ctx, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	var out *engine.OffsetError
	for _, off := range []int64{-1, 4, math.MaxInt64} {
		require.ErrorAs(t, r.Seek(engine.At(off)), &out)
	}
	require.EqualValues(t, 3, r.Position())
	r.Close()
	r.Close()
	_, err = r.Next(background)
	require.ErrorIs(t, err, engine.ErrReaderClosed)
	require.ErrorIs(t, r.Seek(engine.Earliest()), engine.ErrReaderClosed)

	r = newReader(t, p, engine.ReaderConfig{MaxLag: 2})
	numbers(t, p, 3)
	_, err = r.Next(background)
	require.ErrorIs(t, err, engine.ErrEvicted)
}

// Any number of readers each see all.
func TestReader_FanOut(t *testing.T) {
	watchdog(t)
	p := newPartition(t, engine.TopicConfig{SegmentRecords: 5})
	n := rounds(2000)
	var wg sync.WaitGroup
	for i := range 20 {
		r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest(), Wait: engine.Wait(i % 3), Gating: i%2 == 0})
		wg.Go(func() {
			for off := range int64(n) {
				rec, err := r.Next(background)
				if err != nil || rec.Offset != off || string(rec.Value) != fmt.Sprint(off) {
					t.Errorf("%d: %v, %v", off, rec, err)
				}
			}
		})
	}
	numbers(t, p, n)
	wg.Wait()
}

func TestPartition_Age(t *testing.T) {
	p := newPartition(t, engine.TopicConfig{})
	require.Zero(t, p.Age())
	numbers(t, p, 1)
	await(func() bool { return p.Age() > 0 })
	require.NoError(t, p.TruncateBefore(background, 1))
	require.Zero(t, p.Age())
}

func unixNano(n int64) time.Time { return time.Unix(0, n) }

func unixNow() int64 { return time.Now().UnixNano() }
