package engine_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// inside runs f in every place of a user's code that the engine calls, each on an engine and topic of its own, and checks that
// f returns and that the engine can be closed after it.
func inside(t *testing.T, f func(e *engine.Engine, topic *engine.Topic, s *engine.Subscription)) {
	t.Helper()
	type place struct {
		name string
		set  func(hit func(), c *engine.Config, tc *engine.TopicConfig, sc *engine.SubscribeConfig) engine.Handler // nil: ignore
		act  func(topic *engine.Topic, s *engine.Subscription)                                                     // what leads there
	}
	pub := func(topic *engine.Topic, _ *engine.Subscription) { _, _ = topic.Publish(background, value("x")) }
	gap := func(topic *engine.Topic, s *engine.Subscription) {
		_ = s.Pause()
		for range 10 {
			pub(topic, s)
		}
		p, _ := topic.Partition(0)
		_ = p.TruncateBefore(background, 5)
		_ = s.Resume()
	}
	for _, place := range []place{
		{"handler", func(hit func(), _ *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			return handle(func(*engine.Message) error { hit(); return nil })
		}, pub},
		{"dedicated handler", func(hit func(), _ *engine.Config, _ *engine.TopicConfig, sc *engine.SubscribeConfig) engine.Handler {
			sc.Dedicated = true
			return handle(func(*engine.Message) error { hit(); return nil })
		}, pub},
		{"batch handler", func(hit func(), _ *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			return batchFunc(func(context.Context, []engine.Message) error { hit(); return nil })
		}, pub},
		{"callback", func(func(), *engine.Config, *engine.TopicConfig, *engine.SubscribeConfig) engine.Handler { return nil }, nil},
		{"OnGap", func(hit func(), _ *engine.Config, _ *engine.TopicConfig, sc *engine.SubscribeConfig) engine.Handler {
			sc.OnGap = func(engine.GapError) { hit() }
			return nil
		}, gap},
		{"Hooks.Gap", func(hit func(), c *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			c.Hooks.Gap = func(string, string, engine.GapError) { hit() }
			return nil
		}, gap},
		{"Hooks.HandlerFailed", func(hit func(), c *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			c.Hooks.HandlerFailed = func(context.Context, string, *engine.Message, error) { hit() }
			return handle(func(*engine.Message) error { return errPoison })
		}, pub},
		{"Hooks.Dropped", func(hit func(), c *engine.Config, _ *engine.TopicConfig, sc *engine.SubscribeConfig) engine.Handler {
			c.Hooks.Dropped = func(context.Context, string, *engine.Message, error) { hit() }
			sc.MaxDeliveries = 1
			return handle(func(*engine.Message) error { panic("no") })
		}, pub},
		{"Hooks.SubscriptionEnded by a user", func(hit func(), c *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			c.Hooks.SubscriptionEnded = func(string, string, error) { hit() }
			return nil
		}, func(_ *engine.Topic, s *engine.Subscription) { s.Close() }},
		{"Hooks.SubscriptionEnded by a lane", func(hit func(), c *engine.Config, _ *engine.TopicConfig, sc *engine.SubscribeConfig) engine.Handler {
			c.Hooks.SubscriptionEnded = func(string, string, error) { hit() }
			sc.Gap = engine.FailOnGap
			return nil
		}, gap},
		{"Hooks.SubscriptionEnded by eviction", func(hit func(), c *engine.Config, _ *engine.TopicConfig, sc *engine.SubscribeConfig) engine.Handler {
			c.Hooks.SubscriptionEnded = func(string, string, error) { hit() }
			sc.MaxLag = 1
			return nil
		}, gap},
		{"Hooks.SubscriptionEnded by DeleteTopic", func(hit func(), c *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			c.Hooks.SubscriptionEnded = func(string, string, error) { hit() }
			return nil
		}, func(topic *engine.Topic, s *engine.Subscription) { _ = topicEngine(s).DeleteTopic(topic.Name()) }},
		{"Hooks.SubscriptionEnded by Close", func(hit func(), c *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			c.Hooks.SubscriptionEnded = func(string, string, error) { hit() }
			return nil
		}, func(_ *engine.Topic, s *engine.Subscription) { _ = topicEngine(s).Close() }},
		{"Hooks.CallbackPanicked", func(hit func(), c *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			c.Hooks.CallbackPanicked = func(string, any, []byte) { hit() }
			return nil
		}, func(topic *engine.Topic, _ *engine.Subscription) {
			_ = topic.PublishAsync(background, value("x"), func(engine.Published, error) { panic("no") })
		}},
		{"partitioner", func(hit func(), _ *engine.Config, tc *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			tc.Partitioner = engine.PartitionerFunc(func(*engine.Record, int) int { hit(); return 0 })
			return nil
		}, pub},
		{"logger", func(hit func(), c *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			c.Logger = slog.New(logFunc(func(slog.Record) { hit() }))
			return handle(func(*engine.Message) error { panic("no") })
		}, pub},
		{"logger of CreateTopic", func(hit func(), c *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			c.Logger = slog.New(logFunc(func(slog.Record) { hit() }))
			return nil
		}, func(_ *engine.Topic, s *engine.Subscription) {
			_, _ = topicEngine(s).CreateTopic("more", engine.TopicConfig{})
		}},
		{"logger of DeleteTopic", func(hit func(), c *engine.Config, _ *engine.TopicConfig, _ *engine.SubscribeConfig) engine.Handler {
			c.Logger = slog.New(logFunc(func(slog.Record) { hit() }))
			return nil
		}, func(topic *engine.Topic, s *engine.Subscription) { _ = topicEngine(s).DeleteTopic(topic.Name()) }},
	} {
		t.Run(place.name, func(t *testing.T) {
			var (
				c     = engine.Config{Workers: 1}
				tc    engine.TopicConfig
				sc    = engine.SubscribeConfig{ID: "s", Backoff: []time.Duration{time.Millisecond}}
				e     *engine.Engine
				topic *engine.Topic
				s     *engine.Subscription
				armed atomic.Bool
				done  = make(chan struct{})
			)
			hit := func() {
				if armed.CompareAndSwap(true, false) { // once
					f(e, topic, s)
					close(done)
				}
			}
			h := place.set(hit, &c, &tc, &sc)
			if h == nil {
				h = ignore
			}
			e = open(t, c)
			topic = create(t, e, "t", tc)
			s = subscribe(t, topic, h, sc)
			engines.Store(s, e)
			defer engines.Delete(s)
			armed.Store(true)
			go func() {
				if place.act != nil {
					place.act(topic, s)
				} else {
					_ = topic.PublishAsync(background, value("x"), func(engine.Published, error) { hit() })
				}
			}()
			<-done
			require.NoError(t, e.Close())
			<-s.Done()
		})
	}
}

