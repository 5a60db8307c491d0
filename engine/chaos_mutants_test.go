//go:build mutants

package engine_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/mutant"
)

// How long the chaos may look for a fault.
const (
	mutantSeeds = 60
	mutantTime  = 3 * time.Minute  // some ten times what it takes on a machine that does nothing else
	mutantRun   = 20 * time.Second // the same of one run; a fault may hang one for good, which says nothing about others
)

// TestChaosMutants lets the chaos find each fault of package mutant. That is the proof that it looks, and at what:
//
//	go test -tags mutants ./engine -run TestChaosMutants -v
//
// Each run is a process of its own, since a fault may hang or crash it.
func TestChaosMutants(t *testing.T) {
	if os.Getenv("LEAT_MUTANT") != "" {
		t.Skip("this is one of the runs")
	}
	out, found := chaosProcess(t, background, "", "-chaos.runs", "20")
	require.Empty(t, found, "without any fault:\n%s", out)

	var all sync.WaitGroup
	turns := make(chan struct{}, 2)
	for _, fault := range mutant.All() {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			ctx, cancel := context.WithTimeout(background, mutantTime)
			defer cancel()
			for seed := range mutantSeeds {
				once, cancel := context.WithTimeout(ctx, mutantRun)
				_, found := chaosProcess(t, once, fault, "-chaos.seed", fmt.Sprint(seed+1), "-chaos.wait", "3s")
				ended := once.Err() != nil
				cancel()
				if found != "" && !ended {
					t.Logf("%-20s seed %2d: %s", fault, seed+1, found)
					return
				}
			}
			t.Errorf("%s survived", fault)
		})
	}
	all.Wait()
}

var (
	anomalyLine = regexp.MustCompile(`(?m)^\s+\d+ x (A-\d+ [a-z-]+)$`)
	errorLine   = regexp.MustCompile(`(?m)^\s+Messages:\s+(.*)$|^(panic: .*)$|chaos_\w+_test\.go:\d+: (.+)$`)
)

// chaosProcess runs the chaos with a fault, or none, and returns by what it has failed, or nothing.
func chaosProcess(t testing.TB, ctx context.Context, fault mutant.Fault, args ...string) (output, found string) {
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"-test.run", "^TestChaos$"}, args...)...)
	cmd.Env = append(os.Environ(), "LEAT_MUTANT="+string(fault))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return string(out), ""
	}
	var what []string
	for _, m := range anomalyLine.FindAllSubmatch(out, -1) {
		what = append(what, string(m[1]))
	}
	if len(what) == 0 {
		for _, m := range errorLine.FindAllSubmatch(out, 2) {
			what = append(what, string(m[1])+string(m[2])+string(m[3]))
		}
	}
	if len(what) == 0 {
		what = append(what, err.Error())
	}
	return string(out), strings.Join(what, ", ")
}
