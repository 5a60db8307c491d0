package engine_test

import (
	"context"
	"fmt"
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
				return done(m, c.Mode)
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
			letters := part(t, topicOf(t, e, "dead"), 0)
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
				return done(m, c.Mode)
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
