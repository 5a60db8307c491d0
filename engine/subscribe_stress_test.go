package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG047_SubscribeMeetsLive subscribes from the earliest while history is long and publishers are at full speed: one
// cursor over one log, so there is no seam. Again with retention that trims the history meanwhile: then what is missing is told,
// and nothing else is.
func TestBUG047_SubscribeMeetsLive(t *testing.T) {
	watchdog(t)
	for _, trim := range []bool{false, true} {
		c := engine.TopicConfig{SegmentRecords: 100, OnFull: engine.DropOldest}
		if trim {
			c.Retention.MaxRecords = 1000
		}
		topic := newTopic(t, c)
		history, live := rounds(20_000), rounds(20_000)
		require.NoError(t, topic.PublishBatch(background, nil))
		batch := make([]engine.Record, 100)
		for range history / 100 {
			require.NoError(t, topic.PublishBatch(background, batch))
		}
		type state struct{ next, delivered, lost engine.Offset }
		states := make([]state, 3)
		var subs []*engine.Subscription
		var publisher sync.WaitGroup
		publisher.Go(func() {
			for range live {
				assert.NoError(t, topic.PublishAsync(background, value("x"), nil))
			}
			assert.NoError(t, topic.Flush(background))
		})
		for i := range states {
			st := &states[i]
			st.next = -1
			subs = append(subs, subscribe(t, topic, handle(func(m *engine.Message) error {
				if st.next >= 0 && m.Offset != st.next {
					t.Errorf("got %d, want %d", m.Offset, st.next)
				}
				if st.next < 0 {
					st.lost = m.Offset
				}
				st.next = m.Offset + 1
				st.delivered++
				return nil
			}), engine.SubscribeConfig{Start: engine.Earliest(), NonGating: true, OnGap: func(g engine.GapError) {
				if st.next < 0 {
					st.next = g.From
					st.lost = g.From
				}
				if g.From != st.next || g.To <= g.From {
					t.Errorf("a gap %d-%d, want from %d", g.From, g.To, st.next)
				}
				st.lost += g.Lost()
				st.next = g.To
			}}))
			runtime.Gosched()
		}
		publisher.Wait()
		caughtUp(subs...)
		end := part(t, topic, 0).Next()
		for i := range states {
			assert.Equal(t, end, states[i].next)
			assert.Equal(t, end, states[i].delivered+states[i].lost)
			if !trim {
				assert.Zero(t, states[i].lost)
			}
		}
	}
}

// TestBUG055_Chaos does everything at once: topics and subscriptions come and go, are paused, moved and looked at, records are
// published in every way, read and truncated, handlers fail, hang a little, publish and call back; then all is drained and
// closed. What must hold all the time: a handler has one record of a partition at a time, with the bytes that belong there; what
// Publish said is there is there; nothing waits for ever.
func TestBUG055_Chaos(t *testing.T) {
	watchdog(t)
	for round := range max(1, rounds(6)) {
		chaos(t, uint64(round))
	}
}

