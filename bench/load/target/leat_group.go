package target

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/stream"
	"github.com/leatlog/leat/engine"
)

const (
	topicName = "load"
	deadName  = "dead"
	groupName = "group"

	leatBehind  = 2 << 30                // bytes: how much may be behind a slow member, in all partitions
	leatBlocked = 200 * time.Microsecond // handlers that take longer sleep, and there are workers for all of them
)

// OpenGroup implements load.GroupTarget. Members are a group on the topic of Leat, or subscriptions of it; what is given up goes
// to a dead-letter topic. Where one is slow, the topic keeps all that is published meanwhile.
func (Leat) OpenGroup(s load.Scenario) (load.GroupInstance, error) {
	l, err := open(s)
	if err != nil {
		return nil, err
	}
	g := &leatGroup{leat: l, c: s.Group}
	if err := g.attach(); err != nil {
		return nil, errors.Join(err, g.engine.Close())
	}
	return g, nil
}

// keeps returns how many bytes each partition must keep for a scenario.
func keeps(s *load.Scenario) (int64, error) {
	if err := fits(s, leatNeeds(s)); err != nil {
		return 0, err
	}
	need := kept(s)
	var all float64 // bytes that may come meanwhile, at the most
	who := "the slow member does not keep up"
	switch {
	case s.Stop > 0:
		all = s.Rate * (s.Stop + time.Second).Seconds() * (s.Sizes.Mean() + 64)
		who = "the readers are stopped"
	case s.Group.Slow > 0 || s.Group.Hang:
		// What is published in the second half, at the most; the first half and the warm-up are for where producers are ahead.
		all = s.Rate * (s.Warmup + s.Duration).Seconds() * (s.Sizes.Mean() + 32)
	}
	if all > leatBehind {
		return 0, fmt.Errorf("%w: rate %g: what comes while %s, up to %.1f GB, must be kept, and leat keeps %.1f here",
			load.ErrUnsupported, s.Rate, who, all/1e9, float64(leatBehind)/1e9)
	}
	if !s.Keys.None() {
		return need + int64(all), nil
	}
	return need + int64(all)/int64(s.Partitions), nil
}

// kept returns how many bytes a partition keeps without any reason to keep more: what stays in the caches and lets a reader fall behind,
// and less where there are very many partitions.
func kept(s *load.Scenario) int64 {
	most := max(leatBytes, 64*int64(s.Size))
	return max(keptLeast(int64(s.Size)), min(most, leatAll/max(places(s), 1)))
}

// keptLeast is how many bytes a partition keeps at the least, of messages of a size.
func keptLeast(size int64) int64 { return max(leatLeast, leatHeld*(size+stream.KeyMost)) }

// deadRecord is how large a dead letter may be: a message and its headers.
func deadRecord(size int64) int64 { return size + stream.KeyMost + 4<<10 }

// dead is the configuration of the topic of dead letters, which keeps what the others keep, about.
func dead(s *load.Scenario) engine.TopicConfig {
	record := deadRecord(int64(s.Size))
	return engine.TopicConfig{
		Partitions: s.Partitions, HandoverSlots: slots(s), MaxRecordBytes: int(record),
		Retention: engine.Retention{MaxBytes: max(leatHeld*record, min(leatDead, leatAll/max(places(s), 1)))},
	}
}

// leatNeeds returns what leat needs at the least, for messages of a size: what each partition keeps, what may be on its way there, and
// batches of one message.
func leatNeeds(s *load.Scenario) func(size int64) int64 {
	return func(size int64) int64 {
		each := keptLeast(size) + leatHeld*size // a large record takes a quarter of the hand-over
		if s.Group.Kind != "" && s.Group.Mode != load.AtMostOnce {
			each += leatHeld * deadRecord(size)
		}
		all := places(s) * each
		if s.Publish == "batch" {
			all += int64(s.Producers) * int64(s.Partitions) * size
		}
		return all
	}
}

// slots returns how many records may be on their way to the appender of a partition; 0 is what leat has by itself.
func slots(s *load.Scenario) int {
	if s.Partitions <= leatMany {
		return 0
	}
	return min(max(leatSlots, 4*s.Size/80), 8*leatSlots)
}

// workers returns how many workers a scenario needs: for handlers that sleep one each, or else what leat has by itself. So
// handlers of a slow member have to do with what there is.
func workers(c *load.Group, partitions int) int {
	switch {
	case c.Handler < leatBlocked || c.Poll:
		return 0
	case c.Kind == load.Shared:
		return max(4, c.Members*max(c.Concurrency, 1)+2)
	case c.Kind == load.Broadcast:
		return max(4, c.Members*partitions+2)
	}
	return max(4, partitions+2)
}

