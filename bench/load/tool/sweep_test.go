package tool

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/sweep"
	"github.com/leatlog/leat/bench/load/target"
)

// TestSweep_Lowest: no run is tried that has no message, and the search says so in the end.
func TestSweep_Lowest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s.json")
	code, stdout, stderr := call("sweep", "-engine", "chan", "-scenario", "unicast", "-duration", "20ms", "-warmup", "0s", "-floor=false", "-from", "300",
		"-slo", "e2e.max<1ns,lost<1", "-json", name)
	require.Equal(t, exitMissed, code, stderr)
	assert.NotContains(t, stdout, "cannot be")
	assert.Contains(t, stdout, "no rate that was tried meets the SLO, down to 75 a second: below 50 there is not one message in the 20ms of -duration")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "null")
	var all swept
	require.NoError(t, json.Unmarshal(text, &all))
	require.Len(t, all.Points, 3)
	for _, p := range all.Points {
		assert.NotEmpty(t, p.Runs)
		assert.Len(t, p.Verdicts, len(p.Runs))
	}
}

// TestSwept_Refused: a point that has no runs says why.
func TestSwept_Refused(t *testing.T) {
	refused := errors.New("-rate is 2000: must be less")
	k, err := sweep.Find(t.Context(), sweep.Config{From: 1000, Precision: 1}, func(_ context.Context, rate float64) (sweep.Outcome, error) {
		if rate > 1000 {
			return sweep.Outcome{Refused: refused}, nil
		}
		return sweep.Outcome{Met: true, Result: load.Result{SchemaVersion: load.Schema, RateHeld: true}}, nil
	})
	require.NoError(t, err)
	all, runs, err := sweptOf(k, "lost=0")
	require.NoError(t, err)
	assert.NotEmpty(t, runs)
	text, err := json.Marshal(all)
	require.NoError(t, err)
	assert.Contains(t, string(text), `{"rate":2000,"met":false,"verdicts":["cannot be: -rate is 2000: must be less"],"runs":[]}`)
	assert.Equal(t, "1000 a second still meets the SLO, and more was not tried: -rate is 2000: must be less", all.Text)
	assert.Equal(t, sweep.NoLimit, all.Ending)
}

// TestSweep_TooSoon: with a number of messages there is a rate from which on a run says nothing, and no knee is looked for beyond it.
func TestSweep_TooSoon(t *testing.T) {
	for line, args := range map[string][]string{
		"-messages is 10: at -from, which is 10000, they are through in 0.001s, which is too soon to say whether that rate is held; must be at least 5000, or 0": {"-messages", "10"},
		"-messages is 20000: at -to, which is 1e+12, they are through in 2e-08s":                                                                                 {"-messages", "20000", "-to", "1e12"},
	} {
		assert.Contains(t, refused(t, append([]string{"sweep"}, args...)...), line)
	}
	bound := func(args ...string) sweep.Config {
		o, c := options{engines: target.All()}, sweep.Config{}
		require.NoError(t, o.parseSweep(args, &c, io.Discard))
		return c
	}
	c := bound("-messages", "1M")
	assert.InDelta(t, 2e6, c.To, 1, "0.3 s of warm-up and 0.2 s that say something")
	assert.Equal(t, "the 1000000 of -messages would be through too soon to say", c.ToWhy)
	c = bound("-messages", "1M", "-duration", "10ms", "-warmup", "0s")
	assert.InDelta(t, 1e8, c.To, 1, "up to which it is not the messages that end a run")
	c = bound()
	assert.InDelta(t, 1e12, c.To, 0)
	assert.InDelta(t, 0.5, c.Least, 1e-6)
	c = bound("-to", "50k")
	assert.InDelta(t, 5e4, c.To, 0)
	c = bound("-from", "0.5", "-factor", "10")
	assert.InDelta(t, 0.5, c.Least, 0)
}

// TestSweep_Interrupted: the exit code says of what was found until Ctrl-C what it would say of all.
func TestSweep_Interrupted(t *testing.T) {
	for _, objectives := range []string{"lost=0", "e2e.max<1ns"} {
		for after := range 2 {
			o, c := options{engines: target.All()}, sweep.Config{}
			require.NoError(t, o.parseSweep(append(quick[1:len(quick):len(quick)], "-q", "-runs", "60", "-slo", objectives), &c, io.Discard))
			ctx, cancel := context.WithCancel(t.Context())
			if after == 0 {
				cancel()
			}
			want := exitMissed
			c.Step = func(r sweep.Run) {
				if r.Met {
					want = exitOK
				}
				cancel()
			}
			var out, err strings.Builder
			code := o.sweep(ctx, c, &out, &err)
			assert.Equal(t, want, code, "%s after %d: %s", objectives, after, &out)
			assert.Contains(t, out.String(), "the search was not over when it was interrupted\nINTERRUPTED\n")
			assert.Empty(t, err.String())
			if objectives != "lost=0" || after == 0 {
				assert.Equal(t, exitMissed, code)
			}
		}
	}
}

