package dispatch

import (
	"errors"

	"github.com/leatlog/leat/internal/atomicx"
)

// ErrGoexit is what the pool's hook is told when a task's function ended its goroutine with runtime.Goexit (which is what
// FailNow of package testing does) instead of returning.
var ErrGoexit = errors.New("dispatch: a task ended its goroutine with runtime.Goexit")

// Pool runs tasks on a fixed number of goroutines. See the package comment for the picture, [Task] for what is promised
// about one task and the comment on queue for why no queued task is forgotten.
//
// One mutex guards the run queue, the limiters, the parked workers and the start and end of every run. It is held for some
// ten instructions, once for each Wake that finds its task idle and once between two runs of a worker; never while a
// task's function or the hook runs.
type Pool struct {
	// Immutable.
	size  int
	hook  func(v any, stack []byte)
	clock atomicx.Clock
	// ended is closed by the last goroutine of a closed pool.
	ended chan struct{}

	mu atomicx.Mutex
	// Under mu.
	shared     queue
	closed     bool
	goroutines int                // workers and dedicated goroutines that have not ended
	byID       map[uint64]*worker // by goroutine id
	tasks      map[*Task]struct{} // that are not stopped
}

// NewPool starts a pool of that many workers. It panics if workers is below 1.
//
// hook may be nil. It is called when a task's function panics, with the panic's value, or leaves by runtime.Goexit, with
// [ErrGoexit], and with the stack of the place where that happened; on the worker's goroutine, under no lock. The task goes
// on as if its function had returned true. A panic of the hook itself is dropped.
func NewPool(workers int, hook func(v any, stack []byte)) *Pool {
	if workers < 1 {
		panic("dispatch: a pool needs at least one worker")
	}
	p := &Pool{
		size:       workers,
		hook:       hook,
		clock:      atomicx.NewClock(),
		ended:      make(chan struct{}),
		goroutines: workers,
		byID:       make(map[uint64]*worker),
		tasks:      make(map[*Task]struct{}),
	}
	for range workers {
		go newWorker(p, &p.shared).work()
	}
	return p
}

// Close stops every task of the pool, as [Task.Stop] does, and lets the workers end. It does not wait: runs in progress go
// on to their end, and [Pool.Wait] waits for them. After Close has returned no run starts. It may be called from anywhere,
// also from inside a run, and more than once.
func (p *Pool) Close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	p.shared.closed = true
	tasks := make([]*Task, 0, len(p.tasks))
	for t := range p.tasks {
		tasks = append(tasks, t)
	}
	var parked []*worker
	for w := p.shared.call(); w != nil; w = p.shared.call() {
		parked = append(parked, w)
	}
	// Dedicated tasks too get no further run, though their turn to be stopped comes below.
	for _, t := range tasks {
		t.queue.closed = true
	}
	p.mu.Unlock()

	for _, w := range parked {
		w.unpark()
	}
	for _, t := range tasks {
		t.Stop()
	}
}

// Wait waits until the pool is closed and all its goroutines have ended, and returns true; or returns false once done is
// closed. A nil done never ends the wait. A run that calls it waits for itself: ask [Pool.OnWorker] first.
func (p *Pool) Wait(done <-chan struct{}) bool {
	return await(p.ended, done)
}

// OnWorker reports whether the calling goroutine is inside a run of one of this pool's tasks, dedicated ones included.
// It costs some microseconds: ask it only where the alternative is a deadlock.
func (p *Pool) OnWorker() bool {
	id := goroutineID()
	p.mu.Lock()
	defer p.mu.Unlock()
	return id != 0 && p.byID[id] != nil
}

// Workers returns the number of workers, which never changes.
func (p *Pool) Workers() int { return p.size }

// Queued returns how many tasks are on the run queue. Those that wait in a limiter and dedicated ones do not count.
func (p *Pool) Queued() int { return int(p.shared.length.Load()) }

// Running returns how many workers are inside a run. Dedicated tasks do not count.
func (p *Pool) Running() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shared.running
}

// report calls the hook and survives it.
func (p *Pool) report(v any, stack []byte) {
	if p.hook == nil {
		return
	}
	defer func() { _ = recover() }()
	p.hook(v, stack)
}

// await waits for event and returns true, or returns false once done is closed. If both are, event counts.
func await(event, done <-chan struct{}) bool {
	select {
	case <-event:
		return true
	case <-done:
		select {
		case <-event:
			return true
		default:
			return false
		}
	}
}
