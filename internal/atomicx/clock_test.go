package atomicx_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/internal/atomicx"
)

func TestClock_StartsAtTheWallClock(t *testing.T) {
	before := time.Now().UnixNano()
	c := atomicx.NewClock()
	now := c.Now()
	after := time.Now().UnixNano()
	// The wall clock may be set back meanwhile, but hardly by an hour.
	assert.InDelta(t, before, now, float64(time.Hour))
	assert.InDelta(t, after, now, float64(time.Hour))
}

// TestClock_NeverGoesBack reads one clock from several goroutines.
func TestClock_NeverGoesBack(t *testing.T) {
	c := atomicx.NewClock()
	var newest atomicx.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := c.Now()
			for range 20_000 {
				seen := newest.Load()
				now := c.Now()
				if now < last || now < seen {
					t.Errorf("%d after %d, and another had seen %d", now, last, seen)
					return
				}
				last = now
				newest.Store(max(seen, now))
			}
		})
	}
	wg.Wait()
}

// TestWatch_GoesByTheClock compares the two for long enough that it goes by the counter, where there is one. What lies between
// looking at the one and the other is in the difference, so that the bounds are those of a span, and not how exact a Watch is:
// see TestWatch_GoesByTheClockWhateverTheCounterDoes.
func TestWatch_GoesByTheClock(t *testing.T) {
	c := atomicx.NewClock()
	w := atomicx.NewWatch(&c)
	const much = int64(2 * time.Millisecond)
	for end := c.Now() + 20*much; c.Now() < end; {
		before := c.Now()
		now := w.Now()
		after := c.Now()
		if now < before-much || now > after+much {
			t.Fatalf("%d, between %d and %d", now, before, after)
		}
	}
	t.Log("by the counter:", w.Able())
}

// TestWatch_SaysTheClockWhereALookIsNotUsed has looks that seem to be interrupted.
func TestWatch_SaysTheClockWhereALookIsNotUsed(t *testing.T) {
	c := atomicx.NewClock()
	w := atomicx.NewWatch(&c)
	for range 5 {
		w.Now()
		w.Hurry()
		before := c.Now() + int64(5*time.Millisecond) // longer than a span
		for c.Now() < before {
		}
		assert.GreaterOrEqual(t, w.Now(), before)
	}
}
