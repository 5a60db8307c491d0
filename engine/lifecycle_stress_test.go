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

// over reports whether err is nil or says that something has ended: what a call may return that races with an end.
func over(err error) bool {
	for _, ok := range []error{
		engine.ErrClosed, engine.ErrTopicDeleted, engine.ErrUnknownTopic, engine.ErrTopicExists, engine.ErrDraining,
		engine.ErrSubscriptionClosed, engine.ErrSubscriptionExists, engine.ErrUnknownSubscription, engine.ErrEvicted,
		engine.ErrReaderClosed, engine.ErrExclusive, engine.ErrFull, engine.ErrSelfBlock, engine.ErrWorkersBlocked, context.Canceled,
		context.DeadlineExceeded,
	} {
		if errors.Is(err, ok) {
			return true
		}
	}
	var out *engine.OffsetError
	var gap *engine.GapError
	return err == nil || errors.As(err, &out) || errors.As(err, &gap)
}

// together calls all functions at once, n times each, and waits for them.
func together(n int, fs ...func()) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for _, f := range fs {
		for range n {
			wg.Go(func() { <-start; f() })
		}
	}
	close(start)
	wg.Wait()
}

// during calls f again and again until wg is done, and once after that.
func during(wg *sync.WaitGroup, f func()) {
	var over atomic.Bool
	go func() { wg.Wait(); over.Store(true) }()
	for last := false; !last; {
		last = over.Load()
		f()
	}
}

// TestBUG043_EndingTwice ends everything from many goroutines at once: no panic, each caller returns only when the thing is
// down, and with the same result.
func TestBUG043_EndingTwice(t *testing.T) {
	watchdog(t)
	for i := range rounds(400) {
		e, err := engine.Open(engine.Config{Workers: 2})
		require.NoError(t, err)
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
		var running, late atomic.Int64
		s := subscribe(t, topic, handle(func(*engine.Message) error {
			running.Add(1)
			runtime.Gosched()
			running.Add(-1)
			return nil
		}), engine.SubscribeConfig{ID: "s", Dedicated: i%4 == 0})
		publish(t, topic, 0, 10)
		publish(t, topic, 1, 10)
		p := part(t, topic, 0)
		r, err := p.Reader(engine.ReaderConfig{Gating: true})
		require.NoError(t, err)
		x, err := p.Appender(background)
		require.NoError(t, err)
		together(4,
			func() { s.Close(); assert.Error(t, s.Err()) },
			func() { r.Close() },
			func() { assert.True(t, over(x.Close())) },
			func() {
				if i%2 == 0 {
					assert.True(t, over(e.DeleteTopic("t")))
				}
			},
			func() {
				if i%3 == 0 {
					assert.True(t, over(e.Drain(background)))
				}
			},
			func() {
				assert.NoError(t, e.Close())
				late.Add(running.Load())
				select {
				case <-s.Done():
				default:
					t.Error("closed, and a subscription is alive")
				}
			},
		)
		require.Zero(t, late.Load(), "closed, and a handler runs")
	}
}

// TestSubscription_CloseTwiceAtOnce: no delivery begins after any of the calls has returned.
func TestSubscription_CloseTwiceAtOnce(t *testing.T) {
	watchdog(t)
	const partitions = 64 // to stop them all takes a while
	topic := newTopic(t, engine.TopicConfig{Partitions: partitions, Retention: engine.Retention{MaxRecords: 1000}})
	for i := range partitions {
		publish(t, topic, i, 50)
	}
	for range rounds(500) {
		var begun atomic.Int64
		s := subscribe(t, topic, handle(func(*engine.Message) error { begun.Add(1); runtime.Gosched(); return nil }),
			engine.SubscribeConfig{Start: engine.Earliest(), MaxConcurrency: 100})
		for range rand.N(10) {
			runtime.Gosched()
		}
		together(3, func() {
			s.Close()
			running := 0
			for _, l := range s.Stats().Lanes {
				if l.Running {
					running++
				}
			}
			n := begun.Load()
			<-s.Done()
			assert.LessOrEqual(t, begun.Load(), n+int64(running))
		})
	}
}

