package load_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
)

// TestBUG088_OutOfRangeIsClampedAndCounted: histograms elsewhere dropped, or choked on, exactly the worst latencies.
func TestBUG088_OutOfRangeIsClampedAndCounted(t *testing.T) {
	hour := int64(time.Hour)
	in := []int64{0, 1, load.Highest - 1, load.Highest}
	out := []int64{load.Highest + 1, hour, -1, math.MinInt64, math.MaxInt64}

	h := load.NewHistogram()
	assert.Zero(t, h.Max(), "empty")
	assert.Zero(t, h.Percentile(50), "empty")
	for i, v := range in {
		h.Record(v)
		assert.Equal(t, v, h.Max(), "the true maximum")
		assert.Equal(t, uint64(i+1), h.Count())
	}
	assert.Zero(t, h.Clamped())
	for i, v := range out {
		h.Record(v)
		assert.Equal(t, uint64(i+1), h.Clamped(), "value %d", v)
		assert.Equal(t, uint64(len(in)+i+1), h.Count(), "nothing is dropped")
	}
	assert.Equal(t, int64(math.MaxInt64), h.Max())
	assert.LessOrEqual(t, h.Percentile(100), h.Max())
	assert.GreaterOrEqual(t, h.Percentile(100), int64(load.Highest))

	l := h.Latency()
	assert.Equal(t, uint64(len(in)+len(out)), l.Count)
	assert.Equal(t, uint64(len(out)), l.Clamped)
	assert.Equal(t, int64(math.MaxInt64), l.Max)

	h.Reset()
	assert.Equal(t, load.Latency{}, h.Latency())
}

func TestBUG088_MergeAndLargeCounts(t *testing.T) {
	const workers = 16
	total := load.NewHistogram()
	var want uint64
	for w := range int64(workers) {
		h := load.NewHistogram()
		h.Record(w + 1)
		h.Record(int64(time.Hour) + w)
		h.Record(-w - 1)
		h.RecordN(500, 1<<32)
		h.RecordN(int64(time.Hour), 3)
		h.RecordN(7, 0)
		want += 3 + 1<<32 + 3
		total.Merge(h)
	}
	total.Merge(load.NewHistogram())
	assert.Equal(t, want, total.Count(), "totals equal samples")
	assert.Equal(t, uint64(workers*5), total.Clamped())
	assert.Equal(t, int64(time.Hour)+workers-1, total.Max(), "the true maximum survives merging")
	assert.Equal(t, int64(500), total.Percentile(50))
}

// TestHistogram_PercentilesAgreeWithASortedList compares with what percentiles mean: the smallest recorded value that p
// percent of all do not exceed.
func TestHistogram_PercentilesAgreeWithASortedList(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	streams := map[string]func() int64{
		"uniform":   func() int64 { return rng.Int64N(1_000_000) },
		"exp":       func() int64 { return int64(rng.ExpFloat64() * 50_000) },
		"lognormal": func() int64 { return int64(math.Exp(rng.NormFloat64()*2 + 10)) },
		"bimodal": func() int64 {
			if rng.IntN(100) == 0 {
				return 100_000_000 + rng.Int64N(1000)
			}
			return 300 + rng.Int64N(50)
		},
		"constant": func() int64 { return 12345 },
	}
	for name, next := range streams {
		t.Run(name, func(t *testing.T) {
			parts := []*load.Histogram{load.NewHistogram(), load.NewHistogram(), load.NewHistogram()}
			all := make([]int64, 100_000)
			for i := range all {
				all[i] = next()
				parts[i%len(parts)].Record(all[i])
			}
			h := load.NewHistogram()
			for _, p := range parts {
				h.Merge(p)
			}
			slices.Sort(all)
			for _, p := range []float64{1, 50, 90, 99, 99.9, 99.99, 100} {
				rank := max(int(math.Round(p/100*float64(len(all)))), 1)
				want := all[rank-1]
				assert.InEpsilon(t, float64(want)+1, float64(h.Percentile(p))+1, 0.001, "p%v", p)
			}
			assert.Equal(t, all[len(all)-1], h.Max())
			assert.Zero(t, h.Clamped())
		})
	}
}

// TestRecorder_StressNothingIsLost attacks what the recorder's proof claims: the owner's values all reach the collector, once
// each, whatever the interleaving of recording and collecting.
func TestRecorder_StressNothingIsLost(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 5
	}
	r := load.NewTestRecorder()
	var stop atomic.Bool
	recorded := make(chan int64, 1)
	go func() {
		n := int64(0)
		for ; !stop.Load(); n++ {
			r.Record(n % 1000)
		}
		recorded <- n
	}()
	total, windows := load.NewHistogram(), load.NewHistogram()
	for handed := 0; handed < rounds; { // so often the race must be reached
		before := windows.Count()
		r.Ask()
		r.Collect(total, windows)
		if windows.Count() > before {
			handed++
		} else {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	n := <-recorded
	assert.LessOrEqual(t, windows.Count(), uint64(n))
	r.Finish(total)
	require.Equal(t, uint64(n), total.Count())
}
