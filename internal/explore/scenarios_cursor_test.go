//go:build explore

package explore_test

import (
	"fmt"
	"testing"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

var cursorScenarios = []scenario{
	{"cursor: low water gates a writer", 5, func(s *explore.S) {
		// The writer uses a place again once the lowest cursor says that all have read it.
		var set cursor.Set
		var written atomicx.Uint64
		var place atomicx.Cell[int]
		cursors := [2]cursor.Cursor{}
		for i := range cursors {
			set.Add(&cursors[i])
			s.Go(fmt.Sprint("reader", i), func() {
				for n := uint64(0); n < 2; n++ {
					for written.Load() <= n {
						atomicx.Relax(0)
					}
					explore.Assert(place.Get() == int(n), "read %d", place.Get())
					if i == 0 {
						cursors[i].StoreRelease(n + 1)
					} else {
						explore.Assert(cursors[i].Raise(n+1), "it did not move")
					}
				}
			})
		}
		s.Go("writer", func() {
			for n := range uint64(2) {
				for {
					low, holder, ok := set.Min()
					explore.Assert(ok && holder != nil, "empty")
					if low >= n {
						break
					}
					atomicx.Relax(0)
				}
				place.Set(int(n))
				written.Store(n + 1)
			}
		})
	}},
	{"cursor: add and remove against low water", 4, func(s *explore.S) {
		// One stays at 5. Another is added at 3, raised to 7 and removed: the low water is 3 or 5.
		var set cursor.Set
		var stays, comes cursor.Cursor
		stays.Store(5)
		comes.Store(3)
		set.Add(&stays)
		var removed atomicx.Bool
		s.Go("comes", func() {
			explore.Assert(set.Add(&comes) && !set.Add(&comes), "add")
			comes.Raise(7)
			explore.Assert(!comes.Raise(6), "it went back")
			explore.Assert(set.Remove(&comes) && !set.Remove(&comes), "remove")
			removed.Store(true)
		})
		s.Go("looks", func() {
			for range 3 {
				gone := removed.Load()
				low, holder, ok := set.Min()
				explore.Assert(ok && (low == 3 || low == 5) && (low == 3) == (holder == &comes), "low water %d", low)
				explore.Assert(!gone || low == 5, "it counts after Remove")
			}
		})
		s.Go("other", func() {
			// A second change at the same time must not undo the first.
			var mine cursor.Cursor
			mine.Store(9)
			set.Add(&mine)
			set.Remove(&mine)
		})
		s.Finally(func() error {
			if low, holder, _ := set.Min(); low != 5 || holder != &stays || set.Len() != 1 {
				return fmt.Errorf("low water %d of %d", low, set.Len())
			}
			return nil
		})
	}},
	{"cursor: raise against raise", 6, func(s *explore.S) {
		var c cursor.Cursor
		var moved atomicx.Uint32
		for i := range uint64(2) {
			s.Go(fmt.Sprint("raiser", i), func() {
				for p := i + 1; p <= 3; p++ {
					before := c.Load()
					if c.Raise(p) {
						moved.Add(1)
					}
					explore.Assert(c.Load() >= max(p, before), "it went back")
				}
			})
		}
		s.Finally(func() error {
			if n := moved.Load(); c.Load() != 3 || n < 1 || n > 3 {
				return fmt.Errorf("at %d after %d moves", c.Load(), n)
			}
			return nil
		})
	}},
}

func TestCursor(t *testing.T) { run(t, cursorScenarios) }
