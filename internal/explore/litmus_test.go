//go:build explore

package explore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// all searches a scenario to its end.
var all = explore.Options{Bound: explore.Exhaustive}

// litmus is a tiny program with a closed set of outcomes, all of which must come, and no others.
type litmus struct {
	name      string
	setup     func(s *explore.S)
	outcomes  []string
	schedules int // how many there must be, if that can be told by hand; 0 otherwise
}

var litmuses = []litmus{{
	// Two stores against two loads, in order: 4!/(2!2!) schedules.
	name: "message passing",
	setup: func(s *explore.S) {
		var data, flag atomicx.Uint64
		var f, d uint64
		s.Go("writer", func() { data.Store(1); flag.Store(1) })
		s.Go("reader", func() { f = flag.Load(); d = data.Load() })
		s.Finally(func() error { s.Outcome("flag=%d data=%d", f, d); return nil })
	},
	outcomes:  []string{"flag=0 data=0", "flag=0 data=1", "flag=1 data=1"},
	schedules: 6,
}, {
	name: "message passing with release stores",
	setup: func(s *explore.S) {
		var data, flag atomicx.Uint64
		var f, d uint64
		s.Go("writer", func() { atomicx.StoreRelease(&data, 1); atomicx.StoreRelease(&flag, 1) })
		s.Go("reader", func() { f = flag.Load(); d = data.Load() })
		s.Finally(func() error { s.Outcome("flag=%d data=%d", f, d); return nil })
	},
	outcomes:  []string{"flag=0 data=0", "flag=0 data=1", "flag=1 data=1"},
	schedules: 6, // the two flushes against the two loads
}, {
	name:      "store buffering",
	setup:     storeBuffering((*atomicx.Uint64).Store),
	outcomes:  []string{"0 1", "1 0", "1 1"},
	schedules: 6,
}, {
	name:     "store buffering with release stores",
	setup:    storeBuffering(atomicx.StoreRelease),
	outcomes: []string{"0 0", "0 1", "1 0", "1 1"},
}, {
	name: "store buffering with release stores and a barrier",
	setup: storeBuffering(func(x *atomicx.Uint64, v uint64) {
		atomicx.StoreRelease(x, v)
		var barrier atomicx.Uint32
		barrier.Add(1)
	}),
	outcomes: []string{"0 1", "1 0", "1 1"},
}, {
	name: "a thread sees its own release store at once",
	setup: func(s *explore.S) {
		var x atomicx.Uint64
		var own, other uint64
		s.Go("writer", func() {
			atomicx.StoreRelease(&x, 1)
			atomicx.StoreRelease(&x, 2)
			own = x.Load()
		})
		s.Go("reader", func() { other = x.Load() })
		s.Finally(func() error { s.Outcome("own %d other %d end %d", own, other, x.Load()); return nil })
	},
	outcomes: []string{"own 2 other 0 end 2", "own 2 other 1 end 2", "own 2 other 2 end 2"},
}, {
	name: "load buffering",
	setup: func(s *explore.S) {
		var x, y atomicx.Uint64
		var a, b uint64
		s.Go("one", func() { a = x.Load(); atomicx.StoreRelease(&y, 1) })
		s.Go("two", func() { b = y.Load(); atomicx.StoreRelease(&x, 1) })
		s.Finally(func() error { s.Outcome("%d %d", a, b); return nil })
	},
	outcomes: []string{"0 0", "0 1", "1 0"},
}, {
	// Two writers, two readers that must agree on the order: 6!/(2!2!) schedules.
	name:      "independent reads of independent writes",
	setup:     independentReads((*atomicx.Uint64).Store),
	outcomes:  independentOutcomes,
	schedules: 180,
}, {
	name:     "independent reads of independent release stores",
	setup:    independentReads(atomicx.StoreRelease),
	outcomes: independentOutcomes,
}, {
	name: "counter without CAS",
	setup: func(s *explore.S) {
		var x atomicx.Uint64
		for _, name := range []string{"one", "two"} {
			s.Go(name, func() { x.Store(x.Load() + 1) })
		}
		s.Finally(func() error { s.Outcome("%d", x.Load()); return nil })
	},
	outcomes:  []string{"1", "2"},
	schedules: 6,
}, {
	name: "counter with CAS",
	setup: func(s *explore.S) {
		var x atomicx.Uint64
		for _, name := range []string{"one", "two", "three"} {
			s.Go(name, func() {
				for {
					if old := x.Load(); x.CompareAndSwap(old, old+1) {
						return
					}
				}
			})
		}
		s.Finally(func() error { s.Outcome("%d", x.Load()); return nil })
	},
	outcomes: []string{"3"},
}, {
	// Three threads of one operation each: 3! schedules.
	name: "three adds",
	setup: func(s *explore.S) {
		var x atomicx.Int64
		var seen [3]int64
		for i := range seen {
			s.Go(fmt.Sprint(i), func() { seen[i] = x.Add(1) })
		}
		s.Finally(func() error { s.Outcome("%v", seen); return nil })
	},
	outcomes:  []string{"[1 2 3]", "[1 3 2]", "[2 1 3]", "[2 3 1]", "[3 1 2]", "[3 2 1]"},
	schedules: 6,
}, {
	// Each thread: lock, load, store, unlock. The unlock is no step. Who holds the lock first runs alone to the end of its
	// section, but the other may be chosen to wait for it at no step at all: 2 schedules.
	name: "mutual exclusion",
	setup: func(s *explore.S) {
		var mu atomicx.Mutex
		var x atomicx.Uint64
		var plain atomicx.Cell[int]
		for _, name := range []string{"one", "two"} {
			s.Go(name, func() {
				mu.Lock()
				defer mu.Unlock()
				x.Store(x.Load() + 1)
				plain.Set(plain.Get() + 1)
			})
		}
		s.Finally(func() error { s.Outcome("%d %d", x.Load(), plain.Get()); return nil })
	},
	outcomes:  []string{"2 2"},
	schedules: 2,
}, {
	name: "park after unpark and before it",
	setup: func(s *explore.S) {
		p := atomicx.NewParker()
		var x atomicx.Cell[int]
		var seen int
		s.Go("sleeper", func() { p.Park(nil); seen = x.Get() })
		s.Go("waker", func() { x.Set(1); p.Unpark() })
		s.Finally(func() error { s.Outcome("%d", seen); return nil })
	},
	outcomes:  []string{"1"},
	schedules: 1,
}, {
	name: "token against done",
	setup: func(s *explore.S) {
		p := atomicx.NewParker()
		done := make(chan struct{})
		var woken, left bool
		s.Go("sleeper", func() { woken = p.Park(done) })
		s.Go("waker", func() { p.Unpark() })
		s.Go("canceller", func() { s.Close(done) })
		s.Finally(func() error {
			if !woken {
				left = p.Park(closedChannel()) // either may win
				p.Unpark()
			}
			_ = left
			s.Outcome("woken %v", woken)
			return nil
		})
	},
	outcomes: []string{"woken false", "woken true"},
}, {
	// A spinner that looks, relaxes, and looks again: it runs first and looks twice, or it runs second and looks once.
	name: "a loop that relaxes",
	setup: func(s *explore.S) {
		var flag atomicx.Bool
		var looks int
		s.Go("spinner", func() {
			for looks = 1; !flag.Load(); looks++ {
				atomicx.Relax(uint32(looks))
			}
		})
		s.Go("setter", func() { flag.Store(true) })
		s.Finally(func() error { s.Outcome("%d", looks); return nil })
	},
	outcomes: []string{"1", "2"},
}, {
	name: "choose",
	setup: func(s *explore.S) {
		var got [2]int
		s.Go("one", func() { got = [2]int{s.Choose(2), s.Choose(3)} })
		s.Finally(func() error { s.Outcome("%v", got); return nil })
	},
	outcomes:  []string{"[0 0]", "[0 1]", "[0 2]", "[1 0]", "[1 1]", "[1 2]"},
	schedules: 6,
}, {
	name: "the clock stands still",
	setup: func(s *explore.S) {
		clock := atomicx.NewClock()
		start := clock.Now()
		var x atomicx.Uint64
		var seen int64
		s.Go("reader", func() { x.Load(); seen = clock.Now() - start })
		s.Go("time", func() { s.Advance(5); s.Advance(2) })
		s.Finally(func() error { s.Outcome("%d", seen); return nil })
	},
	outcomes:  []string{"0", "5", "7"},
	schedules: 3,
}}

