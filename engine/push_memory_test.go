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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestMaxMemory_BoundsTheWhole publishes to several topics of each policy at once, with subscriptions that are slow, and, but
// under Block, with limits of the topics that together are far above that of the engine: it is never exceeded, publishers
// go on, and what was accepted under Block and Reject is delivered.
func TestMaxMemory_BoundsTheWhole(t *testing.T) {
	watchdog(t)
	const most = 1 << 20
	for _, full := range []engine.OnFull{engine.Block, engine.Reject, engine.DropOldest} {
		t.Run(fmt.Sprint(full), func(t *testing.T) {
			e := open(t, engine.Config{Workers: 4, MaxMemory: most})
			var over atomic.Bool
			var work sync.WaitGroup
			var accepted, refused, delivered, lost atomic.Int64
			var keep engine.Retention
			if full == engine.Block {
				keep.MaxBytes = most / 16 // what others keep is theirs: who has nothing waits until they give it back
			}
			for i := range 4 {
				topic := create(t, e, fmt.Sprint(i), engine.TopicConfig{
					Partitions: 2, OnFull: full, MaxRecordBytes: 32 << 10, Partitioner: engine.RoundRobin(), Retention: keep,
				})
				subscribe(t, topic, handle(func(m *engine.Message) error {
					if m.Offset%16 == 0 {
						runtime.Gosched()
					}
					delivered.Add(1)
					return nil
				}), engine.SubscribeConfig{OnGap: func(g engine.GapError) { lost.Add(g.Lost()) }})
				work.Go(func() {
					rnd := rand.New(rand.NewPCG(uint64(i), 0))
					for range rounds(5000) {
						switch _, err := topic.Publish(background, engine.Record{Value: make([]byte, 1+rnd.IntN(4<<10))}); {
						case err == nil:
							accepted.Add(1)
						case errors.Is(err, engine.ErrFull):
							refused.Add(1)
							runtime.Gosched()
						default:
							t.Errorf("publish: %v", err)
						}
					}
				})
			}
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				for !over.Load() {
					s := e.Stats()
					assert.LessOrEqual(t, s.MemoryUsed+s.MemoryKept, int64(most))
					runtime.Gosched()
				}
			}()
			work.Wait()
			require.NoError(t, e.Drain(background))
			over.Store(true)
			<-watched
			assert.Positive(t, accepted.Load())
			assert.Equal(t, accepted.Load(), delivered.Load()+lost.Load())
			if full != engine.DropOldest {
				assert.Zero(t, lost.Load())
			}
			if full == engine.Block {
				assert.Zero(t, refused.Load())
			}
		})
	}
}

// TestMaxMemory_RoomFromElsewhere: publishers that wait for memory which other topics have go on when those give it back, by
// whatever way.
func TestMaxMemory_RoomFromElsewhere(t *testing.T) {
	watchdog(t)
	for name, free := range map[string]func(e *engine.Engine, topic *engine.Topic, s *engine.Subscription){
		"DeleteTopic": func(e *engine.Engine, topic *engine.Topic, _ *engine.Subscription) {
			assert.NoError(t, e.DeleteTopic(topic.Name()))
		},
		"TruncateBefore": func(_ *engine.Engine, topic *engine.Topic, _ *engine.Subscription) {
			p := part(t, topic, 0)
			assert.NoError(t, p.TruncateBefore(background, p.Next()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, engine.Config{MaxMemory: 256 << 10})
			hog := create(t, e, "hog", engine.TopicConfig{})
			s := subscribe(t, hog, ignore, engine.SubscribeConfig{})
			require.NoError(t, s.Pause())
			ctx, cancel := context.WithCancel(background)
			go func() {
				// It takes all there is, and then waits for memory itself.
				await(func() bool { return part(t, hog, 0).Stats().Blocked > 0 })
				cancel()
			}()
			var err error
			for err == nil {
				_, err = hog.Publish(ctx, engine.Record{Value: make([]byte, 2<<10)})
			}
			require.ErrorIs(t, err, context.Canceled)

			other := create(t, e, "other", engine.TopicConfig{})
			var done sync.WaitGroup
			for range 3 {
				done.Go(func() {
					_, err := other.Publish(background, value("x"))
					assert.NoError(t, err)
				})
			}
			await(func() bool { return part(t, other, 0).Stats().Blocked > 0 })
			free(e, hog, s)
			done.Wait()
		})
	}
}

// TestSubscriptions_Goroutines: none for a subscription, however many; one for each partition of a dedicated one, until it ends.
func TestSubscriptions_Goroutines(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 2})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 4})
	before := runtime.NumGoroutine()
	var subs []*engine.Subscription
	for range 100 {
		subs = append(subs, subscribe(t, topic, ignore, engine.SubscribeConfig{MaxLag: 1000}))
	}
	for i := range 4 {
		publish(t, topic, i, 10)
	}
	caughtUp(subs...)
	await(func() bool { return runtime.NumGoroutine() <= before })
	d := subscribe(t, topic, ignore, engine.SubscribeConfig{Dedicated: true})
	assert.LessOrEqual(t, runtime.NumGoroutine(), before+4) // less if one of an earlier test has only now ended
	d.Close()
	await(func() bool { return runtime.NumGoroutine() <= before })
}

// TestBUG110_NoMemoryAfterwards: a subscription that has ended gives back the memory that it stood in.
func TestBUG110_NoMemoryAfterwards(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	for i := range 10 {
		topic := create(t, e, "t", engine.TopicConfig{})
		s := subscribe(t, topic, batchFunc(func(context.Context, []engine.Message) error { return nil }), engine.SubscribeConfig{})
		require.NoError(t, topic.PublishBatch(background, make([]engine.Record, 100)))
		caughtUp(s)
		if i%2 == 0 {
			s.Close()
			<-s.Done()
		}
		require.NoError(t, e.DeleteTopic("t"))
		<-s.Done()
		assert.Zero(t, e.Stats().MemoryUsed)
		if i%2 == 0 {
			assert.Positive(t, e.Stats().MemoryKept, "all can be used again")
		}
	}
	assert.Less(t, e.Stats().MemoryKept, int64(1<<20))
}
