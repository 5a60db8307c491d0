package slo_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/slo"
)

func TestParse(t *testing.T) {
	s, err := slo.Parse(" e2e.p99<200us, rate >= 1e6,lost=0,done.p99.9 <= 1.5ms,publish.max<1s,delay.mean>0s,allocs<0.5,published>500k,e2e.count>1M,cpu<2us,e2e.p9999<1s,lag==1G")
	require.NoError(t, err)
	type row struct {
		metric slo.Metric
		op     string
		value  float64
	}
	var got []row
	for _, o := range s {
		got = append(got, row{o.Metric, o.Op, o.Value})
	}
	assert.Equal(t, []row{
		{slo.Metric{Name: "e2e", Stat: "p", Percentile: 99}, "<", 200e3},
		{slo.Metric{Name: "rate"}, ">=", 1e6},
		{slo.Metric{Name: "lost"}, "=", 0},
		{slo.Metric{Name: "done", Stat: "p", Percentile: 99.9}, "<=", 1.5e6},
		{slo.Metric{Name: "publish", Stat: "max"}, "<", 1e9},
		{slo.Metric{Name: "delay", Stat: "mean"}, ">", 0},
		{slo.Metric{Name: "allocs"}, "<", 0.5},
		{slo.Metric{Name: "published"}, ">", 500e3},
		{slo.Metric{Name: "e2e", Stat: "count"}, ">", 1e6},
		{slo.Metric{Name: "cpu"}, "<", 2e3},
		{slo.Metric{Name: "e2e", Stat: "p", Percentile: 99.99}, "<", 1e9},
		{slo.Metric{Name: "lag"}, "=", 1e9},
	}, got)
	again, err := slo.Parse(s.String())
	require.NoError(t, err)
	assert.Equal(t, s, again)
	assert.Equal(t, "e2e.p99.99<1s", s[10].String())

	for _, empty := range []string{"", "  "} {
		s, err := slo.Parse(empty)
		require.NoError(t, err)
		_, met := s.Check(nil)
		assert.True(t, met)
	}
}

func TestParse_Refuses(t *testing.T) {
	for text, wrong := range map[string]string{
		"e2e.p99":              "no < <= > >= or =",
		"e2e.p99<200":          `"200" is no time: it needs a unit`,
		"e2e.p99<":             `"" is no time`,
		"e2e<1us":              "e2e takes .p50",
		"e2e.<1us":             "e2e takes .p50",
		"e2e.p<1us":            "e2e takes .p50",
		"e2e.p0<1us":           "e2e takes .p50",
		"e2e.p101<1us":         "e2e takes .p50",
		"e2e.p1e1<1us":         "e2e takes .p50",
		"e2e.p-1<1us":          "e2e takes .p50",
		"e2e.min<1us":          "the least e2e is not known",
		"latency.p99<1us":      `no metric "latency", only delay, done, e2e, publish and allocs`,
		"rate.p99>1":           "rate has no .p99",
		"rate>1ms":             `"1ms" is no number`,
		"rate>nan":             `"nan" is no number`,
		"rate>k":               `"k" is no number`,
		"rate>>1":              `">1" is no number`,
		"rate!=1":              `no metric "rate!"`,
		"lost=0,":              "no < <= > >= or =",
		"lost=0 rate>1":        `"0 rate>1" is no number`,
		"lost=0,rate>1e6,e2e!": `"e2e!"`,
		"=3":                   `no metric ""`,
		"rate>1e308G":          `"1e308G" is no number`,
		"rate>1e400":           `"1e400" is no number`,
		"rate>1e-400":          `"1e-400" is too near to 0: it would count as 0: it takes a number`,
		"allocs=1e-330k":       `"1e-330k" is too near to 0`,
		"lost<=0.0001e-400":    `"0.0001e-400" is too near to 0`,
		"e2e.p99<1e-400":       `"1e-400" is no time`,
		"e2e.p99<0.4ns":        `"0.4ns" is too near to 0: it would count as 0: times are 0s, or 1ns and more`,
		"cpu>0.0000000001s":    `"0.0000000001s" is too near to 0`,

		"e2e.p99<-1ms":               "no run can meet it, since e2e.p99 is 0 or more: VALUE must be above 0",
		"e2e.p99<0s":                 "no run can meet it",
		"e2e.p99=-1ns":               "no run can meet it",
		"e2e.p99<=-1ns":              "no run can meet it",
		"lost<0":                     "no run can meet it",
		"lost=0.5":                   "no run can meet it, since lost is 0 or more: VALUE must be above 0; 0 goes with =, <= and >, and what is counted",
		"e2e.count=1.5":              "no run can meet it",
		"rate>-1":                    "every run meets it, since rate is 0 or more",
		"rate>=0":                    "every run meets it",
		"cpu>=0s":                    "every run meets it",
		"rate>1M,lost=0,rate<1M":     "no run can meet it and rate>1M",
		"e2e.p99>2ms,e2e.p99<1ms":    "no run can meet it and e2e.p99>2ms",
		"lost>3,lost<4":              "no run can meet it and lost>3",
		"allocs=0.5,allocs=0.25":     "no run can meet it and allocs=0.5",
		"lag>=5,lag<5":               "no run can meet it and lag>=5",
		"e2e.p50<1ms,e2e.p50>=1ms":   "no run can meet it and e2e.p50<1ms",
		"e2e.p9999<1s,e2e.p99.99>2s": "no run can meet it and e2e.p99.99<1s",
	} {
		_, err := slo.Parse(text)
		require.ErrorIs(t, err, slo.ErrSyntax, text)
		assert.ErrorContains(t, err, wrong, text)
		assert.NotContains(t, err.Error(), "%!")
	}
}

