package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
	"unicode/utf8"
)

// chart is one picture: a line for each run.
type chart struct {
	id      string
	title   string
	about   string
	x, y    axis
	xName   string
	lines   []line
	shade   float64   // the part of x up to here is shaded: the warm-up
	edges   []float64 // lines stand there: the rate asked for changes
	knee    float64   // if above 0, a line stands there: the highest rate that met its SLO
	summary string    // in words, for those who do not see the picture
	table   table
}

// line is one run's line.
type line struct {
	run    int // its number decides colour and dashes
	points []point
	marks  []point // shown as dots, with their text
}

type point struct {
	x, y float64
	text string
}

// size is the measure of a picture. A phone gets another one than a desk, so that its text is as large.
type size struct {
	class                    string
	width, height            float64
	left, right, top, bottom float64
}

var sizes = []size{
	{"wide", 700, 310, 70, 24, 12, 46},
	{"narrow", 360, 290, 62, 16, 12, 46},
}

// SVG draws the chart in both sizes; the style shows one of them.
func (c *chart) SVG() template.HTML {
	var b strings.Builder
	for _, s := range sizes {
		c.draw(&b, s)
	}
	return template.HTML(b.String()) // all text in it goes through html.EscapeString
}

// view returns the chart as the page shows it, with a legend of those of all that have a line.
func (c *chart) view(all []entry) *view {
	v := &view{ID: c.id, Title: c.title, About: c.about, SVG: c.SVG(), Table: c.table}
	if all != nil {
		for _, l := range c.lines {
			v.Runs = append(v.Runs, all[l.run])
		}
	}
	return v
}

func (c *chart) draw(b *strings.Builder, s size) {
	id := c.id + "-" + s.class
	p := func(format string, args ...any) { fmt.Fprintf(b, format, args...) }
	p(`<svg class="chart %s" viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t" aria-describedby="%s-d">`, s.class, s.width, s.height, id, id)
	p(`<title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, html.EscapeString(c.title), id, html.EscapeString(c.summary))
	w, h := s.width-s.left-s.right, s.height-s.top-s.bottom
	px := func(v float64) float64 { return s.left + w*min(max(c.x.at(v), 0), 1) }
	py := func(v float64) float64 { return s.top + h*(1-min(max(c.y.at(v), 0), 1)) }

	if c.shade > 0 {
		p(`<rect class="warm" x="%s" y="%s" width="%s" height="%s"/>`, number(s.left), number(s.top), number(px(c.shade)-s.left), number(h))
	}
	for _, t := range c.y.ticks {
		y := py(t.at)
		p(`<line class="grid" x1="%s" y1="%s" x2="%s" y2="%s"/>`, number(s.left), number(y), number(s.left+w), number(y))
		p(`<text class="tick" x="%s" y="%s" text-anchor="end">%s</text>`, number(s.left-8), number(y+4), html.EscapeString(t.label))
	}
	end := math.Inf(-1) // of the text of the last tick that has one
	for _, t := range c.x.ticks {
		x := px(t.at)
		p(`<line class="grid" x1="%s" y1="%s" x2="%s" y2="%s"/>`, number(x), number(s.top), number(x), number(s.top+h))
		half := 3.5 * float64(utf8.RuneCountInString(t.label))
		x = min(x, s.width-half-2)
		if x-half < end+8 {
			continue
		}
		end = x + half
		p(`<text class="tick" x="%s" y="%s" text-anchor="middle">%s</text>`, number(x), number(s.top+h+18), html.EscapeString(t.label))
	}
	p(`<text class="name" x="%s" y="%s" text-anchor="middle">%s</text>`, number(s.left+w/2), number(s.height-8), html.EscapeString(c.xName))
	p(`<path class="frame" d="M%s %sV%sH%s"/>`, number(s.left), number(s.top), number(s.top+h), number(s.left+w))

	for _, l := range c.lines {
		p(`<g class="run r%d"><path class="line" d="`, l.run%colours)
		up := true // the pen is
		lx, ly := math.Inf(-1), 0.0
		for _, q := range l.points {
			if math.IsNaN(q.y) {
				up = true
				continue
			}
			x, y := px(q.x), py(q.y)
			if !up && math.Abs(x-lx) < 0.3 && math.Abs(y-ly) < 0.3 {
				continue // nobody would see it
			}
			lx, ly = x, y
			letter := "L"
			if up {
				letter = "M"
			}
			up = false
			p("%s%s %s", letter, number(x), number(y))
		}
		p(`"/>`)
		for _, q := range l.marks {
			if !math.IsNaN(q.y) {
				p(`<circle class="dot" cx="%s" cy="%s" r="3"><title>%s</title></circle>`, number(px(q.x)), number(py(q.y)), html.EscapeString(q.text))
			}
		}
		p(`</g>`)
	}
	for _, e := range c.edges {
		if e > 0 && e < c.x.top {
			p(`<path class="edge" d="M%s %sV%s"/>`, number(px(e)), number(s.top), number(s.top+h))
		}
	}
	if c.knee > 0 {
		x, anchor := px(c.knee), "end"
		if x < s.left+w/2 {
			anchor = "start"
		}
		p(`<path class="knee" d="M%s %sV%s"/>`, number(x), number(s.top), number(s.top+h))
		p(`<text class="warmtext" x="%s" y="%s" text-anchor="%s">&#160;knee&#160;</text>`, number(x), number(s.top+14), anchor)
	}
	if c.shade > 0 { // above the lines, to be read
		p(`<text class="warmtext" x="%s" y="%s">warm-up</text>`, number(s.left+5), number(s.top+14))
	}
	p(`</svg>`)
}

// colours is how many runs look different.
const colours = 8

// table is figures as text: what a chart shows, or conditions.
type table struct {
	Caption string
	Head    []string
	Rows    []row
}

type row struct {
	Name    string
	Cells   []string
	Differs bool
}
