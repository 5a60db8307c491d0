package ring_test

import (
	"math"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/ring"
)

// starts are first positions to run a test from: the usual one, and some from which positions wrap at 2^64 on the way.
var starts = map[string]uint64{
	"start=0":      0,
	"start=2^64-1": math.MaxUint64 - ring.PosStep + 1,
	"start=2^64-3": math.MaxUint64 - 3*ring.PosStep + 1,
	"start=2^63-2": 1<<63 - 2*ring.PosStep,
}

func fromStarts(t *testing.T, test func(t *testing.T, start uint64)) {
	for name, start := range starts {
		t.Run(name, func(t *testing.T) { test(t, start) })
	}
}

func mustClaim(t testing.TB, r *ring.MPSC[int], n int, want ring.Outcome) uint64 {
	t.Helper()
	pos, o := r.TryClaim(n)
	require.Equal(t, want, o)
	return pos
}

func TestNew_Capacity(t *testing.T) {
	for _, capacity := range []int{2, 4, 1024} {
		r := ring.New[int](capacity)
		assert.Equal(t, capacity, r.Cap())
		assert.Zero(t, r.Len())
		assert.False(t, r.Claimed())
		assert.False(t, r.Closed())
		assert.Zero(t, r.Waiting())
	}
	// A ring of one slot cannot tell "ready at position 0" from "free for position 1"; it is refused by the same rule.
	for _, capacity := range []int{math.MinInt, -2, -1, 0, 1, 3, 6, 1023, math.MaxInt} {
		want := "ring: the capacity must be a power of two, 2 or more, not " + strconv.Itoa(capacity)
		assert.PanicsWithValue(t, want, func() { ring.New[int](capacity) })
	}
}

func TestMPSCTryClaim_OfAnImpossibleSize(t *testing.T) {
	r := ring.New[int](4)
	for _, n := range []int{math.MinInt, -1, 0, 5, math.MaxInt} {
		want := "ring: a claim of " + strconv.Itoa(n) + " slots in a ring of 4"
		assert.PanicsWithValue(t, want, func() { r.TryClaim(n) })
		assert.PanicsWithValue(t, want, func() { r.Claim(n, nil) })
	}
	assert.Zero(t, r.Len())
}

func TestMPSC_HandsOver(t *testing.T) {
	fromStarts(t, func(t *testing.T, start uint64) {
		r := ring.NewAt[int](4, start)
		require.Equal(t, start, r.Head())
		for i := range 40 {
			n := i%4 + 1
			pos := mustClaim(t, r, n, ring.Claimed)
			require.Equal(t, r.Head(), pos)
			require.True(t, r.Claimed())
			require.False(t, r.IsReady(pos), "not before Ready")
			for j := range n {
				*r.Slot(pos, j) = 10*i + j
			}
			r.Ready(pos)
			require.True(t, r.IsReady(pos))
			require.Equal(t, n, r.Len())
			for j := range n {
				require.Equal(t, 10*i+j, *r.Slot(pos, j))
			}
			r.Release(r.Advance(pos, n))
			require.Equal(t, r.Advance(pos, n), r.Head())
			require.False(t, r.Claimed())
			require.False(t, r.IsReady(r.Head()), "the next lap's slot is not ready by an old mark")
		}
	})
}

func TestMPSCTryClaim_FullAndNotFull(t *testing.T) {
	fromStarts(t, func(t *testing.T, start uint64) {
		r := ring.NewAt[int](8, start)
		a := mustClaim(t, r, 5, ring.Claimed)
		mustClaim(t, r, 4, ring.Full)
		b := mustClaim(t, r, 3, ring.Claimed)
		mustClaim(t, r, 1, ring.Full)
		require.Equal(t, 8, r.Len())
		r.Ready(a)
		mustClaim(t, r, 1, ring.Full)
		r.Release(b)
		mustClaim(t, r, 6, ring.Full)
		mustClaim(t, r, 5, ring.Claimed)
		mustClaim(t, r, 1, ring.Full)
	})
}

func TestMPSC_ClaimsAreConsecutive(t *testing.T) {
	r := ring.New[int](8)
	a, b, c := mustClaim(t, r, 1, ring.Claimed), mustClaim(t, r, 3, ring.Claimed), mustClaim(t, r, 1, ring.Claimed)
	assert.Equal(t, r.Advance(a, 1), b)
	assert.Equal(t, r.Advance(b, 3), c)
	// The consumer stops at what is not ready, whatever is ready behind it.
	r.Ready(b)
	r.Ready(c)
	assert.False(t, r.IsReady(r.Head()))
	r.Ready(a)
	assert.True(t, r.IsReady(r.Head()))
}

