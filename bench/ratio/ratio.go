// Package ratio says how many times one thing is another, on a machine whose cores move about.
//
// On a virtual machine two cores may be 110 ns apart now and 510 ns a second later, and everything that passes from one to the
// other changes with that, up to fifteenfold. So A and B take turns in short slices, the way between the cores is measured
// before and after each slice, and only neighbours that were made on the same machine, so to speak, are divided:
//
//	before := load.ProbePlacement()
//	... the slice ...
//	placed := ratio.Placed{Before: before, After: load.ProbePlacement()}
//
//	for _, g := range ratio.Pair(as, bs, label).Groups {
//		x := g.Of(rate)     // of all pairs with that label: median (min-max)
//		fmt.Println(g.Label, x.Median, x.Min, x.Max, x.N)
//	}
package ratio

import (
	"fmt"
	"slices"

	"github.com/leatlog/leat/bench/load"
)

// Labels are the placements at which slices can be compared, in the order of reports. See load.PlacementLabel; "unknown" is a
// machine with one processor, where no placement changes.
var Labels = []string{"near", "far", "sibling", "unknown"}

// Moved is the label of a slice during which the cores moved.
const Moved = "moved"

// Placed is where the cores were before and after a slice: ns for a word to go to the other core and back.
type Placed struct {
	Before int64 `json:"before_ns"`
	After  int64 `json:"after_ns"`
}

// Label returns the placement, or Moved if it changed meanwhile.
func (p Placed) Label() string {
	if l := load.PlacementLabel(p.Before); l == load.PlacementLabel(p.After) {
		return l
	}
	return Moved
}

// Pairs are the slices that may be compared.
type Pairs[T any] struct {
	Groups  []Group[T] // in the order of Labels; only those that have pairs
	Dropped int        // neighbours that may not be compared: the cores moved, or were busy with something else
}

// Group is the pairs with one label.
type Group[T any] struct {
	Label string
	Pairs [][2]T // a slice of A and a neighbouring slice of B

	// A and B are the slices that are in a pair, each once.
	A, B []T
}

// Pair finds the neighbours with equal labels. The slices were made in the order a[0], b[0], a[1], b[1], ...; each has two
// neighbours, but for the first and the last.
func Pair[T any](a, b []T, label func(T) string) (p Pairs[T]) {
	groups := map[string]*Group[T]{}
	lastA, lastB := map[string]int{}, map[string]int{} // the last slice of a label that is in A and B, plus one
	pair := func(i, j int) {
		l := label(a[i])
		if l != label(b[j]) || !slices.Contains(Labels, l) {
			p.Dropped++
			return
		}
		g := groups[l]
		if g == nil {
			g = &Group[T]{Label: l}
			groups[l] = g
		}
		g.Pairs = append(g.Pairs, [2]T{a[i], b[j]})
		if lastA[l] <= i {
			lastA[l] = i + 1
			g.A = append(g.A, a[i])
		}
		if lastB[l] <= j {
			lastB[l] = j + 1
			g.B = append(g.B, b[j])
		}
	}
	for i := range min(len(a), len(b)) {
		pair(i, i)
		if i+1 < len(a) {
			pair(i+1, i)
		}
	}
	for _, l := range Labels {
		if g := groups[l]; g != nil {
			p.Groups = append(p.Groups, *g)
		}
	}
	return p
}

// Of divides a figure of A by that of B, for each pair. A pair whose B has 0 says nothing and is left out.
func (g *Group[T]) Of(figure func(T) float64) Spread {
	var x []float64
	for _, p := range g.Pairs {
		if b := figure(p[1]); b != 0 {
			x = append(x, figure(p[0])/b)
		}
	}
	return SpreadOf(x)
}

// Spread is what many measurements of one thing say. The zero value says nothing.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

// SpreadOf returns the spread of some values, which it leaves as they are. The median of an even number is the mean of the two
// in the middle.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	x := slices.Sorted(slices.Values(values))
	n := len(x)
	return Spread{Median: (x[(n-1)/2] + x[n/2]) / 2, Min: x[0], Max: x[n-1], N: n}
}

// Each returns the spread of a figure.
func Each[T any](list []T, figure func(T) float64) Spread {
	x := make([]float64, len(list))
	for i, v := range list {
		x[i] = figure(v)
	}
	return SpreadOf(x)
}

// String is median (min-max).
func (s Spread) String() string { return s.In(1) }

// In is String with every value divided by a unit.
func (s Spread) In(unit float64) string {
	return fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median/unit, s.Min/unit, s.Max/unit)
}
