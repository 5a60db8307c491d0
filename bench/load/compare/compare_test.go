package compare_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/compare"
	"github.com/leatlog/leat/internal/testkit"
)

type object = map[string]any

// synthetic says how the windows of a run come about.
type synthetic struct {
	windows int
	noise   float64 // standard deviation of the logarithm
	memory  float64 // how much of it a window hands on to the next
	slower  float64 // factor of times
	spikes  bool    // one window in ten has everything ten times slower
	rate    float64 // paced
}

// result makes the JSON of a run.
func (s synthetic) result(seed uint64) object {
	r := rand.New(rand.NewPCG(seed, 77))
	ar := func() func() float64 {
		x := r.NormFloat64()
		return func() float64 {
			x = s.memory*x + math.Sqrt(1-s.memory*s.memory)*r.NormFloat64()
			return x
		}
	}
	common, own := ar(), [5]func() float64{ar(), ar(), ar(), ar(), ar()}
	var windows []object
	for i := range s.windows + 2 {
		c, slow := common(), s.slower
		if s.spikes && r.IntN(10) == 0 {
			slow *= 10
		}
		v := func(i int, base, sigma float64) float64 {
			return base * slow * math.Exp(s.noise*sigma*(c+own[i]())/math.Sqrt2)
		}
		w := object{
			"from_s": float64(i), "to_s": float64(i + 1), "warmup": i == 0,
			"rate_msgs_per_s": 1 / v(0, 1e-6, 1),
			"e2e_ns":          object{"count": 1000, "p50": v(1, 500, 1), "p90": v(2, 900, 1), "p99": v(3, 5000, 2), "max": 1e6},
			"cpu_ns_per_msg":  v(4, 100, 1),
			"new":             "field",
		}
		if i == 0 {
			w["rate_msgs_per_s"] = 1
		}
		if i == s.windows+1 {
			w["to_s"] = float64(i) + 0.01
			w["rate_msgs_per_s"] = 5
		}
		if s.rate > 0 {
			w["rate_msgs_per_s"] = s.rate
		}
		windows = append(windows, w)
	}
	return object{
		"schema": 1, "engine": "leat", "scenario": "mixed", "rate": s.rate, "rate_held": true, "rate_msgs_per_s": 1e6 / s.slower,
		"publish_msgs_per_s": 1e6, "cpu_ns_per_msg": 100, "allocs_per_msg": 0, "lost": 0, "producers": 3, "seed": 1,
		"latency_ns": object{"e2e": object{"p50": 500 * s.slower, "p90": 900 * s.slower, "p99": 5000, "p999": 1e5, "max": 1e7}},
		"placement":  object{"label": "near"}, "windows": windows, "added_later": []int{1},
	}
}

func read(t testing.TB, o object) compare.Run {
	t.Helper()
	data, err := json.Marshal(o)
	require.NoError(t, err)
	r, err := compare.Read(bytes.NewReader(data))
	require.NoError(t, err)
	return r
}

// verdicts compares many pairs of runs and counts what came out.
func verdicts(t *testing.T, a, b synthetic, pairs int) map[compare.Verdict]int {
	t.Helper()
	got := map[compare.Verdict]int{}
	for i := range uint64(pairs) {
		got[compare.Compare(read(t, a.result(2*i)), read(t, b.result(2*i+1)), compare.Options{}).Verdict]++
	}
	return got
}

// pairs is how many. Of 1000, at most 1.6 % are false alarms.
func pairs() int { return testkit.Rounds(40) }