// A slot in the middle of a claim keeps the mark of an earlier lap. It must not make a later claim that begins there look
// ready.
func TestMPSC_OldMarksMeanNothing(t *testing.T) {
	fromStarts(t, func(t *testing.T, start uint64) {
		r := ring.NewAt[int](4, start)
		hand := func(n int) {
			pos := mustClaim(t, r, n, ring.Claimed)
			require.False(t, r.IsReady(pos))
			r.Ready(pos)
			require.True(t, r.IsReady(pos))
			r.Release(r.Advance(pos, n))
		}
		for range 4 {
			hand(1) // every slot marked
		}
		for range 5 {
			hand(4) // one mark in four renewed
		}
		for range 9 {
			hand(1)
			hand(2)
		}
	})
}

func TestMPSCSleep_OnlyWhenNothingIsClaimed(t *testing.T) {
	fromStarts(t, func(t *testing.T, start uint64) {
		r := ring.NewAt[int](4, start)
		pos := mustClaim(t, r, 2, ring.Claimed)
		require.False(t, r.Sleep(), "claimed and not ready")
		r.Ready(pos)
		require.False(t, r.Sleep(), "ready and not released")
		r.Release(r.Advance(pos, 2))
		require.True(t, r.Sleep())
		require.True(t, r.Sleep(), "asleep already")
		require.False(t, r.Claimed())
		require.Zero(t, r.Len())

		pos = mustClaim(t, r, 1, ring.ClaimedIdle)
		mustClaim(t, r, 1, ring.Claimed) // only the first is told
		require.False(t, r.TakeIdle())
		require.False(t, r.Sleep())
		require.Equal(t, pos, r.Head())
	})
}

func TestMPSCTakeIdle(t *testing.T) {
	r := ring.New[int](2)
	assert.False(t, r.TakeIdle(), "the consumer starts awake")
	require.True(t, r.Sleep())
	assert.True(t, r.TakeIdle())
	assert.False(t, r.TakeIdle())
	mustClaim(t, r, 1, ring.Claimed)
}

func TestMPSCClaim_TellsIdle(t *testing.T) {
	r := ring.New[int](2)
	require.True(t, r.Sleep())
	_, o, ok := r.Claim(1, nil)
	assert.True(t, ok)
	assert.Equal(t, ring.ClaimedIdle, o)
}

func TestMPSCClose(t *testing.T) {
	fromStarts(t, func(t *testing.T, start uint64) {
		r := ring.NewAt[int](4, start)
		a := mustClaim(t, r, 1, ring.Claimed)
		b := mustClaim(t, r, 2, ring.Claimed)
		assert.False(t, r.Close(), "the consumer was awake")
		assert.False(t, r.Close())
		assert.True(t, r.Closed())
		mustClaim(t, r, 1, ring.Closed)
		mustClaim(t, r, 4, ring.Closed) // closed is said before full
		pos, o, ok := r.Claim(1, nil)
		assert.Zero(t, pos)
		assert.Equal(t, ring.Closed, o)
		assert.True(t, ok, "it was not done that ended the wait")

		// What was claimed before is still handed over.
		r.Ready(b)
		r.Ready(a)
		assert.True(t, r.IsReady(a))
		assert.True(t, r.IsReady(b))
		assert.False(t, r.Sleep())
		r.Release(r.Advance(b, 2))
		assert.False(t, r.Claimed())
		assert.False(t, r.Sleep(), "nobody would wake it")
		assert.False(t, r.TakeIdle())
	})
}

func TestMPSCClose_TakesIdle(t *testing.T) {
	r := ring.New[int](4)
	require.True(t, r.Sleep())
	assert.True(t, r.Close())
	assert.False(t, r.Close())
	assert.False(t, r.TakeIdle())
}

// Close may come from many goroutines, and races with claims (BUG-044): exactly one closer or claimer takes the idle bit.
func TestBUG043_MPSCCloseFromManyGoroutines(t *testing.T) {
	watchdog(t)
	for range rounds(10_000) {
		r := ring.New[int](2)
		require.True(t, r.Sleep())
		var wg sync.WaitGroup
		told := make([]bool, 16)
		for i := range told {
			wg.Go(func() {
				if i == 0 {
					_, o := r.TryClaim(1)
					told[i] = o == ring.ClaimedIdle
				} else {
					told[i] = r.Close()
				}
			})
		}
		wg.Wait()
		n := 0
		for _, b := range told {
			if b {
				n++
			}
		}
		require.Equal(t, 1, n)
		require.True(t, r.Closed())
	}
}

func TestMPSCClaim_WaitsForRoom(t *testing.T) {
	watchdog(t)
	fromStarts(t, func(t *testing.T, start uint64) {
		r := ring.NewAt[int](2, start)
		pos := mustClaim(t, r, 2, ring.Claimed)
		r.Ready(pos)
		got := make(chan uint64)
		go func() {
			pos, o, ok := r.Claim(1, nil)
			assert.True(t, ok)
			assert.Equal(t, ring.Claimed, o)
			got <- pos
		}()
		await(func() bool { return r.Waiting() == 1 })
		r.Release(r.Advance(pos, 1))
		assert.Equal(t, r.Advance(pos, 2), <-got)
		assert.Zero(t, r.Waiting())
		assert.False(t, r.Held())
	})
}

