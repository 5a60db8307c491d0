package dispatch

import (
	"runtime/debug"

	"github.com/leatlog/leat/internal/atomicx"
)

// How a worker waits before it parks: one turn for others, about 0.4 us of pauses, and a few more turns for others. Waking a
// parked goroutine costs its waker some microseconds and takes up to a hundred, so it is worth bridging a short gap between
// two tasks, and a longer one if that has been worth it lately (atomicx.Vigil); an idle pool must cost nothing.
//
// The first turn comes before the pauses because of whom the run has just woken: Go's scheduler puts that goroutine behind
// this one on the same processor, and often it is the one that brings the next task. Without it a round trip on one
// processor takes three to five times as long (BenchmarkTaskRoundTrip).
const (
	searchSpins  = 4
	searchYields = 4
)

// worker is a goroutine that runs the tasks of one queue. If a task's function ends the goroutine, another one takes over
// the same worker, in the middle of the same run: see leave.
type worker struct {
	// Immutable.
	pool   *Pool
	queue  *queue
	parker atomicx.Parker

	// Under pool.mu.
	below *worker // next on the stack of parked workers
	id    uint64  // of the goroutine

	// The worker's own.
	task  *Task // that it runs, or whose run it has to finish
	again Again // what that run returned
	vigil atomicx.Vigil
	// If the function did not return: what recover gave, and the stack.
	returned bool
	caught   any
	stack    []byte
}

// unpark ends the parking of w, which the caller has taken off the parked ones. Nothing happens if w is nil.
func (w *worker) unpark() {
	if w != nil {
		w.parker.Unpark()
	}
}

func newWorker(p *Pool, q *queue) *worker {
	return &worker{pool: p, queue: q, parker: atomicx.NewParker()}
}

// work is the goroutine.
func (w *worker) work() {
	defer w.leave()
	w.enter()
	for {
		t := w.next()
		if t == nil {
			return
		}
		w.call(t)
		if !w.returned {
			w.pool.report(w.caught, w.stack)
		}
	}
}

// enter makes the goroutine known to OnWorker and RunningHere.
func (w *worker) enter() {
	id := goroutineID()
	w.pool.mu.Lock()
	w.id = id
	w.pool.byID[id] = w
	w.pool.mu.Unlock()
}

// call runs t's function once. Whatever the function does, w.again, returned, caught and stack say how it went; only
// after runtime.Goexit call does not return.
func (w *worker) call(t *Task) {
	w.again, w.returned = true, false
	defer func() {
		if !w.returned {
			w.caught, w.stack = recover(), debug.Stack()
		}
	}()
	w.again = t.run()
	w.returned = true
}

// leave runs when the goroutine ends: because the queue is closed, or because of runtime.Goexit in the middle of a run.
// After the latter a new goroutine goes on as this worker, and its first act is to finish the run. The hook still belongs to
// the run, and it may call Goexit too: that is why the takeover is deferred.
func (w *worker) leave() {
	if w.task == nil {
		w.exit(true)
		return
	}
	defer func() {
		w.exit(false)
		go w.work()
	}()
	var v any = ErrGoexit
	if w.caught != nil {
		v = w.caught // a deferred function panicked on the way out
	}
	w.pool.report(v, w.stack)
}

// exit undoes enter. last says that no other goroutine takes over.
func (w *worker) exit(last bool) {
	p := w.pool
	p.mu.Lock()
	delete(p.byID, w.id)
	w.id = 0
	if last {
		p.goroutines--
		if p.goroutines == 0 && p.closed {
			close(p.ended)
		}
	}
	p.mu.Unlock()
}

// next finishes the run that w comes from, if any, and returns the task to run next, whose run has then started; or nil if
// the queue is closed. It waits while there is nothing to run.
func (w *worker) next() *Task {
	p, q := w.pool, w.queue
	search := atomicx.Backoff{Spins: searchSpins, Yields: searchYields}
	p.mu.Lock()
	var wake *worker
	if w.task != nil {
		wake = w.finish()
	}
	for !q.closed {
		if t := q.pop(); t != nil {
			t.start(w)
			w.task = t
			q.running++
			p.mu.Unlock()
			wake.unpark()
			return t
		}
		q.searching++
		p.mu.Unlock()
		wake.unpark()
		wake = nil
		if q.length.Load() == 0 {
			atomicx.Yield()
		}
		for q.length.Load() == 0 && search.Again() {
		}
		for turn := w.vigil.Begin(); w.vigil.Again(&turn); {
			if q.length.Load() != 0 {
				w.vigil.End(true)
				break
			}
		}
		p.mu.Lock()
		q.searching--
		if q.tasks.n == 0 && !q.closed {
			w.below, q.parked = q.parked, w
			p.mu.Unlock()
			w.vigil.Park(p.clock.Now())
			w.parker.Park(nil)
			w.vigil.Unpark(p.clock.Now())
			p.mu.Lock()
			q.searching-- // whoever took w off the stack counted it
			search.Reset()
		}
	}
	p.mu.Unlock()
	wake.unpark()
	return nil
}

// finish ends the run of w.task, see Task.end. The caller holds pool.mu and looks at w.queue under the same hold.
func (w *worker) finish() (wake *worker) {
	t := w.task
	w.task, w.caught, w.stack = nil, nil, nil
	w.queue.running--
	return t.end(w.again)
}
