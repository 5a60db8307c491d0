package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
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
		"NextValues": func(ctx context.Context, p *engine.Partition, from int64, got chan<- int64) {
			r, _ := p.Reader(engine.ReaderConfig{Start: engine.At(from), Gating: true})
			defer r.Close()
			values := make([][]byte, 4)
			for {
				n, err := r.NextValues(ctx, values)
				if err != nil {
					return
				}
				for i := range int64(n) {
					got <- r.Position() - int64(n) + i
				}
			}
		},
		"NextRun": func(ctx context.Context, p *engine.Partition, from int64, got chan<- int64) {
			r, _ := p.Reader(engine.ReaderConfig{Start: engine.At(from), Gating: true})
			defer r.Close()
			for {
				_, n, err := r.NextRun(ctx, 4)
				if err != nil {
					return
				}
				for i := range int64(n) {
					got <- r.Position() - int64(n) + i
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
				during(&wg, runtime.GC)
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
	at := make([]engine.Record, 1)
	during(&wg, func() {
		if next := p.Next(); next > 0 {
			if n, err := p.ReadAt(next-1, at); err == nil {
				require.Equal(t, 1, n)
				verify(t, &at[0])
			}
		}
		runtime.Gosched()
	})
}
