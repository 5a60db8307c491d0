package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// noise is a log that a test can look into.
type noise struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (n *noise) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.Write(p)
}

func (n *noise) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.buf.String()
}

// TestHooks_AreTold what they say they are told, each with what belongs to it, and the log has a line for it.
func TestHooks_AreTold(t *testing.T) {
	watchdog(t)
	var log noise
	var mu sync.Mutex
	var told []string
	tell := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf(format, args...))
	}
	e := open(t, engine.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Hooks: engine.Hooks{
		Gap: func(topic, sub string, g engine.GapError) { tell("gap %s/%s %d-%d", topic, sub, g.From, g.To) },
		HandlerFailed: func(ctx context.Context, sub string, m *engine.Message, err error) {
			var p *engine.PanicError
			if errors.As(err, &p) {
				assert.Contains(t, string(p.Stack), "hooks_test.go")
				err = fmt.Errorf("panic %v", p.Value)
			}
			tell("failed %s/%s/%d %d attempt %d: %v", m.Topic, sub, m.Partition, m.Offset, m.Attempt, err)
			assert.NoError(t, ctx.Err())
		},
		Dropped: func(_ context.Context, sub string, m *engine.Message, err error) {
			tell("dropped %s/%s/%d %d %q: %v", m.Topic, sub, m.Partition, m.Offset, m.Value, err)
		},
		SubscriptionEnded: func(topic, sub string, cause error) { tell("ended %s/%s: %v", topic, sub, cause) },
		CallbackPanicked: func(topic string, v any, stack []byte) {
			assert.Contains(t, string(stack), "hooks_test.go")
			tell("callback %s: %v", topic, v)
		},
	}})
	topic := create(t, e, "t", engine.TopicConfig{})
	var gaps []engine.GapError
	s := subscribe(t, topic, handle(func(m *engine.Message) error {
		switch m.Offset {
		case 5:
			panic("five")
		case 6:
			runtime.Goexit()
		case 7:
			return errPoison
		}
		return nil
	}), engine.SubscribeConfig{ID: "s", MaxDeliveries: 2, Backoff: []time.Duration{time.Millisecond}, OnGap: func(g engine.GapError) { gaps = append(gaps, g) }})
	require.NoError(t, s.Pause())
	publish(t, topic, 0, 10)
	require.NoError(t, part(t, topic, 0).TruncateBefore(background, 3))
	require.NoError(t, s.Resume())
	caughtUp(s)
	require.NoError(t, topic.PublishAsync(background, value("x"), func(engine.Published, error) { panic("call") }))
	require.NoError(t, topic.Flush(background))
	caughtUp(s)
	s.Close()
	<-s.Done()
	assert.Equal(t, []string{
		"gap t/s 0-3",
		"failed t/s/0 5 attempt 1: panic five", "failed t/s/0 5 attempt 2: panic five", `dropped t/s/0 5 "0/5": leat: handler panicked: five`,
		"failed t/s/0 6 attempt 1: leat: handler called runtime.Goexit", "failed t/s/0 6 attempt 2: leat: handler called runtime.Goexit",
		`dropped t/s/0 6 "0/6": leat: handler called runtime.Goexit`,
		"failed t/s/0 7 attempt 1: poison", "failed t/s/0 7 attempt 2: poison", `dropped t/s/0 7 "0/7": poison`,
		"callback t: call",
		"ended t/s: leat: subscription closed",
	}, told)
	assert.Equal(t, []engine.GapError{{Partition: 0, From: 0, To: 3}}, gaps)
	for _, line := range []string{
		"topic created", "records dropped before they were delivered", "handler panicked", "record given up",
		"callback of PublishAsync panicked", "subscription ended",
	} {
		assert.Contains(t, log.String(), line)
	}
	require.NoError(t, e.DeleteTopic("t"))
	assert.Contains(t, log.String(), "topic deleted")
}