func TestMPSCClaim_Done(t *testing.T) {
	watchdog(t)
	r := ring.New[int](2)
	mustClaim(t, r, 2, ring.Claimed)
	done := make(chan struct{})
	left := make(chan bool)
	go func() {
		_, o, ok := r.Claim(1, done)
		assert.Equal(t, ring.Full, o)
		left <- ok
	}()
	await(func() bool { return r.Waiting() == 1 })
	close(done)
	assert.False(t, <-left)
	assert.Zero(t, r.Waiting())
	assert.Equal(t, 2, r.Len(), "nothing was claimed")

	// With done closed from the start it does not wait, but it takes room that is there.
	_, _, ok := r.Claim(1, done)
	assert.False(t, ok)
	r.Release(r.Advance(r.Head(), 1))
	_, o, ok := r.Claim(1, done)
	assert.True(t, ok)
	assert.Equal(t, ring.Claimed, o)
}

// TestBUG002_MPSCCloseWakesBlockedProducers: nobody stays behind on a full ring, whether room is held for the first or not.
// That all of them are parked first is also BUG-026: waiting for room costs nothing.
func TestBUG002_MPSCCloseWakesBlockedProducers(t *testing.T) {
	watchdog(t)
	for _, held := range []bool{false, true} {
		r := ring.New[int](4)
		pos := mustClaim(t, r, 4, ring.Claimed)
		var wg sync.WaitGroup
		join := func(n int) {
			waiting := r.Waiting()
			wg.Go(func() {
				_, o, ok := r.Claim(n, nil)
				assert.True(t, ok)
				assert.Equal(t, ring.Closed, o)
			})
			await(func() bool { return r.Waiting() == waiting+1 })
		}
		join(4)
		if held {
			r.Release(r.Advance(pos, 1)) // not enough for the first, who from now on has room held
			await(r.Held)
		}
		for n := range 15 {
			join(n%4 + 1)
		}
		r.Close()
		wg.Wait()
		assert.Zero(t, r.Waiting())
		assert.False(t, r.Held())
		places, tokens := r.Spare()
		assert.Equal(t, 16, places)
		assert.Zero(t, tokens)
		assert.True(t, r.Closed())
	}
}

// TestMPSCClaim_IsServedInOrder: a claim of many slots that waits is not passed by small ones for ever, those who park
// are served first come first served, and TryClaim gets nothing while room is held.
func TestMPSCClaim_IsServedInOrder(t *testing.T) {
	watchdog(t)
	r := ring.New[int](4)
	served := make(chan string, 2)
	start := func(name string, n int) {
		waiting := r.Waiting()
		go func() {
			_, o, ok := r.Claim(n, nil)
			assert.True(t, ok)
			assert.Equal(t, ring.Claimed, o)
			served <- name
		}()
		await(func() bool { return r.Waiting() == waiting+1 })
	}
	for range 10 { // with the same places
		mustClaim(t, r, 4, ring.Claimed)
		start("big", 4)
		start("small", 1)

		// Small claims pass as long as the first in line has not noticed.
		passed := 0
		for !r.Held() {
			r.Release(r.Advance(r.Head(), 1))
			await(func() bool {
				_, o := r.TryClaim(1)
				passed++
				return o == ring.Claimed || r.Held()
			})
		}
		require.Positive(t, passed)
		for r.Len() > 1 {
			r.Release(r.Advance(r.Head(), 1))
			mustClaim(t, r, 1, ring.Full) // there is room, and it is held
		}
		require.Equal(t, 2, r.Waiting())
		r.Release(r.Advance(r.Head(), 1))
		require.Equal(t, "big", <-served)
		await(func() bool { return r.Waiting() == 1 })
		r.Release(r.Advance(r.Head(), 4))
		require.Equal(t, "small", <-served)
		require.False(t, r.Held())
		require.Equal(t, 1, r.Len())
		r.Release(r.Advance(r.Head(), 1))
	}
}

// While room is held, only the Release that makes it enough wakes: waking is what costs.
func TestMPSCRelease_DoesNotWakeForNothing(t *testing.T) {
	watchdog(t)
	r := ring.New[int](8)
	mustClaim(t, r, 8, ring.Claimed)
	served := make(chan bool)
	go func() {
		_, _, ok := r.Claim(7, nil)
		served <- ok
	}()
	await(func() bool { return r.Waiting() == 1 })
	r.Release(r.Advance(r.Head(), 1))
	await(func() bool {
		held, signalled := r.First()
		return held && !signalled
	})
	for range 5 {
		r.Release(r.Advance(r.Head(), 1))
		_, signalled := r.First()
		require.False(t, signalled)
	}
	r.Release(r.Advance(r.Head(), 1))
	assert.True(t, <-served)
}

