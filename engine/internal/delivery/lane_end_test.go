package delivery_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

func TestLane_StopCountsTheFirstCause(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	l := run(t, p, nothing)
	l.Stop(errPoison)
	l.Stop(errOver)
	<-l.ended
	assert.Equal(t, errPoison, l.cause)
	assert.Equal(t, errPoison, l.Seek(at(0)))
	l.Pause()
	l.Resume()
	assert.True(t, l.Drained())
}

// TestLane_EndsAfterItsHandler checks that OnEnd waits for a handler that is running, and that the gate does not.
func TestLane_EndsAfterItsHandler(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 2}, segments: 1})
	p.publish(t, 2)
	in, out := make(chan struct{}), make(chan struct{})
	l := run(t, p, func(context.Context, *Message) error { in <- struct{}{}; <-out; return nil })
	<-in
	l.Stop(errPoison)
	p.publish(t, 4) // nobody gates any more
	assert.Zero(t, l.ends.Load())
	assert.False(t, l.Drained(), "a handler is running")
	close(out)
	<-l.ended
	assert.True(t, l.Drained())
	assert.Equal(t, int64(1), l.Position(), "it was processed, after all")
	assert.Equal(t, int64(1), l.Stats(p.clock.Now()).Delivered)
}

// TestLane_GivesItsPinBack: no memory is lost to the log's pool for the sake of a lane that has ended.
func TestLane_GivesItsPinBack(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publish(t, 10)
	l := run(t, p, nothing)
	await(l.Drained)
	l.Stop(errOver)
	<-l.ended
	pinsAreBack(t, p)
}

// TestLane_LeavesNothingBehind: the pool keeps a task until it is stopped, and a dedicated one has a goroutine.
func TestLane_LeavesNothingBehind(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publish(t, 1)
	for range 100 {
		l := newLaneOpt(t, p, each(nothing),
			nil, dispatch.Options{Dedicated: true}, &partition.Gate{})
		l.Start()
		await(l.Drained)
		l.Stop(errOver)
		<-l.ended
	}
	await(func() bool { return runtime.NumGoroutine() < 50 })
}

func TestLane_EndsWithItsPartition(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	l := run(t, p, nothing)
	p.publish(t, 10)
	p.Finish(errPoison)
	<-l.ended
	assert.Equal(t, errPoison, l.cause)
	assert.Equal(t, int64(10), l.Position(), "what was there is delivered before")
}

// TestLane_Evicted hangs a handler: the gate is gone, and who asked is told, long before the lane can end.
func TestLane_Evicted(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 8}, segments: 1})
	in, out, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c := delivery.Config{
		Handler:   delivery.Handler{One: func(context.Context, *Message) error { in <- struct{}{}; <-out; return nil }},
		OnEvicted: func() { close(told) },
	}
	l := newLaneOpt(t, p, c, nil, dispatch.Options{}, &partition.Gate{Gating: true, MaxLag: 4})
	l.Start()
	p.publish(t, 1)
	<-in
	p.publish(t, 20)
	<-told
	assert.Zero(t, l.ends.Load())
	assert.Equal(t, partition.ErrEvicted, l.Seek(at(20)))
	close(out)
	<-l.ended
	assert.Equal(t, partition.ErrEvicted, l.cause)
	assert.Equal(t, int64(1), l.Position())
}

// TestLane_DrainedCountsTheHandler: under AtMostOnce the position is beyond the record whose handler still runs.
func TestLane_DrainedCountsTheHandler(t *testing.T) {
	watchdog(t)
	for _, once := range []bool{false, true} {
		p := newPart(t, partitionSetup{})
		in, out := make(chan struct{}), make(chan struct{})
		l := newLane(t, p, delivery.Config{AtMostOnce: once, Handler: delivery.Handler{One: func(context.Context, *Message) error {
			in <- struct{}{}
			<-out
			return nil
		}}}, nil)
		l.Start()
		assert.True(t, l.Drained())
		p.publish(t, 1)
		<-in
		assert.Equal(t, once, l.Position() == 1)
		assert.False(t, l.Drained())
		l.Pause()
		assert.False(t, l.Drained())
		require.NoError(t, l.Seek(latest))
		assert.False(t, l.Drained())
		out <- struct{}{}
		await(l.Drained)
	}
}
