package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// inGroups calls f for each kind of group and mode in a bubble.
func inGroups(t *testing.T, modes []engine.Mode, f func(t *testing.T, c engine.GroupConfig)) {
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, mode := range modes {
			t.Run(fmt.Sprint(kind, mode), func(t *testing.T) {
				bubble(t, func(t *testing.T) { f(t, engine.GroupConfig{Kind: kind, Mode: mode}) })
			})
		}
	}
}

var retrying = []engine.Mode{engine.AtLeastOnce, engine.Manual}

// TestBUG005_PositionIsThePrefix: the position stays at the first record that is not done with, whatever is acknowledged above
// it, and who comes next gets that one, and not those that were acknowledged.
func TestBUG005_PositionIsThePrefix(t *testing.T) {
	inGroups(t, []engine.Mode{engine.Manual}, func(t *testing.T, c engine.GroupConfig) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{})
		c.Settling.AckWait = []time.Duration{time.Hour}
		g := newGroup(t, e, "g", c, "t")
		var held engine.Token
		m := join(t, g, handle(func(m *engine.Message) error {
			if m.Offset == 3 {
				held = m.Token()
				return nil
			}
			return m.Ack()
		}), engine.MemberConfig{MaxConcurrency: 8})
		publish(t, topic, 0, 100)
		synctest.Wait()
		assert.Equal(t, engine.Offset(3), committed(t, g, "t", 0))
		assert.Equal(t, 1, g.Stats().Partitions[0].InFlight)
		m.Close()
		<-m.Done()
		assert.ErrorIs(t, held.Ack(), engine.ErrFenced)
		assert.Equal(t, engine.Offset(3), committed(t, g, "t", 0))
		var b book
		join(t, g, handle(func(m *engine.Message) error { b.add(m); return m.Ack() }), engine.MemberConfig{})
		synctest.Wait()
		assert.Equal(t, []engine.Offset{3}, b.offsets(0))
		assert.Equal(t, 2, b.entries()[0].attempt)
		assert.Equal(t, engine.Offset(100), committed(t, g, "t", 0))
	})
}

// TestBUG065_LastCommit: what was processed before a member closed, or had to give its partition away, is not processed again,
// with nothing in between to commit it. SEED-12: the position is the next one to process.
func TestBUG065_LastCommit(t *testing.T) {
	inGroups(t, []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce}, func(t *testing.T, c engine.GroupConfig) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{})
		c.Assignor = engine.Deal
		g := newGroup(t, e, "g", c, "t")
		x := newTally()
		m := join(t, g, x.handler("m"), engine.MemberConfig{Name: "m"})
		publish(t, topic, 0, 100)
		synctest.Wait()
		m.Close()
		<-m.Done()
		assert.Equal(t, engine.Offset(100), committed(t, g, "t", 0))
		m = join(t, g, x.handler("m"), engine.MemberConfig{Name: "m"})
		publish(t, topic, 0, 100)
		synctest.Wait()
		first := join(t, g, x.handler("a"), engine.MemberConfig{Name: "a"})
		synctest.Wait()
		if c.Kind == engine.Assigned {
			assert.Equal(t, engine.Offset(200), first.Assignment()[0].Position)
		}
		m.Close()
		publish(t, topic, 0, 5)
		synctest.Wait()
		x.once(t, 205)
		assert.Equal(t, 5, x.of("a"))
	})
}

// TestSEED11_ModesMeanWhatTheySay when a member is put out in the middle of a record: with AtMostOnce it never comes again, and
// with AtLeastOnce it does, whatever the handler that is still running returns.
func TestSEED11_ModesMeanWhatTheySay(t *testing.T) {
	for _, end := range []error{nil, errPoison} {
		inGroups(t, []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual}, func(t *testing.T, c engine.GroupConfig) {
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{})
			c.Backoff = []time.Duration{time.Second}
			g := newGroup(t, e, "g", c, "t")
			out := make(chan struct{})
			m := join(t, g, handle(func(m *engine.Message) error {
				<-out
				if end == nil && c.Mode == engine.Manual {
					assert.ErrorIs(t, m.Ack(), engine.ErrFenced)
				}
				return end
			}), engine.MemberConfig{Name: "m"})
			publish(t, topic, 0, 1)
			synctest.Wait()
			require.NoError(t, g.Evict("m"))
			want := engine.Offset(0)
			if c.Mode == engine.AtMostOnce {
				want = 1
			}
			assert.Equal(t, want, committed(t, g, "t", 0))
			close(out)
			<-m.Done()
			assert.Equal(t, want, committed(t, g, "t", 0), "and that is final")
			var b book
			join(t, g, handle(func(m *engine.Message) error {
				b.add(m)
				return done(m, c.Mode)
			}), engine.MemberConfig{Name: "m"})
			pass(time.Hour)
			assert.Equal(t, int(1-want), b.len())
			assert.Equal(t, engine.Offset(1), committed(t, g, "t", 0))
		})
	}
}

