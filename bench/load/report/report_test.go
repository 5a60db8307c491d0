package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/report"
)

type object = map[string]any

// summary makes the JSON of a latency.
func summary(h *hdr.Histogram, whole bool) object {
	o := object{
		"count": h.TotalCount(), "mean": h.Mean(), "max": h.Max(), "p50": h.ValueAtQuantile(50), "p90": h.ValueAtQuantile(90),
		"p99": h.ValueAtQuantile(99), "p999": h.ValueAtQuantile(99.9), "p9999": h.ValueAtQuantile(99.99),
	}
	if whole {
		data, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		if err != nil {
			panic(err)
		}
		o["hdr"] = string(data)
	}
	return o
}

// result makes up the JSON of a run: slower by a factor, with a stall in its middle.
func result(seed uint64, slower float64, windows int, whole bool) object {
	r := rand.New(rand.NewPCG(seed, 9))
	all, publish, delay := hdr.New(1, 1<<40, 3), hdr.New(1, 1<<40, 3), hdr.New(1, 1<<40, 3)
	var list []object
	for i := range windows {
		w, wd := hdr.New(1, 1<<40, 3), hdr.New(1, 1<<40, 3)
		for range 4000 {
			v := 500 * slower * math.Exp(0.35*r.NormFloat64())
			if r.IntN(100) == 0 {
				v *= 1 + 60*r.ExpFloat64()
			}
			d := 20 * math.Exp(r.NormFloat64())
			if i == windows/2 && r.IntN(10) == 0 {
				d = 1e8 * r.Float64()
			}
			_ = w.RecordValue(int64(v + d))
			_ = wd.RecordValue(int64(d))
			_ = publish.RecordValue(int64(80 * slower * math.Exp(0.2*r.NormFloat64())))
		}
		all.Merge(w)
		delay.Merge(wd)
		list = append(list, object{
			"from_s": i, "to_s": i + 1, "warmup": i < 2, "rate_msgs_per_s": 1e6 * (1 + 0.02*r.NormFloat64()) / slower, "publish_msgs_per_s": 1e6 / slower,
			"lag": 100 + r.IntN(400), "e2e_ns": summary(w, false), "delay_ns": summary(wd, false), "cores": 1.7 + 0.1*r.Float64(), "gcs": r.IntN(3),
		})
	}
	return object{
		"schema": 1, "engine": "leat", "scenario": "mixed", "seed": seed, "producers": 3, "partitions": 2, "readers": 1, "subscribers": 1,
		"size": 64, "rate": 1e6, "warmup_s": 2, "duration_s": float64(windows - 2), "sent": 12345678, "received": 24691356,
		"rate_msgs_per_s": 1e6 / slower, "publish_msgs_per_s": 1e6, "rate_held": true, "cpu_ns_per_msg": 180.5, "allocs_per_msg": 0.001,
		"alloc_bytes_per_msg": 0.2, "latency_ns": object{"e2e": summary(all, whole), "publish": summary(publish, whole), "delay": summary(delay, whole)},
		"placement": object{"before_ns": 110, "after_ns": 118, "label": "near"}, "go": "go1.26.8", "platform": "linux/amd64", "gomaxprocs": 2, "cpus": 2,
		"clock": "tsc", "cpu": "AMD EPYC", "gc_percent": 100, "pinned": false, "commit": "8db0a39", "windows": list, "floor_ns": 41, "lanes": []object{},
	}
}

func read(t testing.TB, name string, o object) report.Run {
	t.Helper()
	data, err := json.Marshal(o)
	require.NoError(t, err)
	r, err := report.Read(name, bytes.NewReader(data))
	require.NoError(t, err)
	return r
}

func write(t testing.TB, runs ...report.Run) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, report.Write(&b, runs, report.Options{Foot: "made by a test"}))
	return b.String()
}

// wellFormed checks that every element is closed, as in XML, and that references to ids in the page lead somewhere.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page, "<!DOCTYPE html>\n")))
	d.Strict = true
	d.Entity = xml.HTMLEntity
	ids := map[string]bool{}
	var wanted []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range start.Attr {
			switch a.Name.Local {
			case "id":
				assert.False(t, ids[a.Value], "id %s comes twice", a.Value)
				ids[a.Value] = true
			case "aria-labelledby", "aria-describedby":
				wanted = append(wanted, strings.Fields(a.Value)...)
			case "href":
				if strings.HasPrefix(a.Value, "#") {
					wanted = append(wanted, a.Value[1:])
				}
			}
		}
	}
	for _, id := range wanted {
		assert.True(t, ids[id], "there is no id %s", id)
	}
}

