package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/check"
)

// chaosSub is a subscription of a run.
type chaosSub struct {
	*chaosConsumer
	topic *chaosTopic
	sub   *engine.Subscription
}

// subscribeAll gives a topic subscriptions of all kinds.
func (x *chaosRun) subscribeAll(rng *rand.Rand, ct *chaosTopic) {
	x.subscribe(rng, ct, "ordered", engine.AtLeastOnce, engine.SubscribeConfig{})
	x.subscribe(rng, ct, "once", engine.AtMostOnce, engine.SubscribeConfig{})
	x.subscribe(rng, ct, "keyed", engine.AtLeastOnce, engine.SubscribeConfig{ByKey: engine.Parallelism{Handlers: 2 + rng.IntN(chaosHandlers-1), MaxInFlight: 1 + rng.IntN(50)}})
	x.subscribe(rng, ct, "manual", engine.Manual, engine.SubscribeConfig{})
	x.subscribe(rng, ct, "batches", engine.Mode(rng.IntN(3)), engine.SubscribeConfig{BatchSize: 1 + rng.IntN(20)})
}

// subscribe adds a subscription that stays.
func (x *chaosRun) subscribe(rng *rand.Rand, ct *chaosTopic, what string, mode engine.Mode, c engine.SubscribeConfig) {
	c.NonGating = rng.IntN(4) == 0 && ct != x.out
	s := newChaosSub(rng, x, ct, ct.Name()+"-"+what, mode, c)
	x.subs = append(x.subs, s)
	require.NoError(x.t, s.start(rng, engine.Earliest(), c))
}

func newChaosSub(rng *rand.Rand, x *chaosRun, ct *chaosTopic, name string, mode engine.Mode, c engine.SubscribeConfig) *chaosSub {
	s := &chaosSub{topic: ct, chaosConsumer: &chaosConsumer{name: name, kind: check.Broadcast, mode: mode}}
	s.choose(rng)
	s.forwards = s.forwards && ct != x.out
	s.register(x, check.ConsumerConfig{ByKey: c.ByKey.Handlers > 0, Handlers: c.ByKey.Handlers, Protected: !ct.trims && !c.NonGating})
	return s
}

// start makes the subscription.
func (s *chaosSub) start(rng *rand.Rand, at engine.Start, c engine.SubscribeConfig) (err error) {
	c.ID, c.Start, c.Mode, c.MaxDeliveries, c.Backoff = s.name, at, s.mode, chaosDeliveries, s.backoff()
	c.DeadLetter, c.DeadLetterRejected = s.deadLetter(), s.rejected
	c.Settling = s.settling(rng)
	c.Dedicated = rng.IntN(8) == 0
	c.OnGap = func(gap engine.GapError) { s.gap(s.topic.Name(), gap) }
	var h engine.Handler = engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error { return s.handle(ctx, nil, m) })
	if c.BatchSize > 0 {
		h = batchFunc(func(ctx context.Context, ms []engine.Message) error { return s.handleBatch(ctx, nil, ms) })
	}
	s.sub, err = s.topic.Subscribe(h, c)
	return err
}

// over reports whether it has ended.
func (s *chaosSub) over() bool { return s.sub.Err() != nil }

// seek puts the subscription somewhere.
func (s *chaosSub) seek(rng *rand.Rand) {
	i := rng.IntN(s.topic.Partitions())
	p, err := s.topic.Partition(i)
	if err != nil {
		return
	}
	first, next := p.First(), p.Next()
	to := first + rng.Int64N(next-first+1)
	s.x.strike(faultSeek)
	s.excuse(s.topic.Name(), i)
	o := s.x.control.Seek(s.consumer, s.topic.part(s.x, i), to)
	_ = o.Done(s.sub.Seek(i, engine.At(to)))
}

// pause pauses the subscription for a while.
func (s *chaosSub) pause(rng *rand.Rand) {
	s.x.strike(faultPause)
	_ = s.sub.Pause()
	time.AfterFunc(time.Duration(rng.IntN(4))*time.Millisecond, func() { _ = s.sub.Resume() })
}

// settled checks where the subscription is in the end.
func (s *chaosSub) settled(log *check.Log, i int, cp check.Partition, end engine.Offset) {
	c := log.Committed(s.consumer, cp)
	at := position(s.x.t, s.sub, i)
	c.Is(at)
	require.Equal(s.x.t, end, at, "seed %d: %s, partition %d", s.x.seed, s.name, i)
	log.Idle(s.consumer, cp).Ok()
}

// comeAndGo lets a subscription come, or another one go.
func (x *chaosRun) comeAndGo(rng *rand.Rand, ct *chaosTopic) {
	x.mu.Lock()
	n := len(x.temps)
	var old *chaosSub
	if n > 3 || n > 0 && rng.IntN(2) == 0 {
		i := rng.IntN(n)
		old = x.temps[i]
		x.temps = append(x.temps[:i:i], x.temps[i+1:]...)
	}
	x.mu.Unlock()
	if old != nil {
		x.strike(faultUnsubscribe)
		o := x.control.Leave(old.consumer, 0)
		old.sub.Close()
		<-old.sub.Done()
		old.excuse("", 0)
		o.Ok()
		return
	}
	p, err := ct.Partition(0)
	if err != nil {
		return
	}
	var c engine.SubscribeConfig
	if rng.IntN(3) == 0 {
		c.BatchSize = 5
	}
	c.NonGating = true
	s := newChaosSub(rng, x, ct, fmt.Sprintf("temp-%d", rng.Uint64()), engine.Mode(rng.IntN(3)), c)
	starts := []engine.Start{engine.Earliest(), engine.Latest(), engine.Last(10), engine.Since(time.Now().Add(-time.Millisecond)), engine.At(p.First())}
	if s.start(rng, starts[rng.IntN(len(starts))], c) != nil {
		return // it is deleted, or there is no such offset any more
	}
	x.strike(faultSubscribe)
	x.mu.Lock()
	x.temps = append(x.temps, s)
	x.mu.Unlock()
}
