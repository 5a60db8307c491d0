package tool

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/slo"
)

// Exit codes of run and sweep; those of compare are its own. What is wrong with the flags, files included, is found before anything runs,
// and is exitUsage; what fails later is exitFailed.
const (
	exitOK         = 0
	exitFailed     = 1        // while it ran, or as what came of it was written
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
	return run(ctx, &leftovers{}, targets, args, stdout, stderr)
}

// run is Run, and says what is left if it is killed.
func run(ctx context.Context, left *leftovers, targets []load.Target, args []string, stdout, stderr io.Writer) int {
	if len(targets) == 0 {
		panic("tool: no target to load")
	}
	out := &printed{w: stdout, name: "standard output", unread: left.unread}
	errs := &printed{w: stderr, name: "standard error", unread: left.unread}
	code := options{engines: targets, left: left}.command(ctx, args, out, errs)
	for _, p := range []*printed{out, errs} {
		if err := p.lost(); err != nil {
			code = failing(stderr, code, notWritten(p.name, err))
		}
	}
	return code
}

// command is a sub-command with its arguments.
func (o options) command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		switch name := args[0]; name {
		case "run":
			args = args[1:]
		case "help":
			if len(args) > 1 && args[1] != "run" {
				return o.command(ctx, []string{args[1], "-h"}, stdout, stderr)
			}
			args = []string{"-h"}
		case "sweep":
			return o.runSweep(ctx, args[1:], stdout, stderr)
		default:
			if f, ok := commands[name]; ok {
				return f(args[1:], stdout, stderr)
			}
			fmt.Fprintf(stderr, "leatload: unknown sub-command %q: must be one of run (which may be left out), list, compare, report, sweep, help\n\n", name)
			usage(stderr, nil, o.engines)
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
	left     *leftovers // may be nil
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
	b, code := o.begin("run", stdout, stderr)
	if b == nil {
		return code
	}
	defer b.close() // again, if the run has a result
	s := o.scenario
	if b.log != nil {
		s.Intervals = b.log.interval
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
	ended := b.end()
	if err != nil {
		fmt.Fprintf(stderr, "leatload: %v\n", err)
	}
	if err != nil && res.SchemaVersion == 0 { // there is no result
		code = exitCode(load.Result{RateHeld: true}, err)
	} else {
		if !o.quiet {
			fmt.Fprintln(text)
		}
		code = exitCode(res, err)
		if o.judge(text, res) && (code == exitOK || code == exitRateMissed) {
			code = exitMissed
		}
		ended = errors.Join(ended, b.write(&res))
	}
	return failing(stderr, code, ended)
}

// failing tells of errors, each in a line, and returns the exit code of what failed besides, if it says that all is well.
func failing(stderr io.Writer, code int, err error) int {
	if err == nil {
		return code
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "leatload: %s\n", strings.TrimSpace(line))
	}
	if code == exitOK {
		return exitFailed
	}
	return code
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
	_ = res.WriteText(w) // what it cannot write is told at the end
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
