package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// curves makes the percentile curves: a chart for each latency that any run has.
func curves(runs []Run) (charts []chart) {
	for i, of := range runs[0].latencies() {
		c := chart{
			id: "percentiles-" + of.name, title: of.name + " by percentile", about: of.about,
			xName: "percentile (each step to the right: ten times rarer)",
		}
		low, top, samples := math.Inf(1), 0.0, 0.0
		var words []string
		c.table = table{Caption: of.name + " by percentile", Head: names(runs)}
		shares := []float64{0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999}
		cells := make([][]string, len(shares)+3)
		for r := range runs {
			all := runs[r].latencies()
			l := &latency{}
			if i < len(all) {
				l = all[i].of
			}
			for k, p := range shares {
				text := "-"
				if v, ok := l.at(p); ok {
					text = duration(v)
				}
				cells[k] = append(cells[k], text)
			}
			if l.Count == 0 {
				for k := range 3 {
					cells[len(shares)+k] = append(cells[len(shares)+k], "-")
				}
				continue
			}
			cells[len(shares)] = append(cells[len(shares)], duration(l.Max))
			cells[len(shares)+1] = append(cells[len(shares)+1], duration(l.Mean))
			cells[len(shares)+2] = append(cells[len(shares)+2], count(float64(l.Count)))

			points := l.curve()
			for _, q := range points {
				low, top = min(low, q.y), max(top, q.y)
			}
			samples = max(samples, float64(l.Count))
			x := line{run: r, points: points}
			for _, p := range shares {
				if v, ok := l.at(p); ok {
					x.marks = append(x.marks, point{1 / (1 - p), max(v, 1), fmt.Sprintf("%s: %s at %s", runs[r].Name, duration(v), percentile(p))})
				}
			}
			x.marks = append(x.marks, point{float64(l.Count), max(l.Max, 1), fmt.Sprintf("%s: %s at most", runs[r].Name, duration(l.Max))})
			c.lines = append(c.lines, x)
			words = append(words, fmt.Sprintf("%s: half within %s, 99%% within %s, all within %s", runs[r].Name, duration(l.P50), duration(l.P99), duration(l.Max)))
		}
		if c.lines == nil {
			continue
		}
		for k, p := range shares {
			if 1/(1-p) <= samples*1.001 {
				c.table.Rows = append(c.table.Rows, row{Name: percentile(p), Cells: cells[k]})
			}
		}
		for k, name := range []string{"most", "mean", "samples"} {
			c.table.Rows = append(c.table.Rows, row{Name: name, Cells: cells[len(shares)+k]})
		}
		c.x, c.y = nines(samples), logarithmic(low, top, duration)
		c.summary = strings.Join(words, ". ") + "."
		charts = append(charts, c)
	}
	return charts
}

// at returns the value at a share, if the distribution has enough samples to have one.
func (l *latency) at(p float64) (float64, bool) {
	if l.Count == 0 || 1/(1-p) > float64(l.Count)*1.001 {
		return 0, false
	}
	if l.h != nil {
		return min(float64(l.h.ValueAtQuantile(p*100)), l.Max), true
	}
	known := map[float64]float64{0.5: l.P50, 0.9: l.P90, 0.99: l.P99, 0.999: l.P999, 0.9999: l.P9999}
	v, ok := known[p]
	return v, ok && v > 0
}

// curve returns the points of the percentile curve. Values below 1 ns are drawn at 1 ns: the axis is logarithmic.
func (l *latency) curve() (points []point) {
	if l.h != nil {
		for _, b := range l.h.CumulativeDistributionWithTicks(10) {
			x := float64(l.Count)
			if b.Quantile < 100 {
				x = min(1/(1-b.Quantile/100), x)
			}
			points = append(points, point{x: x, y: max(min(float64(b.ValueAt), l.Max), 1)})
		}
		return points
	}
	for _, p := range []float64{0.5, 0.9, 0.99, 0.999, 0.9999} {
		if v, ok := l.at(p); ok {
			points = append(points, point{x: 1 / (1 - p), y: max(v, 1)})
		}
	}
	return append(points, point{x: float64(l.Count), y: max(l.Max, 1)})
}

