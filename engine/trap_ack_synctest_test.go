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

// headers returns the headers of a record as text.
func headers(r *engine.Record) map[string]string {
	all := map[string]string{}
	for name, v := range r.Headers.All() {
		all[name] = string(v)
	}
	return all
}

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

// TestBUG028_DeadRecordsHoldNothing: a record that always fails is delivered MaxDeliveries times, and then it is in the dead-letter
// topic, once and with where it comes from, or told to the hook; it holds no place in flight, and the position passes it.
func TestBUG028_DeadRecordsHoldNothing(t *testing.T) {
	for _, dead := range []string{"", "dead"} {
		inGroups(t, retrying, func(t *testing.T, c engine.GroupConfig) {
			var dropped journal
			e := open(t, engine.Config{Hooks: engine.Hooks{Dropped: func(_ context.Context, g string, m *engine.Message, err error) {
				dropped.add("%s %d/%d %v", g, m.Offset, m.Attempt, err)
			}}})
			topic := create(t, e, "t", engine.TopicConfig{})
			create(t, e, "dead", engine.TopicConfig{})
			c.MaxDeliveries, c.Backoff, c.DeadLetter = 3, []time.Duration{time.Second}, dead
			c.Settling.MaxInFlight = 16
			g := newGroup(t, e, "g", c, "t")
			var b book
			join(t, g, handle(func(m *engine.Message) error {
				b.add(m)
				if string(m.Key) == "bad" {
					m.Value = []byte("changed by the handler")
					return errPoison
				}
				if c.Mode == engine.Manual {
					return m.Ack()
				}
				return nil
			}), engine.MemberConfig{})
			n := rounds(2000)
			for i := range n {
				r := engine.Record{Key: []byte("good"), Value: []byte("v"), Timestamp: 7}
				if i == 5 {
					r.Key, r.Headers = []byte("bad"), engine.MakeHeaders(engine.Header{Name: "h", Value: []byte("mine")})
				}
				_, err := topic.Publish(background, r)
				require.NoError(t, err)
			}
			pass(time.Minute)
			assert.Equal(t, n+2, b.len())
			assert.Equal(t, engine.Offset(n), committed(t, g, "t", 0))
			p := g.Stats().Partitions[0]
			assert.Zero(t, p.Lag)
			assert.Zero(t, p.InFlight)
			assert.Zero(t, p.Dead+p.Delayed)
			letters := part(t, mustTopic(t, e, "dead"), 0)
			if dead == "" {
				assert.Equal(t, []string{"g 5/3 poison"}, dropped.all())
				assert.EqualValues(t, 1, p.Dropped)
				assert.Zero(t, letters.Next())
				return
			}
			assert.Empty(t, dropped.all())
			assert.EqualValues(t, 1, p.Buried)
			require.Equal(t, engine.Offset(1), letters.Next())
			rs := make([]engine.Record, 1)
			_, err := letters.ReadAt(0, rs)
			require.NoError(t, err)
			assert.Equal(t, "bad v", string(rs[0].Key)+" "+string(rs[0].Value))
			assert.EqualValues(t, 7, rs[0].Timestamp)
			assert.Equal(t, map[string]string{
				"h": "mine", engine.HeaderTopic: "t", engine.HeaderPartition: "0", engine.HeaderOffset: "5", engine.HeaderAttempts: "3",
				engine.HeaderError: "poison", engine.HeaderConsumer: "g",
			}, headers(&rs[0]))
		})
	}
}

// mustTopic returns a topic.
func mustTopic(t testing.TB, e *engine.Engine, name string) *engine.Topic {
	t.Helper()
	topic, err := e.Topic(name)
	require.NoError(t, err)
	return topic
}

