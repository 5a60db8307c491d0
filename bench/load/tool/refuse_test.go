package tool

import (
	"encoding/json"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/report"
	"github.com/leatlog/leat/bench/load/sweep"
	"github.com/leatlog/leat/bench/load/target"
)

// refused calls the program, which must refuse that before it does anything, in two lines, and returns the first of them.
func refused(t *testing.T, args ...string) string {
	code, stdout, stderr := call(args...)
	assert.Equal(t, exitUsage, code, "%v: %s", args, stderr)
	assert.Empty(t, stdout, "%v", args)
	assert.Equal(t, 2, strings.Count(stderr, "\n"), "%v: %s", args, stderr)
	assert.NotContains(t, stderr, "%!")
	line, _, _ := strings.Cut(stderr, "\n")
	return line
}

func TestRefused_Numbers(t *testing.T) {
	for line, args := range map[string][]string{
		"-size is 1073741824: must be 24 to 268435456": {"-size", "1073741824"},
		`SIZE`: {"-sizes", "1073741824"},
		"-stages is 0: must be a whole number, 1 to 16":                                                                                   {"-stages", "0"},
		"-messages is 1000000000000001: must be 0 (no limit) to 1e15":                                                                     {"-messages", "1000000000000001"},
		"-rate is 1e+300: must be 0 (as fast as possible) to 1e12":                                                                        {"-rate", "1e300"},
		"-gc \"99999999\": must be a percentage from 1 to 1000000":                                                                        {"-gc", "99999999"},
		"-factor is +Inf: must be above 1, at most 1000":                                                                                  {"sweep", "-factor", "inf"},
		"-factor is NaN: must be above 1, at most 1000":                                                                                   {"sweep", "-factor", "nan"},
		"-from is 1e+300: must be above 0, at most 1e12":                                                                                  {"sweep", "-from", "1e300"},
		"-to is 1e+13: must be above -from, which is 10000, and at most 1e12":                                                             {"sweep", "-to", "1e13"},
		"-from is 0.1: that is not one message in the 2s":                                                                                 {"sweep", "-from", "0.1"},
		"-from is 1e+06: handlers that take 1ms":                                                                                          {"sweep", "-scenario", "shared", "-from", "1e6"},
		"-producers is 65536: with buffers of 1000000 bytes it must be 1 to 4294":                                                         {"-producers", "65536", "-size", "1000000"},
		"-partitions is 65536: with 11 consumers of each of them it must be 1 to 23831":                                                   {"-partitions", "65536", "-readers", "10"},
		"-partitions is 5000: with 5000 producers, which are counted one by one in each of them and by 2 consumers, it must be 1 to 1118": {"-partitions", "5000", "-producers", "5000"},
		"-producers is 65536: with 1000 consumers it must be 1 to 16760":                                                                  {"-producers", "65536", "-readers", "1000", "-subscribers", "0", "-partitions", "1"},
		"-partitions is 65536: with 10000 consumers of each of them it must be 1 to 26":                                                   {"-scenario", "group", "-kind", "broadcast", "-members", "10000", "-partitions", "65536"},
		"-rate is 20: that is not one message in the 20ms that are measured; must be at least 50, or duration longer":                     {"-rate", "20", "-duration", "20ms"},
		"-readers is -1: must be 0 to 10000":                                                                                              {"-readers", "-1", "-subscribers", "0"},
		"-partitions is 0: must be 1 to 65536":                                                                                            {"-scenario", "redelivery", "-partitions", "0"},
		"-evict is 0.5: nobody leaves without churn; must be 0, or":                                                                       {"-scenario", "redelivery", "-evict", "0.5"},
		"-stop is 3s: there are no readers to stop; must be 0":                                                                            {"-scenario", "backlog", "-readers", "0"},
		"-size is 1048576: with 8192 partitions, each of which holds some messages, it must be 24 to 129024, or partitions fewer":         {"-partitions", "8192", "-size", "1048576"},
		"-size is 1048576: with 8192 partitions, for which 3 producers collect batches, each of which holds some messages, it must":       {"-partitions", "8192", "-size", "1048576", "-publish", "batch"},
		"-size is 1048576: with 8192 partitions, each of which holds some messages, it must be 24 to 262144":                              {"-partitions", "8192", "-size", "1048576", "-engine", "chan"},
		"-runs is 10001: must be 1 to 10000":                                                                                              {"sweep", "-runs", "10001"},
	} {
		if line == "SIZE" {
			line = `-sizes "1073741824": size is "1073741824": must be a whole number from 24 to 268435456`
		}
		assert.Contains(t, refused(t, args...), line)
	}
}

