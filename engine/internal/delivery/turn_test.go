package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// simulate runs a turn with a handler that takes so long for each record, and returns how many records it had.
func simulate(t *turn, now *int64, handled *int64, took time.Duration) (records int64, looks int) {
	from := *handled
	t.begin(*now, *handled)
	for {
		*handled++
		*now += int64(took)
		if *handled >= t.look {
			looks++
			if t.over(*now, *handled) {
				return *handled - from, looks
			}
		}
	}
}

func TestTurn_EndsByTimeOrRecords(t *testing.T) {
	var (
		x       turn
		now     = int64(1e18)
		handled int64
	)
	records, _ := simulate(&x, &now, &handled, 0)
	assert.Equal(t, int64(turnRecords), records, "a clock that stands still")
	records, looks := simulate(&x, &now, &handled, 10)
	assert.Equal(t, int64(turnRecords), records)
	assert.LessOrEqual(t, looks, turnRecords/maxStep, "a fast handler is not slowed down by the clock")
	records, _ = simulate(&x, &now, &handled, time.Microsecond)
	assert.InDelta(t, int64(turnTime/time.Microsecond), records, maxStep)

	records, _ = simulate(&x, &now, &handled, time.Second)
	assert.LessOrEqual(t, records, int64(maxStep), "a handler that becomes slow is noticed")
	for range 3 {
		records, _ = simulate(&x, &now, &handled, time.Second)
		assert.Equal(t, int64(1), records, "and known from then on")
	}
	for range 10 {
		records, _ = simulate(&x, &now, &handled, 0)
	}
	assert.Equal(t, int64(turnRecords), records)
	assert.Equal(t, int64(maxStep), x.step, "a handler that is fast again is not looked at so often")
}

// TestTurn_BatchesMayBeLarger: a batch counts as what it has, and a clock that goes back does no harm.
func TestTurn_BatchesMayBeLarger(t *testing.T) {
	var x turn
	x.begin(100, 0)
	assert.True(t, x.over(101, 5000))
	x.begin(100, 5000)
	assert.False(t, x.over(50, 5001))
	assert.GreaterOrEqual(t, x.step, int64(1))
}
