package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/target"
)

// call runs the program.
func call(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Run(context.Background(), target.All(), args, &out, &err)
	return code, out.String(), err.String()
}

// parse reads flags of a run.
func parse(args []string, stderr io.Writer) (options, error) {
	o := options{engines: target.All()}
	err := o.parse(args, stderr, "run", nil, usage)
	return o, err
}

// short are flags for a run of a moment.
var short = []string{"-duration", "20ms", "-warmup", "1ms"}

func with(args ...string) []string { return append(args, short...) }

func TestRun_EveryEngineAndScenario(t *testing.T) {
	for _, engine := range target.Names() {
		for _, s := range load.Scenarios() {
			if s.Replays > 0 && engine != "leat" {
				continue // TestRun_WrongUse
			}
			args := with("-engine", engine, "-scenario", s.Name)
			if s.Name == "idle" {
				args = append(args, "-duration", "100ms") // two messages
			}
			code, stdout, stderr := call(args...)
			if s.Rate > 0 && code == exitRateMissed {
				code = exitOK // the machine may be busy
			}
			require.Equal(t, exitOK, code, "%s %s: %s", engine, s.Name, stderr)
			assert.Empty(t, stderr)
			assert.Contains(t, stdout, "engine     "+engine+", scenario "+s.Name)
			assert.Contains(t, stdout, "lost 0, duplicated 0, reordered 0, gap 0, corrupt 0")
			for _, row := range []string{"publish", "delay", "e2e", "p99.99"} {
				assert.Contains(t, stdout, row)
			}
		}
	}
}

func TestRun_EveryGroupScenario(t *testing.T) {
	for _, s := range load.GroupScenarios() {
		name := filepath.Join(t.TempDir(), "result.json")
		args := []string{"-scenario", s.Name, "-duration", "200ms", "-warmup", "10ms", "-json", name}
		if s.Group.Churn > 0 {
			args = append(args, "-churn", "1ms")
		}
		if s.Group.Fail > 0 {
			args = append(args, "-messages", "1000", "-duration", "1m") // some fail, however busy the machine is
		}
		code, stdout, stderr := call(args...)
		require.Contains(t, []int{exitOK, exitRateMissed}, code, "%s: %s%s", s.Name, stdout, stderr)
		assert.Empty(t, stderr)
		assert.Contains(t, stdout, "engine     leat, scenario "+s.Name)
		assert.Contains(t, stdout, "lost 0, duplicated 0, reordered 0, gap 0, corrupt 0,\n           overlapped 0, miscounted 0, uncommitted 0\n")
		for _, row := range []string{"members    ", " deliveries/s in total, ", " to each of ", " first attempts", "dead-lettered", "fenced", "e2e", "p99.99"} {
			assert.Contains(t, stdout, row, s.Name)
		}
		assert.Equal(t, s.Group.Churn > 0, strings.Contains(stdout, "\ngaps "))

		b, err := os.ReadFile(name)
		require.NoError(t, err)
		var res load.Result
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.DisallowUnknownFields()
		require.NoError(t, dec.Decode(&res))
		require.NotNil(t, res.Group)
		assert.Equal(t, s.Group.Kind, res.Group.Kind)
		assert.Equal(t, s.Group.Churn.Seconds() > 0, res.Group.ChurnS > 0)
		assert.Equal(t, s.Group.Fail > 0, res.Group.Redelivered > 0)
		assert.Equal(t, s.Group.Slow > 0, res.Group.SlowS > 0)
		for _, field := range []string{"overlapped", "miscounted", "uncommitted", "member_per_s", "redelivered", "repeated", "fenced",
			"dead_lettered", "attempts", "gap_stayed_ns", "done_latency_ns"} {
			assert.Contains(t, string(b), `"`+field+`": `)
		}
	}
}

func TestRun_SubCommand(t *testing.T) {
	code, stdout, _ := call(append([]string{"run"}, with("-engine", "chan")...)...)
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stdout, "engine     chan")

	code, stdout, stderr := call("frobnicate", "-rate", "1")
	assert.Equal(t, exitUsage, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, `unknown sub-command "frobnicate"`)
	assert.Contains(t, stderr, "usage: leatload")
}

