package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/internal/testkit"
)

// brief is a scenario that ends by its number of messages.
func brief(messages int64) load.Scenario {
	return load.Scenario{
		Name: "brief", Producers: 3, Partitions: 2, Readers: 1, Subscribers: 1,
		Duration: time.Minute, Messages: messages, Seed: 7, SampleEvery: 1, NoPlacement: true, NoFloor: true,
	}
}

// allRight says that nothing is wrong with a run in real time but, at most, its rate: whether that is held is the machine's business.
func allRight(t *testing.T, res load.Result) {
	t.Helper()
	require.NotErrorIs(t, res.Err(), load.ErrFaults)
	require.NotErrorIs(t, res.Err(), load.ErrUnfinished)
}

func TestRun_CountsEverything(t *testing.T) {
	defer testkit.NoLeaks(t)
	for _, rate := range []float64{0, 1e9} {
		t.Run(fmt.Sprint("rate=", rate), func(t *testing.T) {
			s := brief(1000)
			s.Rate = rate
			res, err := load.Run(t.Context(), &direct{}, s)
			require.NoError(t, err)
			allRight(t, res)
			assert.Equal(t, uint64(1000), res.Sent)
			assert.Equal(t, uint64(2000), res.Received)
			assert.Equal(t, uint64(1000), res.Latency.Publish.Count)
			assert.Equal(t, uint64(2000), res.Latency.E2E.Count)
			assert.Len(t, res.Lanes, 4)
			assert.False(t, res.Interrupted)
			assert.Equal(t, "direct", res.Engine)
			assert.Equal(t, 64, res.Size)
			if rate == 0 {
				assert.Zero(t, res.Latency.Delay.Count)
				assert.Zero(t, res.Scheduled)
			} else {
				assert.Equal(t, uint64(1000), res.Latency.Delay.Count)
				assert.Equal(t, uint64(1000), res.Scheduled)
			}
		})
	}
}

// TestRun_PlantedFaults has a target go wrong in each way, once, for one reader of one partition.
func TestRun_PlantedFaults(t *testing.T) {
	// One producer and one partition, so that the third message is number 2 of producer 0.
	var kept []byte
	for name, fault := range map[string]struct {
		plant func(n int, p []byte) [][]byte
		want  load.Faults
		story string
	}{
		"lost": {
			func(n int, p []byte) [][]byte {
				if n == 2 {
					return nil
				}
				return [][]byte{p}
			},
			load.Faults{Lost: 1, Gap: 1}, "3 came where 2 was due",
		},
		"lost at the end": {
			func(n int, p []byte) [][]byte {
				if n >= 98 {
					return nil
				}
				return [][]byte{p}
			},
			load.Faults{Lost: 2}, "nothing came from 98 on, of 100",
		},
		"lost at the start": {
			func(n int, p []byte) [][]byte {
				if n < 3 {
					return nil
				}
				return [][]byte{p}
			},
			load.Faults{Lost: 3, Gap: 1}, "3 came where 0 was due",
		},
		"duplicated": {
			func(n int, p []byte) [][]byte {
				if n == 2 {
					return [][]byte{p, p}
				}
				return [][]byte{p}
			},
			load.Faults{Duplicated: 1}, "2 came again",
		},
		"reordered": {
			func(n int, p []byte) [][]byte {
				switch n {
				case 2:
					kept = bytes.Clone(p)
					return nil
				case 3:
					return [][]byte{p, kept}
				}
				return [][]byte{p}
			},
			load.Faults{Reordered: 1, Gap: 1}, "3 came where 2 was due",
		},
		"corrupt": {
			func(n int, p []byte) [][]byte {
				if n == 2 {
					return [][]byte{flip(p)}
				}
				return [][]byte{p}
			},
			load.Faults{Corrupt: 1, Lost: 1, Gap: 1}, "damaged",
		},
		"cut short": {
			func(n int, p []byte) [][]byte {
				if n == 99 {
					return [][]byte{p[:63]}
				}
				return [][]byte{p}
			},
			load.Faults{Corrupt: 1, Lost: 1}, "damaged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := brief(100)
			s.Producers, s.Partitions, s.Readers, s.Subscribers = 1, 1, 2, 1
			s.Patience = 20 * time.Millisecond
			res, err := load.Run(t.Context(), &direct{deliver: func(c, _, n int, p []byte) [][]byte {
				if c != 1 {
					return [][]byte{p}
				}
				return fault.plant(n, p)
			}}, s)
			require.NoError(t, err, "wrong deliveries are a result, not a failure of the run")
			assert.Equal(t, fault.want, res.Faults)
			require.ErrorIs(t, res.Err(), load.ErrFaults)
			assert.ErrorContains(t, res.Err(), "reader 1, partition 0")
			assert.ErrorContains(t, res.Err(), fault.story)
			for _, l := range res.Lanes {
				assert.Equal(t, l.Consumer == "reader 1", l.Any(), "only the lane that was hit says so")
			}
			var text strings.Builder
			require.NoError(t, res.WriteText(&text))
			assert.Contains(t, text.String(), "WRONG")
			assert.Contains(t, text.String(), fault.story)
		})
	}
}