// TestHooks_MayPanic, and so may the logger, and end their goroutine: nothing else changes.
func TestHooks_MayPanic(t *testing.T) {
	watchdog(t)
	for name, how := range map[string]func(){"panic": func() { panic("hook") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			calls := map[string]int{}
			var mu sync.Mutex
			hit := func(name string) {
				mu.Lock()
				calls[name]++
				mu.Unlock()
				how()
			}
			e := open(t, engine.Config{
				Workers: 1,
				Logger: slog.New(logFunc(func(r slog.Record) {
					if name == "panic" || !strings.Contains(r.Message, "topic") && !strings.Contains(r.Message, "ended") { // these are on our own goroutine
						hit("log")
					}
				})),
				Hooks: engine.Hooks{
					Gap:               func(string, string, engine.GapError) { hit("gap") },
					HandlerFailed:     func(context.Context, string, *engine.Message, error) { hit("failed") },
					Dropped:           func(context.Context, string, *engine.Message, error) { hit("dropped") },
					SubscriptionEnded: func(string, string, error) { hit("ended") },
					CallbackPanicked:  func(string, any, []byte) { hit("callback") },
				},
			})
			topic := create(t, e, "t", engine.TopicConfig{})
			var got book
			s := subscribe(t, topic, handle(func(m *engine.Message) error {
				got.add(m)
				if m.Offset == 5 {
					panic("five")
				}
				return nil
			}), engine.SubscribeConfig{MaxDeliveries: 3, Backoff: []time.Duration{time.Millisecond}, OnGap: func(engine.GapError) { hit("OnGap") }})
			require.NoError(t, s.Pause())
			publish(t, topic, 0, 10)
			require.NoError(t, part(t, topic, 0).TruncateBefore(background, 3))
			require.NoError(t, s.Resume())
			caughtUp(s)
			require.NoError(t, topic.PublishAsync(background, value("x"), func(engine.Published, error) { panic("call") }))
			require.NoError(t, topic.PublishAsync(background, value("x"), func(engine.Published, error) { runtime.Goexit() }))
			require.NoError(t, topic.Flush(background))
			caughtUp(s)
			assert.Equal(t, []engine.Offset{3, 4, 5, 5, 5, 6, 7, 8, 9, 10, 11}, got.offsets(0))
			l := s.Stats().Lanes[0]
			assert.Equal(t, int64(3), l.Failed)
			assert.Equal(t, int64(1), l.Dropped)
			assert.Equal(t, int64(3), l.Lost)
			own := make(chan struct{})
			go func() { defer close(own); s.Close() }()
			<-own
			<-s.Done()
			assert.Equal(t, 1, calls["ended"])
			if name == "panic" {
				assert.Equal(t, 1, calls["OnGap"])
				assert.Equal(t, 1, calls["gap"])
				assert.Equal(t, 3, calls["failed"])
				assert.Equal(t, 1, calls["dropped"])
				assert.Equal(t, 1, calls["callback"])
			}
		})
	}
}

// TestHooks_SelfBlock: a hook that publishes to the partition whose lane called it, and would wait for that lane, is told.
func TestHooks_SelfBlock(t *testing.T) {
	watchdog(t)
	var topic *engine.Topic
	filled, told := make(chan struct{}), make(chan error, 1)
	e := open(t, engine.Config{Hooks: engine.Hooks{Dropped: func(ctx context.Context, _ string, m *engine.Message, _ error) {
		if m.Offset == 0 {
			<-filled
			_, err := topic.Publish(ctx, m.Record)
			told <- err
		}
	}}})
	topic = create(t, e, "t", bounded(2, engine.Block))
	s := subscribe(t, topic, handle(func(*engine.Message) error { return errPoison }), engine.SubscribeConfig{MaxDeliveries: 1})
	publish(t, topic, 0, 2)
	close(filled)
	assert.ErrorIs(t, <-told, engine.ErrSelfBlock)
	caughtUp(s)
	publish(t, topic, 0, 5)
}

// TestBUG013_OnePanicHitsNobodyElse panics on every record, on one on every seventh, and ends goroutines, next to a subscription
// that does nothing wrong: the process lives, the pool keeps its size, and that one sees everything.
func TestBUG013_OnePanicHitsNobodyElse(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 2})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	backoff := []time.Duration{time.Millisecond}
	var good book
	subs := []*engine.Subscription{
		subscribe(t, topic, &good, engine.SubscribeConfig{ID: "good"}),
		subscribe(t, topic, handle(func(*engine.Message) error { panic("always") }), engine.SubscribeConfig{ID: "a", MaxDeliveries: 1}),
		subscribe(t, topic, handle(func(*engine.Message) error { runtime.Goexit(); return nil }), engine.SubscribeConfig{ID: "b", MaxDeliveries: 1, Dedicated: true}),
		subscribe(t, topic, handle(func(m *engine.Message) error {
			if m.Offset%7 == 0 && m.Attempt == 1 {
				runtime.Goexit()
			}
			return nil
		}), engine.SubscribeConfig{ID: "c", Backoff: backoff}),
		subscribe(t, topic, handle(func(*engine.Message) error { panic(nil) }), engine.SubscribeConfig{ID: "d", Mode: engine.AtMostOnce}),
	}
	before := runtime.NumGoroutine()
	n := rounds(2000)
	for i := range 2 {
		publish(t, topic, i, n)
	}
	caughtUp(subs...)
	for i := range int32(2) {
		assert.Equal(t, upTo(0, engine.Offset(n)), good.offsets(i))
	}
	for i, want := range []engine.LaneStats{
		{Delivered: int64(n)},
		{Failed: int64(n), Dropped: int64(n)},
		{Failed: int64(n), Dropped: int64(n)},
		{Delivered: int64(n), Failed: int64(n+6) / 7, Redelivered: int64(n+6) / 7},
		{Failed: int64(n)},
	} {
		await(func() bool {
			l := subs[i].Stats().Lanes[1]
			return l.Delivered == want.Delivered && l.Failed == want.Failed
		})
		l := subs[i].Stats().Lanes[1]
		assert.Equal(t, want.Dropped, l.Dropped, i)
		assert.Equal(t, want.Redelivered, l.Redelivered, i)
	}
	await(func() bool { return runtime.NumGoroutine() <= before })
	assert.Equal(t, 2, e.Stats().Workers)
}
