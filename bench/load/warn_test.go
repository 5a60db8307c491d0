package load_test

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/target"
)

// TestScenario_Warnings: whoever starts a run is told when handlers hold producers up, or will not be through.
func TestScenario_Warnings(t *testing.T) {
	for name, x := range map[string]struct {
		change func(s *load.Scenario)
		want   []string
	}{
		"group":         {func(*load.Scenario) {}, nil},
		"redelivery":    {func(*load.Scenario) {}, nil},
		"shared":        {func(*load.Scenario) {}, []string{"handlers that take 1ms can do 4000 messages a second: producers wait for them"}},
		"slow-consumer": {func(*load.Scenario) {}, []string{"the slow member can do 400 of its 5000 messages a second in the last 4.5s: what is left waits until that is over"}},
		"churn": {func(s *load.Scenario) { s.Rate, s.Group.Handler = 0, time.Hour }, []string{
			"handlers that take 1h0m0s, and wait 1ms after a failure, can do 0.00222 messages a second: not one in the 9s that are measured",
			"the run waits for at most 10s for handlers to get through at the end: what is left then is unfinished",
		}},
	} {
		s, ok := load.ScenarioNamed(name)
		require.True(t, ok)
		x.change(&s)
		assert.Equal(t, x.want, s.Warnings(), name)
	}
	s, _ := load.ScenarioNamed("redelivery")
	s.Rate = 0
	require.Len(t, s.Warnings(), 1)
	assert.Contains(t, s.Warnings()[0], "fail 0.1 of the time and wait 1ms then can do")
}

// TestScenario_TooManyCounters: what would not fit is refused by name.
func TestScenario_TooManyCounters(t *testing.T) {
	for want, change := range map[string]func(s *load.Scenario){
		"partitions is 65536: with 65536 producers, which are counted one by one in each of them and by 2 consumers, it must be 1 to 85": func(s *load.Scenario) { s.Producers, s.Partitions = 1<<16, 1<<16 },
		"partitions is 65536: with 10001 consumers of each of them it must be 1 to 26":                                                   func(s *load.Scenario) { s.Partitions, s.Subscribers = 1<<16, 10_000 },
		"members is 10000: with 65536 partitions it must be 1 to 256": func(s *load.Scenario) {
			s.Readers, s.Subscribers, s.Partitions, s.Group = 0, 0, 1<<16, load.Group{Kind: load.Assigned, Members: 10_000}
		},
	} {
		s := brief(10)
		change(&s)
		err := s.Validate()
		require.ErrorIs(t, err, load.ErrScenario)
		assert.ErrorContains(t, err, want)
	}
	for _, change := range []func(s *load.Scenario){
		func(s *load.Scenario) { s.Producers = 1 << 16 },
		func(s *load.Scenario) { s.Partitions = 1 << 16 },
	} {
		s := brief(10)
		change(&s)
		assert.NoError(t, s.Validate())
	}
}

// TestRun_MemoryOfMany: what a producer or a partition costs is some kilobytes, and not the half megabyte of its own histograms.
func TestRun_MemoryOfMany(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	for name, x := range map[string]struct {
		change func(s *load.Scenario)
		each   uint64
	}{
		"producers":  {func(s *load.Scenario) { s.Producers = 4000 }, 16 << 10},
		"partitions": {func(s *load.Scenario) { s.Partitions = 4000 }, 64 << 10},
		"group": {func(s *load.Scenario) {
			s.Partitions, s.Readers, s.Subscribers, s.Group = 4000, 0, 0, load.Group{Kind: load.Assigned, Members: 2, Handler: 10 * time.Microsecond}
		}, 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			s := brief(8000)
			x.change(&s)
			var before, m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			most := uint64(math.MaxUint64)
			s.Warmup = time.Nanosecond
			res, err := load.Run(t.Context(), watched{target.Leat{}, func() {
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = m.HeapAlloc - min(before.HeapAlloc, m.HeapAlloc)
			}}, s)
			require.NoError(t, err)
			assert.False(t, res.Any(), "%v", res.Err())
			assert.Equal(t, uint64(8000*s.Consumers()), res.Received)
			assert.Positive(t, res.Latency.E2E.Count)
			assert.Less(t, most/4000, x.each)
		})
	}
}

// watched calls a function when a run is about to close its target: then all there is is there.
type watched struct {
	target.Leat
	closing func()
}

type watchedInstance struct {
	load.Instance
	closing func()
}

func (w watched) Open(s load.Scenario) (load.Instance, error) {
	in, err := w.Leat.Open(s)
	return watchedInstance{in, w.closing}, err
}

func (w watchedInstance) Close() error {
	w.closing()
	return w.Instance.Close()
}

type watchedGroup struct {
	load.GroupInstance
	closing func()
}

func (w watched) OpenGroup(s load.Scenario) (load.GroupInstance, error) {
	in, err := w.Leat.OpenGroup(s)
	return watchedGroup{in, w.closing}, err
}

func (w watchedGroup) Close() error {
	w.closing()
	return w.GroupInstance.Close()
}
