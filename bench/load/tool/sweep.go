package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
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
)

// swept is the JSON form of a search.
type swept struct {
	Schema int          `json:"schema"` // of the results
	SLO    string       `json:"slo"`
	Ending sweep.Ending `json:"ending"`
	Knee   float64      `json:"knee_msgs_per_s"`
	Above  float64      `json:"above_msgs_per_s"`
	Text   string       `json:"text"`
	Points []sweptPoint `json:"points"`
}

type sweptPoint struct {
	Rate float64       `json:"rate"`
	Met  bool          `json:"met"`
	Runs []load.Result `json:"runs"`
}

// runSweep searches for the highest rate that meets the objectives.
func (o options) runSweep(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c sweep.Config
	var page string
	o.prepare = func(given map[string]bool) error { return o.prepareSweep(&c, given, page) }
	err := o.parse(args, stderr, "sweep", func(fs *flag.FlagSet) {
		c.From = 10_000
		fs.Var(rateValue{&c.From}, "from", "the first `rate`, an easy one, in messages a second, above 0")
		fs.Var(rateValue{&c.To}, "to", "a `rate` that is not exceeded, above -from; 0: none")
		fs.Float64Var(&c.Factor, "factor", 2, "by how much the rate is raised while all is well, above 1")
		fs.Float64Var(&c.Precision, "precision", 0.05, "how near the knee is to be found, as a `fraction`, 0.001 to 1")
		fs.IntVar(&c.Runs, "runs", 60, "the most runs that are made, from 1 on")
		fs.StringVar(&page, "o", "", "write an HTML page with the curve of latency against rate to this `file`; - is standard output")
	}, sweepUsage)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		return exitUsage
	}
	return o.sweep(ctx, c, page, stdout, stderr)
}

// prepareSweep sets what a search has by itself, and says what is wrong with its flags.
func (o *options) prepareSweep(c *sweep.Config, given map[string]bool, page string) error {
	switch {
	case given["rate"]:
		return errors.New("-rate is what sweep searches for: use -from, and -to")
	case !(c.From > 0):
		return fmt.Errorf("-from is %v: must be above 0", c.From)
	case c.To != 0 && !(c.To > c.From):
		return fmt.Errorf("-to is %v: must be above -from, which is %v, or 0", c.To, c.From)
	case !(c.Factor > 1):
		return fmt.Errorf("-factor is %v: must be above 1", c.Factor)
	case !(c.Precision >= 0.001 && c.Precision <= 1):
		return fmt.Errorf("-precision is %v: must be 0.001 to 1", c.Precision)
	case c.Runs < 1:
		return fmt.Errorf("-runs is %d: must be from 1 on", c.Runs)
	case o.out.csv != "" || o.out.hgrm != "" || o.out.hlog != "":
		return errors.New("-csv, -hgrm and -hlog are of one run: use them with leatload run, and -rate")
	case page == "-" && o.out.json == "-":
		return errors.New("-o and -json are both -: only one of them can be standard output")
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
		o.slo, err = slo.Parse(sweepSLO)
		return err
	}
	return nil
}

// sweep searches, shows what it finds, and writes it.
func (o *options) sweep(ctx context.Context, c sweep.Config, page string, stdout, stderr io.Writer) int {
	text := stdout
	if o.out.json == "-" || page == "-" {
		text = stderr
	}
	end, err := o.process.apply()
	if err != nil {
		fmt.Fprintf(stderr, "leatload: %v\n", err)
		return exitFailed
	}
	fmt.Fprintf(text, "leatload: the highest rate at which %s on %s meets %s\n", o.scenario.Name, o.target.Name(), o.slo)
	wrong := false
	c.Step = func(r sweep.Run) { step(text, r) }
	knee, err := sweep.Find(ctx, c, func(ctx context.Context, rate float64) (sweep.Outcome, error) {
		s := o.scenario
		s.Rate = rate
		if rate*s.Duration.Seconds() < 1 {
			return sweep.Outcome{}, nil // not one message: as low as it goes
		}
		res, err := o.measure(ctx, s)
		o.floor = false // once is enough
		if errors.Is(err, load.ErrScenario) || errors.Is(err, load.ErrUnsupported) {
			return sweep.Outcome{Result: plain(err, *o)}, nil // this rate cannot be: more than handlers can do, for example
		}
		if err != nil {
			return sweep.Outcome{}, err
		}
		wrong = wrong || res.Faults.Any()
		_, met := o.slo.Check(res.Figure)
		return sweep.Outcome{Met: met && res.RateHeld && !res.Faults.Any(), Result: res}, nil
	})
	interrupted := ctx.Err() != nil
	if err != nil && !interrupted {
		fmt.Fprintf(stderr, "leatload: %v\n", err)
		_ = end()
		return exitFailed
	}
	fmt.Fprintf(text, "\n%s\n", knee)
	if interrupted {
		fmt.Fprintln(text, "INTERRUPTED")
	}
	if err := errors.Join(end(), o.writeSweep(knee, page, stdout)); err != nil {
		fmt.Fprintf(stderr, "leatload: %v\n", err)
		return exitFailed
	}
	switch {
	case wrong:
		return exitWrong
	case knee.Knee == 0 && !interrupted:
		return exitMissed
	}
	return exitOK
}

