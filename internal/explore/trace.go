//go:build explore

package explore

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// Kind is a kind of failure.
type Kind uint8

// The kinds of failure; see the package comment.
const (
	Panic Kind = iota
	Wrong      // an error from Finally
	Deadlock
	Livelock
	Race
	Nondeterminism
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"panic", "wrong end state", "deadlock or lost wake-up", "livelock", "race", "nondeterminism"}[k]
}

// Failure is a schedule that goes wrong.
type Failure struct {
	Scenario string
	Kind     Kind
	Reason   string
	Bound    int    // how many delays it has
	Schedule int    // how many schedules at this bound it took to find it
	Seed     uint64 // of a random search, or 0
	Choices  Choices
	Trace    string
}

// Error implements error.
func (f *Failure) Error() string {
	seed := ""
	if f.Seed != 0 {
		seed = fmt.Sprintf(", seed %d", f.Seed)
	}
	return fmt.Sprintf("explore: %s: %v: %s\n  bound %d, schedule %d%s, choices %v\n%s", f.Scenario, f.Kind, f.Reason, f.Bound,
		f.Schedule, seed, f.Choices, f.Trace)
}

// tracer writes down what the threads do.
type tracer struct {
	r     *runner
	b     strings.Builder
	n     int
	names map[uintptr]string
	count map[string]int
	where [maxThreads]string // of each thread's pending operation
	wrote map[uintptr]string
	read  map[uintptr]*[maxThreads]string
}

func newTracer(r *runner) *tracer {
	return &tracer{
		r:     r,
		names: map[uintptr]string{},
		count: map[string]int{},
		wrote: map[uintptr]string{},
		read:  map[uintptr]*[maxThreads]string{},
	}
}

// setName gives the memory at p a name. The tracer may be nil.
func (tr *tracer) setName(p unsafe.Pointer, name string) {
	if tr != nil {
		tr.names[uintptr(p)] = name
	}
}

// name returns the name of the memory at p, which op touches.
func (tr *tracer) name(op atomicx.Op, p unsafe.Pointer) string {
	kind := "word"
	switch op {
	case atomicx.OpLock, atomicx.OpTryLock, atomicx.OpUnlock:
		kind = "mutex"
	case atomicx.OpPark, atomicx.OpUnpark:
		kind = "parker"
	case atomicx.OpClose:
		kind = "channel"
	case plainOp:
		kind = "plain"
	}
	if p == unsafe.Pointer(&tr.r.now) {
		kind = "clock"
	}
	return tr.nameOf(kind, uintptr(p))
}

// nameOf returns the name of the memory at p, and makes one up if need be.
func (tr *tracer) nameOf(kind string, p uintptr) string {
	if name, ok := tr.names[p]; ok {
		return name
	}
	tr.count[kind]++
	name := fmt.Sprintf("%s%d", kind, tr.count[kind])
	tr.names[p] = name
	return name
}

// plainOp stands for an access of plain memory in name.
const plainOp atomicx.Op = 0xFF

func (tr *tracer) line(t *thread, where, format string, args ...any) {
	tr.n++
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(&tr.b, "  %4d  %-12s %-44s %s\n", tr.n, t.name, text, where)
}

// pending notes where t is as it waits for its turn.
func (tr *tracer) pending(t *thread) { tr.where[t.id] = where() }

// did writes down an operation that is done.
func (tr *tracer) did(t *thread, op atomicx.Op, p unsafe.Pointer, a, b uint64, wrote bool) {
	var text string
	name := ""
	if p != nil {
		name = tr.name(op, p)
	}
	switch op {
	case atomicx.OpLoad:
		text = fmt.Sprintf("%s is %s", name, tr.value(a))
	case atomicx.OpStore:
		text = fmt.Sprintf("%s = %s", name, tr.value(a))
	case atomicx.OpStoreRelease:
		text = fmt.Sprintf("%s = %s (buffered)", name, tr.value(a))
	case atomicx.OpAdd:
		text = fmt.Sprintf("%s += %d: %s", name, int64(a), tr.value(b))
	case atomicx.OpSwap:
		text = fmt.Sprintf("%s = %s, was %s", name, tr.value(a), tr.value(b))
	case atomicx.OpCAS:
		text = fmt.Sprintf("%s = %s if %s: %v", name, tr.value(b), tr.value(a), wrote)
	case atomicx.OpAnd:
		text = fmt.Sprintf("%s &= %#x, was %s", name, a, tr.value(b))
	case atomicx.OpOr:
		text = fmt.Sprintf("%s |= %#x, was %s", name, a, tr.value(b))
	case atomicx.OpLock:
		text = "lock " + name
	case atomicx.OpTryLock:
		text = fmt.Sprintf("trylock %s: %v", name, wrote)
	case atomicx.OpUnlock:
		text = "unlock " + name
	case atomicx.OpPark:
		text = fmt.Sprintf("leaves %s, woken: %v", name, wrote)
	case atomicx.OpUnpark:
		text = fmt.Sprintf("unpark %s", name)
		if !wrote {
			text += " (has a token)"
		}
	case atomicx.OpRelax:
		text = "looks again"
	case atomicx.OpClose:
		text = "close " + name
	}
	tr.line(t, tr.where[t.id], "%s", text)
}

