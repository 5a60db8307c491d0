package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/target"
)

// Exit codes.
const (
	exitOK         = 0
	exitFailed     = 1
	exitWrong      = 2 // wrong counters
	exitUsage      = 2 // as package flag has it
	exitRateMissed = 3
)

// run is the program. Its arguments are those after the program's name.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		switch args[0] {
		case "run":
			args = args[1:]
		case "help":
			args = []string{"-h"}
		default:
			fmt.Fprintf(stderr, "leatload: unknown sub-command %q: there is only run, which may be left out, and help\n\n", args[0])
			usage(stderr, nil)
			return exitUsage
		}
	}
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	return o.run(ctx, stdout, stderr)
}

// options is what the flags say.
type options struct {
	scenario load.Scenario
	target   load.Target
	json     string
	quiet    bool
}

// run makes the run and shows it.
func (o options) run(ctx context.Context, stdout, stderr io.Writer) int {
	text, out := stdout, io.WriteCloser(nopCloser{stdout})
	switch o.json {
	case "":
	case "-":
		text = stderr // standard output is the JSON alone
	default: // opened before the run, not after minutes of it
		f, err := os.Create(o.json)
		if err != nil {
			fmt.Fprintf(stderr, "leatload: -json: %v\n", err)
			return exitFailed
		}
		out = f
	}
	defer out.Close() // again, if the run has a result
	s := o.scenario
	if !o.quiet {
		fmt.Fprintf(text, "leatload: %s on %s, %v warm-up and %v measured; Ctrl-C ends it with the result so far\n",
			s.Name, o.target.Name(), s.Warmup, s.Duration)
		s.Live = func(w load.Window) { fmt.Fprintln(text, w) }
	}
	res, err := load.Run(ctx, o.target, s)
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
	if err := res.WriteText(text); err != nil {
		fmt.Fprintf(stderr, "leatload: %v\n", err)
		code = max(code, exitFailed)
	}
	if o.json != "" {
		if err := errors.Join(res.WriteJSON(out), out.Close()); err != nil {
			fmt.Fprintf(stderr, "leatload: -json: %v\n", err)
			code = max(code, exitFailed)
		}
	}
	return code
}

func exitCode(res load.Result, err error) int {
	wrong := res.Err()
	switch {
	case errors.Is(wrong, load.ErrFaults):
		return exitWrong
	case errors.Is(err, target.ErrUnsupported):
		return exitUsage
	case err != nil:
		return exitFailed
	case errors.Is(wrong, load.ErrRateMissed):
		return exitRateMissed
	default:
		return exitOK
	}
}

// nopCloser is a writer whose Close does nothing.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