// TestCompare_FalseAlarms compares runs of one distribution: every difference that is found is none.
func TestCompare_FalseAlarms(t *testing.T) {
	for name, s := range map[string]synthetic{
		"calm":           {windows: 30, noise: 0.05, slower: 1},
		"noisy":          {windows: 30, noise: 0.4, slower: 1},
		"few":            {windows: 9, noise: 0.2, slower: 1},
		"many":           {windows: 300, noise: 0.3, slower: 1},
		"with memory":    {windows: 100, noise: 0.2, memory: 0.6, slower: 1},
		"much memory":    {windows: 300, noise: 0.2, memory: 0.9, slower: 1},
		"spikes":         {windows: 60, noise: 0.1, slower: 1, spikes: true},
		"paced":          {windows: 60, noise: 0.2, slower: 1, rate: 1e5},
		"paced, spikes":  {windows: 60, noise: 0.2, slower: 1, rate: 1e5, spikes: true},
		"paced, memory":  {windows: 60, noise: 0.2, memory: 0.5, slower: 1, rate: 1e5},
		"without a band": {windows: 3, noise: 0.1, slower: 1},
	} {
		got := verdicts(t, s, s, pairs())
		alarms := got[compare.Better] + got[compare.Worse] + got[compare.Mixed]
		t.Logf("%-15s %v", name, got)
		// Two to four metrics count, each is outside of its band once in 370.
		assert.LessOrEqual(t, alarms, pairs()/20, "%s: %v", name, got)
		assert.Equal(t, pairs(), alarms+got[compare.Same]+got[compare.Unclear])
	}
}

// TestCompare_FindsTwentyPercent slows the target by a fifth.
func TestCompare_FindsTwentyPercent(t *testing.T) {
	for name, s := range map[string]synthetic{
		"calm":          {windows: 9, noise: 0.03, slower: 1},
		"noisy":         {windows: 60, noise: 0.15, slower: 1},
		"spikes":        {windows: 60, noise: 0.1, slower: 1, spikes: true},
		"with memory":   {windows: 100, noise: 0.1, memory: 0.5, slower: 1},
		"paced":         {windows: 60, noise: 0.15, slower: 1, rate: 1e5},
		"paced, spikes": {windows: 60, noise: 0.1, slower: 1, rate: 1e5, spikes: true},
	} {
		slow := s
		slow.slower = 1.2
		got := verdicts(t, s, slow, pairs())
		t.Logf("%-15s %v", name, got)
		assert.GreaterOrEqual(t, got[compare.Worse], pairs()*95/100, "%s: %v", name, got)
		got = verdicts(t, slow, s, pairs())
		assert.GreaterOrEqual(t, got[compare.Better], pairs()*95/100, "%s: %v", name, got)
	}
}

// TestCompare_NoiseIsNoSameness: runs so noisy that a quarter could hide in them are not said to be the same.
func TestCompare_NoiseIsNoSameness(t *testing.T) {
	a := synthetic{windows: 20, noise: 0.6, slower: 1}
	b := a
	b.slower = 1.25
	got := verdicts(t, a, b, pairs())
	assert.Zero(t, got[compare.Same], "%v", got)
	assert.Positive(t, got[compare.Unclear], "%v", got)

	a.rate, b.rate, a.noise, b.noise = 1e5, 1e5, 3, 3
	c := compare.Compare(read(t, a.result(1)), read(t, b.result(2)), compare.Options{})
	assert.Equal(t, compare.Unclear, c.Verdict, "that both had the rate that they were asked for says nothing")
	assert.Contains(t, c.Text, "both held the rate")
}

// TestCompare_BandHoldsTheTruth counts how often the band of a change of 20 % has the change in it.
func TestCompare_BandHoldsTheTruth(t *testing.T) {
	a := synthetic{windows: 40, noise: 0.2, slower: 1, rate: 1e5}
	b := a
	b.slower = 1.2
	inside, all := 0, 0
	for i := range uint64(pairs()) {
		c := compare.Compare(read(t, a.result(2*i)), read(t, b.result(2*i+1)), compare.Options{})
		for _, r := range c.Rows {
			if strings.HasPrefix(r.Name, "e2e p") && r.Windows[0] > 0 {
				assert.Equal(t, [2]int{40, 40}, r.Windows)
				all++
				if r.Low <= 0.2 && 0.2 <= r.High {
					inside++
				}
			}
		}
	}
	assert.Equal(t, 3*pairs(), all)
	assert.GreaterOrEqual(t, float64(inside)/float64(all), 0.99)
}

