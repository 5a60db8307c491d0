package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG001: one record for each wake-up, and the next only when the one before has been read. A wake-up that is lost is
// never made good by another publish.
func TestBUG001_PingPong(t *testing.T) {
	for name, follow := range map[string]func(ctx context.Context, p *engine.Partition, from int64, got chan<- int64){
		"Next": func(ctx context.Context, p *engine.Partition, from int64, got chan<- int64) {
			r, _ := p.Reader(engine.ReaderConfig{Start: engine.At(from)})
			defer r.Close()
			for {
				rec, err := r.Next(ctx)
				if err != nil {
					return
				}
				got <- rec.Offset
			}
		},
		"NextBatch": func(ctx context.Context, p *engine.Partition, from int64, got chan<- int64) {
			r, _ := p.Reader(engine.ReaderConfig{Start: engine.At(from), Gating: true})
			defer r.Close()
			batch := make([]engine.Record, 4)
			for {
				n, err := r.NextBatch(ctx, batch)
				if err != nil {
					return
				}
				for _, rec := range batch[:n] {
					got <- rec.Offset
				}
			}
		},
		"Follow": func(ctx context.Context, p *engine.Partition, from int64, got chan<- int64) {
			for rec, err := range p.Follow(ctx, from) {
				if err != nil {
					return
				}
				got <- rec.Offset
			}
		},
	} {
		for _, readers := range []int{1, 2} {
			t.Run(fmt.Sprint(name, readers), func(t *testing.T) {
				watchdog(t)
				p := newPartition(t, engine.TopicConfig{})
				ctx, cancel := context.WithCancel(background)
				got := make(chan int64)
				var wg sync.WaitGroup
				for range readers {
					wg.Go(func() { follow(ctx, p, 0, got) })
				}
				for i := range int64(rounds(4000)) {
					var err error
					if i%2 == 0 {
						_, err = p.Publish(background, value("x"))
					} else {
						err = p.PublishAsync(background, value("x"), nil)
					}
					require.NoError(t, err)
					for range readers {
						require.Equal(t, i, <-got)
					}
				}
				cancel()
				wg.Wait()
			})
		}
	}
}

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

