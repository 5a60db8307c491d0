package compare

import (
	"fmt"
	"io"
	"strings"
)

// WriteText writes the comparison for people.
func (c Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %10s %10s %9s  %-18s %s\n", "metric", "A", "B", "change", "noise band", "verdict")
	few := false
	for _, r := range c.Rows {
		band, verdict := "-", string(r.Verdict)
		switch {
		case r.Windows[0] > 0:
			band = fmt.Sprintf("%s..%s %%", signed(r.Low), signed(r.High))
		case r.Verdict != NotJudged:
			band = fmt.Sprintf("%s..%s %% ?", signed(r.Low), signed(r.High))
			few = true
		}
		if r.Verdict != NotJudged && !r.Counts {
			verdict = "(" + verdict + ")"
		}
		line := fmt.Sprintf("%-20s %10s %10s %7s %%  %-18s %s",
			r.Name, figure(r.A, r.Unit), figure(r.B, r.Unit), signed(r.By), band, verdict)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteString("a verdict in () has no say in the whole; medians over windows, where there are enough\n")
	if few {
		b.WriteString("? a band that is assumed, for want of windows\n")
	}
	for _, r := range c.Reasons {
		fmt.Fprintf(&b, "reason  %s\n", r)
	}
	for _, n := range c.Notes {
		fmt.Fprintf(&b, "note    %s\n", n)
	}
	fmt.Fprintf(&b, "\n%s\n", c.Text)
	_, err := io.WriteString(w, b.String())
	return err
}

// percent writes a fraction in percent.
func percent(v float64) string {
	v *= 100
	switch {
	case v > 1e9:
		return "inf"
	case v < 9.95 && v > -9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// signed writes a fraction in percent, with its sign.
func signed(v float64) string {
	s := percent(v)
	switch {
	case s == "0.0" || s == "-0.0":
		return "0.0"
	case v > 0:
		return "+" + s
	}
	return s
}

// figure writes a value with three digits and its unit.
func figure(v float64, unit string) string {
	scales := []struct {
		from float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}
	if unit == "ns" {
		scales[0].name, scales[1].name, scales[2].name, scales[3].name = "s", "ms", "us", "ns"
	}
	for _, s := range scales {
		// What rounds to 1000 of a scale is 1 of the next.
		if x := v / s.from; x >= 0.9995 {
			return digits(x) + s.name
		}
	}
	return digits(v) + scales[3].name
}

func digits(v float64) string {
	switch {
	case v < 9.995:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00")
	case v < 99.95:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
	}
	return fmt.Sprintf("%.0f", v)
}
