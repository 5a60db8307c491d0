//go:build explore

package explore_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// fault is a scenario that is wrong, and how.
type fault struct {
	name  string
	kind  explore.Kind
	bound int    // at which it must be found
	says  string // in the reason
	setup func(s *explore.S)
}

var faults = []fault{{
	name: "race", kind: explore.Race, bound: 0, says: "two reads plain memory that one writes",
	setup: func(s *explore.S) {
		var x atomicx.Cell[int]
		s.Go("one", func() { x.Set(1) })
		s.Go("two", func() { x.Get() })
	},
}, {
	name: "race of a write with a read", kind: explore.Race, bound: 0, says: "two writes plain memory that one reads",
	setup: func(s *explore.S) {
		var x [2]uint64
		var y atomicx.Uint64
		s.Go("one", func() { atomicx.Reads(unsafe.Pointer(&x[0])); atomicx.Reads(unsafe.Pointer(&x[1])); y.Load() })
		s.Go("two", func() { y.Load(); atomicx.Writes(unsafe.Pointer(&x[1])) })
	},
}, {
	name: "flag before data", kind: explore.Race, bound: 0, says: "reader reads plain memory that writer writes",
	setup: func(s *explore.S) {
		var data atomicx.Cell[int]
		var flag atomicx.Bool
		s.Go("writer", func() { flag.Store(true); data.Set(1) })
		s.Go("reader", func() {
			if flag.Load() {
				data.Get()
			}
		})
	},
}, {
	// The store leaves its buffer after the data was written, and yet does not publish it.
	name: "flag before data, by a release store", kind: explore.Race, bound: 0, says: "reader reads plain memory that writer writes",
	setup: func(s *explore.S) {
		var data atomicx.Cell[int]
		var flag atomicx.Uint64
		s.Go("writer", func() { atomicx.StoreRelease(&flag, 1); data.Set(1) })
		s.Go("reader", func() {
			for flag.Load() == 0 {
				atomicx.Relax(0)
			}
			data.Get()
		})
	},
}, {
	// The reader sees the second store, which does not carry what the other thread did before the first.
	name: "a store is no read-modify-write", kind: explore.Race, bound: 0, says: "reader reads plain memory that writer writes",
	setup: func(s *explore.S) {
		var data atomicx.Cell[int]
		var flag atomicx.Uint64
		s.Go("writer", func() { data.Set(1); flag.Store(1) })
		s.Go("other", func() { flag.Store(2) })
		s.Go("reader", func() {
			if flag.Load() == 2 {
				data.Get()
			}
		})
	},
}, {
	name: "a failed CAS publishes nothing", kind: explore.Race, bound: 0, says: "reader reads plain memory that writer writes",
	setup: func(s *explore.S) {
		var data atomicx.Cell[int]
		var flag atomicx.Uint64
		s.Go("writer", func() { data.Set(1); flag.CompareAndSwap(5, 6) })
		s.Go("reader", func() { flag.Load(); data.Get() })
	},
}, {
	name: "an unpark that finds a token publishes nothing", kind: explore.Race, bound: 0, says: "sleeper reads plain memory that late",
	setup: func(s *explore.S) {
		p := atomicx.NewParker()
		var data atomicx.Cell[int]
		s.Go("first", func() { p.Unpark() })
		s.Go("late", func() { data.Set(1); p.Unpark() })
		s.Go("sleeper", func() { p.Park(nil); data.Get() })
	},
}, {
	name: "lock order", kind: explore.Deadlock, bound: 1, says: "one waits for a mutex, two waits for a mutex",
	setup: func(s *explore.S) {
		var a, b atomicx.Mutex
		s.Go("one", func() { a.Lock(); b.Lock(); b.Unlock(); a.Unlock() })
		s.Go("two", func() { b.Lock(); a.Lock(); a.Unlock(); b.Unlock() })
	},
}, {
	// It asks whether the other has said that it sleeps, and the other looks only before it says so.
	name: "no second look", kind: explore.Deadlock, bound: 1, says: "sleeper is parked",
	setup: func(s *explore.S) {
		p := atomicx.NewParker()
		var ready, asleep atomicx.Bool
		s.Go("sleeper", func() {
			if !ready.Load() {
				asleep.Store(true)
				p.Park(nil)
			}
		})
		s.Go("waker", func() {
			ready.Store(true)
			if asleep.Load() {
				p.Unpark()
			}
		})
	},
}, {
	name: "release store before the question who sleeps", kind: explore.Deadlock, bound: 0, says: "sleeper is parked",
	setup: askAfter(func(ready *atomicx.Uint64) { atomicx.StoreRelease(ready, 1) }),
}, {
	name: "a loop that nobody ends", kind: explore.Deadlock, bound: 0, says: "spinner waits in a loop",
	setup: func(s *explore.S) {
		var flag atomicx.Bool
		s.Go("spinner", func() {
			for turn := uint32(0); !flag.Load(); turn++ {
				atomicx.Relax(turn)
			}
		})
		s.Go("other", func() { flag.Load() })
	},
}, {
	name: "livelock", kind: explore.Livelock, bound: 0, says: "more than 4000 steps",
	setup: func(s *explore.S) {
		var x atomicx.Uint64
		for _, name := range []string{"one", "two"} {
			s.Go(name, func() {
				for x.Add(1) != 0 {
					atomicx.Relax(0)
				}
			})
		}
	},
}, {
	name: "panic", kind: explore.Panic, bound: 1, says: "two: assertion failed: x is 1",
	setup: func(s *explore.S) {
		var x atomicx.Uint64
		s.Go("one", func() { x.Store(1); x.Store(2) })
		s.Go("two", func() { v := x.Load(); explore.Assert(v != 1, "x is %d", v) })
	},
}, {
	name: "end state", kind: explore.Wrong, bound: 1, says: "end state",
	setup: func(s *explore.S) {
		var x atomicx.Uint64
		for _, name := range []string{"one", "two"} {
			s.Go(name, func() { x.Store(x.Load() + 1) })
		}
		s.Finally(func() error {
			if x.Load() != 2 {
				return errEnd
			}
			return nil
		})
	},
}, {
	name: "unlock of an unlocked mutex", kind: explore.Panic, bound: 0, says: "unlock of an unlocked Mutex",
	setup: func(s *explore.S) {
		var mu atomicx.Mutex
		s.Go("one", func() { mu.Unlock() })
	},
}}

