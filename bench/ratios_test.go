package bench_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leatlog/leat/bench/load"
)

var (
	ratios      = flag.Bool("ratios", false, "run TestRatios: alternating slices of two ways to move messages")
	ratioSlices = flag.Int("ratios.slices", 30, "how many slices of each TestRatios measures")
	ratioSlice  = flag.Duration("ratios.slice", 100*time.Millisecond, "about how long a slice is")
	ratioOf     = flag.String("ratios.of", "leat", "what to compare with the channel: leat, mutexlog or chan (which should give 1)")
)

// slice is one measurement between two probes.
type slice struct {
	before, after int64   // ns for a word to the other core and back
	rate          float64 // messages a second
}

// label is the placement, or "moved" if the cores moved meanwhile.
func (s slice) label() string {
	if l := load.PlacementLabel(s.before); l == load.PlacementLabel(s.after) {
		return l
	}
	return "moved"
}

// TestRatios prints how many times faster than a channel Leat is, for the flows that matter. The two take turns in short slices
// in one process; before and after each slice the way between the cores is measured; only neighbouring slices with the same
// label at all four probes are divided. It asserts nothing about times.
//
//	go test ./bench -run 'TestRatios$' -ratios -v
//	go test ./bench -run 'TestRatios$/producers=3' -ratios -ratios.slices 100 -v
func TestRatios(t *testing.T) {
	if !*ratios {
		t.Log("give -ratios to measure")
		return
	}
	for _, f := range []struct {
		name string
		flow
	}{
		{"producers=1/readers=1", flow{producers: 1, consumers: 1}},
		{"producers=3/readers=1", flow{producers: 3, consumers: 1}},
		{"producers=1/readers=3", flow{producers: 1, consumers: 3}},
		{"producers=1/subscribers=1", flow{producers: 1, consumers: 1, push: true}},
	} {
		for _, i := range impls() {
			if i.name == *ratioOf && i.can(f.flow) {
				t.Run(fmt.Sprintf("%s/%v", f.name, i), func(t *testing.T) { compare(t, f.name, i, f.flow) })
			}
		}
	}
}

// compare takes the turns and prints one line for each label.
func compare(t *testing.T, name string, i impl, f flow) {
	a, b := start(t, i, f, warm), start(t, impl{name: "chan", open: openChan}, f, warm)
	defer a.close()
	defer b.close()
	na, nb := calibrate(a), calibrate(b)
	var as, bs []slice
	for range *ratioSlices {
		as = append(as, measureSlice(a, na))
		bs = append(bs, measureSlice(b, nb))
	}
	fmt.Print(report(fmt.Sprintf("%s/%v", name, i), as, bs))
}

// calibrate returns how many messages make a slice.
func calibrate(t *traffic) uint64 {
	return max(uint64(float64(warm)*float64(*ratioSlice)/float64(t.pass(warm))), 1000)
}

func measureSlice(t *traffic, n uint64) slice {
	s := slice{before: load.ProbePlacement()}
	s.rate = float64(n) / t.pass(n).Seconds()
	s.after = load.ProbePlacement()
	return s
}

// report divides neighbours with equal labels.
func report(name string, as, bs []slice) string {
	type group struct{ ratios, a, b []float64 }
	groups := map[string]*group{}
	dropped := 0
	pair := func(a, b slice) {
		l := a.label()
		if l == "moved" || l == "busy" || l != b.label() {
			dropped++
			return
		}
		g := groups[l]
		if g == nil {
			g = &group{}
			groups[l] = g
		}
		g.ratios = append(g.ratios, a.rate/b.rate)
		g.a, g.b = append(g.a, a.rate), append(g.b, b.rate)
	}
	for i := range as {
		pair(as[i], bs[i])
		if i+1 < len(as) {
			pair(as[i+1], bs[i]) // the next neighbour on the other side
		}
	}
	var out strings.Builder
	for _, l := range []string{"near", "far", "sibling", "unknown"} {
		if g := groups[l]; g != nil {
			fmt.Fprintf(&out, "%-52s %-7s x %s   %s / %s M msgs/s   (%d pairs)\n", name, l,
				spread(g.ratios, 1), spread(g.a, 1e6), spread(g.b, 1e6), len(g.ratios))
		}
	}
	if len(groups) == 0 {
		fmt.Fprintf(&out, "%-52s no two neighbouring slices had the same placement\n", name)
	}
	if dropped > 0 {
		fmt.Fprintf(&out, "%-52s %d pairs dropped: the cores moved, or were busy\n", "", dropped)
	}
	return out.String()
}

// spread is median (min-max).
func spread(x []float64, unit float64) string {
	x = slices.Clone(x)
	slices.Sort(x)
	return fmt.Sprintf("%.2f (%.2f-%.2f)", x[len(x)/2]/unit, x[0]/unit, x[len(x)-1]/unit)
}

// TestRatios_DivideOnlyWhatIsComparable checks the arithmetic on slices that are made up.
func TestRatios_DivideOnlyWhatIsComparable(t *testing.T) {
	near, far, moved := [2]int64{110, 120}, [2]int64{500, 510}, [2]int64{110, 500}
	mk := func(p [2]int64, rate float64) slice { return slice{p[0], p[1], rate} }
	got := report("a / b",
		[]slice{mk(near, 30e6), mk(near, 20e6), mk(far, 5e6), mk(moved, 99e6)},
		[]slice{mk(near, 10e6), mk(far, 10e6), mk(far, 10e6), mk(near, 1e6)})
	// Pairs: near 30/10, near 20/10, far 5/10 twice; dropped: near with far, moved with far, moved with near.
	for _, want := range []string{"near    x 3.00 (2.00-3.00)", "far     x 0.50 (0.50-0.50)", "(2 pairs)", "3 pairs dropped"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from:\n%s", want, got)
		}
	}
}
