package delivery_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
)

// TestToken_AckMakesRoom: with as much in flight as may be, a token that is used outside of any handler lets the next record
// come.
func TestToken_AckMakesRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		s := newShare(t, p, delivery.ShareConfig{Manual: true, Window: group.SharedConfig{MaxInFlight: 1}})
		var tokens []delivery.Token
		s.run(t, func(_ context.Context, m *Message) error {
			tokens = append(tokens, m.Token())
			return nil
		})
		p.publish(t, 3)
		for i := range 3 {
			synctest.Wait()
			require.Len(t, tokens, i+1)
			if i == 1 {
				require.NoError(t, tokens[i].Reject(nil))
			} else {
				require.NoError(t, tokens[i].Ack())
			}
		}
		synctest.Wait()
		assert.True(t, s.Drained())
	})
}

// TestToken_AckThroughReachesTheQueue: what it settles is not delivered any more, also if a seat has it in its queue.
func TestToken_AckThroughReachesTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{segments: 100})
		s := newShare(t, p, delivery.ShareConfig{Manual: true, Window: group.SharedConfig{InOrder: true}})
		p.publish(t, 60)
		out := make(chan struct{})
		var tokens []delivery.Token
		var again []int64
		s.run(t, func(_ context.Context, m *Message) error {
			if m.Attempt > 1 {
				again = append(again, m.Offset)
			}
			tokens = append(tokens, m.Token())
			switch {
			case m.Offset == 10 && m.Attempt == 1:
				return m.Nack(ms(5))
			case m.Offset == 40:
				<-out
			}
			return nil
		})
		synctest.Wait()
		require.Len(t, tokens, 41)
		pass(ms(6)) // 10 is available, and in the queue behind 40
		require.NoError(t, tokens[30].AckThrough())
		assert.EqualValues(t, 31, s.Position())
		s.check(t)
		close(out)
		synctest.Wait()
		assert.Empty(t, again)
		require.Len(t, tokens, 60)
		require.NoError(t, tokens[59].AckThrough())
		assert.EqualValues(t, 60, s.Position())
	})
}

// TestToken_AfterTheEnd: tokens stay good after their seat has ended, until they are released, and get the cause after the share
// has been closed.
func TestToken_AfterTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		s := newShare(t, p, delivery.ShareConfig{Manual: true})
		var tokens []delivery.Token
		x := s.run(t, func(_ context.Context, m *Message) error {
			tokens = append(tokens, m.Token())
			return nil
		})
		p.publish(t, 3)
		synctest.Wait()
		x.Stop(errOver)
		<-x.ended
		require.NoError(t, tokens[0].Ack())
		x.Release()
		require.ErrorIs(t, tokens[1].Ack(), group.ErrFenced)
		assert.True(t, tokens[1].Deadline().IsZero())
		s.Close(errPoison)
		require.Equal(t, errPoison, tokens[2].Ack())
		require.Equal(t, errPoison, tokens[2].Extend())
		require.ErrorIs(t, delivery.Token{}.Ack(), delivery.ErrNoToken)
		assert.True(t, delivery.Token{}.Deadline().IsZero())
	})
}
