package tool

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/slo"
)

// result makes a short run, of 2000 messages however busy the machine is, and returns the file of its result.
func result(t *testing.T, name string, args ...string) string {
	file := filepath.Join(t.TempDir(), name)
	code, _, stderr := call(append([]string{"-engine", "chan", "-messages", "2000", "-duration", "1m", "-warmup", "0s", "-q", "-json", file}, args...)...)
	require.Contains(t, []int{exitOK, exitRateMissed}, code, stderr) // the machine may be busy
	return file
}

// TestSettings_RunAgain: the flags that a scenario tells of make the same scenario, and so does the file of its result.
func TestSettings_RunAgain(t *testing.T) {
	for _, s := range slices.Concat(load.Scenarios(), load.DurableScenarios(), load.GroupScenarios()) {
		var args []string
		for _, x := range s.Settings() {
			args = append(args, "-"+x.Name+"="+x.Value)
		}
		o, err := parse(args, io.Discard)
		require.NoError(t, err, "%v", args)
		assert.Equal(t, s.Settings(), o.scenario.Settings(), s.Name)
	}
}

func TestFile(t *testing.T) {
	folder := t.TempDir()
	write := func(text string) string {
		name := filepath.Join(folder, "s.json")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	o, err := parse([]string{"-file", write(`{"scenario": "churn", "rate": 12345, "poll": true, "duration": "3s", "slo": "lost=0"}`), "-duration", "4s"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "churn", o.scenario.Name)
	assert.InDelta(t, 12345, o.scenario.Rate, 0)
	assert.True(t, o.scenario.Group.Poll)
	assert.Equal(t, 4*time.Second, o.scenario.Duration, "a flag goes before the file")
	assert.Equal(t, "lost=0", o.slo.String())
	for text, want := range map[string]float64{"20000": 20_000, "1e6": 1e6, "500k": 5e5, "1.5M": 1.5e6, "0": 0} {
		o, err := parse([]string{"-rate", text}, io.Discard)
		require.NoError(t, err)
		assert.InDelta(t, want, o.scenario.Rate, 0)
	}

	a := result(t, "a.json", "-sizes", "uniform:30-90", "-keys", "zipf:1:10", "-seed", "9", "-rate", "20000", "-arrival", "poisson")
	o, err = parse([]string{"-file", a}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "chan", o.target.Name())
	assert.Equal(t, "uniform:30-90", o.scenario.Sizes.String())
	assert.Equal(t, "zipf:1:10", o.scenario.Keys.String())
	assert.Equal(t, "poisson", o.scenario.Arrival.String())
	assert.Equal(t, uint64(9), o.scenario.Seed)
	assert.Equal(t, time.Minute, o.scenario.Duration)

	for text, want := range map[string]string{
		`{"rate": "fast"}`:       `-rate "fast"`,
		`{"rates": 1}`:           `"rates": must be one of ack, arrival, backoff`,
		`{"rate": [1]}`:          "rate must be a string, a number, true or false",
		`[1]`:                    "must be one JSON object",
		`{"sizes": "uniform:3"}`: "uniform:LEAST-MOST",
	} {
		code, _, stderr := call("-file", write(text))
		assert.Equal(t, exitUsage, code)
		assert.Contains(t, stderr, want)
		assert.Contains(t, stderr, "-file")
	}
	code, _, stderr := call("-file", filepath.Join(folder, "none"))
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "-file")
}

// TestErrorsNameTheFlagAndWhatIsAllowed goes through all flags that do not take any text.
func TestErrorsNameTheFlagAndWhatIsAllowed(t *testing.T) {
	for flag, allowed := range map[string]string{
		"producers": "a whole number, 1 to 65536", "rate": "as fast as possible", "duration": "such as 30s", "warmup": "such as 1s",
		"seed": "a whole number, 0 to", "messages": "no limit", "arrival": "poisson", "sizes": "lognormal:MEDIAN:SIGMA", "keys": "zipf:EXPONENT:N",
		"slo": "METRIC OP VALUE", "floor": "true or false", "procs": "1 to 4096", "gc": "or off", "memlimit": "MiB", "pin": "0,1 or 0-3",
		"stages": "1 to 16", "replays": "a whole number, 0 to 10000", "stop": "such as 3s", "size": "24 to 268435456", "engine": "leat, chan, mutexlog",
		"scenario": "mixed, unicast", "publish": "async, sync", "wait": "park, yield, spin",
	} {
		code, stdout, stderr := call("-" + flag + "=?!")
		assert.Equal(t, exitUsage, code, flag)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, "-"+flag)
		assert.Contains(t, stderr, allowed, flag)
		assert.Equal(t, 2, strings.Count(stderr, "\n"), "%s: %s", flag, stderr)
	}
	for want, args := range map[string][]string{
		"-procs is -1: must be 1 to 4096":         {"-procs", "-1"},
		"-arrival is poisson: needs a rate":       {"-arrival", "poisson"},
		"-stages is 99: must be 1 to 16":          {"-stages", "99"},
		"-replays 1: what chan has delivered":     {"-replays", "1", "-engine", "chan"},
		"-stop is 1h0m0s: must be less than":      {"-stop", "1h"},
		"-stop is not for scenarios with a group": {"-scenario", "group", "-stop", "1s"},
		"-json and -csv are both -":               {"-json", "-", "-csv", "-"},
		"-hgrm is -: must be a file":              {"-hgrm", "-"},
		"-messages is -1":                         {"-messages", "-1"},
	} {
		code, _, stderr := call(args...)
		assert.Equal(t, exitUsage, code, want)
		assert.Contains(t, stderr, want)
	}
}

