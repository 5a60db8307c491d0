package tool

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
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
	names, err := parseMixed(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, `usage: leatload report [flags] A.json [B.json...]

Makes one HTML page of one or several results that leatload -json has written: percentile curves over each other, rate, lag and
percentiles over time, and what the runs went by, with what differs between them marked. The page is a single file that loads nothing
from anywhere.

  leatload -rate 1e6 -json leat.json
  leatload -rate 1e6 -engine chan -json chan.json
  leatload report leat.json chan.json -o report.html

`)
		flagList(stderr, fs)
		return exitOK
	case err != nil:
		_ = complain(stderr, "report", explained(fs, err))
		return exitUsage
	case len(names) == 0:
		_ = complain(stderr, "report", errors.New("report takes one or more files that -json has written"))
		return exitUsage
	}
	var runs []report.Run
	for _, name := range names {
		err := readFrom(name, func(r io.Reader) error {
			run, err := report.Read(strings.TrimSuffix(filepath.Base(name), ".json"), r)
			runs = append(runs, run)
			return err
		})
		if err != nil {
			_ = complain(stderr, "report", err)
			return exitUsage
		}
	}
	err = writeTo(*out, stdout, func(w io.Writer) error { return report.Write(w, runs, report.Options{Title: *title, Foot: foot()}) })
	if err != nil {
		fmt.Fprintf(stderr, "leatload: -o: %v\n", err)
		return exitFailed
	}
	if *out != "-" {
		fmt.Fprintln(stdout, "wrote", *out)
	}
	return exitOK
}

func foot() string { return "Made by leatload, " + time.Now().UTC().Format("2006-01-02 15:04 UTC") }

// writeTo writes a file, or standard output.
func writeTo(name string, stdout io.Writer, write func(io.Writer) error) error {
	if name == "-" {
		return write(stdout)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(f)
	return errors.Join(write(b), b.Flush(), f.Close())
}
