package atomicx_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
)

func ExampleEvent() {
	var (
		e         atomicx.Event
		committed atomicx.Uint64
	)
	go func() {
		committed.Store(1)
		e.Broadcast()
	}()

	w := atomicx.NewWaiter()
	for committed.Load() == 0 {
		e.Prepare(w)
		if committed.Load() != 0 {
			e.Cancel(w)
			break
		}
		e.Wait(w, nil)
	}
	fmt.Println(committed.Load())
	// Output: 1
}

func TestEvent_NobodyWaits(t *testing.T) {
	var e atomicx.Event
	e.Broadcast()
	assert.Zero(t, e.Waiting())
	assert.True(t, e.Empty())
	w := atomicx.NewWaiter()
	e.Prepare(w)
	assert.False(t, e.Wait(w, closed()), "an earlier Broadcast reached it")
}

func TestEvent_BroadcastBetweenPrepareAndWait(t *testing.T) {
	var e atomicx.Event
	w := atomicx.NewWaiter()
	e.Prepare(w)
	assert.Equal(t, 1, e.Waiting())
	e.Broadcast()
	assert.Zero(t, e.Waiting())
	assert.True(t, e.Wait(w, nil))
	assert.False(t, w.HasToken())
}

func TestEvent_Cancel(t *testing.T) {
	var e atomicx.Event
	w := atomicx.NewWaiter()
	e.Prepare(w)
	assert.True(t, e.Cancel(w))
	assert.True(t, e.Empty())
	e.Broadcast()
	assert.False(t, w.HasToken(), "a cancelled waiter was woken")

	e.Prepare(w)
	e.Broadcast()
	assert.False(t, e.Cancel(w), "the Broadcast had reached it")
	assert.False(t, w.HasToken(), "the wake-up was not used up")
}

func TestEvent_CancelOfWhatIsNotPrepared(t *testing.T) {
	var e, other atomicx.Event
	w := atomicx.NewWaiter()
	assert.False(t, e.Cancel(w))
	e.Prepare(w)
	assert.False(t, other.Cancel(w))
	assert.True(t, e.Cancel(w))
	assert.False(t, e.Cancel(w))
}

func TestEvent_PrepareAgain(t *testing.T) {
	var e, other atomicx.Event
	w := atomicx.NewWaiter()
	e.Prepare(w)
	e.Prepare(w)
	assert.Equal(t, 1, e.Waiting())
	assert.PanicsWithValue(t, "atomicx: the waiter is prepared on another event", func() { other.Prepare(w) })

	e.Broadcast()
	e.Prepare(w) // its token is there: it must not be registered a second time
	assert.Zero(t, e.Waiting())
	assert.True(t, e.Wait(w, nil))
	assert.True(t, e.Empty())
	assert.False(t, w.HasToken())

	other.Prepare(w)
	assert.True(t, other.Cancel(w))
}

func TestEvent_Done(t *testing.T) {
	var e atomicx.Event
	w := atomicx.NewWaiter()
	e.Prepare(w)
	assert.False(t, e.Wait(w, closed()))
	assert.True(t, e.Empty())

	// If both hold, either may win; the waiter is off and no token is left.
	for range 100 {
		e.Prepare(w)
		e.Broadcast()
		e.Wait(w, closed())
		require.True(t, e.Empty())
		require.False(t, w.HasToken())
	}
}

func TestEvent_BroadcastWakesAllAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e atomicx.Event
		const n = 5
		woken := make(chan int, 2*n)
		for i := range n {
			go func() {
				w := atomicx.NewWaiter()
				for range 2 { // it registers again at once: the first Broadcast must not wake it twice
					e.Prepare(w)
					e.Wait(w, nil)
					woken <- i
				}
			}()
		}
		for round := 1; round <= 2; round++ {
			synctest.Wait()
			assert.Equal(t, n, e.Waiting())
			assert.Len(t, woken, (round-1)*n)
			e.Broadcast()
		}
		synctest.Wait()
		assert.Len(t, woken, 2*n)
		assert.True(t, e.Empty())
	})
}

// TestEvent_UnlinkAnywhere cancels waiters at each place of the list, and makes sure that the others are woken.
func TestEvent_UnlinkAnywhere(t *testing.T) {
	const n = 4
	for mask := range 1 << n {
		var e atomicx.Event
		var ws [n]*atomicx.Waiter
		for i := range ws {
			ws[i] = atomicx.NewWaiter()
			e.Prepare(ws[i])
		}
		for i, w := range ws {
			if mask>>i&1 != 0 {
				require.True(t, e.Cancel(w))
			}
		}
		e.Broadcast()
		for i, w := range ws {
			require.Equal(t, mask>>i&1 == 0, w.HasToken(), "mask %b, waiter %d", mask, i)
		}
		require.True(t, e.Empty())
	}
}

func TestEvent_CallWaiter(t *testing.T) {
	var e atomicx.Event
	calls := 0
	var w *atomicx.Waiter
	w = atomicx.NewCallWaiter(func() {
		calls++
		if calls == 1 {
			e.Prepare(w) // under no lock, and not called again by this Broadcast
		}
	})
	e.Prepare(w)
	e.Prepare(w)
	assert.Equal(t, 1, e.Waiting())
	e.Broadcast()
	assert.Equal(t, 1, calls)
	assert.Equal(t, 1, e.Waiting())
	e.Broadcast()
	assert.Equal(t, 2, calls)
	e.Broadcast()
	assert.Equal(t, 2, calls)

	e.Prepare(w)
	assert.True(t, e.Cancel(w))
	assert.False(t, e.Cancel(w))
	e.Broadcast()
	assert.Equal(t, 2, calls)
}

// TestEvent_BroadcastInsideAWake makes sure that a wake function may broadcast.
func TestEvent_BroadcastInsideAWake(t *testing.T) {
	var e atomicx.Event
	order := ""
	e.Prepare(atomicx.NewCallWaiter(func() { order += "a"; e.Broadcast() }))
	e.Prepare(atomicx.NewCallWaiter(func() { order += "b" }))
	e.Broadcast()
	assert.Equal(t, "ab", order)
	assert.True(t, e.Empty())
}

func TestEvent_AllocatesNothing(t *testing.T) {
	if atomicx.Exploring {
		t.Skip("the shims let words escape")
	}
	var e atomicx.Event
	w := atomicx.NewWaiter()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		e.Broadcast()
		e.Prepare(w)
		e.Broadcast()
		e.Wait(w, nil)
		e.Prepare(w)
		e.Cancel(w)
	}))
}
