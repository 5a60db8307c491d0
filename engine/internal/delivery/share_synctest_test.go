package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
)

// TestBUG023_EachRecordComesBackInItsOwnTime: three records that nobody acknowledges come back after the list's delays, each
// counted from its own delivery before, whoever gets it, and the alarm rings when something is due and not else.
func TestBUG023_EachRecordComesBackInItsOwnTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		wait := []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}
		s := newShare(t, p, delivery.ShareConfig{Manual: true, Window: group.SharedConfig{AckWait: wait, MaxDeliveries: 5}})
		start := time.Now()
		var mu sync.Mutex
		got := map[int64][]string{}
		for range 2 {
			s.run(t, func(_ context.Context, m *Message) error {
				mu.Lock()
				defer mu.Unlock()
				got[m.Offset] = append(got[m.Offset], fmt.Sprintf("%d@%v", m.Attempt, time.Since(start)))
				return nil
			})
		}
		p.publish(t, 1)
		pass(ms(500))
		p.publish(t, 1)
		pass(ms(2500))
		p.publish(t, 1)
		pass(time.Hour)
		assert.Equal(t, map[int64][]string{
			0: {"1@0s", "2@1s", "3@6s", "4@26s", "5@46s"},
			1: {"1@500ms", "2@1.5s", "3@6.5s", "4@26.5s", "5@46.5s"},
			2: {"1@3s", "2@4s", "3@9s", "4@29s", "5@49s"},
		}, got)
		assert.Equal(t, []string{
			"drop 0/5 leat: given up: not acknowledged in time",
			"drop 1/5 leat: given up: not acknowledged in time",
			"drop 2/5 leat: given up: not acknowledged in time",
		}, s.tales())
		assert.Equal(t, 15, s.rings, "one for each time that was up")
		assert.True(t, s.Drained())
	})
}

// TestShare_BackoffOfEachFailure is the same for records whose handler fails.
func TestShare_BackoffOfEachFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		s := newShare(t, p, delivery.ShareConfig{Window: group.SharedConfig{
			Backoff: []time.Duration{time.Second, 5 * time.Second, 20 * time.Second},
		}})
		start := time.Now()
		var mu sync.Mutex
		got := map[int64][]string{}
		for range 2 {
			s.run(t, func(_ context.Context, m *Message) error {
				mu.Lock()
				defer mu.Unlock()
				got[m.Offset] = append(got[m.Offset], fmt.Sprintf("%d@%v", m.Attempt, time.Since(start)))
				if m.Attempt < 5 {
					return errPoison
				}
				return nil
			})
		}
		p.publish(t, 2)
		pass(ms(300))
		p.publish(t, 1)
		pass(time.Hour)
		assert.Equal(t, map[int64][]string{
			0: {"1@0s", "2@1s", "3@6s", "4@26s", "5@46s"},
			1: {"1@0s", "2@1s", "3@6s", "4@26s", "5@46s"},
			2: {"1@300ms", "2@1.3s", "3@6.3s", "4@26.3s", "5@46.3s"},
		}, got)
		assert.True(t, s.Drained())
		assert.Zero(t, s.Errors())
		assert.LessOrEqual(t, s.rings, 8+3, "one for each time, and few for what was held when the alarm was set")
	})
}

// TestShare_HandlerThatHangs: its record expires, and comes to another seat; what it had finished before does not expire, and
// what it has not begun is no delivery. Its outcome, when it comes, is refused.
func TestShare_HandlerThatHangs(t *testing.T) {
	for _, alone := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := newPart(t, partitionSetup{workers: 3, segments: 100})
			s := newShare(t, p, delivery.ShareConfig{Window: group.SharedConfig{AckWait: []time.Duration{10 * time.Second}}})
			out := make(chan struct{})
			var mu sync.Mutex
			var got []entry
			handle := func(_ context.Context, m *Message) error {
				mu.Lock()
				got = append(got, entry{m.Offset, m.Attempt})
				mu.Unlock()
				if m.Offset == 30 && m.Attempt == 1 {
					<-out
				}
				return nil
			}
			x := s.newSeat(t, delivery.SeatConfig{Handler: delivery.Handler{One: handle}})
			p.publish(t, 60)
			x.Start() // it finds so much that it takes many at a time
			synctest.Wait()
			var y *seat
			if !alone {
				y = s.run(t, handle)
				synctest.Wait()
				assert.EqualValues(t, 30, s.Position())
				assert.EqualValues(t, 59, s.Window().Acked)
			}
			s.check(t)
			pass(10*time.Second - 1)
			s.check(t)
			assert.Zero(t, s.Stats().Expired)
			pass(1)
			assert.EqualValues(t, 1, s.Stats().Expired)
			if alone {
				assert.Len(t, got, 31)
				assert.EqualValues(t, 30, s.Window().Acked, "what it had finished")
				y = s.run(t, handle)
				synctest.Wait()
			}
			assert.EqualValues(t, 60, s.Window().Acked)
			assert.False(t, s.Drained(), "the handler runs")
			assert.Len(t, got, 61, "one came twice")
			close(out)
			synctest.Wait()
			assert.True(t, s.Drained())
			assert.EqualValues(t, 1, s.Stats().Fenced)
			assert.Equal(t, group.Counts{Deliveries: 61, Redeliveries: 1, Acked: 60, Expired: 1}, s.Window())
			_ = y
		})
	}
}