// step shows a run of the search.
func step(w io.Writer, r sweep.Run) {
	res, ok := r.Result.(load.Result)
	if !ok {
		if err, ok := r.Result.(error); ok {
			fmt.Fprintf(w, "  %9s msgs/s  cannot be: %v\n", load.FormatRate(r.Rate), err)
		}
		return
	}
	l := res.Latency.E2E
	fmt.Fprintf(w, "  %9s msgs/s  e2e p50 %8s  p99 %8s  p99.9 %8s  max %8s  %s\n", load.FormatRate(r.Rate),
		load.FormatDuration(time.Duration(l.P50)), load.FormatDuration(time.Duration(l.P99)), load.FormatDuration(time.Duration(l.P999)),
		load.FormatDuration(time.Duration(l.Max)), verdict(r.Met, &res))
}

// verdict says in a word what came of a run.
func verdict(met bool, res *load.Result) string {
	switch {
	case res.Faults.Any():
		return "WRONG: " + res.Faults.String()
	case !res.RateHeld:
		return "rate missed"
	case !met:
		return "missed"
	}
	return "met"
}

// writeSweep writes the JSON and the page.
func (o *options) writeSweep(k sweep.Knee, page string, stdout io.Writer) error {
	all := swept{
		Schema: load.Schema, SLO: o.slo.String(), Ending: k.Ending, Knee: k.Knee, Above: k.Above, Text: k.String(), Points: []sweptPoint{},
	}
	var runs []report.Run
	for _, p := range k.Points {
		x := sweptPoint{Rate: p.Rate, Met: p.Met}
		for _, r := range p.Runs {
			res, ok := r.Result.(load.Result)
			if !ok {
				continue
			}
			x.Runs = append(x.Runs, res)
			var b bytes.Buffer
			if err := res.WriteJSON(&b); err != nil {
				return err
			}
			run, err := report.Read(load.FormatRate(r.Rate)+" msgs/s", &b)
			if err != nil {
				return err
			}
			run.Verdict = verdict(r.Met, &res)
			runs = append(runs, run)
		}
		all.Points = append(all.Points, x)
	}
	if o.out.json != "" {
		err := writeTo(o.out.json, stdout, func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(all)
		})
		if err != nil {
			return fmt.Errorf("-json: %w", err)
		}
	}
	if page == "" || len(runs) == 0 {
		return nil
	}
	err := writeTo(page, stdout, func(w io.Writer) error {
		return report.WriteSweep(w, runs, report.Sweep{SLO: all.SLO, Knee: k.Knee, Text: all.Text}, report.Options{Foot: foot()})
	})
	if err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	return nil
}

func sweepUsage(w io.Writer, fs *flag.FlagSet, _ engines) {
	fmt.Fprintf(w, `usage: leatload sweep [flags]

Finds the knee: the highest rate at which a scenario still meets -slo (default %s), holds its rate and has no fault. The rate goes
up by -factor until it misses, and then the gap between what met and what missed is halved until it is small. Runs that miss are
repeated, since machines are busy now and then. Each run takes %v (change it with -duration), and there are some twenty.

  leatload sweep -slo 'e2e.p99<200us'
  leatload sweep -scenario fan-out -engine chan -from 1e5 -o curve.html
  leatload sweep -slo 'e2e.p99.9<1ms,cores<1' -json sweep.json

All flags of leatload run that say what to load apply, but -rate.

`, sweepSLO, sweepDuration)
	flagList(w, fs)
	fmt.Fprint(w, `
Exit code: 0 found, or as high as -to; 1 a run failed; 2 a run was wrong (or the arguments make no sense); 99 not even low rates met.
`)
}
