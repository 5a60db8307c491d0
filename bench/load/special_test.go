package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/export"
	"github.com/leatlog/leat/bench/load/slo"
	"github.com/leatlog/leat/bench/load/stream"
	"github.com/leatlog/leat/internal/testkit"
)

// keyed is direct with keys: it notes what comes.
type keyed struct {
	direct
	mu   sync.Mutex
	seen [][]keyedMessage // by producer
}

type keyedMessage struct {
	partition int
	key       string
	payload   string // without time and checksum
}

func (k *keyed) Open(s load.Scenario) (load.Instance, error) {
	in, err := k.direct.Open(s)
	k.seen = make([][]keyedMessage, s.Producers)
	return keyedInstance{in, k}, err
}

type keyedInstance struct {
	load.Instance
	k *keyed
}

func (in keyedInstance) Producer(i int) (load.Producer, error) {
	p, err := in.Instance.Producer(i)
	return keyedProducer{p, in.k, i}, err
}

type keyedProducer struct {
	load.Producer
	k *keyed
	i int
}

func (p keyedProducer) PublishKey(ctx context.Context, partition int, key, payload []byte) error {
	p.k.mu.Lock()
	p.k.seen[p.i] = append(p.k.seen[p.i], keyedMessage{partition, string(key), string(payload[8:16]) + string(payload[load.MinSize:])})
	p.k.mu.Unlock()
	return p.Publish(ctx, partition, payload)
}

func mixedLoad(t *testing.T) load.Scenario {
	s := saturating(2, 3, 4000)
	var err error
	s.Sizes, err = stream.ParseSizes("lognormal:100:1:3000", load.MinSize)
	require.NoError(t, err)
	s.Keys, err = stream.ParseKeys("zipf:0.99:50")
	require.NoError(t, err)
	return s
}

// saturating is a scenario with one subscriber that ends after so many messages.
func saturating(producers, partitions int, messages int64) load.Scenario {
	return load.Scenario{
		Name: "saturating", Producers: producers, Partitions: partitions, Subscribers: 1, Duration: time.Minute, Messages: messages,
		Seed: 7, SampleEvery: 1, NoPlacement: true, NoFloor: true,
	}
}

// TestStreams_SameSeedSameStream: sizes, keys, partitions and bytes, all of them; and another seed is another stream.
func TestStreams_SameSeedSameStream(t *testing.T) {
	s := mixedLoad(t)
	var a, b, c keyed
	for _, x := range []*keyed{&a, &b, &c} {
		if x == &c {
			s.Seed++
		}
		res, err := load.Run(t.Context(), x, s)
		require.NoError(t, err)
		require.NoError(t, res.Err())
	}
	assert.True(t, reflect.DeepEqual(a.seen, b.seen))
	assert.False(t, reflect.DeepEqual(a.seen, c.seen))
	home := map[string]int{}
	used := map[int]int{}
	sizes := map[int]bool{}
	for _, m := range append(a.seen[0], a.seen[1]...) {
		if p, ok := home[m.key]; ok {
			require.Equal(t, p, m.partition, "a key has one partition, whoever publishes")
		}
		home[m.key] = m.partition
		used[m.partition]++
		size := len(m.payload) + 16
		sizes[size] = true
		require.GreaterOrEqual(t, size, load.MinSize)
		require.LessOrEqual(t, size, 3000)
	}
	assert.Len(t, used, 3)
	assert.Greater(t, len(sizes), 100)
}

// TestStreams_DamageIsSeenInEverySize: the length is checked as well.
func TestStreams_DamageIsSeenInEverySize(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"a bit":       flip,
		"cut short":   func(p []byte) []byte { return p[:len(p)-1] },
		"a zero more": func(p []byte) []byte { return append(bytes.Clone(p), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it waits a while for what does not come
				s := mixedLoad(t)
				s.UseSynctestClock()
				res, err := load.Run(t.Context(), &direct{deliver: func(_, _, n int, p []byte) [][]byte {
					if n%10 == 3 {
						p = damage(p)
					}
					return [][]byte{p}
				}}, s)
				require.NoError(t, err)
				require.ErrorIs(t, res.Err(), load.ErrFaults)
				assert.Equal(t, res.Lost, res.Corrupt)
				assert.InDelta(t, 400, res.Corrupt, 3)
			})
		})
	}
}

// again is direct with a log that can be read again, in which faults are planted. Its producer waits for somebody who has read
// enough of it again to have met them.
type again struct {
	direct
	plant  func(n int, p []byte) [][]byte
	mu     sync.Mutex
	log    [][]byte
	met    func() // closes reread
	reread chan struct{}
}

