package group_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

const (
	alice group.MemberID = iota + 1
	bob
	carol
)

const second = int64(time.Second)

// rounds is how often a long test does something: a hundredth of n with -short.
func rounds(n int) int {
	if testing.Short() {
		return n / 100
	}
	return n
}

// acquire lets a member acquire one record, which must work.
func acquire(t *testing.T, s *group.Shared, m group.MemberID, end uint64, now int64) group.Delivery {
	t.Helper()
	d, outcome := s.Acquire(m, end, now)
	require.Equal(t, group.Acquired, outcome)
	return d
}

// fault returns why a token was refused.
func fault(t *testing.T, err error) group.TokenFault {
	t.Helper()
	var e *group.TokenError
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, group.ErrFenced)
	return e.Reason
}

func TestShared_OneRecordToOneMember(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 10)
	a := acquire(t, s, alice, 12, 5)
	b := acquire(t, s, bob, 12, 5)
	assert.Equal(t, group.Delivery{Token: group.Token{Offset: 10, ID: 1}, Attempt: 1, Deadline: 5 + 30*second}, a)
	assert.Equal(t, uint64(11), b.Token.Offset)
	_, outcome := s.Acquire(alice, 12, 5)
	assert.Equal(t, group.Empty, outcome)

	assert.Equal(t, group.TokenForeign, fault(t, s.Ack(alice, b.Token)))
	assert.Equal(t, group.TokenUnknown, fault(t, s.Ack(alice, group.Token{Offset: 12, ID: 1})))
	assert.Equal(t, group.TokenUnknown, fault(t, s.Ack(alice, group.Token{Offset: 10, ID: 3})))
	assert.Equal(t, group.TokenUnknown, fault(t, s.Ack(alice, group.Token{Offset: 10})))
	require.NoError(t, s.Ack(alice, a.Token))
	err := s.Ack(alice, a.Token)
	assert.Equal(t, group.TokenSettled, fault(t, err))
	assert.EqualError(t, err, "leat: fenced: member 1, offset 10, acquisition 1: already settled (acquisition 0, attempt 0)")
	assert.Equal(t, uint64(11), s.Floor())
}

// TestShared_RacesSettleOnce: of ack, nack, reject, return, time-out and release the first one wins, and the others are
// refused.
func TestShared_RacesSettleOnce(t *testing.T) {
	calls := map[string]func(s *group.Shared, x group.Token) error{
		"ack":     func(s *group.Shared, x group.Token) error { return s.Ack(alice, x) },
		"through": func(s *group.Shared, x group.Token) error { return failure(s.AckThrough(alice, x)) },
		"nack":    func(s *group.Shared, x group.Token) error { return failure(s.Nack(alice, x, 0)) },
		"reject":  func(s *group.Shared, x group.Token) error { return failure(s.Reject(alice, x)) },
		"return":  func(s *group.Shared, x group.Token) error { return s.Return(alice, x) },
		"extend":  func(s *group.Shared, x group.Token) error { return failure(s.Extend(alice, x, 0)) },
		"time": func(s *group.Shared, x group.Token) error {
			if s.Tick(30*second, nil) == nil {
				return group.ErrFenced
			}
			return nil
		},
		"release": func(s *group.Shared, x group.Token) error {
			if s.Release(alice, 0) == 0 {
				return group.ErrFenced
			}
			return nil
		},
	}
	for first, one := range calls {
		for then, other := range calls {
			s := group.NewShared(group.SharedConfig{}, 0)
			d := acquire(t, s, alice, 1, 0)
			require.NoError(t, one(s, d.Token))
			if first == "extend" {
				require.NoError(t, other(s, d.Token), "%s after extend", then)
				continue
			}
			require.ErrorIs(t, other(s, d.Token), group.ErrFenced, "%s after %s", then, first)
		}
	}
}

