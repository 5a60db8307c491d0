package group_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// TestBUG005_SharedFloorIsThePrefix: all but one record are acknowledged; whoever takes over gets that one, and no other
// again.
func TestBUG005_SharedFloorIsThePrefix(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	var third group.Token
	for i := range 100 {
		d := acquire(t, s, alice, 100, 0)
		if i == 3 {
			third = d.Token
			continue
		}
		require.NoError(t, s.Ack(alice, d.Token))
	}
	assert.Equal(t, uint64(3), s.Floor())
	assert.Equal(t, 1, s.Release(alice, 0))
	d := acquire(t, s, bob, 100, 0)
	assert.Equal(t, uint64(3), d.Token.Offset)
	assert.Equal(t, 2, d.Attempt)
	_, outcome := s.Acquire(bob, 100, 0)
	assert.Equal(t, group.Empty, outcome)
	assert.Equal(t, group.TokenExpired, fault(t, s.Ack(alice, third)))
	require.NoError(t, s.Ack(bob, d.Token))
	assert.Equal(t, uint64(100), s.Floor())
}

// TestBUG008_ResetDuringDelivery: a record is in a handler when the position is set; its acknowledgement does not undo that.
func TestBUG008_ResetDuringDelivery(t *testing.T) {
	for _, to := range []uint64{0, 50, 51, 80} {
		s := group.NewShared(group.SharedConfig{}, 50)
		d := acquire(t, s, alice, 100, 0)
		later := acquire(t, s, alice, 100, 0)
		s.Reset(to)
		assert.Equal(t, group.TokenReset, fault(t, s.Ack(alice, d.Token)))
		_, err := s.Nack(alice, later.Token, 0)
		assert.Equal(t, group.TokenReset, fault(t, err))
		assert.Equal(t, to, s.Floor())
		assert.Zero(t, s.Counts().InFlight)
		again := acquire(t, s, alice, 100, 0)
		assert.Equal(t, to, again.Token.Offset, "exactly the target")
		assert.Equal(t, 1, again.Attempt)
		_, err = s.Reject(alice, d.Token)
		assert.Equal(t, group.TokenReset, fault(t, err))
	}
}

// TestBUG058_RetentionTakesPendingRecords: ten are held and not acknowledged when the log loses the first four of them.
func TestBUG058_RetentionTakesPendingRecords(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	var held []group.Delivery
	for range 10 {
		held = append(held, acquire(t, s, alice, 10, 0))
	}
	require.NoError(t, s.Ack(alice, held[1].Token))
	assert.Equal(t, group.Loss{From: 0, To: 4, Records: 3, Held: 3}, s.DropBefore(4))
	assert.Zero(t, s.DropBefore(4), "reported once")
	assert.Zero(t, s.DropBefore(2))
	assert.Equal(t, group.TokenLost, fault(t, s.Ack(alice, held[0].Token)))
	assert.Equal(t, uint64(4), s.Floor())
	assert.Equal(t, 6, s.Counts().InFlight, "their places are free")

	pending := s.InFlight(nil)
	require.Len(t, pending, 6)
	for i, p := range pending {
		assert.Equal(t, held[4+i].Token, p.Token)
	}
	s.Tick(30*second, nil)
	for i := range 6 {
		d := acquire(t, s, bob, 10, 30*second)
		assert.Equal(t, uint64(4+i), d.Token.Offset)
		assert.Equal(t, 2, d.Attempt)
	}
	_, outcome := s.Acquire(bob, 10, 30*second)
	assert.Equal(t, group.Empty, outcome)

	// The floor goes on over what is settled behind the first record that is left.
	s = group.NewShared(group.SharedConfig{}, 0)
	acquire(t, s, alice, 3, 0)
	require.NoError(t, s.Ack(alice, acquire(t, s, alice, 3, 0).Token))
	assert.Equal(t, group.Loss{From: 0, To: 1, Records: 1, Held: 1}, s.DropBefore(1))
	assert.Equal(t, uint64(2), s.Floor())

	// Records that were never handed out are lost as well, and those that wait or are dead.
	s = group.NewShared(group.SharedConfig{MaxDeliveries: 2, DeadLetter: true, DeadLetterRejected: true}, 0)
	var ds []group.Delivery
	for range 6 {
		ds = append(ds, acquire(t, s, alice, 6, 0))
	}
	require.NoError(t, s.Ack(alice, ds[0].Token))
	_, err := s.NackAfter(alice, ds[1].Token, time.Second, 0)
	require.NoError(t, err)
	_, err = s.NackAfter(alice, ds[2].Token, 0, 0)
	require.NoError(t, err)
	for _, d := range ds[3:] {
		_, err = s.Reject(alice, d.Token)
		require.NoError(t, err)
	}
	burying, _ := s.TakeDead()
	failed, _ := s.TakeDead()
	require.NoError(t, s.Unburied(failed.Token, time.Second, 0))
	assert.Equal(t, group.Loss{From: 1, To: 100, Records: 99}, s.DropBefore(100))
	assert.Equal(t, group.TokenLost, fault(t, s.Buried(burying.Token)))
	assert.Equal(t, uint64(99), s.Counts().Lost)
	assert.Zero(t, s.Counts().Dead+s.Counts().Again+s.Counts().Delayed)
	_, ok := s.NextDue()
	assert.False(t, ok)
	_, ok = s.TakeDead()
	assert.False(t, ok)
	assert.Equal(t, uint64(100), acquire(t, s, alice, 101, 0).Token.Offset)
}

// TestBUG061_FloorIsNotMovedBack: cut to 50 and then to 90 with the floor at 80.
func TestBUG061_FloorIsNotMovedBack(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 80)
	assert.Zero(t, s.DropBefore(50))
	assert.Equal(t, uint64(80), s.Floor())
	assert.Equal(t, group.Loss{From: 80, To: 90, Records: 10}, s.DropBefore(90))
	assert.Equal(t, uint64(90), s.Floor())
}

// TestBUG091_SharedNearTheEnds: of offsets, times and waits.
func TestBUG091_SharedNearTheEnds(t *testing.T) {
	const last = uint64(math.MaxInt64)
	for _, start := range []uint64{1<<31 - 2, 1<<32 - 2, 1 << 53, last - 100} {
		s := group.NewShared(group.SharedConfig{}, start)
		var ds []group.Delivery
		for range 100 {
			ds = append(ds, acquire(t, s, alice, last, 0))
		}
		for i := len(ds) - 1; i >= 0; i-- {
			require.Equal(t, start, s.Floor())
			require.NoError(t, s.Ack(alice, ds[i].Token))
		}
		assert.Equal(t, start+100, s.Floor())
	}

	s := group.NewShared(group.SharedConfig{AckWait: []time.Duration{math.MaxInt64}, Backoff: []time.Duration{math.MaxInt64}}, 0)
	d := acquire(t, s, alice, 2, math.MaxInt64-5)
	assert.Equal(t, int64(math.MaxInt64), d.Deadline)
	_, err := s.Nack(alice, d.Token, math.MaxInt64-5)
	require.NoError(t, err)
	d = acquire(t, s, alice, 2, math.MaxInt64-5)
	_, err = s.NackAfter(alice, d.Token, math.MinInt64, math.MaxInt64-5)
	require.NoError(t, err)
	s.Tick(math.MaxInt64-1, nil)
	assert.Equal(t, uint64(1), acquire(t, s, alice, 2, 0).Token.Offset)
}