func chaos(t *testing.T, seed uint64) {
	const topics, steps = 3, 400
	bad := func(format string, args ...any) { t.Errorf(fmt.Sprintf("seed %d: ", seed)+format, args...) }
	e, err := engine.Open(engine.Config{Workers: 3, MaxMemory: 16 << 20, Hooks: engine.Hooks{
		Gap: func(_, _ string, g engine.GapError) {
			if g.Lost() <= 0 {
				bad("gap %v", g)
			}
		},
		HandlerFailed: func(_ context.Context, _ string, m *engine.Message, _ error) {
			if m.Offset%5 == 0 {
				panic("hook")
			}
		},
	}})
	require.NoError(t, err)
	// A record's value says to which topic it was published, by its identity, so that none turns up in another.
	record := func(topic *engine.Topic) engine.Record {
		return engine.Record{Key: fmt.Append(nil, rand.N(100)), Value: fmt.Append(nil, topic.ID())}
	}
	name := func(r *rand.Rand) string { return fmt.Sprint("t", r.IntN(topics)) }
	makeTopic := func(r *rand.Rand) {
		_, err := e.CreateTopic(name(r), engine.TopicConfig{
			Partitions: 1 + r.IntN(3), OnFull: engine.OnFull(r.IntN(3)), HandoverSlots: 1 << r.IntN(6), SegmentRecords: 1 + r.IntN(20),
			Retention: engine.Retention{MaxRecords: 20 + r.Int64N(100), MaxAge: time.Duration(r.IntN(2)) * 10 * time.Millisecond},
		})
		if !over(err) {
			bad("CreateTopic: %v", err)
		}
	}
	handler := func(topic *engine.Topic) engine.Handler {
		inside := make([]atomic.Int32, topic.Partitions())
		id := topic.ID().String()
		return engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
			if inside[m.Partition].Add(1) != 1 {
				bad("two handlers at once for %s/%d", m.Topic, m.Partition)
			}
			defer inside[m.Partition].Add(-1)
			if string(m.Value) != id {
				bad("%s/%d/%d has %q, want %q", m.Topic, m.Partition, m.Offset, m.Value, id)
			}
			switch rand.N(40) {
			case 0:
				return errPoison
			case 1:
				panic("handler")
			case 2:
				runtime.Goexit()
			case 3:
				time.Sleep(time.Duration(rand.N(int64(time.Millisecond))))
			case 4:
				ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				if _, err := topic.Publish(ctx, record(topic)); !over(err) {
					bad("Publish inside: %v", err)
				}
			case 5:
				_ = topic.TryPublish(record(topic))
			}
			return nil
		})
	}
	act := func(r *rand.Rand) {
		topic, err := e.Topic(name(r))
		if err != nil {
			makeTopic(r)
			return
		}
		ctx, cancel := context.WithTimeout(background, time.Duration(r.IntN(3))*time.Millisecond)
		defer cancel()
		p, err := topic.Partition(r.IntN(topic.Partitions()))
		if err != nil {
			bad("Partition: %v", err)
		}
		err = nil
		switch r.IntN(24) {
		default:
			_, err = topic.Publish(ctx, record(topic))
		case 0:
			makeTopic(r)
		case 1:
			if r.IntN(5) == 0 {
				err = e.DeleteTopic(topic.Name())
			}
		case 2, 3:
			_, err = topic.Subscribe(handler(topic), engine.SubscribeConfig{
				ID: fmt.Sprint("s", r.IntN(5)), Start: []engine.Start{{}, engine.Earliest(), engine.Latest(), engine.Last(3)}[r.IntN(4)],
				Mode: engine.Mode(r.IntN(2)), Backoff: []time.Duration{time.Millisecond}, MaxDeliveries: 3, NonGating: r.IntN(2) == 0,
				MaxLag: int64(r.IntN(2) * 50), Dedicated: r.IntN(5) == 0, MaxConcurrency: r.IntN(3), OnGap: func(engine.GapError) { runtime.Gosched() },
			})
		case 4, 5, 6, 7:
			var s *engine.Subscription
			if s, err = topic.Subscription(fmt.Sprint("s", r.IntN(5))); err == nil {
				switch i := r.IntN(topic.Partitions()); r.IntN(5) {
				case 0:
					s.Close()
				case 1:
					err = s.Pause(i)
				case 2:
					err = s.Resume()
				case 3:
					err = s.Seek(i, engine.Earliest())
				case 4:
					s.Stats()
				}
			}
		case 8:
			e.Stats()
		case 9:
			err = topic.PublishBatch(ctx, []engine.Record{record(topic), record(topic)})
		case 10:
			err = topic.TryPublish(record(topic))
		case 11, 12:
			err = topic.PublishAsync(ctx, record(topic), func(at engine.Published, err error) {
				if !over(err) {
					bad("PublishAsync: %v", err)
				}
				if r := rand.N(50); r == 0 {
					panic("callback")
				} else if r == 1 {
					runtime.Goexit()
				}
			})
		case 13:
			err = topic.Flush(ctx)
		case 14:
			err = p.TruncateBefore(ctx, p.First()+3)
		case 15:
			var x *engine.Appender
			if x, err = p.Appender(ctx); err == nil {
				_, _ = x.Append(ctx, record(topic))
				err = x.Close()
			}
		case 16:
			var rd *engine.Reader
			if rd, err = p.Reader(engine.ReaderConfig{Start: engine.Earliest(), Gating: r.IntN(2) == 0}); err == nil {
				_, err = rd.Next(ctx)
				rd.Close()
			}
		case 17:
			_ = topic.ForgetPositions(fmt.Sprint("s", r.IntN(5)))
		case 18: // what Publish said is there, unless it has been dropped since
			var at engine.Published
			if at, err = topic.Publish(ctx, record(topic)); err == nil {
				p, _ := topic.Partition(at.Partition)
				one := make([]engine.Record, 1)
				var n int
				if n, err = p.ReadAt(at.Offset, one); err == nil && (n != 1 || one[0].Offset != at.Offset) {
					bad("ReadAt(%d): %d records", at.Offset, n)
				}
			}
		}
		if !over(err) {
			bad("%v", err)
		}
	}
	var actors sync.WaitGroup
	for i := range uint64(4) {
		actors.Go(func() {
			r := rand.New(rand.NewPCG(seed, i))
			for range steps {
				act(r)
			}
		})
	}
	actors.Wait()
	// All that live, of all topics.
	living := func() (subs []*engine.Subscription) {
		for _, name := range e.Topics() {
			topic := topicOf(t, e, name)
			for _, s := range topic.Stats().Subscriptions {
				if s, err := topic.Subscription(s.ID); err == nil {
					subs = append(subs, s)
				}
			}
		}
		return subs
	}
	for _, s := range living() {
		require.NoError(t, s.Resume())
	}
	require.NoError(t, e.Drain(soon(t)))
	for _, s := range living() {
		for i, l := range s.Stats().Lanes {
			require.Zero(t, l.Lag, "%s/%s/%d", s.Topic().Name(), s.ID(), i)
			require.Equal(t, part(t, s.Topic(), i).Next(), l.Position)
		}
	}
	require.NoError(t, e.Close())
}
