//go:build explore

package explore

import (
	"fmt"
	"iter"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// runner plays schedules of one scenario.
//
// The driver (the goroutine that called Check) and the threads are coroutines: exactly one of them runs, so nothing here
// needs a lock. A thread that reaches an operation decides itself who is next; only if that is another does it switch to
// the driver, which switches to the next.
type runner struct {
	o       Options
	sc      Scenario
	s       S
	threads []*thread // of this schedule
	spare   []*thread // all coroutines, to be used again

	// Of the schedule that runs.
	running  *thread // nil in the driver
	next     *thread // for the driver to resume
	prologue bool    // threads run up to their first operation
	unwind   bool    // threads must end
	places   places
	steps    int
	changes  uint64 // how many operations have changed something
	stalled  uint64 // changes when nothing could go on last
	stalls   int    // how often that was so since
	now      int64
	failure  *Failure

	// Of the search.
	path     []decision
	depth    int // in path
	cost     int
	strategy strategy

	options  [2 * maxThreads]option
	trace    *tracer      // nil unless a failure is played again
	progress atomic.Int64 // raised by the driver after each schedule, loaded by the watchdog; publishes nothing
	watchdog chan struct{}
}

// option is one way to go on.
type option struct {
	thread *thread
	flush  bool // flush thread's oldest buffered store, instead of running it
	cost   uint8
}

// thread is one thread of the scenario and the coroutine that runs it.
type thread struct {
	id     int
	name   string
	f      func()
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	self   uintptr

	ended   bool
	op      atomicx.Op // pending
	at      pending
	clock   vector
	buffer  []buffered
	reads   []readMark // since the last Relax
	lost    bool       // reads was too long and is incomplete
	since   uint64     // changes at the last Relax
	polite  bool       // may pass a Relax although nothing has changed
	unwound int
}

// maxUnwinds is how often a thread may recover the panic that ends it before it is given up as a leak.
const maxUnwinds = 100

// unwinding is panicked with to end a thread early.
type unwinding struct{}

func newRunner(o Options, sc Scenario) *runner {
	r := &runner{o: o, sc: sc, places: newPlaces(), watchdog: make(chan struct{})}
	r.s = S{r: r, outcomes: map[string]int{}}
	atomicx.Install(r)
	go r.watch()
	return r
}

func (r *runner) close() {
	close(r.watchdog)
	atomicx.Install(nil)
	for _, t := range r.spare {
		if t.unwound < maxUnwinds {
			t.stop()
		}
	}
}

// watch ends the process when a schedule makes no progress: a thread waits for something that is not explored.
func (r *runner) watch() {
	const patience = 60 * time.Second
	tick := time.NewTicker(patience)
	defer tick.Stop()
	last := int64(-1)
	for {
		select {
		case <-r.watchdog:
			return
		case <-tick.C:
			n := r.progress.Load()
			if n == last {
				panic(fmt.Sprintf("explore: %s: no schedule has ended for %v; does a thread wait for something that is not "+
					"of atomicx?", r.sc.Name, patience))
			}
			last = n
		}
	}
}

// add adds a thread.
func (r *runner) add(name string, f func()) {
	id := len(r.threads)
	if id == maxThreads {
		panic(fmt.Sprintf("explore: more than %d threads", maxThreads))
	}
	if id == len(r.spare) {
		r.spare = append(r.spare, nil)
	}
	t := r.spare[id]
	if t == nil || t.unwound >= maxUnwinds {
		t = &thread{id: id}
		t.resume, t.stop = iter.Pull(r.body(t))
		t.resume()
		r.spare[id] = t
	}
	t.name, t.f = name, f
	t.ended, t.lost, t.polite = false, false, false
	t.clock = vector{}
	t.clock[id] = 1
	t.buffer, t.reads = t.buffer[:0], t.reads[:0]
	t.since = 0
	r.threads = append(r.threads, t)
}

// body is the coroutine of a thread: it waits for the function of a schedule, runs it, and does so again.
func (r *runner) body(t *thread) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		t.self = atomicx.Self()
		t.yield = yield
		for yield(struct{}{}) {
			r.call(t)
			t.ended = true
			t.f = nil
			r.changes++
			if r.prologue || r.unwind {
				continue
			}
			r.next = r.pick(t)
		}
	}
}

