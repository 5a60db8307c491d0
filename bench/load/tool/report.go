package tool

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/leatlog/leat/bench/load/report"
)

// runReport makes a page of results.
func runReport(args []string, stdout, stderr io.Writer) int {
	fs := newFlags("leatload report")
	out := fs.String("o", "report.html", "the `file` to write; - is standard output")
	title := fs.String("title", "", "the page's `title`; empty: made of the runs' names")
	withForms(fs)
	names, err := parseMixed(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, `usage: leatload report [flags] A.json [B.json...]
       leatload report [flags] SWEEP.json

Makes one HTML page of one or several results that leatload -json has written: percentile curves over each other, rate, lag and
percentiles over time, and what the runs went by, with what differs between them marked. The page is a single file that loads nothing
from anywhere. Of a search that leatload sweep -json has written it makes the page that sweep -o makes: latency against rate.

  leatload -rate 1e6 -json leat.json
  leatload -rate 1e6 -engine chan -json chan.json
  leatload report leat.json chan.json -o report.html

`)
		flagList(stderr, fs)
		fmt.Fprint(stderr, "\nExit code: 0 there is a page; 1 it could not be written; 2 a flag or a file is wrong.\n")
		return exitOK
	case err != nil:
		_ = complain(stderr, "report", err)
		return exitUsage
	case len(names) == 0:
		_ = complain(stderr, "report", errors.New("report takes one or more files that -json has written"))
		return exitUsage
	}
	p, err := readPage(names)
	if err == nil {
		var in []fileOf
		for _, name := range names {
			in = append(in, fileOf{"", name})
		}
		err = distinct(in, []fileOf{{"o", *out}})
	}
	if err == nil && strings.TrimSpace(*out) == "" {
		err = errors.New("-o is empty: must be a file, or - for standard output")
	}
	if err != nil {
		_ = complain(stderr, "report", err)
		return exitUsage
	}
	to, err := openOut("o", *out, stdout)
	if err != nil {
		_ = complain(stderr, "report", err)
		return exitUsage
	}
	if err := p.writeTo(to, report.Options{Title: *title, Foot: foot()}); err != nil {
		return failing(stderr, exitFailed, err)
	}
	if *out != "-" {
		fmt.Fprintln(stdout, "wrote", *out)
	}
	return exitOK
}

// pageOf is what goes on a page: runs, or a search.
type pageOf struct {
	runs   []report.Run
	search *swept
}

// readPage reads the files for a page.
func readPage(names []string) (p pageOf, err error) {
	for _, name := range names {
		text, err := readAll(name)
		if err != nil {
			return p, err
		}
		if isSweep(text) {
			if len(names) > 1 {
				return p, fmt.Errorf("%s: it is a search that sweep has written, which has a page for itself: report takes one search, or one or more runs", name)
			}
			all, err := readSweep(text)
			if err == nil {
				p.runs, err = all.runs()
			}
			if err == nil && len(p.runs) == 0 {
				err = fmt.Errorf("%w: there are no runs in it", errSweep)
			}
			if err != nil {
				return p, ofFile(name, err)
			}
			p.search = &all
			continue
		}
		run, err := report.Read(strings.TrimSuffix(filepath.Base(name), ".json"), bytes.NewReader(text))
		if err != nil {
			return p, ofFile(name, err)
		}
		p.runs = append(p.runs, run)
	}
	return p, nil
}

// writeTo writes the page into the file of -o, and closes it.
func (p pageOf) writeTo(to io.WriteCloser, o report.Options) error {
	w := bufio.NewWriter(to)
	write := func() error { return report.Write(w, p.runs, o) }
	if p.search != nil {
		write = func() error { return report.WriteSweep(w, p.runs, p.search.head(), o) }
	}
	return finished("o", to, cmp.Or(write(), w.Flush()))
}

func foot() string { return "Made by leatload, " + time.Now().UTC().Format("2006-01-02 15:04 UTC") }
