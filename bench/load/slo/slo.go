package slo

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leatlog/leat/bench/load/number"
)

// ErrSyntax is wrapped by what Parse returns. The text says what is allowed.
var ErrSyntax = errors.New("slo: syntax")

// Exit is the exit code of a program whose result missed an objective.
const Exit = 99

// Metric names a figure of a result.
type Metric struct {
	// Name is one of Names.
	Name string
	// Stat is "p", "mean", "max" or "count" for a latency, and empty for everything else.
	Stat string
	// Percentile goes with the Stat "p": above 0 and at most 100.
	Percentile float64
}

// Lookup returns a figure: latencies in nanoseconds, rates in messages a second, everything else as it is. False means that the
// result does not have it: no such latency was measured.
type Lookup func(Metric) (value float64, ok bool)

// kind is what a metric measures, and so how its values are written.
type kind int

const (
	latency  kind = iota // name.p99 < 200us
	rate                 // name > 1e6, or 1M
	count                // name = 0
	figure               // name < 0.5
	timespan             // name < 200us
)

var kinds = map[string]kind{
	"e2e": latency, "publish": latency, "delay": latency, "done": latency,
	"rate": rate, "published": rate,
	"lost": count, "duplicated": count, "reordered": count, "gap": count, "corrupt": count, "overlapped": count, "miscounted": count,
	"uncommitted": count, "faults": count, "unfinished": count, "unsent": count, "late": count, "lag": count,
	"allocs": figure, "bytes": figure, "cores": figure,
	"cpu": timespan,
}

// Names returns the names of all metrics, sorted: latencies, then the others.
func Names() (latencies, others []string) {
	for name, k := range kinds {
		if k == latency {
			latencies = append(latencies, name)
		} else {
			others = append(others, name)
		}
	}
	slices.Sort(latencies)
	slices.Sort(others)
	return latencies, others
}

// Forms says what Parse reads, for help and errors.
func Forms() string {
	latencies, others := Names()
	return "objectives with commas in between: METRIC OP VALUE, where METRIC is one of " + strings.Join(latencies, ", ") +
		" with .p50, .p99, .p99.9 (any percentile), .mean, .max or .count, or one of " + strings.Join(others, ", ") +
		"; OP is one of < <= > >= =; VALUE is a time (200us) for latencies and cpu, and a number (1e6, 500k, 1M) for the others, and such " +
		"that a run can meet it, and miss it"
}

// String returns the metric as Parse reads it.
func (m Metric) String() string {
	switch m.Stat {
	case "":
		return m.Name
	case "p":
		return m.Name + ".p" + strconv.FormatFloat(m.Percentile, 'f', -1, 64)
	}
	return m.Name + "." + m.Stat
}

// Objective is one condition.
type Objective struct {
	Metric Metric
	// Op is "<", "<=", ">", ">=" or "=".
	Op string
	// Value is in the unit of Lookup.
	Value float64

	text string // the value as it was written
}

// String returns the objective as Parse reads it.
func (o Objective) String() string { return o.Metric.String() + o.Op + o.text }

// SLO is what a result is to meet: all of it. The zero value is met by everything.
type SLO []Objective

// String returns the objectives as Parse reads them.
func (s SLO) String() string {
	var parts []string
	for _, o := range s {
		parts = append(parts, o.String())
	}
	return strings.Join(parts, ",")
}

// Parse reads objectives. Empty text is no objective. What no result can meet, or none can miss, is refused.
func Parse(text string) (SLO, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var s SLO
	for part := range strings.SplitSeq(text, ",") {
		o, err := parse(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %v", ErrSyntax, part, err)
		}
		for _, x := range s {
			if x.Metric == o.Metric && !x.goesWith(o) {
				return nil, fmt.Errorf("%w: %q: no run can meet it and %s", ErrSyntax, part, x)
			}
		}
		s = append(s, o)
	}
	return s, nil
}

// ops, the longer ones first.
var ops = []string{"<=", ">=", "==", "<", ">", "="}

func parse(text string) (o Objective, err error) {
	at := strings.IndexAny(text, "<>=")
	if at < 0 {
		return o, fmt.Errorf("no < <= > >= or =; it takes %s", Forms())
	}
	for _, op := range ops {
		if strings.HasPrefix(text[at:], op) {
			o.Op = op
			break
		}
	}
	o.text = strings.TrimSpace(text[at+len(o.Op):])
	if o.Op == "==" {
		o.Op = "="
	}
	k, err := o.Metric.parse(strings.TrimSpace(text[:at]))
	if err != nil {
		return o, err
	}
	if k == latency && o.Metric.Stat == "count" {
		k = count
	}
	if o.Value, err = value(o.text, k); err != nil {
		return o, err
	}
	return o, o.check(k)
}

// check refuses what says nothing: no figure is below 0, and counts are whole.
func (o Objective) check(k kind) error {
	const never, always = "no run can meet it", "every run meets it"
	why := ""
	switch v := o.Value; {
	case v < 0 && (o.Op == ">" || o.Op == ">="), v == 0 && o.Op == ">=":
		why = always
	case v < 0, v == 0 && o.Op == "<", k == count && o.Op == "=" && v != math.Trunc(v):
		why = never
	default:
		return nil
	}
	takes := "VALUE must be above 0; 0 goes with =, <= and >"
	if k == count {
		takes += ", and what is counted is = to whole numbers only"
	}
	return fmt.Errorf("%s, since %s is 0 or more: %s", why, o.Metric, takes)
}