// call runs the thread's function and notes a panic.
func (r *runner) call(t *thread) {
	returned := false
	defer func() {
		v := recover()
		switch {
		case returned:
		case v == nil:
			r.fail(Panic, "thread %s ended by runtime.Goexit (t.FailNow, require)", t.name)
			t.ended = true
		default:
			if _, ok := v.(unwinding); !ok && !r.unwind {
				r.fail(Panic, "thread %s: %v\n%s", t.name, v, stack())
			}
		}
	}()
	t.f()
	returned = true
}

// stack returns the frames of a panic, without those of the runtime and of the explorer.
func stack() string {
	lines := strings.Split(string(debug.Stack()), "\n")
	var b strings.Builder
	seen := false
	for i := 1; i+1 < len(lines); i += 2 {
		fn, file := lines[i], strings.TrimSpace(lines[i+1])
		if strings.HasPrefix(fn, "panic(") {
			seen = true
			b.Reset()
			continue
		}
		if strings.Contains(fn, "explore.(*runner).call(") {
			break
		}
		if seen {
			if j := strings.LastIndex(fn, "("); j > 0 {
				fn = fn[:j]
			}
			file, _, _ = strings.Cut(file, " +0x")
			fmt.Fprintf(&b, "      %s %s\n", fn[strings.LastIndexByte(fn, '/')+1:], short(file))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// once plays one schedule: as far as the path goes by the path, and from there on by the strategy.
func (r *runner) once() {
	r.reset()
	r.sc.Setup(&r.s)
	r.prologue = true
	for _, t := range r.threads {
		r.enter(t)
	}
	r.prologue = false
	if r.failure == nil {
		r.next = r.pick(nil)
	}
	for r.next != nil {
		t := r.next
		r.next = nil
		r.enter(t)
	}
	if r.failure == nil && r.depth < len(r.path) {
		r.fail(Nondeterminism, "the schedule ends after %d decisions, before the one that was to be taken", r.depth)
	}
	if r.failure == nil {
		for _, check := range r.s.finally {
			if err := check(); err != nil {
				r.fail(Wrong, "%v", err)
				break
			}
		}
	}
	r.unwindAll()
	r.progress.Add(1)
}

// enter switches to a thread until it switches back.
func (r *runner) enter(t *thread) {
	r.running = t
	atomicx.Enter(t.self)
	t.resume()
	atomicx.Enter(0)
	r.running = nil
}

func (r *runner) reset() {
	r.places.clear()
	r.threads = r.threads[:0]
	r.s.finally = r.s.finally[:0]
	r.next, r.unwind, r.failure = nil, false, nil
	r.steps, r.changes, r.stalled, r.stalls = 0, 0, 0, 0
	r.depth, r.cost = 0, 0
	r.now = 1_700_000_000_000_000_000
}

// unwindAll ends the threads that a failure has left in the middle.
func (r *runner) unwindAll() {
	r.unwind = true
	for _, t := range r.threads {
		for t.unwound = 0; !t.ended && t.unwound < maxUnwinds; {
			r.enter(t)
		}
	}
}

// leave switches to the driver, and returns when it is the thread's turn again.
func (r *runner) leave(t *thread) {
	if !t.yield(struct{}{}) {
		panic(unwinding{})
	}
	r.checkUnwind(t)
}

// checkUnwind ends the thread if the schedule is over.
func (r *runner) checkUnwind(t *thread) {
	if !r.unwind {
		return
	}
	if t.unwound++; t.unwound >= maxUnwinds {
		t.yield(struct{}{}) // it recovers whatever it is sent: leave it there
	}
	panic(unwinding{})
}

// fail notes what is wrong with this schedule. The first one counts.
func (r *runner) fail(k Kind, format string, args ...any) {
	if r.failure == nil {
		r.failure = &Failure{Scenario: r.sc.Name, Kind: k, Reason: fmt.Sprintf(format, args...)}
		if r.trace != nil {
			r.trace.end(k)
		}
	}
	r.next = nil
	r.unwind = true
}

// abort is fail for the thread that runs: it does not return.
func (r *runner) abort(k Kind, format string, args ...any) {
	r.fail(k, format, args...)
	panic(unwinding{})
}