// TestParse_AnyFlags: whatever the flags are, they are taken, or refused in a line that names one, and nothing panics.
func TestParse_AnyFlags(t *testing.T) {
	var names []string
	flagsOf(t, "run").VisitAll(func(f *flag.Flag) {
		if f.Name != "file" {
			names = append(names, f.Name)
		}
	})
	values := []string{
		"", "0", "1", "-1", "2", "24", "100", "10000", "65536", "1e3", "1e12", "1e300", "nan", "-inf", "0.5", "1s", "-1s", "1ms", "8760h", "hang", "x", "-", "true",
		"always", "never", "sync", "batch", "appender", "reserve", "spin", "chan", "manual", "at-most-once", "broadcast", "shared", "batch", "each", "poisson", "burst:1ms/9ms",
		"uniform:24-100", "uniform:100", "zipf:0.99:100", "lost=0", "e2e.p99<1ms", "done.p50<1s", "0,1", "512MiB", "off", "%",
	}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	taken := 0
	for range 4000 {
		args := []string{"-scenario", pick(scenarioNames())}
		for range 1 + random.IntN(4) {
			args = append(args, "-"+pick(names)+"="+pick(values))
		}
		var b strings.Builder
		_, err := parse(args, &b)
		if err == nil {
			taken++
			continue
		}
		line, _, _ := strings.Cut(b.String(), "\n")
		require.Equal(t, 2, strings.Count(b.String(), "\n"), "%v: %s", args, &b)
		require.Regexp(t, ` -[a-z0-9]+|^leatload: -`, line, "%v", args)
		require.Regexp(t, `must|needs?|takes|only|is for|not for|keeps`, line, "%v", args)
		require.NotRegexp(t, `%!|parse error|out of range|: load: `, line, "%v", args)
	}
	assert.Greater(t, taken, 100)
}

func TestRefused_Objectives(t *testing.T) {
	const plain = "it must be about e2e, publish, allocs, bytes, cores, corrupt, cpu, duplicated, faults, gap, lag, lost, published, rate, reordered"
	for line, args := range map[string][]string{
		`-slo "e2e.p99<-1ms": no run can meet it`:                                                  {"-slo", "e2e.p99<-1ms"},
		`-slo "rate>-1": every run meets it`:                                                       {"-slo", "rate>-1"},
		`-slo "done.p99<1ms": this run has no done, which is of scenarios with a group; ` + plain:  {"-slo", "lost=0,done.p99<1ms"},
		`-slo "overlapped=0": this run has no overlapped, which is of scen`:                        {"-slo", "overlapped=0"},
		`-slo "delay.p99<1h": this run has no delay, which needs -rate; ` + plain:                  {"-slo", "delay.p99<1h"},
		`-slo "late=0": this run has no late, which needs -rate`:                                   {"-slo", "late=0"},
		`-slo "e2e.p99<1ms": this run has no e2e, since nobody reads; it must be about publish, a`: {"-readers", "0", "-subscribers", "0", "-slo", "e2e.p99<1ms"},
		`-slo "e2e.p99<1ms": this run has no e2e, since nobody reads; it must be about delay, pub`: {"sweep", "-readers", "0", "-subscribers", "0"},
	} {
		assert.Contains(t, refused(t, args...), line)
	}
	for _, args := range [][]string{
		{"-slo", "delay.p99<1h,late=0,unsent=0", "-rate", "1e4"},
		{"-slo", "done.p99<1h,overlapped=0,e2e.max<1h", "-scenario", "group"},
		{"-slo", "publish.p99<1h,rate>1", "-readers", "0", "-subscribers", "0"},
		{"-slo", "lost=0", "-readers", "0", "-subscribers", "0", "-sync", "never"},
	} {
		_, err := parse(args, io.Discard)
		assert.NoError(t, err)
	}
}

