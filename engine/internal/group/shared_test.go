package group_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

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
