//go:build explore

package explore

import (
	"fmt"
	"os"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// Scenario is a small concurrent program.
type Scenario struct {
	// Name tells it from others.
	Name string
	// Setup makes the state and the threads. It is called once for each schedule and must do the same each time. What it
	// does happens before all that the threads do.
	Setup func(s *S)
}

// Options say how far to search. The zero value searches to bound 3.
type Options struct {
	// Bound is how many delays a schedule may have. 0 means 3; Exhaustive means all schedules.
	Bound int
	// MaxSchedules ends the search. 0 means 2,000,000.
	MaxSchedules int
	// MaxSteps is how many operations a schedule may have; more is a livelock. 0 means 4,000.
	MaxSteps int
	// TryLock says that the scenario uses Mutex.TryLock. Unlock is a step of its own then; otherwise nobody can tell it from
	// the operation before it.
	TryLock bool
	// Random is how many random schedules to run instead of the search by bound.
	Random int
	// Seed is where Random starts. 0 means 1.
	Seed uint64

	// right says that nothing will be found, by all that is known: the search goes to the last bound at once, and looks for the least
	// bound only if something is found all the same.
	right bool
}

// Exhaustive is a Bound that no schedule exceeds.
const Exhaustive = 1 << 20

func (o Options) withDefaults() Options {
	if o.Bound == 0 {
		o.Bound = 3
	}
	if o.MaxSchedules == 0 {
		o.MaxSchedules = 2_000_000
	}
	if o.MaxSteps == 0 {
		o.MaxSteps = 4_000
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	return o
}

// S is a scenario while a schedule of it runs.
type S struct {
	r        *runner
	finally  []func() error
	outcomes map[string]int
}

// Go adds a thread. Only Setup may call it.
func (s *S) Go(name string, f func()) { s.r.add(name, f) }

// Finally adds a check of the end state, to be made when all threads have ended. Only Setup may call it.
func (s *S) Finally(check func() error) { s.finally = append(s.finally, check) }

// Name names the word, cell, mutex or other memory at p in traces.
func (s *S) Name(p unsafe.Pointer, name string) { s.r.trace.setName(p, name) }

// Outcome notes, in Finally, what came of this schedule; the Result counts them.
func (s *S) Outcome(format string, args ...any) { s.outcomes[fmt.Sprintf(format, args...)]++ }

// Close closes ch. It is a step, unlike a plain close. Only threads may call it.
func (s *S) Close(ch chan struct{}) { s.r.closeChannel(ch) }

// Choose returns a number from 0 to n-1; every one of them is tried. It is for what a thread may do for reasons outside
// the scenario. Only threads may call it. n is at most 16.
func (s *S) Choose(n int) int { return s.r.chooseFree(n) }

// Advance moves the virtual clock on. Threads and Setup may call it.
func (s *S) Advance(d time.Duration) { s.r.advance(int64(d)) }

// Assert panics with the message if ok is false.
func Assert(ok bool, format string, args ...any) {
	if !ok {
		panic("assertion failed: " + fmt.Sprintf(format, args...))
	}
}

// Bound is what the search to one bound came to.
type Bound struct {
	Bound     int
	Schedules int  // with at most Bound delays
	Done      bool // all of them ran
}

// Result is what a search came to.
type Result struct {
	Scenario string
	Bounds   []Bound
	Random   int            // random schedules that ran
	Complete bool           // no schedule is left, whatever the bound
	MaxSteps int            // in one schedule
	Outcomes map[string]int // of the last bound that ran
	Failure  *Failure       // nil if nothing was found
	Elapsed  time.Duration

	ran int // schedules
}

// Schedules returns how many schedules ran in all.
func (r *Result) Schedules() int { return r.ran }

// String returns one line for a log.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", r.Scenario)
	for _, x := range r.Bounds {
		fmt.Fprintf(&b, " bound %d: %d", x.Bound, x.Schedules)
		if !x.Done {
			b.WriteString(" (cut short)")
		}
		b.WriteString(",")
	}
	if r.Random > 0 {
		fmt.Fprintf(&b, " random: %d,", r.Random)
	}
	if r.Complete {
		b.WriteString(" complete,")
	}
	fmt.Fprintf(&b, " at most %d steps, %.2f s, %.0f schedules/s", r.MaxSteps, r.Elapsed.Seconds(),
		float64(r.Schedules())/max(r.Elapsed.Seconds(), 1e-9))
	return b.String()
}

// OutcomeSet returns the outcomes, sorted.
func (r *Result) OutcomeSet() []string {
	set := make([]string, 0, len(r.Outcomes))
	for o := range r.Outcomes {
		set = append(set, o)
	}
	sort.Strings(set)
	return set
}

// ReplayVariable is the environment variable that has Run replay a choice list, which it holds, instead of searching.
const ReplayVariable = "LEAT_EXPLORE_REPLAY"

// Run searches sc and fails t with the first failure that it finds, or with a search that the cap on schedules cut short.
func Run(t testing.TB, o Options, sc Scenario) *Result {
	t.Helper()
	if list := os.Getenv(ReplayVariable); list != "" {
		choices, err := ParseChoices(list)
		if err != nil {
			t.Fatalf("%s: %v", ReplayVariable, err)
		}
		if f := Replay(o, sc, choices); f != nil {
			t.Fatal(f)
		}
		return &Result{Scenario: sc.Name}
	}
	o.right = true
	res := Check(o, sc)
	t.Log(res)
	if res.Failure != nil {
		t.Fatalf("%v\n  again with: %s='%s' go test -tags explore -run '^%s$'", res.Failure, ReplayVariable,
			res.Failure.Choices, t.Name())
	}
	for _, b := range res.Bounds {
		if !b.Done {
			t.Fatalf("explore: %s: bound %d not completed within %d schedules", sc.Name, b.Bound, b.Schedules)
		}
	}
	return res
}

// MustFail searches sc, which is known to be wrong, and fails t if nothing is found, or not what is known to be wrong.
func MustFail(t testing.TB, o Options, sc Scenario, kind Kind) *Failure {
	t.Helper()
	res := Check(o, sc)
	if res.Failure == nil {
		t.Fatalf("explore: the fault was not found: %v", res)
	}
	f := res.Failure
	if f.Kind != kind {
		t.Fatalf("explore: looked for a %v, found another failure: %v", kind, f)
	}
	if again := Replay(o, sc, f.Choices); again == nil || again.Kind != f.Kind || again.Trace != f.Trace {
		t.Fatalf("explore: the replay was different:\n%v\n\nnot:\n%v", again, f)
	}
	t.Logf("%s: %v found at bound %d, schedule %d: %s", sc.Name, f.Kind, f.Bound, f.Schedule, f.Reason)
	return f
}

// exploring lets one search run at a time: the hook in atomicx is the process's.
var exploring sync.Mutex

// Check searches sc and returns what it found.
func Check(o Options, sc Scenario) *Result {
	res := &Result{Scenario: sc.Name}
	start := time.Now()
	play(o, sc, func(r *runner) {
		if r.o.Random > 0 {
			r.searchRandom(res)
		} else {
			r.searchBounds(res)
		}
	})
	res.Elapsed = time.Since(start)
	return res
}

// Replay runs the one schedule that the choices make and returns its failure, if it fails.
func Replay(o Options, sc Scenario, choices Choices) (f *Failure) {
	play(o, sc, func(r *runner) { f = r.replay(choices) })
	return f
}

// ballast is memory that nobody touches, for the collector to count. A high percentage of what lives would do as well, if it were not
// for a sync.Pool in what a schedule leaves behind: that lives until the next collection, and each would come later than the last.
var ballast = sync.OnceValue(func() []byte { return make([]byte, 128<<20) })

// play calls f with a runner.
func play(o Options, sc Scenario, f func(r *runner)) {
	exploring.Lock()
	defer exploring.Unlock()
	ballast()
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // of the ballast: each schedule leaves its state behind, and hardly anything lives
	r := newRunner(o.withDefaults(), sc)
	returned := false
	defer func() {
		r.close()
		if !returned { // a thread called t.FailNow, and with it the driver ends
			fmt.Printf("explore: %s: %v; choices %v\n", sc.Name, r.failure, r.choices())
		}
	}()
	f(r)
	returned = true
}

func chanPointer[C chan struct{} | <-chan struct{}](c C) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&c))
}

var _ atomicx.Scheduler = (*runner)(nil)