// TestSEED10_MembersWorkAtTheSameTime: four members of a shared group, or of an assigned one with four partitions, work on four
// records at a time, all the time.
func TestSEED10_MembersWorkAtTheSameTime(t *testing.T) {
	inGroups(t, []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual}, func(t *testing.T, c engine.GroupConfig) {
		e := open(t, engine.Config{Workers: 8})
		parts := 1
		if c.Kind == engine.Assigned {
			parts = 4
		}
		topic := create(t, e, "t", engine.TopicConfig{Partitions: parts, Partitioner: engine.RoundRobin()})
		g := newGroup(t, e, "g", c, "t")
		var mu sync.Mutex
		running, most := 0, 0
		by := map[string]int{}
		for i := range 4 {
			name := fmt.Sprint(i)
			join(t, g, handle(func(m *engine.Message) error {
				mu.Lock()
				running++
				most = max(most, running)
				by[name]++
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
				return done(m, c.Mode)
			}), engine.MemberConfig{Name: name})
		}
		start := time.Now()
		const n = 400
		for range n {
			_, err := topic.Publish(background, value("x"))
			require.NoError(t, err)
		}
		require.NoError(t, e.Drain(background))
		assert.Equal(t, n/4*10*time.Millisecond, time.Since(start).Round(10*time.Millisecond), "in the bubble nothing else takes time")
		assert.Equal(t, 4, most)
		assert.Equal(t, map[string]int{"0": n / 4, "1": n / 4, "2": n / 4, "3": n / 4}, by)
	})
}

// TestGroup_MaxInFlight: so many records are out and not settled at the most, whoever has them, and each that is settled makes
// room for one.
func TestGroup_MaxInFlight(t *testing.T) {
	inGroups(t, []engine.Mode{engine.Manual}, func(t *testing.T, c engine.GroupConfig) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{})
		c.Settling.MaxInFlight, c.Settling.AckWait = 5, []time.Duration{time.Hour}
		g := newGroup(t, e, "g", c, "t")
		tokens := make(chan engine.Token, 100)
		for range 3 {
			join(t, g, handle(func(m *engine.Message) error { tokens <- m.Token(); return nil }), engine.MemberConfig{})
		}
		publish(t, topic, 0, 20)
		synctest.Wait()
		assert.Len(t, tokens, 5)
		for i := range 10 {
			require.NoError(t, (<-tokens).Ack())
			synctest.Wait()
			assert.Len(t, tokens, 5, "%d", i)
			assert.Equal(t, 5, g.Stats().Partitions[0].InFlight)
		}
		// What waits to be delivered again is not out.
		require.NoError(t, (<-tokens).Nack(time.Minute))
		synctest.Wait()
		assert.Len(t, tokens, 5)
		assert.Equal(t, 1, g.Stats().Partitions[0].Delayed)
		for range 10 {
			if len(tokens) == 0 {
				pass(time.Minute)
			}
			require.NoError(t, (<-tokens).Ack())
			synctest.Wait()
		}
		assert.Equal(t, engine.Offset(20), committed(t, g, "t", 0))
	})
}