// TestNobodyReads: publishing can be measured alone, and the result says that it is.
func TestNobodyReads(t *testing.T) {
	code, stdout, stderr := call(with("-readers", "0", "-subscribers", "0", "-q")...)
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "note       nobody reads: only publishing was measured\n")
	_, stdout, _ = call(with("-q")...)
	assert.NotContains(t, stdout, "nobody reads")
}

func TestRefused_Files(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	for text, want := range map[string]string{
		`null`:                    "must be one JSON object, such as {\"scenario\": \"churn\", \"rate\": 20000}: it begins with null",
		`true`:                    "it begins with true",
		`"x"`:                     `it begins with "x"`,
		`[1]`:                     "it begins with [",
		`{}`:                      "the object is empty: must have the name of a flag",
		``:                        "must be one JSON object, such as {\"scenario\": \"churn\", \"rate\": 20000}: it ends before that does",
		`{"rate": 1`:              "it ends before that does",
		`{"rate": `:               "it ends before that does",
		`{"rate" 1}`:              "must be one JSON object",
		`{"rate": 1} {"rate": 2}`: "something comes after it",
		`{"rate": 1} x`:           "something comes after it",
		`{"rate": 1, "rate": 2}`:  `"rate" comes twice`,
		`{"config": {}}`:          "config must have a scenario",
		`{"config": 3}`:           "config must be an object",
		`{"config": null}`:        "config must be an object",
		`{"rate": null}`:          "rate must be a string, a number, true or false",
		`{"producers": "1e3"}`:    `-producers "1e3": must be a whole number, 1 to 65536`,
		`{"scenario": "x"}`:       `-scenario "x": must be one of`,
		`{"points": [], "knee_msgs_per_s": 0, "schema": 1}`: "there are no runs in it",
		`{"points": [], "knee_msgs_per_s": 0, "schema": 7}`: "schema 7 is not known, only 1",
	} {
		line := refused(t, "-file", write("s.json", text))
		assert.Contains(t, line, want, text)
		assert.Contains(t, line, "-file "+folder)
	}
	for text, want := range map[string]string{
		"":                                "is empty",
		" \n\t\n":                         "is empty",
		"\x7fELF\x02\x01\x01\x00\x00\x00": "line 1: not text: a key must be UTF-8 without control characters",
		"good\n\xff\xfe\n":                "line 2: not text",
		strings.Repeat("x", 4097):         "line 1: a key of 4097 bytes: must be at most 4096",
	} {
		line := refused(t, "-keys", "file:"+write("keys", text))
		assert.Contains(t, line, `-keys "file:`)
		assert.Contains(t, line, want)
	}
	line := refused(t, "-sizes", "file:"+write("sizes", "64\n\x7fELF"+strings.Repeat("\x00", 4000)))
	assert.Contains(t, line, "line 2: size is \"\\x7fELF")
	assert.Less(t, len(line), 900)
	if _, err := os.Stat("/dev/zero"); err == nil {
		assert.Contains(t, refused(t, "-file", "/dev/zero"), "/dev/zero: more than 256 MiB")
	}
}

