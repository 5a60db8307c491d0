package tool

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/sweep"
	"github.com/leatlog/leat/bench/load/target"
)

// fileWith writes a file and returns its name.
func fileWith(t *testing.T, text string) string {
	name := filepath.Join(t.TempDir(), "s.json")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// TestFile_Named: an error about what a file says names the file and the flag, and one about a flag that goes before it does not.
func TestFile_Named(t *testing.T) {
	for text, want := range map[string]string{
		`{"rate": -1}`:                           "-rate is -1: must be 0",
		`{"rate": "fast"}`:                       `-rate "fast": must be a number`,
		`{"publish": "x"}`:                       `-publish "x": must be one of async`,
		`{"publish": ""}`:                        `-publish "": must not be empty`,
		`{"slo": " "}`:                           `-slo " ": must not be empty`,
		`{"slo": "delay.p99<1h"}`:                `-slo "delay.p99<1h": this run has no delay`,
		`{"engine": "x"}`:                        `-engine "x": must be one of leat`,
		`{"scenario": "x"}`:                      `-scenario "x": must be one of mixed`,
		`{"scenario": "group", "kind": "x"}`:     `-kind "x": must be one of assigned`,
		`{"members": 3}`:                         "-members is for scenarios with a group",
		`{"size": 0}`:                            "-size is 0: must be",
		`{"sizes": 1048576, "partitions": 8192}`: "-size is 1048576: with 8192 partitions",
		`{"arrival": "poisson"}`:                 "-arrival is poisson: needs a rate",
		`{"scenario": "durable", "sync": "x"}`:   `-sync "x": must be one of always`,
		`{"dir": "x"}`:                           `-dir "x": without -sync`,
		`{"keys": "file:/no/such"}`:              `-keys "file:/no/such": open /no/such`,
	} {
		name := fileWith(t, text)
		assert.Contains(t, refused(t, "-file", name), "leatload: -file "+name+": "+want, text)
	}
	name := fileWith(t, `{"rate": 1, "seed": 7}`)
	assert.Contains(t, refused(t, "-file", name, "-rate", "-1"), "leatload: -rate is -1: must be")
	assert.Contains(t, refused(t, "-file", name, "-producers", "0"), "leatload: -producers is 0: must be")
	assert.Contains(t, refused(t, "sweep", "-file", name, "-from", "0"), "leatload: -from is 0: must be")
	assert.Contains(t, refused(t, "sweep", "-file", name, "-rate", "1"), "leatload: -rate is what sweep searches for")
}

// TestFile_Overridden: a file with a value that cannot be is refused, though a flag goes before it; one that only does not go with the flags,
// or only with them, is not.
func TestFile_Overridden(t *testing.T) {
	for text, args := range map[string][]string{
		`{"rate": -1}`:            {"-rate", "5"},
		`{"rate": "fast"}`:        {"-rate", "5"},
		`{"producers": 0}`:        {"-producers", "3"},
		`{"engine": "x"}`:         {"-engine", "chan"},
		`{"scenario": "x"}`:       {"-scenario", "mixed"},
		`{"slo": "x"}`:            {"-slo", "lost=0"},
		`{"publish": "x"}`:        {"-publish", "sync"},
		`{"sync": "x"}`:           {"-sync", "always"},
		`{"sizes": 3}`:            {"-size", "64"},
		`{"size": 3}`:             {"-sizes", "64"},
		`{"size": 0}`:             {"-size", "64"},
		`{"members": 0}`:          {"-scenario", "group", "-members", "3"},
		`{"deliveries": 0}`:       {"-scenario", "redelivery", "-deliveries", "3"},
		`{"evict": 2}`:            {"-scenario", "churn", "-evict", "0.5"},
		`{"kind": "x"}`:           {"-scenario", "group", "-kind", "shared"},
		`{"duration": "9999h"}`:   {"-duration", "1s"},
		`{"rate": -2}`:            {"sweep"},
		`{"duration": "0s"}`:      {"sweep"},
		`{"warmup": "-1s"}`:       {"sweep", "-warmup", "0s"},
		`{"arrival": "ramp:1:1"}`: {"-rate", "5", "-arrival", "poisson"},
	} {
		name := fileWith(t, text)
		assert.Contains(t, refused(t, append(args, "-file", name)...), "leatload: -file "+name+": -", text)
	}
	for text, args := range map[string][]string{
		`{"rate": 1e6}`:                           {"-scenario", "shared", "-rate", "5"},
		`{"arrival": "poisson"}`:                  {"-rate", "5", "-arrival", "constant"},
		`{"members": 5}`:                          {"-scenario", "group", "-members", "3"},
		`{"evict": 0.5}`:                          {"-scenario", "churn", "-evict", "0"},
		`{"ack": "each"}`:                         {"-scenario", "group", "-mode", "manual", "-ack", "batch"},
		`{"publish": "batch"}`:                    {"-engine", "chan", "-publish", "sync"},
		`{"publish": "batch", "engine": "leat"}`:  {"-engine", "chan", "-publish", "sync"},
		`{"scenario": "churn", "engine": "chan"}`: {"-engine", "leat"},
		`{"duration": "1h", "stop": "20s"}`:       {"-duration", "5s", "-stop", "1s"},
		`{"producers": 9, "publish": "appender"}`: {"-publish", "sync", "-producers", "3"},
		`{"slo": "done.p50<1s"}`:                  {"-slo", "lost=0"},
		`{"size": 64}`:                            {"-sizes", "uniform:24-100"},
	} {
		o, err := parse(append(args, "-file", fileWith(t, text)), io.Discard)
		require.NoError(t, err, text)
		given, err := parse(args, io.Discard)
		require.NoError(t, err, text)
		if len(args) > 4 || text == `{"rate": 1e6}` {
			assert.Equal(t, given.scenario, o.scenario, text)
		}
	}
}

// TestFile_NoKnee: of a search that found no rate there is none to run at.
func TestFile_NoKnee(t *testing.T) {
	s, _ := load.ScenarioNamed("unicast")
	s.Rate, s.Duration, s.Warmup, s.NoFloor = 1000, 1e7, 0, true
	chans, _ := engines(target.All()).named("chan")
	res, err := load.Run(t.Context(), chans, s)
	require.NoError(t, err)
	all, _, err := sweptOf(sweep.Knee{Ending: sweep.TooHigh, Points: []sweep.Point{{Rate: 1000, Runs: []sweep.Run{{Rate: 1000, Outcome: sweep.Outcome{Result: res}}}}}}, "e2e.p50<1h")
	require.NoError(t, err)
	text, err := json.Marshal(all)
	require.NoError(t, err)
	name := fileWith(t, string(text))
	assert.Contains(t, refused(t, "-file", name), "-file "+name+": it is a search that has found no rate that meets its objectives, and so none to run at: must have found one, or go with -rate")
	o, err := parse([]string{"-file", name, "-rate", "700"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "unicast", o.scenario.Name)
	assert.InDelta(t, 700, o.scenario.Rate, 0)
	assert.NoError(t, (&options{engines: target.All()}).parseSweep([]string{"-file", name}, &sweep.Config{}, io.Discard), "it is searched again")
}

// TestRead_InOurWords: what is no result is said without the names of Go's types.
func TestRead_InOurWords(t *testing.T) {
	for text, want := range map[string]string{
		`[1]`:                               "it must not be of JSON's type array",
		`{"schema": "x"}`:                   "schema must not be of JSON's type string",
		`{"schema": 1, "windows": {}}`:      "windows must not be of JSON's type object",
		`{"schema": 1, "latency_ns": true}`: "latency_ns must not be of JSON's type bool",
	} {
		name := fileWith(t, text)
		for _, args := range [][]string{{"compare", name, name}, {"report", name}} {
			assert.Contains(t, refused(t, args...), "leatload: "+name+": not what leatload has written: "+want)
		}
	}
	name := fileWith(t, `{"schema": "x", "points": [], "knee_msgs_per_s": 0}`)
	for _, args := range [][]string{{"-file", name}, {"report", name}} {
		assert.Contains(t, refused(t, args...), name+": not what leatload has written: schema must not be of JSON's type string")
	}
}