// TestShare_QueuedRecordsDoNotExpire: a seat that gets slow all of a sudden gives back what it has not begun: none of that is
// used up by having waited, and from the first that was begun too late each record has all of its time.
func TestShare_QueuedRecordsDoNotExpire(t *testing.T) {
	for mode, cfg := range shareModes {
		t.Run(mode, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := newPart(t, partitionSetup{segments: 1000})
				cfg.Window = group.SharedConfig{AckWait: []time.Duration{time.Second}, MaxDeliveries: 1}
				s := newShare(t, p, cfg)
				p.publish(t, 300)
				n := 0
				s.run(t, func(_ context.Context, m *Message) error {
					if n++; n > 150 {
						time.Sleep(ms(999))
					}
					if cfg.Manual {
						return m.Ack()
					}
					return nil
				})
				pass(time.Hour)
				assert.True(t, s.Drained())
				assert.Equal(t, 300, n)
				if cfg.AtMostOnce {
					assert.Zero(t, s.Stats().Expired)
				} else {
					assert.Equal(t, []string{"drop 151/1 leat: given up: not acknowledged in time"}, s.tales())
				}
			})
		})
	}
}

// TestShare_Extend keeps a record, in all modes in which records are held, and moves the deadline that its token tells.
func TestShare_Extend(t *testing.T) {
	for _, manual := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := newPart(t, partitionSetup{})
			s := newShare(t, p, delivery.ShareConfig{Manual: manual, Window: group.SharedConfig{AckWait: []time.Duration{time.Second}}})
			attempts := 0
			s.run(t, func(_ context.Context, m *Message) error {
				attempts++
				k := m.Token()
				for range 10 {
					time.Sleep(ms(900))
					if err := m.Extend(); err != nil {
						return err
					}
					assert.Equal(t, time.Now().Add(time.Second).UnixNano(), k.Deadline().UnixNano())
				}
				if manual {
					return m.Ack()
				}
				return nil
			})
			p.publish(t, 1)
			pass(time.Minute)
			assert.Equal(t, 1, attempts)
			assert.True(t, s.Drained())
			assert.LessOrEqual(t, s.rings, 12)
		})
	}
}

// TestShare_ExtendAfterReturn: once a handler has returned nil its token is good for nothing, also while the seat is in the next one
// and nobody has settled the record yet.
func TestShare_ExtendAfterReturn(t *testing.T) {
	for _, use := range []func(t *testing.T, k delivery.Token){
		func(t *testing.T, k delivery.Token) { assert.ErrorIs(t, k.Extend(), group.ErrFenced) },
		func(t *testing.T, k delivery.Token) { assert.True(t, k.Deadline().IsZero()) },
	} {
		bubble(t, func(t *testing.T) {
			p := newPart(t, partitionSetup{})
			s := newShare(t, p, delivery.ShareConfig{Window: group.SharedConfig{AckWait: []time.Duration{time.Minute}}})
			var before delivery.Token
			p.publish(t, 200)
			s.run(t, func(_ context.Context, m *Message) error {
				if m.Offset%8 == 7 { // not always: each use has settled what is finished
					use(t, before)
				}
				before = m.Token()
				return nil
			})
			pass(time.Second)
			assert.True(t, s.Drained())
		})
	}
}

