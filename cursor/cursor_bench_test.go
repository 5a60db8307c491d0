package cursor_test

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leatlog/leat/cursor"
)

// BenchmarkCursor_Move measures the ways to move a cursor that nobody else looks at. The floor is a plain store.
func BenchmarkCursor_Move(b *testing.B) {
	b.Run("impl=release", func(b *testing.B) {
		b.ReportAllocs()
		var c cursor.Cursor
		for p := uint64(1); b.Loop(); p++ {
			c.StoreRelease(p)
		}
	})
	b.Run("impl=store", func(b *testing.B) {
		b.ReportAllocs()
		var c cursor.Cursor
		for p := uint64(1); b.Loop(); p++ {
			c.Store(p)
		}
	})
	b.Run("impl=raise", func(b *testing.B) {
		b.ReportAllocs()
		var c cursor.Cursor
		for p := uint64(1); b.Loop(); p++ {
			c.Raise(p)
		}
	})
	b.Run("impl=floor", func(b *testing.B) {
		x := new(uint64)
		for p := uint64(1); b.Loop(); p++ {
			*x = p
		}
	})
}

// BenchmarkSet_Min measures the low water of so many cursors, beside a mutex and a slice; the floor is as many loads.
func BenchmarkSet_Min(b *testing.B) {
	for _, n := range []int{1, 4, 16, 64} {
		cursors := make([]cursor.Cursor, n)
		b.Run(fmt.Sprintf("impl=set/cursors=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var s cursor.Set
			for i := range cursors {
				cursors[i].Store(uint64(n - i))
				s.Add(&cursors[i])
			}
			for b.Loop() {
				if low, _, ok := s.Min(); !ok || low != 1 {
					b.Fatal(low)
				}
			}
		})
		b.Run(fmt.Sprintf("impl=mutex/cursors=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var mu sync.Mutex
			positions := make([]uint64, n)
			for b.Loop() {
				mu.Lock()
				low := uint64(math.MaxUint64)
				for _, p := range positions {
					low = min(low, p)
				}
				mu.Unlock()
				if low != 0 {
					b.Fatal(low)
				}
			}
		})
		b.Run(fmt.Sprintf("impl=floor/cursors=%d", n), func(b *testing.B) {
			words := make([]struct {
				atomic.Uint64
				_ [256]byte
			}, n)
			for b.Loop() {
				for i := range words {
					if words[i].Load() != 0 {
						b.Fatal(i)
					}
				}
			}
		})
	}
}