// TestRefused_Overwriting: what is read is not written, and nothing is written twice, by whatever name.
func TestRefused_Overwriting(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	a := result(t, "a.json", "-rate", "20000")
	text, err := os.ReadFile(a)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("a.json", text, 0o600))
	require.NoError(t, os.WriteFile("keys", []byte("a\nb\n"), 0o600))
	require.NoError(t, os.Mkdir("sub", 0o700))
	require.NoError(t, os.Symlink("a.json", "link"))
	require.NoError(t, os.Link("a.json", "hard"))
	require.NoError(t, os.Symlink(".", "here"))
	for _, args := range [][]string{
		{"-json", "x", "-csv", "x"},
		{"-json", "x", "-csv", "./sub/../x"},
		{"-json", "x", "-hlog", filepath.Join(folder, "x")},
		{"-json", "x", "-cpuprofile", "here/x"},
		{"-memprofile", "x", "-trace", "x"},
		{"-hgrm", "l-%", "-csv", "l-delay"},
		{"-file", "a.json", "-json", "a.json"},
		{"-file", "a.json", "-json", "link"},
		{"-file", "a.json", "-csv", "hard"},
		{"-keys", "file:keys", "-rate", "100", "-json", "keys"},
		{"report", "-o", "a.json", "a.json"},
		{"report", "a.json", "-o", "link"},
		{"sweep", "-o", "x", "-json", "x"},
		{"sweep", "-o", "a.json", "-file", "a.json", "-messages", "0"},
	} {
		assert.Contains(t, refused(t, args...), "are one file: must be different ones", "%v", args)
	}
	assert.Contains(t, refused(t, "-json", "x", "-csv", "x"), "-csv x and -json x are one file")
	for _, flag := range []string{"cpuprofile", "memprofile", "trace"} {
		assert.Contains(t, refused(t, "-"+flag, "-"), "-"+flag+" -: must be a file")
	}
	assert.Contains(t, refused(t, "-json", "-q"), `-json is "-q": must be a file, and ./-q if that is one`)
	assert.Contains(t, refused(t, "sweep", "-o", "-", "-json", "-"), "-o and -json are both -")
	assert.Contains(t, refused(t, "report", "-o", "", "a.json"), "-o is empty")
	assert.Contains(t, refused(t, "report", "-o", " ", "a.json"), "-o is empty")
	again, err := os.ReadFile("a.json")
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again))
	left, err := filepath.Glob("x*")
	require.NoError(t, err)
	assert.Empty(t, left)
	if runtime.GOOS == "linux" {
		code, _, stderr := call(with("-engine", "chan", "-q", "-json", "/dev/null", "-hlog", "/dev/null")...)
		assert.Equal(t, exitOK, code, stderr)
	}
}

// TestOutputs_KeepWhatWasThere: a run that cannot begin leaves all files as they were, and a new one it does not leave at all.
func TestOutputs_KeepWhatWasThere(t *testing.T) {
	folder := t.TempDir()
	old, fresh, none := filepath.Join(folder, "old"), filepath.Join(folder, "new"), filepath.Join(folder, "no", "such")
	require.NoError(t, os.WriteFile(old, []byte("a long line from before, which is gone when there is something new, all of it"), 0o600))
	for _, args := range [][]string{
		{"-json", old, "-csv", fresh, "-hlog", none},
		{"-json", old, "-csv", fresh, "-trace", none},
		{"-json", fresh, "-cpuprofile", old, "-trace", none},
		{"sweep", "-json", old, "-o", none},
		{"sweep", "-o", old, "-json", none},
	} {
		code, stdout, stderr := call(append(args, "-engine", "chan")...)
		assert.Equal(t, exitUsage, code)
		assert.Empty(t, stdout, "nothing has run")
		assert.Contains(t, stderr, none)
		text, err := os.ReadFile(old)
		require.NoError(t, err)
		assert.Contains(t, string(text), "a long line from before", "%v", args)
		assert.NoFileExists(t, fresh, "%v", args)
	}
	code, _, stderr := call(with("-engine", "chan", "-q", "-csv", old)...)
	require.Equal(t, exitOK, code, stderr)
	text, err := os.ReadFile(old)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "from_s,"))
	assert.NotContains(t, string(text), "from before")
}

func TestRefused_Dir(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	dirs := []string{file, filepath.Join(file, "x")}
	if runtime.GOOS == "linux" {
		dirs = append(dirs, "/proc", "/proc/x", "/proc/x/y")
	}
	for _, dir := range dirs {
		for _, more := range []string{"run", "sweep"} {
			code, stdout, stderr := call(more, "-scenario", "durable", "-sync", "always", "-dir", dir)
			assert.Equal(t, exitUsage, code)
			assert.Empty(t, stdout)
			assert.Contains(t, stderr, "-dir "+strconv.Quote(dir)+": must be a directory in which files can be made, or can be one: ")
			assert.Equal(t, 2, strings.Count(stderr, "\n"), stderr)
		}
	}
	t.Setenv("TMPDIR", filepath.Join(file, "x"))
	if os.TempDir() != filepath.Join(file, "x") {
		return // this system has another name for that
	}
	code, _, stderr := call("-scenario", "durable")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "-dir is empty, and -sync needs one: must be a directory, since that for temporary files takes none")
}

