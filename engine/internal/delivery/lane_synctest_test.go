package delivery_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// TestLane_Backoff checks when each attempt comes, with the last value of the list repeated, that the list starts over for
// the next record, and that nobody is woken in between.
func TestLane_Backoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{workers: 1})
		start := time.Now()
		var got []string
		c := delivery.Config{
			Backoff: []time.Duration{time.Second, 5 * time.Second, 20 * time.Second},
			Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
				got = append(got, fmt.Sprintf("%d/%d@%v", m.Offset, m.Attempt, time.Since(start)))
				if m.Attempt < 6-int(m.Offset)*3 {
					return errPoison
				}
				return nil
			}},
		}
		l := newLane(t, p, c, nil)
		l.Start()
		p.publish(t, 3)
		pass(time.Hour)
		assert.Equal(t, []string{
			"0/1@0s", "0/2@1s", "0/3@6s", "0/4@26s", "0/5@46s", "0/6@1m6s",
			"1/1@1m6s", "1/2@1m7s", "1/3@1m12s",
			"2/1@1m12s",
		}, got)
		assert.True(t, l.Drained())
	})
}

// TestLane_BackoffOfEachLane: one timer does not serve two.
func TestLane_BackoffOfEachLane(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{workers: 1})
		start := time.Now()
		got := map[string]string{}
		for _, d := range []time.Duration{time.Second, 3 * time.Second, 7 * time.Second} {
			l := newLane(t, p, delivery.Config{
				Backoff: []time.Duration{d},
				Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
					got[fmt.Sprintf("%v: %d/%d", d, m.Offset, m.Attempt)] = time.Since(start).String()
					if m.Attempt == 1 {
						return errPoison
					}
					return nil
				}},
			}, nil)
			l.Start()
		}
		p.publish(t, 1)
		pass(500 * time.Millisecond)
		p.publish(t, 1)
		pass(time.Minute)
		assert.Equal(t, map[string]string{
			"1s: 0/1": "0s", "1s: 0/2": "1s", "1s: 1/1": "1s", "1s: 1/2": "2s",
			"3s: 0/1": "0s", "3s: 0/2": "3s", "3s: 1/1": "3s", "3s: 1/2": "6s",
			"7s: 0/1": "0s", "7s: 0/2": "7s", "7s: 1/1": "7s", "7s: 1/2": "14s",
		}, got)
	})
}

// TestLane_WhatEndsABackoff: a seek does, a pause does not, and nothing else that wakes the lane does.
func TestLane_WhatEndsABackoff(t *testing.T) { whatEndsABackoff(t, newAnyLane) }

// TestBUG091_HugeBackoff is for ever, not at once.
func TestBUG091_HugeBackoff(t *testing.T) { hugeBackoff(t, newAnyLane) }

// TestBUG037_FailingIsNoHotLoop: a record that always fails is tried as often as the backoff says, for as long as it takes.
func TestBUG037_FailingIsNoHotLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		attempts := 0
		l := newLane(t, p, delivery.Config{
			Backoff: []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second},
			Handler: delivery.Handler{One: func(context.Context, *Message) error { attempts++; return errPoison }},
		}, nil)
		l.Start()
		p.publish(t, 101)
		pass(time.Hour)
		assert.InDelta(t, 3600/10, attempts, 5)
		s := l.Stats(p.clock.Now())
		assert.Equal(t, int64(101), s.Lag, "the others wait behind it, in order")
		assert.Equal(t, time.Hour, s.LagTime)
		assert.Equal(t, int64(attempts), s.Failed)
		assert.Equal(t, int64(attempts-1), s.Redelivered)
	})
}

// TestBUG022_RoomComesBackDuringABatch gives a slow handler a full log at once: publishers see room again after a few
// records, not when it is through.
func TestBUG022_RoomComesBackDuringABatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const full = 1024
		p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: full}, segments: full / 64})
		l := run(t, p, func(context.Context, *Message) error { time.Sleep(time.Millisecond); return nil })
		l.Pause()
		p.publish(t, full)
		l.Resume()
		start := time.Now()
		for i := range full {
			p.publish(t, 1)
			require.LessOrEqual(t, time.Since(start), time.Duration(i+2*full/64)*time.Millisecond)
		}
	})
}

