package ring_test

import (
	"math"
	"strconv"
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

func TestMPSC_AllocatesNothing(t *testing.T) {
	r := ring.New[int](8)
	released := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		pos, o, _ := r.Claim(3, nil)
		*r.Slot(pos, 2) = int(o)
		r.Ready(pos)
		if r.IsReady(pos) {
			r.Release(r.Advance(pos, 3))
			released++
		}
		r.Sleep()
	}))
	assert.Equal(t, 1001, released, "one run is not counted")
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
