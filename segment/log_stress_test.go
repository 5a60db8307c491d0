package segment_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// scaled returns how often to do something: n, less under the race detector and with -short.
func scaled(n int) int {
	if raceEnabled {
		n /= 5
	}
	if testing.Short() {
		n /= 10
	}
	return max(n, 1)
}

// firstError keeps the first error of many goroutines.
type firstError struct{ err atomic.Pointer[error] }

func (f *firstError) set(err error) { f.err.CompareAndSwap(nil, &err) }

func (f *firstError) get() error {
	if p := f.err.Load(); p != nil {
		return *p
	}
	return nil
}

// TestLog_StressReadersAgainstRecycling lets an appender run around in very little memory, with readers that now and then
// sleep over a view, and checks Publication, Order, Roll, Trim (Log) and Recycle (segment): a reader sees every offset
// once, in order, but for gaps that it is told about; each record's bytes prove that they are its own; and the block of a
// view is never reused. It goes on until readers have met gaps, blocks have been reused, and blocks have been left to the
// collector because somebody had a pin.
func TestLog_StressReadersAgainstRecycling(t *testing.T) {
	for _, records := range []int{0, 1, 7} {
		for _, procs := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("SegmentRecords=%d/procs=%d", records, procs), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				stressReaders(t, records)
			})
		}
	}
}

func stressReaders(t *testing.T, segmentRecords int) {
	pool := segment.NewPool(0, 1<<20).Poison()
	l := segment.NewLog(segment.Config{SegmentBytes: 4096, SegmentRecords: segmentRecords, Pool: pool, First: 1})
	var (
		wg     sync.WaitGroup
		failed firstError
		gaps   atomic.Int64
	)
	for i := range 4 {
		wg.Go(func() {
			if err := followAll(l, i, &gaps); err != nil {
				failed.set(err)
			}
		})
	}

	var reused, left int
	rng := rand.New(rand.NewPCG(1, 2))
	least := scaled(80_000)
	for n := 0; ; n++ {
		for range 1 + rng.IntN(20) {
			if err := appendSigned(l); err != nil {
				failed.set(err)
			}
		}
		if err := l.Publish(); err != nil {
			failed.set(err)
		}
		for {
			if _, _, segments := l.Retained(); segments <= 2 {
				break
			}
			before := pool.Kept()
			if !l.DropOldest() {
				break
			}
			if pool.Kept() > before {
				reused++
			} else {
				left++
			}
		}
		if n%8 == 0 {
			runtime.Gosched()
		}
		done := l.Staged() > uint64(least) && gaps.Load() > 0 && reused > 0 && left > 0
		if done || failed.get() != nil || l.Staged() > uint64(least)*50 {
			break
		}
	}
	l.Seal()
	wg.Wait()
	require.NoError(t, failed.get())
	require.Positive(t, gaps.Load(), "no reader met a gap")
	require.Positive(t, reused, "no block was reused")
	require.Positive(t, left, "no block was dropped under a pin")
	drain(l)
	require.Zero(t, pool.Used())
}

// followAll reads l to its sealed end.
func followAll(l *segment.Log, seed int, gaps *atomic.Int64) error {
	r := l.NewReader()
	defer r.Close()
	rng := rand.New(rand.NewPCG(3, uint64(seed)))
	recs, values := make([]segment.Record, 8), make([][]byte, 8)
	take := func() int {
		switch seed % 3 {
		case 0:
			if !r.Next(&recs[0]) {
				return 0
			}
			return 1
		case 1:
			return r.NextEach(recs)
		}
		at := r.Position()
		var n int
		if rng.IntN(2) == 0 {
			n = r.NextValues(values)
		} else if values[0], n = r.NextRun(len(values)); n > 1 {
			for size, run := len(values[0])/n, values[0]; len(run) > 0; run = run[size:] {
				values[n-len(run)/size] = run[:size:size]
			}
		}
		for i, v := range values[:n] {
			off := int64(at) + int64(i)
			recs[i] = segment.Record{Value: v, Offset: off, Timestamp: off}
		}
		return n
	}
	var seen uint64
	for turn := uint32(0); ; {
		pos := r.Position()
		switch s := r.Refill(); s {
		case segment.Ready:
			turn = 0
			for n := take(); n > 0; n = take() {
				for i := range recs[:n] {
					if rng.IntN(200) == 0 {
						for range rng.IntN(40) {
							runtime.Gosched() // sleep over the view
						}
					}
					if err := verify(&recs[i], pos); err != nil {
						return err
					}
					pos++
				}
				if pos != r.Position() {
					return fmt.Errorf("position %d after record %d", r.Position(), pos-1)
				}
			}
		case segment.CaughtUp:
			if c := l.Committed(); c < pos {
				return fmt.Errorf("caught up at %d of %d", pos, c)
			}
			atomicx.Relax(turn)
			turn++
		case segment.Below:
			first := l.First()
			if first <= pos {
				return fmt.Errorf("below at %d, but first is %d", pos, first)
			}
			gaps.Add(1)
			r.Seek(first)
		case segment.Sealed:
			if c := l.Committed(); c != pos {
				return fmt.Errorf("sealed at %d of %d", pos, c)
			}
			return nil
		default:
			return fmt.Errorf("%v at %d of %d", s, pos, l.Committed())
		}
		if l.Committed() < seen {
			return fmt.Errorf("the length went back from %d", seen)
		}
		seen = l.Committed()
	}
}