// TestBUG044_CallsDuringClose races Close, and DeleteTopic, with every call there is: each takes effect, or says that all is
// over, and none waits after Close has returned.
func TestBUG044_CallsDuringClose(t *testing.T) {
	watchdog(t)
	for i := range rounds(100) {
		e, err := engine.Open(engine.Config{Workers: 2})
		require.NoError(t, err)
		topic := create(t, e, "t", bounded(8, engine.OnFull(i%3)))
		s := subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
			if m.Offset%5 == 0 {
				_, err := topic.Publish(ctx, value("y"))
				assert.True(t, over(err), err)
			}
			return nil
		}), engine.SubscribeConfig{ID: "s"})
		p := part(t, topic, 0)
		r, err := p.Reader(engine.ReaderConfig{Start: engine.Earliest()})
		require.NoError(t, err)
		var ended atomic.Int32
		check := func(name string, f func() error) func() {
			return func() {
				for range 1000 {
					last := ended.Load() != 0
					if err := f(); !over(err) {
						t.Errorf("%s: %v", name, err)
					}
					if last {
						return
					}
					runtime.Gosched()
				}
			}
		}
		together(1,
			check("Publish", func() error { _, err := topic.Publish(background, value("x")); return err }),
			check("TryPublish", func() error { return topic.TryPublish(value("x")) }),
			check("PublishAsync", func() error {
				return topic.PublishAsync(background, value("x"), func(_ engine.Published, err error) { assert.True(t, over(err), err) })
			}),
			check("PublishBatch", func() error { return topic.PublishBatch(background, make([]engine.Record, 3)) }),
			check("Flush", func() error { return topic.Flush(background) }),
			check("Next", func() error {
				ctx, cancel := context.WithTimeout(background, time.Millisecond)
				defer cancel()
				_, err := r.Next(ctx)
				return err
			}),
			check("Subscribe", func() error {
				s, err := topic.Subscribe(ignore, engine.SubscribeConfig{Dedicated: true})
				if err == nil {
					s.Close()
				}
				return err
			}),
			check("Seek", func() error { return s.Seek(0, engine.Earliest()) }),
			check("Pause", func() error { return errors.Join(s.Pause(), s.Resume()) }),
			check("Stats", func() error { e.Stats(); topic.Stats(); s.Stats(); return nil }),
			check("TruncateBefore", func() error { return p.TruncateBefore(background, p.First()) }),
			check("CreateTopic", func() error {
				name := fmt.Sprint("t", rand.N(3))
				_, err := e.CreateTopic(name, engine.TopicConfig{Partitions: 2})
				return errors.Join(err, e.DeleteTopic(name))
			}),
			check("Drain", func() error {
				if i%4 != 0 {
					return nil
				}
				ctx, cancel := context.WithTimeout(background, time.Millisecond)
				defer cancel()
				return e.Drain(ctx)
			}),
			func() {
				for range rand.N(100) {
					runtime.Gosched()
				}
				if i%3 == 0 {
					assert.NoError(t, e.DeleteTopic("t"))
				}
				assert.NoError(t, e.Close())
				ended.Store(1)
			},
		)
		r.Close()
	}
}

// TestBUG112_StartingDuringClose creates topics and subscriptions while Close is waiting: they are refused, or ended with the
// rest; whatever was started is gone when Close returns (goleak looks after the tests).
func TestBUG112_StartingDuringClose(t *testing.T) {
	watchdog(t)
	for range rounds(400) {
		e, err := engine.Open(engine.Config{Workers: 1})
		require.NoError(t, err)
		var made sync.Map
		var n atomic.Int64
		together(2,
			func() {
				for {
					topic, err := e.CreateTopic(fmt.Sprint(n.Add(1)), engine.TopicConfig{})
					if err != nil {
						assert.ErrorIs(t, err, engine.ErrClosed)
						return
					}
					runtime.Gosched()
					s, err := topic.Subscribe(ignore, engine.SubscribeConfig{})
					if err == nil {
						made.Store(s, true)
					}
					made.Store(topic, true)
				}
			},
			func() {
				for range rand.N(5) {
					runtime.Gosched()
				}
				assert.NoError(t, e.Close())
				made.Range(func(k, _ any) bool {
					switch x := k.(type) {
					case *engine.Topic:
						assert.ErrorIs(t, x.TryPublish(value("x")), engine.ErrClosed)
					case *engine.Subscription:
						assert.ErrorIs(t, x.Err(), engine.ErrClosed)
						<-x.Done()
					}
					return true
				})
			},
		)
	}
}

