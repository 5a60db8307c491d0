package group_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// TestBUG023_EachRecordHasItsOwnTimes: three records that nobody acknowledges, with a list of waits. Each comes back by the
// wait of its own attempt after its own delivery, and nobody has to look when nothing is due.
func TestBUG023_EachRecordHasItsOwnTimes(t *testing.T) {
	waits := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}
	s := group.NewShared(group.SharedConfig{AckWait: waits, Backoff: waits, MaxDeliveries: 5}, 0)
	starts := []int64{0, second / 2, 3 * second}
	delivered := map[uint64][]int64{}
	deliver := func(end uint64, now int64) {
		for d, outcome := s.Acquire(alice, end, now); outcome == group.Acquired; d, outcome = s.Acquire(alice, end, now) {
			delivered[d.Token.Offset] = append(delivered[d.Token.Offset], now)
			require.Len(t, delivered[d.Token.Offset], d.Attempt)
		}
	}
	wakes := 0
	for i := 0; ; {
		at, ok := s.NextDue()
		if i < len(starts) && (!ok || starts[i] <= at) {
			deliver(uint64(i)+1, starts[i])
			i++
			continue
		}
		if !ok {
			break
		}
		wakes++
		s.Tick(at, nil)
		deliver(uint64(i), at)
	}
	for off, start := range starts {
		assert.Equal(t, []int64{start, start + second, start + 6*second, start + 26*second, start + 46*second}, delivered[uint64(off)])
	}
	assert.Equal(t, 3*5, wakes, "one for each delivery")
	assert.Equal(t, uint64(3), s.Floor(), "after the last one each is given up")
	assert.Equal(t, uint64(3), s.Counts().Dropped)
}

// TestShared_BackoffAfterATimeOut: the time that a record was held counts.
func TestShared_BackoffAfterATimeOut(t *testing.T) {
	s := group.NewShared(group.SharedConfig{AckWait: []time.Duration{3 * time.Second}, Backoff: []time.Duration{time.Second, 10 * time.Second}}, 0)
	acquire(t, s, alice, 1, 0)
	expired := s.Tick(3*second, nil)
	require.Len(t, expired, 1)
	assert.Equal(t, group.FateAgain, expired[0].Fate, "it has waited for longer than a second")
	acquire(t, s, alice, 1, 3*second)
	expired = s.Tick(6*second, expired[:0])
	require.Len(t, expired, 1)
	assert.Equal(t, group.FateDelayed, expired[0].Fate)
	at, ok := s.NextDue()
	require.True(t, ok)
	assert.Equal(t, 13*second, at, "ten seconds after it was delivered")
	s.Tick(13*second-1, nil)
	_, outcome := s.Acquire(alice, 1, 0)
	assert.Equal(t, group.Empty, outcome)
	s.Tick(13*second, nil)
	assert.Equal(t, 3, acquire(t, s, alice, 1, 13*second).Attempt)
}

// TestBUG034_ShorterAckWaitCountsAtOnce: 30 seconds are lowered to one while records are held.
func TestBUG034_ShorterAckWaitCountsAtOnce(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	acquire(t, s, alice, 3, 0)
	acquire(t, s, alice, 3, 29*second+second/2)
	acquire(t, s, alice, 3, 0) // the clock of another processor
	s.Configure(group.SharedConfig{AckWait: []time.Duration{time.Second}}, 29*second+second/2)
	at, _ := s.NextDue()
	assert.Equal(t, 30*second, at, "it had half a second left")
	assert.Len(t, s.Tick(at, nil), 2)
	assert.Len(t, s.Tick(at+second/2, nil), 1)
}

// TestShared_ClockThatGoesBack: deadlines are kept in order, whatever the clock does.
func TestShared_ClockThatGoesBack(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	for _, now := range []int64{7, 9, 2, 8, 1, 9, 2} {
		acquire(t, s, alice, 100, now)
	}
	var offs []uint64
	for at, ok := s.NextDue(); ok; at, ok = s.NextDue() {
		for _, e := range s.Tick(at, nil) {
			offs = append(offs, e.Token.Offset)
		}
	}
	assert.Equal(t, []uint64{4, 2, 6, 0, 3, 1, 5}, offs)
}
