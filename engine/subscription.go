package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/names"
	"github.com/leatlog/leat/engine/internal/partition"
)

// Subscription pushes every record of a topic to a handler: a broadcast, with a position of its own in each partition. All
// its methods may be called from any goroutine, its handler included.
type Subscription struct {
	// Immutable after Subscribe.
	t     *Topic
	id    string
	named bool
	seq   uint64 // tells it from others that have had its id
	cfg   SubscribeConfig
	bury  func(ctx context.Context, m *Message, err error) error
	lane  *delivery.Config // of every lane
	opt   dispatch.Options // of every lane's task
	ctx   context.Context  // the parent of what the handler gets
	stop  context.CancelFunc
	done  chan struct{} // closed when no handler runs and none will

	// lanes has one for each partition. It is replaced under mu while the subscription lives, and loaded by everybody. Storing
	// it publishes the lanes.
	lanes list[delivery.Runner]

	mu     sync.Mutex
	left   int   // under mu: lanes that have not ended, and one for halt
	err    error // under mu: what ended the subscription
	paused bool  // under mu: it was paused as a whole, and so will be lanes that come
}

// Subscribe starts delivering records to h.
func (t *Topic) Subscribe(h Handler, c SubscribeConfig) (*Subscription, error) {
	if h == nil {
		return nil, configError("Handler is nil")
	}
	if f, ok := h.(HandlerFunc); ok && f == nil {
		return nil, configError("Handler is nil")
	}
	c, err := c.withDefaults(t.e.cfg.Workers)
	if err != nil {
		return nil, err
	}
	s := &Subscription{t: t, named: c.ID != "", cfg: c, seq: t.e.subs.Add(1), done: make(chan struct{})}
	if !s.named {
		s.cfg.ID = fmt.Sprintf("#%d", s.seq) // no user can give that name
	} else if err := names.Check(c.ID); err != nil {
		return nil, fmt.Errorf("%w: subscription %w", ErrName, err)
	}
	s.id = s.cfg.ID
	if s.bury, err = t.e.burier(c.DeadLetter, s.id); err != nil {
		return nil, err
	}
	switch _, batch := h.(BatchHandler); {
	case c.DeadLetter == t.name:
		return nil, configError("DeadLetter is the topic itself")
	case batch && c.ByKey.Handlers > 0:
		return nil, configError("ByKey is not for a BatchHandler")
	}
	if err := c.Start.ready(t.made.load()...); err != nil {
		return nil, err
	}
	s.ctx, s.stop = context.WithCancel(t.e.ctx)

	// The lanes are made under mu, so that the topic cannot end between a look and the entry in subs.
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.cause != nil:
		err = t.cause
	case t.subs[s.id] != nil:
		err = fmt.Errorf("%w: %s of topic %s", ErrSubscriptionExists, s.id, t.name)
	default:
		err = s.makeLanes(h)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	t.subs[s.id] = s
	for _, l := range s.lanes.load() {
		l.Start()
	}
	return s, nil
}

// makeLanes makes a lane for each partition, or none. The caller holds t.mu.
func (s *Subscription) makeLanes(h Handler) error {
	t, c := s.t, s.cfg
	s.lane = &delivery.Config{
		Topic:         t.name,
		Handler:       delivery.Handler{One: h.OnMessage},
		AtMostOnce:    c.Mode == AtMostOnce,
		Backoff:       c.Backoff,
		MaxDeliveries: c.MaxDeliveries,
		BatchSize:     c.BatchSize,
		ErrorOnGap:    c.Gap == FailOnGap,
		Parallel:      c.ByKey.Handlers,
		MaxInFlight:   c.ByKey.MaxInFlight,
		MaxKeys:       c.ByKey.MaxKeys,
		Bury:          s.bury,
		Clock:         &t.e.clock,
		Rested:        &t.e.rested,
		OnGap:         s.onGap,
		OnFailure:     s.onFailure,
		OnDrop:        s.onDrop,
		OnEnd:         s.laneEnded,
		OnEvicted:     s.evicted,
	}
	if b, ok := h.(BatchHandler); ok {
		s.lane.Handler = delivery.Handler{Batch: b.OnBatch}
	}
	s.opt.Dedicated = c.Dedicated
	if !c.Dedicated { // also if there are few partitions: there may be more one day
		s.opt.Limiter = t.e.work.NewLimiter(c.MaxConcurrency)
	}
	before, known := t.positions[s.id]
	parts := t.made.load()
	lanes := make([]delivery.Runner, 0, len(parts))
	for i, p := range parts {
		start := c.Start.in(p.p, startLatest)
		if known && c.Start == (Start{}) {
			start = before.resume(i, Offset(t.cfg.first))
		}
		l, err := s.newLane(p, start)
		if err != nil {
			s.lane.OnEnd = func(error) {} // the subscription never was
			for _, l := range lanes {
				l.Stop(err)
				l.Start()
			}
			return err
		}
		lanes = append(lanes, l)
	}
	s.left = len(lanes) + 1
	s.lanes.store(lanes)
	return nil
}