func (a *again) Open(s load.Scenario) (load.Instance, error) {
	a.reread = make(chan struct{})
	a.met = sync.OnceFunc(func() { close(a.reread) })
	a.publish = func(_ context.Context, _, n int) error {
		if n == 400 {
			<-a.reread
		}
		return nil
	}
	a.direct.deliver = func(_, _, _ int, p []byte) [][]byte {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.log = append(a.log, bytes.Clone(p))
		return [][]byte{p}
	}
	in, err := a.direct.Open(s)
	return againInstance{in, a}, err
}

type againInstance struct {
	load.Instance
	a *again
}

func (in againInstance) Replay(_ int, deliver func([]byte)) error {
	in.a.mu.Lock()
	log := in.a.log[min(2, len(in.a.log)):] // the first two are not kept any more
	in.a.mu.Unlock()
	for i, p := range log {
		for _, q := range in.a.plant(i, p) {
			deliver(q)
		}
	}
	if len(log) >= 20 {
		in.a.met()
	}
	return nil
}

func TestReplay_Faults(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(n int, p []byte) [][]byte
		is    func(load.Faults) bool
	}{
		"right":     {func(_ int, p []byte) [][]byte { return [][]byte{p} }, func(f load.Faults) bool { return !f.Any() }},
		"lost":      {func(n int, p []byte) [][]byte { return [][]byte{p}[:min(n^5, 1)] }, func(f load.Faults) bool { return f.Gap > 0 && f.Lost > 0 }},
		"corrupt":   {func(n int, p []byte) [][]byte { return [][]byte{map[bool][]byte{true: flip(p), false: p}[n == 5]} }, func(f load.Faults) bool { return f.Corrupt > 0 }},
		"twice":     {func(n int, p []byte) [][]byte { return [][]byte{p, p}[:1+n/5%2] }, func(f load.Faults) bool { return f.Duplicated > 0 }},
		"reordered": {nil, func(f load.Faults) bool { return f.Reordered > 0 }},
	} {
		plant := c.plant
		if plant == nil {
			var first []byte
			plant = func(n int, p []byte) [][]byte {
				if n == 0 {
					first = p
				}
				if n == 7 {
					return [][]byte{p, first}
				}
				return [][]byte{p}
			}
		}
		s := saturating(1, 1, 500)
		s.Replays = 1
		res, err := load.Run(t.Context(), &again{plant: plant}, s)
		require.NoError(t, err)
		require.NotNil(t, res.Replay)
		assert.Positive(t, res.Replay.Passes)
		assert.Positive(t, res.Replay.Messages)
		assert.True(t, c.is(res.Faults), "%s: %v", name, res.Faults)
		assert.Equal(t, uint64(500), res.Received, "only those of the subscriber count as received")
	}
}

func TestReplay_NeedsATargetThatCan(t *testing.T) {
	s := saturating(1, 1, 500)
	s.Replays = 1
	_, err := load.Run(t.Context(), &direct{}, s)
	require.ErrorIs(t, err, load.ErrTarget)
	assert.ErrorContains(t, err, "replays is 1: what direct has delivered cannot be read again")
}

func TestFloor(t *testing.T) {
	s := saturating(2, 1, 1000)
	s.NoFloor, s.Duration = false, 2*time.Second // a tenth of it is for the floor
	testkit.Watchdog(t)
	var res load.Result
	for res.Floor == nil || res.Floor.E2E.Count == 0 { // a machine that is busy may not let the generator run in that time
		var err error
		res, err = load.Run(t.Context(), &direct{}, s)
		require.NoError(t, err)
	}
	assert.Positive(t, res.Floor.RateMsgsPerS)
	assert.Positive(t, res.Floor.Publish.Count)
	assert.Zero(t, res.Floor.Delay.Count, "nothing is scheduled")
	var b bytes.Buffer
	require.NoError(t, res.WriteText(&b))
	assert.Contains(t, b.String(), "\nfloor      the generator alone, with a target that does nothing: ")
}

// TestResult_JSONHasIt: the JSON form has what compare, report and others go by.
func TestResult_JSONHasIt(t *testing.T) {
	s := mixedLoad(t)
	s.Warmup = 0
	res, err := load.Run(t.Context(), &direct{}, s)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, res.WriteJSON(&b))
	var m map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &m))
	assert.Equal(t, "constant", m["arrival"])
	assert.Equal(t, "lognormal:100:1:3000", m["sizes"])
	assert.Equal(t, "zipf:0.99:50", m["keys"])
	for _, name := range []string{"windows", "config", "gc_percent", "mem_limit", "cores", "gcs", "gc_pause_ns", "blocked_ns", "stages", "size_mean"} {
		assert.Contains(t, m, name)
	}
	assert.NotEmpty(t, m["windows"])
	config, _ := m["config"].(map[string]any)
	assert.Equal(t, "zipf:0.99:50", config["keys"])
	assert.Equal(t, "1m0s", config["duration"])
	var back load.Result
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	assert.Equal(t, res.Latency, back.Latency)
	assert.NotEmpty(t, back.Latency.E2E.HDR)
	var text bytes.Buffer
	require.NoError(t, back.WriteText(&text))
	assert.Contains(t, text.String(), "-keys=zipf:0.99:50")
}