// askAfter is one thread that makes a condition true and then asks whether the other sleeps, and one that says that it is
// about to sleep and then looks at the condition once more.
func askAfter(store func(*atomicx.Uint64)) func(s *explore.S) {
	return func(s *explore.S) {
		p := atomicx.NewParker()
		var ready atomicx.Uint64
		var asleep atomicx.Bool
		s.Go("waker", func() {
			store(&ready)
			if asleep.Load() {
				p.Unpark()
			}
		})
		s.Go("sleeper", func() {
			asleep.Store(true)
			if ready.Load() == 0 {
				p.Park(nil)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for _, x := range faults {
		t.Run(x.name, func(t *testing.T) {
			sc := explore.Scenario{Name: x.name, Setup: x.setup}
			f := explore.MustFail(t, explore.Options{}, sc, x.kind)
			assert.Equal(t, x.bound, f.Bound)
			assert.Contains(t, f.Reason, x.says)
			assert.Contains(t, f.Trace, "explore/failures_test.go:")

			// The message holds the list that plays it again.
			_, list, found := strings.Cut(f.Error(), "choices ")
			require.True(t, found)
			list, _, _ = strings.Cut(list, "\n")
			choices, err := explore.ParseChoices(list)
			require.NoError(t, err)
			again := explore.Replay(explore.Options{}, sc, choices)
			require.NotNil(t, again)
			assert.Equal(t, f.Trace, again.Trace)
			assert.Equal(t, f.Reason, again.Reason)
		})
	}
}

// TestFaults_Random makes sure that random schedules find the same faults, and that the seed plays them again.
func TestFaults_Random(t *testing.T) {
	for _, x := range faults {
		sc := explore.Scenario{Name: x.name, Setup: x.setup}
		o := explore.Options{Random: 1000, Seed: 42}
		f := explore.MustFail(t, o, sc, x.kind)
		assert.EqualValues(t, 42, f.Seed)
		again := explore.Check(o, sc).Failure
		require.NotNil(t, again)
		assert.Equal(t, f, again)
	}
}

// TestFaults_Twins are the right ways to do what some faults do wrong.
func TestFaults_Twins(t *testing.T) {
	for name, setup := range map[string]func(s *explore.S){
		"store before the question who sleeps": askAfter(func(ready *atomicx.Uint64) { ready.Store(1) }),
		"release store and a barrier before the question who sleeps": askAfter(func(ready *atomicx.Uint64) {
			var barrier atomicx.Uint32
			atomicx.StoreRelease(ready, 1)
			barrier.Add(0)
		}),
		"release store and a mutex before the question who sleeps": askAfter(func(ready *atomicx.Uint64) {
			var mu atomicx.Mutex
			atomicx.StoreRelease(ready, 1)
			mu.Lock()
			mu.Unlock()
		}),
		"data before flag": func(s *explore.S) {
			var data atomicx.Cell[int]
			var flag atomicx.Uint64
			s.Go("writer", func() { data.Set(1); atomicx.StoreRelease(&flag, 1) })
			s.Go("reader", func() {
				if flag.Load() == 1 {
					explore.Assert(data.Get() == 1, "no data")
				}
			})
		},
		"a read-modify-write carries what was before": func(s *explore.S) {
			var data atomicx.Cell[int]
			var flag atomicx.Uint64
			s.Go("writer", func() { data.Set(1); flag.Or(1) })
			s.Go("other", func() { flag.Or(2) })
			s.Go("reader", func() {
				if flag.Load() == 3 {
					explore.Assert(data.Get() == 1, "no data")
				}
			})
		},
		"closing a channel publishes": func(s *explore.S) {
			var data atomicx.Cell[int]
			p := atomicx.NewParker()
			done := make(chan struct{})
			s.Go("sleeper", func() { explore.Assert(!p.Park(done) && data.Get() == 1, "no data") })
			s.Go("closer", func() { data.Set(1); s.Close(done) })
		},
		"different addresses": func(s *explore.S) {
			var x [2]uint64
			s.Go("one", func() { atomicx.Writes(unsafe.Pointer(&x[0])) })
			s.Go("two", func() { atomicx.Writes(unsafe.Pointer(&x[1])) })
		},
		"two readers": func(s *explore.S) {
			var x atomicx.Cell[int]
			s.Go("one", func() { x.Get() })
			s.Go("two", func() { x.Get() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			res := explore.Run(t, all, explore.Scenario{Name: name, Setup: setup})
			assert.True(t, res.Complete)
		})
	}
}

// TestNondeterminism makes sure that a scenario that does not repeat itself is told of.
func TestNondeterminism(t *testing.T) {
	runs := 0
	f := explore.Check(all, explore.Scenario{Name: "fickle", Setup: func(s *explore.S) {
		runs++
		var x atomicx.Uint64
		s.Go("one", func() {
			for range 1 + 2*(runs%2) {
				x.Load()
			}
		})
		s.Go("two", func() { x.Load(); x.Load() })
	}}).Failure
	require.NotNil(t, f)
	assert.Equal(t, explore.Nondeterminism, f.Kind)
}

// TestUnwind_RecoveredPanic makes sure that a thread which recovers everything does not stop the search.
func TestUnwind_RecoveredPanic(t *testing.T) {
	sc := explore.Scenario{Name: "stubborn", Setup: func(s *explore.S) {
		var x atomicx.Uint64
		s.Go("stubborn", func() { stubborn(&x) })
		s.Go("other", func() { x.Store(1); panic("enough") })
	}}
	f := explore.MustFail(t, explore.Options{MaxSteps: 100}, sc, explore.Livelock)
	assert.Equal(t, 0, f.Bound)
}

// stubborn never ends.
func stubborn(x *atomicx.Uint64) {
	for {
		func() {
			defer func() { _ = recover() }()
			x.Load()
		}()
	}
}

func TestChoices_String(t *testing.T) {
	for _, c := range []explore.Choices{nil, {1}, {0, 0, 1}, {0, 1, 1, 1, 0, 0, 2}} {
		got, err := explore.ParseChoices(c.String())
		require.NoError(t, err)
		assert.Equal(t, c.String(), got.String())
		assert.Len(t, got, len(c))
	}
	for _, s := range []string{"", "x", "1*", "1,,2", "300", "-1"} {
		_, err := explore.ParseChoices(s)
		assert.Error(t, err, s)
	}
}

// BenchmarkSchedules measures how fast schedules of a tiny scenario are played.
func BenchmarkSchedules(b *testing.B) {
	for b.Loop() {
		explore.Check(all, explore.Scenario{Name: "bench", Setup: litmuses[7].setup})
	}
	b.ReportMetric(float64(b.N)*180/b.Elapsed().Seconds(), "schedules/s")
}
