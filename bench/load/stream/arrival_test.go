package stream_test

import (
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/stream"
)

func arrival(t testing.TB, text string) stream.Arrival {
	t.Helper()
	a, err := stream.ParseArrival(text)
	require.NoError(t, err)
	assert.Equal(t, text, a.String())
	return a
}

// all returns the times of several producers before end, merged.
func all(a stream.Arrival, seed uint64, producers int, rate float64, end int64) (times []int64) {
	for i := range producers {
		s := a.Times(stream.Part{Seed: seed, Producer: i, Of: producers}, rate)
		for at := s.Next(); at < end; at = s.Next() {
			times = append(times, at)
		}
	}
	slices.Sort(times)
	return times
}

func TestArrival_ConstantTakesTurns(t *testing.T) {
	a := arrival(t, "constant")
	assert.Equal(t, []int64{0, 250, 500, 750, 1000, 1250}, all(a, 1, 3, 4e6, 1500))
	assert.Equal(t, a, stream.Arrival{})
}

// TestArrival_ConstantDoesNotDrift compares with exact arithmetic, far into a long run at a rate whose gap is no whole number.
func TestArrival_ConstantDoesNotDrift(t *testing.T) {
	const rate = 2999993
	s := arrival(t, "constant").Times(stream.Part{Producer: 1, Of: 2}, rate)
	worst := 0.0
	for k := int64(0); k < 2_000_000; k++ {
		got := s.Next()
		if k%9973 != 0 {
			continue
		}
		exact := new(big.Int).Mul(big.NewInt(2*k+1), big.NewInt(1e9))
		exact.Quo(exact, big.NewInt(rate))
		worst = max(worst, math.Abs(float64(got-exact.Int64())))
	}
	assert.LessOrEqual(t, worst, 1.0)
}

// TestArrival_HoursLater skips to many hours later, which rounding must not show.
func TestArrival_HoursLater(t *testing.T) {
	const (
		rate  = 1e6
		hours = int64(100 * 3600 * 1e9)
	)
	for _, text := range []string{"constant", "burst:10ms/90ms", "ramp:0.5-1:2:1s", "poisson", "poisson+burst:10ms/90ms"} {
		a := arrival(t, text)
		s := a.Times(stream.Part{Seed: 3}, rate)
		// 100 hours of messages are too many to draw: the state is as if they had been.
		stream.Skip(s, hours/1e9*rate)
		last := s.Next()
		if text == "ramp:0.5-1:2:1s" {
			assert.InDelta(t, hours+5e8, last, 1, "the first second has half of its messages")
		} else {
			assert.InDelta(t, hours, last, 10_000, text)
		}
		n, first := 0, last
		for last < first+int64(time.Second) {
			next := s.Next()
			if next < last { // millions of them: require would take long
				require.GreaterOrEqual(t, next, last, text)
			}
			last = next
			n++
		}
		assert.InDelta(t, rate, n, 5000, text)
	}
}

func TestArrival_PoissonIsPoisson(t *testing.T) {
	for _, producers := range []int{1, 3} {
		const n, rate = 200_000, 1e6
		times := all(arrival(t, "poisson"), 7, producers, rate, int64(n/rate*1e9))
		require.InDelta(t, n, len(times), 5*math.Sqrt(n), "the number in a given time is Poisson, too")

		// Gaps are exponential: compare the greatest distance of the two distribution functions with the 0.1 % bound of
		// Kolmogorov and Smirnov.
		gaps := make([]float64, 0, len(times))
		for i := 1; i < len(times); i++ {
			gaps = append(gaps, float64(times[i]-times[i-1]))
		}
		slices.Sort(gaps)
		distance := 0.0
		for i, g := range gaps {
			// Times are cut to whole nanoseconds, so that a gap is off by up to one.
			want := 1 - math.Exp(-g/1e3)
			distance = max(distance, math.Abs(want-(float64(i)+0.5)/float64(len(gaps))))
		}
		assert.Less(t, distance, 1.95/math.Sqrt(float64(len(gaps)))+0.001, "%d producers", producers)

		// Neighbouring gaps know nothing of each other.
		var sum float64
		for i := 2; i < len(times); i++ {
			sum += (float64(times[i]-times[i-1])/1e3 - 1) * (float64(times[i-1]-times[i-2])/1e3 - 1)
		}
		assert.InDelta(t, 0, sum/float64(len(times)), 5/math.Sqrt(float64(len(times))))
	}
}

func TestArrival_Burst(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, text := range []string{"burst:10ms/90ms", "poisson+burst:10ms/90ms"} {
		times := all(arrival(t, text), 5, 2, 100_000, 1000*ms)
		assert.InDelta(t, 100_000, len(times), 1500, "the mean rate is the rate")
		per := make([]int, 10)
		for _, at := range times {
			if at%(100*ms) > 10*ms {
				require.Fail(t, "in a pause", "%s: %d", text, at)
			}
			per[at/(100*ms)]++
		}
		for _, n := range per {
			assert.InDelta(t, 10_000, n, 500, text)
		}
	}
	// A burst need not have a message: at 3 a second, one in about three has.
	times := all(arrival(t, "burst:10ms/90ms"), 1, 1, 3, 2000*ms)
	assert.Len(t, times, 6)
}

