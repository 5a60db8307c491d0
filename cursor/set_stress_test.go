package cursor_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/cursor"
)

// TestCursor_StressRaise attacks "Never back": eight goroutines raise one cursor to numbers of their own, and nobody ever
// sees it go back; at the end it is at the highest.
func TestCursor_StressRaise(t *testing.T) {
	watchdog(t)
	const raisers = 8
	each := uint64(rounds(200_000))
	var c cursor.Cursor
	var moved, stayed atomic.Int64
	var wg sync.WaitGroup
	for i := range uint64(raisers) {
		wg.Go(func() {
			seen := uint64(0)
			for p := i; p < each*raisers || stayed.Load() == 0; p += raisers {
				if c.Raise(p) {
					moved.Add(1)
				} else if p > 0 {
					stayed.Add(1)
				}
				now := c.Load()
				if now < p || now < seen {
					t.Errorf("at %d after Raise(%d), having been at %d", now, p, seen)
					return
				}
				seen = now
				if p%64 == i {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	assert.NotZero(t, moved.Load())
	assert.GreaterOrEqual(t, c.Load(), each*raisers-1)
}

// TestSet_StressLowWater attacks "Low water" and "Publication" of the set and of the cursor: readers read plain memory up to
// their cursors and raise them in different ways, a writer overwrites what is below the low water. Readers must find what
// the writer wrote one lap before, and the race detector must find nothing. In between, the low water lies between what it
// was before the call and what it is after, and never goes back.
func TestSet_StressLowWater(t *testing.T) {
	watchdog(t)
	const readers, capacity = 3, 8
	total := uint64(rounds(200_000))
	var (
		s       cursor.Set
		cursors [readers]cursor.Cursor
		data    [capacity]uint64 // plain
		next    cursor.Cursor    // what the writer has written; readers stop here
		wg      sync.WaitGroup
		held    [readers]int
		end     atomic.Uint64 // where all stop: at total, or when each reader has been the slowest once
	)
	end.Store(50 * total)
	for i := range cursors {
		s.Add(&cursors[i])
	}
	lowest := func() uint64 {
		return min(cursors[0].Load(), cursors[1].Load(), cursors[2].Load())
	}
	wg.Go(func() {
		last := uint64(0)
		for off := uint64(0); off < end.Load(); {
			before := lowest()
			low, holder, ok := s.Min()
			after := lowest()
			if !ok || low < before || low > after || low < last {
				t.Errorf("low water %d after %d, between %d and %d", low, last, before, after)
				end.Store(0)
				return
			}
			last = low
			for i := range cursors {
				if holder == &cursors[i] {
					held[i]++
				}
			}
			if off >= total && !slices.Contains(held[:], 0) {
				end.Store(off)
				return
			}
			if off == low+capacity {
				runtime.Gosched()
				continue
			}
			data[off%capacity] = off * 7
			off++
			next.StoreRelease(off)
		}
	})
	for i := range cursors {
		rng := rand.New(rand.NewPCG(uint64(i), 1))
		wg.Go(func() {
			c := &cursors[i]
			for off := uint64(0); off < end.Load(); {
				if next.Load() == off {
					runtime.Gosched()
					continue
				}
				if got := data[off%capacity]; got != off*7 {
					t.Errorf("reader %d found %d at %d", i, got, off)
					end.Store(0)
					return
				}
				off++
				switch i {
				case 0:
					c.StoreRelease(off)
				case 1:
					c.Store(off)
				default:
					c.Raise(off)
				}
				if rng.IntN(64) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	low, _, _ := s.Min()
	assert.Equal(t, end.Load(), low)
	assert.NotContains(t, held, 0, "a reader that was never the slowest")
}

// TestSet_StressAddRemove attacks "A member is counted" and "Joining": cursors come and go all the time while others ask.
// One cursor stays. Those who come do so under a lock that the one who drops takes, too, at or above what is dropped; they
// are never passed.
func TestSet_StressAddRemove(t *testing.T) {
	watchdog(t)
	const guests = 4
	visits := rounds(40_000)
	var (
		s       cursor.Set
		stays   cursor.Cursor
		mu      sync.Mutex
		dropped uint64 // everything below it; under mu
		wg      sync.WaitGroup
		dropper sync.WaitGroup
		stop    atomic.Bool
		gated   atomic.Int64 // guests that were the holder
		changed atomic.Int64 // members changed between two looks
	)
	s.Add(&stays)
	dropper.Go(func() {
		for !stop.Load() {
			stays.Raise(stays.Load() + 1)
			mu.Lock()
			low, holder, ok := s.Min()
			if !ok || low > stays.Load() || low < dropped {
				t.Errorf("low water %d, %v, with a member at %d, %d dropped", low, ok, stays.Load(), dropped)
			}
			dropped = max(dropped, low)
			mu.Unlock()
			if holder != &stays {
				gated.Add(1)
			}
			runtime.Gosched()
		}
	})
	for range guests {
		wg.Go(func() {
			for i := 0; i < visits || gated.Load() == 0 || changed.Load() == 0; i++ {
				var c cursor.Cursor
				mu.Lock()
				c.Store(dropped)
				s.Add(&c)
				mu.Unlock()
				n := s.Len()
				at := c.Load()
				if low, _, ok := s.Min(); !ok || low > at {
					t.Errorf("low water %d, %v, with a member at %d", low, ok, at)
				}
				if i%16 == 0 {
					runtime.Gosched()
				}
				mu.Lock()
				if dropped > at {
					t.Errorf("dropped below %d, with a member at %d", dropped, at)
				}
				mu.Unlock()
				if s.Len() != n {
					changed.Add(1)
				}
				if !s.Remove(&c) {
					t.Error("not a member")
				}
				if _, holder, _ := s.Min(); holder == &c {
					t.Error("counted after it was removed")
				}
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	dropper.Wait()
	assert.Equal(t, 1, s.Len())
}

// TestSet_StressManagers: many add and remove at once; none of it gets lost.
func TestSet_StressManagers(t *testing.T) {
	watchdog(t)
	const managers, each = 4, 8
	for range rounds(2000) {
		var s cursor.Set
		var cursors [managers][each]cursor.Cursor
		var wg sync.WaitGroup
		for m := range managers {
			wg.Go(func() {
				for i := range each {
					s.Add(&cursors[m][i])
				}
				for i := range each / 2 {
					s.Remove(&cursors[m][i])
				}
			})
		}
		wg.Wait()
		if !assert.Equal(t, managers*each/2, s.Len()) {
			return
		}
		var left []bool
		for m := range managers {
			for i := range each {
				left = append(left, s.Remove(&cursors[m][i]) == (i >= each/2))
			}
		}
		if !assert.False(t, slices.Contains(left, false)) {
			return
		}
	}
}