// leatGroup is a leat whose readers are a group, or subscriptions.
type leatGroup struct {
	*leat
	c     load.Group
	group *engine.Group // nil of a Broadcast
	polls sync.WaitGroup

	mu   sync.Mutex
	subs []*engine.Subscription // under mu: of a Broadcast
}

// attach makes the dead-letter topic and the group.
func (g *leatGroup) attach() (err error) {
	c := &g.c
	if c.Mode != load.AtMostOnce {
		_, err := g.engine.CreateTopic(deadName, dead(&g.s))
		if err != nil {
			return err
		}
	}
	if c.Kind == load.Broadcast {
		return nil
	}
	cfg := engine.GroupConfig{
		Topics: []string{topicName}, Start: engine.Earliest(), Mode: g.mode(), Settling: g.settling(), DeadLetter: g.deadLetter(),
		Backoff: []time.Duration{c.Backoff}, MaxDeliveries: c.Deliveries, ProgressTimeout: c.Timeout,
	}
	if c.Kind == load.Shared {
		cfg.Kind = engine.Shared
	}
	g.group, err = g.engine.CreateGroup(groupName, cfg)
	return err
}

func (g *leatGroup) mode() engine.Mode {
	switch g.c.Mode {
	case load.AtMostOnce:
		return engine.AtMostOnce
	case load.Manual:
		return engine.Manual
	default:
		return engine.AtLeastOnce
	}
}

func (g *leatGroup) settling() engine.Settling {
	if g.c.Timeout == 0 {
		return engine.Settling{}
	}
	return engine.Settling{AckWait: []time.Duration{g.c.Timeout}}
}

func (g *leatGroup) deadLetter() string {
	if g.c.Mode == load.AtMostOnce {
		return ""
	}
	return deadName
}

// Join implements load.GroupInstance.
func (g *leatGroup) Join(name string, sink load.Sink) (load.Seat, error) {
	c := &g.c
	handler := g.handler(sink)
	if c.Kind == load.Broadcast {
		t, err := g.topic.Subscribe(handler, engine.SubscribeConfig{
			ID: name, Start: engine.Earliest(), Mode: g.mode(), Settling: g.settling(), DeadLetter: g.deadLetter(),
			Backoff: []time.Duration{c.Backoff}, MaxDeliveries: c.Deliveries, MaxConcurrency: c.Concurrency,
			BatchSize: load.BatchMost,
		})
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.subs = append(g.subs, t)
		return subscriber{t}, nil
	}
	cfg := engine.MemberConfig{
		Name: name, MaxConcurrency: c.Concurrency, BatchSize: load.BatchMost,
		OnLost: func(lost []engine.Assignment, _ error) {
			parts := make([]int, len(lost))
			for i, a := range lost {
				parts[i] = a.Partition
			}
			sink.Lost(parts)
		},
	}
	if c.Poll {
		return g.poll(cfg, sink)
	}
	m, err := g.group.Join(handler, cfg)
	if err != nil {
		return nil, err
	}
	return pushMember{g.group, m}, nil
}

// handler returns what calls a sink.
func (g *leatGroup) handler(sink load.Sink) engine.Handler {
	if g.c.Ack == load.AckBatch {
		return batches{sink}
	}
	manual := g.c.Mode == load.Manual
	return engine.HandlerFunc(func(_ context.Context, m *engine.Message) error {
		var how load.Settler
		if manual {
			how = m
		}
		return sink.Deliver(delivery(m), how)
	})
}

func delivery(m *engine.Message) load.Delivery {
	return load.Delivery{Partition: int(m.Partition), Payload: m.Value, Attempt: m.Attempt}
}

// deliveries is delivery for some.
func deliveries(ms []engine.Message) []load.Delivery {
	ds := make([]load.Delivery, len(ms))
	for i := range ms {
		ds[i] = delivery(&ms[i])
	}
	return ds
}

// batches acknowledges each batch by its last message.
type batches struct{ sink load.Sink }

func (b batches) OnMessage(_ context.Context, m *engine.Message) error {
	return b.sink.Deliver(delivery(m), m)
}

func (b batches) OnBatch(_ context.Context, ms []engine.Message) error {
	b.sink.Batch(deliveries(ms), ms[len(ms)-1].AckThrough)
	return nil
}

