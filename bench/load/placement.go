package load

import (
	"runtime"
	"slices"
	"sync"

	"github.com/leatlog/leat/internal/atomicx"
)

// Placement tells how far apart the two cores were that the run could use: the time in nanoseconds for a word to go to the
// other core and back. On virtual machines this changes from one second to the next, and everything that crosses cores
// changes with it, up to 15x. Compare only runs with equal labels.
type Placement struct {
	Before int64  `json:"before_ns"`
	After  int64  `json:"after_ns"`
	Label  string `json:"label"`
}

// PlacementLabel names a round trip of so many nanoseconds: "sibling" (two threads of one core, below 80 ns), "near" (up to
// 250 ns), "far", or "unknown" (0: one processor only).
func PlacementLabel(ns int64) string {
	switch {
	case ns <= 0:
		return "unknown"
	case ns < 80:
		return "sibling"
	case ns <= 250:
		return "near"
	default:
		return "far"
	}
}

// newPlacement labels a run by the probes before and after it: with one label if they agree, or "a->b".
func newPlacement(before, after int64) Placement {
	p := Placement{Before: before, After: after, Label: PlacementLabel(before)}
	if l := PlacementLabel(after); l != p.Label {
		p.Label += "->" + l
	}
	return p
}

const (
	probeTrips   = 500
	probeBatches = 15
	probeMost    = 50_000_000 // ns
)

// ProbePlacement measures the round trip of a word between two goroutines that spin on threads of their own, in nanoseconds:
// the median of 15 batches. It takes 2 to 10 ms, and returns 0 where two goroutines cannot run at once.
func ProbePlacement() int64 {
	if runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 {
		return 0
	}
	c := newClock()
	var ping, pong atomicx.PaddedUint64 // each written by one side and awaited by the other
	const over = ^uint64(0)
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for i := uint64(1); ; i++ {
			if await(&ping, i, over) == over {
				return
			}
			pong.Store(i)
		}
	})
	var batches []int64
	wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var i uint64
		first := c.now()
		for range probeBatches + 1 {
			from := c.now()
			for range probeTrips {
				i++
				ping.Store(i)
				await(&pong, i, over)
			}
			now := c.now()
			batches = append(batches, (now-from)/probeTrips)
			if now-first > probeMost {
				break
			}
		}
		ping.Store(over)
	})
	wg.Wait()
	if len(batches) > 1 {
		batches = batches[1:] // the first brings the other thread to its core
	}
	slices.Sort(batches)
	return max(batches[len(batches)/2], 1)
}

// await spins until x is want or over, and returns which. It gives way now and then, in case the other side is not running.
func await(x *atomicx.PaddedUint64, want, over uint64) uint64 {
	for turn := 1; ; turn++ {
		if v := x.Load(); v == want || v == over {
			return v
		}
		if turn&(1<<16-1) == 0 {
			runtime.Gosched()
		}
	}
}
