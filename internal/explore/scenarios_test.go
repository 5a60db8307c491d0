//go:build explore

package explore_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

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
			if testing.Short() && o.Bound != explore.Exhaustive {
				o.Bound = max(2, o.Bound-1)
			}
			if more, err := strconv.Atoi(os.Getenv(boundVariable)); err == nil {
				o.Bound = more
			}
			explore.Run(t, o, explore.Scenario{Name: x.name, Setup: x.setup})
		})
	}
}

// mutant is a fault planted in a small copy of a protocol.
type mutant struct {
	fault string
	kind  explore.Kind
	bound int // at which it is found
	setup func(fault string) func(s *explore.S)
	twin  string // what to put in the place of fault so that nothing is wrong
}

// kill makes sure that each planted fault is found, at its bound, and that nothing is found in its twin.
func kill(t *testing.T, mutants []mutant) {
	for _, x := range mutants {
		t.Run(x.fault, func(t *testing.T) {
			o := explore.Options{Bound: max(3, x.bound)}
			f := explore.MustFail(t, o, explore.Scenario{Name: x.fault, Setup: x.setup(x.fault)}, x.kind)
			assert.Equal(t, x.bound, f.Bound, "%v", f)
			res := explore.Run(t, o, explore.Scenario{Name: "not " + x.fault, Setup: x.setup(x.twin)})
			assert.Nil(t, res.Failure)
		})
	}
}
