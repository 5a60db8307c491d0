package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/leatlog/leat/bench/ratio"
)

// The chart's measures, in pixels.
const (
	chartWidth = 980
	nameWidth  = 250
	textWidth  = 300
	rowHeight  = 18
	barHeight  = 11
)

// Colours of the placements, which also differ in lightness.
var colours = map[string]string{"near": "#1f6feb", "far": "#9a6700", "sibling": "#1a7f37", "unknown": "#57606a"}

// WriteSVG writes a chart that needs nothing else: for each workload the ratios, on a logarithmic scale, with their extremes.
func (r *Report) WriteSVG(w io.Writer) error {
	var body strings.Builder
	y := 64.
	for _, g := range r.groups() {
		y = g.draw(&body, y)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%.0f" viewBox="0 0 %d %.0f" font-family="system-ui, sans-serif" font-size="12" fill="#1f2328">`+"\n",
		chartWidth, y+10, chartWidth, y+10)
	fmt.Fprintf(&out, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	text(&out, 16, 24, `font-size="16" font-weight="600"`, "Leat and its rivals, side by side")
	text(&out, 16, 42, `fill="#57606a"`, fmt.Sprintf("%s. %s. %d slices of %s each.", r.Machine, r.Date, r.Slices, r.Length))
	x := 16.
	for _, l := range ratio.Labels {
		fmt.Fprintf(&out, `<rect x="%.0f" y="50" width="10" height="10" fill="%s"/>`+"\n", x, colours[l])
		text(&out, x+14, 59, "", l)
		x += 80
	}
	text(&out, x+10, 59, `fill="#57606a"`, "Cores while measured. Bar: median of all pairs of neighbouring slices; line: from the least to the greatest.")
	out.WriteString(body.String())
	out.WriteString("</svg>\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// group is the lines of one workload against one rival.
type group struct {
	title string
	paced bool
	lines []*Line
}

func (r *Report) groups() (gs []*group) {
	for i := range r.Lines {
		l := &r.Lines[i]
		if l.Failed != "" || l.Skipped != "" {
			continue
		}
		title := l.workload() + ": M messages/s, as a multiple of " + l.B
		if l.Rate > 0 {
			title = l.workload() + ": median latency, as a multiple of that of " + l.B + " (less is better)"
		}
		at := slices.IndexFunc(gs, func(g *group) bool { return g.title == title })
		if at < 0 {
			at = len(gs)
			gs = append(gs, &group{title: title, paced: l.Rate > 0})
		}
		gs[at].lines = append(gs[at].lines, l)
	}
	for _, g := range gs {
		slices.SortStableFunc(g.lines, func(a, b *Line) int {
			d := g.best(b.A) - g.best(a.A)
			if g.paced {
				d = -d
			}
			switch {
			case d > 0:
				return 1
			case d < 0:
				return -1
			}
			return strings.Compare(a.A, b.A)
		})
	}
	return gs
}

func (g *group) spread(l *Line) ratio.Spread {
	if g.paced {
		return l.Of.P50
	}
	return l.Of.Rate
}

// best is the first median of a rival: its lines stay together.
func (g *group) best(name string) float64 {
	for _, l := range g.lines {
		if l.A == name {
			return g.spread(l).Median
		}
	}
	return 0
}

// draw adds the group at height y and returns where it ends.
func (g *group) draw(out *strings.Builder, y float64) float64 {
	low, high := 1., 1.
	for _, l := range g.lines {
		if s := g.spread(l); s.Min > 0 {
			low, high = min(low, s.Min), max(high, s.Max)
		}
	}
	// Whole powers of ten, but at least one on each side that has anything.
	from, to := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if to <= from {
		to = from + 1
	}
	left, width := float64(nameWidth), float64(chartWidth-nameWidth-textWidth)
	at := func(x float64) float64 {
		return left + width*(math.Log10(min(max(x, math.Pow(10, from)), math.Pow(10, to)))-from)/(to-from)
	}
	y += 26
	text(out, 16, y, `font-weight="600"`, g.title)
	top := y + 8
	bottom := top + float64(len(g.lines))*rowHeight + 4
	for e := from; e <= to; e++ {
		v := math.Pow(10, e)
		stroke := "#d0d7de"
		if e == 0 {
			stroke = "#57606a"
		}
		fmt.Fprintf(out, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", at(v), top, at(v), bottom, stroke)
		text(out, at(v), bottom+12, `text-anchor="middle" fill="#57606a" font-size="10"`, fmt.Sprintf("%gx", v))
	}
	name := ""
	for i, l := range g.lines {
		s, row := g.spread(l), top+4+float64(i)*rowHeight
		if l.A != name {
			name = l.A
			text(out, nameWidth-8, row+barHeight-1, `text-anchor="end"`, name)
		}
		a, b := min(at(1), at(s.Median)), max(at(1), at(s.Median))
		colour := colours[l.Label]
		fmt.Fprintf(out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%d" fill="%s"/>`+"\n", a, row, max(b-a, 1), barHeight, colour)
		fmt.Fprintf(out, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#1f2328" stroke-width="1.2"/>`+"\n",
			at(s.Min), row+barHeight/2., at(s.Max), row+barHeight/2.)
		label := fmt.Sprintf("%sx  (%s-%s), %s M/s, %s CPU ns", short(s.Median), short(s.Min), short(s.Max),
			million(l.FiguresA.Rate.Median), short(l.FiguresA.CPU.Median))
		if g.paced {
			label = fmt.Sprintf("%sx  (%s-%s), p50 %s, p99 %s", short(s.Median), short(s.Min), short(s.Max), nanos(l.FiguresA.P50), nanos(l.FiguresA.P99))
		}
		text(out, float64(chartWidth-textWidth+10), row+barHeight-1, `font-size="11"`, label)
	}
	return bottom + 16
}

func text(out *strings.Builder, x, y float64, attrs, s string) {
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" %s>%s</text>`+"\n", x, y, attrs, html.EscapeString(s))
}
