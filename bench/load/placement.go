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
// 250 ns), "far" (up to 2 us), "busy" (more: the two threads did not run at the same time, since others wanted the cores), or
// "unknown" (0: one processor only).
func PlacementLabel(ns int64) string {
	switch {
	case ns <= 0:
		return "unknown"
	case ns < 80:
		return "sibling"
	case ns <= 250:
		return "near"
	case ns <= 2000:
		return "far"
	default:
		return "busy"
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

// A probe is many short batches, so that on a busy machine some of them fall into a moment when both threads run.
const (
	probeTrips   = 50
	probeBatches = 160
	probeMost    = 50_000_000 // ns
)

// ProbePlacement measures the round trip of a word between two goroutines that spin on threads of their own, in nanoseconds:
// the lower quartile of 160 batches of 50. It takes 1 to 5 ms on an idle machine, hardly more than 50 ms on one that is busy, and
// returns 0 where two goroutines cannot run at once.
func ProbePlacement() int64 {
	if runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 {
		return 0
	}
	c := NewClock()
	var ping, pong atomicx.PaddedUint64 // each written by one side and awaited by the other
	const over = ^uint64(0)
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for i := uint64(1); ; i++ {
			if v, _ := await(&ping, i, over); v == over {
				return
			}
			pong.Store(i)
		}
	})
	var batches []int64
	wg.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		ping.Store(1)
		await(&pong, 1, over) // the other thread has come
		first := c.Now()
		for i := uint64(2); len(batches) < probeBatches && c.Now()-first < probeMost; {
			from, trips := c.Now(), int64(0)
			for trips < probeTrips {
				ping.Store(i)
				_, turns := await(&pong, i, over)
				i++
				trips++
				// On a machine that is busy a batch may take seconds. Whoever had to give way can as well look at the clock.
				if turns >= giveWay && c.Now()-first > probeMost {
					break
				}
			}
			batches = append(batches, (c.Now()-from)/trips)
		}
		ping.Store(over)
	})
	wg.Wait()
	slices.Sort(batches)
	return max(batches[len(batches)/4], 1)
}

// giveWay is after how many turns await lets others run.
const giveWay = 1 << 16

// await spins until x is want or over, and returns which, and after how many turns. It gives way now and then, in case the other
// side is not running.
func await(x *atomicx.PaddedUint64, want, over uint64) (v uint64, turns int) {
	for turns = 1; ; turns++ {
		if v = x.Load(); v == want || v == over {
			return v, turns
		}
		if turns%giveWay == 0 {
			runtime.Gosched()
		}
	}
}
