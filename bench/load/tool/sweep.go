package tool

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/report"
	"github.com/leatlog/leat/bench/load/slo"
	"github.com/leatlog/leat/bench/load/sweep"
)

const (
	sweepSLO      = "e2e.p99<1ms"
	sweepDuration = 2 * time.Second
	sweepWarmup   = 300 * time.Millisecond
	rateMost      = 1e12
)

// runSweep searches for the highest rate that meets the objectives.
func (o options) runSweep(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c sweep.Config
	err := o.parseSweep(args, &c, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	return o.sweep(ctx, c, stdout, stderr)
}

// parseSweep reads the flags of a search.
func (o *options) parseSweep(args []string, c *sweep.Config, stderr io.Writer) error {
	o.prepare = func(given map[string]bool) error { return o.prepareSweep(c, given) }
	return o.parse(args, stderr, "sweep", func(fs *flag.FlagSet) { o.sweepFlags(fs, c) }, sweepUsage)
}

// sweepFlags defines the flags that only a search has, and says what others are for there.
func (o *options) sweepFlags(fs *flag.FlagSet, c *sweep.Config) {
	c.From = 10_000
	fs.Var(rateValue{&c.From}, "from", "the first `rate`, an easy one, in messages a second")
	fs.Var(rateValue{&c.To}, "to", "a `rate` that is not exceeded")
	fs.Float64Var(&c.Factor, "factor", 2, "by how much the rate is raised while all is well")
	fs.Float64Var(&c.Precision, "precision", 0.05, "how near the knee is to be found, as a `fraction`")
	fs.IntVar(&c.Runs, "runs", 60, "the most runs that are made")
	fs.StringVar(&o.out.page, "o", "", "write an HTML page with the curve of latency against rate to this `file`; - is standard output")
	fs.Lookup("json").Usage = "write all results as JSON to this `file`; - is standard output. leatload report makes a page of it, and -file runs at the knee"
	fs.Lookup("q").Usage = "no line for each run, only what is found"
}

// prepareSweep sets what a search has by itself, and says what is wrong with its flags.
func (o *options) prepareSweep(c *sweep.Config, given map[string]bool) error {
	switch {
	case given["rate"]:
		return errors.New("-rate is what sweep searches for: use -from, and -to")
	case !(c.From > 0 && c.From <= rateMost):
		return fmt.Errorf("-from is %v: must be above 0, at most 1e12", c.From)
	case c.To != 0 && !(c.To > c.From && c.To <= rateMost):
		return fmt.Errorf("-to is %v: must be above -from, which is %v, and at most 1e12, or 0", c.To, c.From)
	case !(c.Factor > 1 && c.Factor <= 1000):
		return fmt.Errorf("-factor is %v: must be above 1, at most 1000", c.Factor)
	case !(c.Precision >= 0.001 && c.Precision <= 1):
		return fmt.Errorf("-precision is %v: must be 0.001 to 1", c.Precision)
	case c.Runs < 1 || c.Runs > 10_000:
		return fmt.Errorf("-runs is %d: must be 1 to 10000", c.Runs)
	case o.out.csv != "" || o.out.hgrm != "" || o.out.hlog != "":
		return errors.New("-csv, -hgrm and -hlog are of one run: use them with leatload run, and -rate")
	}
	s := &o.scenario
	s.Rate = c.From
	if !given["duration"] {
		s.Duration = sweepDuration
	}
	if !given["warmup"] {
		s.Warmup = sweepWarmup
	}
	if !given["stop"] && s.Stop >= s.Duration {
		s.Stop = s.Duration / 3
	}
	if o.slo == nil {
		var err error
		if o.slo, err = slo.Parse(sweepSLO); err != nil {
			return err
		}
	}
	return o.bound(c)
}

// bound sets between which rates a run says something, and refuses what begins or ends outside.
func (o *options) bound(c *sweep.Config) error {
	s := &o.scenario
	c.Least = min(c.From, (1+1e-9)/s.Duration.Seconds())
	c.LeastWhy = fmt.Sprintf("below %s there is not one message in the %v of -duration", load.FormatRate(c.Least), s.Duration)
	most := s.RateMost()
	for _, x := range []struct {
		flag string
		rate float64
	}{{"from", c.From}, {"to", c.To}} {
		if x.rate > most {
			return fmt.Errorf("-messages is %d: at -%s, which is %v, they are through in %v, which is too soon to say whether that rate is held; must be at least %.0f, or 0",
				s.Messages, x.flag, x.rate, seconds(float64(s.Messages)/x.rate), math.Ceil(float64(s.Messages)*x.rate/most))
		}
	}
	if c.To > 0 {
		c.ToWhy = "-to is " + load.FormatRate(c.To)
		return nil
	}
	c.To, c.ToWhy = rateMost, "no rate is higher"
	if most < c.To {
		c.To, c.ToWhy = max(most, c.From), fmt.Sprintf("the %d of -messages would be through too soon to say", s.Messages)
	}
	return nil
}

// seconds is a time that may be of any length, with a few digits.
func seconds(s float64) string { return fmt.Sprintf("%.3gs", s) }

// sweep searches, shows what it finds, and writes it.
func (o *options) sweep(ctx context.Context, c sweep.Config, stdout, stderr io.Writer) int {
	text := stdout
	if o.out.toStdout() {
		text = stderr
	}
	b, code := o.begin("sweep", stdout, stderr)
	if b == nil {
		return code
	}
	defer b.close()
	if !o.quiet {
		fmt.Fprintf(text, "leatload: the highest rate at which %s on %s meets %s\n", o.scenario.Name, o.target.Name(), o.slo)
		c.Step = func(r sweep.Run) { step(text, r) }
	}
	wrong := false
	knee, err := sweep.Find(ctx, c, func(ctx context.Context, rate float64) (sweep.Outcome, error) {
		s := o.scenario
		s.Rate = rate
		res, err := o.measure(ctx, s)
		o.floor = false // once is enough
		if errors.Is(err, load.ErrScenario) || errors.Is(err, load.ErrUnsupported) {
			return sweep.Outcome{Refused: plain(err, *o)}, nil // this rate cannot be: more than handlers can do, for example
		}
		wrong = wrong || res.Faults.Any()
		if err == nil && res.Interrupted {
			err = ctx.Err() // it says nothing about its rate
			if res.Faults.Any() {
				fmt.Fprintf(stderr, "leatload: the run that was interrupted was WRONG: %v\n", res.Faults)
			}
		}
		if err != nil {
			return sweep.Outcome{}, err
		}
		_, met := o.slo.Check(res.Figure)
		return sweep.Outcome{Met: met && res.RateHeld && res.Scheduled > 0 && !res.Faults.Any(), Result: res}, nil
	})
	interrupted := err != nil && errors.Is(err, ctx.Err())
	switch {
	case wrong:
		code = exitWrong
	case err != nil && !interrupted:
		code = exitFailed
	case knee.Knee == 0:
		code = exitMissed
	}
	if err != nil && !interrupted {
		fmt.Fprintf(stderr, "leatload: %v\n", err)
		if len(knee.Points) == 0 { // there is nothing to write, and what the files have may be of use
			return failing(stderr, code, b.end())
		}
	}
	if !o.quiet {
		fmt.Fprintln(text)
	}
	fmt.Fprintln(text, knee)
	if interrupted {
		fmt.Fprintln(text, "INTERRUPTED")
	}
	return failing(stderr, code, errors.Join(b.end(), o.writeSweep(knee, b.out("json"), b.out("o"))))
}

// step shows a run of the search.
func step(w io.Writer, r sweep.Run) {
	res, ok := r.Result.(load.Result)
	if !ok {
		fmt.Fprintf(w, "  %9s msgs/s  %s\n", load.FormatRate(r.Rate), cannotBe(r.Refused))
		return
	}
	l := res.Latency.E2E
	fmt.Fprintf(w, "  %9s msgs/s  e2e p50 %8s  p99 %8s  p99.9 %8s  max %8s  %s\n", load.FormatRate(r.Rate),
		load.FormatDuration(time.Duration(l.P50)), load.FormatDuration(time.Duration(l.P99)), load.FormatDuration(time.Duration(l.P999)),
		load.FormatDuration(time.Duration(l.Max)), verdict(r.Met, &res))
}

// cannotBe says of a rate that there can be no run at it.
func cannotBe(why error) string { return fmt.Sprintf("cannot be: %v", why) }

// verdict says in a word what came of a run.
func verdict(met bool, res *load.Result) string {
	switch {
	case res.Faults.Any():
		return "WRONG: " + res.Faults.String()
	case !met && res.Scheduled == 0:
		return "no message was due"
	case !res.RateHeld:
		return "rate missed"
	case !met:
		return "missed"
	}
	return "met"
}

// writeSweep writes the JSON and the page, as far as they are asked for.
func (o *options) writeSweep(k sweep.Knee, jsonTo, pageTo io.WriteCloser) error {
	all, runs, err := sweptOf(k, o.slo.String())
	if err != nil {
		return err
	}
	var errs []error
	if jsonTo != nil {
		e := json.NewEncoder(jsonTo)
		e.SetIndent("", "  ")
		errs = append(errs, finished("json", jsonTo, e.Encode(all)))
	}
	if pageTo != nil && len(runs) > 0 {
		errs = append(errs, pageOf{runs, &all}.writeTo(pageTo, report.Options{Foot: foot()}))
	}
	return errors.Join(errs...)
}

func sweepUsage(w io.Writer, fs *flag.FlagSet, _ engines) {
	fmt.Fprintf(w, `usage: leatload sweep [flags]

Finds the knee: the highest rate at which a scenario still meets -slo (default %s), holds its rate and has no fault. The rate goes
up by -factor until it misses, and then the gap between what met and what missed is halved until it is small. Runs that miss are
repeated, since machines are busy now and then. Each run takes %v (change it with -duration), and there are some twenty.

  leatload sweep -slo 'e2e.p99<200us'
  leatload sweep -scenario fan-out -engine chan -from 1e5 -o curve.html
  leatload sweep -slo 'e2e.p99.9<1ms,cores<1' -json sweep.json

All flags of leatload run that say what to load apply, but -rate: that is what is searched for.

`, sweepSLO, sweepDuration)
	flagList(w, fs, "rate", "csv", "hgrm", "hlog")
	fmt.Fprint(w, `
Exit code: 0 found, or as high as -to; 1 a run failed, or what it was to show could not be written; 2 a run was wrong (or a flag is
wrong, also a file or directory that cannot be had: then nothing has run); 99 not even low rates met. Where several are true, the first
of these counts: a run that was wrong, one that failed, 99, something that could not be written. The last is told on standard error in
any case.

After Ctrl-C the search shows and writes what it has found so far, without the run that was under way, and the code says the same of
that: 0 if a rate has met, 99 if none has yet. So it does when a run fails, but the code is 1. A second Ctrl-C removes the files of
-sync and kills, and a third one kills at once.
`)
}