func TestCompare_Text(t *testing.T) {
	calm := synthetic{windows: 20, noise: 0.02, slower: 1, rate: 1e5}
	slow := calm
	slow.slower = 1.2
	a, b := read(t, calm.result(1)), read(t, slow.result(2))
	c := compare.Compare(a, b, compare.Options{})
	assert.Regexp(t, `^B is slower by (19|2\d) % \(1\d..2\d\) in e2e p\d\d, \d+ % in e2e p\d\d, \d+ % in e2e p\d\d$`, c.Text)
	assert.Equal(t, compare.ExitWorse, c.Exit())
	c = compare.Compare(b, a, compare.Options{})
	assert.Regexp(t, `^B is faster by 1\d % \(1\d..\d\d\) in e2e`, c.Text)
	assert.Equal(t, compare.ExitSame, c.Exit())
	c = compare.Compare(a, a, compare.Options{})
	assert.Regexp(t, `^no difference \(rate within 0.0..0.0 %, e2e p50 within -\d.\d..\+\d.\d %`, c.Text)
	assert.Empty(t, c.Reasons)
	assert.Empty(t, c.Notes)

	c = compare.Compare(a, b, compare.Options{Threshold: 0.5})
	assert.Equal(t, compare.Same, c.Verdict)

	var out strings.Builder
	require.NoError(t, c.WriteText(&out))
	assert.Contains(t, out.String(), "e2e max ")
	assert.NotContains(t, out.String(), "%!")
	t.Log("\n" + out.String())
	_, err := json.Marshal(c)
	assert.NoError(t, err)
}

func TestCompare_OldResultsHaveNoWindows(t *testing.T) {
	a, b := synthetic{slower: 1, rate: 1e5}.result(1), synthetic{slower: 2, rate: 1e5}.result(1)
	delete(a, "windows")
	b["windows"] = nil
	c := compare.Compare(read(t, a), read(t, b), compare.Options{})
	assert.Equal(t, compare.Worse, c.Verdict)
	assert.Contains(t, c.Notes[0], "the bands are assumed")
	var out strings.Builder
	require.NoError(t, c.WriteText(&out))
	assert.Regexp(t, `e2e p50 +500ns +1us +\+100 % +\+54..\+160 % \? +worse`, out.String())
	assert.Equal(t, compare.Unclear, compare.Compare(read(t, a), read(t, a), compare.Options{}).Verdict, "without windows nobody knows")
}

func TestCompare_Wrong(t *testing.T) {
	s := synthetic{windows: 20, noise: 0.02, slower: 1}
	good, bad := s.result(1), s.result(2)
	bad["lost"], bad["corrupt"], bad["producers"] = 3, 1, 9
	c := compare.Compare(read(t, good), read(t, bad), compare.Options{})
	assert.Equal(t, "B is wrong: lost 3, corrupt 1", c.Text)
	assert.Equal(t, compare.ExitWrong, c.Exit())
	assert.Equal(t, compare.Wrong, compare.Compare(read(t, bad), read(t, good), compare.Options{}).Verdict)
}

func TestCompare_RateMissed(t *testing.T) {
	s := synthetic{windows: 20, noise: 0.02, slower: 1, rate: 1e5}
	held, missed := s.result(1), s.result(2)
	missed["rate_held"] = false
	assert.Equal(t, compare.ExitWorse, compare.Compare(read(t, held), read(t, missed), compare.Options{}).Exit())
	assert.Equal(t, compare.Better, compare.Compare(read(t, missed), read(t, held), compare.Options{}).Verdict)
}

func TestCompare_Unfinished(t *testing.T) {
	s := synthetic{windows: 20, noise: 0.02, slower: 1}
	whole, part := s.result(1), s.result(2)
	part["unfinished"] = 7
	assert.Equal(t, compare.ExitWorse, compare.Compare(read(t, whole), read(t, part), compare.Options{}).Exit())
	assert.Equal(t, compare.Better, compare.Compare(read(t, part), read(t, whole), compare.Options{}).Verdict)
	part["interrupted"] = true
	assert.Equal(t, compare.Same, compare.Compare(read(t, whole), read(t, part), compare.Options{}).Verdict, "it was ended, and no fault of its own")
}

