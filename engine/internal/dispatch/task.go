package dispatch

import (
	"fmt"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// Again says what a task's function wants: true for another turn, at the end of the run queue; false to rest until the
// next Wake. A Wake that came during the run counts as true.
type Again bool

// Options are the properties of a task. The zero value is a task that runs on the pool's workers without a limit.
type Options struct {
	// Limiter, if not nil, is shared by tasks of which only so many may run at a time. It must be of the same pool.
	Limiter *Limiter

	// Dedicated gives the task a goroutine of its own beside the pool's workers.
	Dedicated bool

	_ struct{} // keyed literals only: fields may be added
}

// Task is a function that the pool runs after somebody has called Wake.
//
// # Roles
//
//   - waker: any goroutine; also the task's own function, and the timer of WakeAfter.
//   - worker: the goroutine of the pool that runs the task, maybe another one each time.
//   - stopper: any goroutine; also the task's own function.
//
// # Shared state
//
//	state               CASed by wakers without a lock: idle -> queued, running -> running|woken.
//	                    Changed by workers and stoppers under pool.mu: all else
//	on, prev, next      under pool.mu: the list that holds the task
//	runner              under pool.mu: not nil from start to end of a run, which is while the phase is running
//	what run touches    the worker's alone, during the run
//
//	          Wake             start
//	  idle ----------> queued -------> running <--> running|woken      start, end and Stop hold pool.mu,
//	   ^  \               ^  \          |   |  Wake       |             and so does whoever links the task
//	   |   \ Stop         |   \ Stop    |   +- Stop ------+---> running|stopped
//	   |    v             |    v        v                 |                |
//	   |   stopped        |   stopped   |  again <--------+                | end
//	   |                  +-------------+---+                              v
//	   +--------------------- rest -----+                               stopped
//
// # Proof
//
// One run at a time. A run starts only in start, under mu, with a task that this worker has just taken off the run queue.
// A task comes on a list only after its state has gone to queued: from idle, by the CAS of one waker, who alone then links
// it; or from running, by the end of its only run, which links it under the same hold of mu. It leaves the phase queued
// only through start or Stop, and both take it off its list under the same hold of mu. So it is on one list at most, once,
// and only in the phase queued: between two starts of a run there is an end.
//
// No Wake is lost. All operations on state happen in one total order; take the last that a Wake does, its CAS or the load
// after which it returns. If it finds the task idle, it makes it queued and links it. If queued, the task is on a list or
// its waker is about to link it, and it will start. If running, the CAS adds the mark; if already marked, it is there. The
// end of a run replaces a state only by CAS from a value that it has seen, so it cannot overlook the mark, and goes to
// queued. In each case a start comes later in that order than the Wake, and the run sees every atomic word that the waker
// changed before. The comment on queue says why a task on the run queue gets a worker; one in a limiter gets there when a
// permit comes free, and permits come free because runs end. Only Stop breaks this chain, and that is its purpose.
//
// Stop is final. The mark is set under mu, and start, under mu, meets only tasks on a list; Stop takes the task off, and a
// waker that has made it queued but not linked it yet looks at the mark under mu and lets it be. So a start comes either
// before Stop takes mu, and then the run is in progress or over when Stop returns, or never. No state with the mark
// changes, except that the end of the last run turns running|stopped into stopped. done is closed exactly once, under mu:
// by Stop if nothing runs, else by the end of that run.
//
// Runs in order. The end of a run and the start of the next are under the same mutex. So a run sees what earlier ones
// wrote, on whichever goroutine; and who sees runner == nil under mu (Idle, Stop) sees the whole of the last run.
//
// A stale timer does no harm. The timer only calls Wake. If it fires just as WakeAfter sets it again, or as StopTimer takes
// it down, there is one Wake too many; after Stop a Wake does nothing. Stop takes the timer down after it has set the mark,
// and WakeAfter looks at the mark under timerMu before it sets the timer: no timer is left behind.
//
// Progress. Wake is one load if there is nothing to do. Its CAS fails only because another Wake, an end or a Stop changed
// the state. Whoever needs mu waits for others to do a few instructions; no function of the user is called under it.
//
// Not promised. That each Wake has a run of its own: all those that come before a run starts share it. That a Wake
// publishes plain memory: one that only loads does not. What there is to do must be found in atomic words (or under a
// lock), and be put there before Wake by an operation that is a full barrier, which StoreRelease is not.
type Task struct {
	// Immutable.
	pool    *Pool
	queue   *queue // the pool's, or its own if it is dedicated
	limiter *Limiter
	run     func() Again
	done    chan struct{} // closed under pool.mu once stopped and not running

	// state is the phase and the marks below. Wakers CAS it without a lock; workers and stoppers change it under pool.mu;
	// wakers, WakeAfter and State load it. Going to queued publishes what the waker wrote before to the run, through pool.mu.
	state atomicx.Uint32

	// Under pool.mu.
	on         *list // that holds it: its queue's, its limiter's, or nil
	prev, next *Task
	runner     *worker       // that runs it, or nil
	quiet      chan struct{} // made by Idle for the run in progress, closed by its end

	// timerMu is never held together with pool.mu.
	timerMu atomicx.Mutex
	timer   *time.Timer // under timerMu; nil until the first WakeAfter
}

// The state word: one of three phases, and two marks.
const (
	idle    = 0
	queued  = 1 // on the run queue or in the limiter, or about to be put there
	running = 2
	woken   = 4 // with running only: a Wake came during the run
	stopped = 8 // for good: alone, or with running until the run in progress ends
)

// State is what a task is doing, for statistics.
type State uint8

// The states of a task.
const (
	Resting State = iota // nothing to do
	Queued               // on the run queue
	Waiting              // in its limiter
	Running
	Stopped // for good, and its last run is over
)

// String returns the state's name.
func (s State) String() string {
	switch s {
	case Resting:
		return "resting"
	case Queued:
		return "queued"
	case Waiting:
		return "waiting"
	case Running:
		return "running"
	case Stopped:
		return "stopped"
	default:
		return fmt.Sprintf("State(%d)", uint8(s))
	}
}

// NewTask returns a task that rests until its first Wake. In a closed pool it is stopped from the start. NewTask panics if
// run is nil or the limiter belongs to another pool.
//
// run should neither panic nor call runtime.Goexit; both are survived, see [NewPool]. The pool keeps a task until it is
// stopped.
func (p *Pool) NewTask(run func() Again, opt Options) *Task {
	if run == nil {
		panic("dispatch: a task needs a function")
	}
	if opt.Limiter != nil && opt.Limiter.pool != p {
		panic("dispatch: the limiter belongs to another pool")
	}
	t := &Task{pool: p, queue: &p.shared, limiter: opt.Limiter, run: run, done: make(chan struct{})}
	if opt.Dedicated {
		t.queue = new(queue)
	}
	p.mu.Lock()
	if p.closed {
		t.state.Store(stopped)
		close(t.done)
		p.mu.Unlock()
		return t
	}
	p.tasks[t] = struct{}{}
	if opt.Dedicated {
		p.goroutines++
	}
	p.mu.Unlock()
	if opt.Dedicated {
		go newWorker(p, t.queue).work()
	}
	return t
}

// Wake makes the task run: now if it rests, and once more if it is just running. It never waits for a run. If the task is
// going to run anyway it is one atomic load.
func (t *Task) Wake() {
	if s := t.state.Load(); s == idle || s == running {
		t.wake()
	}
}

func (t *Task) wake() {
	for {
		switch t.state.Load() {
		case idle:
			if t.state.CompareAndSwap(idle, queued) {
				t.enqueue()
				return
			}
		case running:
			if t.state.CompareAndSwap(running, running|woken) { // pairs with the CAS in end
				return
			}
		default: // it will run, or never again
			return
		}
	}
}

// enqueue links the task, which the caller has just made queued.
func (t *Task) enqueue() {
	p := t.pool
	var wake *worker
	p.mu.Lock()
	if t.state.Load() == queued && t.limiter.admit(t) { // else it was stopped in between, or waits in the limiter
		wake = t.ready(nil)
	}
	p.mu.Unlock()
	wake.unpark()
}

// start starts a run on w, which has just taken t off the queue. The caller holds pool.mu.
func (t *Task) start(w *worker) {
	t.state.Store(running) // from queued: wakers leave that alone, and a stopper would have taken t off the queue
	t.runner = w
}

// end ends a run. The caller is the worker; it holds pool.mu, and looks at t.queue under the same hold. It returns a worker
// to unpark afterwards, or nil.
func (t *Task) end(again Again) (wake *worker) {
	t.runner = nil
	if t.quiet != nil {
		close(t.quiet)
		t.quiet = nil
	}
	for {
		s := t.state.Load()
		switch {
		case s&stopped != 0:
			t.state.Store(stopped) // wakers leave that alone, and stoppers wait for mu
			close(t.done)
			return t.limiter.release().ready(t.queue)
		case bool(again) || s&woken != 0:
			if t.state.CompareAndSwap(s, queued) { // fails if a waker has just added its mark
				return t.limiter.pass(t).ready(t.queue)
			}
		default:
			if t.state.CompareAndSwap(s, idle) { // likewise
				return t.limiter.release().ready(t.queue)
			}
		}
	}
}

// ready puts t, which holds its permit, on its run queue, and returns a worker to unpark or nil. The caller holds pool.mu;
// looking is the queue that it looks at under the same hold, if any. Nothing happens if t is nil.
func (t *Task) ready(looking *queue) (wake *worker) {
	switch {
	case t == nil:
		return nil
	case t.queue == looking:
		return t.queue.push(t, 1)
	default:
		return t.queue.push(t, 0)
	}
}

// Stop makes sure that no further run starts: neither for a Wake that came before, nor for one that comes later, nor for
// the timer of WakeAfter, which it takes down. It does not wait for a run in progress; for that there are Idle and Done.
// It may be called from anywhere, also from inside the run, and more than once.
func (t *Task) Stop() {
	t.pool.mu.Lock()
	wake, own := t.stop()
	t.pool.mu.Unlock()
	wake.unpark()
	own.unpark()
	t.StopTimer() // after the mark is set: see "A stale timer does no harm"
}

// stop is Stop under pool.mu, without the timer. It returns workers to unpark: one for the task that got t's permit, and
// t's own if it is dedicated.
func (t *Task) stop() (wake, own *worker) {
	for {
		s := t.state.Load()
		if s&stopped != 0 {
			return nil, nil
		}
		final := uint32(stopped)
		if t.runner != nil {
			final |= running
		}
		if t.state.CompareAndSwap(s, final) { // fails if a waker has just changed it
			break
		}
	}
	delete(t.pool.tasks, t)
	switch t.on {
	case nil: // at rest, or running, or made queued by a waker that waits for mu
	case &t.queue.tasks:
		t.queue.remove(t)
		wake = t.limiter.release().ready(nil)
	default:
		t.on.remove(t)
	}
	if t.runner == nil {
		close(t.done)
	}
	if t.queue != &t.pool.shared {
		t.queue.closed = true
		own = t.queue.call()
	}
	return wake, own
}

// Done returns a channel that is closed once the task is stopped and no run of it is in progress.
func (t *Task) Done() <-chan struct{} { return t.done }

// Idle waits until the run that is in progress at the time of the call is over, and returns true; at once if there is none.
// It returns false if done is closed before. A nil done never ends the wait. A run that calls it for its own task waits
// for itself: ask RunningHere first.
//
// The next run may have started by the time Idle returns. But whatever the caller changed before Idle, each run that has
// started since sees: after setting a flag that the function looks at first (or after Stop), Idle returning true means that
// nobody is at work who has not seen the flag.
func (t *Task) Idle(done <-chan struct{}) bool {
	t.pool.mu.Lock()
	if t.runner == nil {
		t.pool.mu.Unlock()
		return true
	}
	if t.quiet == nil {
		t.quiet = make(chan struct{})
	}
	quiet := t.quiet
	t.pool.mu.Unlock()
	return await(quiet, done)
}

// RunningHere reports whether the calling goroutine is inside a run of this task. It costs some microseconds: ask it only
// where the alternative is a deadlock.
func (t *Task) RunningHere() bool {
	id := goroutineID()
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return id != 0 && t.runner != nil && t.runner.id == id
}

// State returns what the task is doing.
func (t *Task) State() State {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	switch s := t.state.Load(); {
	case t.runner != nil:
		return Running
	case s == stopped:
		return Stopped
	case s == idle:
		return Resting
	case t.limiter != nil && t.on == &t.limiter.waiting:
		return Waiting
	default:
		return Queued
	}
}

// WakeAfter calls Wake once d has passed. A task has one timer, which is used again and again: a later WakeAfter replaces an
// earlier one. Wake does not take the timer down.
func (t *Task) WakeAfter(d time.Duration) {
	if d <= 0 {
		t.StopTimer()
		t.Wake()
		return
	}
	t.timerMu.Lock()
	defer t.timerMu.Unlock()
	switch {
	case t.state.Load()&stopped != 0: // pairs with the mark in stop
	case t.timer == nil:
		t.timer = time.AfterFunc(d, t.Wake)
	default:
		t.timer.Reset(d)
	}
}

// StopTimer takes the timer of WakeAfter down. If it is just firing, its Wake may still come.
func (t *Task) StopTimer() {
	t.timerMu.Lock()
	defer t.timerMu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}