// Whoever gets in line behind another does not take room that is there, but not enough for the other.
func TestMPSCClaim_BehindAnother(t *testing.T) {
	watchdog(t)
	r := ring.New[int](2)
	mustClaim(t, r, 1, ring.Claimed)
	served := make(chan int, 2)
	for waiting, n := range []int{2, 1} {
		go func() {
			_, o, _ := r.ClaimInLine(n, nil)
			assert.Equal(t, ring.Claimed, o)
			served <- n
		}()
		await(func() bool { return r.Waiting() == waiting+1 })
	}
	r.Release(r.Advance(r.Head(), 1))
	assert.Equal(t, 2, <-served)
	r.Release(r.Advance(r.Head(), 2))
	assert.Equal(t, 1, <-served)
}

// A waiter for whom room is held and who gives up gives the room back, and has the next in line look (BUG-011).
func TestBUG011_MPSCClaimGivesHeldRoomBack(t *testing.T) {
	watchdog(t)
	r := ring.New[int](4)
	mustClaim(t, r, 4, ring.Claimed)
	done := make(chan struct{})
	left, served := make(chan bool), make(chan bool)
	go func() {
		_, _, ok := r.Claim(4, done)
		left <- ok
	}()
	await(func() bool { return r.Waiting() == 1 })
	r.Release(r.Advance(r.Head(), 1))
	await(r.Held)
	go func() {
		_, _, ok := r.Claim(1, nil)
		served <- ok
	}()
	await(func() bool { return r.Waiting() == 2 })
	close(done)
	assert.False(t, <-left)
	assert.True(t, <-served, "there was room for it all the time")
	assert.False(t, r.Held())
	assert.Zero(t, r.Waiting())
}

// The consumer may go to sleep while room is held: the waiter is woken by then, and its claim finds the consumer asleep.
func TestMPSCSleep_WhileRoomIsHeld(t *testing.T) {
	watchdog(t)
	asleepWhileHeld := 0
	for range rounds(100_000) {
		if asleepWhileHeld == 10 {
			break
		}
		r := ring.New[int](2)
		mustClaim(t, r, 2, ring.Claimed)
		outcome := make(chan ring.Outcome)
		go func() {
			_, o, _ := r.Claim(2, nil)
			outcome <- o
		}()
		await(func() bool { return r.Waiting() == 1 })
		r.Release(r.Advance(r.Head(), 1))
		await(r.Held)
		r.Release(r.Advance(r.Head(), 1))
		slept := r.Sleep()
		if slept && r.Held() {
			asleepWhileHeld++
		}
		if slept {
			require.Equal(t, ring.ClaimedIdle, <-outcome)
		} else {
			require.Equal(t, ring.Claimed, <-outcome)
		}
	}
	require.NotZero(t, asleepWhileHeld, "never reached")
}

// A second wait uses the first one's place, and finds no token of the first in it.
func TestMPSCClaim_WaitingAllocatesNothing(t *testing.T) {
	watchdog(t)
	r := ring.New[int](2)
	mustClaim(t, r, 2, ring.Claimed)
	ask, got := make(chan int), make(chan bool)
	go func() {
		for n := range ask {
			_, _, ok := r.Claim(n, nil)
			got <- ok
		}
	}()
	wait := func() {
		ask <- 1
		await(func() bool { return r.Waiting() == 1 })
		r.Release(r.Advance(r.Head(), 1))
		<-got
	}
	wait()
	allocs := testing.AllocsPerRun(rounds(10_000), wait)
	close(ask)
	assert.Zero(t, allocs)
	places, tokens := r.Spare()
	assert.Equal(t, 1, places)
	assert.Zero(t, tokens)
}

func TestMPSC_AllocatesNothing(t *testing.T) {
	r := ring.New[int](8)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		pos, o, _ := r.Claim(3, nil)
		*r.Slot(pos, 2) = int(o)
		r.Ready(pos)
		if r.IsReady(pos) {
			r.Release(r.Advance(pos, 3))
		}
		r.Sleep()
	}))
}

func TestOutcomeString(t *testing.T) {
	assert.Equal(t, "full", ring.Full.String())
	assert.Equal(t, "claimed", ring.Claimed.String())
	assert.Equal(t, "claimed idle", ring.ClaimedIdle.String())
	assert.Equal(t, "closed", ring.Closed.String())
	assert.Equal(t, "Outcome(9)", ring.Outcome(9).String())
	var zero ring.Outcome
	assert.Equal(t, ring.Full, zero, "the zero value is no claim")
}
