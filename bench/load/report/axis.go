package report

import (
	"fmt"
	"math"
)

// axis maps values to 0..1.
type axis struct {
	log      bool
	low, top float64
	ticks    []tick
}

type tick struct {
	at    float64
	label string
}

// at returns where a value is, from 0 to 1 if it is on the axis.
func (a axis) at(v float64) float64 {
	if a.log {
		return (math.Log10(max(v, 1e-300)) - math.Log10(a.low)) / (math.Log10(a.top) - math.Log10(a.low))
	}
	return (v - a.low) / (a.top - a.low)
}

// linear makes an axis from 0, with up to about six ticks, at 1, 2 or 5 times a power of ten that is at least finest.
func linear(top, finest float64, label func(float64) string) axis {
	if !(top > 0) {
		top = 1
	}
	step := max(math.Pow(10, math.Floor(math.Log10(top/4))), finest)
	for top/step > 5 {
		switch {
		case top/step <= 10:
			step *= 2
		case top/step <= 25:
			step *= 5
		default:
			step *= 10
		}
	}
	a := axis{top: step * math.Ceil(top/step*0.9999)}
	for i := 0; float64(i)*step <= a.top*1.0001; i++ {
		a.ticks = append(a.ticks, tick{float64(i) * step, label(float64(i) * step)})
	}
	return a
}

// seconded makes an axis of time that ends where the data do.
func seconded(top float64) axis {
	a := linear(top, 0, func(v float64) string { return seconds(v) })
	for len(a.ticks) > 2 && a.ticks[len(a.ticks)-1].at > top {
		a.ticks = a.ticks[:len(a.ticks)-1]
	}
	a.top = max(top, a.ticks[len(a.ticks)-1].at)
	return a
}

// logarithmic makes an axis whose ends are 1, 2 or 5 times a power of ten, at or beyond what there is.
func logarithmic(low, top float64, label func(float64) string) axis {
	if !(low > 0) || !(top >= low) {
		low, top = 1, 10
	}
	a := axis{log: true, low: steps(low*1.0001, false), top: steps(top*0.9999, true)}
	if a.top < a.low*4 { // so little would be blown up to look like much
		a.low, a.top = steps(a.low*0.9, false), steps(a.top*1.1, true)
	}
	decades := math.Log10(a.top / a.low)
	for e := math.Floor(math.Log10(a.low)); e <= math.Ceil(math.Log10(a.top)); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, e)
			if v < a.low*0.999 || v > a.top*1.001 || m > 1 && decades > 2.5 || decades > 8 && int(e)%2 != 0 {
				continue
			}
			a.ticks = append(a.ticks, tick{v, label(v)})
		}
	}
	return a
}

// steps returns 1, 2 or 5 times a power of ten: the largest at or below v, or the smallest at or above it.
func steps(v float64, up bool) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	ms := []float64{1, 2, 5, 10}
	if up {
		for _, m := range ms {
			if m*power >= v*0.99999 {
				return m * power
			}
		}
	}
	best := power
	for _, m := range ms {
		if m*power <= v*1.00001 {
			best = m * power
		}
	}
	return best
}

// nines makes the axis of percentiles: 1/(1-p) up to the number of samples.
func nines(samples float64) axis {
	a := axis{log: true, low: 1, top: max(samples, 100)}
	a.ticks = []tick{{1, "0%"}, {2, "50%"}}
	for n, v := 1, 10.0; v <= a.top*1.001; n, v = n+1, v*10 {
		a.ticks = append(a.ticks, tick{v, percentile(1 - 1/v)})
	}
	return a
}

// number writes a coordinate.
func number(v float64) string { return fmt.Sprintf("%.1f", v) }