// TestLane_SlowHandlersDoNotStarveOthers runs lanes with a backlog, fast and slow, and one that gets a record now and then, on
// one worker. The last is never further away than one turn of each of the others.
func TestLane_SlowHandlersDoNotStarveOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{workers: 1})
		p.publish(t, 5000)
		for i := range 3 {
			n, took := 0, time.Duration(0)
			run(t, p, func(context.Context, *Message) error {
				if n++; n == 1000*(i+1) {
					took = time.Duration(i+1) * time.Millisecond // it was fast, and is slow from now on
				}
				time.Sleep(took)
				return nil
			})
		}
		now := newPartOn(t, partitionSetup{}, p.workers)
		seen := make(chan struct{})
		run(t, now, func(context.Context, *Message) error { seen <- struct{}{}; return nil })
		for range 100 {
			pass(20 * time.Millisecond)
			start := time.Now()
			now.publish(t, 1)
			<-seen
			// When they have just become slow a turn has 16 records, and later one.
			require.LessOrEqual(t, time.Since(start), 16*(1+2+3)*time.Millisecond)
		}
	})
}

// TestSEED06_FastHandlersDoNotStarveOthers counts what a lane with a large backlog handles from the moment that another one
// gets a record on the only worker until it is delivered: at most its turn, whatever its place among the lanes.
func TestSEED06_FastHandlersDoNotStarveOthers(t *testing.T) {
	watchdog(t)
	for _, lanes := range []int{1, 5} {
		p := newPart(t, partitionSetup{workers: 1})
		p.publish(t, 20_000)
		other := newPartOn(t, partitionSetup{}, p.workers)
		handled := 0
		seen := make(chan int, 1)
		run(t, other, func(context.Context, *Message) error { seen <- handled; return nil })
		await(other.idle) // it rests
		for range lanes {
			run(t, p, func(context.Context, *Message) error {
				if handled++; handled == 100 { // on the worker: nobody else runs
					other.publish(t, 1)
				}
				return nil
			})
		}
		assert.LessOrEqual(t, <-seen, 100+1024*lanes)
	}
}

// TestLane_TimersEnd: a lane that waits for a retry when it ends leaves no timer behind, which a bubble would notice.
func TestLane_TimersEnd(t *testing.T) { timersEnd(t, newAnyLane) }

// TestLane_LimiterIsFree while a lane waits for a retry: another takes its place.
func TestLane_LimiterIsFree(t *testing.T) { limiterIsFree(t, newAnyLane) }

// TestLane_SegmentIsFreeAtTheEndOfATurn ends a turn just at the end of a segment: the publisher that waits for that segment to
// go uses its memory again, though the lane has no worker to go on with.
func TestLane_SegmentIsFreeAtTheEndOfATurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const turn, size = 1024, 1 << 9
		p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 2 * turn}, segments: turn, workers: 1})
		publish := func() {
			_, err := p.Publish(background, &segment.Record{Value: make([]byte, size)})
			assert.NoError(t, err)
		}
		for range 8 * turn {
			publish() // until its segments have grown to their full size
		}
		begin := p.next()
		require.NoError(t, p.TruncateBefore(background, begin)) // the next record begins a segment
		l := newLane(t, p, each(nothing), latest)
		l.Start()
		l.Pause()
		for range 2 * turn {
			publish()
		}
		go publish()
		synctest.Wait()
		busy := make(chan struct{})
		other := p.workers.NewTask(func() dispatch.Again { <-busy; return false }, dispatch.Options{})
		p.workers.NewTask(func() dispatch.Again { l.Resume(); other.Wake(); return false }, dispatch.Options{}).Wake()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		synctest.Wait()
		runtime.ReadMemStats(&after)
		assert.Equal(t, begin+turn, l.Position(), "one turn")
		assert.Equal(t, begin+2*turn+1, p.next(), "the publisher has got its room")
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(turn*size/2), "a new segment")
		close(busy)
	})
}

// TestLane_RetryKeepsItsMemory fails for the last record of a segment, just when the lane's turn is over: until it is tried
// again its memory is not used for others, though the segment is dropped meanwhile.
func TestLane_RetryKeepsItsMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const turn = 1024
		p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 2 * turn}, segments: turn, workers: 1})
		p.publish(t, 8*turn) // until its segments have grown to their full size
		begin := p.next()
		require.NoError(t, p.TruncateBefore(background, begin)) // the next record begins a segment
		p.publish(t, turn+1)                                    // and one more the next
		var got book
		l := newLaneOpt(t, p, delivery.Config{
			Backoff: []time.Duration{time.Second},
			Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
				assert.Equal(t, value(m.Offset).Value, m.Value)
				if m.Offset == begin+turn-1 {
					got.add(m)
					if m.Attempt < 3 {
						return errPoison
					}
				}
				return nil
			}},
		}, at(uint64(begin)), dispatch.Options{}, &partition.Gate{})
		l.Start()
		synctest.Wait()
		for range 3 {
			p.publish(t, 3*turn) // drops the segment, and uses all the memory there is again
			pass(time.Second)
		}
		assert.Equal(t, []entry{{begin + turn - 1, 1}, {begin + turn - 1, 2}, {begin + turn - 1, 3}}, got.entries())
	})
}
