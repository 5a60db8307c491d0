package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/leatlog/leat/bench/ratio"
)

// WriteTable writes the lines as text, those of one workload under one heading.
func (r *Report) WriteTable(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, %s, %d slices of %s each\n", r.Machine, r.Date, r.Slices, r.Length)
	out.WriteString("A / B. Ratios are of neighbouring slices with equal labels: median (min-max). Allocations are A's, in number and bytes.\n")
	var order []string
	under := map[string][]*Line{}
	for i := range r.Lines {
		l := &r.Lines[i]
		h := l.heading()
		if under[h] == nil {
			order = append(order, h)
		}
		under[h] = append(under[h], l)
	}
	for _, h := range order {
		out.WriteString("\n" + h)
		for _, l := range under[h] {
			out.WriteString(l.String())
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (l *Line) heading() string {
	first := "x M/s"
	if l.Rate > 0 {
		first = "x p50"
	}
	return fmt.Sprintf("%s, against %s\n  %-28s %-7s %-20s %-18s %-14s %-12s %-7s %s\n", l.workload(), l.B,
		"", "cores", first, "M/s", "CPU ns/msg", "allocs, B", "GCs", "pairs")
}

// String is one or two lines of the table: A's figures, then / and B's.
func (l *Line) String() string {
	var out strings.Builder
	switch {
	case l.Failed != "":
		return fmt.Sprintf("  %-28s FAILED: %s\n", l.A, firstLine(l.Failed))
	case l.Skipped != "":
		return fmt.Sprintf("  %-28s %s\n", l.A, l.Skipped)
	}
	a, b := &l.FiguresA, &l.FiguresB
	main := l.Of.Rate
	if l.Rate > 0 {
		main = l.Of.P50
	}
	fmt.Fprintf(&out, "  %-28s %-7s %-20s %-18s %-14s %-12s %-7s %d", l.A, l.Label, main,
		million(a.Rate.Median)+" / "+million(b.Rate.Median), short(a.CPU.Median)+" / "+short(b.CPU.Median),
		fmt.Sprintf("%.2f, %s", a.Allocs.Median, short(a.Bytes.Median)), fmt.Sprintf("%d / %d", a.GCs, b.GCs), l.Pairs)
	if l.Dropped > 0 {
		fmt.Fprintf(&out, " (%d dropped)", l.Dropped)
	}
	out.WriteByte('\n')
	if a.P50.Median > 0 {
		fmt.Fprintf(&out, "  %-28s         p50 %s / %s, p90 %s / %s, p99 %s / %s (x %s), cores %.2f / %.2f\n", "",
			nanos(a.P50), nanos(b.P50), nanos(a.P90), nanos(b.P90), nanos(a.P99), nanos(b.P99), l.Of.P99, a.Cores.Median, b.Cores.Median)
	}
	if l.Target != nil {
		fmt.Fprintf(&out, "  %-28s         %s\n", "", l.Target)
	}
	return out.String()
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// million is messages a second in millions, to three digits.
func million(x float64) string { return short(x / 1e6) }

// short is three digits or so.
func short(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2g", x)
	}
}

// nanos is a time.
func nanos(s ratio.Spread) string {
	x := s.Median
	switch {
	case x >= 1e6:
		return short(x/1e6) + " ms"
	case x >= 1e3:
		return short(x/1e3) + " us"
	default:
		return short(x) + " ns"
	}
}