// TestShared_AckThrough: of what comes before, the member's own records are settled and those that wait to be delivered
// again; and nothing at all with a token that is not a hold.
func TestShared_AckThrough(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		s := group.NewShared(group.SharedConfig{InOrder: inOrder, DeadLetterRejected: true}, 10)
		token := map[uint64]group.Token{}
		take := func(m group.MemberID, n int) {
			for range n {
				d := acquire(t, s, m, 20, 0)
				token[d.Token.Offset] = d.Token
			}
		}
		take(alice, 6) // 10 to 15
		take(bob, 2)   // 16 and 17
		take(alice, 2) // 18 and 19
		// 10 is held, and so are 15, 18, 19
		_, err := s.NackAfter(alice, token[11], 0, 0)
		require.NoError(t, err)
		_, err = s.NackAfter(alice, token[12], time.Second, 0)
		require.NoError(t, err)
		_, err = s.Reject(alice, token[13])
		require.NoError(t, err)
		require.NoError(t, s.Return(alice, token[14])) // never delivered
		_, err = s.NackAfter(bob, token[17], time.Second, 0)
		require.NoError(t, err)
		counts := s.Counts()

		for _, x := range []struct {
			m    group.MemberID
			t    group.Token
			want group.TokenFault
		}{
			{bob, token[18], group.TokenForeign},
			{alice, token[16], group.TokenForeign},
			{alice, token[12], group.TokenExpired},
			{alice, group.Token{Offset: 18}, group.TokenUnknown},
			{alice, group.Token{Offset: 18, ID: token[10].ID}, group.TokenExpired},
			{alice, group.Token{Offset: 25, ID: token[10].ID}, group.TokenUnknown},
		} {
			n, err := s.AckThrough(x.m, x.t)
			assert.Equal(t, x.want, fault(t, err))
			assert.Zero(t, n)
			assert.Equal(t, counts, s.Counts())
		}

		n, err := s.AckThrough(alice, token[18])
		require.NoError(t, err)
		assert.Equal(t, 6, n, "10, 11, 12, 15, 17 and 18")
		assert.Equal(t, uint64(13), s.Floor(), "13 is dead")
		counts = s.Counts()
		assert.Equal(t, []int{2, 1, 0, 1, 3}, []int{counts.InFlight, counts.Again, counts.Delayed, counts.Dead, counts.Ahead})
		assert.EqualValues(t, 6, counts.Acked)
		assert.Equal(t, group.TokenSettled, fault(t, s.Ack(alice, token[15])))
		require.NoError(t, s.Ack(bob, token[16]))
		d := acquire(t, s, bob, 20, 0)
		assert.Equal(t, uint64(14), d.Token.Offset)
		assert.Equal(t, 1, d.Attempt)
		dead, ok := s.TakeDead()
		require.True(t, ok)
		require.NoError(t, s.Buried(dead.Token))
		assert.Equal(t, uint64(14), s.Floor())
		n, err = s.AckThrough(bob, d.Token)
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		assert.Equal(t, uint64(19), s.Floor())
		n, err = s.AckThrough(alice, token[19])
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		assert.Equal(t, uint64(20), s.Floor())
		_, ok = s.NextDue()
		assert.False(t, ok, "nothing waits")
	}
}

// TestShared_InOrder: what has to be delivered again comes before anything new, the lowest offset first, however it got
// there; without InOrder in the order in which it became available, and by turns with new ones.
func TestShared_InOrder(t *testing.T) {
	for _, floor := range []uint64{0, 1<<32 - 2, 1<<63 - 2} {
		for inOrder, want := range map[bool][]uint64{false: {3, 1, 6, 2, 7, 0}, true: {0, 1, 2, 3, 5, 6}} {
			s := group.NewShared(group.SharedConfig{InOrder: inOrder}, floor)
			var tokens []group.Token
			for range 6 {
				tokens = append(tokens, acquire(t, s, alice, floor+100, 0).Token)
			}
			nack := func(i int, after time.Duration) {
				_, err := s.NackAfter(alice, tokens[i], after, 0)
				require.NoError(t, err)
			}
			nack(1, 0)
			nack(2, time.Second)
			nack(0, 2*time.Second)
			nack(5, 3*time.Second)
			require.NoError(t, s.Return(alice, tokens[3]))
			require.Empty(t, s.Tick(10*second, nil))
			var got []uint64
			for range 6 {
				got = append(got, acquire(t, s, alice, floor+100, 10*second).Token.Offset-floor)
			}
			assert.Equal(t, want, got)
		}
	}
}

// TestShared_InOrderConfigured: a window that gets InOrder puts what waits in order, and one that loses it keeps the order
// that there is.
func TestShared_InOrderConfigured(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	var tokens []group.Token
	for range 4 {
		tokens = append(tokens, acquire(t, s, alice, 4, 0).Token)
	}
	for _, i := range []int{2, 0, 3, 1} {
		_, err := s.Nack(alice, tokens[i], 0)
		require.NoError(t, err)
	}
	s.Configure(group.SharedConfig{InOrder: true}, 0)
	assert.Equal(t, uint64(0), acquire(t, s, alice, 4, 0).Token.Offset)
	assert.Equal(t, uint64(1), acquire(t, s, alice, 4, 0).Token.Offset)
	s.Configure(group.SharedConfig{}, 0)
	x, y := acquire(t, s, alice, 4, 0), acquire(t, s, alice, 4, 0)
	assert.Equal(t, uint64(2), x.Token.Offset)
	assert.Equal(t, uint64(3), y.Token.Offset)
	assert.False(t, s.Available(4))
	for _, token := range []group.Token{y.Token, x.Token} {
		_, err := s.Nack(alice, token, 0)
		require.NoError(t, err)
	}
	assert.True(t, s.Available(4))
	assert.Equal(t, uint64(3), acquire(t, s, alice, 4, 0).Token.Offset, "the first to be available")
}

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

