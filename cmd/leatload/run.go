package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
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
		if args[0] != "run" {
			fmt.Fprintf(stderr, "leatload: unknown sub-command %q: there is only run, which may be left out\n\n", args[0])
			usage(stderr, nil)
			return exitUsage
		}
		args = args[1:]
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

// parse reads the flags. What it returns an error for it has already told on stderr.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	var flags load.Scenario
	fs := flag.NewFlagSet("leatload", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { usage(stderr, fs) }

	name := fs.String("scenario", load.Scenarios()[0].Name, "`name` of the scenario to start from; the flags below change it")
	engine := fs.String("engine", target.Names()[0], "what to load: "+strings.Join(target.Names(), ", "))
	fs.IntVar(&flags.Producers, "producers", 0, "how many goroutines publish")
	fs.IntVar(&flags.Partitions, "partitions", 0, "how many partitions they publish to, in turn")
	fs.IntVar(&flags.Readers, "readers", 0, "how many pull readers see every message")
	fs.IntVar(&flags.Subscribers, "subscribers", 0, "how many push subscribers see every message")
	fs.IntVar(&flags.Size, "size", 0, fmt.Sprintf("`bytes` in a message, at least %d", load.MinSize))
	fs.Float64Var(&flags.Rate, "rate", 0, "`messages` a second, all producers together, evenly spaced; 0: as fast as possible")
	fs.StringVar(&flags.Publish, "publish", "", "`mode` in which leat publishes: async (default), sync, batch, appender")
	fs.StringVar(&flags.Wait, "wait", "", "`policy` by which leat waits: park (default), yield, spin")
	fs.DurationVar(&flags.Duration, "duration", 0, "how long to measure")
	fs.DurationVar(&flags.Warmup, "warmup", 0, "how long to run before that")
	fs.Uint64Var(&flags.Seed, "seed", 0, "decides the messages' bytes and where producers start; same seed, same stream")
	fs.StringVar(&o.json, "json", "", "write the result as JSON to this `file`; - is standard output")
	fs.BoolVar(&o.quiet, "q", false, "no line each second, only the result")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	fail := func(format string, a ...any) (options, error) {
		err := fmt.Errorf(format, a...)
		fmt.Fprintf(stderr, "leatload: %v\nleatload -h lists the flags and scenarios\n", err)
		return o, err
	}
	if fs.NArg() > 0 {
		return fail("unexpected argument %q: flags come as -name value", fs.Arg(0))
	}
	var ok bool
	if o.target, ok = target.Named(*engine); !ok {
		return fail("-engine %q: must be one of %s", *engine, strings.Join(target.Names(), ", "))
	}
	if o.scenario, ok = load.ScenarioNamed(*name); !ok {
		return fail("-scenario %q: must be one of %s", *name, strings.Join(scenarioNames(), ", "))
	}
	fs.Visit(func(f *flag.Flag) { override(&o.scenario, flags, f.Name) })
	if err := o.scenario.Validate(); err != nil {
		return fail("-%s", strings.TrimPrefix(err.Error(), "load: scenario: "))
	}
	return o, nil
}

// override takes over the field of a flag that was given.
func override(s *load.Scenario, from load.Scenario, flag string) {
	switch flag {
	case "producers":
		s.Producers = from.Producers
	case "partitions":
		s.Partitions = from.Partitions
	case "readers":
		s.Readers = from.Readers
	case "subscribers":
		s.Subscribers = from.Subscribers
	case "size":
		s.Size = from.Size
	case "rate":
		s.Rate = from.Rate
	case "publish":
		s.Publish = from.Publish
	case "wait":
		s.Wait = from.Wait
	case "duration":
		s.Duration = from.Duration
	case "warmup":
		s.Warmup = from.Warmup
	case "seed":
		s.Seed = from.Seed
	}
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

func scenarioNames() []string {
	var names []string
	for _, s := range load.Scenarios() {
		names = append(names, s.Name)
	}
	return names
}

// usage teaches. Without a flag set it is the short form.
func usage(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprint(w, `usage: leatload [run] [flags]

Leatload makes producers publish to partitions as pull readers and push subscribers read them, checks that every message
arrives once, in order and unharmed, and shows rate, cost and latency percentiles.

  leatload                                   the main job as fast as possible, for about 10 s
  leatload -rate 1e6                         a million messages a second on a fixed schedule: latencies count from it
  leatload -scenario fan-out -engine chan    the same question to a rival
  leatload -json result.json                 also for programs
`)
	if fs == nil {
		fmt.Fprintln(w, "\nleatload -h lists the flags and scenarios")
		return
	}
	fmt.Fprint(w, "\nScenarios (each flag that is given changes one of their numbers):\n\n")
	for _, s := range load.Scenarios() {
		fmt.Fprintf(w, "  %-12s %s\n               %s\n", s.Name, s.Shape(), s.About)
	}
	fmt.Fprint(w, "\nFlags:\n\n")
	fs.VisitAll(func(f *flag.Flag) {
		arg, text := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  %-24s %s%s\n", "-"+f.Name+" "+arg, text, defaultOf(f.Name))
	})
	fmt.Fprint(w, `
Latencies: publish is how long the call took; delay is how much later than scheduled it began; e2e is from the schedule
(without -rate: from the call) until a reader or subscriber had the message. With -rate every message is measured; without,
one in 61, and what you see is mostly how much is buffered.

Exit code: 0 all is well, 1 the run failed, 2 messages were lost, duplicated, reordered or damaged (or the arguments make no
sense), 3 the rate was not reached.
`)
}

// defaultOf tells a flag's default, as the default scenario has it.
func defaultOf(name string) string {
	s := load.Scenarios()[0]
	v, ok := map[string]any{
		"scenario": s.Name, "engine": target.Names()[0], "producers": s.Producers, "partitions": s.Partitions,
		"readers": s.Readers, "subscribers": s.Subscribers, "size": s.Size, "rate": s.Rate,
		"duration": s.Duration, "warmup": s.Warmup, "seed": s.Seed,
	}[name]
	if !ok {
		return ""
	}
	if slices.Contains([]string{"scenario", "engine", "size", "duration", "warmup", "seed"}, name) {
		return fmt.Sprintf(" (default %v)", v)
	}
	return fmt.Sprintf(" (default: the scenario's; %v in %s)", v, s.Name)
}