func TestArrival_Ramp(t *testing.T) {
	a := arrival(t, "ramp:0.25-1:4:1s")
	times := all(a, 1, 2, 1000, int64(6*time.Second))
	per := make([]int, 6)
	for _, at := range times {
		per[at/int64(time.Second)]++
	}
	assert.Equal(t, []int{250, 500, 750, 1000, 1000, 1000}, per)
	assert.InDelta(t, 0.625, a.Mean(4*time.Second), 1e-9)
	assert.InDelta(t, 0.75, a.Mean(6*time.Second), 1e-9)
	assert.InDelta(t, 0.25, a.Mean(time.Millisecond), 1e-9)
	steps := a.Steps(5 * time.Second)
	require.Len(t, steps, 4)
	for i, s := range steps {
		assert.Equal(t, time.Duration(i)*time.Second, s.From)
	}
	assert.Equal(t, 1.0, arrival(t, "poisson").Mean(time.Second))

	down := all(arrival(t, "poisson+ramp:2-1:2:1s"), 9, 3, 10_000, int64(2*time.Second))
	first, _ := slices.BinarySearch(down, int64(time.Second))
	assert.InDelta(t, 20_000, first, 5*math.Sqrt(20_000))
	assert.InDelta(t, 10_000, len(down)-first, 5*math.Sqrt(10_000))
}

func TestArrival_SameSeedSameStream(t *testing.T) {
	for _, text := range []string{"constant", "poisson", "burst:1ms/1ms", "poisson+ramp:1-2:2:1ms"} {
		a := arrival(t, text)
		p := stream.Part{Seed: 11, Producer: 1, Of: 3}
		x, y := a.Times(p, 1e6), a.Times(p, 1e6)
		for range 1000 {
			require.Equal(t, x.Next(), y.Next())
		}
	}
	a := arrival(t, "poisson")
	x := a.Times(stream.Part{Seed: 1, Of: 2}, 1e6)
	for _, other := range []stream.Part{{Seed: 2, Of: 2}, {Seed: 1, Producer: 1, Of: 2}} {
		y := a.Times(other, 1e6)
		same := 0
		for range 100 {
			if x.Next() == y.Next() {
				same++
			}
		}
		assert.Less(t, same, 5)
	}
}

func TestArrival_PeekAndBefore(t *testing.T) {
	for _, text := range []string{"constant", "poisson"} {
		a := arrival(t, text)
		x, y := a.Times(stream.Part{Seed: 1}, 1e6), a.Times(stream.Part{Seed: 1}, 1e6)
		var want int64
		for y.Peek() < 1e6 {
			require.Equal(t, y.Peek(), y.Next())
			want++
		}
		assert.Equal(t, want, x.Before(1e6))
		assert.Zero(t, x.Before(1e6))
		assert.Equal(t, y.Next(), x.Next())
		assert.Equal(t, y.Next(), x.Next())
	}
}

// TestArrival_Exponents: the minus of an exponent is none between FROM and TO.
func TestArrival_Exponents(t *testing.T) {
	for text, want := range map[string]string{
		"ramp:1e-3-1:2:1s": "ramp:0.001-1:2:1s", "ramp:1-1E-3:2:1s": "ramp:1-0.001:2:1s", "ramp:1e-6-1e-2:2:1s": "ramp:0.000001-0.01:2:1s",
		"poisson+ramp:1e+2-2e2:2:1s": "poisson+ramp:100-200:2:1s", "ramp:0x1p-2-1:2:1s": "ramp:0.25-1:2:1s",
	} {
		a, err := stream.ParseArrival(text)
		require.NoError(t, err)
		assert.Equal(t, want, a.String())
	}
	for text, want := range map[string]string{
		"ramp:-1-1:2:1s": `FROM is "-1"`, "ramp:1--1:2:1s": `TO is "-1"`, "ramp:1-2-3:2:1s": `TO is "2-3"`, "ramp:0.5:2:1s": `TO is ""`, "ramp:1e-:2:1s": `FROM is "1e"`,
		"ramp:1e-7-1:2:1s": `FROM is "1e-7"`,
	} {
		_, err := stream.ParseArrival(text)
		assert.ErrorContains(t, err, want)
	}
}

func TestArrival_Refuses(t *testing.T) {
	for _, text := range []string{
		"", "const", "constant:1", "Poisson", "poisson:1", "poisson+", "poisson+constant", "burst", "burst:", "burst:10ms",
		"burst:10ms/0s", "burst:-1ms/1ms", "burst:10/90", "burst:1ms/1ms:3", "ramp:1-2:5", "ramp:0-2:5:1s", "ramp:1-2:1:1s",
		"ramp:1-2:2:0s", "ramp:1-nan:2:1s", "ramp:a-2:2:1s", "burst:10ms/9999999h",
	} {
		_, err := stream.ParseArrival(text)
		require.ErrorIs(t, err, stream.ErrForm, text)
		assert.ErrorContains(t, err, "must be one of constant, poisson, burst:ON/OFF")
		assert.NotContains(t, err.Error(), "%!")
	}
	_, err := stream.ParseArrival("burst:10ms/x")
	assert.ErrorContains(t, err, `OFF is "x": must be a time such as 10ms`)
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		assert.Panics(t, func() { stream.Arrival{}.Times(stream.Part{}, rate) })
	}
}
