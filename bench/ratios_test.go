package bench_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/bench/ratio"
)

var (
	ratios      = flag.Bool("ratios", false, "run TestRatios: alternating slices of two ways to move messages")
	ratioSlices = flag.Int("ratios.slices", 30, "how many slices of each TestRatios measures")
	ratioSlice  = flag.Duration("ratios.slice", 100*time.Millisecond, "about how long a slice is")
	ratioOf     = flag.String("ratios.of", "leat", "what to compare with the channel: leat, mutexlog or chan (which should give 1)")
)

// slice is one measurement between two probes.
type slice struct {
	ratio.Placed
	rate float64 // messages a second
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
	before := load.ProbePlacement()
	rate := float64(n) / t.pass(n).Seconds()
	return slice{ratio.Placed{Before: before, After: load.ProbePlacement()}, rate}
}

// report divides neighbours with equal labels.
func report(name string, as, bs []slice) string {
	rate := func(s slice) float64 { return s.rate }
	pairs := ratio.Pair(as, bs, func(s slice) string { return s.Label() })
	var out strings.Builder
	for _, g := range pairs.Groups {
		fmt.Fprintf(&out, "%-52s %-7s x %v   %s / %s M msgs/s   (%d pairs)\n", name, g.Label,
			g.Of(rate), ratio.Each(g.A, rate).In(1e6), ratio.Each(g.B, rate).In(1e6), len(g.Pairs))
	}
	if len(pairs.Groups) == 0 {
		fmt.Fprintf(&out, "%-52s no two neighbouring slices had the same placement\n", name)
	}
	if pairs.Dropped > 0 {
		fmt.Fprintf(&out, "%-52s %d pairs dropped: the cores moved, or were busy\n", "", pairs.Dropped)
	}
	return out.String()
}