// TestRun_DuplicateOfTheLastMessage: a run that stopped looking once it had as many as were sent would miss it.
func TestRun_DuplicateOfTheLastMessage(t *testing.T) {
	s := brief(10)
	s.Producers, s.Partitions, s.Readers, s.Subscribers = 1, 1, 0, 1
	res, err := load.Run(t.Context(), &direct{deliver: func(_, _, n int, p []byte) [][]byte {
		if n == 9 {
			return [][]byte{p, p}
		}
		return [][]byte{p}
	}}, s)
	require.NoError(t, err)
	assert.Equal(t, load.Faults{Duplicated: 1}, res.Faults)
}

// TestRun_Dropped: windows show what consumers have jumped over, as soon as they have.
func TestRun_Dropped(t *testing.T) {
	s := brief(100)
	s.Producers, s.Partitions, s.Readers, s.Subscribers, s.Window = 1, 1, 1, 1, time.Hour
	s.Patience = 20 * time.Millisecond
	res, err := load.Run(t.Context(), &direct{deliver: func(c, _, n int, p []byte) [][]byte {
		if n >= 40 && n < 43 || c == 1 && n >= 98 {
			return nil // the last two nobody can jump over
		}
		return [][]byte{p}
	}}, s)
	require.NoError(t, err)
	assert.Equal(t, uint64(3+3+2), res.Lost)
	require.NotEmpty(t, res.Windows)
	assert.Equal(t, uint64(3+3), res.Windows[len(res.Windows)-1].Dropped)
}

// TestRun_SwappedPartitions delivers undamaged messages, but to readers of the wrong partition.
func TestRun_SwappedPartitions(t *testing.T) {
	s := brief(20)
	s.Producers, s.Subscribers, s.Patience = 1, 0, 20*time.Millisecond
	var last [2][]byte
	res, err := load.Run(t.Context(), &direct{deliver: func(_, partition, _ int, p []byte) [][]byte {
		last[partition] = bytes.Clone(p)
		return [][]byte{last[1-partition]}
	}}, s)
	require.NoError(t, err)
	assert.Equal(t, uint64(20), res.Corrupt)
	assert.Equal(t, uint64(20), res.Lost)
}

func TestRun_Interrupted(t *testing.T) {
	defer testkit.NoLeaks(t)
	for _, rate := range []float64{0, 0.1} {
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int64
		s := brief(0)
		s.Rate = rate
		least := int64(3)
		if rate > 0 {
			least = 1 // and the next one is due 10 s later
		}
		res, err := load.Run(ctx, &direct{publish: func(context.Context, int, int) error {
			if n.Add(1) == least {
				cancel()
			}
			return nil
		}}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err(), "an unfinished schedule is no missed rate")
		assert.True(t, res.Interrupted)
		assert.GreaterOrEqual(t, res.Sent, uint64(least))
		assert.Equal(t, res.Sent*2, res.Received)
		assert.Less(t, res.DurationS, 60.0)
	}
}