// series is what is shown over time.
type series struct {
	id, title, about string
	log              bool
	finest           float64 // the finest division of the axis that makes sense
	label            func(float64) string
	of               func(*window) float64 // NaN: there is none
	most             bool                  // of windows that are put together the largest counts, else the mean
}

func quantity(l *latency, v float64) float64 {
	if l.Count == 0 {
		return math.NaN()
	}
	return max(v, 1)
}

var overTime = []series{
	{"rate", "Messages a second", "that went all the way", false, 0, rate, func(w *window) float64 { return w.RateMsgsPerS }, false},
	{"published", "Published a second", "", false, 0, rate, func(w *window) float64 { return w.PublishMsgsPerS }, false},
	{"lag", "Lag", "messages that the slowest reader had still to get at the end of each window", false, 1, count, func(w *window) float64 { return w.Lag }, true},
	{"e2e-p50", "e2e p50", "of each window", true, 0, duration, func(w *window) float64 { return quantity(&w.E2E, w.E2E.P50) }, false},
	{"e2e-p99", "e2e p99", "of each window", true, 0, duration, func(w *window) float64 { return quantity(&w.E2E, w.E2E.P99) }, true},
	{"e2e-max", "e2e, the longest", "of each window", true, 0, duration, func(w *window) float64 { return quantity(&w.E2E, w.E2E.Max) }, true},
	{"delay-max", "Delay, the longest", "how late the most belated message of each window was sent", true, 0, duration,
		func(w *window) float64 { return quantity(&w.Delay, w.Delay.Max) }, true},
	{"cores", "Processors busy", "with the process, harness included", false, 0, count, func(w *window) float64 { return w.Cores }, false},
	{"gcs", "Garbage collections", "in each window", false, 1, count, func(w *window) float64 { return w.GCs }, true},
}

const (
	mostPoints = 400 // in a line: more than a screen shows
	mostRows   = 60  // in a table
)

// times makes the charts over time that any run has windows for.
func times(runs []Run) (charts []chart) {
	for _, s := range overTime {
		c := chart{id: "time-" + s.id, title: s.title, about: s.about, xName: "seconds since the start of the run"}
		low, top, end := math.Inf(1), 0.0, 0.0
		var words []string
		for r := range runs {
			all := thin(runs[r].Windows, s, mostPoints)
			var x line
			x.run = r
			least, most := math.Inf(1), 0.0
			for _, q := range all {
				q.text = fmt.Sprintf("%s, %s: %s", runs[r].Name, seconds(q.x), s.label(q.y))
				x.points = append(x.points, q)
				if len(all) <= 40 {
					x.marks = append(x.marks, q)
				}
				if !math.IsNaN(q.y) {
					least, most, end = min(least, q.y), max(most, q.y), max(end, q.x)
				}
			}
			if most == 0 {
				continue
			}
			low, top = min(low, least), max(top, most)
			c.lines = append(c.lines, x)
			words = append(words, fmt.Sprintf("%s: from %s to %s", runs[r].Name, s.label(least), s.label(most)))
		}
		if c.lines == nil {
			continue
		}
		for r := range runs {
			for _, w := range runs[r].Windows {
				if w.Warmup {
					c.shade = max(c.shade, w.ToS)
				}
			}
		}
		c.edges = edges(runs)
		if c.edges != nil {
			c.about = strings.TrimPrefix(c.about+"; dotted: the rate asked for changes", "; ")
		}
		c.x = seconded(end)
		if s.log {
			c.y = logarithmic(low, top, s.label)
		} else {
			c.y = linear(top*1.03, s.finest, s.label)
		}
		c.summary = strings.Join(words, ". ") + "."
		c.table = timeTable(runs, s)
		charts = append(charts, c)
	}
	return charts
}

// edgesMost bounds how many edges are drawn: more would cover what there is to see.
const edgesMost = 50

