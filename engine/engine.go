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
	cfg     Config
	clock   atomicx.Clock
	pool    *segment.Pool
	work    *dispatch.Pool // runs handlers
	calls   *dispatch.Pool // runs callbacks: a handler may wait for one
	crowd   *partition.Crowd
	catalog *catalog       // nil without a directory
	keeper  keeper         // writes positions into it
	files   sync.WaitGroup // who makes or removes files; added to under mu while there are topics
	alarms  *due.Alarms
	ctx     context.Context // ends at Close; the parent of every handler's
	stop    context.CancelFunc

	// rested is broadcast when a lane has caught up; Drain waits on it.
	rested atomicx.Event

	subs        atomic.Uint64 // how many subscriptions there have been; added to by Subscribe, publishes no memory
	draining    atomic.Bool   // set by Drain, read by CreateTopic; publishes no memory
	closing     sync.Once
	last        []*Topic // those that Close waits for; set inside closing, as is lastMembers
	lastMembers []*Member
	lastGroups  []*Group      // those whose positions are written at the end; set inside closing
	told        atomic.Bool   // set when all has been told that Close has to tell; read by whoever closes, publishes no memory
	closed      chan struct{} // closed when the engine is down

	mu     sync.Mutex
	topics map[string]*Topic   // under mu; nil once closing
	making map[string]struct{} // under mu: names of topics and, after a slash, groups that are being made or deleted
	// refused are topics and groups in the directory that could not be opened, and why. Under mu.
	refused, refusedGroups map[string]error
	closeErr               error               // under mu: what went wrong with files at the end
	groups                 map[string]*Group   // under mu
	deleted                map[*Topic]struct{} // under mu: those that still have something going on; nil once closing
}

// Open returns a new engine. It must be closed. Without a Dir it is empty; with one it has the durable topics and groups that are
// there. Then the error may be ErrLocked, ErrCorrupt if the catalog is damaged, or one of the file system. A topic or group
// that cannot be opened is no error of Open: Topic and Group return why, and its files stay as they are.
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
		making:  map[string]struct{}{},
		refused: map[string]error{}, refusedGroups: map[string]error{},
	}
	if c.Dir != "" {
		if e.catalog, err = openCatalog(c.fs, c.Dir, c.ReadOnly); err != nil {
			return nil, err
		}
	}
	e.crowd = partition.NewCrowd(c.Workers)
	e.alarms = due.NewAlarms(&e.clock)
	e.work = dispatch.NewPool(c.Workers, e.escaped)
	e.calls = dispatch.NewPool(callbackWorkers, e.escaped)
	e.ctx, e.stop = context.WithCancel(context.Background())
	if e.catalog == nil {
		return e, nil
	}
	e.keeper.saved = map[string]any{}
	if err := e.restore(); err != nil {
		e.cfg.ReadOnly = true // so that nothing more is written
		return nil, errors.Join(err, e.Close())
	}
	e.keeper.start(e)
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
	if c.Durable != nil && e.catalog == nil {
		return nil, configError("a durable topic needs Config.Dir")
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
	_, making := e.making[name]
	switch {
	case e.topics == nil:
		return nil, ErrClosed
	case e.draining.Load():
		return nil, ErrDraining
	case e.refused[name] != nil:
		return nil, fmt.Errorf("%w: %w", ErrTopicExists, e.refused[name])
	case e.topics[name] != nil || making:
		return nil, fmt.Errorf("%w: %s", ErrTopicExists, name)
	}
	if c.Durable == nil {
		t := newTopic(e, name, c, newTopicID(), nil)
		e.topics[name] = t
		return t, nil
	}
	e.making[name] = struct{}{}
	e.files.Add(1)
	defer e.files.Done()
	e.mu.Unlock() // files may be slow
	t, err := e.createDurable(name, c)
	e.mu.Lock()
	delete(e.making, name)
	switch {
	case err != nil:
		return nil, err
	case e.topics == nil: // closed meanwhile: it is there at the next Open
		t.halt(ErrClosed)
		e.mu.Unlock()
		<-t.gone
		e.mu.Lock()
		return nil, ErrClosed
	}
	e.topics[name] = t
	return t, nil
}

