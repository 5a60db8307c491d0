package ring_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/ring"
)

// A litmus is two operations that are let loose on a fresh ring at the same moment, over and over, and the closed list of
// what may come of it. Each of the listed outcomes must turn up, or the race was never run.
type litmus struct {
	name    string
	prepare func(r *ring.MPSC[message])
	a, b    func(r *ring.MPSC[message]) any
	allowed []string // what a and b returned, and Len
}

func tryClaim(r *ring.MPSC[message]) any { _, o := r.TryClaim(1); return o }
func claimInLine(r *ring.MPSC[message]) any {
	_, o, _ := r.ClaimInLine(1, nil)
	return o
}
func sleep(r *ring.MPSC[message]) any     { return r.Sleep() }
func takeIdle(r *ring.MPSC[message]) any  { return r.TakeIdle() }
func closeRing(r *ring.MPSC[message]) any { return r.Close() }
func releaseOne(r *ring.MPSC[message]) any {
	r.Release(r.Advance(r.Head(), 1))
	return "released"
}

func empty(*ring.MPSC[message])     {}
func asleep(r *ring.MPSC[message])  { r.Sleep() }
func oneLeft(r *ring.MPSC[message]) { r.TryClaim(1) }
func full(r *ring.MPSC[message]) {
	pos, _ := r.TryClaim(2)
	fill(r, pos, 2, 0, 1)
	r.Ready(pos)
}

var litmuses = []litmus{
	{"claim against sleep", empty, tryClaim, sleep,
		[]string{"claimed false 1", "claimed idle true 1"}},
	{"two claims wake once", asleep, tryClaim, tryClaim,
		[]string{"claimed claimed idle 2", "claimed idle claimed 2"}},
	{"claim against take idle", asleep, tryClaim, takeIdle,
		[]string{"claimed idle false 1", "claimed true 1"}},
	{"two take idle", asleep, takeIdle, takeIdle,
		[]string{"true false 0", "false true 0"}},
	{"claim against close", empty, tryClaim, closeRing,
		[]string{"claimed false 1", "closed false 0"}},
	{"claim against close, asleep", asleep, tryClaim, closeRing,
		[]string{"claimed idle false 1", "closed true 0"}},
	{"sleep against close", empty, sleep, closeRing,
		[]string{"true true 0", "false false 0"}},
	{"take idle against close", asleep, takeIdle, closeRing,
		[]string{"true false 0", "false true 0"}},
	{"two closes", asleep, closeRing, closeRing,
		[]string{"true false 0", "false true 0"}},
	{"two claims for one slot", oneLeft, tryClaim, tryClaim,
		[]string{"claimed full 2", "full claimed 2"}},
	{"claim against release", full, tryClaim, releaseOne,
		[]string{"claimed released 2", "full released 1"}},
	{"waiting claim against release", full, claimInLine, releaseOne,
		[]string{"claimed released 2"}},
	{"waiting claim against close", full, claimInLine, closeRing,
		[]string{"closed false 2"}},
	{"two waiting claims against close", full, claimInLine, func(r *ring.MPSC[message]) any {
		var other sync.WaitGroup
		other.Go(func() { claimInLine(r) })
		r.Close()
		other.Wait()
		return "both left"
	}, []string{"closed both left 2"}},
	{"publication", empty, func(r *ring.MPSC[message]) any {
		pos, _ := r.TryClaim(2)
		fill(r, pos, 2, 7, 1)
		r.Ready(pos)
		return "ready"
	}, func(r *ring.MPSC[message]) any {
		if !r.IsReady(0) {
			return "not yet"
		}
		return r.Slot(0, 0).valid() && r.Slot(0, 1).valid() && r.Slot(0, 1).seq == 2
	}, []string{"ready not yet 2", "ready true 2"}},
	{"reuse", full, func(r *ring.MPSC[message]) any {
		pos, o := r.TryClaim(1)
		if o == ring.Claimed {
			fill(r, pos, 1, 7, 5)
		}
		return o
	}, func(r *ring.MPSC[message]) any {
		seq := r.Slot(0, 0).seq
		r.Release(r.Advance(0, 1))
		return seq
	}, []string{"claimed 1 2", "full 1 1"}},
}

// TestMPSC_Litmus runs each pair of operations at the same moment and allows only the outcomes that the proof does.
func TestMPSC_Litmus(t *testing.T) {
	for _, l := range litmuses {
		t.Run(l.name, func(t *testing.T) {
			watchdog(t)
			seen := map[string]int{}
			for trial := 0; trial < rounds(10_000) || len(seen) < len(l.allowed); {
				const batch = 100
				var rings [batch]*ring.MPSC[message]
				var got [batch][2]any
				for i := range rings {
					rings[i] = ring.New[message](2)
					l.prepare(rings[i])
				}
				inStep(batch, func(i int) { got[i][0] = l.a(rings[i]) }, func(i int) { got[i][1] = l.b(rings[i]) })
				for i, r := range rings {
					outcome := fmt.Sprint(got[i][0], " ", got[i][1], " ", r.Len())
					if seen[outcome]++; seen[outcome] == 1 {
						require.Contains(t, l.allowed, outcome)
					}
				}
				trial += batch
			}
			assert.Len(t, seen, len(l.allowed))
			t.Log(seen)
		})
	}
}

// inStep runs a(i) and b(i) on two goroutines, for i from 0 to n, starting the two of each i as nearly together as it can.
func inStep(n int, a, b func(i int)) {
	var at [2]struct {
		atomic.Int64
		_ [120]byte
	}
	run := func(me int, op func(i int)) {
		rng := rand.New(rand.NewPCG(rand.Uint64(), 0))
		for i := range n {
			at[me].Store(int64(i) + 1)
			for turn := 0; at[1-me].Load() <= int64(i); turn++ {
				if turn > 100 {
					runtime.Gosched()
				}
			}
			sometimes(rng, 16)
			for range rng.IntN(40) {
				at[me].Load()
			}
			op(i)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { run(0, a) })
	wg.Go(func() { run(1, b) })
	wg.Wait()
}