// TestGroup_RejectAndAckThrough: what they do, and what is told of it.
func TestGroup_RejectAndAckThrough(t *testing.T) {
	for _, bury := range []bool{false, true} {
		inGroups(t, []engine.Mode{engine.Manual}, func(t *testing.T, c engine.GroupConfig) {
			dropped := make(chan error, 10)
			e := open(t, engine.Config{Hooks: engine.Hooks{Dropped: func(_ context.Context, _ string, m *engine.Message, err error) { dropped <- err }}})
			topic := create(t, e, "t", engine.TopicConfig{})
			letters := create(t, e, "dead", engine.TopicConfig{})
			c.DeadLetter, c.DeadLetterRejected = "dead", bury
			g := newGroup(t, e, "g", c, "t")
			k := consumer(t, g, engine.MemberConfig{})
			publish(t, topic, 0, 5)
			ms := poll(t, k, 5)
			require.NoError(t, ms[4].Reject(errPoison))
			require.NoError(t, ms[3].Reject(nil))
			assert.ErrorIs(t, ms[3].Ack(), engine.ErrFenced)
			synctest.Wait()
			if bury {
				assert.Empty(t, dropped)
				assert.Equal(t, engine.Offset(2), part(t, letters, 0).Next())
			} else {
				err := <-dropped
				assert.ErrorIs(t, err, engine.ErrRejected)
				assert.ErrorIs(t, errors.Join(err, <-dropped), errPoison)
				assert.Zero(t, part(t, letters, 0).Next())
			}
			if c.Kind == engine.Shared {
				assert.ErrorIs(t, ms[2].AckThrough(), engine.ErrNotOwner)
				assert.Equal(t, engine.Offset(0), committed(t, g, "t", 0))
				return
			}
			require.NoError(t, ms[0].Nack(time.Hour))
			require.NoError(t, ms[2].AckThrough())
			assert.Equal(t, engine.Offset(5), committed(t, g, "t", 0))
			assert.ErrorIs(t, ms[1].Ack(), engine.ErrFenced)
			assert.ErrorIs(t, ms[0].AckThrough(), engine.ErrFenced)
			var none engine.Message
			assert.ErrorIs(t, none.Ack(), engine.ErrNoToken)
			pass(2 * time.Hour)
			_, err := k.Poll(gone(), 1)
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
}

// TestConsumer_PutOut: a consumer that does not poll is put out, what it holds comes to others, and it is a member again when it
// polls; one that waits in Poll is not, and one that has nothing need not poll.
func TestConsumer_PutOut(t *testing.T) {
	for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e := open(t, engine.Config{})
				topic := create(t, e, "t", engine.TopicConfig{})
				g := newGroup(t, e, "g", engine.GroupConfig{
					Mode: mode, ProgressTimeout: time.Minute, Settling: engine.Settling{AckWait: []time.Duration{time.Hour}},
				}, "t")
				l := newLedger(t)
				a := consumer(t, g, l.member("a", engine.MemberConfig{}))
				b := consumer(t, g, l.member("b", engine.MemberConfig{})) // gets nothing, and never polls
				ctx, cancel := context.WithTimeout(background, time.Hour)
				defer cancel()
				_, err := a.Poll(ctx, 5)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, []string{"a assigned t/0"}, l.take())
				publish(t, topic, 0, 5)
				ms := poll(t, a, 3)
				pass(time.Minute - 1)
				assert.Equal(t, []string{"a"}, owners(g))
				ms = append(ms, poll(t, a, 2)...) // with AtLeastOnce it commits those before
				pass(time.Minute)
				assert.Equal(t, []string{"b"}, owners(g))
				assert.True(t, describe(t, g, "a").Out)
				assert.NoError(t, a.Err())
				assert.ElementsMatch(t, []string{"a lost t/0", "b assigned t/0"}, l.take())
				assert.Equal(t, "0/4", string(ms[4].Value))
				if mode == engine.Manual {
					assert.ErrorIs(t, ms[4].Ack(), engine.ErrFenced)
				}
				if mode == engine.AtMostOnce {
					assert.Equal(t, engine.Offset(5), committed(t, g, "t", 0))
				} else {
					assert.ErrorIs(t, a.Commit(), engine.ErrFenced)
					want := engine.Offset(3)
					if mode == engine.Manual {
						want = 0
					}
					assert.Equal(t, want, committed(t, g, "t", 0))
					assert.Equal(t, upTo(want, 5), offsetsOf(poll(t, b, 100)))
				}
				assert.ErrorIs(t, a.CommitTo("t", 0, 3), engine.ErrFenced)
				_, err = a.Poll(gone(), 1)
				assert.ErrorIs(t, err, context.Canceled)
				assert.False(t, describe(t, g, "a").Out)
				require.NoError(t, b.Commit())
				b.Close()
				synctest.Wait()
				assert.Equal(t, []string{"a"}, owners(g))
				publish(t, topic, 0, 1)
				assert.Equal(t, []engine.Offset{5}, offsetsOf(poll(t, a, 1)))
				a.Close()
				synctest.Wait()
				l.closed()
			})
		})
	}
}
