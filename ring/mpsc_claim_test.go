package ring_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/ring"
)

func TestMPSCTryClaim_OfAnImpossibleSize(t *testing.T) {
	r := ring.New[int](4)
	for _, n := range []int{math.MinInt, -1, 0, 5, math.MaxInt} {
		want := "ring: a claim of " + strconv.Itoa(n) + " slots in a ring of 4"
		assert.PanicsWithValue(t, want, func() { r.TryClaim(n) })
		assert.PanicsWithValue(t, want, func() { r.Claim(n, nil) })
	}
	assert.Zero(t, r.Len())
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

func TestMPSCClaim_TellsIdle(t *testing.T) {
	r := ring.New[int](2)
	require.True(t, r.Sleep())
	_, o, ok := r.Claim(1, nil)
	assert.True(t, ok)
	assert.Equal(t, ring.ClaimedIdle, o)
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
		if !<-got {
			panic("nothing claimed")
		}
	}
	wait()
	allocs := testing.AllocsPerRun(rounds(10_000), wait)
	close(ask)
	assert.Zero(t, allocs)
	places, tokens := r.Spare()
	assert.Equal(t, 1, places)
	assert.Zero(t, tokens)
}
