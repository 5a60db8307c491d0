package ring_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/ring"
)

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