func TestRun_Help(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--help"}, {"run", "-h"}, {"help"}} {
		code, stdout, stderr := call(args...)
		assert.Equal(t, exitOK, code)
		assert.Empty(t, stdout)
		for _, s := range append(load.Scenarios(), load.GroupScenarios()...) {
			assert.Contains(t, stderr, s.Name)
			assert.Contains(t, stderr, s.About)
		}
		for _, f := range []string{"scenario", "engine", "producers", "partitions", "readers", "subscribers", "size", "rate", "wait",
			"duration", "warmup", "seed", "json", "publish", "q", "kind", "members", "mode", "ack", "poll", "concurrency", "handler", "fail", "deliveries",
			"backoff", "slow", "timeout", "churn", "evict"} {
			assert.Contains(t, stderr, "\n  -"+f+" ")
		}
		for _, text := range []string{"Exit code", "After Ctrl-C", "What is checked", "lost ", "duplicated ", "reordered ", "gap", "corrupt ",
			"overlapped ", "miscounted ", "uncommitted ", "redelivered ", "repeated ", "fenced ", "dead-lettered"} {
			assert.Contains(t, stderr, text)
		}
	}
}

func TestRun_WrongUse(t *testing.T) {
	for want, args := range map[string][]string{
		`-engine "x": must be one of ` + strings.Join(target.Names(), ", "):                                 {"-engine", "x"},
		`-scenario "x": must be one of mixed, unicast`:                                                      {"-scenario", "x"},
		`-publish "foo": must be one of async, sync, batch, appender, reserve (on leat)`:                    {"-publish", "foo"},
		`-wait "foo": must be one of park, yield, spin (on leat)`:                                           {"-wait", "foo"},
		`-publish "async": must be one of sync (on mutexlog)`:                                               {"-engine", "mutexlog", "-publish", "async"},
		"3 producers need at least 3 partitions, not 2":                                                     {"-publish", "appender"},
		"publish reserve gives a partition to one producer":                                                 {"-publish", "reserve"},
		"-engine chan has no consumer groups, and -scenario churn needs them: -engine leat has":             {"-engine", "chan", "-scenario", "churn"},
		"-members is for scenarios with a group: -scenario group, shared, churn, slow-consumer, redelivery": {"-members", "3"},
		"-readers is not for scenarios with a group, such as group: they have -members, and -poll":          {"-scenario", "group", "-readers", "1"},
		"-wait is not for scenarios with a group":                                                           {"-scenario", "shared", "-wait", "spin"},
		`-mode "foo": must be one of`:                                                                       {"-scenario", "group", "-mode", "foo"},
		`-kind "foo": must be one of`:                                                                       {"-scenario", "group", "-kind", "foo"},
		`-kind "": must not be empty; it is`:                                                                {"-scenario", "group", "-kind", ""},
		`-ack "foo": must be one of`:                                                                        {"-scenario", "group", "-mode", "manual", "-ack", "foo"},
		`-ack is "each": only in mode manual`:                                                               {"-scenario", "group", "-ack", "each"},
		"-members is 0: must be 1 to 10000":                                                                 {"-scenario", "group", "-members", "0"},
		"-deliveries is 0: must be a whole number, 1 to 1000":                                               {"-scenario", "redelivery", "-deliveries", "0"},
		"-backoff is 0: must be a time above 0s":                                                            {"-scenario", "redelivery", "-backoff", "0s"},
		"-size is 0: must be a whole number, 24 to 268435456":                                               {"-size", "0"},
		"must be a time from 0s on, at most 8760h, such as 5ms, or hang":                                    {"-scenario", "slow-consumer", "-slow", "very"},
		"-slow needs a rate":                                                                                {"-scenario", "slow-consumer", "-rate", "0"},
		"-churn and slow do not go together":                                                                {"-scenario", "slow-consumer", "-churn", "1s"},
		"-churn: subscribers of kind broadcast":                                                             {"-scenario", "churn", "-kind", "broadcast"},
		"-rate is 1e+06: handlers that take 1ms":                                                            {"-scenario", "shared", "-rate", "1e6"},
		"what comes while the slow member does not keep up":                                                 {"-scenario", "slow-consumer", "-rate", "1e8"},
		"-rate is 0.001: that is not one message in the 9s":                                                 {"-rate", "1e-3"},
		"producers is 0":                 {"-producers", "0"},
		"partitions is -1":               {"-partitions", "-1"},
		"size is 3: must be 24 to":       {"-size", "3"},
		"rate is -1":                     {"-rate", "-1"},
		"duration is 0s":                 {"-duration", "0"},
		"warmup is -1s":                  {"-warmup", "-1s"},
		"there is no flag -frobnicate":   {"-frobnicate"},
		`-rate "fast": must be a number`: {"-rate", "fast"},
		`unexpected argument "extra"`:    {"-q", "extra"},
		`-seed "x": must be`:             {"-seed", "x"},
	} {
		code, stdout, stderr := call(args...)
		assert.Equal(t, exitUsage, code, "%v", args)
		assert.Empty(t, stdout, "no banner")
		assert.Contains(t, stderr, want)
		assert.Equal(t, 2, strings.Count(stderr, "\n"), "the error, and a line that says where to look")
		assert.NotContains(t, stderr, " load: ", "what flags are called, not fields")
	}
}