// TestBUG029_InFlightStaysWithinItsBounds: a million operations in random order, with three in flight at most.
func TestBUG029_InFlightStaysWithinItsBounds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(29, 29))
	s := group.NewShared(group.SharedConfig{MaxInFlight: 3, AckWait: []time.Duration{10}, MaxWindow: 20}, 0)
	type hold struct {
		m group.MemberID
		t group.Token
	}
	holds := map[uint64]hold{} // by acquisition
	var now int64
	end := uint64(0)
	drop := func(h hold) { delete(holds, h.t.ID) }
	for range rounds(1_000_000) {
		switch op := rnd.IntN(12); {
		case op < 4:
			end += uint64(rnd.IntN(3))
			for range []int{1, 2, 7}[rnd.IntN(3)] {
				m := group.MemberID(1 + rnd.IntN(3))
				d, outcome := s.Acquire(m, end, now)
				if outcome != group.Acquired {
					if (outcome == group.InFlightFull) != (len(holds) == 3) {
						require.Fail(t, "wrong outcome", "%v with %d", outcome, len(holds))
					}
					break
				}
				holds[d.Token.ID] = hold{m, d.Token}
			}
		case op < 10:
			for _, h := range holds { // one of them
				var err error
				switch op {
				case 4, 5:
					err = s.Ack(h.m, h.t)
				case 6:
					_, err = s.Nack(h.m, h.t, now)
				case 7:
					_, err = s.NackAfter(h.m, h.t, 5, now)
				case 8:
					err = s.Return(h.m, h.t)
				case 9:
					_, err = s.Reject(h.m, h.t)
				}
				if err != nil || s.Ack(h.m, h.t) == nil {
					require.NoError(t, err)
					require.Fail(t, "given back twice")
				}
				drop(h)
				break
			}
		case op == 10:
			now += int64(rnd.IntN(4))
			for _, e := range s.Tick(now, nil) {
				drop(hold{t: e.Token})
			}
		case rnd.IntN(20) == 0:
			s.Reset(s.Floor() - min(s.Floor(), 5))
			clear(holds)
		default:
			gone := group.MemberID(1 + rnd.IntN(3))
			s.Release(gone, now)
			for _, h := range holds {
				if h.m == gone {
					drop(h)
				}
			}
		}
		c := s.Counts()
		if c.InFlight != len(holds) || c.InFlight > 3 || c.Again < 0 || c.Delayed < 0 || c.Ahead < 0 {
			require.Equal(t, len(holds), c.InFlight, "%+v", c)
			require.Fail(t, "out of bounds", "%+v", c)
		}
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

// TestBUG056_SmallestWindow: one record in flight, in a window of one.
func TestBUG056_SmallestWindow(t *testing.T) {
	for _, size := range []int{1, 2} {
		s := group.NewShared(group.SharedConfig{MaxInFlight: size, MaxWindow: size, MaxDeliveries: 2, DeadLetter: true, Backoff: []time.Duration{1}}, 0)
		for now := int64(0); s.Floor() < 1000; now++ {
			s.Tick(now, nil)
			if dead, ok := s.TakeDead(); ok {
				require.NoError(t, s.Buried(dead.Token))
			}
			d, outcome := s.Acquire(alice, 1000, now)
			if outcome != group.Acquired {
				require.Equal(t, group.WindowFull, outcome)
				continue
			}
			if d.Token.Offset%7 == 0 {
				_, err := s.Nack(alice, d.Token, now)
				require.NoError(t, err)
			} else {
				require.NoError(t, s.Ack(alice, d.Token))
			}
		}
		assert.Equal(t, uint64(143), s.Counts().Buried)
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

// TestBUG104_TokensAreUnique: over a reset, a restore and a hundred thousand deliveries of one record at one time.
func TestBUG104_TokensAreUnique(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	seen := map[uint64]bool{}
	var old group.Token
	for i := range rounds(100_000) {
		d := acquire(t, s, alice, 1, 0)
		if seen[d.Token.ID] || i > 0 && s.Ack(alice, old) == nil {
			require.Fail(t, "a token is used twice", "%v, %v", old, d)
		}
		seen[d.Token.ID] = true
		switch old = d.Token; i % 4 {
		case 0:
			_, err := s.Nack(alice, d.Token, 0)
			require.NoError(t, err)
		case 1:
			s.Reset(0)
		case 2:
			s = group.RestoreShared(group.SharedConfig{}, s.Snapshot(), 0)
		case 3:
			require.NoError(t, s.Return(alice, d.Token))
		}
	}
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

// TestShared_ReturnedRecordsKeepTheirOrder: a member that acquires many, and returns most of them, gets them all in order.
func TestShared_ReturnedRecordsKeepTheirOrder(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	for want := uint64(0); want < 90; {
		var ds []group.Delivery
		for range 10 {
			ds = append(ds, acquire(t, s, 1, 100, 0))
		}
		for _, d := range ds[:3] {
			require.Equal(t, want, d.Token.Offset)
			require.NoError(t, s.Ack(1, d.Token))
			want++
		}
		for i := 9; i >= 3; i-- {
			require.NoError(t, s.Return(1, ds[i].Token))
		}
	}
}

func TestShared_ShrinkKeepsWhatIsThere(t *testing.T) {
	s := group.NewShared(group.SharedConfig{}, 0)
	var ds []group.Delivery
	for range 1000 {
		ds = append(ds, acquire(t, s, alice, 1000, 0))
	}
	s.Shrink()
	for _, d := range ds {
		require.NoError(t, s.Ack(alice, d.Token))
	}
	s.Shrink()
	assert.Equal(t, group.TokenSettled, fault(t, s.Ack(alice, ds[0].Token)))
	assert.Equal(t, uint64(1000), acquire(t, s, alice, 2000, 0).Token.Offset)
}

func TestSharedConfig_Check(t *testing.T) {
	assert.NoError(t, group.SharedConfig{}.Check())
	for text, cfg := range map[string]group.SharedConfig{
		"MaxInFlight is -1: must not be negative (0 means 1000)":          {MaxInFlight: -1},
		"MaxWindow is -1: must be from 0 to 1073741824 (0 means 65536)":   {MaxWindow: -1},
		"MaxDeliveries is -1: must not be negative (0 means without end)": {MaxDeliveries: -1},
		"AckWait has 0s: must be positive":                                {AckWait: []time.Duration{0}},
		"AckWait has 65 entries: must not have more than 64":              {AckWait: make([]time.Duration, 65)},
		"Backoff has -1ns: must not be negative":                          {Backoff: []time.Duration{-1}},
	} {
		assert.EqualError(t, cfg.Check(), text)
		assert.PanicsWithValue(t, "group: "+text, func() { group.NewShared(cfg, 0) })
	}
	cfg := group.SharedConfig{AckWait: []time.Duration{time.Second}}
	s := group.NewShared(cfg, 0)
	cfg.AckWait[0] = time.Hour
	assert.Equal(t, second, acquire(t, s, alice, 1, 0).Deadline, "it has its own copy")
}

func TestShared_Strings(t *testing.T) {
	assert.Equal(t, "not acknowledged in time", group.DeathExpired.String())
	assert.Equal(t, "alive", group.Death(0).String())
	assert.Equal(t, "TokenFault(77)", group.TokenFault(77).String())
}

// TestShared_SteadyStateAllocatesNothing: deliveries, acknowledgements in another order, extensions, failures with a
// backoff, and time-outs.
func TestShared_SteadyStateAllocatesNothing(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		s := group.NewShared(group.SharedConfig{InOrder: inOrder, AckWait: []time.Duration{10, 30}, Backoff: []time.Duration{5, 50}}, 0)
		var now int64
		ds := make([]group.Delivery, 0, 64)
		expired := make([]group.Expired, 0, 64)
		round := func() {
			now += 20
			expired = s.Tick(now, expired[:0])
			ds = ds[:0]
			for range 64 {
				if d, outcome := s.Acquire(alice, math.MaxInt64, now); outcome == group.Acquired {
					ds = append(ds, d)
				}
			}
			for i := len(ds) - 1; i >= 0; i-- {
				var err error
				switch {
				case i%16 == 3 && ds[i].Attempt < 3:
					_, err = s.Nack(alice, ds[i].Token, now)
				case i%16 == 5 && ds[i].Attempt < 3:
					_, err = s.Extend(alice, ds[i].Token, now)
				default:
					err = s.Ack(alice, ds[i].Token)
				}
				if err != nil {
					panic(err)
				}
			}
		}
		for range 100 {
			round()
		}
		assert.Zero(t, testing.AllocsPerRun(200, round))
		assert.Positive(t, s.Counts().Expired)
		assert.Positive(t, s.Counts().Redeliveries)
	}
}
