package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Sweep says what a search for the highest rate has found.
type Sweep struct {
	// SLO is what was to be met, as text.
	SLO string
	// Knee is the highest rate that met it, 0 if none, and Text says so in a sentence.
	Knee float64
	Text string
}

// quantiles are the lines of the chart of latency against rate.
var quantiles = []float64{0.5, 0.9, 0.99, 0.999}

// WriteSweep writes a page about runs of one load at several rates: the latency against the rate. Runs without a rate are left
// out; there must be one that has it. Of several runs at one rate, the chart has the median.
func WriteSweep(w io.Writer, runs []Run, s Sweep, o Options) error {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Rate <= 0 })
	if len(runs) == 0 {
		return errors.New("report: no runs with a rate")
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.Rate, b.Rate) })
	if o.Title == "" {
		o.Title = fmt.Sprintf("Latency against rate: %s, %s", orDash(runs[0].Engine), orDash(runs[0].Scenario))
	}
	d := data{Title: o.Title, Foot: o.Foot, Conditions: conditionTables(distinct(runs[:1]))}
	top := entry{Name: "Knee", Colour: -1, Class: "good", State: s.Text, About: "meeting " + orDash(s.SLO)}
	if s.Knee == 0 {
		top.Class = "bad"
	}
	d.Runs = []entry{top}
	d.SweepTable = sweepTable(runs)
	c := sweepChart(runs, s)
	if c.lines != nil {
		v := c.view(nil)
		v.Table = table{} // it stands below
		for _, l := range c.lines {
			v.Runs = append(v.Runs, entry{Name: "e2e p" + strings.TrimSuffix(percentile(quantiles[l.run]), "%"), Colour: l.run})
		}
		d.Sweep = []*view{v}
	}
	return d.write(w)
}

// sweepChart is the latency against the rate, runs in order of the rate.
func sweepChart(runs []Run, s Sweep) chart {
	c := chart{
		id: "sweep", title: "End to end", about: "from the scheduled time of each message until a reader had it",
		xName: "messages a second, asked for", knee: s.Knee,
	}
	var low, top, last float64
	var words []string
	for k, p := range quantiles {
		l := line{run: k}
		for i := 0; i < len(runs); {
			j := i
			var values []float64
			for ; j < len(runs) && runs[j].Rate == runs[i].Rate; j++ {
				if v, ok := runs[j].Latency.E2E.at(p); ok {
					values = append(values, max(v, 1))
				}
			}
			if at := runs[i].Rate; values != nil {
				slices.Sort(values)
				v := values[len(values)/2]
				l.points = append(l.points, point{x: at, y: v, text: fmt.Sprintf("p%s: %s at %s", strings.TrimSuffix(percentile(p), "%"), duration(v), rate(at))})
				if low == 0 {
					low = v
				}
				low, top, last = min(low, v), max(top, v), max(last, at)
			}
			i = j
		}
		if l.points == nil {
			continue
		}
		l.marks = l.points
		c.lines = append(c.lines, l)
		words = append(words, fmt.Sprintf("%s, and %s", l.points[0].text, l.points[len(l.points)-1].text))
	}
	c.x, c.y = linear(last, 0, rate), logarithmic(low, top, duration)
	if first := runs[0].Rate; last > 10*first { // a search doubles the rate, so that nearly all would be at the left
		c.x = logarithmic(first, last, rate)
	}
	c.summary = strings.Join(append(words, s.Text), ". ")
	return c
}

// sweepTable has a row for each run.
func sweepTable(runs []Run) table {
	t := table{Caption: "The runs", Head: []string{"verdict", "reached", "e2e p50", "p99", "p99.9", "most"}}
	for i := range runs {
		r := &runs[i]
		l := &r.Latency.E2E
		verdict := r.Verdict
		if class, text := r.state(); verdict == "" && class != "good" {
			verdict, _, _ = strings.Cut(text, ":")
		}
		cells := []string{orDash(verdict), rate(*r.RateMsgsPerS)}
		for _, p := range []float64{0.5, 0.99, 0.999} {
			text := "-"
			if v, ok := l.at(p); ok {
				text = duration(v)
			}
			cells = append(cells, text)
		}
		t.Rows = append(t.Rows, row{Name: rate(r.Rate), Cells: append(cells, duration(l.Max))})
	}
	return t
}
