package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestShift_Ends checks against a slow reading of the definition: the band is all shifts at which the rank test does not reject.
func TestShift_Ends(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		a, b := make([]float64, 12), make([]float64, 15)
		for i := range a {
			a[i] = math.Exp(r.NormFloat64())
		}
		for i := range b {
			b[i] = 2 * math.Exp(r.NormFloat64())
		}
		c, ok := shift(a, b)
		assert.True(t, ok)
		x, y := logs(a), logs(b)
		limit := 1e-9 + deviations*math.Sqrt(spread(x, y))*math.Sqrt(12*15*28.0/12)
		rejects := func(by float64) bool {
			above := 0.0
			for _, u := range x {
				for _, v := range y {
					if v-u > math.Log1p(by) {
						above++
					}
				}
			}
			return math.Abs(above-12*15/2.0) > limit
		}
		if limit >= 12*15/2.0 {
			continue
		}
		assert.True(t, rejects(c.low-1e-9*(1+c.low)))
		assert.False(t, rejects(c.low+1e-9*(1+c.low)))
		assert.True(t, rejects(c.high+1e-9*(1+c.high)))
		assert.False(t, rejects(c.high-1e-9*(1+c.high)))
		assert.False(t, rejects(c.by))
	}
}

func TestShift_Simple(t *testing.T) {
	_, ok := shift(make([]float64, 7), make([]float64, 100))
	assert.False(t, ok)
	same := []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	c, ok := shift(same, same)
	assert.True(t, ok)
	assert.Equal(t, change{}, c)
	long := make([]float64, 10_001)
	for i := range long {
		long[i] = 1 + float64(i%7)
	}
	assert.LessOrEqual(t, len(logs(long)), blocks)
	assert.InDelta(t, math.Log(5040)/7, logs(long)[0], 0.05)
}

func TestSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	series := func(memory float64) (s []float64) {
		x := 0.0
		for range 2000 {
			x = memory*x + r.NormFloat64()
			s = append(s, x)
		}
		return s
	}
	assert.InDelta(t, 1, spread(series(0), series(0)), 0.15)
	assert.InDelta(t, 3, spread(series(0.5), series(0.5)), 0.6)
	assert.Equal(t, 1.0, spread([]float64{2, 2, 2}))
	assert.Equal(t, 1.0, spread([]float64{1, 9, 2, 8, 1, 9}))
}
