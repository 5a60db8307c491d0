// Command compare lets Leat and its rivals take turns and says how many times faster one is than the other.
//
//	compare -list                                   every rival, and what it is
//	compare                                         the main rivals against a channel, in every topology
//	compare -rivals 'leat/*/reader,ring*' -against ring -topologies '1->1' -waits spin
//	compare -targets                                what Leat is to reach, and whether it does
//	compare -floors                                 how far Leat, and its rivals, are from the least that has to be done
//
// Run it on a machine that does nothing else. It prints a table, and writes JSON and a chart next to each other.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leatlog/leat/bench/rivals"
	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/bench/rivals/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// mains are the rivals of a run that asks for none: each of the others, and Leat's ways that people would take first.
const mains = "leat/async/reader,leat/sync/reader,leat/batch16/reader,leat/batch64/reader,leat/append1/reader,leat/append/reader,leat/append-batch64/reader,leat/reserve/reader,leat/reserve/run," +
	"leat/async/push,leat/async/push-batch,leat/async/group,leat/async/group-batch,leat/async/poll," +
	"chan-bytes,chan-batch,mutexlog,ring1,ring,xsync-*,workiva-ring,diodes,cskr-pubsub,eventbus*,watermill,nats,jetstream,kfake,lmax1,lmax"

// options are the flags, read.
type options struct {
	rivals     string
	against    string
	topologies string
	sizes      string
	rates      string
	waits      string
	slices     int
	length     time.Duration
	out        string
	name       string
	list       bool
	targets    bool
	floors     bool
	raw        string
	profile    string
}

func flags(args []string, stderr io.Writer) (o options, err error) {
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.rivals, "rivals", mains, "what to compare: names or patterns, with commas between them; all is everything")
	f.StringVar(&o.against, "against", "chan", "what to compare with: names or patterns")
	f.StringVar(&o.topologies, "topologies", "1->1,3->1,1->3,4x4", "who sends to whom: producers->consumers, or 4 partitions x a group of 4")
	f.StringVar(&o.sizes, "sizes", "64", "bytes of a message: some of 16, 64, 1024")
	f.StringVar(&o.rates, "rates", "max", "messages a second: max, 100k, 1M, ... Latency is measured where there is a rate")
	f.StringVar(&o.waits, "waits", "default", "how who has nothing to do waits: default, park, yield, spin; what a side does not know is its default")
	f.IntVar(&o.slices, "slices", 30, "how many slices of each side")
	f.DurationVar(&o.length, "slice", 100*time.Millisecond, "about how long a slice is")
	f.StringVar(&o.out, "out", filepath.Join("..", "results"), "the folder for JSON and chart; empty writes none")
	f.StringVar(&o.name, "name", "", "what files are called, before the date; empty is compare, targets or floors")
	f.BoolVar(&o.list, "list", false, "list the rivals and end")
	f.BoolVar(&o.targets, "targets", false, "run what Leat is to reach, instead of -rivals")
	f.BoolVar(&o.floors, "floors", false, "run how far it is to the least that has to be done, instead of -rivals")
	f.StringVar(&o.profile, "cpuprofile", "", "a file for a profile; go tool pprof -tagfocus=rival=NAME shows whose time it is")
	f.StringVar(&o.raw, "raw", "", "a file for every slice, as JSON")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("what is %q?", f.Arg(0))
	}
	if o.targets && o.floors {
		return o, errors.New("-targets or -floors, not both")
	}
	if o.slices < 1 || o.length < time.Millisecond {
		return o, errors.New("there must be slices, of a millisecond or more")
	}
	return o, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := flags(args, stderr)
	if err != nil {
		return err
	}
	if o.list {
		return list(stdout)
	}
	matches, err := plan(&o)
	if err != nil {
		return err
	}
	if len(matches) == 0 {
		return errors.New("there is nothing to compare; see -list")
	}
	// Each slice takes its time, two probes and a collection.
	var all time.Duration
	for i := range matches {
		m := &matches[i]
		all += m.A.Warm + m.B.Warm + time.Duration(2*o.slices*len(m.Rates))*(o.length+15*time.Millisecond)
	}
	fmt.Fprintf(stderr, "%d comparisons, about %v\n", len(matches), all.Round(time.Second))

	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	rep := report.New(o.slices, o.length)
	var raw []arena.Outcome
	for i := range matches {
		m := &matches[i]
		fmt.Fprintf(stderr, "%d/%d %s %d B %v against %v\n", i+1, len(matches), m.Topology.Name, m.Size, m.A, m.B)
		outs, err := m.run(ctx)
		if ctx.Err() != nil {
			break // what there is up to now is still worth something
		}
		lines := rep.Add(outs, err)
		if m.target != nil {
			m.target.Judge(rep.Lines[len(rep.Lines)-len(lines):])
		}
		raw = append(raw, outs...)
	}
	if err := rep.WriteTable(stdout); err != nil {
		return err
	}
	if err := write(&o, rep, raw, stderr); err != nil {
		return err
	}
	if n := rep.Failed(); n > 0 {
		return fmt.Errorf("%d comparisons failed", n)
	}
	return ctx.Err()
}

