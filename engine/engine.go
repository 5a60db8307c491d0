package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/names"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// Engine holds topics. All its methods may be called from any goroutine, handlers included.
type Engine struct {
	// Immutable after Open.
	cfg   Config
	clock atomicx.Clock
	pool  *segment.Pool
	work  *dispatch.Pool
	ctx   context.Context // ends at Close; the parent of every handler's
	stop  context.CancelFunc

	// rested is broadcast when a lane has caught up; Drain waits on it.
	rested atomicx.Event

	draining atomic.Bool // set by Drain, read by CreateTopic; publishes no memory
	closing  sync.Once
	last     []*Topic      // the topics at the time of Close; set inside closing
	closed   chan struct{} // closed when the engine is down

	mu     sync.Mutex
	topics map[string]*Topic // under mu; nil once closing
	subs   atomic.Uint64     // how many names were made up for subscriptions; added to by Subscribe
}

// Open returns a new, empty engine. It must be closed.
func Open(c Config) (*Engine, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	e := &Engine{
		cfg:    c,
		clock:  atomicx.NewClock(),
		pool:   segment.NewPool(c.MaxMemory, keptMemory),
		closed: make(chan struct{}),
		topics: map[string]*Topic{},
	}
	e.work = dispatch.NewPool(c.Workers, func(v any, stack []byte) {
		if err, ok := v.(error); ok && errors.Is(err, dispatch.ErrGoexit) {
			return // the handler's failure, counted and told as such
		}
		c.Logger.Error("leat: panic outside a handler", "panic", v, "stack", string(stack))
	})
	e.ctx, e.stop = context.WithCancel(context.Background())
	return e, nil
}

// keptMemory is how much memory of dropped segments is kept for new ones.
const keptMemory = 64 << 20

// CreateTopic creates a topic. The name must be new: 1 to 249 of a-z, A-Z, 0-9, dot, dash and underscore.
func (e *Engine) CreateTopic(name string, c TopicConfig) (*Topic, error) {
	if err := names.Check(name); err != nil {
		return nil, fmt.Errorf("%w: topic %w", ErrName, err)
	}
	c, err := c.withDefaults(e.cfg.MaxMemory)
	if err != nil {
		return nil, err
	}
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
	e.cfg.Logger.Info("leat: topic created", "topic", name, "id", t.id, "partitions", c.Partitions)
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
// ErrTopicDeleted, also those that wait. A handler that is running is not waited for. The name is free at once; a topic
// that is created under it is another one, with another ID.
func (e *Engine) DeleteTopic(name string) error {
	e.mu.Lock()
	if e.topics == nil {
		e.mu.Unlock()
		return ErrClosed
	}
	t := e.topics[name]
	delete(e.topics, name)
	e.mu.Unlock()
	if t == nil {
		return fmt.Errorf("%w: %q", ErrUnknownTopic, name)
	}
	t.end(ErrTopicDeleted)
	t.wait()
	t.free()
	e.cfg.Logger.Info("leat: topic deleted", "topic", name, "id", t.id)
	return nil
}

// Drain lets what is under way come to its end: from now on only handlers may publish and no topic can be created; it
// returns when every accepted record is in its log, every callback has run, and every subscription that is not paused has
// processed all there is. Then Close. A subscription that is stuck, or fails for ever, makes it last until ctx ends; the
// error then says which.
func (e *Engine) Drain(ctx context.Context) error {
	if e.work.OnWorker() {
		return ErrSelfBlock // a handler would wait for itself
	}
	e.mu.Lock()
	if e.topics == nil {
		e.mu.Unlock()
		return ErrClosed
	}
	e.draining.Store(true)
	e.mu.Unlock()
	topics := e.all()
	for _, t := range topics {
		for _, p := range t.parts {
			p.p.Drain()
		}
	}
	w := atomicx.NewWaiter()
	for {
		before := int64(-1)
		if e.drained(topics) { // then flush, and see whether that or a handler has published more
			before = total(topics)
		}
		for _, t := range topics {
			if err := t.Flush(ctx); err != nil && !errors.Is(err, ErrTopicDeleted) {
				return e.undrained(topics, err)
			}
		}
		e.rested.Prepare(w)
		if e.drained(topics) {
			e.rested.Cancel(w)
			if total(topics) == before {
				return nil
			}
			continue
		}
		if !e.rested.Wait(w, ctx.Done()) {
			return e.undrained(topics, ctx.Err())
		}
	}
}

// drained reports whether no subscription has anything to do.
func (e *Engine) drained(topics []*Topic) bool {
	for _, t := range topics {
		for _, s := range t.subscriptions() {
			for _, l := range s.lanes {
				if !l.Drained() {
					return false
				}
			}
		}
	}
	return true
}

// total returns how many records were ever published.
func total(topics []*Topic) (n int64) {
	for _, t := range topics {
		for _, p := range t.parts {
			n += p.Next()
		}
	}
	return n
}

// undrained says what Drain was waiting for.
func (e *Engine) undrained(topics []*Topic, err error) error {
	var left []string
	for _, t := range topics {
		for _, s := range t.subscriptions() {
			for _, l := range s.lanes {
				if !l.Drained() {
					left = append(left, fmt.Sprintf("%s/%s/%d", t.name, s.id, l.Partition()))
				}
			}
		}
	}
	return fmt.Errorf("leat: not drained, subscriptions behind: %v: %w", left, err)
}

// Close ends everything at once: publishes, readers and subscriptions end with ErrClosed, also those that wait. Records that
// were accepted and are not yet in their log get in if there is room; what subscriptions have not processed by then is not
// delivered any more (Drain first for that). It returns when all the engine's goroutines have ended, or after
// Config.CloseTimeout with a *HungError if handlers have not returned. Called from a handler or callback it does not wait.
// Closing again does nothing but wait.
func (e *Engine) Close() error {
	ctx := context.Background()
	if e.cfg.CloseTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.cfg.CloseTimeout)
		defer cancel()
	}
	return e.CloseContext(ctx)
}

// CloseContext is Close that waits for handlers until ctx ends.
func (e *Engine) CloseContext(ctx context.Context) error {
	e.closing.Do(e.shutdown)
	if e.work.OnWorker() {
		return nil
	}
	select {
	case <-e.closed:
		return nil
	default:
	}
	select {
	case <-e.closed:
		return nil
	case <-ctx.Done():
		return &HungError{Handlers: e.hung()}
	}
}

// shutdown ends everything, and leaves the waiting to a goroutine: the caller may be a handler.
func (e *Engine) shutdown() {
	topics := e.all()
	e.mu.Lock()
	e.topics = nil
	e.mu.Unlock()
	e.stop()
	for _, t := range topics {
		t.end(ErrClosed)
	}
	e.last = topics
	go func() {
		for _, t := range topics {
			t.wait()
			for _, p := range t.parts {
				p.p.FlushCallbacks()
			}
			for _, s := range t.subscriptions() {
				<-s.done
			}
		}
		e.work.Close()
		e.work.Wait(nil)
		for _, t := range topics {
			t.free()
		}
		close(e.closed)
	}()
}

// hung names the handlers that have not returned.
func (e *Engine) hung() []string {
	var all []string
	for _, t := range e.last {
		for _, s := range t.subscriptions() {
			for _, l := range s.lanes {
				if since, running := l.InHandler(); running {
					all = append(all, fmt.Sprintf("%s/%s/%d for %v", t.name, s.id, l.Partition(), time.Since(since).Round(time.Millisecond)))
				}
			}
		}
	}
	return all
}