// engines tells where a subscription of inside belongs.
var engines sync.Map

func topicEngine(s *engine.Subscription) *engine.Engine {
	e, _ := engines.Load(s)
	return e.(*engine.Engine)
}

// logFunc is a slog.Handler.
type logFunc func(slog.Record)

func (logFunc) Enabled(context.Context, slog.Level) bool        { return true }
func (f logFunc) Handle(_ context.Context, r slog.Record) error { f(r); return nil }
func (f logFunc) WithAttrs([]slog.Attr) slog.Handler            { return f }
func (f logFunc) WithGroup(string) slog.Handler                 { return f }

// TestClose_FromInside: Close does not wait for who calls it, and is complete once that has returned.
func TestClose_FromInside(t *testing.T) {
	watchdog(t)
	inside(t, func(e *engine.Engine, topic *engine.Topic, _ *engine.Subscription) {
		// On a user's own goroutine Close waits, and that is right: nothing of it depends on the call.
		assert.NoError(t, e.Close())
		assert.NoError(t, e.Close())
		_, err := topic.Publish(background, value("x"))
		assert.True(t, errors.Is(err, engine.ErrClosed) || errors.Is(err, engine.ErrTopicDeleted), err)
		_, err = e.Topic("t")
		assert.ErrorIs(t, err, engine.ErrClosed)
	})
}

// TestDeleteTopic_FromInside: the topic is gone when DeleteTopic has returned.
func TestDeleteTopic_FromInside(t *testing.T) {
	watchdog(t)
	inside(t, func(e *engine.Engine, topic *engine.Topic, s *engine.Subscription) {
		err := e.DeleteTopic("t")
		if errors.Is(err, engine.ErrClosed) || errors.Is(err, engine.ErrUnknownTopic) {
			return // by Close, or by DeleteTopic
		}
		assert.NoError(t, err)
		_, err = topic.Publish(background, value("x"))
		assert.ErrorIs(t, err, engine.ErrTopicDeleted)
		assert.Error(t, s.Err())
		_, err = e.CreateTopic("t", engine.TopicConfig{})
		assert.NoError(t, err)
	})
}

// TestSubscription_CloseFromInside: likewise a subscription.
func TestSubscription_CloseFromInside(t *testing.T) {
	watchdog(t)
	inside(t, func(_ *engine.Engine, topic *engine.Topic, s *engine.Subscription) {
		s.Close()
		s.Close()
		assert.Error(t, s.Err())
		if again, err := topic.Subscribe(ignore, engine.SubscribeConfig{ID: "s"}); err == nil {
			again.Close()
		}
	})
}

// TestBUG095_EverythingFromInside: no lock is held while a user's code runs, so it may look at everything, and publish.
func TestBUG095_EverythingFromInside(t *testing.T) {
	watchdog(t)
	inside(t, func(e *engine.Engine, topic *engine.Topic, s *engine.Subscription) {
		e.Stats()
		_, _ = e.Describe("t")
		e.Topics()
		topic.Stats()
		topic.Config()
		_, _ = topic.Subscription("s")
		_, _ = topic.Subscription("t")
		s.Stats()
		s.Lag()
		_ = s.Pause()
		_ = s.Seek(0, engine.Earliest())
		_ = s.Resume()
		if p, err := topic.Partition(0); err == nil {
			p.Stats()
			p.Age()
			_, _ = p.ReadAt(p.First(), make([]engine.Record, 2))
			if r, err := p.Reader(engine.ReaderConfig{Gating: true}); err == nil {
				r.Close()
			}
			_ = p.TruncateBefore(background, 0)
			_, _ = p.Publish(background, value("x"))
		}
		if other, err := topic.Subscribe(ignore, engine.SubscribeConfig{}); err == nil {
			other.Close()
		}
		if other, err := e.CreateTopic("other", engine.TopicConfig{}); err == nil {
			_, _ = other.Publish(background, value("x"))
			_ = e.DeleteTopic("other")
		}
	})
}

// TestDrain_FromInside would wait for itself, and says so; from a user's own goroutine it works.
func TestDrain_FromInside(t *testing.T) {
	watchdog(t)
	inside(t, func(e *engine.Engine, _ *engine.Topic, _ *engine.Subscription) {
		if err := e.Drain(soon(t)); err != nil && !errors.Is(err, engine.ErrClosed) {
			assert.ErrorIs(t, err, engine.ErrSelfBlock)
		}
	})
}
