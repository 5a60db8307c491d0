package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/engine/internal/names"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// Engine holds topics. All its methods may be called from any goroutine, handlers included.
type Engine struct {
	// Immutable after Open.
	cfg    Config
	clock  atomicx.Clock
	pool   *segment.Pool
	work   *dispatch.Pool // runs handlers
	calls  *dispatch.Pool // runs callbacks: a handler may wait for one
	crowd  *partition.Crowd
	alarms *due.Alarms
	ctx    context.Context // ends at Close; the parent of every handler's
	stop   context.CancelFunc

	// rested is broadcast when a lane has caught up; Drain waits on it.
	rested atomicx.Event

	subs        atomic.Uint64 // how many subscriptions there have been; added to by Subscribe, publishes no memory
	draining    atomic.Bool   // set by Drain, read by CreateTopic; publishes no memory
	closing     sync.Once
	last        []*Topic // those that Close waits for; set inside closing, as is lastMembers
	lastMembers []*Member
	told        atomic.Bool   // set when all has been told that Close has to tell; read by whoever closes, publishes no memory
	closed      chan struct{} // closed when the engine is down

	mu      sync.Mutex
	topics  map[string]*Topic   // under mu; nil once closing
	groups  map[string]*Group   // under mu
	deleted map[*Topic]struct{} // under mu: those that still have something going on; nil once closing
}

// Open returns a new, empty engine. It must be closed.
func Open(c Config) (*Engine, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	atomicx.NoteProcs()
	e := &Engine{
		cfg:     c,
		clock:   atomicx.NewClock(),
		pool:    segment.NewPool(c.MaxMemory, keptMemory),
		closed:  make(chan struct{}),
		topics:  map[string]*Topic{},
		groups:  map[string]*Group{},
		deleted: map[*Topic]struct{}{},
	}
	e.crowd = partition.NewCrowd(c.Workers)
	e.alarms = due.NewAlarms(&e.clock)
	e.work = dispatch.NewPool(c.Workers, e.escaped)
	e.calls = dispatch.NewPool(callbackWorkers, e.escaped)
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// callbackWorkers is how many goroutines run callbacks of PublishAsync.
const callbackWorkers = 2

// keptMemory is how much memory of dropped segments is kept for new ones.
const keptMemory = 64 << 20

// escaped is told of a panic or Goexit that ended a run on a worker.
func (e *Engine) escaped(v any, stack []byte) {
	if err, ok := v.(error); ok && errors.Is(err, dispatch.ErrGoexit) {
		return // of a handler: its failure, counted and told as such
	}
	e.log(slog.LevelError, "leat: panic outside a handler", "panic", v, "stack", string(stack))
}

// guard calls a hook and survives its panic.
func (e *Engine) guard(hook func()) {
	defer func() {
		if v := recover(); v != nil {
			e.log(slog.LevelError, "leat: hook panicked", "panic", v)
		}
	}()
	hook()
}

// log writes a line to the logger, which is code of the user's: under no lock, and surviving its panic.
func (e *Engine) log(level slog.Level, msg string, args ...any) {
	defer func() { _ = recover() }()
	e.cfg.Logger.Log(context.Background(), level, msg, args...)
}

// onWorker reports whether a handler, callback or hook is calling, so that waiting for such would be waiting for oneself.
func (e *Engine) onWorker() bool { return e.work.OnWorker() || e.calls.OnWorker() }

// spawn runs f on a goroutine that Close waits for, and that counts as a worker. If the engine is down f does not run.
func (e *Engine) spawn(f func()) {
	var t *dispatch.Task
	t = e.work.NewTask(func() dispatch.Again { t.Stop(); f(); return false }, dispatch.Options{Dedicated: true})
	t.Wake()
}

// CreateTopic creates a topic. The name must be new: 1 to 249 of a-z, A-Z, 0-9, dot, dash and underscore.
func (e *Engine) CreateTopic(name string, c TopicConfig) (*Topic, error) {
	if err := names.Check(name); err != nil {
		return nil, fmt.Errorf("%w: topic %w", ErrName, err)
	}
	c, err := c.withDefaults(e.cfg.MaxMemory)
	if err != nil {
		return nil, err
	}
	t, err := e.addTopic(name, c)
	if err != nil {
		return nil, err
	}
	e.log(slog.LevelInfo, "leat: topic created", "topic", name, "id", t.id, "partitions", c.Partitions)
	return t, nil
}

// addTopic makes a topic if it may be.
func (e *Engine) addTopic(name string, c TopicConfig) (*Topic, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.topics == nil:
		return nil, ErrClosed
	case e.draining.Load():
		return nil, ErrDraining
	case e.topics[name] != nil:
		return nil, fmt.Errorf("%w: %s", ErrTopicExists, name)
	}
	t := newTopic(e, name, c)
	e.topics[name] = t
	return t, nil
}

// Topic returns the topic of that name.
func (e *Engine) Topic(name string) (*Topic, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.topics == nil {
		return nil, ErrClosed
	}
	if t := e.topics[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownTopic, name)
}

// Topics returns the names of all topics, sorted. After Close there are none.
func (e *Engine) Topics() []string {
	var all []string
	for _, t := range e.all() {
		all = append(all, t.name)
	}
	return all
}

// all returns the topics by name.
func (e *Engine) all() []*Topic {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*Topic, 0, len(e.topics))
	for _, t := range e.topics {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Topic) int { return strings.Compare(a.name, b.name) })
	return all
}

// DeleteTopic deletes a topic and all its records: every publish, reader and subscription of it ends with
// ErrTopicDeleted, also those that wait. Handlers and callbacks that are running are not waited for. The name is free at
// once; a topic that is created under it is another one, with another ID.
func (e *Engine) DeleteTopic(name string) error {
	e.mu.Lock()
	if e.topics == nil {
		e.mu.Unlock()
		return ErrClosed
	}
	t := e.topics[name]
	if t != nil {
		delete(e.topics, name)
		e.deleted[t] = struct{}{} // Close waits for it
	}
	e.mu.Unlock()
	if t == nil {
		return fmt.Errorf("%w: %q", ErrUnknownTopic, name)
	}
	subs := t.halt(ErrTopicDeleted)
	<-t.down
	e.log(slog.LevelInfo, "leat: topic deleted", "topic", name, "id", t.id)
	for _, s := range subs {
		s.tell()
	}
	return nil
}

// forget is told that a topic has nothing going on any more.
func (e *Engine) forget(t *Topic) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.deleted, t)
}
