package delivery_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

func TestKeyed_StopCountsTheFirstCause(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	k := runKeyed(t, p, nothing)
	k.Stop(errPoison)
	k.Fence(errOver)
	<-k.ended
	assert.Equal(t, errPoison, k.cause)
	assert.Equal(t, errPoison, k.Seek(at(0)))
	k.Pause()
	k.Resume()
	assert.True(t, k.Drained())
	p.publishKeys(t, keys(3, 3)...)
	k.Start()
	assert.Equal(t, int32(1), k.ends.Load())
}

// TestKeyed_EndsAfterItsLastHandler stops with three handlers running: what they finish counts, unless it is fenced off, and
// OnEnd waits for the last.
func TestKeyed_EndsAfterItsLastHandler(t *testing.T) {
	watchdog(t)
	for i := range 4 {
		fence, once := i&1 != 0, i&2 != 0
		t.Run(fmt.Sprintf("fence=%v/once=%v", fence, once), func(t *testing.T) {
			p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 6}, segments: 1, workers: 4})
			p.publishKeys(t, keys(6, 6)...)
			in := make(chan struct{})
			out := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
			c := each(func(_ context.Context, m *Message) error { in <- struct{}{}; <-out[m.Offset]; return nil })
			c.Parallel, c.AtMostOnce = 3, once
			k := newKeyed(t, p, c, nil)
			k.Start()
			for range out {
				<-in
			}
			want := int64(0)
			if once {
				want = 3
			}
			assert.Equal(t, want, k.Position())
			if fence {
				k.Fence(errPoison)
			} else {
				k.Stop(errPoison)
			}
			p.publishKeys(t, keys(6, 6)...) // nobody gates any more
			for _, i := range []int{0, 2, 1} {
				assert.Zero(t, k.ends.Load())
				assert.False(t, k.Drained(), "a handler is running")
				assert.Equal(t, want, k.Position())
				close(out[i])
				if i == 0 && !fence && !once {
					await(func() bool { return k.Position() == 1 })
					want = 1
				}
			}
			<-k.ended
			if !fence {
				want = 3
			}
			assert.Equal(t, want, k.Position())
			assert.True(t, k.Drained())
			assert.Equal(t, int64(3), k.Stats(p.clock.Now()).Delivered)
			k.Fence(errOver)
			assert.Equal(t, want, k.Position())
		})
	}
}

func TestKeyed_EndsWithItsPartition(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	k := runKeyed(t, p, func(_ context.Context, m *Message) error {
		if m.Offset == 3 && m.Attempt < 3 {
			return errPoison
		}
		return nil
	})
	p.publishKeys(t, keys(10, 5)...)
	p.Finish(errOver)
	<-k.ended
	assert.Equal(t, errOver, k.cause)
	assert.Equal(t, int64(10), k.Position(), "what was there is delivered before")
}

// TestKeyed_Evicted hangs a handler: the gate is gone, and who asked is told, long before the lane can end.
func TestKeyed_Evicted(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 8}, segments: 1})
	in, out, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c := each(func(_ context.Context, m *Message) error {
		if m.Offset == 0 {
			in <- struct{}{}
			<-out
		}
		return nil
	})
	c.OnEvicted = func() { close(told) }
	k := newKeyedOpt(t, p, c, nil, dispatch.Options{}, &partition.Gate{Gating: true, MaxLag: 4})
	k.Start()
	p.publishKeys(t, "a")
	<-in
	p.publishKeys(t, keys(20, 3)...)
	<-told
	assert.Zero(t, k.ends.Load())
	assert.Equal(t, partition.ErrEvicted, k.Seek(at(20)))
	close(out)
	<-k.ended
	assert.Equal(t, partition.ErrEvicted, k.cause)
	assert.Positive(t, k.Position())
}

// TestKeyed_GivesItsPinsBack: no memory is lost to the log's pool for the sake of a lane that has ended.
func TestKeyed_GivesItsPinsBack(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 3})
	p.publishKeys(t, keys(20, 7)...)
	k := runKeyed(t, p, nothing)
	await(k.Drained)
	k.Stop(errOver)
	<-k.ended
	pinsAreBack(t, p)
}

// TestKeyed_NoRunnersLeft: the tasks of a lane that has ended are gone, with the goroutines of dedicated ones.
func TestKeyed_NoRunnersLeft(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publishKeys(t, "a")
	for range 50 {
		k := newKeyedOpt(t, p, each(nothing), nil, dispatch.Options{Dedicated: true}, &partition.Gate{})
		k.Start()
		await(k.Drained)
		k.Stop(errOver)
		<-k.ended
	}
	await(func() bool { return runtime.NumGoroutine() < 50 })
}