func TestRun_InterruptedDuringWarmup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := brief(0)
	s.Warmup = time.Hour
	res, err := load.Run(ctx, &direct{publish: func(context.Context, int, int) error { cancel(); return nil }}, s)
	require.NoError(t, err)
	assert.True(t, res.Interrupted)
	assert.Zero(t, res.Latency.E2E.Count)
	assert.Zero(t, res.RateMsgsPerS)
	assert.Contains(t, res.Notes, "ended during the warm-up: nothing was measured")
}

func TestRun_TargetFails(t *testing.T) {
	defer testkit.NoLeaks(t)
	boom := errors.New("boom")
	t.Run("open", func(t *testing.T) {
		_, err := load.Run(t.Context(), &direct{openErr: boom}, brief(10))
		require.ErrorIs(t, err, load.ErrTarget)
		require.ErrorIs(t, err, boom)
	})
	t.Run("publish", func(t *testing.T) {
		res, err := load.Run(t.Context(), &direct{publish: func(_ context.Context, producer, n int) error {
			if producer == 1 && n == 5 {
				return boom
			}
			return nil
		}}, brief(0))
		require.ErrorIs(t, err, load.ErrTarget)
		require.ErrorIs(t, err, boom)
		require.ErrorContains(t, err, "producer 1")
		assert.GreaterOrEqual(t, res.Sent, uint64(5), "the result so far")
	})
	t.Run("read", func(t *testing.T) {
		_, err := load.Run(t.Context(), &direct{readErr: boom}, brief(0))
		require.ErrorIs(t, err, load.ErrTarget)
		require.ErrorIs(t, err, boom)
		require.ErrorContains(t, err, "reader 0 of partition")
	})
	t.Run("close", func(t *testing.T) {
		res, err := load.Run(t.Context(), &direct{closeErr: boom}, brief(10))
		require.NoError(t, err, "the figures are good")
		require.Len(t, res.Notes, 1)
		assert.Contains(t, res.Notes[0], "boom")
	})
}

func TestRun_Owner(t *testing.T) {
	s := brief(99)
	s.Partitions = 3
	var got [3]map[byte]bool // partition: the producers seen there
	for i := range got {
		got[i] = map[byte]bool{}
	}
	res, err := load.Run(t.Context(), &direct{
		owns: func(producer int) []int { return []int{producer} },
		deliver: func(_, partition, _ int, p []byte) [][]byte {
			got[partition][p[14]] = true
			return [][]byte{p}
		},
	}, s)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	for i := range got {
		assert.Equal(t, map[byte]bool{byte(i): true}, got[i])
	}
	for _, owns := range [][]int{{}, {3}, {-1}} {
		_, err := load.Run(t.Context(), &direct{owns: func(int) []int { return owns }}, s)
		assert.ErrorIs(t, err, load.ErrTarget, "%v", owns)
	}
}

func TestRun_BadScenario(t *testing.T) {
	for field, change := range map[string]func(*load.Scenario){
		"producers":    func(s *load.Scenario) { s.Producers = 0 },
		"partitions":   func(s *load.Scenario) { s.Partitions = 0 },
		"readers":      func(s *load.Scenario) { s.Readers = -1 },
		"subscribers":  func(s *load.Scenario) { s.Subscribers = -1 },
		"size":         func(s *load.Scenario) { s.Size = load.MinSize - 1 },
		"rate":         func(s *load.Scenario) { s.Rate = -1 },
		"duration":     func(s *load.Scenario) { s.Duration = 0 },
		"warmup":       func(s *load.Scenario) { s.Warmup = -1 },
		"messages":     func(s *load.Scenario) { s.Messages = -1 },
		"sample every": func(s *load.Scenario) { s.SampleEvery = -1 },
		"patience":     func(s *load.Scenario) { s.Patience = -1 },
	} {
		s := brief(10)
		require.NoError(t, s.Validate())
		change(&s)
		_, err := load.Run(t.Context(), &direct{}, s)
		require.ErrorIs(t, err, load.ErrScenario, field)
		assert.ErrorContains(t, err, field)
		assert.Equal(t, err, s.Validate())
	}
}

