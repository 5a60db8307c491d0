package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/slo"
)

// Exit codes of run and sweep; those of compare are its own.
const (
	exitOK         = 0
	exitFailed     = 1
	exitWrong      = 2        // wrong counters
	exitUsage      = 2        // as package flag has it
	exitRateMissed = 3        // or handlers did not finish
	exitMissed     = slo.Exit // an objective of -slo
)

// commands are the sub-commands besides run and sweep, which need targets.
var commands = map[string]func(args []string, stdout, stderr io.Writer) int{
	"list": runList, "compare": runCompare, "report": runReport,
}

// Run is the program with arguments, those after the program's name, and returns its exit code. The first target is the default. When
// ctx ends a run ends with the result so far. It panics without a target.
func Run(ctx context.Context, targets []load.Target, args []string, stdout, stderr io.Writer) int {
	if len(targets) == 0 {
		panic("tool: no target to load")
	}
	o := options{engines: targets}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		switch name := args[0]; name {
		case "run":
			args = args[1:]
		case "help":
			if len(args) > 1 && args[1] != "run" {
				return Run(ctx, targets, []string{args[1], "-h"}, stdout, stderr)
			}
			args = []string{"-h"}
		case "sweep":
			return o.runSweep(ctx, args[1:], stdout, stderr)
		default:
			if f, ok := commands[name]; ok {
				return f(args[1:], stdout, stderr)
			}
			fmt.Fprintf(stderr, "leatload: unknown sub-command %q: must be one of run (which may be left out), list, compare, report, sweep, help\n\n", name)
			usage(stderr, nil, targets)
			return exitUsage
		}
	}
	switch err := o.parse(args, stderr, "run", nil, usage); {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	return o.run(ctx, stdout, stderr)
}

// options is what the flags say.
type options struct {
	engines  engines
	scenario load.Scenario
	target   load.Target
	out      outputs
	process  process
	slo      slo.SLO
	file     string
	floor    bool
	quiet    bool

	// prepare, if not nil, is what a sub-command does before the scenario is checked, given the flags that were, without
	// those of a file.
	prepare func(given map[string]bool) error
}

// run makes the run and shows it.
func (o options) run(ctx context.Context, stdout, stderr io.Writer) int {
	text := stdout
	if o.out.toStdout() {
		text = stderr // standard output is that alone
	}
	fail := func(err error) int {
		fmt.Fprintf(stderr, "leatload: %v\n", err)
		return exitFailed
	}
	s := o.scenario
	files, err := o.out.open(&s, stdout)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = closeAll(files) }() // again, if the run has a result
	removeDir, err := o.makeDir()
	if err != nil {
		_ = fail(err)
		return exitUsage
	}
	defer removeDir()
	end, err := o.process.apply()
	if err != nil {
		return fail(err)
	}
	if !o.quiet {
		fmt.Fprintf(text, "leatload: %s on %s, %v warm-up and %v measured; Ctrl-C ends it with the result so far\n",
			s.Name, o.target.Name(), s.Warmup, s.Duration)
		for _, w := range s.Warnings() {
			fmt.Fprintf(text, "leatload: %s\n", w)
		}
		s.Live = newView(text).show
	}
	res, err := o.measure(ctx, s)
	ended := end()
	if err != nil {
		fmt.Fprintf(stderr, "leatload: %v\n", err)
		if res.SchemaVersion == 0 { // there is no result
			return exitCode(load.Result{RateHeld: true}, err)
		}
	}
	if !o.quiet {
		fmt.Fprintln(text)
	}
	code := exitCode(res, err)
	if o.judge(text, res) && (code == exitOK || code == exitRateMissed) {
		code = exitMissed
	}
	if err := errors.Join(ended, finish(files, &res)); err != nil {
		fmt.Fprintf(stderr, "leatload: %v\n", err)
		if code == exitOK {
			code = exitFailed
		}
	}
	return code
}

// makeDir makes the directory for files that messages are kept in. What it returns removes what it has made.
func (o options) makeDir() (undo func(), err error) {
	s := &o.scenario
	switch {
	case s.Sync == "":
		return func() {}, nil
	case s.Dir == "":
		if undo, err = makeDir(os.TempDir()); err != nil {
			err = fmt.Errorf("-dir is empty, and -sync needs one: must be a directory, since that for temporary files takes none: %w", err)
		}
		return undo, err
	}
	if undo, err = makeDir(s.Dir); err != nil {
		err = fmt.Errorf("-dir %q: must be a directory in which files can be made, or can be one: %w", s.Dir, err)
	}
	return undo, err
}

// measure makes one run.
func (o options) measure(ctx context.Context, s load.Scenario) (load.Result, error) {
	s.NoFloor = !o.floor
	res, err := load.Run(ctx, o.target, s)
	res.Pinned = o.process.pin
	return res, err
}

// judge writes the result, and what became of the objectives, and reports whether one of them was missed.
func (o options) judge(w io.Writer, res load.Result) (missed bool) {
	if err := res.WriteText(w); err != nil {
		return false // who reads no result needs no judgement
	}
	checks, met := o.slo.Check(res.Figure)
	for i, c := range checks {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "slo        %s\n", c)
	}
	return !met
}

func exitCode(res load.Result, err error) int {
	wrong := res.Err()
	switch {
	case errors.Is(wrong, load.ErrFaults):
		return exitWrong
	case errors.Is(err, load.ErrUnsupported):
		return exitUsage
	case err != nil:
		return exitFailed
	case errors.Is(wrong, load.ErrRateMissed) || errors.Is(wrong, load.ErrUnfinished):
		return exitRateMissed
	default:
		return exitOK
	}
}
