package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/check"
)

const (
	chaosDeliveries = 3
	chaosHandlers   = 4 // by key, at most
	chaosAckWait    = 15 * time.Millisecond
	chaosProgress   = 20 * time.Millisecond
)

// chaosConsumer is what handlers of subscriptions and members have in common.
type chaosConsumer struct {
	x        *chaosRun
	number   uint64
	name     string
	consumer check.Consumer
	mode     engine.Mode
	kind     check.ConsumerKind

	letters  bool // it has a dead-letter topic
	rejected bool // also for what is rejected
	windowed bool // what it gets is settled one by one
	forever  bool // no record is ever given up
	hurried  bool // AckWait is short
	hangs    bool // and is put out for it
	forwards bool // its handlers publish
}

// newConsumer makes a consumer known to the checker. What it is to be is set before.
func (c *chaosConsumer) register(x *chaosRun, cfg check.ConsumerConfig) {
	c.x = x
	cfg.Kind, cfg.Mode = c.kind, check.Mode(c.mode)
	if c.mode != engine.AtMostOnce && !c.forever {
		cfg.MaxDeliveries = chaosDeliveries
	}
	if c.hurried {
		// The time counts from when the engine took the record for its handler, which the log does not see; so anything may be
		// left of it. Those that are not hurried have for ever, and with them it is checked.
		cfg.AckWait = 1
	}
	c.consumer = x.rec.Consumer(c.name, cfg)
	c.number = uint64(c.consumer)
	x.names.Store(c.name, c)
}

// choose rolls what is up to chance.
func (c *chaosConsumer) choose(rng *rand.Rand) {
	c.windowed = c.kind == check.Shared || c.mode == engine.Manual
	c.letters = c.mode != engine.AtMostOnce && !c.forever && rng.IntN(2) == 0
	c.rejected = c.letters && rng.IntN(2) == 0
	c.hurried = c.windowed && rng.IntN(2) == 0
	c.forwards = c.mode == engine.AtLeastOnce && rng.IntN(2) == 0
}

func (c *chaosConsumer) deadLetter() string {
	if c.letters {
		return "dead"
	}
	return ""
}

func (c *chaosConsumer) deliveries() int {
	if c.forever {
		return engine.Unlimited
	}
	return chaosDeliveries
}

func (c *chaosConsumer) backoff() []time.Duration {
	return []time.Duration{time.Millisecond, 2 * time.Millisecond}
}

func (c *chaosConsumer) settling(rng *rand.Rand) engine.Settling {
	s := engine.Settling{MaxInFlight: 1 + rng.IntN(50), AckWait: []time.Duration{time.Hour}}
	if c.hurried {
		s.AckWait = []time.Duration{chaosAckWait, 2 * chaosAckWait}
	}
	return s
}

// gap is OnGap.
func (c *chaosConsumer) gap(topic string, gap engine.GapError) {
	c.x.strike(faultGap)
	c.x.notices.Gap(c.consumer, c.x.topic(topic).part(c.x, gap.Partition), gap.From, gap.To)
}

// dropped is the hook.
func (x *chaosRun) dropped(_ context.Context, consumer string, m *engine.Message, _ error) {
	x.strike(faultDropped)
	if c, ok := x.names.Load(consumer); ok {
		x.notices.Dropped(c.(*chaosConsumer).consumer, x.topic(m.Topic).part(x, int(m.Partition)), m.Offset)
	}
}

// call is the call of a handler.
type call struct {
	*chaosConsumer
	dice
	ctx    context.Context
	member *chaosMember // nil of a subscription
	owner  check.Owner
}

// newCall begins the call of a handler, whose first record is m.
func (c *chaosConsumer) newCall(ctx context.Context, member *chaosMember, m *engine.Message) call {
	k := call{chaosConsumer: c, ctx: ctx, member: member}
	k.owner = check.Owner{Consumer: c.consumer, Partition: c.x.topic(m.Topic).part(c.x, int(m.Partition))}
	if member != nil {
		k.owner.Member = member.member
		if c.kind == check.Assigned {
			k.owner.Gen = member.generation(ctx, m)
		}
	}
	k.dice = newDice(c.x.seed, c.number, uint64(k.owner.Partition), uint64(m.Offset), uint64(m.Attempt))
	return k
}

func (c *chaosConsumer) key(m *engine.Message) deadKey {
	return deadKey{c.name, m.Topic, int(m.Partition), m.Offset}
}