// TestShare_DeadLetters: burying fails for a while, at the last backoff's pace; then all is buried, once. Meanwhile other
// records are delivered and the position waits.
func TestShare_DeadLetters(t *testing.T) {
	for _, ends := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			p := newPart(t, partitionSetup{})
			start := time.Now()
			var works atomic.Bool
			var buried []string
			s := newShare(t, p, delivery.ShareConfig{
				Manual:       true,
				BuryRejected: true,
				Window:       group.SharedConfig{MaxDeliveries: 2, Backoff: []time.Duration{time.Second, 3 * time.Second}},
				Bury: func(_ context.Context, m *Message, err error) error {
					buried = append(buried, fmt.Sprintf("%d/%d@%v: %v", m.Offset, m.Attempt, time.Since(start), err))
					if !works.Load() && ends {
						panic("full") // or Goexit: it is tried again
					}
					if !works.Load() {
						return errors.New("full")
					}
					return nil
				},
			})
			s.run(t, func(_ context.Context, m *Message) error {
				switch m.Offset {
				case 0:
					return errPoison
				case 1:
					return m.Reject(errors.New("bad"))
				case 2:
					return m.Nack(-1)
				}
				return m.Ack()
			})
			p.publish(t, 10)
			pass(ms(1))
			assert.EqualValues(t, 7, s.Window().Acked)
			pass(5 * time.Second)
			assert.EqualValues(t, 0, s.Position())
			assert.Equal(t, 3, s.Stats().Dead)
			assert.False(t, s.Drained())
			works.Store(true)
			pass(time.Minute)
			assert.Equal(t, []string{
				"1/1@0s: leat: record rejected: bad",
				"0/2@1s: poison",
				"2/2@1s: leat: given up: failed",
				"1/1@3s: leat: record rejected: bad",
				"0/2@4s: poison",
				"2/2@4s: leat: given up: failed",
				"1/1@6s: leat: record rejected: bad",
				"0/2@7s: poison",
				"2/2@7s: leat: given up: failed",
			}, buried)
			assert.EqualValues(t, 3, s.Stats().Buried)
			assert.EqualValues(t, 10, s.Position())
			assert.True(t, s.Drained())
			assert.Zero(t, s.Errors())
			assert.Empty(t, s.tales())
		})
	}
}

// TestShare_LeavingMakesDead: what dies because its holder has left is buried as well.
func TestShare_LeavingMakesDead(t *testing.T) {
	leave := map[string]func(*pull){
		"leave":   func(x *pull) { x.Leave() },
		"fence":   func(x *pull) { x.Fence(errOver) },
		"release": func(x *pull) { x.HandIn(); x.Release() },
	}
	for name, f := range leave {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := newPart(t, partitionSetup{})
				s := newShare(t, p, delivery.ShareConfig{Manual: true, Window: group.SharedConfig{MaxDeliveries: 1}})
				x := s.pull(t, 64)
				p.publish(t, 3)
				require.Equal(t, upTo(0, 1), x.take(t, 1))
				f(x)
				pass(1)
				assert.Equal(t, []string{"drop 0/1 leat: given up: member left"}, s.tales())
				assert.EqualValues(t, 1, s.Position(), "the others have not been delivered, and are not used up")
				assert.Equal(t, upTo(1, 3), s.pull(t, 64).take(t, 64))
			})
		})
	}
}

// TestShare_FencedInAQueue: what a seat has not begun when it is fenced, or gives back, is not used up.
func TestShare_FencedInAQueue(t *testing.T) {
	for name, f := range map[string]func(x *seat){
		"fence":   func(x *seat) { x.Fence(errOver) },
		"stop":    func(x *seat) { x.Stop(errOver) },
		"pause":   func(x *seat) { x.Pause() },
		"release": func(x *seat) { x.Stop(errOver); x.Release() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := newPart(t, partitionSetup{segments: 100})
				s := newShare(t, p, delivery.ShareConfig{Window: group.SharedConfig{MaxDeliveries: 1}})
				p.publish(t, 60)
				out := make(chan struct{})
				x := s.run(t, func(_ context.Context, m *Message) error {
					if m.Offset == 40 {
						<-out
					}
					return nil
				})
				synctest.Wait()
				f(x)
				s.check(t)
				synctest.Wait()
				_, inside := x.Inside()
				assert.True(t, inside)
				y := s.pull(t, 64)
				want := upTo(41, 60)
				assert.Equal(t, want, y.take(t, 64))
				close(out)
				synctest.Wait()
				y.HandIn()
				assert.EqualValues(t, 60, s.Position())
				if name == "fence" {
					assert.Equal(t, []string{"drop 40/1 leat: given up: member left"}, s.tales())
				} else {
					assert.Empty(t, s.tales())
				}
				assert.True(t, s.Drained())
			})
		})
	}
}

