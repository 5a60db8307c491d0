package cursor_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/internal/atomicx"
)

func TestWait_Text(t *testing.T) {
	for w, text := range map[cursor.Wait]string{cursor.WaitPark: "park", cursor.WaitYield: "yield", cursor.WaitSpin: "spin"} {
		assert.Equal(t, text, w.String())
		assert.True(t, w.Valid())
		got, err := cursor.ParseWait(text)
		require.NoError(t, err)
		assert.Equal(t, w, got)
	}
	assert.Equal(t, "Wait(3)", cursor.Wait(3).String())
	assert.False(t, cursor.Wait(3).Valid())
	for _, text := range []string{"", "Park", "parks", "Wait(3)"} {
		w, err := cursor.ParseWait(text)
		require.ErrorIs(t, err, cursor.ErrWait, text)
		assert.Equal(t, cursor.WaitPark, w)
	}
	var zero cursor.Wait
	assert.Equal(t, cursor.WaitPark, zero)
}

// In an explore build nobody spins: a backoff is over at once, or gives way each time.
func TestWaitBackoff(t *testing.T) {
	turns := func(w cursor.Wait) (n int) {
		b := w.Backoff()
		for n < 10_000 && b.Again() {
			n++
		}
		return n
	}
	if atomicx.Exploring {
		assert.Zero(t, turns(cursor.WaitPark))
	} else {
		assert.Equal(t, 5, turns(cursor.WaitPark), "4 pauses, a yield, and then it parks")
	}
	assert.Equal(t, 10_000, turns(cursor.WaitYield), "it never parks")
	assert.Equal(t, 10_000, turns(cursor.WaitSpin), "it never parks")
}

// TestBUG025_WaitGivesWay: on one processor, whoever waits without parking lets the one run that it waits for.
func TestBUG025_WaitGivesWay(t *testing.T) {
	watchdog(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, w := range []cursor.Wait{cursor.WaitYield, cursor.WaitSpin} {
		var ping, pong atomic.Int64
		n := int64(rounds(10_000))
		go func() {
			for i := int64(1); i <= n; i++ {
				for b := w.Backoff(); ping.Load() < i; b.Again() {
				}
				pong.Store(i)
			}
		}()
		for i := int64(1); i <= n; i++ {
			ping.Store(i)
			for b := w.Backoff(); pong.Load() < i; b.Again() {
			}
		}
	}
}