// handle is the handler.
func (c *chaosConsumer) handle(ctx context.Context, member *chaosMember, m *engine.Message) error {
	k := c.newCall(ctx, member, m)
	h := c.x.handlers.Handle(k.owner, m.Offset, m.Attempt, m.Value)
	defer h.FailIfOpen()
	c.delivered(m)
	if err := k.trouble(m); err != nil {
		return h.Done(err)
	}
	if c.mode == engine.Manual {
		k.acknowledge(m)
	}
	return h.Done(nil)
}

// handleBatch is the handler of those that take batches. Where records are settled one by one they may be any; otherwise they
// follow each other.
func (c *chaosConsumer) handleBatch(ctx context.Context, member *chaosMember, ms []engine.Message) error {
	k := c.newCall(ctx, member, &ms[0])
	if !c.windowed {
		values := make([][]byte, len(ms))
		for i := range ms {
			values[i] = ms[i].Value
		}
		h := c.x.handlers.HandleBatch(k.owner, ms[0].Offset, ms[0].Attempt, values...)
		defer h.FailIfOpen()
		for i := range ms {
			c.delivered(&ms[i])
		}
		return h.Done(k.trouble(&ms[0], ms[1:]...))
	}
	hs := c.each(k.owner, ms)
	defer func() {
		for _, h := range hs {
			h.FailIfOpen()
		}
	}()
	err := k.trouble(&ms[0], ms[1:]...)
	for i, h := range hs {
		if err == nil && c.mode == engine.Manual {
			k.acknowledge(&ms[i])
		}
		_ = h.Done(err)
	}
	return err
}

// each begins the handling of the records of a batch that are settled one by one.
func (c *chaosConsumer) each(o check.Owner, ms []engine.Message) []check.Handling {
	given := make([]check.Given, len(ms))
	for i, m := range ms {
		given[i] = check.Given{Off: m.Offset, Attempt: m.Attempt, Value: m.Value}
	}
	return c.x.handlers.HandleEach(o, given...)
}

// trouble is what a handler does instead of its work.
func (k *call) trouble(m *engine.Message, more ...engine.Message) error {
	x := k.x
	if x.quiet.Load() {
		return nil
	}
	poison := newDice(x.seed, k.number, uint64(k.owner.Partition), uint64(m.Offset))
	if poison.roll(50) == 0 && m.Attempt <= chaosDeliveries {
		x.strike(faultPoison)
		return k.fail(m, more)
	}
	switch k.roll(200) {
	case 0, 1, 2, 3, 4, 5:
		x.strike(faultError)
		return k.fail(m, more)
	case 6, 7:
		x.strike(faultPanic)
		panic(k.fail(m, more))
	case 8:
		x.strike(faultGoexit)
		_ = k.fail(m, more)
		runtime.Goexit()
	case 9, 10:
		x.strike(faultSlow)
		k.pause(3 * time.Millisecond)
	case 11:
		if k.hangs && k.roll(4) == 0 {
			x.strike(faultHang)
			time.Sleep(2 * chaosProgress)
		}
	case 12:
		if k.member != nil && k.roll(4) == 0 && k.member.joined.Load() {
			x.strike(faultLeaveInside)
			k.member.leave()
		}
	case 13, 14, 15, 16, 17, 18:
		if k.forwards {
			return k.forward(m)
		}
	case 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39:
		runtime.Gosched()
	}
	return nil
}

// fail notes that records fail, for the last time maybe.
func (k *call) fail(m *engine.Message, more []engine.Message) error {
	if k.letters && !k.windowed && m.Attempt == chaosDeliveries {
		k.x.mu.Lock()
		k.x.given[k.key(m)] = true
		for i := range more {
			k.x.given[k.key(&more[i])] = true
		}
		k.x.mu.Unlock()
	}
	if k.windowed && k.mode != engine.AtMostOnce && k.roll(8) == 0 {
		k.x.strike(faultReject)
		o := k.x.handlers.Reject(k.owner, m.Offset, m.Attempt)
		for i := range more {
			k.x.handlers.Reject(k.owner, more[i].Offset, more[i].Attempt).Unknown()
		}
		o.Unknown()
		return fmt.Errorf("%w: %w", engine.ErrRejected, errPoison)
	}
	return errPoison
}

