package group_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// TestBUG028_RecordAtItsLimitLeaves: record 5 always fails. In the end nothing is pending, and the floor is at the end;
// with a dead-letter topic only once the record is in it.
func TestBUG028_RecordAtItsLimitLeaves(t *testing.T) {
	records := uint64(rounds(100_000))
	for _, letters := range []bool{false, true} {
		s := group.NewShared(group.SharedConfig{MaxDeliveries: 3, MaxInFlight: 16, DeadLetter: letters}, 0)
		failed, buried, refusals := 0, 0, 0
		for s.Floor() < records {
			if dead, ok := s.TakeDead(); ok {
				assert.Equal(t, uint64(5), dead.Token.Offset)
				assert.Equal(t, 3, dead.Attempt)
				assert.Equal(t, group.DeathFailed, dead.Cause)
				if refusals < 2 { // the dead-letter topic is full
					refusals++
					require.NoError(t, s.Unburied(dead.Token, time.Second, 0))
					continue
				}
				require.NoError(t, s.Buried(dead.Token))
				assert.ErrorIs(t, s.Buried(dead.Token), group.ErrFenced)
				buried++
				continue
			}
			d, outcome := s.Acquire(alice, records, 0)
			if outcome != group.Acquired {
				require.Equal(t, uint64(5), s.Floor(), "it waits for nothing but its burial")
				require.Zero(t, s.Counts().InFlight)
				at, ok := s.NextDue()
				require.True(t, ok)
				s.Tick(at, nil)
				continue
			}
			if d.Token.Offset != 5 {
				require.NoError(t, s.Ack(alice, d.Token))
				continue
			}
			failed++
			fate, err := s.Nack(alice, d.Token, 0)
			require.NoError(t, err)
			if failed == 3 {
				assert.Equal(t, map[bool]group.Fate{false: group.FateDropped, true: group.FateDead}[letters], fate)
			}
		}
		c := s.Counts()
		assert.Equal(t, 3, failed)
		assert.Equal(t, group.Counts{
			Deliveries: records + 2, Redeliveries: 2, Acked: records - 1, Failed: 3,
			Buried: uint64(buried), Dropped: uint64(1 - buried),
		}, c)
		assert.Equal(t, letters, buried == 1)
		assert.Equal(t, records, s.Next())
	}
}

// TestBUG037_ABadRecordDoesNotStopTheOthers: record 0 always fails and comes back at once; a hundred good ones are behind
// it.
func TestBUG037_ABadRecordDoesNotStopTheOthers(t *testing.T) {
	s := group.NewShared(group.SharedConfig{MaxInFlight: 1}, 0)
	good := 0
	for calls := 1; good < 100; calls++ {
		require.LessOrEqual(t, calls, 201, "at worst every second delivery is for the bad one")
		d := acquire(t, s, alice, 101, 0)
		if d.Token.Offset > 0 {
			good++
			require.NoError(t, s.Ack(alice, d.Token))
			continue
		}
		fate, err := s.Nack(alice, d.Token, 0)
		require.NoError(t, err)
		require.Equal(t, group.FateAgain, fate)
	}

	// With a backoff it is out of the way, and does not take the place in flight.
	s = group.NewShared(group.SharedConfig{MaxInFlight: 1, Backoff: []time.Duration{time.Second}}, 0)
	d := acquire(t, s, alice, 3, 0)
	fate, err := s.Nack(alice, d.Token, 0)
	require.NoError(t, err)
	assert.Equal(t, group.FateDelayed, fate)
	for range 2 {
		require.NoError(t, s.Ack(alice, acquire(t, s, alice, 3, 0).Token))
	}
	_, outcome := s.Acquire(alice, 3, 0)
	assert.Equal(t, group.Empty, outcome, "nothing to spin on")
}