func TestParse_GoTogether(t *testing.T) {
	for _, text := range []string{
		"lost=0", "lost<=0", "lost>0", "lost<0.5", "rate>0", "e2e.p99<=0s", "lost>3,lost<5", "lost>3.5,lost<4.5", "rate>1,rate<1.000001", "allocs>0,allocs<0.1",
		"rate>=5,rate<=5", "rate>=1M,rate>2M", "lag<5,lag<1G", "e2e.p50<1ms,e2e.p99>1ms", "cpu>1us,cpu<2us,cpu=1.5us", "lag<1,lag<0.5", "lag>0,lag<2",
	} {
		_, err := slo.Parse(text)
		assert.NoError(t, err, text)
	}
}

func TestCheck(t *testing.T) {
	figures := func(m slo.Metric) (float64, bool) {
		switch m.String() {
		case "e2e.p99":
			return 150_500, true
		case "rate":
			return 1e6, true
		case "lost":
			return 2, true
		case "cpu":
			return math.NaN(), true
		}
		return 0, false
	}
	for text, want := range map[string]string{
		"e2e.p99<200us": "met    e2e.p99<200us: 150.5us",
		"e2e.p99<1us":   "missed e2e.p99<1us: 150.5us",
		"rate>1M":       "missed rate>1M: 1e+06",
		"rate>=1M":      "met    rate>=1M: 1e+06",
		"rate<1M":       "missed rate<1M: 1e+06",
		"rate<=1000k":   "met    rate<=1000k: 1e+06",
		"rate=1e6":      "met    rate=1e6: 1e+06",
		"lost=0":        "missed lost=0: 2",
		"done.p50<1h":   "missed done.p50<1h: it was not measured",
	} {
		s, err := slo.Parse(text)
		require.NoError(t, err)
		checks, met := s.Check(figures)
		require.Len(t, checks, 1)
		assert.Equal(t, want, checks[0].String())
		assert.Equal(t, met, checks[0].Met)
	}
	s, err := slo.Parse("cpu<1h")
	require.NoError(t, err)
	_, met := s.Check(figures)
	assert.False(t, met, "what is no number meets nothing")
	s, err = slo.Parse("rate=1M,lost=0,e2e.p99<1s")
	require.NoError(t, err)
	checks, met := s.Check(figures)
	assert.False(t, met)
	assert.Equal(t, []bool{true, false, true}, []bool{checks[0].Met, checks[1].Met, checks[2].Met})
}

func FuzzParse(f *testing.F) {
	f.Add("e2e.p99<200us,rate>1e6,lost=0")
	f.Add("e2e.p99.9<=1h , done.mean=1us")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := slo.Parse(text)
		if err != nil {
			return
		}
		again, err := slo.Parse(s.String())
		require.NoError(t, err)
		assert.Equal(t, s, again)
	})
}

func ExampleParse() {
	s, err := slo.Parse("e2e.p99<200us,rate>1e6,lost=0")
	if err != nil {
		fmt.Println(err)
		return
	}
	checks, met := s.Check(func(m slo.Metric) (float64, bool) {
		return map[string]float64{"e2e.p99": 312_000, "rate": 1.2e6, "lost": 0}[m.String()], true
	})
	for _, c := range checks {
		fmt.Println(c)
	}
	fmt.Println(met)
	// Output:
	// missed e2e.p99<200us: 312us
	// met    rate>1e6: 1.2e+06
	// met    lost=0: 0
	// false
}