func TestWrite_Several(t *testing.T) {
	page := write(t, read(t, "before", result(1, 1, 30, true)), read(t, "after", result(2, 1.3, 30, true)), read(t, "old", result(3, 2, 20, false)))
	wellFormed(t, page)
	for _, want := range []string{
		"<title>Load report: before, after, old</title>", "prefers-color-scheme: dark", `name="viewport"`, "made by a test",
		`<figure id="percentiles-e2e">`, `<figure id="time-lag">`, "AMD EPYC", "8db0a39", "floor ns", `class="differs"`, ">99.99%<", ">warm-up<",
		"before: half within", "Some lines go through a few percentiles only",
	} {
		assert.Contains(t, page, want)
	}
	assert.NotContains(t, page, "NaN")
	assert.NotContains(t, page, "Inf")
	assert.NotContains(t, page, "%!")
	assert.NotContains(t, page, "ZgotmplZ")
	assert.NotContains(t, page, "<no value>")
	// Three latencies and seven things over time that this run has, each in two sizes.
	assert.Equal(t, 2*(3+9), strings.Count(page, `<svg class="chart`))
}

// TestWrite_OneSizeOfEachChart checks what cannot be seen here: that a phone shows the narrow pictures and a desk the wide ones.
func TestWrite_OneSizeOfEachChart(t *testing.T) {
	page := write(t, read(t, "a", result(1, 1, 5, true)))
	assert.Contains(t, page, "\n.wide { display: none; }\n@media (min-width: 40rem) { .wide { display: block; } .narrow { display: none; } }\n")
	assert.Contains(t, page, "\n  .grid .wide { display: none; } .grid .narrow { display: block; }\n")
}

func TestWriteSweep(t *testing.T) {
	var runs []report.Run
	for i, slower := range []float64{8, 1, 1.2, 1.5, 3} {
		o := result(uint64(i), slower, 5, true)
		o["rate"] = []float64{1.6e6, 1e5, 2e5, 4e5, 8e5}[i]
		runs = append(runs, read(t, "", o))
	}
	runs[4].Verdict = "missed"
	runs = append(runs, runs[4], read(t, "", object{"schema": 1, "rate_msgs_per_s": 1}))
	var b bytes.Buffer
	s := report.Sweep{SLO: "e2e.p99<20us", Knee: 4e5, Text: "the highest rate that meets the SLO is 4e+05 a second <here>"}
	require.NoError(t, report.WriteSweep(&b, runs, s, report.Options{}))
	page := b.String()
	wellFormed(t, page)
	for _, want := range []string{
		"<title>Latency against rate: leat, mixed</title>", "meeting e2e.p99&lt;20us", ">e2e p99.9<", "&#160;knee&#160;", "a second &lt;here&gt;",
	} {
		assert.Contains(t, page, want)
	}
	assert.Equal(t, 2, strings.Count(page, `<svg class="chart`))
	assert.Equal(t, 2, strings.Count(page, "<th scope=\"row\">800\u00a0k/s</th>"), "a row for each run")
	assert.Equal(t, 2, strings.Count(page, "<td>missed</td>"))
	assert.Less(t, strings.Index(page, `<svg class="chart`), strings.Index(page, "The runs"), "what was found comes first")
	assert.NotContains(t, page, "NaN")
	assert.NotContains(t, page, "Inf")

	assert.ErrorContains(t, report.WriteSweep(io.Discard, runs[6:], s, report.Options{}), "no runs with a rate")
	o := object{"schema": 1, "rate_msgs_per_s": 1, "rate": 5}
	require.NoError(t, report.WriteSweep(&b, []report.Run{read(t, "", o)}, report.Sweep{}, report.Options{}))
}

// TestWrite_LoadsNothing looks for anything that a browser would fetch or run.
func TestWrite_LoadsNothing(t *testing.T) {
	page := write(t, read(t, "a", result(1, 1, 5, true)))
	assert.NotRegexp(t, regexp.MustCompile(`(?i)<script|<img|<iframe|@import|url\(|https?:|\son\w+=|src=`), page)
	assert.Contains(t, page, `http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"`)
}

// TestWrite_Escapes puts markup wherever a result has text.
func TestWrite_Escapes(t *testing.T) {
	const evil = `</title></desc></style><script>alert(1)</script>"'&`
	o := result(1, 1, 5, true)
	for name, v := range o {
		if _, ok := v.(string); ok {
			o[name] = evil
		}
	}
	o[evil] = evil
	o["notes"] = []string{evil}
	o["placement"].(object)["label"] = evil
	o["lanes"] = []object{{"consumer": evil, "first_fault": evil}}
	o["group"] = object{evil: evil}
	page := write(t, read(t, evil, o), read(t, evil, o))
	assert.NotContains(t, page, "<script")
	wellFormed(t, page)
	assert.Greater(t, strings.Count(page, "&lt;script&gt;"), 20)
}