// TestBUG059_AttemptsCountUp: with several limits, with a limit that is lowered, and with a restore in between; and the
// timer alone is enough to reach the end.
func TestBUG059_AttemptsCountUp(t *testing.T) {
	for _, limit := range []int{1, 2, 3} {
		s := group.NewShared(group.SharedConfig{MaxDeliveries: limit, AckWait: []time.Duration{time.Second}}, 0)
		var now int64
		for attempt := 1; attempt <= limit; attempt++ {
			require.Equal(t, attempt, acquire(t, s, alice, 1, now).Attempt)
			if attempt == 2 {
				s = group.RestoreShared(group.SharedConfig{MaxDeliveries: limit, AckWait: []time.Duration{time.Second}}, s.Snapshot(), now)
				continue
			}
			now += second
			require.Len(t, s.Tick(now, nil), 1)
		}
		assert.Equal(t, uint64(1), s.Floor())
		assert.Equal(t, uint64(1), s.Counts().Dropped)
		assert.Equal(t, limit > 2, s.Counts().Redeliveries > 0)
	}

	// Lowered from 5 to 2. Record 0 is held in its third attempt, 1 waits for its fourth, and 2 may have it at once.
	cfg := group.SharedConfig{MaxDeliveries: 5, AckWait: []time.Duration{time.Second}, DeadLetter: true}
	s := group.NewShared(cfg, 0)
	for range 2 {
		for range 3 {
			acquire(t, s, alice, 3, 0)
		}
		s.Release(alice, 0)
	}
	a, b, c := acquire(t, s, alice, 3, 0), acquire(t, s, alice, 3, 0), acquire(t, s, alice, 3, 0)
	_, err := s.NackAfter(alice, b.Token, 5*time.Second, 0)
	require.NoError(t, err)
	_, err = s.NackAfter(alice, c.Token, 0, 0)
	require.NoError(t, err)
	cfg.MaxDeliveries = 2
	s.Configure(cfg, 0)
	dead, ok := s.TakeDead()
	require.True(t, ok)
	assert.Equal(t, c.Token, dead.Token, "it may not be delivered any more")
	require.NoError(t, s.Buried(dead.Token))
	_, ok = s.TakeDead()
	assert.False(t, ok)
	_, err = s.Extend(alice, a.Token, 0)
	require.NoError(t, err, "an attempt that is going on may end")

	expired := s.Tick(second, nil)
	require.Len(t, expired, 1)
	assert.Equal(t, 3, expired[0].Attempt)
	assert.Equal(t, group.FateDead, expired[0].Fate)
	s.Tick(5*second, nil)
	for _, want := range []group.Delivery{a, b} {
		dead, ok = s.TakeDead()
		require.True(t, ok)
		assert.Equal(t, want.Token, dead.Token)
		assert.Equal(t, 3, dead.Attempt)
		require.NoError(t, s.Buried(dead.Token))
	}
	assert.Equal(t, uint64(3), s.Floor())
}

// TestShared_ReturnIsNoDelivery: what comes back undelivered is next, and its count is as if nothing had been.
func TestShared_ReturnIsNoDelivery(t *testing.T) {
	s := group.NewShared(group.SharedConfig{MaxDeliveries: 1}, 0)
	d0, d1 := acquire(t, s, alice, 3, 0), acquire(t, s, alice, 3, 0)
	require.NoError(t, s.Return(alice, d1.Token))
	require.NoError(t, s.Return(alice, d0.Token))
	assert.Zero(t, s.Counts().Deliveries)
	s.Configure(group.SharedConfig{MaxDeliveries: 1}, 0)
	for i := range 3 {
		d := acquire(t, s, bob, 3, 0)
		assert.Equal(t, 1, d.Attempt)
		if i == 0 {
			assert.Zero(t, d.Token.Offset)
		}
	}
	assert.Zero(t, s.Counts().Redeliveries)
}

// TestShared_PostponeIsNoDelivery: a record that comes again after a while, however often, is not used up by that.
func TestShared_PostponeIsNoDelivery(t *testing.T) {
	s := group.NewShared(group.SharedConfig{MaxDeliveries: 1, DeadLetter: true}, 0)
	now := int64(0)
	for range 10 {
		d := acquire(t, s, 1, 1, now)
		require.Equal(t, 1, d.Attempt)
		require.NoError(t, s.Postpone(1, d.Token, time.Second, now))
		require.Equal(t, group.TokenExpired, fault(t, s.Ack(1, d.Token)))
		require.Equal(t, group.Counts{Delayed: 1}, s.Counts())
		_, outcome := s.Acquire(1, 1, now)
		require.Equal(t, group.Empty, outcome)
		at, ok := s.NextDue()
		require.True(t, ok)
		require.Equal(t, now+int64(time.Second), at)
		now = at
		require.Empty(t, s.Tick(now, nil))
	}
	d := acquire(t, s, 1, 1, now)
	f, err := s.Nack(1, d.Token, now)
	require.NoError(t, err)
	require.Equal(t, group.FateDead, f)
}
