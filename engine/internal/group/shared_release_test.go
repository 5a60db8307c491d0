package group_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// TestBUG054_WhatALeavingMemberHoldsIsFreeAtOnce: without waiting for any deadline or backoff.
func TestBUG054_WhatALeavingMemberHoldsIsFreeAtOnce(t *testing.T) {
	s := group.NewShared(group.SharedConfig{AckWait: []time.Duration{time.Hour, 2 * time.Hour}, Backoff: []time.Duration{time.Minute}}, 0)
	first := acquire(t, s, alice, 6, 0)
	_, err := s.NackAfter(alice, first.Token, 0, 0)
	require.NoError(t, err)
	for range 6 {
		acquire(t, s, alice, 6, 0)
	}
	require.Equal(t, 6, s.Release(alice, 0))
	require.Zero(t, s.Release(alice, 0))
	require.Zero(t, s.Release(bob, 0))
	for range 6 {
		acquire(t, s, bob, 6, 0)
	}
	assert.Equal(t, 6, s.Counts().InFlight)
	assert.Equal(t, uint64(6), s.Counts().Released)
}

// TestShared_AckHeldIsTheMembersOwn: what others hold, and what waits or is dead, stays.
func TestShared_AckHeldIsTheMembersOwn(t *testing.T) {
	s := group.NewShared(group.SharedConfig{AckWait: []time.Duration{time.Second, time.Minute}}, 0)
	for m := range group.MemberID(9) {
		acquire(t, s, m%3+1, 9, 0)
	}
	require.Equal(t, 2, s.AckHeld(1, 6), "0 and 3")
	require.EqualValues(t, 1, s.Floor())
	require.Equal(t, 0, s.AckHeld(1, 6))
	require.Equal(t, 3, s.AckHeld(2, math.MaxInt64), "1, 4 and 7")
	require.EqualValues(t, 2, s.Floor())
	require.Equal(t, 3, s.AckHeld(3, 9))
	require.EqualValues(t, 6, s.Floor())
	require.Equal(t, 1, s.AckHeld(1, math.MaxInt64))
	require.EqualValues(t, 9, s.Floor())
	require.Equal(t, group.Counts{Deliveries: 9, Acked: 9}, s.Counts())
}

// TestShared_ReleaseButLeavesWhatIsKept: the tokens of the rest are refused, those of what is kept are not.
func TestShared_ReleaseButLeavesWhatIsKept(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	var ds []group.Delivery
	for range 4 {
		ds = append(ds, acquire(t, s, 1, 4, 0))
	}
	require.Equal(t, 3, s.ReleaseBut(1, func(off uint64) bool { return off == 2 }, 0))
	for _, d := range ds {
		_, ok := s.Deadline(1, d.Token)
		require.Equal(t, d.Token.Offset == 2, ok)
		if !ok {
			require.Equal(t, group.TokenExpired, fault(t, s.Ack(1, d.Token)))
		}
	}
	require.NoError(t, s.Ack(1, ds[2].Token))
	require.Equal(t, 0, s.Release(1, 0))
	require.Equal(t, group.Counts{Again: 3, Ahead: 1, Deliveries: 4, Acked: 1, Released: 3}, s.Counts())
}
