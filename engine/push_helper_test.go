package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

var errPoison = errors.New("poison") // what handlers fail with

// handle makes a Handler.
func handle(f func(m *engine.Message) error) engine.Handler {
	return engine.HandlerFunc(func(_ context.Context, m *engine.Message) error { return f(m) })
}

// ignore is a handler that has nothing to do.
var ignore = handle(func(*engine.Message) error { return nil })

// done returns what a handler returns that is done with m, which it has to acknowledge by itself if the mode is Manual.
func done(m *engine.Message, mode engine.Mode) error {
	if mode == engine.Manual {
		return m.Ack()
	}
	return nil
}

// blocker is a handler that tells when it is called and waits until it is released.
type blocker struct {
	in  chan *engine.Message
	out chan struct{}
}

func newBlocker() *blocker { return &blocker{make(chan *engine.Message, 100), make(chan struct{})} }

func (b *blocker) OnMessage(_ context.Context, m *engine.Message) error {
	select {
	case b.in <- m:
		<-b.out
	case <-b.out:
	}
	return nil
}

// release lets all calls return, now and later.
func (b *blocker) release() { close(b.out) }

// batchFunc is a BatchHandler.
type batchFunc func(ctx context.Context, ms []engine.Message) error

func (f batchFunc) OnBatch(ctx context.Context, ms []engine.Message) error { return f(ctx, ms) }

func (batchFunc) OnMessage(context.Context, *engine.Message) error {
	panic("OnMessage of a BatchHandler")
}

// book is a handler that writes down what it gets, in order, and succeeds.
type book struct {
	mu  sync.Mutex
	all []delivered
}

type delivered struct {
	part    int32
	off     engine.Offset
	attempt int
	value   string
}

func (b *book) OnMessage(_ context.Context, m *engine.Message) error {
	b.add(m)
	return nil
}

func (b *book) add(m *engine.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, delivered{m.Partition, m.Offset, m.Attempt, string(m.Value)})
}

func (b *book) entries() []delivered {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]delivered(nil), b.all...)
}

func (b *book) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.all)
}

// offsets returns the offsets of a partition in the order in which they came.
func (b *book) offsets(part int32) (offs []engine.Offset) {
	for _, d := range b.entries() {
		if d.part == part {
			offs = append(offs, d.off)
		}
	}
	return offs
}

// upTo returns the offsets from from up to but not including to.
func upTo(from, to engine.Offset) (offs []engine.Offset) {
	for o := from; o < to; o++ {
		offs = append(offs, o)
	}
	return offs
}

// publish publishes n records to a partition, whose values say where they are.
func publish(t testing.TB, topic *engine.Topic, partition, n int) {
	t.Helper()
	p := part(t, topic, partition)
	for range n {
		off, err := p.Publish(background, value(fmt.Sprintf("%d/%d", partition, p.Next())))
		require.NoError(t, err)
		require.Equal(t, partition, off.Partition)
	}
}

// subscribe subscribes h.
func subscribe(t testing.TB, topic *engine.Topic, h engine.Handler, c engine.SubscribeConfig) *engine.Subscription {
	t.Helper()
	s, err := topic.Subscribe(h, c)
	require.NoError(t, err)
	return s
}

// create creates a topic.
func create(t testing.TB, e *engine.Engine, name string, c engine.TopicConfig) *engine.Topic {
	t.Helper()
	topic, err := e.CreateTopic(name, c)
	require.NoError(t, err)
	return topic
}

// caughtUp waits until the subscriptions have processed all there is and rest.
func caughtUp(subs ...*engine.Subscription) {
	await(func() bool {
		for _, s := range subs {
			if s.Lag() > 0 || !s.Drained() {
				return false
			}
		}
		return true
	})
}

// position returns where a subscription is.
func position(t testing.TB, s *engine.Subscription, partition int) engine.Offset {
	t.Helper()
	off, err := s.Position(partition)
	require.NoError(t, err)
	return off
}

// soon returns a context that ends before the watchdog barks, but late enough that nobody waits for it who need not, also on a
// machine that is busy.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(background, 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// bounded is a topic that keeps n records and drops them one by one.
func bounded(n int64, full engine.OnFull) engine.TopicConfig {
	return engine.TopicConfig{OnFull: full, Retention: engine.Retention{MaxRecords: n}, SegmentRecords: 1}
}

// topicOf returns a topic.
func topicOf(t testing.TB, e *engine.Engine, name string) *engine.Topic {
	t.Helper()
	top, err := e.Topic(name)
	require.NoError(t, err)
	return top
}
