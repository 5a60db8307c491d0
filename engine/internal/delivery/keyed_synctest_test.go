package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

// TestKeyed_Backoff checks when each attempt comes, with the last value of the list repeated; that keys do not wait for each
// other, while the next of a key waits for the one before; and that there is one timer for them all.
func TestKeyed_Backoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{workers: 1})
		start := time.Now()
		got := map[string][]string{}
		c := each(func(_ context.Context, m *Message) error {
			key := string(m.Key)
			got[key] = append(got[key], fmt.Sprintf("%d/%d@%v", m.Offset, m.Attempt, time.Since(start)))
			if m.Offset < 2 && m.Attempt < 6-int(m.Offset)*3 {
				return errPoison
			}
			return nil
		})
		c.Backoff = []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}
		k := newKeyed(t, p, c, nil)
		k.Start()
		p.publishKeys(t, "a", "b", "c", "a", "b", "c")
		pass(2 * time.Second)
		assert.Zero(t, k.Position())
		assert.Equal(t, 2, k.Stats(p.clock.Now()).InFlight)
		pass(5 * time.Second)
		assert.Equal(t, int64(0), k.Position())
		pass(time.Hour)
		assert.Equal(t, map[string][]string{
			"a": {"0/1@0s", "0/2@1s", "0/3@6s", "0/4@26s", "0/5@46s", "0/6@1m6s", "3/1@1m6s"},
			"b": {"1/1@0s", "1/2@1s", "1/3@6s", "4/1@6s"},
			"c": {"2/1@0s", "5/1@0s"},
		}, got)
		assert.True(t, k.Drained())
		assert.Equal(t, int64(6), k.Position())
	})
}

// TestKeyed_BuryComesAgain after the last Backoff, for as long as it fails, and the handler does not.
func TestKeyed_BuryComesAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{workers: 1})
		start := time.Now()
		var got []string
		c := each(func(_ context.Context, m *Message) error {
			got = append(got, fmt.Sprintf("%d/%d@%v", m.Offset, m.Attempt, time.Since(start)))
			if m.Offset == 0 {
				return errPoison
			}
			return nil
		})
		c.Backoff, c.MaxDeliveries = []time.Duration{time.Second, 10 * time.Second}, 2
		buried := 0
		c.Bury = func(_ context.Context, m *Message, err error) error {
			assert.Equal(t, errPoison, err)
			got = append(got, fmt.Sprintf("bury %d/%d@%v", m.Offset, m.Attempt, time.Since(start)))
			if buried++; buried == 3 {
				return nil
			}
			time.Sleep(time.Second) // the time that it takes counts for nothing
			return errOver
		}
		k := newKeyed(t, p, c, nil)
		k.Start()
		p.publishKeys(t, "a", "a")
		pass(time.Hour)
		assert.Equal(t, []string{"0/1@0s", "0/2@1s", "bury 0/2@1s", "bury 0/2@12s", "bury 0/2@23s", "1/1@23s"}, got)
		s := k.Stats(p.clock.Now())
		assert.Equal(t, int64(1), s.Buried)
		assert.Zero(t, s.Dropped)
		assert.Equal(t, int64(2), s.Failed)
	})
}

// TestKeyed_WhatEndsABackoff: a seek does, a pause does not, and nothing else that wakes the lane does.
func TestKeyed_WhatEndsABackoff(t *testing.T) { whatEndsABackoff(t, newAnyKeyed) }

// TestBUG091_KeyedHugeBackoff is for ever, not at once.
func TestBUG091_KeyedHugeBackoff(t *testing.T) { hugeBackoff(t, newAnyKeyed) }

// TestBUG037_KeyedFailingIsNoHotLoop: keys that always fail are tried as often as the backoff says.
func TestBUG037_KeyedFailingIsNoHotLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{})
		attempts := make([]int, 100)
		c := each(func(_ context.Context, m *Message) error { attempts[m.Offset]++; return errPoison })
		c.Backoff, c.MaxKeys = []time.Duration{time.Second, 10 * time.Second}, 30
		k := newKeyed(t, p, c, nil)
		k.Start()
		p.publishKeys(t, keys(100, 100)...)
		pass(time.Hour)
		assert.Equal(t, slices.Repeat([]int{361}, 30), attempts[:30])
		assert.Zero(t, slices.Max(attempts[30:]))
		assert.Equal(t, int64(100), k.Stats(p.clock.Now()).Lag)
	})
}

