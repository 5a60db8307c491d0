package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG007: a reader whose segment is the last that is left of what it was reading is told what it missed, goes on at what
// is there, and is never told that it has caught up while it has not.
func TestBUG007_TrimmedAtTheEndOfASegment(t *testing.T) {
	for _, read := range []int{0, 1, 3, 4, 5, 7, 8} {
		for _, grow := range []int{1, 4, 5, 8, 9, 40} {
			p := newPartition(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 8}, SegmentRecords: 4})
			numbers(t, p, 8)
			r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest()})
			for i := range read {
				wantNext(t, r, int64(i))
			}
			numbers(t, p, grow)
			want, lost := int64(read), int64(0)
			for want < p.Next() {
				rec, err := r.Next(background)
				if gap := (*engine.GapError)(nil); errors.As(err, &gap) {
					require.Equal(t, engine.GapError{From: want, To: p.First()}, *gap)
					want = gap.To
					lost += gap.Lost()
					continue
				}
				require.NoError(t, err)
				require.Equal(t, want, rec.Offset)
				want++
			}
			require.Equal(t, lost, r.Lost())
			require.Zero(t, r.Lag())
		}
	}
}

// TestSEED13: readers walk over segments that are trimmed under them: by retention, and by TruncateBefore at every step.
func TestSEED13_TrimsRaceReaders(t *testing.T) {
	watchdog(t)
	for _, policy := range []engine.OnFull{engine.Block, engine.DropOldest} {
		p := newPartition(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 8}, SegmentRecords: 2, OnFull: policy})
		ctx, cancel := context.WithCancel(background)
		var wg, trims sync.WaitGroup
		for i := range 4 {
			r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest(), Gating: i == 0, Wait: engine.Wait(i % 3)})
			wg.Go(func() {
				read, lost := chase(t, ctx, r)
				if read+lost != p.Next() || lost != r.Lost() {
					t.Errorf("read %d, lost %d of %d", read, lost, p.Next())
				}
			})
		}
		n := rounds(5000)
		trims.Go(func() {
			for p.Next() < int64(n) {
				if err := p.TruncateBefore(background, max(p.First(), p.Next()-rand.Int64N(5))); err != nil {
					t.Error(err)
				}
				runtime.Gosched()
			}
		})
		for k := range n {
			_, err := p.Publish(background, signed(0, k, k%50))
			require.NoError(t, err)
		}
		trims.Wait()
		cancel()
		wg.Wait()
	}
}

// TestBUG019: what a reader misses under DropOldest it is told, in its place in the order, and it is counted.
func TestBUG019_ReaderIsTold(t *testing.T) {
	p := newPartition(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 8}, OnFull: engine.DropOldest})
	r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest()})
	numbers(t, p, 5)
	wantNext(t, r, 0)
	numbers(t, p, 95)
	for {
		_, err := r.Next(background)
		if gap := (*engine.GapError)(nil); errors.As(err, &gap) {
			require.Equal(t, p.First(), gap.To)
			break
		}
		require.NoError(t, err)
	}
	for want := p.First(); want < 100; want++ {
		wantNext(t, r, want)
	}
	require.EqualValues(t, 92, p.First())
	require.Equal(t, p.Stats().Reclaimed, p.First())
	require.Greater(t, r.Lost(), int64(80))
}

// TestBUG061: truncation moves nobody back.
func TestBUG061_TruncationMovesForwardOnly(t *testing.T) {
	p := newPartition(t, engine.TopicConfig{SegmentRecords: 7})
	numbers(t, p, 100)
	r := newReader(t, p, engine.ReaderConfig{Start: engine.At(79), Gating: true})
	wantNext(t, r, 79)
	require.NoError(t, p.TruncateBefore(background, 50))
	require.EqualValues(t, 80, r.Position())
	wantNext(t, r, 80)
	require.NoError(t, r.Seek(engine.At(80)))
	require.NoError(t, p.TruncateBefore(background, 90))
	_, err := r.Next(background)
	var gap *engine.GapError
	require.ErrorAs(t, err, &gap)
	require.EqualValues(t, 10, gap.Lost())
	wantNext(t, r, 90)
	require.NoError(t, p.TruncateBefore(background, 20), "below First: nothing")
	require.EqualValues(t, 90, p.First())
	wantNext(t, r, 91)
}

