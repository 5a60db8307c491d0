package due_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/testkit"
)

// TestAlarm_SetAllocatesNothing sets alarms to and fro, some of them in front of the timer.
func TestAlarm_SetAllocatesNothing(t *testing.T) {
	clock := atomicx.NewClock()
	s := due.NewAlarms(&clock)
	defer s.Close()
	alarms := make([]due.Alarm, 100)
	far := clock.Now() + int64(1e15)
	for i := range alarms {
		alarms[i].Init(s, func(int64) {})
		alarms[i].Set(far)
	}
	at := far
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		at--
		x := &alarms[uint64(at)%100]
		x.Set(at)
		x.SetEarlier(at - 1)
		x.SetEarlier(at)
		x.Clear()
		x.Set(at)
	}))
}

// TestAlarm_FarTimes: none of these may overflow into the past, or the future.
func TestAlarm_FarTimes(t *testing.T) {
	testkit.Watchdog(t)
	clock := atomicx.NewClock()
	s := due.NewAlarms(&clock)
	defer s.Close()
	var rung atomicx.Int64
	var far, past due.Alarm
	far.Init(s, func(int64) { t.Error("rung") })
	past.Init(s, func(int64) { rung.Add(1) })
	far.Set(due.Never - 1)
	past.Set(math.MinInt64)
	testkit.Await(func() bool { return rung.Load() == 1 })
	assert.Equal(t, due.Never-1, far.At())
	assert.Equal(t, due.Never, past.At())
	far.Set(due.Never)
	assert.Equal(t, due.Never, far.At())
}

func TestAlarm_SetEarlier(t *testing.T) {
	clock := atomicx.NewClock()
	s := due.NewAlarms(&clock)
	defer s.Close()
	far := clock.Now() + int64(1e15)
	var x due.Alarm
	x.Init(s, func(int64) {})
	assert.Equal(t, due.Never, x.At())
	for _, step := range []struct{ at, want int64 }{{far, far}, {far + 1, far}, {far - 1, far - 1}, {due.Never, far - 1}} {
		x.SetEarlier(step.at)
		assert.Equal(t, step.want, x.At())
	}
	x.Set(far + 5)
	assert.Equal(t, far+5, x.At())
	x.Clear()
	x.Clear()
	assert.Equal(t, due.Never, x.At())
	x.SetEarlier(due.Never)
	assert.Equal(t, due.Never, x.At())
}

// TestAlarms_CloseBeforeAnything: there is no timer yet, and nothing is rung.
func TestAlarms_CloseBeforeAnything(t *testing.T) {
	clock := atomicx.NewClock()
	s := due.NewAlarms(&clock)
	s.Close()
	s.Close()
	<-s.Done()
	var x due.Alarm
	x.Init(s, func(int64) { t.Error("rung") })
	x.Set(0)
	x.SetEarlier(-1)
	x.Clear()
	assert.Equal(t, due.Never, x.At())
}

func TestUntil(t *testing.T) {
	for _, x := range []struct {
		at, now int64
		want    time.Duration
	}{
		{10, 4, 6},
		{10, 10, 0},
		{10, 11, 0},
		{math.MinInt64, math.MaxInt64, 0},
		{math.MaxInt64, 5, math.MaxInt64 - 5},
		{math.MaxInt64, -1, math.MaxInt64},
		{math.MaxInt64 - 3, -3, math.MaxInt64},
		{math.MaxInt64 - 3, -2, math.MaxInt64 - 1},
		{math.MaxInt64, math.MinInt64, math.MaxInt64},
		{-5, math.MinInt64, math.MaxInt64 - 4},
	} {
		assert.Equal(t, x.want, due.Until(x.at, x.now), "from %d until %d", x.now, x.at)
	}
}