// TestDeadLetter_FullOrMissing: as long as the dead-letter topic does not take a record it is not given up; the handler is not
// asked again, and once there is room, or a topic, it gets there once.
func TestDeadLetter_FullOrMissing(t *testing.T) {
	for _, how := range []string{"full", "missing"} {
		inGroups(t, retrying, func(t *testing.T, c engine.GroupConfig) {
			e := open(t, engine.Config{Workers: 2})
			topic := create(t, e, "t", engine.TopicConfig{})
			letters := create(t, e, "dead", bounded(2, engine.Block))
			c.MaxDeliveries, c.Backoff, c.DeadLetter = 2, []time.Duration{time.Second}, "dead"
			g := newGroup(t, e, "g", c, "t")
			r, err := part(t, letters, 0).Reader(engine.ReaderConfig{Start: engine.Earliest(), Gating: true})
			require.NoError(t, err)
			if how == "full" {
				publish(t, letters, 0, 2)
			} else {
				r.Close()
				require.NoError(t, e.DeleteTopic("dead"))
			}
			var b book
			join(t, g, handle(func(m *engine.Message) error {
				b.add(m)
				if m.Offset == 0 {
					return errPoison
				}
				if c.Mode == engine.Manual {
					return m.Ack()
				}
				return nil
			}), engine.MemberConfig{})
			publish(t, topic, 0, 5)
			pass(time.Hour)
			assert.Equal(t, engine.Offset(0), committed(t, g, "t", 0))
			calls := 2
			if c.Kind == engine.Shared || c.Mode == engine.Manual { // others do not wait for it
				calls += 4
				assert.Equal(t, 1, g.Stats().Partitions[0].Dead)
			}
			assert.Equal(t, calls, b.len())
			if how == "full" {
				for range 2 {
					_, err := r.Next(background)
					require.NoError(t, err)
				}
				_, _ = r.NextBatch(gone(), make([]engine.Record, 1)) // to say that these are done with
				r.Close()
			} else {
				letters = create(t, e, "dead", engine.TopicConfig{})
			}
			pass(time.Minute)
			assert.Equal(t, 6, b.len())
			assert.Equal(t, engine.Offset(5), committed(t, g, "t", 0))
			p := part(t, letters, 0)
			rs := make([]engine.Record, 4)
			n, err := p.ReadAt(p.First(), rs)
			require.NoError(t, err)
			found := 0
			for i := range rs[:n] {
				if headers(&rs[i])[engine.HeaderOffset] == "0" {
					found++
				}
			}
			assert.Equal(t, 1, found)
		})
	}
}

// TestBUG037_NoHotLoop: what always fails is tried with pauses, a bounded number of times, also if it is nacked without a delay;
// in a shared group others do not wait for it.
func TestBUG037_NoHotLoop(t *testing.T) {
	inGroups(t, retrying, func(t *testing.T, c engine.GroupConfig) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{})
		g := newGroup(t, e, "g", c, "t")
		var b book
		join(t, g, handle(func(m *engine.Message) error {
			b.add(m)
			switch {
			case m.Offset > 0 && c.Mode == engine.Manual:
				return m.Ack()
			case m.Offset > 0:
				return nil
			case c.Mode == engine.Manual:
				return m.Nack(0)
			}
			return errPoison
		}), engine.MemberConfig{})
		publish(t, topic, 0, 101)
		synctest.Wait()
		if c.Kind == engine.Shared || c.Mode == engine.Manual {
			assert.Len(t, b.offsets(0), 101, "the good ones have come")
		} else {
			assert.Len(t, b.offsets(0), 1)
			assert.Equal(t, int64(1), g.Stats().Partitions[0].Failed, "who stands in the way shows")
		}
		pass(time.Hour)
		assert.Equal(t, 110, b.len(), "ten attempts")
		assert.Equal(t, engine.Offset(101), committed(t, g, "t", 0))
		assert.EqualValues(t, 1, g.Stats().Partitions[0].Dropped)
		assert.EqualValues(t, 9, g.Stats().Partitions[0].Redelivered)
	})
}