func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, s := range load.Scenarios() {
		require.NoError(t, s.Validate(), s.Name)
		assert.NotEmpty(t, s.About)
		assert.Positive(t, s.Consumers())
		assert.False(t, names[s.Name], "twice")
		names[s.Name] = true
		same, ok := load.ScenarioNamed(s.Name)
		assert.True(t, ok)
		assert.Equal(t, s, same)
	}
	_, ok := load.ScenarioNamed("nonsense")
	assert.False(t, ok)
	assert.Equal(t, 10*time.Second, load.Scenarios()[0].Warmup+load.Scenarios()[0].Duration)
}

func TestRun_OneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := brief(2000)
	s.Rate, s.NoPlacement = 1e6, false
	res, err := load.Run(t.Context(), &direct{}, s)
	require.NoError(t, err)
	allRight(t, res)
	assert.Zero(t, res.PlacementRTT)
	assert.Equal(t, "unknown", res.Placement.Label)
	assert.Equal(t, 1, res.GOMAXPROCS)
}

func TestResult_JSON(t *testing.T) {
	s := brief(500)
	s.Rate = 1e6
	res, err := load.Run(t.Context(), &direct{}, s)
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, res.WriteJSON(&b))

	var back load.Result
	dec := json.NewDecoder(bytes.NewReader(b.Bytes()))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&back))
	assert.Equal(t, res, back, "the JSON form carries everything")

	var m map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &m))
	for _, k := range []string{"schema", "engine", "scenario", "seed", "duration_s", "sent", "received", "lost", "duplicated",
		"reordered", "gap", "corrupt", "clamped", "rate_msgs_per_s", "cpu_ns_per_msg", "allocs_per_msg", "placement_rtt_ns",
		"placement", "go", "gomaxprocs"} {
		assert.Contains(t, m, k)
	}
	for _, kind := range []string{"publish", "delay", "e2e"} {
		l, ok := m["latency_ns"].(map[string]any)[kind].(map[string]any)
		require.True(t, ok, kind)
		for _, k := range []string{"p50", "p90", "p99", "p999", "p9999", "max"} {
			assert.Contains(t, l, k, kind)
		}
	}
	assert.InDelta(t, 500, m["sent"], 0)
}

func TestPlacement(t *testing.T) {
	for ns, want := range map[int64]string{0: "unknown", 40: "sibling", 79: "sibling", 80: "near", 250: "near", 251: "far", 2000: "far", 2001: "busy"} {
		assert.Equal(t, want, load.PlacementLabel(ns), "%d ns", ns)
	}
	if runtime.GOMAXPROCS(0) > 1 && runtime.NumCPU() > 1 {
		assert.Positive(t, load.ProbePlacement())
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	assert.Zero(t, load.ProbePlacement(), "two goroutines cannot spin at once")
}

func TestClock_NeverGoesBack(t *testing.T) {
	c := load.NewClock()
	last := c.Now()
	for range 100_000 {
		now, after := c.Now(), c.After()
		if now < last || after < now {
			t.Fatalf("%d, %d, %d", last, now, after)
		}
		last = after
	}
}

func TestFormat(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ns", 312: "312ns", 999: "999ns", 1000: "1.00us", 1240: "1.24us", 99_940: "99.9us", 99_960: "100us",
		999_400: "999us", 999_600: "1.00ms", 3_400_000: "3.40ms", 1_500_000_000: "1.50s", 90 * time.Second: "90.0s", -5: "-5ns",
	} {
		assert.Equal(t, want, load.FormatDuration(d), "%d", d)
	}
	for v, want := range map[float64]string{
		0: "0", 950: "950", 9999: "9999", 12_345: "12.3 k", 999_400: "999 k", 999_600: "1.00 M", 12_345_678: "12.3 M",
		1.5e9: "1.5 G",
	} {
		assert.Equal(t, want, load.FormatRate(v), "%v", v)
	}
}

// TestWindow_NoSample: a line of the live view has all its columns also before anything was measured.
func TestWindow_NoSample(t *testing.T) {
	w := load.Window{Elapsed: time.Second, Sent: 5, Rate: 5, Lag: 1, Warmup: true}
	assert.Equal(t, "   1 s          5 msgs/s  lag 1          e2e -  (warm-up)", w.String())
	w.Samples, w.P50, w.P99, w.Max = 1, 1000, 2000, 3000
	assert.Contains(t, w.String(), "e2e p50 1.00us, p99 2.00us, max 3.00us")
}
