package ratio_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/ratio"
)

type slice struct {
	ratio.Placed
	rate float64
}

func label(s slice) string           { return s.Label() }
func rate(s slice) float64           { return s.rate }
func mk(b, a int64, r float64) slice { return slice{ratio.Placed{Before: b, After: a}, r} }

func TestPlaced_Label(t *testing.T) {
	for _, x := range []struct {
		before, after int64
		want          string
	}{
		{110, 240, "near"}, {260, 1900, "far"}, {79, 10, "sibling"}, {0, 0, "unknown"}, {2001, 9000, "busy"},
		{110, 510, ratio.Moved}, {0, 110, ratio.Moved},
	} {
		assert.Equal(t, x.want, ratio.Placed{Before: x.before, After: x.after}.Label())
	}
}

// TestPair_DividesOnlyWhatIsComparable checks the arithmetic on slices that are made up.
func TestPair_DividesOnlyWhatIsComparable(t *testing.T) {
	p := ratio.Pair(
		[]slice{mk(110, 120, 30), mk(110, 120, 20), mk(500, 510, 5), mk(110, 500, 99)},
		[]slice{mk(110, 120, 10), mk(500, 510, 10), mk(500, 510, 10), mk(110, 120, 1)}, label)
	// Pairs: near 30/10 and 20/10, far 5/10 twice. Dropped: near with far, moved with far, moved with near.
	require.Len(t, p.Groups, 2)
	assert.Equal(t, 3, p.Dropped)

	near, far := p.Groups[0], p.Groups[1]
	assert.Equal(t, "near", near.Label)
	assert.Equal(t, ratio.Spread{Median: 2.5, Min: 2, Max: 3, N: 2}, near.Of(rate))
	assert.Equal(t, ratio.Spread{Median: 25, Min: 20, Max: 30, N: 2}, ratio.Each(near.A, rate))
	assert.Equal(t, ratio.Spread{Median: 10, Min: 10, Max: 10, N: 1}, ratio.Each(near.B, rate), "it is in two pairs and counts once")

	assert.Equal(t, "far", far.Label)
	assert.Equal(t, ratio.Spread{Median: .5, Min: .5, Max: .5, N: 2}, far.Of(rate))
	assert.Len(t, far.A, 1)
	assert.Len(t, far.B, 2)
}

func TestPair_BusySlicesCompareWithNothing(t *testing.T) {
	p := ratio.Pair([]slice{mk(9000, 9000, 1)}, []slice{mk(9000, 9000, 1)}, label)
	assert.Empty(t, p.Groups)
	assert.Equal(t, 1, p.Dropped)
}

func TestPair_NoneAndOddNumbers(t *testing.T) {
	assert.Empty(t, ratio.Pair(nil, nil, label).Groups)
	p := ratio.Pair([]slice{mk(0, 0, 6), mk(0, 0, 9)}, []slice{mk(0, 0, 3)}, label)
	require.Len(t, p.Groups, 1)
	assert.Equal(t, ratio.Spread{Median: 2.5, Min: 2, Max: 3, N: 2}, p.Groups[0].Of(rate), "the last of A has one neighbour")
}

func TestGroup_OfNothing(t *testing.T) {
	p := ratio.Pair([]slice{mk(0, 0, 6)}, []slice{mk(0, 0, 0)}, label)
	assert.Zero(t, p.Groups[0].Of(rate))
}

func TestSpreadOf(t *testing.T) {
	assert.Zero(t, ratio.SpreadOf(nil))
	x := []float64{3, 1, 2}
	assert.Equal(t, ratio.Spread{Median: 2, Min: 1, Max: 3, N: 3}, ratio.SpreadOf(x))
	assert.Equal(t, []float64{3, 1, 2}, x)
	assert.Equal(t, "2.00 (1.00-3.00)", ratio.SpreadOf(x).String())
	assert.Equal(t, "0.20 (0.10-0.30)", ratio.SpreadOf(x).In(10))
}
