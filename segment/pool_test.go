package segment_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment"
)

// hold appends one record that needs a block of that size, and returns the log.
func hold(t *testing.T, pool *segment.Pool, size int) *segment.Log {
	t.Helper()
	l := segment.NewLog(segment.Config{Pool: pool})
	put(t, l, 1, strings.Repeat("x", size/2+1))
	return l
}

func TestPool_KeepsUpToItsBound(t *testing.T) {
	pool := segment.NewPool(0, 40<<10)
	big, small1, small2, huge := hold(t, pool, 32<<10), hold(t, pool, 8<<10), hold(t, pool, 8<<10), hold(t, pool, 64<<10)
	require.EqualValues(t, (32+8+8+64)<<10, pool.Used())
	drain(small1)
	drain(small2)
	require.EqualValues(t, 16<<10, pool.Kept())
	drain(big)
	require.EqualValues(t, 40<<10, pool.Kept(), "one small block made way for the large one")
	drain(huge)
	require.EqualValues(t, 40<<10, pool.Kept(), "what is larger than the bound is not kept")
	require.Zero(t, pool.Used())
	hold(t, pool, 32<<10)
	hold(t, pool, 8<<10)
	require.Zero(t, pool.Kept(), "both were reused")
}

func TestPool_BudgetCountsWhatIsKept(t *testing.T) {
	pool := segment.NewPool(64<<10, 64<<10)
	drain(hold(t, pool, 32<<10))
	drain(hold(t, pool, 16<<10))
	require.EqualValues(t, 48<<10, pool.Kept())
	l := hold(t, pool, 64<<10)
	require.EqualValues(t, 64<<10, pool.Used())
	require.Zero(t, pool.Kept(), "kept blocks of other sizes go before a record is refused")
	_, err := l.Reserve(segment.Shape{Value: 60 << 10}, 1)
	require.ErrorIs(t, err, segment.ErrNoMemory)
}

// Logs that use less of a block than there is give all of it back.
func TestPool_WholeBlocksComeBack(t *testing.T) {
	pool := segment.NewPool(4096, 4096)
	for range 2 {
		small := segment.NewLog(segment.Config{SegmentBytes: 100, Pool: pool})
		put(t, small, 1, "x")
		drain(small)
		require.EqualValues(t, 4096, pool.Kept())
		l := segment.NewLog(segment.Config{SegmentBytes: 4096, Pool: pool})
		_, err := l.Reserve(segment.Shape{Value: 4096 - 16}, 1)
		require.ErrorIs(t, err, segment.ErrTooLarge, "with a timestamp and headers it would not fit")
		_, err = l.Reserve(segment.Shape{Value: 4096 - 28}, 1)
		require.NoError(t, err)
		drain(l)
	}
}

func TestPool_SmallestBudget(t *testing.T) {
	l := segment.NewLog(segment.Config{Pool: segment.NewPool(1, 0)})
	put(t, l, 1, "fits into one block")
	_, err := l.Reserve(segment.Shape{Value: 4096}, 1)
	require.ErrorIs(t, err, segment.ErrTooLarge)
}

func TestPool_Freed(t *testing.T) {
	pool := segment.NewPool(4096, 0)
	l := hold(t, pool, 4096)
	other := segment.NewLog(segment.Config{Pool: pool})
	w := atomicx.NewWaiter()
	var wg sync.WaitGroup
	for range 3 {
		pool.Freed().Prepare(w)
		_, err := other.Reserve(segment.Shape{Value: 3000}, 1)
		require.ErrorIs(t, err, segment.ErrNoMemory)
		wg.Go(func() { drain(l) })
		require.True(t, pool.Freed().Wait(w, nil))
		wg.Wait()
		put(t, other, 1, strings.Repeat("x", 3000))
		l, other = other, l
	}
	// Also when the block is left to the collector.
	r := l.NewReader()
	require.Equal(t, segment.Ready, r.Refill())
	pool.Freed().Prepare(w)
	wg.Go(func() { drain(l) })
	require.True(t, pool.Freed().Wait(w, nil))
	wg.Wait()
	require.Zero(t, pool.Used())
}

// A pinned segment that was dropped is kept alive by its reader alone: once that has gone on, nothing in the log or the
// pool reaches it.
func TestPool_DroppedBlockIsCollected(t *testing.T) {
	testkit.Watchdog(t)
	pool := segment.NewPool(0, 1<<20)
	l := segment.NewLog(segment.Config{SegmentRecords: 1, Pool: pool})
	collected := make(chan bool, 1)
	func() {
		put(t, l, 1, strings.Repeat("x", 60<<10))
		puts(t, l, 3)
		r := l.NewReader()
		require.Equal(t, segment.Ready, r.Refill())
		var rec segment.Record
		require.True(t, r.Next(&rec))
		runtime.AddCleanup(&rec.Value[0], func(int) { collected <- true }, 0)
		require.True(t, l.DropOldest())
		require.True(t, l.DropOldest())
		require.Equal(t, segment.Below, r.Refill())
	}()
	for over := false; !over; { // for ever, if the block is still reachable
		runtime.GC()
		select {
		case <-collected:
			over = true
		default:
			runtime.Gosched()
		}
	}
	puts(t, l, 1)
}