// chase reads with r until ctx ends and nothing is left, and returns how many records it got and how many it was told that it
// lost. Everything comes in order, once, whole.
func chase(t testing.TB, ctx context.Context, r *engine.Reader) (read, lost int64) {
	want := r.Position()
	batch := make([]engine.Record, 7)
	for {
		n, err := r.NextBatch(ctx, batch)
		gap := (*engine.GapError)(nil)
		switch {
		case errors.As(err, &gap):
			if gap.From != want || gap.To <= gap.From {
				t.Errorf("at %d: %v", want, gap)
			}
			want = gap.To
			lost += gap.Lost()
			continue
		case errors.Is(err, context.Canceled):
			if r.Lag() > 0 {
				continue
			}
			return read, lost
		case err != nil || n == 0:
			t.Errorf("%d records, %v", n, err)
			return read, lost
		}
		for i := range batch[:n] {
			if batch[i].Offset != want {
				t.Errorf("got %d, want %d", batch[i].Offset, want)
			}
			verify(t, &batch[i])
			want++
			read++
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

// TestBUG020: tailing readers of every kind over segments of two records see every offset once, in order.
func TestBUG020_Rolls(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{SegmentRecords: 2, HandoverSlots: 16})
	p := part(t, topic, 0)
	ctx, cancel := context.WithCancel(background)
	var readers, producers sync.WaitGroup
	n := rounds(2500)
	for i := range 2 {
		r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest(), Wait: engine.Wait(i)})
		readers.Go(func() {
			if read, lost := chase(t, ctx, r); read != int64(8*n) || lost != 0 {
				t.Errorf("read %d, lost %d", read, lost)
			}
		})
		readers.Go(func() {
			want := int64(0)
			for r, err := range p.Follow(background, 0) {
				if err != nil || r.Offset != want {
					t.Errorf("%d: %d, %v", want, r.Offset, err)
				}
				verify(t, &r)
				if want++; want == int64(8*n) {
					return
				}
			}
		})
	}
	for i := range 8 {
		producers.Go(func() {
			for k := range n {
				if err := publishers[[]int{0, 2, 3, 4}[i%4]].publish(background, topic, signed(i, k, 10)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	producers.Wait()
	require.NoError(t, topic.Flush(background))
	cancel()
	readers.Wait()
}

// TestBUG022: a gating reader that got hold of much frees room as it goes through it, and not only at its end: with the
// default of eight segments, an eighth at a time.
func TestBUG022_RoomComesInPieces(t *testing.T) {
	watchdog(t)
	p := newPartition(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 1024}})
	r := newReader(t, p, engine.ReaderConfig{Gating: true})
	numbers(t, p, 1024)
	var published atomic.Int64
	go func() {
		for range 512 {
			if _, err := p.Publish(background, value("x")); err != nil {
				t.Error(err)
			}
			published.Add(1)
		}
	}()
	batch := make([]engine.Record, 1024)
	for read := 0; read < 512; {
		n, err := r.NextBatch(background, batch)
		require.NoError(t, err)
		require.LessOrEqual(t, n, 128)
		read += n
		_, err = r.NextBatch(background, batch[:1]) // says that it is done with those before
		require.NoError(t, err)
		read++
		await(func() bool { return published.Load() >= int64(read/128*128) })
	}
	require.NoError(t, r.Seek(engine.Latest()))
	await(func() bool { return published.Load() == 512 })
}

// TestBUG025: more waiters than processors, all kinds of them, a partition that is always full, and the collector at work:
// nobody who spins keeps the one from running for whom he waits.
func TestBUG025_SpinningStarvesNobody(t *testing.T) {
	for _, procs := range []int{1, 2} {
		for _, wait := range []engine.Wait{engine.WaitPark, engine.WaitYield, engine.WaitSpin} {
			t.Run(fmt.Sprint(wait, procs), func(t *testing.T) {
				watchdog(t)
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				p := newPartition(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 8}, SegmentRecords: 2, HandoverSlots: 8})
				const goroutines = 16
				n := rounds(60)
				var wg sync.WaitGroup
				for range goroutines {
					r := newReader(t, p, engine.ReaderConfig{Gating: true, Wait: wait})
					wg.Go(func() {
						for range goroutines * n {
							if _, err := r.Next(background); err != nil {
								t.Error(err)
								return
							}
						}
						_ = r.Seek(engine.Latest())
					})
				}
				for range goroutines {
					wg.Go(func() {
						for range n {
							if _, err := p.Publish(background, value("x")); err != nil {
								t.Error(err)
							}
						}
					})
				}
				done := make(chan struct{})
				go func() { wg.Wait(); close(done) }()
				for over := false; !over; {
					select {
					case <-done:
						over = true
					default:
						runtime.GC()
					}
				}
				require.EqualValues(t, goroutines*n, p.Next())
			})
		}
	}
}

// TestBUG047: from history to what is live there is no seam; and if history is trimmed meanwhile, the gap is told.
func TestBUG047_ReplayMeetsLive(t *testing.T) {
	watchdog(t)
	for _, trim := range []bool{false, true} {
		p := newPartition(t, engine.TopicConfig{SegmentRecords: 64})
		history, live := rounds(20_000), rounds(20_000)
		for k := range history {
			require.NoError(t, p.PublishAsync(background, signed(0, k, 10), nil))
		}
		require.NoError(t, p.Flush(background))
		ctx, cancel := context.WithCancel(background)
		var publisher, readers sync.WaitGroup
		publisher.Go(func() {
			for k := range live {
				if err := p.PublishAsync(background, signed(1, k, 10), nil); err != nil {
					t.Error(err)
				}
				if trim && k%500 == 0 {
					if err := p.TruncateBefore(background, int64(min(k, history))); err != nil {
						t.Error(err)
					}
				}
			}
		})
		for range 2 {
			r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest()})
			began := r.Position()
			readers.Go(func() {
				read, lost := chase(t, ctx, r)
				if read+lost != int64(history+live)-began || !trim && lost > 0 {
					t.Errorf("read %d, lost %d", read, lost)
				}
			})
		}
		publisher.Wait()
		require.NoError(t, p.Flush(background))
		cancel()
		readers.Wait()
	}
}

