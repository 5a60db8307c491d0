package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Options change what counts as a difference. The zero value is useful.
type Options struct {
	// Threshold is the smallest change that counts, as a fraction. 0 means 0.05.
	Threshold float64
	// Anyway compares runs that should not be compared: those of different loads, or placed differently.
	Anyway bool
}

// Verdict is what came out, of a metric or of all together.
type Verdict string

const (
	Same         Verdict = "same"           // no difference
	Better       Verdict = "better"         // B is
	Worse        Verdict = "worse"          // B is
	Mixed        Verdict = "mixed"          // some metrics are better, others worse
	Unclear      Verdict = "unclear"        // a run measured nothing, or they are too short or too noisy to tell even large changes
	NotJudged    Verdict = ""               // shown only
	Wrong        Verdict = "wrong"          // a run has faults: how fast it was does not matter
	Incomparable Verdict = "not comparable" // different loads, or different placement
)

// Exit codes of a comparison.
const (
	ExitSame         = 0 // no difference, better, or unclear
	ExitWorse        = 1 // worse, or mixed
	ExitWrong        = 2 // a run has faults
	ExitIncomparable = 3
)

// Row is one metric.
type Row struct {
	Name string `json:"name"`
	Unit string `json:"unit"` // "/s", "ns" or ""
	// A and B are the medians over the windows, or the figures of the whole runs if there are too few windows.
	A float64 `json:"a"`
	B float64 `json:"b"`
	// By is how much B differs, as a fraction of A, and Low and High are the ends of its band.
	By   float64 `json:"by"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Windows is how many windows of each run were compared. 0: the band is assumed.
	Windows [2]int `json:"windows"`
	// Verdict is of this metric. Counts says that it has a say in the whole.
	Verdict Verdict `json:"verdict"`
	Counts  bool    `json:"counts"`

	higherIsBetter bool
}

// Comparison is what came out.
type Comparison struct {
	Verdict Verdict `json:"verdict"`
	// Text says it in a sentence.
	Text string `json:"text"`
	// Reasons say why the runs are not comparable, or would not be.
	Reasons []string `json:"reasons,omitempty"`
	// Notes are other things that differ between the runs, and warnings.
	Notes []string `json:"notes,omitempty"`
	Rows  []Row    `json:"rows"`
}

// Exit returns the exit code for a program.
func (c Comparison) Exit() int {
	switch c.Verdict {
	case Worse, Mixed:
		return ExitWorse
	case Wrong:
		return ExitWrong
	case Incomparable:
		return ExitIncomparable
	}
	return ExitSame
}

// Bands that are assumed for metrics without windows.
const (
	assumedRate    = 0.15
	assumedLatency = 0.30
)

// metric is what is compared.
type metric struct {
	name, unit string
	higher     bool // is better
	whole      func(Run) float64
	window     func(window) float64 // nil: none
	counts     func(a, b Run) bool  // nil: it does not
	assumed    float64              // 0: without windows it is not judged
}

func paced(a, b Run) bool { return a.Rate > 0 && b.Rate > 0 }
func both(Run, Run) bool  { return true }

// metrics in the order of the table. Without a rate, latencies only show how much is buffered, and do not count. The tail beyond p99
// is the machine.
var metrics = []metric{
	{"rate", "/s", true, func(r Run) float64 { return *r.RateMsgsPerS }, func(w window) float64 { return w.RateMsgsPerS }, both, assumedRate},
	{"published", "/s", true, func(r Run) float64 { return r.PublishMsgsPerS }, func(w window) float64 { return w.PublishMsgsPerS }, nil, assumedRate},
	{"e2e p50", "ns", false, func(r Run) float64 { return r.Latency.E2E.P50 }, func(w window) float64 { return w.E2E.P50 }, paced, assumedLatency},
	{"e2e p90", "ns", false, func(r Run) float64 { return r.Latency.E2E.P90 }, func(w window) float64 { return w.E2E.P90 }, paced, assumedLatency},
	{"e2e p99", "ns", false, func(r Run) float64 { return r.Latency.E2E.P99 }, func(w window) float64 { return w.E2E.P99 }, paced, 0},
	{"e2e p99.9", "ns", false, func(r Run) float64 { return r.Latency.E2E.P999 }, func(w window) float64 { return w.E2E.P999 }, nil, 0},
	{"e2e max", "ns", false, func(r Run) float64 { return r.Latency.E2E.Max }, nil, nil, 0},
	{"publish p50", "ns", false, func(r Run) float64 { return r.Latency.Publish.P50 }, func(w window) float64 { return w.Publish.P50 }, nil, 0},
	{"publish p99", "ns", false, func(r Run) float64 { return r.Latency.Publish.P99 }, func(w window) float64 { return w.Publish.P99 }, nil, 0},
	{"delay p99", "ns", false, func(r Run) float64 { return r.Latency.Delay.P99 }, func(w window) float64 { return w.Delay.P99 }, nil, 0},
	{"cpu per message", "ns", false, func(r Run) float64 { return r.CPUNsPerMsg }, func(w window) float64 { return w.CPUNsPerMsg }, nil, 0},
	{"allocs per message", "", false, func(r Run) float64 { return r.AllocsPerMsg }, nil, nil, 0},
	{"bytes per message", "", false, func(r Run) float64 { return r.BytesPerMsg }, nil, nil, 0},
}

// Compare compares B with A.
func Compare(a, b Run, o Options) Comparison {
	if o.Threshold == 0 {
		o.Threshold = 0.05
	}
	c := Comparison{Reasons: reasons(a, b), Notes: notes(a, b)}
	for _, m := range metrics {
		if r, ok := m.row(a, b, o); ok {
			c.Rows = append(c.Rows, r)
		}
	}
	c.judge(a, b, o)
	return c
}

func reasons(a, b Run) (list []string) {
	if d := differences(a, b, loadFields); d != nil {
		list = append(list, "the loads differ: "+strings.Join(d, "; "))
	}
	x, y := a.Placement.Label, b.Placement.Label
	switch {
	case x == "" || y == "":
	case x != y:
		list = append(list, fmt.Sprintf("the cores were placed differently: %s and %s", x, y))
	case strings.Contains(x, "->") || strings.Contains(x, "busy"):
		list = append(list, "the cores moved or were busy in both runs: "+x)
	}
	return list
}

func notes(a, b Run) (list []string) {
	if d := differences(a, b, otherFields); d != nil {
		list = append(list, "A and B differ in "+strings.Join(d, "; "))
	}
	if a.Interrupted || b.Interrupted {
		list = append(list, "a run was interrupted")
	}
	if min(len(a.Windows), len(b.Windows)) < fewest {
		list = append(list, fmt.Sprintf("the runs have %d and %d measured windows, and noise can be told from %d on: the bands are assumed",
			len(a.Windows), len(b.Windows), fewest))
	}
	return list
}

// endless stands for a change without bound, since JSON has no infinity.
const endless = math.MaxFloat64

// row compares one metric, if both runs have it.
func (m metric) row(a, b Run, o Options) (Row, bool) {
	r := Row{Name: m.name, Unit: m.unit, A: m.whole(a), B: m.whole(b), higherIsBetter: m.higher}
	r.Counts = m.counts != nil && m.counts(a, b)
	if m.window != nil {
		x, y := m.series(a), m.series(b)
		if c, ok := shift(x, y); ok {
			r.A, r.B, r.Windows = median(x), median(y), [2]int{len(x), len(y)}
			r.By, r.Low, r.High = c.by, c.low, c.high
			r.judge(o.Threshold)
			return r, true
		}
	}
	if r.A <= 0 && r.B <= 0 {
		return r, false
	}
	r.By = min(r.B/r.A-1, endless)
	r.Low, r.High = r.By, r.By
	if m.assumed > 0 && r.A > 0 && r.B > 0 {
		r.Low, r.High = (1+r.By)/(1+m.assumed)-1, (1+r.By)*(1+m.assumed)-1
		r.judge(o.Threshold)
	} else {
		r.Counts = false
	}
	return r, true
}

// series returns the metric in all windows that have it.
func (m metric) series(r Run) (s []float64) {
	for _, w := range r.Windows {
		if v := m.window(w); v > 0 && !math.IsInf(v, 0) {
			s = append(s, v)
		}
	}
	return s
}

// unclearFrom is how wide a band may be before nothing can be said: one that reaches to a quarter more, or to as much less, hides changes
// that people would want to know of.
const unclearFrom = 0.25

func (r *Row) judge(threshold float64) {
	larger := r.Low > 0 && r.By >= threshold
	smaller := r.High < 0 && 1/(1+r.By)-1 >= threshold
	switch {
	case larger == smaller && (r.High > unclearFrom || 1/(1+r.Low)-1 > unclearFrom):
		r.Verdict = Unclear
	case larger == smaller:
		r.Verdict = Same
	case larger == r.higherIsBetter:
		r.Verdict = Better
	default:
		r.Verdict = Worse
	}
}

// judge says what all rows together mean.
func (c *Comparison) judge(a, b Run, o Options) {
	switch x, y := a.faults(), b.faults(); {
	case y != "":
		c.Verdict, c.Text = Wrong, "B is wrong: "+y
		return
	case x != "":
		c.Verdict, c.Text = Wrong, "A is wrong: "+x
		return
	case c.Reasons != nil && !o.Anyway:
		c.Verdict, c.Text = Incomparable, "not comparable: "+strings.Join(c.Reasons, ", and ")
		return
	case a.nothing() || b.nothing():
		who := "A"
		switch {
		case a.nothing() && b.nothing():
			who = "both"
		case b.nothing():
			who = "B"
		}
		c.Verdict, c.Text = Unclear, "cannot tell: "+who+" measured nothing"
		return
	case a.held() && !b.held():
		c.Verdict, c.Text = Worse, "B is slower: it did not hold its rate, and A did"
		return
	case !a.held() && b.held():
		c.Verdict, c.Text = Better, "B is faster: it held its rate, and A did not"
		return
	case a.finished() && !b.finished():
		c.Verdict, c.Text = Worse, "B is slower: its handlers did not get through what was sent, and A's did"
		return
	case !a.finished() && b.finished():
		c.Verdict, c.Text = Better, "B is faster: its handlers got through what was sent, and A's did not"
		return
	}
	var worse, better, same []Row
	var unclear []string
	for _, r := range c.Rows {
		if !r.Counts {
			continue
		}
		switch r.Verdict {
		case Worse:
			worse = append(worse, r)
		case Better:
			better = append(better, r)
		case Same:
			same = append(same, r)
		case Unclear:
			unclear = append(unclear, r.Name)
		}
	}
	switch {
	case worse != nil && better != nil:
		c.Verdict = Mixed
		c.Text = "B is " + slower(worse) + ", but " + faster(better)
	case worse != nil:
		c.Verdict, c.Text = Worse, "B is "+slower(worse)
	case better != nil:
		c.Verdict, c.Text = Better, "B is "+faster(better)
	case len(same) == 1 && same[0].Name == "rate" && paced(a, b) && unclear != nil: // both had the rate that was asked for
		c.Verdict, c.Text = Unclear, "cannot tell: both held the rate, and the runs are too short or too noisy for "+strings.Join(unclear, ", ")
	case same != nil:
		c.Verdict = Same
		c.Text = "no difference (" + resolution(same) + ")"
		if unclear != nil {
			c.Text += "; too noisy to tell: " + strings.Join(unclear, ", ")
		}
	default:
		c.Verdict, c.Text = Unclear, "cannot tell: the runs are too short or too noisy"
	}
}

func slower(rows []Row) string {
	return "slower by " + most(rows, func(r Row) float64 { return r.loss() })
}
func faster(rows []Row) string {
	return "faster by " + most(rows, func(r Row) float64 { return -r.loss() })
}

// loss is how much worse B is: by how much larger a time is, or how much smaller a rate.
func (r Row) loss() float64 {
	if r.higherIsBetter {
		return -r.By
	}
	return r.By
}

// most says by how much the row with the greatest change differs, and which others do.
func most(rows []Row, by func(Row) float64) string {
	slices.SortStableFunc(rows, func(x, y Row) int {
		switch d := by(y) - by(x); {
		case d > 0:
			return 1
		case d < 0:
			return -1
		}
		return 0
	})
	r := rows[0]
	low, high := math.Abs(r.Low), math.Abs(r.High)
	text := fmt.Sprintf("%s %% (%s..%s) in %s", percent(math.Abs(r.By)), percent(min(low, high)), percent(max(low, high)), r.Name)
	for _, r := range rows[1:] {
		text += ", " + percent(math.Abs(r.By)) + " % in " + r.Name
	}
	return text
}

// resolution says how small a change would have been seen.
func resolution(rows []Row) string {
	var parts []string
	for _, r := range rows {
		parts = append(parts, fmt.Sprintf("%s within %s..%s %%", r.Name, signed(r.Low), signed(r.High)))
	}
	return strings.Join(parts, ", ")
}