func closedChannel() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}

func storeBuffering(store func(*atomicx.Uint64, uint64)) func(*explore.S) {
	return func(s *explore.S) {
		var x, y atomicx.Uint64
		var a, b uint64
		s.Go("one", func() { store(&x, 1); a = y.Load() })
		s.Go("two", func() { store(&y, 1); b = x.Load() })
		s.Finally(func() error { s.Outcome("%d %d", a, b); return nil })
	}
}

func independentReads(store func(*atomicx.Uint64, uint64)) func(*explore.S) {
	return func(s *explore.S) {
		var x, y atomicx.Uint64
		var a, b [2]uint64
		s.Go("x", func() { store(&x, 1) })
		s.Go("y", func() { store(&y, 1) })
		s.Go("xy", func() { a[0] = x.Load(); a[1] = y.Load() })
		s.Go("yx", func() { b[0] = y.Load(); b[1] = x.Load() })
		s.Finally(func() error { s.Outcome("%d%d %d%d", a[0], a[1], b[0], b[1]); return nil })
	}
}

// independentOutcomes are all but "10 10", where the readers disagree about which came first.
var independentOutcomes = func() (set []string) {
	for i := range 16 {
		if o := fmt.Sprintf("%d%d %d%d", i>>3, i>>2&1, i>>1&1, i&1); o != "10 10" {
			set = append(set, o)
		}
	}
	return set
}()