// TestKeyed_SlowAllOfASudden: handlers are fast, so each runner has taken several records when one gets slow. What is behind it,
// and what is published then, does not wait for it.
func TestKeyed_SlowAllOfASudden(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{workers: 3})
		var got book
		c := each(func(_ context.Context, m *Message) error {
			got.add(m)
			if m.Offset == 1000 || m.Offset == 1020 {
				time.Sleep(time.Hour)
			}
			return nil
		})
		c.Parallel = 3
		k := newKeyed(t, p, c, nil)
		k.Start()
		p.publishKeys(t, keys(1100, 1100)...)
		pass(10 * time.Millisecond)
		assert.Equal(t, 1100, got.len())
		assert.Equal(t, int64(1000), k.Position())
		assert.Equal(t, int64(1098), k.Stats(p.clock.Now()).Delivered, "of their runs as well")
		p.publishKeys(t, "a", "b")
		pass(time.Millisecond)
		assert.Equal(t, 1102, got.len())
		since, yes := k.Inside()
		assert.True(t, yes)
		assert.Equal(t, 11*time.Millisecond, since)
		pass(time.Hour)
		assert.Equal(t, int64(1102), k.Position())
		assert.True(t, k.Drained())
	})
}

// TestKeyed_SlowHandlersShareTheWork: so many runners take so many times less, also when records come one at a time.
func TestKeyed_SlowHandlersShareTheWork(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const parallel, records = 8, 400
		p := newPart(t, partitionSetup{workers: parallel})
		c := each(func(context.Context, *Message) error { time.Sleep(10 * time.Millisecond); return nil })
		c.Parallel = parallel
		k := newKeyed(t, p, c, nil)
		k.Start()
		start := time.Now()
		p.publishKeys(t, keys(records, records)...)
		for !k.Drained() {
			pass(time.Millisecond)
		}
		assert.LessOrEqual(t, time.Since(start), (records/parallel*10+30)*time.Millisecond)
		start = time.Now()
		for i := range records {
			p.publishKeys(t, fmt.Sprint(i))
			pass(10 * time.Millisecond / parallel)
		}
		for !k.Drained() {
			pass(time.Millisecond)
		}
		assert.LessOrEqual(t, time.Since(start), (records/parallel*10+30)*time.Millisecond)
	})
}

// TestKeyed_TimersEnd: a lane that waits for a retry when it ends leaves no timer behind, which a bubble would notice.
func TestKeyed_TimersEnd(t *testing.T) { timersEnd(t, newAnyKeyed) }

// TestKeyed_LimiterIsFree while a lane waits for a retry: another takes its place.
func TestKeyed_LimiterIsFree(t *testing.T) { limiterIsFree(t, newAnyKeyed) }

// TestBUG022_KeyedRoomComesBackDuringABatch gives slow handlers a full log at once: publishers see room again after a few records,
// not when it is through.
func TestBUG022_KeyedRoomComesBackDuringABatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const full = 1024
		p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: full}, segments: full / 64})
		c := each(func(context.Context, *Message) error { time.Sleep(time.Millisecond); return nil })
		c.Parallel = 1
		k := newKeyed(t, p, c, nil)
		k.Start()
		k.Pause()
		p.publishKeys(t, keys(full, 1)...)
		k.Resume()
		start := time.Now()
		for i := range full {
			p.publishKeys(t, "k0")
			require.LessOrEqual(t, time.Since(start), time.Duration(i+2*full/64+16)*time.Millisecond)
		}
	})
}

// TestKeyed_RetryKeepsTheRightRecord fails for a record of a segment that is dropped before it is due: it is lost, with what
// waits behind it, and nothing is delivered in its place.
func TestKeyed_RetryKeepsTheRightRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 8}, segments: 2})
		y, got := newTally(), newKeyBook(t)
		c := each(func(_ context.Context, m *Message) error {
			defer got.enter(m)()
			if m.Offset == 2 {
				return errPoison
			}
			y.deliver(m)
			return nil
		})
		c.Backoff, c.OnGap = []time.Duration{time.Second}, y.gap
		k := newKeyedOpt(t, p, c, nil, dispatch.Options{}, &partition.Gate{})
		k.Start()
		p.publishKeys(t, keys(6, 6)...)
		synctest.Wait()
		for _, key := range keys(20, 6) {
			p.publishKeys(t, key)
			synctest.Wait()
		}
		assert.Equal(t, int64(2), k.Position())
		pass(time.Second)
		assert.Equal(t, int64(26), k.Position())
		assert.Equal(t, []string{"2-3", "8-9", "14-15"}, y.gaps, "and what is behind it")
		assert.Equal(t, int64(3), y.check(t, 0, 26))
		assert.Equal(t, []entry{{2, 1}, {20, 1}}, got.entries("k2"))
	})
}