func TestRun_SLO(t *testing.T) {
	some := []string{"-engine", "chan", "-messages", "2000", "-duration", "1m", "-warmup", "0s", "-slo"} // something is measured, however busy the machine is
	code, stdout, _ := call(append(some, "lost=0,e2e.p99<1h,rate>1")...)
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stdout, "\nslo        met    lost=0: 0\n")
	code, stdout, _ = call(append(some, "lost=0,e2e.p99<1ns")...)
	assert.Equal(t, slo.Exit, code)
	assert.Contains(t, stdout, "\nslo        missed e2e.p99<1ns: ")

	s, _ := load.ScenarioNamed("unicast")
	s.Duration, s.Warmup, s.Messages, s.Readers, s.Subscribers = time.Minute, 0, 10, 0, 1
	objectives, err := slo.Parse("e2e.p99<1ns")
	require.NoError(t, err)
	assert.Equal(t, exitWrong, options{scenario: s, target: twice{}, quiet: true, slo: objectives}.run(t.Context(), io.Discard, io.Discard),
		"wrong goes before missed")
}

func TestRun_Outputs(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	code, _, stderr := call("-engine", "chan", "-messages", "50000", "-duration", "1m", "-warmup", "0s", "-q", "-csv", in("w.csv"), "-hgrm", in("l-%.hgrm"),
		"-hlog", in("l.hlog"), "-cpuprofile", in("cpu"), "-memprofile", in("mem"), "-trace", in("trace"))
	require.Equal(t, exitOK, code, stderr)
	for name, want := range map[string]string{
		"w.csv": "from_s,to_s,warmup,", "l-e2e.hgrm": "Percentile", "l-publish.hgrm": "Percentile", "l-delay.hgrm": "Percentile",
		"l.hlog": "\nTag=e2e,", "cpu": "", "mem": "", "trace": "go 1.",
	} {
		text, err := os.ReadFile(in(name))
		require.NoError(t, err)
		assert.NotEmpty(t, text, name)
		assert.Contains(t, string(text), want, name)
	}
	for _, flag := range []string{"csv", "hgrm", "hlog", "cpuprofile", "memprofile", "trace"} {
		code, _, stderr := call(with("-engine", "chan", "-"+flag, in("no/such/folder"))...)
		assert.Equal(t, exitUsage, code, flag)
		assert.Contains(t, stderr, "-"+flag+" \""+in("no/such/folder")+"\": must be a file that can be written: ")
	}
	code, stdout, stderr := call(with("-engine", "chan", "-csv", "-")...)
	assert.Equal(t, exitOK, code)
	assert.True(t, strings.HasPrefix(stdout, "from_s,"))
	assert.Contains(t, stderr, "engine     chan")
}