// newLane makes the lane for a partition.
func (s *Subscription) newLane(p *Partition, start delivery.Start) (delivery.Runner, error) {
	gate := &partition.Gate{Name: s.id, Gating: !s.cfg.NonGating, MaxLag: uint64(s.cfg.MaxLag)}
	if s.cfg.Mode == Manual {
		return s.newSolo(p, gate, start)
	}
	return newRunner(s.ctx, s.lane, p.p, gate, s.t.e.work, s.opt, start)
}

// ID returns the subscription's name.
func (s *Subscription) ID() string { return s.id }

// Topic returns the topic.
func (s *Subscription) Topic() *Topic { return s.t }

// of returns the lane of a partition.
func (s *Subscription) of(partition int) (delivery.Runner, error) {
	lanes := s.lanes.load()
	if partition < 0 || partition >= len(lanes) {
		return nil, s.t.unknownPartition(partition, len(lanes))
	}
	return lanes[partition], nil
}

// some returns the lanes of the given partitions, or all if none is given.
func (s *Subscription) some(partitions []int) ([]delivery.Runner, error) {
	if len(partitions) == 0 {
		return s.lanes.load(), nil
	}
	lanes := make([]delivery.Runner, 0, len(partitions))
	for _, i := range partitions {
		l, err := s.of(i)
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, l)
	}
	return lanes, nil
}

// Pause stops deliveries from the given partitions, or from all: none begins after it returned. One that is going on may
// still end. A paused subscription holds back publishers like a slow one. If all are paused, so are those that the topic gets
// later, until all are resumed.
func (s *Subscription) Pause(partitions ...int) error {
	s.pauseAll(partitions, true)
	lanes, err := s.some(partitions)
	for _, l := range lanes {
		l.Pause()
	}
	return err
}

// Resume lets them go on with the record that was next.
func (s *Subscription) Resume(partitions ...int) error {
	s.pauseAll(partitions, false)
	lanes, err := s.some(partitions)
	for _, l := range lanes {
		l.Resume()
	}
	return err
}

// pauseAll notes what is to hold for lanes that come later, if no partitions are given. The caller looks at the lanes there are
// only then: one that is being added goes by the note, or is there.
func (s *Subscription) pauseAll(partitions []int, on bool) {
	if len(partitions) == 0 {
		s.mu.Lock()
		s.paused = on
		s.mu.Unlock()
	}
}

// Seek makes the record that to says the next one that is delivered of a partition. It takes effect at once, also while a
// handler runs, and cannot be undone by that handler's return. Publishers do not wait for what is read again.
func (s *Subscription) Seek(partition int, to Start) error {
	l, err := s.of(partition)
	if err != nil {
		return err
	}
	p := s.t.made.load()[partition]
	if err := to.ready(p); err != nil {
		return err
	}
	return l.Seek(to.from(p.p, l.Position()))
}

// Position returns the offset of the next record to process: everything below it is processed, or was skipped by Seek.
func (s *Subscription) Position(partition int) (Offset, error) {
	l, err := s.of(partition)
	if err != nil {
		return 0, err
	}
	return l.Position(), nil
}

// Lag returns how many records of all partitions wait to be processed.
func (s *Subscription) Lag() (n int64) {
	for _, l := range s.lanes.load() {
		n += l.Lag()
	}
	return n
}

// Close ends the subscription: no delivery begins after it returned. One that is going on may still end, which Done tells.
// The positions of a named subscription are remembered; one that takes the ID before Done begins with the record whose
// handler was running then. Closing again does nothing.
func (s *Subscription) Close() { s.end(ErrSubscriptionClosed) }

// Done is closed when the subscription has ended and its last handler has returned.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Err returns nil while the subscription is alive, and then what ended it: ErrSubscriptionClosed, ErrEvicted, ErrClosed,
// ErrTopicDeleted, an *OffsetError under FailOnGap, or a *LoadError if records cannot be read from the files.
func (s *Subscription) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end ends the subscription and tells about it.
func (s *Subscription) end(cause error) {
	if s.halt(cause) {
		s.tell()
	}
}

// halt ends all lanes: when it returns no delivery begins any more, whoever was first. It reports whether this call was; the
// first cause counts, and the first caller has to tell. No code of the user's runs in it.
func (s *Subscription) halt(cause error) (first bool) {
	s.mu.Lock()
	if first = s.err == nil; first {
		s.err = cause
	}
	s.mu.Unlock()
	for _, l := range s.lanes.load() { // all there will be: none is added once err is set
		l.Stop(cause)
	}
	if first {
		s.stop()
		s.t.ending(s)
		s.oneLess()
		s.t.e.rested.Broadcast() // Drain waits for it no longer
	}
	return first
}

// tell tells what ended the subscription.
func (s *Subscription) tell() {
	e, cause := s.t.e, s.Err()
	e.log(slog.LevelInfo, "leat: subscription ended", "topic", s.t.name, "subscription", s.id, "cause", cause)
	if f := e.cfg.Hooks.SubscriptionEnded; f != nil {
		e.guard(func() { f(s.t.name, s.id, cause) })
	}
}