// onceTwice is twice in its first run, and fails in the next one.
type onceTwice struct {
	twice
	runs *int
}

func (o onceTwice) Open(s load.Scenario) (load.Instance, error) {
	if *o.runs++; *o.runs > 1 {
		return nil, errors.New("is broken")
	}
	return o.twice.Open(s)
}

// TestSweep_WrongThenFailed: a run that was wrong goes before one that failed.
func TestSweep_WrongThenFailed(t *testing.T) {
	o, c := options{engines: engines{onceTwice{runs: new(int)}}}, sweep.Config{}
	require.NoError(t, o.parseSweep([]string{"-scenario", "unicast", "-readers", "0", "-subscribers", "1", "-duration", "10ms", "-warmup", "0s", "-floor=false"}, &c, io.Discard))
	var out, err strings.Builder
	assert.Equal(t, exitWrong, o.sweep(t.Context(), c, &out, &err), out.String())
	assert.Contains(t, out.String(), "WRONG: ")
	assert.Contains(t, err.String(), "is broken")
}

// wronging is twice, and says when it has published for the first time.
type wronging struct {
	twice
	began func()
}

func (w wronging) Open(s load.Scenario) (load.Instance, error) {
	in, err := w.twice.Open(s)
	return &wrongingInstance{in.(*twiceInstance), w.began}, err
}

type wrongingInstance struct {
	*twiceInstance
	began func()
}

func (w *wrongingInstance) Producer(int) (load.Producer, error) { return w, nil }
func (w *wrongingInstance) Publish(ctx context.Context, partition int, p []byte) error {
	defer w.began()
	return w.twiceInstance.Publish(ctx, partition, p)
}

// TestSweep_WrongThenInterrupted: the exit code says that the run was wrong that was under way, and so does a line.
func TestSweep_WrongThenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o, c := options{engines: engines{wronging{began: cancel}}}, sweep.Config{}
	require.NoError(t, o.parseSweep([]string{"-scenario", "unicast", "-readers", "0", "-subscribers", "1", "-duration", "1m", "-warmup", "0s", "-floor=false"}, &c, io.Discard))
	var out, err strings.Builder
	assert.Equal(t, exitWrong, o.sweep(ctx, c, &out, &err), out.String())
	assert.Contains(t, out.String(), "no rate was tried; the search was not over when it was interrupted\nINTERRUPTED\n")
	assert.Contains(t, err.String(), "leatload: the run that was interrupted was WRONG: lost 0, duplicated ")
}

// breaks is a target that works so many times.
type breaks struct {
	load.Target
	after int
	runs  *int
}

func (b breaks) Open(s load.Scenario) (load.Instance, error) {
	if *b.runs++; *b.runs > b.after {
		return nil, errors.New("is broken")
	}
	return b.Target.Open(s)
}

// TestSweep_Failed: what a search has found before a run failed is shown and written, as part of a search; where there is nothing yet,
// the file stays as it was.
func TestSweep_Failed(t *testing.T) {
	chans, ok := engines(target.All()).named("chan")
	require.True(t, ok)
	for after := range 3 {
		name := filepath.Join(t.TempDir(), "s.json")
		require.NoError(t, os.WriteFile(name, []byte("as it was"), 0o600))
		page := filepath.Join(filepath.Dir(name), "s.html")
		var out, errs strings.Builder
		code := Run(t.Context(), []load.Target{breaks{chans, after, new(int)}}, append(quick[:1:1], append(quick[3:len(quick):len(quick)],
			"-runs", "60", "-json", name, "-o", page)...), &out, &errs)
		assert.Equal(t, exitFailed, code, &out)
		assert.Equal(t, 1, strings.Count(errs.String(), "\n"), &errs)
		assert.Contains(t, errs.String(), "is broken")
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if after == 0 {
			assert.Equal(t, "as it was", string(text))
			assert.NoFileExists(t, page)
			continue
		}
		assert.Contains(t, out.String(), "the search was not over when a run failed")
		all, err := readSweep(text)
		require.NoError(t, err)
		assert.Equal(t, sweep.Failed, all.Ending)
		runs, err := all.runs()
		require.NoError(t, err)
		assert.Len(t, runs, after)
		shown, err := os.ReadFile(page)
		require.NoError(t, err)
		assert.Contains(t, string(shown), "the search was not over when a run failed")
	}
}

func TestVerdict(t *testing.T) {
	for want, x := range map[string]struct {
		met bool
		res load.Result
	}{
		"met":                {true, load.Result{RateHeld: true, Scheduled: 1}},
		"missed":             {false, load.Result{RateHeld: true, Scheduled: 1}},
		"rate missed":        {false, load.Result{Scheduled: 1}},
		"no message was due": {false, load.Result{RateHeld: true}},
		"WRONG: lost 1, duplicated 0, reordered 0, gap 0, corrupt 0": {false, load.Result{Faults: load.Faults{Lost: 1}}},
	} {
		assert.Contains(t, verdict(x.met, &x.res), strings.SplitN(want, ",", 2)[0])
	}
}