// TestRun_Process: what the process goes by is in the result, and is as it was afterwards.
func TestRun_Process(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	file := result(t, "p.json", "-procs", "1", "-gc", "321", "-memlimit", "2GiB")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var res load.Result
	require.NoError(t, json.Unmarshal(text, &res))
	assert.Equal(t, 1, res.GOMAXPROCS)
	assert.Equal(t, int64(321), res.GCPercent)
	assert.Equal(t, int64(2<<30), res.MemLimit)
	assert.Equal(t, procs, runtime.GOMAXPROCS(0))
	after := debug.SetGCPercent(percent)
	assert.Equal(t, percent, after)

	var p process
	p.gc, p.memLimit = "off", "1.5KiB"
	require.NoError(t, p.check())
	assert.Equal(t, -1, p.gcPercent)
	assert.Equal(t, int64(1536), p.memBytes)
	cpus, err := parseCPUs("3,0-1,1")
	require.NoError(t, err)
	assert.Equal(t, []int{0, 1, 3}, cpus)
	assert.Equal(t, "0-1,3,7-9", ranges(func(i int) bool { return i < 2 || i == 3 || i > 6 }, 10))
	for _, bad := range []string{"-1", "1-0", "a", "0,,1", "5000"} {
		assert.Error(t, (&process{pin: bad}).check(), bad)
	}
}

func TestRun_Pin(t *testing.T) {
	code, stdout, stderr := call(with("-engine", "chan", "-q", "-pin", "0")...)
	if runtime.GOOS != "linux" {
		assert.Equal(t, exitUsage, code)
		assert.Contains(t, stderr, `-pin "0": only on Linux`)
		return
	}
	if code == exitUsage {
		assert.Contains(t, stderr, `-pin "0": processor 0 is not there, or not for this process: must be of `)
		return
	}
	assert.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "pinned to processors 0")
	code, stdout, stderr = call(with("-engine", "chan", "-pin", "0,1023")...)
	assert.Equal(t, exitUsage, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, `-pin "0,1023": processor 1023 is not there, or not for this process: must be of 0`)
}

func TestRun_Messages(t *testing.T) {
	code, stdout, _ := call("-engine", "chan", "-messages", "777", "-duration", "1h", "-warmup", "0s", "-floor=false")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stdout, "sent 777, received 1554,")
	assert.NotContains(t, stdout, "\nfloor ")
}

func TestList(t *testing.T) {
	code, stdout, stderr := call("list")
	assert.Equal(t, exitOK, code)
	assert.Empty(t, stderr)
	for _, name := range []string{"unicast", "fan-in", "fan-out", "pipeline", "partitions", "group", "shared", "churn", "slow-consumer",
		"redelivery", "backlog", "replay-storm", "burst", "hot-key", "big-messages", "idle", "durable", "soak"} {
		s, ok := load.ScenarioNamed(name)
		require.True(t, ok, name)
		assert.Contains(t, stdout, "\n  "+name+" ")
		assert.Contains(t, stdout, s.About)
	}
	code, stdout, _ = call("list", "burst", "-v")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stdout, " -arrival=burst:10ms/90ms ")
	assert.NotContains(t, stdout, "fan-out")
	code, _, stderr = call("list", "x")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, `scenario "x": must be one of mixed, unicast`)
}

func TestCompare(t *testing.T) {
	a, b := result(t, "a.json"), result(t, "b.json", "-size", "128")
	code, stdout, _ := call("compare", a, b)
	assert.Equal(t, 3, code, "the loads differ")
	assert.Contains(t, stdout, "not comparable")
	assert.Contains(t, stdout, "\n(leatload compare -anyway compares them all the same)\n")
	code, stdout, _ = call("compare", a, a, "-anyway", "-json")
	assert.Equal(t, exitOK, code, "a run does not differ from itself")
	var c struct{ Verdict string }
	require.NoError(t, json.Unmarshal([]byte(stdout), &c))
	assert.Contains(t, []string{"same", "unclear"}, c.Verdict)
	for want, args := range map[string][]string{
		"takes two files": {"compare", a},
		"no such file":    {"compare", a, a + "x"},
		"-threshold is 2: must be above 0 and below": {"compare", "-threshold", "2", a, b},
		`-threshold "x": must be`:                    {"compare", "-threshold", "x", a, b},
		"leatload compare -h says":                   {"compare", "-frobnicate"},
	} {
		code, _, stderr := call(args...)
		assert.Equal(t, exitUsage, code, want)
		assert.Contains(t, stderr, want)
	}
}