func TestRun_TargetRefuses(t *testing.T) {
	code, _, stderr := call(with("-engine", "chan", "-publish", "batch")...)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, `publish "batch": must be one of sync (on chan)`)

	code, _, stderr = call(with("-engine", "leat", "-publish", "appender", "-producers", "3")...)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "3 producers need at least 3 partitions, not 2")
}

func TestRun_FlagsChangeTheScenario(t *testing.T) {
	o, err := parse([]string{"-scenario", "fan-out", "-producers", "5", "-partitions", "4", "-readers", "0", "-subscribers", "6",
		"-size", "128", "-rate", "1000", "-wait", "spin", "-publish", "sync", "-duration", "7s", "-warmup", "0", "-seed", "9",
		"-q", "-json", "x"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "fan-out", o.scenario.Name)
	assert.Equal(t, 5, o.scenario.Producers)
	assert.Equal(t, 4, o.scenario.Partitions)
	assert.Equal(t, 0, o.scenario.Readers, "0 is a value, not an absence")
	assert.Equal(t, 6, o.scenario.Subscribers)
	assert.Equal(t, 128, o.scenario.Size)
	assert.InDelta(t, 1000, o.scenario.Rate, 0)
	assert.Equal(t, "spin", o.scenario.Wait)
	assert.Equal(t, "sync", o.scenario.Publish)
	assert.Equal(t, 7*time.Second, o.scenario.Duration)
	assert.Zero(t, o.scenario.Warmup)
	assert.Equal(t, uint64(9), o.scenario.Seed)
	assert.Equal(t, "leat", o.target.Name())
	assert.True(t, o.quiet)
	assert.Equal(t, "x", o.out.json)

	o, err = parse([]string{"-scenario", "churn", "-kind", "shared", "-members", "5", "-mode", "manual", "-ack", "each", "-concurrency", "3",
		"-handler", "20us", "-fail", "0.25", "-deliveries", "7", "-backoff", "3ms", "-timeout", "4s", "-churn", "70ms", "-evict", "0.5",
		"-rate", "100"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, load.Group{
		Kind: load.Shared, Members: 5, Mode: load.Manual, Ack: load.AckEach, Concurrency: 3, Handler: 20 * time.Microsecond, Fail: 0.25,
		Deliveries: 7, Backoff: 3 * time.Millisecond, Timeout: 4 * time.Second, Churn: 70 * time.Millisecond, Evict: 0.5,
	}, o.scenario.Group)
	o, err = parse([]string{"-scenario", "slow-consumer", "-slow", "hang", "-poll"}, io.Discard)
	require.NoError(t, err)
	assert.True(t, o.scenario.Group.Hang && o.scenario.Group.Poll)
	assert.Zero(t, o.scenario.Group.Slow)

	o, err = parse(nil, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, load.Scenarios()[0], o.scenario, "without flags: the default scenario")
	assert.Equal(t, target.Names()[0], o.target.Name())
}

func TestRun_JSONFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "result.json")
	code, stdout, _ := call("-engine", "chan", "-seed", "42", "-messages", "1000", "-warmup", "0s", "-json", name)
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stdout, "scenario mixed", "the table comes as well")
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	var res load.Result
	require.NoError(t, json.Unmarshal(b, &res))
	assert.Equal(t, "chan", res.Engine)
	assert.Equal(t, uint64(42), res.Seed)
	assert.Equal(t, load.Schema, res.SchemaVersion)
	assert.Positive(t, res.Sent)

	code, _, stderr := call(with("-engine", "chan", "-json", filepath.Join(t.TempDir(), "no", "such", "folder"))...)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "-json")
}