// TestBUG062: truncation up to the end races with publishing. What is published is there; first never passes where truncation
// was asked for, and next never goes back.
func TestBUG062_TruncationRacesPublish(t *testing.T) {
	watchdog(t)
	p := newPartition(t, engine.TopicConfig{SegmentRecords: 3})
	n := rounds(20_000)
	var wg sync.WaitGroup
	var asked atomic.Int64
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			x := p.Next()
			asked.Store(x)
			if err := p.TruncateBefore(background, x); err != nil {
				t.Error(err)
			}
			if first := p.First(); first != x {
				t.Errorf("truncated before %d, and it begins at %d", x, first)
			}
		}
	})
	at := make([]engine.Record, 1)
	for k := range n {
		published, err := p.Publish(background, value("x"))
		require.NoError(t, err)
		require.EqualValues(t, k, published.Offset)
		require.Greater(t, p.Next(), published.Offset)
		if _, err := p.ReadAt(published.Offset, at); err != nil {
			require.Greater(t, asked.Load(), published.Offset, "it is gone, and nobody asked for that: %v", err)
		}
	}
	close(stop)
	wg.Wait()
}

// TestBUG064: after every kind of truncation the search by time, reads, stats and the next append work, also if the greatest
// timestamp was at the front.
func TestBUG064_IndexesFollowTruncation(t *testing.T) {
	p := newPartition(t, engine.TopicConfig{SegmentRecords: 4})
	stamp := func(off int64) int64 { return 1_000_000 - off } // descending
	add := func(n int) {
		for range n {
			_, err := p.Publish(background, engine.Record{Timestamp: stamp(p.Next())})
			require.NoError(t, err)
		}
	}
	check := func() {
		t.Helper()
		for _, at := range []int64{0, stamp(p.Next()), stamp(p.First()), stamp(p.First()) + 1, stamp((p.First() + p.Next()) / 2), math.MaxInt64} {
			want := p.First()
			if p.First() == p.Next() || at > stamp(want) {
				want = p.Next()
			}
			r := newReader(t, p, engine.ReaderConfig{Start: engine.Since(unixNano(at))})
			require.Equal(t, want, r.Position(), "since %d in [%d, %d)", at, p.First(), p.Next())
		}
		n := p.First()
		for off, r := range p.Records(0) {
			require.Equal(t, n, off)
			require.Equal(t, stamp(off), r.Timestamp)
			n++
		}
		require.Equal(t, p.Next(), n)
		s := p.Stats()
		require.Equal(t, s.First, s.Reclaimed)
		require.Equal(t, s.First == s.Next, s.Bytes == 0)
	}
	add(10)
	check()
	for _, off := range []int64{5, 8, 9, 10} { // the middle, the end of a segment, all but one, all
		require.NoError(t, p.TruncateBefore(background, off))
		check()
	}
	for range 3 {
		add(6)
		check()
		require.NoError(t, p.TruncateBefore(background, p.Next()-1))
		check()
		require.NoError(t, p.TruncateBefore(background, p.Next()))
		check()
	}
}

// TestBUG085: numbering goes on where it was, however empty the log has become.
func TestBUG085_NumberingGoesOn(t *testing.T) {
	p := newPartition(t, engine.TopicConfig{SegmentRecords: 3})
	r := newReader(t, p, engine.ReaderConfig{})
	for i := range int64(20) {
		numbers(t, p, int(i))
		require.NoError(t, r.Seek(engine.Latest()))
		require.NoError(t, p.TruncateBefore(background, p.Next()))
		require.Equal(t, p.First(), p.Next())
		next := p.Next()
		at, err := p.Publish(background, value(fmt.Sprint(next)))
		require.NoError(t, err)
		require.Equal(t, next, at.Offset)
		wantNext(t, r, next)
	}
}