// TestShare_DrainedIsTold: what makes it true is broadcast, also if it is a token, a Seek, or the commit of a pull seat.
func TestShare_DrainedIsTold(t *testing.T) {
	for name, f := range map[string]func(t *testing.T, s *share, x *pull, k delivery.Token){
		"ack":     func(t *testing.T, _ *share, _ *pull, k delivery.Token) { require.NoError(t, k.Ack()) },
		"through": func(t *testing.T, _ *share, _ *pull, k delivery.Token) { require.NoError(t, k.AckThrough()) },
		"reject":  func(t *testing.T, _ *share, _ *pull, k delivery.Token) { require.NoError(t, k.Reject(nil)) },
		"seek":    func(t *testing.T, s *share, _ *pull, _ delivery.Token) { require.NoError(t, s.Seek(latest)) },
		"commit":  func(_ *testing.T, _ *share, x *pull, _ delivery.Token) { x.Commit() },
		"below":   func(t *testing.T, _ *share, x *pull, _ delivery.Token) { require.NoError(t, x.CommitBelow(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p := newPart(t, partitionSetup{})
				s := newShare(t, p, delivery.ShareConfig{Manual: true, Window: group.SharedConfig{InOrder: true}})
				x := s.pull(t, 64)
				p.publish(t, 1)
				k := x.messages(t, 1)[0].Token()
				x.HandIn()
				synctest.Wait()
				require.False(t, s.Drained())
				done := make(chan struct{})
				go func() {
					defer close(done)
					w := newWaiter()
					for {
						s.rested.Prepare(w)
						if s.Drained() {
							s.rested.Cancel(w)
							return
						}
						s.rested.Wait(w, nil)
					}
				}()
				synctest.Wait()
				f(t, s, x, k)
				<-done
			})
		})
	}
}

// TestShare_PulledRecordsAreNotCommittedUnseen: what has been put aside for somebody who waits is not theirs before they take
// it.
func TestShare_PulledRecordsAreNotCommittedUnseen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		s := newShare(t, p, delivery.ShareConfig{})
		x := s.pull(t, 64)
		require.Empty(t, x.take(t, 64))
		p.publish(t, 5)
		synctest.Wait()
		require.EqualValues(t, 1, x.notified.Load())
		x.Commit()
		synctest.Wait()
		assert.Zero(t, s.Position())
		var off interface{ Error() string }
		require.ErrorAs(t, x.CommitBelow(3), &off, "none of them has been taken")
		assert.Equal(t, upTo(0, 5), x.take(t, 64))
		require.NoError(t, x.CommitBelow(3))
		assert.EqualValues(t, 3, s.Position())
		x.Commit()
		assert.EqualValues(t, 5, s.Position())
	})
}

// TestShare_WhoWaitsIsNotified of what was missed while the seat was paused, or of its end.
func TestShare_WhoWaitsIsNotified(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		s := newShare(t, p, delivery.ShareConfig{})
		x := s.pull(t, 64)
		require.Empty(t, x.take(t, 64))
		x.Pause()
		require.Empty(t, x.take(t, 64))
		n := x.notified.Load()
		p.publish(t, 1)
		synctest.Wait()
		require.Equal(t, n, x.notified.Load(), "paused")
		require.Empty(t, x.take(t, 64))
		x.Resume()
		synctest.Wait()
		require.Greater(t, x.notified.Load(), n)
		require.Equal(t, upTo(0, 1), x.take(t, 64))
		x.HandIn()
		require.Empty(t, x.take(t, 64))
		n = x.notified.Load()
		x.Stop(errOver)
		require.Greater(t, x.notified.Load(), n)
		_, _, err := x.Take(nil, 64)
		require.Equal(t, errOver, err)
	})
}

// TestShare_StoppedBeforeStart ends after Start.
func TestShare_StoppedBeforeStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		s := newShare(t, p, delivery.ShareConfig{})
		x := s.newSeat(t, delivery.SeatConfig{Handler: delivery.Handler{One: func(context.Context, *Message) error { return nil }}})
		p.publish(t, 3)
		x.Stop(errOver)
		x.Stop(errPoison)
		synctest.Wait()
		assert.Zero(t, x.ends.Load())
		x.Start()
		synctest.Wait()
		assert.EqualValues(t, 1, x.ends.Load())
		assert.Equal(t, errOver, x.cause)
		assert.Zero(t, s.Position())
	})
}

// TestShare_IdleCostsNothing: while there is nothing to do nobody is woken.
func TestShare_IdleCostsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		s := newShare(t, p, delivery.ShareConfig{})
		for range 3 {
			s.run(t, nothing)
		}
		p.publish(t, 100)
		pass(24 * time.Hour)
		assert.LessOrEqual(t, s.rings, 2, "the time of what was held once comes")
	})
}