// laneEnded is told by each lane when it has ended.
func (s *Subscription) laneEnded(cause error) {
	defer s.oneLess() // also if a hook ends the goroutine
	if s.Err() == nil {
		s.end(cause) // all others go with it
	}
}

// oneLess counts what has ended.
func (s *Subscription) oneLess() {
	s.mu.Lock()
	s.left--
	last := s.left == 0
	s.mu.Unlock()
	if last {
		s.t.ended(s)
		close(s.done)
	}
}

// evicted is told that a lane has been put out. Its handler may be hung, and the caller holds a partition's role, so
// somebody else ends the subscription.
func (s *Subscription) evicted() {
	s.t.e.spawn(func() {
		if at, _ := s.t.Subscription(s.id); at == s { // not before Subscribe is through
			s.end(ErrEvicted)
		}
	})
}

// remembered is where a named subscription ended.
type remembered struct {
	seq uint64 // of the subscription
	at  []Offset
}

// resume starts there. What was dropped since then becomes a gap notice. A partition that has come since then starts with the
// first record that was ever published to it.
func (r remembered) resume(partition int, first Offset) delivery.Start {
	off := first
	if partition < len(r.at) {
		off = r.at[partition]
	}
	return func(_, next uint64) (uint64, error) { return min(uint64(off), next), nil }
}

// ending takes s off the list of the living, and remembers where it is.
func (t *Topic) ending(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subs[s.id] == s {
		delete(t.subs, s.id)
		t.closed[s] = struct{}{}
	}
	if s.named && t.cause == nil {
		t.positions[s.id] = remembered{s.seq, s.positions()}
	}
}

// ended takes s off the topic: no handler of it runs. If it was the last of its ID it remembers where that left it.
func (t *Topic) ended(s *Subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.closed, s)
	if t.positions[s.id].seq == s.seq && t.subs[s.id] == nil {
		t.positions[s.id] = remembered{s.seq, s.positions()}
	}
}

// positions returns where the lanes are.
func (s *Subscription) positions() []Offset {
	lanes := s.lanes.load()
	at := make([]Offset, len(lanes))
	for i, l := range lanes {
		at[i] = l.Position()
	}
	return at
}

// ForgetPositions forgets where the last subscription of that ID ended.
func (t *Topic) ForgetPositions(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.cause != nil:
		return t.cause
	case t.subs[id] != nil:
		return fmt.Errorf("%w: %s of topic %s", ErrSubscriptionExists, id, t.name)
	case t.positions[id].at == nil:
		return fmt.Errorf("%w: %s of topic %s", ErrUnknownSubscription, id, t.name)
	}
	delete(t.positions, id)
	return nil
}

// Subscription returns the live subscription of that ID.
func (t *Topic) Subscription(id string) (*Subscription, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return nil, t.cause
	}
	if s := t.subs[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: %s of topic %s", ErrUnknownSubscription, id, t.name)
}

func (s *Subscription) onGap(partition int, from, to int64) {
	e, gap := s.t.e, GapError{Partition: partition, From: from, To: to}
	e.log(slog.LevelWarn, "leat: records dropped before they were delivered", "topic", s.t.name, "subscription", s.id,
		"partition", partition, "from", from, "to", to)
	if s.cfg.OnGap != nil {
		e.guard(func() { s.cfg.OnGap(gap) })
	}
	if f := e.cfg.Hooks.Gap; f != nil {
		e.guard(func() { f(s.t.name, s.id, gap) })
	}
}

func (s *Subscription) onFailure(ctx context.Context, m *Message, err error) {
	s.t.e.handlerFailed(ctx, m, err, s.id)
}

func (s *Subscription) onDrop(ctx context.Context, m *Message, err error) {
	s.t.e.recordDropped(ctx, m, err, s.id)
}

// handlerFailed tells of a failed delivery to a subscription or group.
func (e *Engine) handlerFailed(ctx context.Context, m *Message, err error, consumer string) {
	if p := (*PanicError)(nil); errors.As(err, &p) {
		e.log(slog.LevelError, "leat: handler panicked", "topic", m.Topic, "subscription", consumer, "partition", m.Partition,
			"offset", m.Offset, "panic", p.Value, "stack", string(p.Stack))
	}
	if f := e.cfg.Hooks.HandlerFailed; f != nil {
		e.guard(func() { f(ctx, consumer, m, err) })
	}
}

// recordDropped tells of a record that was given up.
func (e *Engine) recordDropped(ctx context.Context, m *Message, err error, consumer string) {
	e.log(slog.LevelError, "leat: record given up", "topic", m.Topic, "subscription", consumer, "partition", m.Partition,
		"offset", m.Offset, "attempts", m.Attempt, "error", err)
	if f := e.cfg.Hooks.Dropped; f != nil {
		e.guard(func() { f(ctx, consumer, m, err) })
	}
}