// TestBUG049: a read whose context ends around the moment when a record appears returns either the record or the error, and
// in that case has not moved.
func TestBUG049_CancelRacesARecord(t *testing.T) {
	watchdog(t)
	p := newPartition(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 64}})
	for _, wait := range []engine.Wait{engine.WaitPark, engine.WaitYield, engine.WaitSpin} {
		r := newReader(t, p, engine.ReaderConfig{Wait: wait})
		batch := make([]engine.Record, 10)
		want := p.Next()
		for i := range rounds(4000) {
			ctx, cancel := context.WithCancel(background)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := p.Publish(background, value("x")); err != nil {
					t.Error(err)
				}
			})
			if i%2 == 0 {
				wg.Go(cancel)
			} else {
				cancel()
			}
			n, err := r.NextBatch(ctx, batch)
			switch {
			case err == nil:
				for _, rec := range batch[:n] {
					require.Equal(t, want, rec.Offset)
					want++
				}
			default:
				require.Equal(t, context.Canceled, err)
				require.Zero(t, n)
			}
			require.Equal(t, want, r.Position())
			wg.Wait()
			cancel()
		}
		for r.Lag() > 0 {
			rec, err := r.Next(background)
			require.NoError(t, err)
			require.Equal(t, want, rec.Offset)
			want++
		}
		require.Equal(t, p.Next(), want)
	}
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

// TestBUG071: records without anything in them are records like others, to every way of reading.
func TestBUG071_EmptyRecords(t *testing.T) {
	topic := newTopic(t, engine.TopicConfig{SegmentRecords: 2})
	p := part(t, topic, 0)
	for _, way := range publishers {
		require.NoError(t, way.publish(background, topic, engine.Record{}))
	}
	require.NoError(t, topic.PublishBatch(background, []engine.Record{value("a"), {}, {Value: []byte{}}, value("b")}))
	require.NoError(t, topic.PublishBatch(background, nil))
	require.NoError(t, topic.Flush(background))
	n := int64(len(publishers)) + 4
	require.Equal(t, n, p.Next())
	r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest()})
	for off := range n {
		rec, err := r.Next(background)
		require.NoError(t, err)
		require.Equal(t, off, rec.Offset)
		require.NotZero(t, rec.Timestamp)
	}
	seen := int64(0)
	for range p.Records(0) {
		seen++
	}
	require.Equal(t, n, seen)
	for rec, err := range p.Follow(background, 0) {
		require.NoError(t, err)
		if rec.Offset == n-1 {
			break
		}
	}
	at := make([]engine.Record, n)
	got, err := p.ReadAt(0, at)
	require.NoError(t, err)
	require.EqualValues(t, n, got)
}

