package report

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strings"
)

// Options say what is on the page besides the runs.
type Options struct {
	// Title is the page's. Empty means one made of the runs' names.
	Title string
	// Foot is a line at its end: which program made it, when. May be empty.
	Foot string
}

//go:embed page.html.tmpl style.css
var files embed.FS

var page = template.Must(template.New("page.html.tmpl").ParseFS(files, "page.html.tmpl"))

// entry is a run in the list at the top.
type entry struct {
	Name, Class, State, About string
	Colour                    int
	Notes                     []string
}

type data struct {
	Title      string
	Foot       string
	Style      template.CSS
	Runs       []entry
	Summary    table
	Sweep      []*view
	SweepTable table
	Curves     []*view
	Times      []*view
	Steps      []table
	Conditions []table
	Several    bool
	Rough      bool // a curve goes through a few percentiles only
}

// view is a chart as the page shows it.
type view struct {
	ID, Title, About string
	SVG              template.HTML
	Table            table
	Runs             []entry // the legend: who has a line
}

// Write writes the page. There must be at least one run. Runs of one name are told apart by a number.
func Write(w io.Writer, runs []Run, o Options) error {
	if len(runs) == 0 {
		return errors.New("report: no runs")
	}
	runs = distinct(runs)
	d := data{
		Title: o.Title, Foot: o.Foot, Several: len(runs) > 1, Summary: summary(runs), Conditions: conditionTables(runs), Steps: stepTables(runs),
	}
	if d.Title == "" {
		d.Title = "Load report: " + strings.Join(names(runs), ", ")
	}
	for i := range runs {
		d.Runs = append(d.Runs, entryOf(&runs[i], i))
		for _, l := range runs[i].latencies() {
			d.Rough = d.Rough || l.of.Count > 0 && l.of.h == nil
		}
	}
	for _, c := range curves(runs) {
		d.Curves = append(d.Curves, c.view(d.Runs))
	}
	for _, c := range times(runs) {
		d.Times = append(d.Times, c.view(d.Runs))
	}
	return d.write(w)
}

// write writes the page.
func (d data) write(w io.Writer) error {
	style, err := files.ReadFile("style.css")
	if err != nil {
		return err
	}
	d.Style = template.CSS(style)
	var b bytes.Buffer // so that an error leaves no half a page
	if err := page.Execute(&b, d); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// distinct gives runs without a name, or with that of another, a name of their own.
func distinct(runs []Run) []Run {
	runs = append([]Run(nil), runs...)
	seen := map[string]bool{}
	for i := range runs {
		name := runs[i].Name
		if name == "" {
			name = runs[i].Engine
		}
		unique := name
		for n := 2; unique == "" || seen[unique]; n++ {
			unique = strings.TrimSpace(fmt.Sprintf("%s #%d", name, n))
		}
		seen[unique] = true
		runs[i].Name = unique
	}
	return runs
}

func entryOf(r *Run, i int) entry {
	class, state := r.state()
	e := entry{Name: r.Name, Class: class, State: state, Colour: i % colours, Notes: r.Notes}
	load := "as fast as possible"
	if r.Rate > 0 {
		load = rate(r.Rate) + " on schedule"
	}
	e.About = fmt.Sprintf("%s, scenario %s, %s", orDash(r.Engine), orDash(r.Scenario), load)
	if r.Placement.Label != "" {
		e.About += ", placement " + r.Placement.Label
	}
	shown := 0
	for _, l := range r.Lanes {
		if l.FirstFault == "" {
			continue
		}
		if shown++; shown > 5 {
			break
		}
		e.Notes = append(e.Notes[:len(e.Notes):len(e.Notes)], fmt.Sprintf("first fault of %s, partition %d: %s", l.Consumer, l.Partition, l.FirstFault))
	}
	return e
}