// TestCompare_Nothing: a run that measured nothing is neither faster nor slower than any other.
func TestCompare_Nothing(t *testing.T) {
	nothing := func(more object) object {
		o := object{"schema": 1, "rate": 1e5, "producers": 3, "rate_msgs_per_s": 0, "publish_msgs_per_s": 0, "rate_held": true, "placement": object{"label": "near"}}
		maps.Copy(o, more)
		return o
	}
	full := synthetic{windows: 30, noise: 0.05, slower: 1, rate: 1e5}
	missed, part := full.result(1), full.result(1)
	missed["rate_held"], part["unfinished"] = false, 7
	for name, early := range map[string]object{
		"ended in the warm-up":       nothing(object{"duration_s": 0, "interrupted": true}),
		"late in the warm-up":        nothing(object{"duration_s": 0, "interrupted": true, "rate_held": false}),
		"no message was due":         nothing(object{"duration_s": 1}),
		"ended there, with messages": nothing(object{"duration_s": 0, "interrupted": true, "unfinished": 9}),
	} {
		for _, o := range []object{full.result(2), missed, part} {
			for _, anyway := range []bool{false, true} {
				a, b := read(t, early), read(t, o)
				c := compare.Compare(a, b, compare.Options{Anyway: anyway})
				assert.Equal(t, compare.Unclear, c.Verdict, name)
				assert.Equal(t, "cannot tell: A measured nothing", c.Text, name)
				assert.Equal(t, compare.ExitSame, c.Exit())
				assert.Equal(t, "cannot tell: B measured nothing", compare.Compare(b, a, compare.Options{Anyway: anyway}).Text, name)
				assert.Equal(t, "cannot tell: both measured nothing", compare.Compare(a, a, compare.Options{Anyway: anyway}).Text, name)
			}
		}
	}
	stuck := read(t, nothing(object{"duration_s": 1, "rate_held": false}))
	assert.Equal(t, compare.Worse, compare.Compare(read(t, full.result(2)), stuck, compare.Options{}).Verdict, "nothing was let in, which is slow")
	lost := read(t, nothing(object{"duration_s": 0, "lost": 1}))
	assert.Equal(t, compare.Wrong, compare.Compare(read(t, full.result(2)), lost, compare.Options{}).Verdict)
}

func TestCompare_Incomparable(t *testing.T) {
	s := synthetic{windows: 20, noise: 0.02, slower: 1}
	plain := read(t, s.result(1))
	for text, change := range map[string]func(o object){
		"the loads differ: producers 3 and 4":              func(o object) { o["producers"] = 4 },
		"the loads differ: sizes - and uniform:16-64":      func(o object) { o["sizes"] = "uniform:16-64" },
		"the loads differ: group.kind - and shared":        func(o object) { o["group"] = object{"kind": "shared"} },
		"the cores were placed differently: near and far":  func(o object) { o["placement"] = object{"label": "far"} },
		"the cores were placed differently: near and busy": func(o object) { o["placement"] = object{"label": "busy"} },
	} {
		o := s.result(2)
		change(o)
		c := compare.Compare(plain, read(t, o), compare.Options{})
		assert.Equal(t, "not comparable: "+text, c.Text)
		assert.Equal(t, compare.ExitIncomparable, c.Exit())
		c = compare.Compare(plain, read(t, o), compare.Options{Anyway: true})
		assert.Equal(t, compare.Same, c.Verdict)
		assert.Equal(t, []string{text}, c.Reasons)
	}
	o := s.result(1)
	o["engine"], o["go"], o["interrupted"] = "chan", "go1.99", true
	c := compare.Compare(plain, read(t, o), compare.Options{})
	assert.Equal(t, compare.Same, c.Verdict)
	assert.Equal(t, []string{"A and B differ in engine leat and chan; go - and go1.99", "a run was interrupted"}, c.Notes)
}

func TestRead_Refuses(t *testing.T) {
	for _, text := range []string{"", "{", "[]", "{}", `{"schema":1}`, `{"schema":2,"rate_msgs_per_s":1}`, `{"schema":"1"}`} {
		_, err := compare.Read(strings.NewReader(text))
		assert.ErrorIs(t, err, compare.ErrRead, text)
	}
	_, err := compare.Read(strings.NewReader(`{"schema":1,"rate_msgs_per_s":0}`))
	assert.NoError(t, err)
}

func ExampleCompare() {
	const slow = `{"schema": 1, "producers": 1, "rate_msgs_per_s": 500000}`
	const fast = `{"schema": 1, "producers": 1, "rate_msgs_per_s": 1000000}`
	a, err := compare.Read(strings.NewReader(slow))
	if err != nil {
		fmt.Println(err)
	}
	b, err := compare.Read(strings.NewReader(fast))
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(compare.Compare(a, b, compare.Options{}).Text)
	// Output: B is faster by 100 % (74..130) in rate
}