// TestMakeDir: what was made goes, with all that is in it, but not what was there or is in use.
func TestMakeDir(t *testing.T) {
	folder := t.TempDir()
	dir, undo, err := makeDir(filepath.Join(folder, "a", "b"))
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(folder, "a", "b"), filepath.Dir(dir))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "gone"), nil, 0o600))
	other, inner, err := makeDir(filepath.Join(folder, "a", "b", "c"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "a", "kept"), nil, 0o600))
	inner()
	assert.DirExists(t, dir)
	assert.NoDirExists(t, filepath.Dir(other))
	undo()
	assert.NoDirExists(t, filepath.Join(folder, "a", "b"))
	assert.FileExists(t, filepath.Join(folder, "a", "kept"))
	_, undo, err = makeDir(folder)
	require.NoError(t, err)
	undo()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, left, 1, "a")
}

// TestSweep_Again: what sweep writes, report makes a page of, -file runs again, and compare says that it does not take.
func TestSweep_Again(t *testing.T) {
	folder := t.TempDir()
	result := func(rate float64) load.Result {
		s, _ := load.ScenarioNamed("unicast")
		s.Rate, s.Duration, s.Warmup, s.NoFloor, s.Keys = rate, 1e7, 1e6, true, load.Scenario{}.Keys
		chans, _ := engines(target.All()).named("chan")
		res, err := load.Run(t.Context(), chans, s)
		require.NoError(t, err)
		return res
	}
	point := func(rate float64, met bool) sweep.Point {
		return sweep.Point{Rate: rate, Met: met, Runs: []sweep.Run{{Rate: rate, Outcome: sweep.Outcome{Met: met, Result: result(rate)}}}}
	}
	k := sweep.Knee{Ending: sweep.Found, Knee: 2000, Above: 4000, Points: []sweep.Point{point(1000, true), point(2000, true), point(4000, false)}}
	all, runs, err := sweptOf(k, "e2e.p50<1h")
	require.NoError(t, err)
	require.Len(t, runs, 3)
	text, err := json.MarshalIndent(all, "", "  ")
	require.NoError(t, err)
	name := filepath.Join(folder, "sweep.json")
	require.NoError(t, os.WriteFile(name, text, 0o600))

	var page strings.Builder
	require.NoError(t, report.WriteSweep(&page, runs, all.head(), report.Options{Title: "T", Foot: "F"}))
	code, stdout, stderr := call("report", name, "-o", "-", "-title", "T")
	require.Equal(t, exitOK, code, stderr)
	before, _, _ := strings.Cut(page.String(), "<footer>")
	got, _, _ := strings.Cut(stdout, "<footer>")
	assert.Equal(t, before, got, "the page that sweep itself makes")

	o, err := parse([]string{"-file", name}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "unicast", o.scenario.Name)
	assert.InDelta(t, 2000, o.scenario.Rate, 0)
	assert.Equal(t, "chan", o.target.Name())
	assert.Equal(t, "e2e.p50<1h", o.slo.String())

	assert.Contains(t, refused(t, "compare", name, name), name+": it is a search that sweep has written; compare takes the results of two runs")
	assert.Contains(t, refused(t, "report", name, name), "it is a search that sweep has written, which has a page for itself")
	require.NoError(t, os.WriteFile(name, []byte(`{"schema": 1, "knee_msgs_per_s": 0, "points": []}`), 0o600))
	assert.Contains(t, refused(t, "report", name), "there are no runs in it")

	_, _, help := call("sweep", "-h")
	for _, flag := range []string{"rate", "csv", "hgrm", "hlog"} {
		assert.NotContains(t, help, "\n  -"+flag+" ")
	}
	assert.Contains(t, help, "leatload report makes a page of it")
}