func TestReport(t *testing.T) {
	a := result(t, "before.json", "-rate", "20000")
	page := filepath.Join(t.TempDir(), "r.html")
	code, stdout, stderr := call("report", a, a, "-o", page)
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "wrote "+page)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(text), "<svg")
	assert.Contains(t, string(text), "before")
	code, stdout, _ = call("report", a, "-o", "-", "-title", "A title")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stdout, "A title")
	code, _, stderr = call("report")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "one or more files")
	code, _, _ = call("report", a, "-o", filepath.Join(page, "x"))
	assert.Equal(t, exitUsage, code)
}

func TestSweep(t *testing.T) {
	folder := t.TempDir()
	base := []string{"sweep", "-scenario", "unicast", "-engine", "chan", "-duration", "10ms", "-warmup", "1ms", "-from", "1000"}
	code, stdout, stderr := call(append(base, "-to", "2000", "-slo", "e2e.p50<1h", "-o", filepath.Join(folder, "s.html"),
		"-json", filepath.Join(folder, "s.json"))...)
	require.Contains(t, []int{exitOK, exitMissed}, code, stderr)
	assert.Contains(t, stdout, "the highest rate at which unicast on chan meets e2e.p50<1h")
	assert.Contains(t, stdout, "1000 msgs/s  e2e p50 ")
	text, err := os.ReadFile(filepath.Join(folder, "s.json"))
	require.NoError(t, err)
	var all swept
	require.NoError(t, json.Unmarshal(text, &all))
	ran := slices.IndexFunc(all.Points, func(p sweptPoint) bool { return len(p.Runs) > 0 })
	require.GreaterOrEqual(t, ran, 0)
	var run load.Result
	require.NoError(t, json.Unmarshal(all.Points[ran].Runs[0], &run))
	assert.Equal(t, all.Points[ran].Rate, run.Rate)
	text, err = os.ReadFile(filepath.Join(folder, "s.html"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "<svg")

	code, stdout, _ = call(append(base, "-slo", "e2e.p50<1ns", "-runs", "30")...)
	assert.Equal(t, exitMissed, code, stdout)

	for want, args := range map[string][]string{
		"-rate is what sweep searches for":            {"-rate", "5"},
		"-from is 0: must be above 0":                 {"-from", "0"},
		"-to is 5: must be above -from":               {"-to", "5"},
		"-factor is 1: must be above 1, at most 1000": {"-factor", "1"},
		"-precision is 3: must be 0.001 to 1":         {"-precision", "3"},
		"-runs is 0: must be 1 to 10000":              {"-runs", "0"},
		"-csv, -hgrm and -hlog are of one":            {"-csv", "x"},
	} {
		code, _, stderr := call(append(base, args...)...)
		assert.Equal(t, exitUsage, code, want)
		assert.Contains(t, stderr, want)
		assert.Contains(t, stderr, "leatload sweep -h")
	}
	code, stdout, stderr = call("sweep", "-scenario", "shared", "-handler", "50ms", "-members", "1", "-duration", "50ms", "-warmup", "0s",
		"-from", "20", "-slo", "e2e.p50<1h", "-factor", "10", "-precision", "1")
	assert.Contains(t, []int{exitOK, exitMissed}, code, stderr)
	if code == exitOK {
		assert.Equal(t, 1, strings.Count(stdout, "200 msgs/s  cannot be: -rate is 200: handlers that take 50ms"))
	}

	a := result(t, "a.json", "-rate", "20000")
	code, stdout, stderr = call("sweep", "-file", a, "-messages", "0", "-duration", "10ms", "-slo", "e2e.p50<1h", "-runs", "1")
	assert.Contains(t, []int{exitOK, exitMissed}, code, "the rate of a file is no rate that is asked for: %s%s", stdout, stderr)
}

// TestHelp_Teaches: each sub-command says how it is used, with an example, and what its exit codes are.
func TestHelp_Teaches(t *testing.T) {
	for _, name := range []string{"list", "compare", "report", "sweep"} {
		for _, args := range [][]string{{name, "-h"}, {"help", name}} {
			code, stdout, stderr := call(args...)
			assert.Equal(t, exitOK, code)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, "usage: leatload "+name)
			assert.Contains(t, stderr, "\n  leatload "+name)
		}
	}
}

