package atomicx_test

import (
	"os"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
)

// watch runs f and fails the test, with the stacks of all goroutines, if it does not end: a wake-up was lost.
func watch(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	watchdog := time.NewTimer(4 * time.Minute)
	defer watchdog.Stop()
	select {
	case <-done:
	case <-watchdog.C:
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		t.Fatal("a wake-up was lost")
	}
}

func rounds(full int) int {
	if testing.Short() {
		return full / 10
	}
	return full
}

// sleeper is a goroutine that waits, and how often it had to.
type sleeper struct {
	w     *atomicx.Waiter
	waits int
}

func newSleeper() *sleeper { return &sleeper{w: atomicx.NewWaiter()} }

// await waits on e until ready holds.
func (s *sleeper) await(e *atomicx.Event, ready func() bool) {
	for !ready() {
		e.Prepare(s.w)
		if ready() {
			e.Cancel(s.w)
			return
		}
		s.waits++
		e.Wait(s.w, nil)
	}
}

// TestEvent_StressPingPong has two goroutines wait for each other, each time for one wake-up that must not be lost. The
// plain value that they hand on lets the race detector check that a wake-up orders.
func TestEvent_StressPingPong(t *testing.T) {
	n := uint64(rounds(100_000))
	watch(t, func() {
		var (
			ball  atomicx.Uint64
			e     [2]atomicx.Event
			value uint64
			wg    sync.WaitGroup
		)
		var waits [2]int
		for side := range uint64(2) {
			wg.Go(func() {
				me := newSleeper()
				for i := side; i < 2*n; i += 2 {
					me.await(&e[side], func() bool { return ball.Load() == i })
					value++
					ball.Store(i + 1)
					e[1-side].Broadcast()
				}
				waits[side] = me.waits
			})
		}
		wg.Wait()
		assert.Equal(t, 2*n, value)
		for side := range e {
			assert.True(t, e[side].Empty())
			assert.NotZero(t, waits[side], "nobody had to wait")
		}
	})
}

// TestEvent_StressBroadcasts has several broadcast at once to several who wait, and those answer in the same way, round after
// round.
func TestEvent_StressBroadcasts(t *testing.T) {
	const side = 3 // goroutines on each side
	n := uint64(rounds(20_000))
	watch(t, func() {
		var (
			count [2]atomicx.Uint64
			e     [2]atomicx.Event
			waits atomicx.Int64
			wg    sync.WaitGroup
		)
		for i := range 2 * side {
			mine, other := i%2, 1-i%2
			wg.Go(func() {
				me := newSleeper()
				for round := uint64(1); round <= n; round++ {
					// Side 0 begins; side 1 answers.
					due := side * (round - uint64(1-mine))
					me.await(&e[mine], func() bool { return count[other].Load() >= due })
					count[mine].Add(1)
					e[other].Broadcast()
				}
				waits.Add(int64(me.waits))
			})
		}
		wg.Wait()
		for i := range e {
			assert.Equal(t, side*n, count[i].Load())
			assert.True(t, e[i].Empty())
		}
		assert.NotZero(t, waits.Load(), "nobody had to wait")
	})
}

// TestEvent_StressCancelAgainstBroadcast closes done and broadcasts at the same time. Afterwards the waiter is off the event
// and has no token, whoever won; and it was woken exactly if Wait or Cancel says so. Each outcome must come.
func TestEvent_StressCancelAgainstBroadcast(t *testing.T) {
	const least = 20 // of each outcome, or the race was not tried
	var e atomicx.Event
	w := atomicx.NewWaiter()
	var woken, ended int
	start := make(chan chan struct{})
	over := make(chan struct{})
	watch(t, func() {
		go func() {
			defer close(over)
			for done := range start {
				close(done)
				over <- struct{}{}
			}
		}()
		for i := 0; i < rounds(20_000) || (woken < least || ended < least) && i < 1_000_000; i++ {
			done := make(chan struct{})
			e.Prepare(w)
			start <- done
			go e.Broadcast()
			if e.Wait(w, done) {
				woken++
			} else {
				ended++
			}
			<-over
			require.True(t, e.Empty())
			require.False(t, w.HasToken())
		}
		close(start)
		<-over
	})
	t.Logf("woken %d times, ended %d times", woken, ended)
	assert.GreaterOrEqual(t, woken, least)
	assert.GreaterOrEqual(t, ended, least)
}

// TestEvent_StressCallWaiter cancels a call waiter against a Broadcast: each time one of the two has it, never both and
// never none.
func TestEvent_StressCallWaiter(t *testing.T) {
	watch(t, func() {
		var (
			e         atomicx.Event
			calls     atomicx.Uint32
			cancelled uint32
			wakers    sync.WaitGroup
		)
		w := atomicx.NewCallWaiter(func() { calls.Add(1) })
		n := uint32(rounds(50_000))
		ball := make(chan struct{})
		wakers.Go(func() {
			for range ball {
				e.Broadcast()
			}
		})
		for range n {
			e.Prepare(w)
			ball <- struct{}{}
			if e.Cancel(w) {
				cancelled++
			}
		}
		close(ball)
		wakers.Wait()
		assert.Equal(t, n, cancelled+calls.Load())
		assert.True(t, e.Empty())
		t.Logf("cancelled %d times, called %d times", cancelled, calls.Load())
	})
}

// TestParker_Stress has two wake one, who waits for both of each round.
func TestParker_Stress(t *testing.T) {
	n := uint64(rounds(50_000))
	watch(t, func() {
		var (
			sum, round atomicx.Uint64
			p          = atomicx.NewParker()
			e          atomicx.Event
			wg         sync.WaitGroup
		)
		for range 2 {
			wg.Go(func() {
				me := newSleeper()
				for i := range n {
					me.await(&e, func() bool { return round.Load() == i })
					sum.Add(1)
					p.Unpark()
				}
			})
		}
		for i := uint64(1); i <= n; i++ {
			for sum.Load() != 2*i {
				p.Park(nil)
			}
			round.Store(i)
			e.Broadcast()
		}
		wg.Wait()
	})
}
