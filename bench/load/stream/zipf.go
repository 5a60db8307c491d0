package stream

import (
	"math"
	"math/rand/v2"
)

// zipfian draws ranks 1 to n, rank r in proportion to r^-s, for any s above 0, in constant time and space. (The generator of
// math/rand wants s above 1, and tables of n entries take long to make.)
//
// It is the rejection-inversion of W. Hoermann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
// distributions" (1996). h(x) = x^-s falls, so that the area below it between r-1/2 and r+1/2 is at least h(r) (it is convex).
// Draw a point of the area below h evenly, by inverting its integral H; it lies in the bar of some rank r. Accept r if the point
// is in the part of the bar, at its right end, that is h(r) large; else draw again. So each rank is accepted with a
// probability that is exactly in proportion to h(r). The first bar is cut to be just h(1) large, since nothing is rejected there.
// Few are rejected, and quick tells most of the accepted ones without looking: it is how far that part of a bar reaches to the
// left of its rank, for the bar of rank 2, and those of the others reach further.
type zipfian struct {
	s     float64
	n     float64
	first float64 // H at the left end of the first bar
	last  float64 // H at the right end of the last one
	quick float64 // if a point is at most this far left of its rank, it is accepted
}

func newZipfian(s float64, n int) zipfian {
	z := zipfian{s: s, n: float64(n)}
	z.first = z.integral(1.5) - 1
	z.last = z.integral(z.n + 0.5)
	z.quick = 2 - z.inverse(z.integral(2.5)-z.h(2))
	return z
}

func (z *zipfian) draw(random *rand.Rand) int {
	for {
		u := z.last + random.Float64()*(z.first-z.last)
		x := z.inverse(u)
		r := min(max(math.Floor(x+0.5), 1), z.n)
		if r-x <= z.quick || u >= z.integral(r+0.5)-z.h(r) {
			return int(r)
		}
	}
}

func (z *zipfian) h(x float64) float64 { return math.Exp(-z.s * math.Log(x)) }

// integral is H(x), the integral of h from 1 to x: (x^(1-s) - 1) / (1-s), or log x for s = 1. Near 1 the plain formula would lose
// all its digits.
func (z *zipfian) integral(x float64) float64 {
	l := math.Log(x)
	return expm1Over((1-z.s)*l) * l
}

// inverse is the inverse of integral.
func (z *zipfian) inverse(y float64) float64 {
	t := max(y*(1-z.s), -1) // rounding could put it below
	return math.Exp(log1pOver(t) * y)
}

// expm1Over is (e^x - 1) / x.
func expm1Over(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Expm1(x) / x
	}
	return 1 + x/2*(1+x/3)
}

// log1pOver is log(1+x) / x.
func log1pOver(x float64) float64 {
	if math.Abs(x) > 1e-8 {
		return math.Log1p(x) / x
	}
	return 1 - x*(0.5-x/3)
}