// TestRun_Paced may miss its rate on a machine that is busy, and then must say so.
func TestRun_Paced(t *testing.T) {
	code, stdout, _ := call(with("-engine", "leat", "-rate", "20000")...)
	assert.Contains(t, stdout, "20.0 k msgs/s on schedule")
	if code != exitRateMissed {
		assert.Equal(t, exitOK, code)
	}
	assert.Equal(t, code == exitRateMissed, strings.Contains(stdout, "RATE MISSED"))
}

func TestRun_JSONToStandardOutput(t *testing.T) {
	code, stdout, stderr := call(with("-engine", "chan", "-json", "-")...)
	assert.Equal(t, exitOK, code)
	var res load.Result
	require.NoError(t, json.Unmarshal([]byte(stdout), &res), "nothing but JSON")
	assert.Contains(t, stderr, "scenario mixed")
}

func TestRun_Quiet(t *testing.T) {
	_, stdout, _ := call(with("-engine", "chan", "-q")...)
	assert.True(t, strings.HasPrefix(stdout, "engine "), stdout)
}

// TestRun_Interrupted is Ctrl-C: the result so far, and a clean end.
func TestRun_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, err bytes.Buffer
	code := Run(ctx, target.All(), []string{"-engine", "chan", "-duration", "1h"}, &out, &err)
	assert.Equal(t, exitOK, code)
	assert.Empty(t, err.String())
	assert.Contains(t, out.String(), "INTERRUPTED")
}

func TestExitCode(t *testing.T) {
	right := load.Result{RateHeld: true}
	late := load.Result{RateHeld: false}
	wrong := load.Result{RateHeld: true, Faults: load.Faults{Duplicated: 1}}
	worse := load.Result{RateHeld: false, Faults: load.Faults{Lost: 1}}
	assert.Equal(t, 0, exitCode(right, nil))
	assert.Equal(t, 3, exitCode(late, nil))
	assert.Equal(t, 2, exitCode(wrong, nil))
	assert.Equal(t, 2, exitCode(worse, nil))
	assert.Equal(t, 1, exitCode(right, load.ErrTarget))
	assert.Equal(t, 2, exitCode(wrong, load.ErrTarget))
}

// TestRun_WrongCountersExitWith2 runs a target that delivers everything twice.
func TestRun_WrongCountersExitWith2(t *testing.T) {
	s, _ := load.ScenarioNamed("unicast")
	s.Duration, s.Warmup, s.Messages = time.Minute, 0, 10
	s.Readers, s.Subscribers = 0, 1
	var out, err bytes.Buffer
	code := options{scenario: s, target: twice{}, quiet: true}.run(context.Background(), &out, &err)
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, out.String(), "duplicated 10")
	assert.Contains(t, out.String(), "WRONG")
}

// TestRun_InterruptedGroup is Ctrl-C as members come and go: everything is processed all the same.
func TestRun_InterruptedGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	var out, err bytes.Buffer
	code := Run(ctx, target.All(), []string{"-scenario", "churn", "-churn", "5ms", "-evict", "0.5", "-duration", "1h", "-warmup", "0s"}, &out, &err)
	assert.Contains(t, []int{exitOK, exitRateMissed}, code, out.String())
	assert.Empty(t, err.String())
	assert.Contains(t, out.String(), "INTERRUPTED")
}

type twice struct{}

func (twice) Name() string                              { return "twice" }
func (twice) Open(load.Scenario) (load.Instance, error) { return &twiceInstance{}, nil }

type twiceInstance struct{ deliver func(int, []byte) }

func (t *twiceInstance) Subscribe(_ int, deliver func(int, []byte)) error {
	t.deliver = deliver
	return nil
}
func (t *twiceInstance) Producer(int) (load.Producer, error) { return t, nil }
func (*twiceInstance) Read(int, int, func([]byte)) error     { return nil }
func (*twiceInstance) Close() error                          { return nil }
func (*twiceInstance) Flush(context.Context) error           { return nil }
func (t *twiceInstance) Publish(_ context.Context, partition int, p []byte) error {
	t.deliver(partition, p)
	t.deliver(partition, p)
	return nil
}