// TestBUG073: exactly the last n, or all there are, and then the new one.
func TestBUG073_ReaderLastN(t *testing.T) {
	for _, held := range [][2]int64{{0, 0}, {0, 1}, {0, 2}, {0, 5}, {4, 4}, {3, 4}, {2, 9}} {
		for _, n := range []int64{0, 1, 2, held[1] - held[0], held[1] - held[0] + 1, math.MaxInt64} {
			p := holding(t, held[0], held[1])
			r := newReader(t, p, engine.ReaderConfig{Start: engine.Last(n)})
			want := min(n, held[1]-held[0])
			require.Equal(t, want, r.Lag(), "the last %d of [%d, %d)", n, held[0], held[1])
			numbers(t, p, 1)
			for off := held[1] - want; off <= held[1]; off++ {
				wantNext(t, r, off)
			}
			require.Zero(t, r.Lag())
		}
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

// TestBUG091: a partition whose numbering is about to pass what smaller counters hold.
func TestBUG091_HighOffsets(t *testing.T) {
	for _, start := range []int64{1<<31 - 5, 1<<32 - 5, 1<<53 - 5, math.MaxInt64 - 100} {
		topic := newTopic(t, engine.FirstAt(engine.TopicConfig{Retention: engine.Retention{MaxRecords: 8}, SegmentRecords: 2}, start))
		p := part(t, topic, 0)
		require.Equal(t, start, p.First())
		r := newReader(t, p, engine.ReaderConfig{Gating: true, MaxLag: math.MaxInt64})
		for i := range int64(20) {
			numbers(t, p, 1)
			wantNext(t, r, start+i)
			require.Zero(t, r.Lag())
		}
		require.Equal(t, start+20, p.Next())
		require.GreaterOrEqual(t, p.First(), start+12)
		require.NoError(t, r.Seek(engine.Last(3)))
		wantNext(t, r, start+17)
		require.NoError(t, p.TruncateBefore(background, start+19))
		_, err := r.Next(background)
		var gap *engine.GapError
		require.NoError(t, r.Seek(engine.Earliest()))
		if errors.As(err, &gap) {
			require.Equal(t, start+19, gap.To)
		}
		wantNext(t, r, start+19)
		s := p.Stats()
		require.EqualValues(t, 19, s.Reclaimed)
	}
}

// TestBUG094: waits that are over at once leave nothing behind, however long they might have been.
func TestBUG094_ShortWaits(t *testing.T) {
	watchdog(t)
	p := newPartition(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 16}})
	r := newReader(t, p, engine.ReaderConfig{})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	ended, end := context.WithCancel(background)
	end()
	round := func(n int) {
		for range n {
			_, err := p.Publish(ctx, value("x"))
			require.NoError(t, err)
			_, err = r.Next(ctx)
			require.NoError(t, err)
			_, err = r.Next(ended)
			require.Equal(t, context.Canceled, err)
		}
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	round(1000)
	before := heap()
	round(rounds(40_000))
	require.Less(t, heap()-before, int64(256<<10))
}

// TestBUG100: as many as there are, as many as fit, and not one more, from each of several partitions.
func TestBUG100_BatchLimits(t *testing.T) {
	topic := newTopic(t, engine.TopicConfig{Partitions: 4, Partitioner: engine.Explicit()})
	for i := range 4 {
		p := part(t, topic, i)
		numbers(t, p, 10*i)
		for _, n := range []int{10*i - 1, 10 * i, 10*i + 1} {
			if n <= 0 || i == 0 {
				continue
			}
			r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest()})
			batch := make([]engine.Record, n)
			at, err := p.ReadAt(0, batch)
			require.NoError(t, err)
			require.Equal(t, min(n, 10*i), at)
			got, err := r.NextBatch(background, batch)
			require.NoError(t, err)
			require.Equal(t, min(n, 10*i), got)
			require.EqualValues(t, 10*i-got, r.Lag())
		}
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

// TestBUG109: a timestamp that is not set is the time of the append, for each record of a batch; one that is set is kept,
// whatever it is.
func TestBUG109_Timestamps(t *testing.T) {
	before := unixNow()
	for _, way := range publishers {
		topic := newTopic(t, engine.TopicConfig{})
		stamps := []int64{0, -1, 0, math.MinInt64, 1, 0, math.MaxInt64}
		for _, s := range stamps {
			require.NoError(t, way.publish(background, topic, engine.Record{Timestamp: s}))
		}
		batch := make([]engine.Record, len(stamps))
		for i, s := range stamps {
			batch[i].Timestamp = s
		}
		require.NoError(t, topic.PublishBatch(background, batch))
		for off, r := range part(t, topic, 0).Records(0) {
			if want := stamps[off%int64(len(stamps))]; want != 0 {
				require.Equal(t, want, r.Timestamp, way.name)
				continue
			}
			require.GreaterOrEqual(t, r.Timestamp, before)
			require.LessOrEqual(t, r.Timestamp, unixNow())
			require.Equal(t, r.Timestamp, r.Time().UnixNano())
		}
	}
}

// TestBUG115: the search by time, while records with timestamps in any order come in, finds an offset whose record has that
// time or a later one, and in the end the first of them.
func TestBUG115_SearchByTimeWhilePublishing(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{SegmentRecords: 16})
	p := part(t, topic, 0)
	n := rounds(3000)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			for range n {
				if err := topic.PublishAsync(background, engine.Record{Timestamp: 1 + rnd.Int64N(1_000_000)}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	at := make([]engine.Record, 1)
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		want := rand.Int64N(1_000_000)
		next := p.Next()
		r := newReader(t, p, engine.ReaderConfig{Start: engine.Since(unixNano(want))})
		if n, err := p.ReadAt(r.Position(), at); n > 0 {
			require.NoError(t, err)
			require.True(t, at[0].Timestamp >= want || r.Position() >= next)
		}
		r.Close()
	}
	require.NoError(t, topic.Flush(background))
	var all []int64
	for _, r := range p.Records(0) {
		all = append(all, r.Timestamp)
	}
	for want := int64(0); want < 1_000_000; want += 9973 {
		r := newReader(t, p, engine.ReaderConfig{Start: engine.Since(unixNano(want))})
		first := slices.IndexFunc(all, func(at int64) bool { return at >= want })
		if first < 0 {
			first = len(all)
		}
		require.EqualValues(t, first, r.Position())
	}
}

// TestSEED03: a position that does not exist is refused and moves nothing, and publishers are not affected, on an idle topic
// and on one that is full.
func TestSEED03_ReaderSeeksAnywhere(t *testing.T) {
	for _, full := range []bool{false, true} {
		p := newPartition(t, engine.TopicConfig{Retention: engine.Retention{MaxRecords: 4}, SegmentRecords: 1})
		numbers(t, p, 10)
		r := newReader(t, p, engine.ReaderConfig{Start: engine.Latest(), Gating: true})
		if full {
			numbers(t, p, 4)
		}
		at := r.Position()
		var out *engine.OffsetError
		for _, off := range []int64{p.Next() + 1, math.MaxInt64, p.First() - 1, 0, -1, math.MinInt64} {
			require.ErrorAs(t, r.Seek(engine.At(off)), &out)
			require.Equal(t, at, r.Position())
		}
		if full {
			require.ErrorIs(t, p.TryPublish(value("x")), engine.ErrFull)
			require.NoError(t, r.Seek(engine.Latest()))
		}
		numbers(t, p, 4)
		require.NoError(t, r.Seek(engine.Earliest()))
		wantNext(t, r, p.First())
	}
}

// TestSEED04: what is behind all gates and outside of retention is freed: with a fast reader, with none, whatever is
// published.
func TestSEED04_MemoryIsBounded(t *testing.T) {
	watchdog(t)
	for _, reading := range []bool{false, true} {
		e := open(t, engine.Config{})
		topic, err := e.CreateTopic("topic", engine.TopicConfig{Retention: engine.Retention{MaxBytes: 64 << 10}})
		require.NoError(t, err)
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

// TestSEED14: what is visible never passes a record that is not finished: every record that anybody ever sees is whole, also
// those that take long to be written, and next says no more than there is.
func TestSEED14_NothingUnfinishedIsVisible(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{HandoverSlots: 64, Retention: engine.Retention{MaxBytes: 4 << 20}, OnFull: engine.DropOldest})
	p := part(t, topic, 0)
	n := rounds(500)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for k := range n {
				size := []int{0, 100, 1200, 30_000}[(i+k)%4] // in one slot, several, a copy of its own
				if err := publishers[i%5].publish(background, topic, signed(i, k, size)); err != nil && !errors.Is(err, engine.ErrFull) {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	at := make([]engine.Record, 1)
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		if next := p.Next(); next > 0 {
			if n, err := p.ReadAt(next-1, at); err == nil {
				require.Equal(t, 1, n)
				verify(t, &at[0])
			}
		}
		runtime.Gosched()
	}
}
