package check

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Durability is what a crash leaves of what was acknowledged.
type Durability uint8

// Durabilities.
const (
	Memory   Durability = iota // nothing need be left
	Interval                   // all that was acknowledged Options.Interval before the crash
	Durable                    // all: kill -9 under Process, a power cut under Sync
)

// Options are what Check cannot know from the history.
type Options struct {
	// Durability is what holds for each crash of the run.
	Durability Durability

	// Interval is how long before a crash what was acknowledged is durable, with Durability Interval.
	Interval time.Duration

	// Limit is how many findings of each anomaly are kept. 0 means 10. All are counted.
	Limit int
}

// Finding is a contradiction.
type Finding struct {
	Anomaly Anomaly
	Ops     []int // indexes into History.Ops of what contradicts each other; the last one is what shows it
	Text    string
}

// Report is what Check found.
type Report struct {
	// Findings are sorted by the time at which they show, up to Options.Limit of each anomaly.
	Findings []Finding

	// Counts are how many findings there are of each anomaly.
	Counts map[Anomaly]int

	// Figures say how the run went. None of them is wrong.
	Figures Figures

	history *History
}

// Ok reports whether nothing was found.
func (r *Report) Ok() bool { return len(r.Findings) == 0 }

// Has reports whether the anomaly was found.
func (r *Report) Has(a Anomaly) bool { return r.Counts[a] > 0 }

// Anomalies returns what was found, in the order of the numbers.
func (r *Report) Anomalies() (found []Anomaly) {
	for _, a := range Anomalies() {
		if r.Has(a) {
			found = append(found, a)
		}
	}
	return found
}

// around is how many operations are printed around a finding, and shown is how many findings are.
const (
	around = 20
	shown  = 10
)

// String tells what was found, with the operations around, and the seed.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d operations", r.history.Seed, len(r.history.Ops))
	if r.Ok() {
		fmt.Fprintf(&b, ", no anomaly\n%s", r.Figures)
		return b.String()
	}
	for _, a := range r.Anomalies() {
		fmt.Fprintf(&b, "\n%d x %s", r.Counts[a], a)
	}
	b.WriteByte('\n')
	for i, f := range r.Findings {
		if i == shown {
			fmt.Fprintf(&b, "\n%d more findings\n", len(r.Findings)-i)
			break
		}
		fmt.Fprintf(&b, "\n%s: %s\n", f.Anomaly, f.Text)
		r.context(&b, f)
	}
	fmt.Fprintf(&b, "\n%s\nseed %d\n", r.Figures, r.history.Seed)
	return b.String()
}

// context prints the operations of a finding, and those around the one that shows it: of the same partition, or of any.
func (r *Report) context(b *strings.Builder, f Finding) {
	h := r.history
	if len(f.Ops) == 0 {
		return
	}
	last := f.Ops[len(f.Ops)-1]
	near := func(i int) bool {
		o := &h.Ops[i]
		return o.Part == h.Ops[last].Part || o.Part == AnyPartition || h.Ops[last].Part == AnyPartition
	}
	list := slices.Clone(f.Ops[:min(len(f.Ops), around)])
	list = append(list, last)
	for i, n := last-1, 0; i >= 0 && n < around/2; i-- {
		if near(i) {
			list = append(list, i)
			n++
		}
	}
	for i, n := last+1, 0; i < len(h.Ops) && n < around/2; i++ {
		if near(i) {
			list = append(list, i)
			n++
		}
	}
	slices.Sort(list)
	for _, i := range slices.Compact(list) {
		mark := "   "
		if slices.Contains(f.Ops, i) {
			mark = " > "
		}
		b.WriteString(mark + h.text(i) + "\n")
	}
}

// TB is the part of testing.TB that Require needs.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Require ends the test if anything was found.
func (r *Report) Require(t TB) {
	t.Helper()
	if !r.Ok() {
		t.Fatalf("the history contradicts what is promised\n%s", r)
	}
}