// delivered notes that a record has been delivered, perhaps once more.
func (c *chaosConsumer) delivered(m *engine.Message) {
	if !c.letters || c.windowed {
		return
	}
	c.x.mu.Lock()
	delete(c.x.given, c.key(m))
	c.x.mu.Unlock()
}

// forward publishes something.
func (k *call) forward(m *engine.Message) error {
	x := k.x
	x.strike(faultForward)
	ctx, cancel := context.WithTimeout(k.ctx, time.Duration(1+k.roll(10))*time.Millisecond)
	defer cancel()
	value := x.rec.Producer().Next(check.MinPayload + k.roll(100))
	send := x.handlers.Send(value)
	at, err := x.out.Publish(ctx, engine.Record{Key: m.Key, Value: value})
	if err != nil {
		send.Fail()
		return err
	}
	send.Ok(x.out.part(x, at.Partition), at.Offset)
	return nil
}

// acknowledge settles a record by hand, now or later, twice or not at all.
func (k *call) acknowledge(m *engine.Message) {
	x, s := k.x, settler{k.chaosConsumer, k.owner, m.Token(), m.Offset, m.Attempt}
	what := k.roll(40)
	if x.quiet.Load() {
		what = 100
	}
	switch what {
	case 0, 1:
		s.nack(time.Duration(k.roll(3)-1) * time.Millisecond)
	case 2:
		s.reject()
	case 3, 4:
		s.extend()
		s.ack()
	case 5, 6:
		if k.kind != check.Shared {
			s.through()
		} else {
			s.ack()
		}
	case 7:
		if !k.hurried {
			s.ack()
			return
		}
		x.strike(faultForget)
	case 8, 9, 10:
		s.later(time.Duration(k.roll(4000))*time.Microsecond, func() { s.ack() })
	case 11:
		if k.hurried {
			s.later(chaosAckWait+time.Duration(k.roll(10000))*time.Microsecond, func() { s.ack() })
		} else {
			s.later(0, func() { s.ack() })
		}
	case 12:
		x.strike(faultAckTwice)
		s.once(s.ack(), s.ack())
	case 13:
		x.strike(faultAckTwice)
		s.once(s.nack(time.Millisecond), s.ack())
	case 14:
		x.strike(faultAckTwice)
		first := s.ack()
		s.later(time.Duration(k.roll(20000))*time.Microsecond, func() { s.once(first, s.nack(0)) })
	default:
		s.ack()
	}
}

// excuse notes that a partition's position is set, so that what was given up need not be buried any more; or with "" that
// everything is over.
func (c *chaosConsumer) excuse(topic string, partition int) {
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	c.x.excused[deadKey{c.name, topic, partition, 0}] = true
}

// bury makes the dead-letter topic, which is often full.
func (x *chaosRun) bury(rng *rand.Rand) {
	c := bounded(4+rng.Int64N(20), engine.Reject)
	x.dead = create(x.t, x.e, "dead", c)
	var mu sync.Mutex
	x.graves = subscribe(x.t, x.dead, handle(func(m *engine.Message) error {
		header := func(name string) string {
			v, _ := m.Headers.Get(name)
			return string(v)
		}
		k := deadKey{consumer: header(engine.HeaderConsumer), topic: header(engine.HeaderTopic)}
		_, _ = fmt.Sscan(header(engine.HeaderPartition), &k.partition)
		_, _ = fmt.Sscan(header(engine.HeaderOffset), &k.offset)
		x.strike(faultBuried)
		if _, _, whole := check.ParsePayload(m.Value); !whole {
			x.t.Errorf("a dead letter is not whole: %+v", k)
		}
		mu.Lock()
		defer mu.Unlock()
		x.buried[k]++
		return nil
	}), engine.SubscribeConfig{ID: "graves", Start: engine.Earliest()})
}

// exhume checks that everything that was given up is in the dead-letter topic, and nothing lies there twice that was given up
// once.
func (x *chaosRun) exhume() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k := range x.given {
		ct := x.topic(k.topic)
		switch {
		case ct.deleted.Load(), x.excused[deadKey{k.consumer, k.topic, k.partition, 0}], x.excused[deadKey{k.consumer, "", 0, 0}]:
		case k.offset < part(x.t, ct.Topic, k.partition).First(): // may have been dropped before
		default:
			require.Positive(x.t, x.buried[k], "seed %d: given up, and not in the dead-letter topic: %+v", x.seed, k)
		}
	}
}