func TestView(t *testing.T) {
	w := load.Window{
		Elapsed: 3 * time.Second, Of: 10 * time.Second, Rate: 12345, Sent: 30000, Lag: 7, Samples: 1, P50: 1000, P99: 2000, Max: 3000,
		Blocked: time.Millisecond, GCs: 2, GCPause: 5000, Cores: 1.5, Delay: 4000,
	}
	var plain, painted bytes.Buffer
	newView(&plain).show(w)
	assert.Equal(t, 1, strings.Count(plain.String(), "\n"))
	assert.NotContains(t, plain.String(), "\x1b")
	assert.Contains(t, plain.String(), "  cpu 1.5  gc 2  blocked 1.00ms\n")

	v := &view{w: &painted, repaint: true}
	v.show(w)
	first := painted.String()
	assert.NotContains(t, first, "A\x1b", "there is nothing to go back over")
	assert.Contains(t, first, "[#########.....................]  30 %  measuring  7s left\n")
	for _, text := range []string{"12.3 k msgs/s", "lag", "p50 1.00us   p99 2.00us   max 3.00us", "4.00us late, blocked for 1.00ms", "1.50 processors busy, collections: 2 (5.00us stopped)"} {
		assert.Contains(t, first, text)
	}
	for line := range strings.Lines(first) {
		assert.LessOrEqual(t, len(strings.TrimPrefix(line, "\x1b[2K")), 81, "it would wrap, and going back up would miss")
	}
	painted.Reset()
	w.Elapsed = 11 * time.Second
	v.show(w)
	assert.True(t, strings.HasPrefix(painted.String(), "\x1b[6A"), "it is painted over")
	assert.Contains(t, painted.String(), "waiting for what is still to come")
}

// TestRun_Targets: a program with targets of its own has them in all places, and nothing of others.
func TestRun_Targets(t *testing.T) {
	mine := func(args ...string) (code int, stdout, stderr string) {
		var out, err bytes.Buffer
		code = Run(t.Context(), []load.Target{twice{}, load.Null{}}, args, &out, &err)
		return code, out.String(), err.String()
	}
	code, _, stderr := mine("-h")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stderr, "what to load: twice, null (default twice)")
	assert.NotContains(t, stderr, "Scenarios with a group (")
	for want, args := range map[string][]string{
		`-engine "leat": must be one of twice, null`: {"-engine", "leat"},
		"needs them: no engine here has any":         {"-scenario", "churn"},
		`"sleep": must be one of run`:                {"sleep"},
	} {
		code, _, stderr := mine(args...)
		assert.Equal(t, exitUsage, code, want)
		assert.Contains(t, stderr, want)
	}
	code, stdout, _ := mine(with("-scenario", "unicast", "-readers", "0", "-subscribers", "1", "-q")...)
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, stdout, "engine     twice")
	code, stdout, _ = mine("sweep", "-engine", "null", "-scenario", "unicast", "-readers", "0", "-subscribers", "1", "-from", "1000", "-to", "2000", "-duration",
		"10ms", "-warmup", "0s", "-slo", "e2e.p50<1h")
	assert.Contains(t, []int{exitOK, exitMissed}, code)
	assert.Contains(t, stdout, "on null meets")
	assert.Panics(t, func() { Run(t.Context(), nil, nil, io.Discard, io.Discard) })
}
