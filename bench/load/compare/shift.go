package compare

import (
	"math"
	"slices"
)

const (
	// deviations is how many standard deviations a band has to each side: a change within noise is outside once in about 370.
	deviations = 3
	// fewest is how many windows a run must have for a band; with fewer, no order of them would be unlikely enough.
	fewest = 8
	// blocks is the most windows that are compared with each other; more are put together first.
	blocks = 100
)

// change is by how much B differs from A, as a fraction of A: 0.2 is 20 % more.
type change struct {
	by, low, high float64
}

// shift compares windows of B with windows of A. All values are above 0. Without enough of them it returns false.
func shift(a, b []float64) (change, bool) {
	if len(a) < fewest || len(b) < fewest {
		return change{}, false
	}
	x, y := logs(a), logs(b)
	wider := math.Sqrt(spread(x, y))
	pairs := make([]float64, 0, len(x)*len(y))
	for _, u := range x {
		for _, v := range y {
			pairs = append(pairs, v-u)
		}
	}
	slices.Sort(pairs)
	n, m := float64(len(x)), float64(len(y))
	// Under the null hypothesis the number of pairs above 0 has this mean and deviation; the band is all shifts for which the
	// number of pairs above is not further from the mean than so many deviations. With few windows that may be all of them: then
	// it takes that every window of the one run is above every window of the other, which chance does to 8 and 8 of them once in
	// 6,435.
	k := max(int(math.Floor(n*m/2-deviations*wider*math.Sqrt(n*m*(n+m+1)/12))), 0)
	return change{math.Expm1(middle(pairs)), math.Expm1(pairs[k]), math.Expm1(pairs[len(pairs)-1-k])}, true
}

// middle is the median of a sorted list.
func middle(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func median(list []float64) float64 { return middle(slices.Sorted(slices.Values(list))) }

// logs returns the logarithms, neighbours put together so that there are not too many.
func logs(list []float64) []float64 {
	per := (len(list) + blocks - 1) / blocks
	var out []float64
	for part := range slices.Chunk(list, per) {
		sum := 0.0
		for _, v := range part {
			sum += math.Log(v)
		}
		if len(part) == per { // an odd rest would weigh too much
			out = append(out, sum/float64(per))
		}
	}
	return out
}

// spread is how many times larger the variance of a mean is than if windows knew nothing of their neighbours: (1+r) / (1-r), where r
// is how much of its distance from the median a window hands on to the next. It goes by ranks, and is never below 1.
func spread(series ...[]float64) float64 {
	var with, all float64
	n := 0
	for _, s := range series {
		r := ranks(s)
		for i, v := range r {
			all += v * v
			if i > 0 {
				with += v * r[i-1]
			}
		}
		n += len(s)
	}
	if all == 0 {
		return 1
	}
	r := with/all + float64(len(series))/float64(n) // what is estimated from few is too low by about one in so many
	r = min(max(r, 0), 0.9)
	return (1 + r) / (1 - r)
}

// ranks returns the ranks of the values, from -1 to 1, equal ones sharing theirs.
func ranks(list []float64) []float64 {
	sorted := slices.Sorted(slices.Values(list))
	out := make([]float64, len(list))
	for i, v := range list {
		first, _ := slices.BinarySearch(sorted, v)
		end := first
		for end < len(sorted) && sorted[end] == v {
			end++
		}
		out[i] = float64(first+end)/float64(len(list)) - 1
	}
	return out
}
