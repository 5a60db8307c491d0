package atomicx_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/internal/atomicx"
)

func TestClock_MovesWithTheMonotonicClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := atomicx.NewClock()
		start := c.Now()
		assert.Equal(t, time.Now().UnixNano(), start)
		assert.Equal(t, start, c.Now())
		time.Sleep(36 * time.Hour) // virtual
		assert.Equal(t, start+int64(36*time.Hour), c.Now())
	})
}

// TestWatch_IsExactInABubble makes sure that no counter of the real machine is mixed with virtual time.
func TestWatch_IsExactInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := atomicx.NewClock()
		w := atomicx.NewWatch(&c)
		assert.False(t, w.Able())
		for d := time.Nanosecond; d < time.Hour; d *= 3 {
			for range 20 {
				assert.Equal(t, c.Now(), w.Now())
				time.Sleep(d) // virtual
			}
		}
	})
}

// TestWatch_IsExactInABubbleWheneverThatIs makes the clock when virtual time has passed the real one.
func TestWatch_IsExactInABubbleWheneverThatIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 4 {
			time.Sleep(20 * 365 * 24 * time.Hour) // virtual
			c := atomicx.NewClock()
			w := atomicx.NewWatch(&c)
			assert.False(t, w.Able())
			assert.Equal(t, c.Now(), w.Now())
		}
	})
}