// enterFiles lets the caller make or remove files, and Close waits until it calls files.Done.
func (e *Engine) enterFiles() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.topics == nil {
		return ErrClosed
	}
	e.files.Add(1)
	return nil
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
	if err := e.refused[name]; err != nil {
		return nil, err
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
// once; a topic that is created under it is another one, with another ID. The files of a durable topic are removed; an error that
// is none of ErrUnknownTopic and ErrClosed says that this could not be made safe, so that the topic may be there again after the
// next Open. A topic that could not be opened can be deleted as well, and its files are removed.
func (e *Engine) DeleteTopic(name string) error {
	e.mu.Lock()
	if e.topics == nil {
		e.mu.Unlock()
		return ErrClosed
	}
	t := e.topics[name]
	switch {
	case t != nil && t.cfg.Durable != nil && e.cfg.ReadOnly:
		e.mu.Unlock()
		return ErrReadOnly
	case t != nil:
		delete(e.topics, name)
		e.deleted[t] = struct{}{} // Close waits for it
		if t.cfg.Durable != nil {
			e.making[name] = struct{}{}
			e.files.Add(1)
			defer e.files.Done()
		}
	}
	e.mu.Unlock()
	if t == nil {
		return e.deleteRefused(name)
	}
	subs := t.halt(ErrTopicDeleted)
	<-t.down
	var err error
	if t.cfg.Durable != nil {
		err = e.forgetFiles(t)
	}
	e.log(slog.LevelInfo, "leat: topic deleted", "topic", name, "id", t.id)
	for _, s := range subs {
		s.tell()
	}
	return err
}

// forgetFiles removes the files of a topic that has ended. From its error on the name is taken, and the topic comes back with the
// next Open unless that can tell that it was deleted.
func (e *Engine) forgetFiles(t *Topic) error {
	t.growing.Lock() // who is making files finds that the topic has ended, and nobody begins any more
	defer t.growing.Unlock()
	entry := e.catalog.topic(t.id.String())
	err := e.catalog.change(func(f *catalogFile) { f.drop(entry) })
	e.mu.Lock()
	delete(e.making, t.name)
	if err != nil {
		e.refused[t.name] = fmt.Errorf("leat: topic %s is deleted, but that could not be written: %w", t.name, err)
	}
	e.mu.Unlock()
	if err != nil {
		return err
	}
	e.keeper.mu.Lock() // it may be writing there
	delete(e.keeper.saved, e.catalog.positionsFile(t.id))
	err = e.catalog.removeTopic(entry)
	e.keeper.mu.Unlock()
	if err != nil { // the next Open does it
		e.log(slog.LevelWarn, "leat: files of a deleted topic are left", "topic", t.name, "id", t.id, "error", err)
	}
	return nil
}

// deleteRefused deletes a topic that could not be opened.
func (e *Engine) deleteRefused(name string) error {
	e.mu.Lock()
	_, making := e.making[name]
	if e.topics == nil || e.refused[name] == nil || making {
		closed := e.topics == nil
		e.mu.Unlock()
		if closed {
			return ErrClosed
		}
		return fmt.Errorf("%w: %q", ErrUnknownTopic, name)
	}
	e.making[name] = struct{}{}
	e.files.Add(1)
	e.mu.Unlock()
	defer e.files.Done()
	var err error
	for _, entry := range e.catalog.topics() {
		if entry.Name != name || err != nil {
			continue
		}
		if err = e.catalog.change(func(f *catalogFile) { f.drop(entry) }); err == nil {
			err = e.catalog.removeTopic(entry)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.making, name)
	if err == nil {
		delete(e.refused, name)
	}
	return err
}

// forget is told that a topic has nothing going on any more.
func (e *Engine) forget(t *Topic) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.deleted, t)
}