// edges returns when the rate of any run's schedule changes.
func edges(runs []Run) (at []float64) {
	for r := range runs {
		for i, s := range runs[r].Steps {
			if i > 0 && !slices.Contains(at, s.FromS) {
				at = append(at, s.FromS)
			}
		}
	}
	if len(at) > edgesMost {
		return nil
	}
	return at
}

// stepTables has a table for each run whose schedule has steps: what was asked for in each, and what came of it in the windows that lie
// in it.
func stepTables(runs []Run) (tables []table) {
	for i := range runs {
		r := &runs[i]
		if len(r.Steps) == 0 {
			continue
		}
		t := table{Caption: "The steps of " + r.Name, Head: []string{"asked for", "reached", "e2e p50, mean", "p99, at worst", "most", "lag, at worst"}}
		for k, s := range r.Steps {
			end := math.Inf(1)
			if k+1 < len(r.Steps) {
				end = r.Steps[k+1].FromS
			}
			cells := append([]string{rate(s.MsgsPerS)}, stepCells(r.Windows, s.FromS, end)...)
			t.Rows = append(t.Rows, row{Name: "from " + seconds(s.FromS), Cells: cells})
		}
		tables = append(tables, t)
	}
	return tables
}

// stepCells sums up the windows from one time to another: rate, latencies, lag.
func stepCells(all []window, from, to float64) []string {
	const slack = 0.01 // s: windows end a little late
	var reached, p50, p99, most, lag, n, measured float64
	for i := range all {
		w := &all[i]
		if w.FromS < from-slack || w.ToS > to+slack {
			continue
		}
		n++
		reached, lag = reached+w.RateMsgsPerS, max(lag, w.Lag)
		if w.E2E.Count > 0 {
			measured++
			p50, p99, most = p50+w.E2E.P50, max(p99, w.E2E.P99), max(most, w.E2E.Max)
		}
	}
	if n == 0 {
		return []string{"-", "-", "-", "-", "-"}
	}
	cells := []string{rate(reached / n), "-", "-", "-", count(lag)}
	if measured > 0 {
		cells[1], cells[2], cells[3] = duration(p50/measured), duration(p99), duration(most)
	}
	return cells
}

// thin returns a point for each window, at its end, or, if they are too many, for each few of them.
func thin(all []window, s series, most int) (points []point) {
	per := (len(all) + most - 1) / most
	for i := 0; i < len(all); i += per {
		part := all[i:min(i+per, len(all))]
		sum, largest, n := 0.0, math.Inf(-1), 0.0
		for k := range part {
			if v := s.of(&part[k]); !math.IsNaN(v) {
				sum, largest, n = sum+v, max(largest, v), n+1
			}
		}
		q := point{x: part[len(part)-1].ToS, y: math.NaN()}
		switch {
		case n > 0 && s.most:
			q.y = largest
		case n > 0:
			q.y = sum / n
		}
		points = append(points, q)
	}
	return points
}

// timeTable is the table for a chart over time, in order of time. Windows of runs that do not end at the same times get rows of their own.
func timeTable(runs []Run, s series) table {
	type at struct {
		x float64
		row
	}
	var rows []at
	byName := map[string]int{}
	for r := range runs {
		for _, q := range thin(runs[r].Windows, s, mostRows) {
			name := fmt.Sprintf("%.3g s", q.x)
			i, ok := byName[name]
			if !ok {
				i = len(rows)
				byName[name] = i
				rows = append(rows, at{q.x, row{Name: name, Cells: make([]string, len(runs))}})
			}
			if !math.IsNaN(q.y) {
				rows[i].Cells[r] = s.label(q.y)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b at) int { return cmp.Compare(a.x, b.x) })
	t := table{Caption: s.title + " over time", Head: names(runs)}
	for _, r := range rows {
		t.Rows = append(t.Rows, r.row)
	}
	return t
}

func names(runs []Run) (list []string) {
	for _, r := range runs {
		list = append(list, r.Name)
	}
	return list
}