// value prints a value so that it is the same in each run: an address is printed as a name.
func (tr *tracer) value(v uint64) string {
	if v>>56 == atomicx.AddressMark {
		return "&" + tr.nameOf("plain", uintptr(v&(1<<56-1)))
	}
	if v >= 1<<63 {
		return fmt.Sprintf("%#x", v)
	}
	return fmt.Sprint(v)
}

func (tr *tracer) forwarded(t *thread, p unsafe.Pointer, v uint64) {
	tr.line(t, tr.where[t.id], "%s is %s (from its buffer)", tr.name(atomicx.OpLoad, p), tr.value(v))
}

func (tr *tracer) flushed(t *thread, p unsafe.Pointer, v uint64) {
	tr.line(t, "", "%s = %s (flushed)", tr.name(atomicx.OpLoad, p), tr.value(v))
}

func (tr *tracer) chose(t *thread, k, n int) { tr.line(t, "", "takes way %d of %d", k, n) }

// plain writes down an access of plain memory.
func (tr *tracer) plain(t *thread, p unsafe.Pointer, write bool) {
	verb := "reads"
	if write {
		verb = "writes"
	}
	tr.where[t.id] = where()
	tr.line(t, tr.where[t.id], "%s %s", verb, tr.name(plainOp, p))
}

// race says where the two accesses of a race are: t's, which was just written down, and u's before it.
func (tr *tracer) race(t, u *thread, p unsafe.Pointer, wrote bool) string {
	before := tr.wrote[uintptr(p)]
	if !wrote {
		before = tr.read[uintptr(p)][u.id]
	}
	return fmt.Sprintf(" (%s: %s; %s)", tr.name(plainOp, p), tr.where[t.id], before)
}

// ran notes an access of plain memory that was no race.
func (tr *tracer) ran(t *thread, p unsafe.Pointer, write bool) {
	at := uintptr(p)
	if write {
		tr.wrote[at] = tr.where[t.id]
		return
	}
	if tr.read[at] == nil {
		tr.read[at] = &[maxThreads]string{}
	}
	tr.read[at][t.id] = tr.where[t.id]
}

// end writes down where the threads that are left stand after a failure.
func (tr *tracer) end(k Kind) {
	for _, t := range tr.r.threads {
		if !t.ended {
			does := waiting(t.op)
			if t == tr.r.running && (k == Panic || k == Race) {
				does = "fails"
			}
			fmt.Fprintf(&tr.b, "   end  %-12s %-44s %s\n", t.name, does, tr.where[t.id])
		}
	}
}

// String returns the trace.
func (tr *tracer) String() string { return strings.TrimRight(tr.b.String(), "\n") }

func waiting(op atomicx.Op) string {
	switch op {
	case atomicx.OpLock:
		return "waits for a mutex"
	case atomicx.OpPark:
		return "is parked"
	case atomicx.OpRelax:
		return "waits in a loop"
	}
	return "can run"
}

// where returns the lines of the caller's code, the innermost first.
func where() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	var lines []string
	last := ""
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "explore.(*runner).call") || len(lines) == 4 {
			break
		}
		if !own(f.File) {
			line := fmt.Sprintf(":%d", f.Line)
			if f.File != last {
				line = short(f.File) + line
			}
			last = f.File
			lines = append(lines, line)
		}
		if !more {
			break
		}
	}
	return strings.Join(lines, " < ")
}

// own reports whether a file belongs to the explorer or its shims.
func own(file string) bool {
	dir, name := filepath.Base(filepath.Dir(file)), filepath.Base(file)
	switch dir {
	case "atomicx":
		return strings.HasSuffix(name, "_explore.go")
	case "explore":
		return !strings.HasSuffix(name, "_test.go")
	}
	return file == "<autogenerated>"
}

// short leaves the last two elements of a path.
func short(file string) string {
	dir, name := filepath.Split(file)
	return filepath.Join(filepath.Base(dir), name)
}
