package atomicx_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/internal/atomicx"
)

// machine is a clock and a counter that need not go by it.
type machine struct {
	now   float64 // ns since modelEpoch
	count float64
	speed float64 // counts a ns

	right   float64 // the time from which on a Watch has to be right,
	settled float64 // and from which on it has to go by the counter
}

const (
	modelEpoch = 1_700_000_000_000_000_000
	slowest    = 1.01 // counts a ns
	agree      = 128  // counts: by so much a speed may be wrong over a span that two measurements agree on
)

func (m *machine) pass(ns float64) {
	m.now += ns
	m.count += ns * m.speed
}

// disturbed says that the counter has done something that it should not have done. Then a Watch may be wrong until the present
// measurement is over, and, if that is so long that it makes no difference to it, the next one.
func (m *machine) disturbed() {
	span := atomicx.WatchSpan / m.speed
	m.right = m.now + 10.1*span
	m.settled = m.right + 8*span
}

// read is Watch.Now on that machine, in ns since modelEpoch. A look at the clock takes 33 ns, or longer if it is interrupted, and
// reads it at some moment within.
func (m *machine) read(w *atomicx.Watch, within, interrupted float64) (now float64, looked bool) {
	count := uint64(int64(m.count))
	t, ok := w.At(count)
	if !ok {
		takes := 33 + interrupted
		m.pass(takes * within)
		t = modelEpoch + int64(m.now)
		m.pass(takes * (1 - within))
		w.Learn(count, t, uint64(int64(m.count)))
	}
	return float64(t - modelEpoch), !ok
}

// TestWatch_GoesByTheClockWhateverTheCounterDoes has a counter that is steady for long stretches, and then jumps, stops or changes its
// speed. While it is steady the Watch has to be right to 100 ns, and to go by the counter most of the time; after anything else it has
// to be right again once the counter has been steady for a few measurements.
func TestWatch_GoesByTheClockWhateverTheCounterDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		speed := rapid.Float64Range(slowest, 5)
		m := &machine{count: rapid.Float64Range(0, 1e15).Draw(t, "boot"), speed: speed.Draw(t, "speed")}
		m.disturbed()
		w := atomicx.NewModelWatch()
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		steady := func(t *rapid.T) {
			gap := rapid.Float64Range(10, 40_000).Draw(t, "gap")
			reads, looks := 0, 0
			for range rng.IntN(60) { // most of the time until it has settled
				m.pass(18 * atomicx.WatchSpan / m.speed / 50)
				m.read(w, rng.Float64(), 0)
			}
			for range 2000 {
				m.pass(gap * rng.Float64())
				interrupted := 0.0
				if rng.IntN(50) == 0 {
					interrupted = math.Exp(14 * rng.Float64()) // up to 1 ms, and often about as long as a look
				}
				at := m.now
				now, looked := m.read(w, rng.Float64(), interrupted)
				behind, ahead := m.now+1e9, atomicx.WatchSpan/slowest // ahead is never by more than a span, at a speed that there is
				switch {
				case at >= m.settled:
					behind, ahead = 30, 100
				case at >= m.right: // and a measurement that agrees with a false one
					behind, ahead = 30+agree/m.speed, 100+agree/m.speed
				}
				if now < at-behind || now > m.now+ahead {
					t.Fatalf("%.0f ns, between %.0f and %.0f", now, at, m.now)
				}
				if at >= m.settled {
					if reads++; looked {
						looks++
					}
				}
			}
			if reads > 500 {
				require.Less(t, looks, reads/2, "it goes by the counter")
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"steady": steady,
			"again":  steady, // more often than anything else
			"jump": func(t *rapid.T) {
				m.count += rapid.Float64Range(-1e12, 1e12).Draw(t, "by")
				m.disturbed()
			},
			"nudge": func(t *rapid.T) {
				m.count += rapid.Float64Range(-2*atomicx.WatchSpan, 2*atomicx.WatchSpan).Draw(t, "by")
				m.disturbed()
			},
			"stop": func(t *rapid.T) {
				m.now += rapid.Float64Range(0, 1e10).Draw(t, "for")
				m.disturbed()
			},
			"speed": func(t *rapid.T) {
				m.speed = speed.Draw(t, "to")
				m.disturbed()
			},
			"slew": func(t *rapid.T) {
				m.speed = max(slowest, m.speed*(1+rapid.Float64Range(-0.02, 0.02).Draw(t, "by")))
				m.disturbed()
			},
		})
	})
}

// TestWatch_LooksUntilTwoMeasurementsAgree changes the speed of the counter: then a measurement differs from the one before, and as
// long as the next one takes each call looks at the clock.
func TestWatch_LooksUntilTwoMeasurementsAgree(t *testing.T) {
	m, w := &machine{speed: 2}, atomicx.NewModelWatch()
	looks, most := 0, 0
	for i := range 100_000 {
		if i == 50_000 {
			m.speed, most = 2.2, 0
		}
		m.pass(1000)
		if _, looked := m.read(w, 0.5, 0); looked {
			looks++
			most = max(most, looks)
		} else {
			looks = 0
		}
	}
	require.GreaterOrEqual(t, float64(most), 4*atomicx.WatchSpan/(2.2*1033)) // the time from one to the next is 1033 ns
	require.Zero(t, looks)
}

// TestWatch_LooksWhileTheSpeedDrifts has a counter that gets faster all the time, by a thousandth in each span.
func TestWatch_LooksWhileTheSpeedDrifts(t *testing.T) {
	m, w := &machine{speed: 2}, atomicx.NewModelWatch()
	for range 100_000 {
		m.pass(1000)
		m.speed *= 1.000002
		now, _ := m.read(w, 0.5, 0)
		require.InDelta(t, m.now, now, 100)
	}
}

// TestWatch_LeavesASlowCounterAlone has some for which a span would be longer than a millisecond.
func TestWatch_LeavesASlowCounterAlone(t *testing.T) {
	for _, speed := range []float64{0.99, 0.5, 0.05} {
		m, w := &machine{speed: speed}, atomicx.NewModelWatch()
		for range 10_000 {
			m.pass(100_000)
			now, looked := m.read(w, 0.5, 0)
			require.True(t, looked)
			require.InDelta(t, m.now, now, 100)
		}
	}
}
