package engine_test

import (
	"context"
	"errors"
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

// TestBUG046_DrainDeliversAll publishes in every way to a subscription that only begins to work later: Drain delivers all of
// it. Close alone delivers what it had begun and nothing else, and says where it has stopped.
func TestBUG046_DrainDeliversAll(t *testing.T) {
	watchdog(t)
	for _, drain := range []bool{true, false} {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 4})
		begin := make(chan struct{})
		var got atomic.Int64
		s := subscribe(t, topic, handle(func(*engine.Message) error { <-begin; got.Add(1); return nil }), engine.SubscribeConfig{})
		n := int64(0)
		for range 200 {
			require.NoError(t, topic.TryPublish(value("x")))
			require.NoError(t, topic.PublishAsync(background, value("x"), nil))
			require.NoError(t, topic.PublishBatch(background, make([]engine.Record, 2)))
			_, err := topic.Publish(background, value("x"))
			require.NoError(t, err)
			n += 5
		}
		called := 0
		require.NoError(t, topic.PublishAsync(background, value("x"), func(engine.Published, error) { called++ }))
		n++
		if drain {
			ended := make(chan error, 1)
			go func() { ended <- e.Drain(background) }()
			await(func() bool { return topic.TryPublish(value("x")) != nil })
			close(begin)
			require.NoError(t, <-ended)
			assert.GreaterOrEqual(t, got.Load(), n)
			assert.Equal(t, 1, called)
			assert.Zero(t, s.Lag())
			_, err := topic.Publish(background, value("x"))
			assert.ErrorIs(t, err, engine.ErrDraining)
			_, err = e.CreateTopic("u", engine.TopicConfig{})
			assert.ErrorIs(t, err, engine.ErrDraining)
			require.NoError(t, e.Close())
			continue
		}
		over, end := context.WithCancel(background)
		end()
		_ = e.CloseContext(over) // does not wait for the handlers, but after it none is called
		close(begin)             // those that wait are through
		require.NoError(t, e.Close())
		assert.Less(t, got.Load(), n)
		var settled int64
		for i := range 4 {
			settled += position(t, s, i)
		}
		assert.Equal(t, got.Load(), settled)
	}
}

// TestDrain_Chain lets handlers publish to the next topic in every way, and their callbacks, too: Drain waits for the last link,
// however late its records come.
func TestDrain_Chain(t *testing.T) {
	watchdog(t)
	const links = 4
	for i := range rounds(300) {
		e := open(t, engine.Config{Workers: 1 + i%3})
		var topics [links]*engine.Topic
		var got [links]atomic.Int64
		var called atomic.Int64
		for j := range topics {
			topics[j] = create(t, e, fmt.Sprint(j), engine.TopicConfig{Partitions: 1 + j%2})
		}
		for j, topic := range topics {
			subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
				if rand.N(3) == 0 {
					runtime.Gosched()
				}
				if j+1 < links {
					next := topics[j+1]
					switch m.Offset % 3 {
					case 0:
						if _, err := next.Publish(ctx, value("x")); err != nil {
							return err
						}
					case 1:
						if err := next.PublishAsync(ctx, value("x"), func(engine.Published, error) { called.Add(1) }); err != nil {
							return err
						}
					case 2:
						if err := next.PublishBatch(ctx, make([]engine.Record, 1)); err != nil {
							return err
						}
					}
				}
				got[j].Add(1)
				if m.Offset%7 == 3 && m.Attempt == 1 && j == links-1 {
					return errPoison
				}
				return nil
			}), engine.SubscribeConfig{Mode: engine.Mode(i % 2), Backoff: []time.Duration{time.Millisecond}})
		}
		const n = 20
		for range n {
			_, err := topics[0].Publish(background, value("x"))
			require.NoError(t, err)
		}
		require.NoError(t, e.Drain(background))
		for j := range links {
			require.GreaterOrEqual(t, got[j].Load(), int64(n), "link %d", j)
		}
		total := int64(0)
		for _, topic := range topics {
			s := topic.Stats()
			for _, p := range s.Partitions {
				total += p.Next
				require.Zero(t, p.Callbacks)
				require.Zero(t, p.InHandover)
			}
			for _, l := range s.Subscriptions[0].Lanes {
				require.Zero(t, l.Lag)
				require.False(t, l.Running)
			}
		}
		require.Equal(t, int64(links*n), total)
		require.NoError(t, e.Close())
	}
}