// goesWith reports whether a figure can meet both objectives, which are about the same one.
func (o Objective) goesWith(x Objective) bool {
	a, b := o.Value, x.Value
	for _, v := range []float64{a, b, a/2 + b/2, min(a, b) / 2, 2 * max(a, b), 1} {
		whole := kinds[o.Metric.Name] == count || o.Metric.Stat == "count"
		for _, v := range []float64{v, math.Floor(v), math.Ceil(v), math.Floor(v) + 1, math.Ceil(v) - 1} {
			if v >= 0 && (!whole || v == math.Trunc(v)) && o.holds(v) && x.holds(v) {
				return true
			}
		}
	}
	return false
}

func (m *Metric) parse(text string) (kind, error) {
	name, stat, dot := strings.Cut(text, ".")
	k, ok := kinds[name]
	latencies, others := Names()
	switch {
	case !ok:
		return 0, fmt.Errorf("there is no metric %q, only %s and %s", name, strings.Join(latencies, ", "), strings.Join(others, ", "))
	case k != latency && dot:
		return 0, fmt.Errorf("%s has no .%s; only %s have percentiles", name, stat, strings.Join(latencies, ", "))
	case k != latency:
		m.Name = name
		return k, nil
	}
	m.Name, m.Stat = name, stat
	switch stat {
	case "mean", "max", "count":
		return k, nil
	case "min":
		return 0, fmt.Errorf("the least %s is not known; it takes .p50 (any percentile), .mean, .max or .count", name)
	}
	digits, ok := strings.CutPrefix(stat, "p")
	m.Stat = "p"
	if ok {
		m.Percentile, ok = percentile(digits)
	}
	if !ok {
		return 0, fmt.Errorf("%s takes .p50, .p99, .p99.9 (any percentile above 0, at most 100), .mean, .max or .count", name)
	}
	return k, nil
}

// percentile reads 99, 99.9, and also 999 and 9999, which are 99.9 and 99.99.
func percentile(digits string) (float64, bool) {
	if digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	if len(digits) > 2 && strings.Trim(digits, "9") == "" {
		digits = digits[:2] + "." + digits[2:]
	}
	p, err := number.Parse(digits)
	return p, err == nil && p > 0 && p <= 100
}

var scales = map[byte]float64{'k': 1e3, 'K': 1e3, 'M': 1e6, 'G': 1e9}

func value(text string, k kind) (float64, error) {
	if k == latency || k == timespan {
		d, err := number.Duration(text)
		switch {
		case errors.Is(err, number.ErrVanishes), errors.Is(err, number.ErrMinus):
			return 0, fmt.Errorf("%q is %w: times are 0s, or 1ns and more", text, err)
		case err != nil:
			return 0, fmt.Errorf("%q is no time: it needs a unit, as in 200us, 1.5ms or 2s", text)
		}
		return float64(d), nil
	}
	return Number(text)
}

// Number reads a number as objectives have it: 0, 1e6, 500k or 1M.
func Number(text string) (float64, error) {
	digits, scale := text, 1.0
	if n := len(text); n > 1 && scales[text[n-1]] != 0 {
		digits, scale = text[:n-1], scales[text[n-1]]
	}
	v, err := number.Parse(digits)
	if v *= scale; math.IsInf(v, 0) {
		err = number.ErrNone
	}
	switch {
	case errors.Is(err, number.ErrVanishes), errors.Is(err, number.ErrMinus):
		return 0, fmt.Errorf("%q is %w: it takes a number as in 0, 1e6, 500k or 1M", text, err)
	case err != nil:
		return 0, fmt.Errorf("%q is no number: it takes one as in 0, 1e6, 500k or 1M", text)
	}
	return v, nil
}

// Check is an objective and what became of it.
type Check struct {
	Objective Objective
	// Got is the figure, if it is Known.
	Got   float64
	Known bool
	// Met says that the objective is met. What is not known is not met.
	Met bool
}

// String says what became of the objective in a line.
func (c Check) String() string {
	switch {
	case !c.Known:
		return "missed " + c.Objective.String() + ": it was not measured"
	case c.Met:
		return "met    " + c.Objective.String() + ": " + c.got()
	}
	return "missed " + c.Objective.String() + ": " + c.got()
}

// got writes the figure.
func (c Check) got() string {
	m := c.Objective.Metric
	if k := kinds[m.Name]; k == latency && m.Stat != "count" || k == timespan {
		return strings.Replace(time.Duration(c.Got).String(), "\u00b5", "u", 1)
	}
	return strconv.FormatFloat(c.Got, 'g', 6, 64)
}

// Check looks up every figure and returns what became of each objective, and whether all are met.
func (s SLO) Check(figures Lookup) (checks []Check, met bool) {
	met = true
	for _, o := range s {
		c := Check{Objective: o}
		c.Got, c.Known = figures(o.Metric)
		c.Met = c.Known && o.holds(c.Got)
		met = met && c.Met
		checks = append(checks, c)
	}
	return checks, met
}

func (o Objective) holds(got float64) bool {
	switch o.Op {
	case "<":
		return got < o.Value
	case "<=":
		return got <= o.Value
	case ">":
		return got > o.Value
	case ">=":
		return got >= o.Value
	}
	return got == o.Value
}