// TestBUG059_AttemptsCount from one on, by one, and whatever ends a delivery without success counts: an error, a panic, a Nack,
// and the end of its time, also when nobody asks any more.
func TestBUG059_AttemptsCount(t *testing.T) {
	for _, limit := range []int{1, 2, 3, 5} {
		inGroups(t, []engine.Mode{engine.Manual}, func(t *testing.T, c engine.GroupConfig) {
			var dropped journal
			e := open(t, engine.Config{Hooks: engine.Hooks{Dropped: func(_ context.Context, _ string, m *engine.Message, _ error) {
				dropped.add("%d", m.Attempt)
			}}})
			topic := create(t, e, "t", engine.TopicConfig{})
			c.MaxDeliveries, c.Backoff, c.Settling.AckWait = limit, []time.Duration{time.Second}, []time.Duration{time.Second, time.Minute}
			g := newGroup(t, e, "g", c, "t")
			k := consumer(t, g, engine.MemberConfig{})
			publish(t, topic, 0, 1)
			for i := 1; i <= limit; i++ {
				ms, err := k.Poll(background, 1)
				require.NoError(t, err)
				assert.Equal(t, i, ms[0].Attempt)
				switch i % 2 {
				case 0:
					require.NoError(t, ms[0].Nack(time.Hour))
				default:
					pass(time.Minute - 1) // the second AckWait repeats
					if i > 1 {
						assert.NoError(t, ms[0].Extend())
						pass(time.Minute - 1)
						assert.Zero(t, committed(t, g, "t", 0))
					}
					pass(1)
					assert.ErrorIs(t, ms[0].Ack(), engine.ErrFenced)
					assert.ErrorIs(t, ms[0].Nack(0), engine.ErrFenced)
					assert.ErrorIs(t, ms[0].Extend(), engine.ErrFenced)
					assert.ErrorIs(t, ms[0].Reject(nil), engine.ErrFenced)
				}
			}
			pass(time.Second)
			assert.Equal(t, engine.Offset(1), committed(t, g, "t", 0))
			assert.Equal(t, []string{fmt.Sprint(limit)}, dropped.all())
			p := g.Stats().Partitions[0]
			if c.Kind == engine.Shared {
				assert.EqualValues(t, limit/2, p.Failed)
			}
			assert.EqualValues(t, (limit+1)/2, p.Expired)
			assert.EqualValues(t, limit-1, p.Redelivered)
			assert.EqualValues(t, 4*((limit+1)/2), p.Fenced)
			_, err := k.Poll(gone(), 1)
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
}

// TestGroup_Backoff: records come again after the times that are configured, of which the last repeats, or those that Nack names.
func TestGroup_Backoff(t *testing.T) {
	inGroups(t, retrying, func(t *testing.T, c engine.GroupConfig) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{})
		c.MaxDeliveries, c.Backoff = 6, []time.Duration{time.Second, time.Minute}
		g := newGroup(t, e, "g", c, "t")
		var got journal
		start := time.Now()
		join(t, g, handle(func(m *engine.Message) error {
			got.add("%d@%v", m.Attempt, time.Since(start))
			if m.Attempt == 4 && c.Mode == engine.Manual {
				assert.NoError(t, m.Nack(3*time.Hour))
				return errPoison // too late to count
			}
			return errPoison
		}), engine.MemberConfig{})
		publish(t, topic, 0, 1)
		pass(24 * time.Hour)
		want := []string{"1@0s", "2@1s", "3@1m1s", "4@2m1s", "5@3m1s", "6@4m1s"}
		if c.Mode == engine.Manual {
			want[4], want[5] = "5@3h2m1s", "6@3h3m1s"
		}
		assert.Equal(t, want, got.all())
		assert.Equal(t, engine.Offset(1), committed(t, g, "t", 0))
		assert.EqualValues(t, 6, g.Stats().Partitions[0].Failed)
	})
}

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
				if c.Mode == engine.Manual {
					return m.Ack()
				}
				return nil
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
				if c.Mode == engine.Manual {
					return m.Ack()
				}
				return nil
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
