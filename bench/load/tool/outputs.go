package tool

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/export"
)

// outputs are the files that a run, or a search, is to write.
type outputs struct{ json, csv, hgrm, hlog, page string }

// output is a file to write.
type output struct {
	fileOf
	write func(io.Writer, *load.Result) error // nil for what is no result of a run, or is written as it goes on
}

// all lists those that are asked for.
func (o *outputs) all() (list []output) {
	add := func(flag, name string, write func(io.Writer, *load.Result) error) {
		if name != "" {
			list = append(list, output{fileOf{flag, name}, write})
		}
	}
	add("json", o.json, func(w io.Writer, r *load.Result) error { return r.WriteJSON(w) })
	add("csv", o.csv, func(w io.Writer, r *load.Result) error { return export.CSV(w, r.Windows) })
	add("hlog", o.hlog, nil)
	add("o", o.page, nil)
	for _, of := range []string{"e2e", "publish", "delay"} {
		if strings.Contains(o.hgrm, "%") || of == "e2e" {
			add("hgrm", strings.Replace(o.hgrm, "%", of, 1), hgrm(of))
		}
	}
	return list
}

// files lists them as files.
func (o *outputs) files() (list []fileOf) {
	for _, x := range o.all() {
		list = append(list, x.fileOf)
	}
	return list
}

func (o *outputs) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.json, "json", "", "write the result as JSON to this `file`; - is standard output. leatload compare, report and -file read it")
	fs.StringVar(&o.csv, "csv", "", "write a line for each window to this `file`, as comma-separated values; - is standard output")
	fs.StringVar(&o.hgrm, "hgrm", "", "write the percentiles of e2e in microseconds to this `file`, for the HdrHistogram plotter; a % in "+
		"its name stands for e2e, publish and delay: three files")
	fs.StringVar(&o.hlog, "hlog", "", "write a histogram for each window to this `file`, as HdrHistogram logs have them; writing it "+
		"allocates, and counts as the process's allocations")
}

// toStdout reports whether standard output belongs to one of them.
func (o *outputs) toStdout() bool { return o.json == "-" || o.csv == "-" || o.page == "-" }

// check says what is wrong with the flags.
func (o *outputs) check() error {
	if o.json == "-" && o.csv == "-" {
		return errors.New("-json and -csv are both -: only one of them can be standard output")
	}
	if o.json == "-" && o.page == "-" {
		return errors.New("-o and -json are both -: only one of them can be standard output")
	}
	for name, file := range map[string]string{"hgrm": o.hgrm, "hlog": o.hlog} {
		if file == "-" {
			return fmt.Errorf("-%s is -: must be a file", name)
		}
	}
	return nil
}

func hgrm(which string) func(io.Writer, *load.Result) error {
	return func(w io.Writer, r *load.Result) error {
		l := map[string]load.Latency{"e2e": r.Latency.E2E, "publish": r.Latency.Publish, "delay": r.Latency.Delay}[which]
		h := hdr.New(1, 2, 3)
		if l.HDR != "" {
			var err error
			if h, err = export.Decode(l.HDR); err != nil {
				return err
			}
		}
		return export.HGRM(w, h, time.Microsecond)
	}
}

// logger writes a histogram log as the run goes on.
type logger struct {
	scenario string
	w        *bufio.Writer
	log      *export.Log
	err      error
}

func (l *logger) interval(from, to time.Duration, e2e, publish, delay *load.Histogram) {
	if l.log == nil {
		l.log, l.err = export.NewLog(l.w, time.Now().Add(-to), "leatload, scenario "+l.scenario+"; nanoseconds")
	}
	for _, x := range []struct {
		tag string
		h   *load.Histogram
	}{{"e2e", e2e}, {"publish", publish}, {"delay", delay}} {
		if l.err == nil && x.h.Count() > 0 {
			l.err = l.log.Interval(x.tag, from, to, x.h.HDR())
		}
	}
}

func (l *logger) end() error { return cmp.Or(l.err, l.w.Flush()) }
