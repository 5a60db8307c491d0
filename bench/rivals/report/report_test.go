package report_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/ratio"
	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/bench/rivals/report"
)

// slice makes one up: so many million messages a second, where the cores are so far apart.
func slice(rtt int64, million float64) arena.Slice {
	return arena.Slice{
		Placed: ratio.Placed{Before: rtt, After: rtt}, Messages: 1e6, Ns: int64(1e9 / million), CPU: 50e6, Allocs: 2e6, Bytes: 128e6, GCs: 3,
	}
}

func paced(rtt, p50 int64) arena.Slice {
	s := slice(rtt, .1)
	s.Latency = load.Latency{P50: p50, P90: 2 * p50, P99: 3 * p50}
	return s
}

func full() *report.Report {
	r := report.New(2, 100*time.Millisecond)
	r.Add([]arena.Outcome{
		{
			A: "one<&>", B: "chan", Topology: arena.OneToOne, Size: 64,
			As: []arena.Slice{slice(110, 30), slice(110, 20), slice(500, 4)}, Bs: []arena.Slice{slice(110, 10), slice(500, 8), slice(500, 8)},
		},
		{
			A: "one<&>", B: "chan", Topology: arena.OneToOne, Size: 64, Rate: 1e5,
			As: []arena.Slice{paced(110, 300)}, Bs: []arena.Slice{paced(110, 600)},
		},
	}, nil)
	r.Add([]arena.Outcome{{A: "two", B: "chan", Topology: arena.OneToOne, Size: 64, Skipped: "two: not installed"}}, nil)
	r.Add([]arena.Outcome{{A: "three", B: "chan", Topology: arena.OneToOne, Size: 64}}, errors.New("it lost one\nand more"))
	r.Add([]arena.Outcome{{
		A: "four", B: "chan", Topology: arena.OneToOne, Size: 64, As: []arena.Slice{slice(9000, 1)}, Bs: []arena.Slice{slice(9000, 1)},
	}}, nil)
	return r
}

func TestReport_Lines(t *testing.T) {
	r := full()
	require.Len(t, r.Lines, 6)
	near, far, rate := r.Lines[0], r.Lines[1], r.Lines[2]
	assert.Equal(t, "near", near.Label)
	assert.Equal(t, 2, near.Pairs)
	assert.Equal(t, 1, near.Dropped, "near with far")
	assert.InDelta(t, 2.5, near.Of.Rate.Median, 1e-6)
	assert.InDelta(t, 2, near.Of.Rate.Min, 1e-6)
	assert.InDelta(t, 3, near.Of.Rate.Max, 1e-6)
	assert.InDelta(t, 25e6, near.FiguresA.Rate.Median, 10)
	assert.InDelta(t, 10e6, near.FiguresB.Rate.Median, 10)
	assert.InDelta(t, 50, near.FiguresA.CPU.Median, 1e-6)
	assert.InDelta(t, 2, near.FiguresA.Allocs.Median, 1e-6)
	assert.InDelta(t, 128, near.FiguresA.Bytes.Median, 1e-6)
	assert.Equal(t, uint64(6), near.FiguresA.GCs)
	assert.Equal(t, uint64(3), near.FiguresB.GCs)
	assert.Equal(t, "far", far.Label)
	assert.InDelta(t, .5, far.Of.Rate.Median, 1e-6)
	assert.InDelta(t, .5, rate.Of.P50.Median, 1e-6)
	assert.InDelta(t, 900, rate.FiguresA.P99.Median, 1e-6)
	assert.Equal(t, "two: not installed", r.Lines[3].Skipped)
	assert.Contains(t, r.Lines[4].Failed, "it lost one")
	assert.Contains(t, r.Lines[5].Skipped, "busy")
	assert.Equal(t, 1, r.Failed())
}

func TestReport_Table(t *testing.T) {
	var out strings.Builder
	require.NoError(t, full().WriteTable(&out))
	text := out.String()
	for _, want := range []string{
		"1->1, 64 B, as fast as they can, against chan", "one<&>", "near", "2.50 (2.00-3.00)", "25.0 / 10.0", "50.0 / 50.0", "2.00, 128", "6 / 3",
		"2 (1 dropped)", "0.50 (0.50-0.50)", "100k messages a second", "p50 300 ns / 600 ns", "p99 900 ns / 1.8 us", "two: not installed",
		"FAILED: it lost one", "2 slices of 100ms",
	} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "and more")
	assert.Equal(t, 1, strings.Count(text, "as fast as they can"), "one heading for each workload")
}

func TestReport_JSON(t *testing.T) {
	r := full()
	var out strings.Builder
	require.NoError(t, r.WriteJSON(&out))
	var back report.Report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
	assert.Equal(t, *r, back)
	for _, c := range out.String() {
		require.Less(t, c, rune(0x80))
	}
}

// TestReport_SVG checks that the chart is well-formed, has a bar for each line, and refers to nothing outside of itself.
func TestReport_SVG(t *testing.T) {
	var out strings.Builder
	require.NoError(t, full().WriteSVG(&out))
	var texts []string
	bars := 0
	for d := xml.NewDecoder(strings.NewReader(out.String())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch x := token.(type) {
		case xml.StartElement:
			for _, a := range x.Attr {
				assert.NotContains(t, a.Name.Local, "href")
				if a.Name.Local == "height" && a.Value == "11" {
					bars++
				}
			}
		case xml.CharData:
			texts = append(texts, string(x))
		}
	}
	assert.Equal(t, 3, bars)
	all := strings.Join(texts, "\n")
	assert.Contains(t, all, "one<&>")
	assert.Contains(t, all, "2.5x  (2-3), 25.0 M/s, 50.0 CPU ns")
	assert.Contains(t, all, "less is better")
	assert.NotContains(t, out.String(), "NaN")
	assert.NotContains(t, out.String(), "Inf")
}

func TestReport_EmptyIsStillAChart(t *testing.T) {
	var out strings.Builder
	require.NoError(t, report.New(1, time.Second).WriteSVG(&out))
	assert.Contains(t, out.String(), "</svg>")
}

func TestTarget_Judge(t *testing.T) {
	r := full()
	at := report.Target{What: "faster", Figure: report.Rate, Least: 2}
	at.Judge(r.Lines)
	assert.True(t, r.Lines[0].Target.Reached, "2.5 near")
	assert.False(t, r.Lines[1].Target.Reached, "0.5 far")
	assert.Nil(t, r.Lines[2].Target, "another rate")
	assert.Nil(t, r.Lines[3].Target, "nothing was measured")
	assert.Contains(t, r.Lines[1].String(), "MISSED")

	late := report.Target{What: "sooner", Figure: report.P50, Most: .5, Rate: 1e5}
	late.Judge(r.Lines)
	assert.True(t, r.Lines[2].Target.Reached, "just so")
	late.Most = .4
	late.Judge(r.Lines)
	assert.False(t, r.Lines[2].Target.Reached)
	late.Figure = report.P99
	late.Judge(r.Lines)
	assert.InDelta(t, .5, r.Lines[2].Target.Got.Median, 1e-6)
	late.Figure, late.Most = report.CPU, 1
	late.Judge(r.Lines)
	assert.True(t, r.Lines[2].Target.Reached)
	assert.Contains(t, r.Lines[2].String(), "reached")
}