func TestWrite_OldAndOdd(t *testing.T) {
	bare := object{"schema": 1, "rate_msgs_per_s": 0}
	page := write(t, read(t, "", bare))
	wellFormed(t, page)
	assert.NotContains(t, page, "<figure")

	for name, change := range map[string]func(o object){
		"no windows":   func(o object) { delete(o, "windows") },
		"one window":   func(o object) { o["windows"] = o["windows"].([]object)[:1] },
		"empty window": func(o object) { o["windows"] = []object{{"to_s": 1}, {"from_s": 1, "to_s": 2}} },
		"no latency":   func(o object) { delete(o, "latency_ns") },
		"one sample": func(o object) {
			h := hdr.New(1, 1<<40, 3)
			_ = h.RecordValue(0)
			o["latency_ns"] = object{"e2e": summary(h, true), "publish": summary(h, false)}
		},
		"a group": func(o object) {
			o["group"] = object{"kind": "shared", "members": 3, "done_latency_ns": o["latency_ns"].(object)["e2e"], "attempts": []int{1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := result(1, 1, 6, true)
			change(o)
			page := write(t, read(t, name, o), read(t, name, result(2, 1, 6, true)), read(t, "bare", bare))
			wellFormed(t, page)
			assert.NotContains(t, page, "NaN")
			assert.NotContains(t, page, "Inf")
		})
	}
}

func TestWrite_Wrong(t *testing.T) {
	o := result(1, 1, 5, false)
	o["lost"], o["corrupt"] = 3, 1
	o["lanes"] = []object{{"consumer": "reader 0", "partition": 1, "first_fault": "message 7 of producer 2 is missing"}}
	page := write(t, read(t, "a", o))
	assert.Contains(t, page, `<span class="state bad">wrong: lost 3, corrupt 1</span>`)
	assert.Contains(t, page, "first fault of reader 0, partition 1: message 7 of producer 2 is missing")

	o = result(1, 1, 5, false)
	o["rate_held"], o["late"] = false, 20_000
	assert.Contains(t, write(t, read(t, "a", o)), "rate missed: 20\u00a0k late, 0 not sent")
	o = result(1, 1, 5, false)
	o["unfinished"] = 7
	assert.Contains(t, write(t, read(t, "a", o)), `<span class="state bad">unfinished: 7 still to come when the run ended</span>`)
	o["interrupted"] = true
	assert.Contains(t, write(t, read(t, "a", o)), `<span class="state warn">interrupted</span>`)
	assert.ErrorContains(t, report.Write(io.Discard, nil, report.Options{}), "no runs")
}

func TestWrite_LongRunsStaySmall(t *testing.T) {
	o := result(1, 1, 5, true)
	var list []object
	one := o["windows"].([]object)[3]
	for i := range 3600 {
		w := object{}
		for k, v := range one {
			w[k] = v
		}
		w["from_s"], w["to_s"] = i, i+1
		list = append(list, w)
	}
	o["windows"] = list
	page := write(t, read(t, "a", o))
	assert.Less(t, len(page), 400_000)
}

func TestRead_Refuses(t *testing.T) {
	for text, wrong := range map[string]string{
		"":                                      "not a result",
		"[]":                                    "not a result",
		"{}":                                    "schema",
		`{"schema":1}`:                          "rate_msgs_per_s",
		`{"schema":2,"rate_msgs_per_s":1}`:      "not 1 but 2",
		`{"schema":1,"rate_msgs_per_s":"much"}`: "rate_msgs_per_s",
		`{"schema":1,"rate_msgs_per_s":1,"latency_ns":{"e2e":{"hdr":"x"}}}`: "the histogram of e2e",
	} {
		_, err := report.Read("x", strings.NewReader(text))
		require.ErrorIs(t, err, report.ErrRead, text)
		assert.ErrorContains(t, err, wrong)
	}
}

// TestRead_ShortLastWindow: the rate of a moment at the very end is not drawn.
func TestRead_ShortLastWindow(t *testing.T) {
	read := func(last string) int {
		run, err := report.Read("a", strings.NewReader(`{"schema": 1, "rate_msgs_per_s": 1, "windows": [
			{"from_s": 0, "to_s": 0.25}, {"from_s": 0.25, "to_s": 0.5}, {"from_s": 0.5, "to_s": `+last+`}]}`))
		require.NoError(t, err)
		return len(run.Windows)
	}
	assert.Equal(t, 2, read("0.504"))
	assert.Equal(t, 3, read("0.7"))
}