func list(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rivals.All() {
		waits := r.DefaultWait().String()
		for _, x := range r.Waits[min(1, len(r.Waits)):] {
			waits += ", " + x.String()
		}
		about := r.About
		if r.Missing != nil {
			if why := r.Missing(); why != "" {
				about += " (" + why + ")"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.Name, waits, about)
	}
	return t.Flush()
}

// match is one to be run.
type match struct {
	arena.Match
	target *report.Target
}

// run runs it, with as many processors as its target asks for.
func (m *match) run(ctx context.Context) ([]arena.Outcome, error) {
	if m.target != nil && m.target.Procs > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(m.target.Procs))
	}
	return m.Match.Run(ctx)
}

func plan(o *options) ([]match, error) {
	switch {
	case o.targets:
		return planTargets(o, targets())
	case o.floors:
		return planTargets(o, floors())
	}
	as, err := named(o.rivals)
	if err != nil {
		return nil, err
	}
	bs, err := named(o.against)
	if err != nil {
		return nil, err
	}
	tops, err := topologies(o.topologies)
	if err != nil {
		return nil, err
	}
	sizes, err := sizes(o.sizes)
	if err != nil {
		return nil, err
	}
	rates, err := rates(o.rates)
	if err != nil {
		return nil, err
	}
	var list []match
	for _, top := range tops {
		for _, size := range sizes {
			for _, b := range bs {
				for _, a := range as {
					for text := range strings.SplitSeq(o.waits, ",") {
						ma, err := side(a, text)
						if err != nil {
							return nil, err
						}
						mb, err := side(b, text)
						if err != nil {
							return nil, err
						}
						m := match{Match: arena.Match{A: ma, B: mb, Topology: top, Size: size, Rates: rates, Slices: o.slices, Length: o.length}}
						if a.Name != b.Name && !slices.ContainsFunc(list, m.same) && can(ma, &m) && can(mb, &m) {
							list = append(list, m)
						}
					}
				}
			}
		}
	}
	return list, nil
}

// same reports whether two matches are the same, as those are of several waits where no side knows them.
func (m *match) same(o match) bool {
	return m.A.String() == o.A.String() && m.B.String() == o.B.String() && m.Topology == o.Topology && m.Size == o.Size
}

// can reports whether a side can do the workload: what it cannot do is nobody's news.
func can(s arena.Side, m *match) bool {
	return s.Check(arena.Spec{Topology: m.Topology, Size: m.Size, Wait: s.Wait}) == nil
}

func planTargets(o *options, all []report.Target) ([]match, error) {
	var list []match
	for _, t := range all {
		a, err := named(t.A)
		if err != nil {
			return nil, err
		}
		b, err := named(t.B)
		if err != nil {
			return nil, err
		}
		wait := func(r *arena.Rival, w arena.Wait) arena.Wait {
			if w == arena.Park {
				return r.DefaultWait()
			}
			return w
		}
		list = append(list, match{target: &t, Match: arena.Match{
			A: arena.Side{Rival: a[0], Wait: wait(a[0], t.WaitA)}, B: arena.Side{Rival: b[0], Wait: wait(b[0], t.WaitB)},
			Topology: t.Topology, Size: t.Size, Rates: []float64{t.Rate}, Slices: o.slices, Length: o.length,
		}})
	}
	return list, nil
}

// side is a rival with a way to wait, or its default if it does not know that one.
func side(r *arena.Rival, text string) (arena.Side, error) {
	s := arena.Side{Rival: r, Wait: r.DefaultWait()}
	var w arena.Wait
	switch text {
	case "default":
		return s, nil
	case "park":
		w = arena.Park
	case "yield":
		w = arena.Yield
	case "spin":
		w = arena.Spin
	default:
		return s, fmt.Errorf("-waits: %q is none of default, park, yield, spin", text)
	}
	if slices.Contains(r.Waits, w) {
		s.Wait = w
	}
	return s, nil
}

// named returns the rivals of some patterns, each once.
func named(patterns string) (list []*arena.Rival, err error) {
	seen := map[string]bool{}
	for pattern := range strings.SplitSeq(patterns, ",") {
		found, err := rivals.Named(pattern)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", pattern, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("nobody is called %q; see -list", pattern)
		}
		for _, r := range found {
			if !seen[r.Name] {
				seen[r.Name] = true
				list = append(list, r)
			}
		}
	}
	return list, nil
}

func topologies(text string) (list []arena.Topology, err error) {
	all := append(arena.Topologies(), rivals.Publish, rivals.Replay, rivals.Retention)
	for name := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(all, func(t arena.Topology) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("-topologies: there is no %q", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

func sizes(text string) (list []int, err error) {
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || !slices.Contains(arena.Sizes(), n) {
			return nil, fmt.Errorf("-sizes: %q is none of 16, 64, 1024", word)
		}
		list = append(list, n)
	}
	return list, nil
}

func rates(text string) (list []float64, err error) {
	for word := range strings.SplitSeq(text, ",") {
		if word == "max" {
			list = append(list, 0)
			continue
		}
		number, unit := word, 1.
		switch {
		case strings.HasSuffix(word, "k"):
			number, unit = word[:len(word)-1], 1e3
		case strings.HasSuffix(word, "M"):
			number, unit = word[:len(word)-1], 1e6
		}
		x, err := strconv.ParseFloat(number, 64)
		if err != nil || !(x > 0) || x*unit > 1e9 {
			return nil, fmt.Errorf("-rates: %q is not max, nor a number like 100k or 1M", word)
		}
		list = append(list, x*unit)
	}
	return list, nil
}