func TestLitmus(t *testing.T) {
	for _, l := range litmuses {
		t.Run(l.name, func(t *testing.T) {
			res := explore.Run(t, all, explore.Scenario{Name: l.name, Setup: l.setup})
			assert.True(t, res.Complete)
			assert.Equal(t, l.outcomes, res.OutcomeSet())
			if l.schedules != 0 {
				assert.Equal(t, l.schedules, res.Schedules())
			}
		})
	}
}

// TestLitmus_BoundsAreMonotonic makes sure that raising the bound by steps ends with the same schedules as no bound at all, and that one
// search to a bound knows of each bound below it what a search to that knows.
func TestLitmus_BoundsAreMonotonic(t *testing.T) {
	for _, l := range litmuses {
		sc := explore.Scenario{Name: l.name, Setup: l.setup}
		whole := explore.Run(t, all, sc)
		steps := explore.Check(explore.Options{Bound: 64}, sc)
		require.True(t, steps.Complete, l.name)
		for _, bound := range []int{1, 2, 3, 64} {
			o := explore.Options{Bound: bound}
			once, steps := explore.Run(t, o, sc), explore.Check(o, sc)
			require.Equal(t, steps.Bounds, once.Bounds, l.name)
			require.Equal(t, steps.Outcomes, once.Outcomes, l.name)
			require.Equal(t, steps.Complete, once.Complete, l.name)
			require.Equal(t, steps.MaxSteps, once.MaxSteps, l.name)
			require.Equal(t, once.Bounds[len(once.Bounds)-1].Schedules, once.Schedules(), l.name)
		}
		last := 0
		for _, b := range steps.Bounds {
			require.GreaterOrEqual(t, b.Schedules, last, l.name)
			last = b.Schedules
		}
		require.Equal(t, whole.Schedules(), last, l.name)
		require.Equal(t, whole.Outcomes, steps.Outcomes, l.name)
	}
}

// TestRandom_FindsTheOutcomes runs the litmus programs at random: no outcome may come that the whole search does not know,
// and of these small programs all do come.
func TestRandom_FindsTheOutcomes(t *testing.T) {
	for _, l := range litmuses {
		res := explore.Run(t, explore.Options{Random: 3000, Seed: 7}, explore.Scenario{Name: l.name, Setup: l.setup})
		assert.Equal(t, l.outcomes, res.OutcomeSet(), l.name)
		assert.Equal(t, 3000, res.Schedules())
	}
}

func TestMutex_TryLock(t *testing.T) {
	setup := func(s *explore.S) {
		var mu atomicx.Mutex
		var x atomicx.Uint64
		var got bool
		var seen uint64
		s.Go("holder", func() { mu.Lock(); x.Store(1); mu.Unlock() })
		s.Go("trier", func() {
			seen = x.Load()
			if got = mu.TryLock(); got {
				mu.Unlock()
			}
		})
		s.Finally(func() error { s.Outcome("x %d got %v", seen, got); return nil })
	}
	o := all
	o.TryLock = true
	res := explore.Run(t, o, explore.Scenario{Name: "trylock", Setup: setup})
	assert.Equal(t, []string{"x 0 got false", "x 0 got true", "x 1 got false", "x 1 got true"}, res.OutcomeSet())
	explore.MustFail(t, all, explore.Scenario{Name: "trylock", Setup: setup}, explore.Panic)
}

// TestRelax_Politeness makes sure that giving way without waiting for anything is no deadlock.
func TestRelax_Politeness(t *testing.T) {
	explore.Run(t, all, explore.Scenario{Name: "polite", Setup: func(s *explore.S) {
		var x atomicx.Uint64
		s.Go("one", func() {
			for range 3 {
				x.Load()
				atomicx.Yield()
			}
		})
		s.Go("two", func() { x.Load(); atomicx.Yield(); atomicx.Yield() })
	}})
}

// TestShims_OutsideAScenario makes sure that goroutines that are no part of a scenario are left alone while one runs.
func TestShims_OutsideAScenario(t *testing.T) {
	var x atomicx.Uint64
	var mu atomicx.Mutex
	p := atomicx.NewParker()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := uint64(1); ; i++ {
			mu.Lock()
			x.Add(1)
			atomicx.StoreRelease(&x, i)
			atomicx.Relax(0)
			mu.Unlock()
			p.Unpark()
			p.Park(nil)
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	res := explore.Run(t, explore.Options{Bound: 4}, explore.Scenario{Name: "alone", Setup: litmuses[0].setup})
	assert.Equal(t, 6, res.Bounds[len(res.Bounds)-1].Schedules)
	close(stop)
	<-ended
	assert.NotZero(t, x.Load())
}

var errEnd = errors.New("end state")
