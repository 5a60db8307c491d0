package report

import (
	"fmt"

	"github.com/leatlog/leat/bench/ratio"
	"github.com/leatlog/leat/bench/rivals/arena"
)

// Figure is what a target is about.
type Figure string

// The figures of targets: of rates more is better, of the others less.
const (
	Rate Figure = "rate"
	CPU  Figure = "cpu"
	P50  Figure = "p50"
	P99  Figure = "p99"
)

// Target is a ratio of A to B that is to be reached, or only to be told if it has neither Least nor Most.
type Target struct {
	What     string
	A, B     string // names of rivals
	WaitA    arena.Wait
	WaitB    arena.Wait
	Topology arena.Topology
	Rate     float64
	Figure   Figure
	Least    float64 // of rates
	Most     float64 // of the others
	Procs    int     // GOMAXPROCS; 0: as it is
	Size     int     // 0: 64
}

// String says what is to be reached.
func (t *Target) String() string {
	switch {
	case t.Least > 0:
		return fmt.Sprintf("%s of A / B at least %g", t.Figure, t.Least)
	case t.Most > 0:
		return fmt.Sprintf("%s of A / B at most %g", t.Figure, t.Most)
	}
	return fmt.Sprintf("%s of A / B", t.Figure)
}

// Verdict says what a target asks for, and whether the median reached it.
type Verdict struct {
	What    string       `json:"what"`
	Asked   string       `json:"asked"`
	Got     ratio.Spread `json:"got"`
	Reached bool         `json:"reached"`
	Told    bool         `json:"told,omitempty"` // nothing was asked for
}

// String is for the table.
func (v *Verdict) String() string {
	word := "MISSED"
	switch {
	case v.Told:
		return fmt.Sprintf("%s: %s: %v", v.What, v.Asked, v.Got)
	case v.Reached:
		word = "reached"
	}
	return fmt.Sprintf("target (%s): %s: %s: %v", v.What, v.Asked, word, v.Got)
}

// Judge notes on the lines what the target says of them.
func (t *Target) Judge(lines []Line) {
	for i := range lines {
		l := &lines[i]
		if l.Skipped != "" || l.Failed != "" || l.Rate != t.Rate {
			continue
		}
		got := l.Of.Rate
		switch t.Figure {
		case CPU:
			got = l.Of.CPU
		case P50:
			got = l.Of.P50
		case P99:
			got = l.Of.P99
		}
		v := &Verdict{What: t.What, Asked: t.String(), Got: got}
		switch {
		case t.Least > 0:
			v.Reached = got.N > 0 && got.Median >= t.Least
		case t.Most > 0:
			v.Reached = got.N > 0 && got.Median <= t.Most
		default:
			v.Told = true
		}
		l.Target = v
	}
}
