package group_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

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
