package tool

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strconv"
	"strings"
)

// process is what the process is to go by, and what is to be written about it.
type process struct {
	procs    int
	gc       string
	memLimit string
	pin      string
	cpu      string
	heap     string
	trace    string

	gcPercent int
	memBytes  int64
	cpus      []int
}

func (p *process) flags(fs *flag.FlagSet) {
	fs.IntVar(&p.procs, "procs", 0, "GOMAXPROCS, how many processors Go uses")
	fs.StringVar(&p.gc, "gc", "", "GOGC: a `percent` from 1 to 1000000, or off; empty: as it is")
	fs.StringVar(&p.memLimit, "memlimit", "", "GOMEMLIMIT: `bytes`, with KiB, MiB or GiB after the number, such as 512MiB, or off; empty: as it is")
	fs.StringVar(&p.pin, "pin", "", "the `processors` to run on, such as 0,1 or 0-3 (on Linux); all threads may run on each of them")
	fs.StringVar(&p.cpu, "cpuprofile", "", "write a CPU profile to this `file`")
	fs.StringVar(&p.heap, "memprofile", "", "write a heap profile to this `file` at the end")
	fs.StringVar(&p.trace, "trace", "", "write an execution trace to this `file`: keep the run short")
}

// gcMost is the largest percentage of the collector that makes a difference to off.
const gcMost = 1_000_000

// cpuMost is the last processor that a process can be pinned to, and memMost the highest memory limit in bytes.
const (
	cpuMost = 1023
	memMost = 9e18
)

// files lists what is to be written.
func (p *process) files() []fileOf {
	return []fileOf{{"cpuprofile", p.cpu}, {"memprofile", p.heap}, {"trace", p.trace}}
}

// check reads the flags that are text, and says what is wrong with them.
func (p *process) check() (err error) {
	if p.procs < 0 || p.procs > 4096 { // with many more the runtime itself is busy for minutes, and hears no signal
		return fmt.Errorf("-procs is %d: must be 1 to 4096, or 0 (as it is)", p.procs)
	}
	switch p.gc {
	case "":
	case "off":
		p.gcPercent = -1
	default:
		if p.gcPercent, err = strconv.Atoi(strings.TrimSuffix(p.gc, "%")); err != nil || p.gcPercent < 1 || p.gcPercent > gcMost {
			return fmt.Errorf("-gc %q: must be a percentage from 1 to %d, such as 100, or off", p.gc, gcMost)
		}
	}
	if p.memLimit != "" {
		if p.memBytes, err = parseBytes(p.memLimit); err != nil {
			return fmt.Errorf("-memlimit %q: must be a number of bytes from 1 to 9e18, with KiB, MiB or GiB after it if you like, or off", p.memLimit)
		}
	}
	for _, f := range p.files() {
		if f.name == "-" {
			return fmt.Errorf("%s: must be a file", f)
		}
	}
	if p.pin != "" {
		if p.cpus, err = parseCPUs(p.pin); err != nil {
			return fmt.Errorf("-pin %q: must be numbers of processors from 0 to %d, such as 0,1 or 0-3", p.pin, cpuMost)
		}
		if err := pinnable(p.cpus); err != nil {
			return fmt.Errorf("-pin %q: %w", p.pin, err)
		}
	}
	return nil
}

func parseBytes(text string) (int64, error) {
	if text == "off" {
		return math.MaxInt64, nil
	}
	scale := 1.0
	for _, u := range []struct {
		name string
		of   float64
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}} {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			text, scale = rest, u.of
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v*scale >= 1 && v*scale <= memMost) {
		return 0, errors.New("not a number of bytes")
	}
	return int64(v * scale), nil
}

// parseCPUs reads 0,1 or 0-3.
func parseCPUs(text string) (cpus []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		if a < 0 || b < a || b > cpuMost {
			return nil, errors.New("not processors")
		}
		for ; a <= b; a++ {
			cpus = append(cpus, a)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// ranges writes the numbers below n that are in, as -pin takes them: 0-3,6.
func ranges(in func(int) bool, n int) string {
	var parts []string
	for i := 0; i < n; i++ {
		if !in(i) {
			continue
		}
		from := i
		for i+1 < n && in(i+1) {
			i++
		}
		if part := strconv.Itoa(from); i > from {
			parts = append(parts, part+"-"+strconv.Itoa(i))
		} else {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ",")
}

// apply does it, with the files that are open. What it returns ends it: it writes what was to be written, and makes everything as it was.
func (p *process) apply(files map[string]io.WriteCloser) (end func() error, err error) {
	var undo []func() error
	end = func() error {
		var errs []error
		for _, f := range slices.Backward(undo) {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	fail := func(name string, err error) (func() error, error) {
		return nil, errors.Join(fmt.Errorf("-%s: %w", name, err), end())
	}
	later := func(f func()) { undo = append(undo, func() error { f(); return nil }) }
	if p.cpus != nil {
		back, err := pin(p.cpus)
		if err != nil {
			return fail("pin", err)
		}
		later(back)
	}
	procs := p.procs
	if procs == 0 && p.cpus != nil {
		procs = len(p.cpus)
	}
	if procs > 0 {
		before := runtime.GOMAXPROCS(procs)
		later(func() { runtime.GOMAXPROCS(before) })
	}
	if p.gc != "" {
		before := debug.SetGCPercent(p.gcPercent)
		later(func() { debug.SetGCPercent(before) })
	}
	if p.memLimit != "" {
		before := debug.SetMemoryLimit(p.memBytes)
		later(func() { debug.SetMemoryLimit(before) })
	}
	for _, x := range []struct {
		name  string
		start func(io.Writer) error
		stop  func(io.Writer) error
	}{
		{"memprofile", func(io.Writer) error { return nil }, func(w io.Writer) error { runtime.GC(); return pprof.WriteHeapProfile(w) }},
		{"trace", trace.Start, func(io.Writer) error { trace.Stop(); return nil }},
		{"cpuprofile", pprof.StartCPUProfile, func(io.Writer) error { pprof.StopCPUProfile(); return nil }},
	} {
		f, ok := files[x.name]
		if !ok {
			continue
		}
		if err = x.start(f); err != nil {
			return fail(x.name, err)
		}
		undo = append(undo, func() error { return finished(x.name, f, x.stop(f)) }) // of these, only the file knows what was not written
	}
	return end, nil
}
