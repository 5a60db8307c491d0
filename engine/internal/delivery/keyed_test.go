package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

// TestKeyed_RunsInParallel needs as many handlers at a time as there may be, of different keys, and has no more.
func TestKeyed_RunsInParallel(t *testing.T) {
	watchdog(t)
	const parallel = 5
	p := newPart(t, partitionSetup{workers: 8})
	in, out := make(chan int64, 100), make(chan struct{})
	c := each(func(_ context.Context, m *Message) error { in <- m.Offset; <-out; return nil })
	c.Parallel = parallel
	k := newKeyed(t, p, c, nil)
	k.Start()
	p.publishKeys(t, "a", "a", "a", "b", "", "", "c", "c", "d", "e", "f")
	var offs []int64
	for range parallel {
		offs = append(offs, <-in)
	}
	slices.Sort(offs)
	assert.Equal(t, []int64{0, 3, 4, 5, 6}, offs)
	await(func() bool { return p.workers.Running() == parallel && p.workers.Queued() == 0 })
	assert.Empty(t, in)
	_, yes := k.Inside()
	assert.True(t, yes)
	assert.Equal(t, parallel, k.Stats(p.clock.Now()).InFlight)
	assert.False(t, k.Drained())
	close(out)
	await(k.Drained)
	assert.Len(t, in, 11-parallel)
}

func TestKeyed_DoesNothingBeforeStart(t *testing.T) { doesNothingBeforeStart(t, newAnyKeyed) }

// TestKeyed_NoPlaceToStart: there is no lane, and nothing is left of it.
func TestKeyed_NoPlaceToStart(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 2}, segments: 1})
	c := each(nothing)
	nowhere := func(uint64, uint64) (uint64, error) { return 0, errPoison }
	_, err := delivery.NewKeyed(background, &c, p.Partition, &partition.Gate{Gating: true}, p.workers, dispatch.Options{Dedicated: true}, nowhere)
	require.ErrorIs(t, err, errPoison)
	p.publishKeys(t, keys(10, 3)...) // nobody gates
}

// TestBUG005_KeyedFloorDoesNotJumpOverWorkInProgress: of a hundred records that eight handlers share number 3 never ends, and the
// lane is handed over.
func TestBUG005_KeyedFloorDoesNotJumpOverWorkInProgress(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 8, segments: 10})
	p.publishKeys(t, keys(100, 50)...)
	in, out := make(chan struct{}), make(chan struct{})
	var done atomic.Int64
	c := each(func(_ context.Context, m *Message) error {
		if m.Offset == 3 {
			in <- struct{}{}
			<-out
			return errPoison
		}
		done.Add(1)
		return nil
	})
	c.Parallel = 8
	k := newKeyed(t, p, c, nil)
	k.Start()
	<-in
	await(func() bool { return done.Load() == 98 }) // all but 3, and 53 behind it
	await(func() bool { return k.Stats(p.clock.Now()).Delivered == 98 })
	assert.Equal(t, int64(3), k.Position())
	k.Fence(errPoison)
	close(out)
	<-k.ended
	require.Equal(t, int64(3), k.Position())

	got := newKeyBook(t)
	next := newKeyed(t, p, each(func(_ context.Context, m *Message) error { defer got.enter(m)(); return nil }), at(uint64(k.Position())))
	next.Start()
	await(next.Drained)
	for i := range int64(50) {
		assert.Equal(t, firsts(3, 100, i, 50), got.entries(fmt.Sprint("k", i)))
	}
}

// TestKeyed_Bounds: one record that fails lets the lane read MaxInFlight records from it on, and so many that fail as may have
// different keys stop it.
func TestKeyed_Bounds(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publishKeys(t, keys(100, 100)...)
	for _, bad := range []int64{1, 5} {
		var got book
		c := each(func(_ context.Context, m *Message) error {
			if m.Offset < bad {
				return errPoison
			}
			got.add(m)
			return nil
		})
		c.MaxInFlight, c.MaxKeys, c.Backoff = 30, 5, []time.Duration{time.Hour}
		k := newKeyed(t, p, c, nil)
		k.Start()
		want := upTo(1, 30)
		if bad == 5 {
			want = nil
		}
		await(func() bool { return k.Stats(p.clock.Now()).Failed == bad && got.len() == len(want) && p.idle() })
		assert.ElementsMatch(t, want, got.offsets())
		assert.Zero(t, k.Position())
		assert.Zero(t, p.Committed().Waiting(), "it waits for its own records")
		assert.Equal(t, int(bad), k.Stats(p.clock.Now()).InFlight)
		k.Stop(errOver)
	}
}

// TestKeyed_GateKept leaves the gate to the owner, and tells it where the lane is.
func TestKeyed_GateKept(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 4}, segments: 1})
	gate := &partition.Gate{Name: "kept", Gating: true}
	_, err := p.AddGate(gate, earliest)
	require.NoError(t, err)
	c := each(nothing)
	c.GateKept = true
	for range 3 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.publishKeys(t, keys(10, 3)...)
		}()
		await(func() bool { return p.Stats().HeldBy == "kept" })
		k := newKeyedOpt(t, p, c, at(gate.Load()), dispatch.Options{}, gate)
		k.Start()
		<-done
		await(k.Drained)
		k.Fence(errOver)
		<-k.ended
		assert.Equal(t, uint64(k.Position()), gate.Load())
	}
	p.RemoveGate(gate)
}

// TestKeyed_SegmentsAreUsedAgain: publishers that wait for the lane drop each segment when it is through with it, and not while
// one of its runners still stands there.
func TestKeyed_SegmentsAreUsedAgain(t *testing.T) {
	segmentsAreUsedAgain(t, func(p *part) { runKeyed(t, p, nothing) })
}

// TestKeyed_AllocatesNothing once it has met as many keys and records as it holds at a time.
func TestKeyed_AllocatesNothing(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	const records, again = 5000, 10
	p.publishKeys(t, keys(records, 600)...)
	for _, once := range []bool{false, true} {
		c := each(nothing)
		c.AtMostOnce = once
		k := newKeyed(t, p, c, nil)
		k.Start()
		await(k.Drained)
		start := at(0)
		n := testing.AllocsPerRun(again, func() {
			_ = k.Seek(start)
			await(k.Drained)
		})
		assert.Less(t, n, 50.0, "for %d records", records) // what the test and the runtime need now and then
		assert.EqualValues(t, (1+1+again)*records, k.Stats(p.clock.Now()).Delivered, "one run is not counted")
	}
}
