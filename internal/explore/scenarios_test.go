//go:build explore

package explore_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/leatlog/leat/internal/explore"
)

// boundVariable raises the bound of every scenario, for long runs.
const boundVariable = "LEAT_EXPLORE_BOUND"

// scenario is a scenario over the real packages.
type scenario struct {
	name  string
	bound int // that is completed in every run
	setup func(s *explore.S)
}

// run explores the scenarios. A short run takes one delay less.
func run(t *testing.T, scenarios []scenario) {
	for _, x := range scenarios {
		t.Run(x.name, func(t *testing.T) {
			o := explore.Options{Bound: x.bound, MaxSchedules: 100_000_000}
			if testing.Short() && o.Bound > 2 {
				o.Bound--
			}
			if more, err := strconv.Atoi(os.Getenv(boundVariable)); err == nil {
				o.Bound = more
			}
			explore.Run(t, o, explore.Scenario{Name: x.name, Setup: x.setup})
		})
	}
}

// mutant is a small copy of a protocol with a fault planted in it, and its twin without.
type mutant struct {
	name  string
	kind  explore.Kind
	bound int // at which the fault is found
	wrong func(s *explore.S)
	right func(s *explore.S)
}

// kill makes sure that each planted fault is found, at its bound, and that there is nothing to find in its twin.
func kill(t *testing.T, mutants []mutant) {
	for _, x := range mutants {
		t.Run(x.name, func(t *testing.T) {
			f := explore.MustFail(t, explore.Options{}, explore.Scenario{Name: x.name, Setup: x.wrong}, x.kind)
			if f.Bound != x.bound {
				t.Errorf("found at bound %d, not %d:\n%v", f.Bound, x.bound, f)
			}
			if testing.Verbose() {
				t.Log(f.Trace)
			}
			if x.right != nil {
				explore.Run(t, explore.Options{}, explore.Scenario{Name: x.name + ", the right way", Setup: x.right})
			}
		})
	}
}