// TestDrain_DeadLetters: a hook may publish what was given up, also while draining, and Drain waits for it and for who reads it.
func TestDrain_DeadLetters(t *testing.T) {
	watchdog(t)
	var dead *engine.Topic
	e := open(t, engine.Config{Hooks: engine.Hooks{Dropped: func(ctx context.Context, sub string, m *engine.Message, err error) {
		runtime.Gosched()
		r := m.Clone()
		r.Headers = engine.MakeHeaders(engine.Header{Name: "error", Value: []byte(err.Error())})
		r.Timestamp = 0
		_, err = dead.Publish(ctx, r)
		assert.NoError(t, err)
	}}})
	dead = create(t, e, "dead", engine.TopicConfig{})
	topic := create(t, e, "t", engine.TopicConfig{})
	var got book
	subscribe(t, dead, &got, engine.SubscribeConfig{})
	for _, batch := range []bool{false, true} {
		h := handle(func(*engine.Message) error { return errPoison })
		if batch {
			h = batchFunc(func(context.Context, []engine.Message) error { return errPoison })
		}
		subscribe(t, topic, h, engine.SubscribeConfig{MaxDeliveries: 2, Backoff: []time.Duration{time.Millisecond}, BatchSize: 3})
	}
	for i := range 10 {
		_, err := topic.Publish(background, value(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.NoError(t, e.Drain(background))
	seen := map[string]int{}
	for _, d := range got.entries() {
		seen[d.value]++
	}
	for i := range 10 {
		assert.Equal(t, 2, seen[fmt.Sprint(i)], "each record once by each subscription")
	}
}

// TestDrain_Paused: what a paused subscription has not processed is not waited for, but its handler is; one that is resumed
// meanwhile counts again.
func TestDrain_Paused(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	b := newBlocker()
	s := subscribe(t, topic, b, engine.SubscribeConfig{})
	publish(t, topic, 0, 10)
	<-b.in
	require.NoError(t, s.Pause())
	ended := make(chan error, 1)
	go func() { ended <- e.Drain(background) }()
	for range 100 {
		runtime.Gosched()
	}
	select {
	case <-ended:
		t.Error("drained, and a handler runs")
	default:
	}
	b.release()
	require.NoError(t, <-ended)
	assert.Equal(t, int64(9), s.Lag())
	require.NoError(t, s.Resume())
	require.NoError(t, e.Drain(background))
	assert.Zero(t, s.Lag())
}

// TestDrain_EndsWithWhatItWaitsFor: a subscription or topic that goes away is waited for no longer, and Close ends Drain.
func TestDrain_EndsWithWhatItWaitsFor(t *testing.T) {
	watchdog(t)
	for name, end := range map[string]func(e *engine.Engine, s *engine.Subscription){
		"Close of the subscription": func(_ *engine.Engine, s *engine.Subscription) { s.Close() },
		"Pause":                     func(_ *engine.Engine, s *engine.Subscription) { assert.NoError(t, s.Pause()) },
		"Seek":                      func(_ *engine.Engine, s *engine.Subscription) { assert.NoError(t, s.Seek(0, engine.Latest())) },
		"DeleteTopic":               func(e *engine.Engine, _ *engine.Subscription) { assert.NoError(t, e.DeleteTopic("t")) },
		"Close":                     func(e *engine.Engine, _ *engine.Subscription) { assert.NoError(t, e.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{})
			s := subscribe(t, topic, handle(func(*engine.Message) error { return errPoison }), engine.SubscribeConfig{Backoff: []time.Duration{time.Hour}})
			publish(t, topic, 0, 10)
			ended := make(chan error, 2)
			for range 2 { // two at once
				go func() { ended <- e.Drain(background) }()
			}
			await(func() bool { return s.Stats().Lanes[0].Failed == 1 && topic.TryPublish(value("x")) != nil })
			end(e, s)
			for range 2 {
				if err := <-ended; err != nil {
					assert.Equal(t, "Close", name)
					assert.ErrorIs(t, err, engine.ErrClosed)
				}
			}
		})
	}
}

// TestDrain_StressWithPublishers drains while others publish in every way: what was accepted before Drain was called is
// delivered; what came later is delivered or was refused; and nothing at all is accepted after it returned.
func TestDrain_StressWithPublishers(t *testing.T) {
	watchdog(t)
	for i := range rounds(80) {
		e := open(t, engine.Config{Workers: 2})
		// Drain flushes by name: what the handlers of z publish goes to a topic that it has dealt with before, and in between
		// it has enough to do.
		first := create(t, e, "z", engine.TopicConfig{HandoverSlots: 2 << (i % 4)})
		second := create(t, e, "a", engine.TopicConfig{})
		create(t, e, "m", engine.TopicConfig{Partitions: 16})
		var got atomic.Int64
		subscribe(t, first, engine.HandlerFunc(func(ctx context.Context, _ *engine.Message) error {
			return second.PublishAsync(ctx, value("y"), nil)
		}), engine.SubscribeConfig{})
		subscribe(t, second, handle(func(*engine.Message) error { got.Add(1); return nil }), engine.SubscribeConfig{})
		var before, accepted, failed atomic.Int64
		var draining atomic.Bool
		var publishers sync.WaitGroup
		large := make([]byte, 1000) // it has no room in so small a ring, and is handed over as a copy
		for _, publish := range []func() error{
			func() error { _, err := first.Publish(background, value("x")); return err },
			func() error { return first.TryPublish(value("x")) },
			func() error { return first.PublishAsync(background, value("x"), nil) },
			func() error { return first.PublishAsync(background, engine.Record{Value: large}, nil) },
			func() error {
				return first.PublishAsync(background, value("x"), func(_ engine.Published, err error) {
					if err != nil {
						failed.Add(1)
					}
				})
			},
			func() error { return first.PublishBatch(background, make([]engine.Record, 1)) },
		} {
			publishers.Go(func() {
				for i := 0; ; i++ {
					if i%16 == 0 {
						runtime.Gosched() // or on one processor each takes 10 ms
					}
					switch err := publish(); {
					case err == nil:
						accepted.Add(1)
						if !draining.Load() {
							before.Add(1)
						}
					case errors.Is(err, engine.ErrFull):
						runtime.Gosched()
					default:
						assert.ErrorIs(t, err, engine.ErrDraining)
						return
					}
				}
			})
		}
		await(func() bool { return accepted.Load() > 50 })
		draining.Store(true)
		n := before.Load()
		require.NoError(t, e.Drain(background))
		end, all := part(t, first, 0).Next(), got.Load()
		require.GreaterOrEqual(t, all, n)
		publishers.Wait()
		require.Equal(t, accepted.Load(), all, "delivered is what was accepted")
		require.Equal(t, end, part(t, first, 0).Next(), "accepted after Drain returned")
		require.Zero(t, failed.Load())
		require.NoError(t, e.Close())
	}
}

// TestDrain_Appender: an open Appender is refused like every other publisher, whatever it is just doing.
func TestDrain_Appender(t *testing.T) {
	watchdog(t)
	for range rounds(100) {
		e := open(t, engine.Config{})
		topic := create(t, e, "t", engine.TopicConfig{})
		p := part(t, topic, 0)
		x, err := p.Appender(background)
		require.NoError(t, err)
		var begun atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, err := x.Append(background, value("x")); err != nil {
					assert.ErrorIs(t, err, engine.ErrDraining)
					return
				}
				assert.NoError(t, x.Flush())
				begun.Add(1)
			}
		}()
		await(func() bool { return begun.Load() > 10 })
		require.NoError(t, e.Drain(background))
		_, err = x.Append(background, value("x"))
		require.ErrorIs(t, err, engine.ErrDraining)
		<-done
		require.NoError(t, x.Close())
	}
}
