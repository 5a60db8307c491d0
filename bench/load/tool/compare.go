package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/leatlog/leat/bench/load/compare"
)

// runCompare says whether one run was slower than another.
func runCompare(args []string, stdout, stderr io.Writer) int {
	fs := newFlags("leatload compare")
	var o compare.Options
	fs.Float64Var(&o.Threshold, "threshold", 0.05, "the smallest `change` that counts, as a fraction")
	fs.BoolVar(&o.Anyway, "anyway", false, "compare also runs of different loads or placement")
	asJSON := fs.Bool("json", false, "write the comparison as JSON")
	withForms(fs)
	names, err := parseMixed(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, `usage: leatload compare [flags] A.json B.json

Says whether run B was slower than run A, from the JSON that leatload run -json has written, and by how much. (What sweep has written
is no run: leatload report makes a page of it.)

  leatload -rate 1e6 -json before.json
  leatload -rate 1e6 -json after.json
  leatload compare before.json after.json

What counts as a difference comes from the runs: each is cut into windows, and a change must be larger than what the windows of a run
differ by among themselves (the noise band), and at least -threshold. Runs of different loads, or on cores that were placed
differently, are not compared.

`)
		flagList(stderr, fs)
		fmt.Fprint(stderr, `
Exit code: 0 B is the same, better, or it cannot be told (as of a run that measured nothing); 1 B is worse (or what it says could not
be written); 2 a run has faults (or a flag or a file is wrong); 3 the runs are not comparable. 2 and 3 stay so where it could not be
written; that is told on standard error in any case.
`)
		return exitOK
	case err != nil:
		_ = complain(stderr, "compare", err)
		return exitUsage
	case len(names) != 2:
		_ = complain(stderr, "compare", fmt.Errorf("compare takes two files that -json has written, not %d", len(names)))
		return exitUsage
	case !(o.Threshold > 0 && o.Threshold < 1):
		_ = complain(stderr, "compare", fmt.Errorf("-threshold is %v: must be above 0 and below 1", o.Threshold))
		return exitUsage
	}
	var runs [2]compare.Run
	for i, name := range names {
		text, err := readAll(name)
		switch {
		case err != nil:
		case isSweep(text):
			err = fmt.Errorf("%s: it is a search that sweep has written; compare takes the results of two runs, and leatload report makes a page of a search", name)
		default:
			if runs[i], err = compare.Read(bytes.NewReader(text)); err != nil {
				err = ofFile(name, err)
			}
		}
		if err != nil {
			_ = complain(stderr, "compare", err)
			return exitUsage
		}
	}
	c := compare.Compare(runs[0], runs[1], o)
	var text bytes.Buffer
	if *asJSON {
		e := json.NewEncoder(&text)
		e.SetIndent("", "  ")
		err = e.Encode(c)
	} else {
		err = c.WriteText(&text)
		if c.Verdict == compare.Incomparable {
			fmt.Fprintln(&text, "(leatload compare -anyway compares them all the same)")
		}
	}
	_, _ = stdout.Write(text.Bytes()) // what it cannot write is told at the end
	return failing(stderr, c.Exit(), err)
}

// flagList lists flags with what they are, but those that are left out.
func flagList(w io.Writer, fs *flag.FlagSet, but ...string) {
	fmt.Fprint(w, "Flags:\n\n")
	fs.VisitAll(func(f *flag.Flag) {
		if slices.Contains(but, f.Name) {
			return
		}
		more := ""
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" {
			more = " (default " + f.DefValue + ")"
		}
		flagLine(w, f, more)
	})
}
