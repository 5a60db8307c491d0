package load_test

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/load/compare"
	"github.com/leatlog/leat/bench/load/slo"
	"github.com/leatlog/leat/bench/load/stream"
)

// TestBUG031_StallEverySecond has the target freeze for 100 ms once a second at 10 k/s: a tenth of all messages are scheduled during
// a freeze, and their latencies go evenly from 100 ms down to 0.
func TestBUG031_StallEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(10_000, 10*time.Second)
		res, err := load.Run(t.Context(), &direct{publish: func(_ context.Context, _, n int) error {
			if n%10_000 == 5000 {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}}, s)
		require.NoError(t, err)
		require.NoError(t, res.Err(), "the rate was held")
		e2e := res.Latency.E2E
		assert.Equal(t, uint64(100_000), e2e.Count)
		assert.Equal(t, int64(100*time.Millisecond), e2e.Max)
		assert.Zero(t, e2e.P50)
		assert.Zero(t, e2e.P90, "nine of ten messages never met a freeze")
		at(t, 90*time.Millisecond, e2e.P99, "p99: nine of the ten percent are below")
		at(t, 99*time.Millisecond, e2e.P999, "p99.9")
		at(t, 5*time.Millisecond, int64(e2e.Mean), "mean: a tenth of them, 50 ms each in the mean")
		for p, want := range map[float64]time.Duration{95: 50 * time.Millisecond, 98: 80 * time.Millisecond} {
			got, ok := res.Figure(slo.Metric{Name: "e2e", Stat: "p", Percentile: p})
			require.True(t, ok)
			at(t, want, int64(got), "any other percentile")
		}
		stalls := 0
		for _, w := range res.Windows {
			if w.E2E.Max == int64(100*time.Millisecond) {
				stalls++
			}
		}
		assert.Equal(t, 10, stalls, "each in its window")
		assert.Equal(t, time.Second, time.Duration(res.BlockedNs))
	})
}

// TestPercentilesAgreeWithASortedList runs streams of every kind against a target whose times are drawn beforehand, so that each
// message's latency follows from arithmetic: a message starts at its time, or when the one before it is done.
func TestPercentilesAgreeWithASortedList(t *testing.T) {
	for _, form := range []string{"constant", "poisson", "burst:20ms/80ms", "ramp:0.5-1.5:4:1s", "poisson+burst:50ms/50ms"} {
		t.Run(form, func(t *testing.T) {
			arrival, err := stream.ParseArrival(form)
			require.NoError(t, err)
			synctest.Test(t, func(t *testing.T) {
				s := open(2000, 4*time.Second)
				s.Arrival = arrival
				times := arrival.Times(stream.Part{Seed: s.Seed, Of: 1}, s.Rate)
				rng := rand.New(rand.NewPCG(1, 2))
				var takes []time.Duration
				var e2e, delay []int64
				for free := int64(0); times.Peek() < int64(s.Duration); {
					at := times.Next()
					take := int64(math.Exp(rng.NormFloat64()*1.5) * 100_000) // 100 us in the median, up to some 20 ms
					takes = append(takes, time.Duration(take))
					begin := max(at, free)
					free = begin + take
					e2e, delay = append(e2e, free-at), append(delay, begin-at)
				}
				res, err := load.Run(t.Context(), &direct{publish: func(_ context.Context, _, n int) error {
					time.Sleep(takes[n])
					return nil
				}}, s)
				require.NoError(t, err)
				require.Equal(t, uint64(len(takes)), res.Sent)
				require.Equal(t, uint64(len(takes)), res.Scheduled)
				agree(t, e2e, res, "e2e")
				agree(t, delay, res, "delay")
			})
		})
	}
}

// agree compares percentiles of a result with those of a list.
func agree(t *testing.T, list []int64, res load.Result, name string) {
	slices.Sort(list)
	for _, p := range []float64{10, 50, 75, 90, 99, 99.9, 99.99, 100} {
		// Which of two neighbours is meant, conventions differ about.
		rank := int(math.Ceil(p/100*float64(len(list)))) - 1
		low, high := float64(list[max(rank-1, 0)]), float64(list[min(max(rank, 0)+1, len(list)-1)])
		got, ok := res.Figure(slo.Metric{Name: name, Stat: "p", Percentile: p})
		require.True(t, ok)
		assert.GreaterOrEqual(t, got, low*0.999-1, "%s p%v", name, p)
		assert.LessOrEqual(t, got, high*1.001+1, "%s p%v", name, p)
	}
	most, _ := res.Figure(slo.Metric{Name: name, Stat: "max"})
	assert.InDelta(t, float64(list[len(list)-1]), most, 0, "the largest is exact")
}

// TestCompare_FindsATargetThatIsSlower: two runs whose targets take the same time, in the mean, do not differ, and one that takes a
// fifth more is found, saturating as well as paced.
func TestCompare_FindsATargetThatIsSlower(t *testing.T) {
	run := func(rate, takes float64, seed uint64) (out compare.Run) {
		synctest.Test(t, func(t *testing.T) {
			s := open(rate, 6*time.Second)
			s.SampleEvery = 7
			rng := rand.New(rand.NewPCG(seed, 0))
			res, err := load.Run(t.Context(), &direct{publish: func(context.Context, int, int) error {
				time.Sleep(time.Duration(takes * (0.9 + 0.2*rng.Float64()) * float64(time.Millisecond)))
				return nil
			}}, s)
			require.NoError(t, err)
			require.NoError(t, res.Err())
			var b bytes.Buffer
			require.NoError(t, res.WriteJSON(&b))
			out, err = compare.Read(&b)
			require.NoError(t, err)
		})
		return out
	}
	for _, rate := range []float64{0, 500} {
		a := run(rate, 1, 1)
		same := compare.Compare(a, run(rate, 1, 2), compare.Options{})
		assert.Equal(t, compare.Same, same.Verdict, "rate %v: %s", rate, same.Text)
		assert.Equal(t, compare.ExitSame, same.Exit())
		slower := compare.Compare(a, run(rate, 1.2, 3), compare.Options{})
		assert.Equal(t, compare.Worse, slower.Verdict, "rate %v: %s", rate, slower.Text)
		assert.Equal(t, compare.ExitWorse, slower.Exit())
	}
}