// TestLog_StressRandomAccess asks for random offsets around both ends while the log is cut and rolled, and checks Trim,
// Snapshot and keep: an answer is the record, or an error that was true at some instant of the call, and a view stays what
// it is.
func TestLog_StressRandomAccess(t *testing.T) {
	pool := segment.NewPool(0, 1<<20).Poison()
	l := segment.NewLog(segment.Config{SegmentBytes: 4096, Pool: pool, First: 1})
	var (
		wg                  sync.WaitGroup
		failed              firstError
		stop                atomic.Bool
		below, beyond, read atomic.Int64
	)
	for i := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(4, uint64(i)))
			var held [16]segment.Record
			for n := 0; !stop.Load(); n++ {
				if err := randomAccess(l, rng, &held, &below, &beyond, &read); err != nil {
					failed.set(err)
					return
				}
				if n := l.Bytes(); n < 0 || n > 1<<20 {
					failed.set(fmt.Errorf("%d bytes", n))
					return
				}
				if n%16 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for n := scaled(300_000); n > 0 && failed.get() == nil; n-- {
		for range rng.IntN(10) {
			assert.NoError(t, appendSigned(l))
		}
		assert.NoError(t, l.Publish())
		cutSometimes(l, rng)
		if n%16 == 0 {
			runtime.Gosched()
		}
	}
	for below.Load() == 0 || beyond.Load() == 0 || read.Load() == 0 {
		if failed.get() != nil {
			break
		}
		retain(l, 1)
		assert.NoError(t, appendSigned(l))
		assert.NoError(t, l.Publish())
		runtime.Gosched()
	}
	stop.Store(true)
	wg.Wait()
	require.NoError(t, failed.get())
}

func randomAccess(l *segment.Log, rng *rand.Rand, held *[16]segment.Record, below, beyond, read *atomic.Int64) error {
	first, next := l.Snapshot()
	if first > next {
		return fmt.Errorf("snapshot [%d, %d)", first, next)
	}
	off := first + rng.Uint64N(next-first+4)
	if first > 2 {
		off -= 2
	}
	var dst [4]segment.Record
	n, err := l.ReadAt(off, dst[:1+rng.IntN(4)])
	switch {
	case errors.Is(err, segment.ErrBelow):
		below.Add(1)
		if l.First() <= off {
			return fmt.Errorf("below at %d, but first is %d", off, l.First())
		}
	case errors.Is(err, segment.ErrBeyond):
		beyond.Add(1)
		if off <= next {
			return fmt.Errorf("beyond at %d, but the length was %d", off, next)
		}
	case n == 0 && off < next:
		return fmt.Errorf("nothing at %d, but the length was %d", off, next)
	}
	for i := range n {
		read.Add(1)
		if err := verify(&dst[i], off+uint64(i)); err != nil {
			return err
		}
		at := &held[rng.IntN(len(held))]
		if at.Value != nil {
			if err := verify(at, uint64(at.Offset)); err != nil {
				return fmt.Errorf("a view has changed: %w", err)
			}
		}
		*at = dst[i]
	}
	if at, ok := l.TimeOf(off); ok && at != int64(off) {
		return fmt.Errorf("time %d at %d", at, off)
	}
	found := l.Since(int64(off))
	after, _ := l.Snapshot()
	if found < first || found < min(off, next) || found > max(off, after, next) && found > l.Committed() {
		return fmt.Errorf("offset %d for time %d in [%d, %d)", found, off, first, next)
	}
	if found > max(off, after) {
		return fmt.Errorf("offset %d for time %d, but first is %d", found, off, after)
	}
	return nil
}

