package tool

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leatlog/leat/bench/load"
)

// runList lists the scenarios.
func runList(args []string, stdout, stderr io.Writer) int {
	fs := newFlags("leatload list")
	more := fs.Bool("v", false, "show all flags that make the scenario, too")
	withForms(fs)
	names, err := parseMixed(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, `usage: leatload list [-v] [scenario...]

Lists the scenarios, or those that are named, each with what it shows. With -v, also with the flags that make it: each of them can be
given to leatload run to change a number.

  leatload list
  leatload list -v churn

Exit code: 0, 1 it could not be written, 2 there is no such flag or scenario.
`)
		return exitOK
	case err != nil:
		_ = complain(stderr, "list", err)
		return exitUsage
	}
	all := slices.Concat(load.Scenarios(), load.DurableScenarios(), load.GroupScenarios())
	if len(names) > 0 {
		all = all[:0]
		for _, n := range names {
			s, ok := load.ScenarioNamed(n)
			if !ok {
				_ = complain(stderr, "list", fmt.Errorf("scenario %q: must be one of %s", n, strings.Join(scenarioNames(), ", ")))
				return exitUsage
			}
			all = append(all, s)
		}
	}
	for _, s := range all {
		describe(stdout, s)
		if !*more {
			continue
		}
		fmt.Fprint(stdout, "                 leatload")
		for _, x := range s.Settings() {
			fmt.Fprintf(stdout, " -%s=%s", x.Name, x.Value)
		}
		fmt.Fprintln(stdout)
	}
	return exitOK
}

// describe tells of a scenario in two lines.
func describe(w io.Writer, s load.Scenario) {
	rate := ""
	if s.Rate > 0 {
		rate = ", " + load.FormatRate(s.Rate) + " msgs/s"
	}
	fmt.Fprintf(w, "  %-14s %s%s\n                 %s\n", s.Name, s.Shape(), rate, s.About)
}

// parseMixed parses flags that may come before, between and after other arguments, and returns those.
func parseMixed(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if args, err = setFlags(fs, args); err != nil || len(args) == 0 {
			return rest, err
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}
