package cursor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/cursor"
)

// TestBUG005_FloorDoesNotJumpOverWorkInProgress: of a hundred records only number 3 is never acknowledged.
func TestBUG005_FloorDoesNotJumpOverWorkInProgress(t *testing.T) {
	var a cursor.Acks
	for _, i := range rand.New(rand.NewPCG(5, 5)).Perm(100) {
		if i != 3 {
			first, err := a.Ack(uint64(i))
			require.NoError(t, err)
			require.True(t, first)
		}
	}
	assert.Equal(t, uint64(3), a.Floor(), "the next to process")
	assert.Equal(t, 96, a.Ahead())
	assert.False(t, a.Done(3))
	for off := uint64(4); off < 100; off++ {
		assert.True(t, a.Done(off), "not to be processed again")
	}

	_, err := a.Ack(3)
	require.NoError(t, err)
	assert.Equal(t, uint64(100), a.Floor())
	assert.Zero(t, a.Ahead())
}

// TestBUG061_RaiseNeverGoesBack: a cursor that is at 80 of 100 when the log is cut to 50 and then to 90.
func TestBUG061_RaiseNeverGoesBack(t *testing.T) {
	var a cursor.Acks
	a.Reset(80)
	assert.Zero(t, a.Raise(50))
	assert.Equal(t, uint64(80), a.Floor())
	assert.Equal(t, uint64(10), a.Raise(90))
	assert.Equal(t, uint64(90), a.Floor())
}

func TestAcks_RaiseCountsWhatWasNotAcknowledged(t *testing.T) {
	var a cursor.Acks
	for _, off := range []uint64{2, 3, 5, 6, 7, 9} {
		_, err := a.Ack(off)
		require.NoError(t, err)
	}
	assert.Equal(t, uint64(3), a.Raise(5), "0, 1 and 4")
	assert.Equal(t, uint64(8), a.Floor(), "5 to 7 were there already")
	assert.Equal(t, 1, a.Ahead())
}

func TestAcks_ResetForgetsWhatWasAhead(t *testing.T) {
	var a cursor.Acks
	_, err := a.Ack(1)
	require.NoError(t, err)
	a.Reset(0)
	assert.False(t, a.Done(1))
	_, err = a.Ack(0)
	require.NoError(t, err)
	assert.Equal(t, uint64(1), a.Floor())
}

// TestAcks_BoundIsExact: the highest offset that is remembered, the lowest that is not, and the latter again once there is
// room.
func TestAcks_BoundIsExact(t *testing.T) {
	for _, most := range []int{1, 2, 63, 64, 65, 1000, 0} {
		a := cursor.Acks{MaxAhead: most}
		a.Reset(37)
		limit := a.Limit()
		_, err := a.Ack(limit)
		require.ErrorIs(t, err, cursor.ErrTooFarAhead)
		assert.Zero(t, a.Ahead(), "a refusal changes nothing")
		_, err = a.Ack(limit - 1)
		require.NoError(t, err)
		_, err = a.Ack(37)
		require.NoError(t, err)
		_, err = a.Ack(limit)
		require.NoError(t, err)
	}
}

// TestBUG091_AcksNearTheLastOffset: nothing wraps where offsets end.
func TestBUG091_AcksNearTheLastOffset(t *testing.T) {
	const last = uint64(math.MaxInt64)
	for _, start := range []uint64{1<<31 - 2, 1<<32 - 2, 1 << 53, last - 100} {
		var a cursor.Acks
		a.Reset(start)
		for off := start + 99; off > start; off-- {
			_, err := a.Ack(off)
			require.NoError(t, err)
		}
		assert.Equal(t, start, a.Floor())
		_, err := a.Ack(start)
		require.NoError(t, err)
		assert.Equal(t, start+100, a.Floor())
	}
}

// TestAcks_SteadyStateAllocatesNothing: 64 records at a time are finished in any order.
func TestAcks_SteadyStateAllocatesNothing(t *testing.T) {
	var a cursor.Acks
	order := rand.New(rand.NewPCG(1, 2)).Perm(64)
	round := func() {
		base := a.Floor()
		for _, i := range order {
			if _, err := a.Ack(base + uint64(i)); err != nil {
				panic(err)
			}
		}
	}
	round()
	assert.Zero(t, testing.AllocsPerRun(100, round))

	var inOrder cursor.Acks
	assert.Zero(t, testing.AllocsPerRun(100, func() { inOrder.Ack(inOrder.Floor()) }), "not even a first time")
	assert.EqualValues(t, 101, inOrder.Floor(), "one run is not counted")
}