// TestLog_StressSealAgainstPublish checks Seal, by two who take turns at being the appender: all that Publish accepted is
// inside the sealed length, nothing else is, and every reader gets to the end.
func TestLog_StressSealAgainstPublish(t *testing.T) {
	won := map[bool]int{}
	rounds := scaled(4000)
	for round := 0; round < rounds || (len(won) < 2 && round < 100*rounds); round++ {
		l := segment.NewLog(segment.Config{SegmentRecords: 3, First: 1})
		var (
			wg       sync.WaitGroup
			role     sync.Mutex
			accepted uint64 = 1
			refused  bool
			sealed   uint64
			failed   firstError
			gaps     atomic.Int64
		)
		publish := func(records int) bool {
			role.Lock()
			defer role.Unlock()
			for range records {
				if err := appendSigned(l); err != nil {
					failed.set(err)
				}
			}
			staged := l.Staged()
			if err := l.Publish(); err != nil {
				refused = true
				if !errors.Is(err, segment.ErrSealed) || l.Staged() != accepted {
					failed.set(fmt.Errorf("%v, staged %d, accepted %d", err, l.Staged(), accepted))
				}
				return false
			}
			accepted = staged
			return true
		}
		wg.Go(func() {
			for n := 0; n < 40 && publish(n%5); n++ {
			}
		})
		wg.Go(func() {
			for l.Committed() < 1+uint64(round%60) {
				runtime.Gosched()
			}
			role.Lock()
			sealed = l.Seal()
			role.Unlock()
		})
		for i := range 2 {
			wg.Go(func() {
				if err := followAll(l, i, &gaps); err != nil {
					failed.set(err)
				}
			})
		}
		wg.Wait()
		require.NoError(t, failed.get())
		require.Equal(t, accepted, l.Committed())
		require.Equal(t, sealed, l.Committed())
		require.Equal(t, sealed, l.Seal())
		won[refused]++
	}
	if runtime.GOMAXPROCS(0) == 1 {
		return // on one processor it may well go the same way each time
	}
	require.Len(t, won, 2, "the race went the same way each time: %v", won)
}

// TestLog_StressUnstage checks the last sentence of Roll: an end that moves back misleads no reader, and what was staged
// and taken back is never seen.
func TestLog_StressUnstage(t *testing.T) {
	pool := segment.NewPool(0, 1<<20).Poison()
	l := segment.NewLog(segment.Config{SegmentRecords: 4, Pool: pool, First: 1})
	var (
		wg     sync.WaitGroup
		failed firstError
		gaps   atomic.Int64
	)
	for i := range 3 {
		wg.Go(func() {
			if err := followAll(l, i, &gaps); err != nil {
				failed.set(err)
			}
		})
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for n := scaled(100_000); n > 0 && failed.get() == nil; n-- {
		for range rng.IntN(10) {
			dst, err := l.Reserve(segment.Shape{Value: 100}, int64(l.Committed()))
			assert.NoError(t, err)
			clear(dst)
		}
		if rng.IntN(3) == 0 {
			l.Roll()
		}
		l.Unstage()
		for range rng.IntN(6) {
			assert.NoError(t, appendSigned(l))
		}
		assert.NoError(t, l.Publish())
		retain(l, 20)
		if n%8 == 0 {
			runtime.Gosched()
		}
	}
	l.Seal()
	wg.Wait()
	require.NoError(t, failed.get())
}

// TestPool_Stress lets logs fight for a budget that is too small for all: it is never exceeded, nobody starves for good,
// and in the end everything has come back.
func TestPool_Stress(t *testing.T) {
	const budget = 96 << 10
	pool := segment.NewPool(budget, 32<<10).Poison()
	var (
		wg      sync.WaitGroup
		checker sync.WaitGroup
		stop    atomic.Bool
		failed  firstError
		refused atomic.Int64
	)
	checker.Go(func() {
		for !stop.Load() {
			if used, kept := pool.Used(), pool.Kept(); used < 0 || used > budget || kept < 0 || kept > 32<<10 {
				failed.set(fmt.Errorf("used %d, kept %d", used, kept))
			}
			runtime.Gosched()
		}
	})
	for i := range 4 {
		wg.Go(func() {
			l := segment.NewLog(segment.Config{SegmentBytes: 32 << 10, Pool: pool})
			w := atomicx.NewWaiter()
			rng := rand.New(rand.NewPCG(9, uint64(i)))
			for n := scaled(100_000); n > 0; n-- {
				s := segment.Shape{Value: rng.IntN(3000)}
				_, err := l.Reserve(s, 1)
				for err != nil {
					if !errors.Is(err, segment.ErrNoMemory) {
						failed.set(err)
						return
					}
					refused.Add(1)
					if err := l.Publish(); err != nil {
						failed.set(err)
					}
					if l.DropOldest() {
						_, err = l.Reserve(s, 1)
						continue
					}
					// Others have it all. They give some back in the end, at the latest when they are done.
					pool.Freed().Prepare(w)
					if _, err = l.Reserve(s, 1); err == nil {
						pool.Freed().Cancel(w)
						break
					}
					pool.Freed().Wait(w, nil)
					_, err = l.Reserve(s, 1)
				}
			}
			drain(l)
		})
	}
	wg.Wait()
	stop.Store(true)
	checker.Wait()
	require.NoError(t, failed.get())
	require.Positive(t, refused.Load(), "the budget was never reached")
	require.Zero(t, pool.Used())
}