// TestBUG089: the bytes that Stats says are those of what is there, after any number of cycles, and in the end none are left.
func TestBUG089_BytesAreRight(t *testing.T) {
	for _, policy := range []engine.OnFull{engine.Block, engine.DropOldest} {
		e := open(t, engine.Config{})
		topic, err := e.CreateTopic("topic", engine.TopicConfig{
			Retention: engine.Retention{MaxBytes: 20_000}, SegmentBytes: 4 << 10, MaxRecordBytes: 2000, OnFull: policy,
		})
		require.NoError(t, err)
		p := part(t, topic, 0)
		rnd := rand.New(rand.NewPCG(1, 2))
		recount := func() (n int64) {
			for _, r := range p.Records(0) {
				n += int64(16 + len(r.Key) + len(r.Value) + r.Headers.Size())
				if r.Headers.Size() > 0 {
					n += 4
				}
				if r.Timestamp == 1 {
					n += 8
				}
			}
			return n
		}
		for range rounds(3000) {
			r := engine.Record{Value: make([]byte, rnd.IntN(1500)), Timestamp: rnd.Int64N(2)}
			if rnd.IntN(2) == 0 {
				r.Key, r.Headers = make([]byte, rnd.IntN(100)), engine.MakeHeaders(engine.Header{Name: "h", Value: make([]byte, rnd.IntN(100))})
			}
			_, err := topic.Publish(background, r)
			require.NoError(t, err)
			s := p.Stats()
			require.LessOrEqual(t, s.Bytes, int64(20_000))
			require.Equal(t, recount(), s.Bytes)
			require.Greater(t, s.Bytes+2*(4<<10)+2000, int64(20_000)*min(1, s.First), "it drops no more than it has to")
		}
		require.NoError(t, p.TruncateBefore(background, p.Next()))
		require.Zero(t, p.Stats().Bytes)
		require.Zero(t, e.Stats().MemoryUsed)
	}
}

// TestBUG106: somebody who reads at the end and at the beginning while both move gets records, nothing, or an error whose
// numbers make sense.
func TestBUG106_ReadsRaceTruncation(t *testing.T) {
	watchdog(t)
	p := newPartition(t, engine.TopicConfig{SegmentRecords: 2})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			at := make([]engine.Record, 3)
			for {
				select {
				case <-stop:
					return
				default:
				}
				off := [...]int64{p.Next() - 1, p.Next(), p.First()}[i]
				n, err := p.ReadAt(off, at)
				out := (*engine.OffsetError)(nil)
				switch {
				case errors.As(err, &out):
					if out.Asked != off || out.First > out.Next || out.First <= off && off <= out.Next {
						t.Errorf("at %d: %v", off, err)
					}
				case err != nil:
					t.Error(err)
				default:
					for k, r := range at[:n] {
						if r.Offset != off+int64(k) {
							t.Errorf("at %d: %d", off, r.Offset)
						}
						verify(t, &r)
					}
				}
				s := p.Stats()
				if s.First > s.Next || s.Reclaimed > s.Next {
					t.Errorf("%+v", s)
				}
			}
		})
	}
	for k := range rounds(20_000) {
		_, err := p.Publish(background, signed(0, k, 10))
		require.NoError(t, err)
		if k%3 == 0 {
			require.NoError(t, p.TruncateBefore(background, p.Next()-int64(k%2)))
		}
	}
	close(stop)
	wg.Wait()
}

// TestSEED04: what is behind all gates and outside of retention is freed: with a fast reader, with none, whatever is
// published.
func TestSEED04_MemoryIsBounded(t *testing.T) {
	watchdog(t)
	for _, reading := range []bool{false, true} {
		e := open(t, engine.Config{})
		topic := create(t, e, "topic", engine.TopicConfig{Retention: engine.Retention{MaxBytes: 64 << 10}})
		p := part(t, topic, 0)
		ctx, cancel := context.WithCancel(background)
		var wg sync.WaitGroup
		if reading {
			r := newReader(t, p, engine.ReaderConfig{Gating: true})
			wg.Go(func() {
				if read, lost := chase(t, ctx, r); read != p.Next() || lost > 0 {
					t.Errorf("read %d, lost %d", read, lost)
				}
			})
		}
		most := int64(0)
		for k := range rounds(40_000) {
			require.NoError(t, topic.PublishAsync(background, signed(0, k, 40), nil))
			if k%64 == 0 {
				most = max(most, e.Stats().MemoryUsed)
			}
		}
		require.NoError(t, topic.Flush(background))
		require.LessOrEqual(t, p.Stats().Bytes, int64(64<<10))
		require.LessOrEqual(t, most, int64(128<<10), "blocks come in powers of two")
		cancel()
		wg.Wait()
	}
}