// TestBUG110_NothingGrows creates, uses and drops topics, subscriptions and readers again and again: neither memory nor
// goroutines grow.
func TestBUG110_NothingGrows(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	base := create(t, e, "base", engine.TopicConfig{Partitions: 2})
	publish(t, base, 0, 10)
	churn := func(n int) {
		for i := range n {
			topic := create(t, e, fmt.Sprint("t", i), engine.TopicConfig{Partitions: 2, Retention: engine.Retention{MaxAge: time.Hour}})
			s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "named", Dedicated: i%10 == 0})
			publish(t, topic, 0, 3)
			require.NoError(t, topic.PublishAsync(background, value("x"), func(engine.Published, error) {}))
			switch i % 3 {
			case 0:
				require.NoError(t, s.Pause())
			case 1:
				s.Close()
			}
			require.NoError(t, e.DeleteTopic(topic.Name()))

			id := fmt.Sprint("request-", i)
			s = subscribe(t, base, handle(func(*engine.Message) error { return errPoison }), engine.SubscribeConfig{
				ID: id, Start: engine.Earliest(), Dedicated: i%7 == 0, NonGating: i%2 == 0, MaxLag: 1000,
			})
			s.Close()
			<-s.Done()
			require.NoError(t, base.ForgetPositions(id))
			s = subscribe(t, base, ignore, engine.SubscribeConfig{})
			s.Close()
			r, err := part(t, base, 0).Reader(engine.ReaderConfig{Gating: true})
			require.NoError(t, err)
			r.Close()
			<-s.Done()
		}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	churn(rounds(200))
	goroutines, before := runtime.NumGoroutine(), heap()
	n := rounds(2000)
	churn(n)
	await(func() bool { return runtime.NumGoroutine() <= goroutines })
	// A task, lane, partition or topic that stayed would be 500 bytes or more each time, and there are many in each turn.
	assert.Less(t, int64(heap())-int64(before), int64(200*n+256<<10))
	assert.Equal(t, []string{"base"}, e.Topics())
	assert.Empty(t, base.Stats().Subscriptions)
}

// TestBUG014_CloseDuringDelivery closes subscriptions whose handlers are in the middle of something that others have to finish,
// while publishers go on: Close returns, no delivery begins after it, and the room that it held is free.
func TestBUG014_CloseDuringDelivery(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, bounded(4, engine.Block))
	stop := make(chan struct{})
	var publishers sync.WaitGroup
	var published atomic.Int64
	for range 4 {
		publishers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, err := topic.Publish(background, value("x"))
					assert.NoError(t, err)
					published.Add(1)
				}
			}
		})
	}
	for i := range rounds(1000) {
		// A channel as a buffer of 1, that nobody reads any more.
		buffer := make(chan engine.Offset, 1)
		var closed atomic.Bool
		var late atomic.Int64
		s := subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
			if closed.Load() {
				late.Add(1)
			}
			select {
			case buffer <- m.Offset:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}), engine.SubscribeConfig{Start: engine.Earliest(), Dedicated: i%5 == 0})
		if i%2 == 0 {
			await(func() bool { return s.Stats().Lanes[0].Running })
		}
		running := make(chan bool)
		go func() {
			s.Close()
			r := s.Stats().Lanes[0].Running
			closed.Store(true)
			running <- r
		}()
		was := <-running
		n := published.Load()
		await(func() bool { return published.Load() > n }) // the others go on
		<-s.Done()
		if !was {
			require.Zero(t, late.Load())
		}
		require.LessOrEqual(t, late.Load(), int64(1))
	}
	close(stop)
	publishers.Wait()
}