// pushMember is a member with a handler.
type pushMember struct {
	group *engine.Group
	*engine.Member
}

func (m pushMember) Leave()                { m.Close() }
func (m pushMember) Evict() error          { return m.group.Evict(m.Name()) }
func (m pushMember) Gone() <-chan struct{} { return m.Done() }

// pollMember is a member that polls.
type pollMember struct {
	group *engine.Group
	name  string
	leave context.CancelFunc
	gone  chan struct{}
}

func (m pollMember) Leave()                { m.leave() }
func (m pollMember) Evict() error          { return m.group.Evict(m.name) }
func (m pollMember) Gone() <-chan struct{} { return m.gone }

// poll lets a member in that polls.
func (g *leatGroup) poll(cfg engine.MemberConfig, sink load.Sink) (load.Seat, error) {
	c, err := g.group.Consumer(cfg)
	if err != nil {
		return nil, err
	}
	ctx, leave := context.WithCancel(context.Background())
	m := pollMember{g.group, cfg.Name, leave, make(chan struct{})}
	g.polls.Go(func() {
		defer close(m.gone)
		defer leave()
		for {
			ms, err := c.Poll(ctx, load.PollMost)
			if err != nil { // it is to leave, or is out
				break
			}
			g.polled(c, ms, sink)
		}
		c.Close()
		<-c.Done()
	})
	return m, nil
}

// polled delivers what a poll has returned. At-least-once, the next poll commits it.
func (g *leatGroup) polled(c *engine.Consumer, ms []engine.Message, sink load.Sink) {
	if g.c.Ack == load.AckBatch {
		sink.Batch(deliveries(ms), c.Commit)
		return
	}
	for i := range ms {
		var how load.Settler
		if g.c.Mode == load.Manual {
			how = &ms[i]
		}
		_ = sink.Deliver(delivery(&ms[i]), how) // only in Manual mode may it fail, and then it has been told
	}
}

// subscriber is a member of a Broadcast.
type subscriber struct{ t *engine.Subscription }

func (m subscriber) Leave() { m.t.Close() }
func (m subscriber) Evict() error {
	return fmt.Errorf("%w: evict: subscriptions are not put out", load.ErrUnsupported)
}
func (m subscriber) Gone() <-chan struct{} { return m.t.Done() }

// Dead implements load.GroupInstance.
func (g *leatGroup) Dead(deliver func(member, partition int, payload []byte, attempts int)) error {
	if g.deadLetter() == "" {
		return nil
	}
	t, err := g.engine.Topic(deadName)
	if err != nil {
		return err
	}
	_, err = t.Subscribe(engine.HandlerFunc(func(_ context.Context, m *engine.Message) error {
		header := func(name string) string {
			v, _ := m.Headers.Get(name)
			return string(v)
		}
		number := func(s string) int {
			n, err := strconv.Atoi(s)
			if err != nil {
				return math.MaxInt32 // which is no partition, and so is not taken for one
			}
			return n
		}
		member := 0
		if g.c.Kind == load.Broadcast {
			member = number(strings.TrimPrefix(header(engine.HeaderConsumer), "m"))
		}
		partition := number(header(engine.HeaderPartition))
		if partition >= g.s.Partitions || member >= g.c.Members {
			partition, member = 0, 0 // where it counts as corrupt
		}
		deliver(member, partition, m.Value, number(header(engine.HeaderAttempts)))
		return nil
	}), engine.SubscribeConfig{Start: engine.Earliest()})
	return err
}

// Positions implements load.GroupInstance.
func (g *leatGroup) Positions(member, partition int) (position, end int64, err error) {
	end = g.parts[partition].Next()
	if g.group != nil {
		position, err = g.group.Committed(topicName, partition)
		return position, end, err
	}
	g.mu.Lock()
	t := g.subs[member]
	g.mu.Unlock()
	position, err = t.Position(partition)
	return position, end, err
}

// Figures implements load.GroupInstance.
func (g *leatGroup) Figures() (f load.Figures) {
	if g.group == nil {
		return f
	}
	s := g.group.Stats()
	f.Generation = s.Generation
	for i := range s.Partitions {
		f.Expired += uint64(s.Partitions[i].Expired)
		f.Fenced += uint64(s.Partitions[i].Fenced)
	}
	return f
}

// Close implements load.GroupInstance.
func (g *leatGroup) Close() error {
	err := g.engine.Close()
	g.polls.Wait()
	return err
}