// TestResult_Steps: a ramp's steps are in the result, as far as the run goes.
func TestResult_Steps(t *testing.T) {
	s := mixedLoad(t)
	s.Messages, s.Warmup, s.Duration, s.Rate = 0, 10*time.Millisecond, 40*time.Millisecond, 10_000
	var err error
	s.Arrival, err = stream.ParseArrival("poisson+ramp:0.5-1.5:3:20ms")
	require.NoError(t, err)
	res, err := load.Run(t.Context(), &direct{}, s)
	require.NoError(t, err)
	assert.Equal(t, []load.Step{{FromS: 0, MsgsPerS: 5000}, {FromS: 0.02, MsgsPerS: 10_000}, {FromS: 0.04, MsgsPerS: 15_000}}, res.Steps)
}

func TestResult_Figure(t *testing.T) {
	s := saturating(1, 1, 1000)
	res, err := load.Run(t.Context(), &direct{}, s)
	require.NoError(t, err)
	res.Lost, res.Gap, res.Unsent, res.Late = 3, 2, 5, 7
	for name, want := range map[string]float64{"lost": 3, "gap": 2, "faults": 5, "unsent": 5, "late": 7, "rate": res.RateMsgsPerS, "cores": res.Cores} {
		got, ok := res.Figure(slo.Metric{Name: name})
		assert.True(t, ok, name)
		assert.InDelta(t, want, got, 0, name)
	}
	latencies, others := slo.Names()
	for _, name := range others {
		_, ok := res.Figure(slo.Metric{Name: name})
		assert.True(t, ok, "%s is known to a run", name)
	}
	for _, name := range latencies {
		_, ok := res.Figure(slo.Metric{Name: name, Stat: "p", Percentile: 99})
		assert.Equal(t, name == "e2e" || name == "publish", ok, "%s", name)
	}
	n, ok := res.Figure(slo.Metric{Name: "e2e", Stat: "count"})
	assert.True(t, ok)
	assert.InDelta(t, 1000, n, 0)
	_, ok = res.Figure(slo.Metric{Name: "done", Stat: "max"})
	assert.False(t, ok, "there is no group")
}

func TestScenario_NewFieldsAreChecked(t *testing.T) {
	poisson, err := stream.ParseArrival("poisson")
	require.NoError(t, err)
	for want, change := range map[string]func(*load.Scenario){
		"arrival is poisson: needs a rate": func(s *load.Scenario) { s.Arrival = poisson },
		"stages is 17: must be 1 to 16":    func(s *load.Scenario) { s.Stages = 17 },
		"replays is -1":                    func(s *load.Scenario) { s.Replays = -1 },
		"stop is 1m0s: must be less than":  func(s *load.Scenario) { s.Stop = time.Minute },
		"stop is -1s":                      func(s *load.Scenario) { s.Stop = -time.Second },
		"there are no readers to stop":     func(s *load.Scenario) { s.Stop, s.Subscribers = time.Second, 0 },
		"stages is 2: a scenario with a group has one": func(s *load.Scenario) {
			s.Stages, s.Subscribers, s.Group = 2, 0, load.Group{Kind: load.Shared, Members: 1}
		},
	} {
		s := saturating(1, 1, 1)
		change(&s)
		err := s.Validate()
		require.ErrorIs(t, err, load.ErrScenario)
		assert.ErrorContains(t, err, want)
	}
}

// TestResult_MDNamesAllFields: what is documented is what is there.
func TestResult_MDNamesAllFields(t *testing.T) {
	text, err := os.ReadFile("RESULT.md")
	require.NoError(t, err)
	var names func(reflect.Type)
	names = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				names(f.Type) // embedded
				continue
			}
			assert.Contains(t, string(text), "`"+name+"`")
		}
	}
	for _, v := range []any{load.Result{}, load.Latency{}, load.Floor{}, load.BacklogResult{}, load.ReplayResult{}, load.Placement{},
		export.Window{}, export.Summary{}} {
		names(reflect.TypeOf(v))
	}
}
