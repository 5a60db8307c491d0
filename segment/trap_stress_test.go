package segment_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// Tailing readers at each roll, with segments of two records.
func TestBUG020_NothingIsMissedAtTheRoll(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 2, First: 1})
	var (
		wg     sync.WaitGroup
		failed firstError
		gaps   atomic.Int64
		mu     sync.Mutex // hands the appender's role around
	)
	for i := range 4 {
		wg.Go(func() {
			if err := followAll(l, i, &gaps); err != nil {
				failed.set(err)
			}
		})
	}
	var producers sync.WaitGroup
	for range 4 {
		producers.Go(func() {
			for range scaled(10_000) {
				mu.Lock()
				err := errors.Join(appendSigned(l), l.Publish())
				mu.Unlock()
				if err != nil {
					failed.set(err)
				}
				runtime.Gosched()
			}
		})
	}
	producers.Wait()
	l.Seal()
	wg.Wait()
	require.NoError(t, failed.get())
	require.Zero(t, gaps.Load())
	require.EqualValues(t, 1+4*scaled(10_000), l.Committed())
}

// A reader at the tail, while the log is cut to its very end and extended in turn: data, nothing yet, or a gap.
func TestBUG106_TailAgainstTruncation(t *testing.T) {
	pool := segment.NewPool(0, 1<<20).Poison()
	l := segment.NewLog(segment.Config{SegmentRecords: 2, Pool: pool, First: 1})
	var (
		wg     sync.WaitGroup
		failed firstError
		stop   atomic.Bool
		gaps   atomic.Int64
	)
	for i := range 2 {
		wg.Go(func() {
			if err := followAll(l, i, &gaps); err != nil {
				failed.set(err)
			}
		})
		wg.Go(func() {
			var dst [2]segment.Record
			for !stop.Load() {
				_, next := l.Snapshot()
				off := next - uint64(i)
				n, err := l.ReadAt(off, dst[:])
				if err != nil && !errors.Is(err, segment.ErrBelow) {
					failed.set(fmt.Errorf("at %d, the length was %d: %w", off, next, err))
				}
				for j := range n {
					if err := verify(&dst[j], off+uint64(j)); err != nil {
						failed.set(err)
					}
				}
				runtime.Gosched()
			}
		})
	}
	most := scaled(200_000)
	for n := 0; n < most || (gaps.Load() == 0 && n < 50*most); n++ {
		if err := errors.Join(appendSigned(l), l.Publish()); err != nil {
			failed.set(err)
		}
		l.TruncateBefore(math.MaxUint64)
		if n%4 == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	l.Seal()
	wg.Wait()
	require.NoError(t, failed.get())
	require.Positive(t, gaps.Load(), "no reader met a gap")
}

// What a search by time finds carries such a time, while random times are appended and the log is rolled and cut.
func TestBUG115_TimeSearchAgainstAppend(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 5})
	var (
		wg     sync.WaitGroup
		failed firstError
		stop   atomic.Bool
		found  atomic.Int64
	)
	for i := range 2 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(6, uint64(i)))
			var dst [1]segment.Record
			for !stop.Load() {
				at := rng.Int64N(1100)
				before := l.Committed()
				off := l.Since(at)
				n, err := l.ReadAt(off, dst[:])
				switch {
				case err != nil && !errors.Is(err, segment.ErrBelow):
					failed.set(err)
				case n == 1 && off < before && dst[0].Timestamp < at:
					failed.set(fmt.Errorf("searched %d, but %d has %d", at, off, dst[0].Timestamp))
				case n == 1:
					found.Add(1)
				}
				runtime.Gosched()
			}
		})
	}
	rng := rand.New(rand.NewPCG(7, 7))
	most := scaled(100_000)
	for n := 0; n < most || (found.Load() == 0 && n < 50*most); n++ {
		if err := l.Append(&segment.Record{Timestamp: 1 + rng.Int64N(1000)}, int64(n)); err != nil {
			failed.set(err)
		}
		if err := l.Publish(); err != nil {
			failed.set(err)
		}
		retain(l, 6)
		if n%8 == 0 {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
	require.NoError(t, failed.get())
	require.Positive(t, found.Load())
}

// Many goroutines take the appender's role in turn: offsets are unique and dense, and each payload is read once.
func TestBUG124_OffsetsAreUniqueAndDense(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			l := segment.NewLog(segment.Config{SegmentRecords: 3})
			const producers = 16
			each := scaled(5_000)
			var (
				wg   sync.WaitGroup
				mu   sync.Mutex
				offs [producers][]uint64
			)
			for p := range producers {
				wg.Go(func() {
					for n := range each {
						mu.Lock()
						off := l.Staged()
						err := errors.Join(l.Append(&segment.Record{Value: fmt.Append(nil, p, n)}, 1), l.Publish())
						mu.Unlock()
						if err == nil {
							offs[p] = append(offs[p], off)
						}
						runtime.Gosched()
					}
				})
			}
			wg.Wait()
			values, _ := read(l.NewReader())
			require.Len(t, values, producers*each)
			for p := range producers {
				require.Len(t, offs[p], each)
				for n, off := range offs[p] {
					require.Equal(t, strings.TrimSpace(fmt.Sprintln(p, n)), values[off])
				}
			}
		})
	}
}
