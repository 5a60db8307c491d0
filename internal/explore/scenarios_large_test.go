//go:build explore

package explore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
	"github.com/leatlog/leat/segment"
)

// TestLarge runs scenarios that are too large for a search to a bound, at random.
func TestLarge(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	ones := make([]int, 8)
	for i := range ones {
		ones[i] = 1
	}
	for _, sc := range []explore.Scenario{
		{Name: "ring: four producers", Setup: ringOf(4, ones, []int{2, 1, 3, 2}, ones, []int{4, 4})},
		{Name: "ring and segment: the whole way", Setup: wholeWay},
		{Name: "segment: trim against three readers", Setup: func(s *explore.S) {
			read := func(l *segment.Log) { readAll(l, l.NewReader()) }
			trimAgainst(2, read, read, read)(s)
		}},
		{Name: "event: three wake three", Setup: func(s *explore.S) {
			var e atomicx.Event
			var sum atomicx.Uint64
			for i := range 3 {
				s.Go(fmt.Sprint("waker", i), func() {
					for range 3 {
						sum.Add(1)
						e.Broadcast()
					}
				})
				s.Go(fmt.Sprint("waiter", i), func() {
					w := atomicx.NewWaiter()
					for seen := uint64(0); seen < 9; seen++ {
						await(&e, w, func() bool { return sum.Load() > seen }, nil)
					}
				})
			}
			s.Finally(idle(&e))
		}},
	} {
		t.Run(sc.Name, func(t *testing.T) {
			explore.Run(t, explore.Options{Random: n, MaxSteps: 50_000}, sc)
		})
	}
	// A fault in a large scenario is found as well, and its replay is the same each time.
	f := explore.Check(explore.Options{Random: 20_000}, explore.Scenario{Name: "faulty", Setup: miniRingOf("claim without CAS")}).Failure
	require.NotNil(t, f)
	for range 10 {
		again := explore.Replay(explore.Options{}, explore.Scenario{Name: "faulty", Setup: miniRingOf("claim without CAS")}, f.Choices)
		require.NotNil(t, again)
		require.Equal(t, f.Trace, again.Trace)
	}
}

// wholeWay is what a partition does: producers hand over through a ring, its consumer appends in batches and wakes the
// readers, who follow to the end.
func wholeWay(s *explore.S) {
	const producers, each = 3, 3
	x := newRingRun(4, producers)
	l := segment.NewLog(segment.Config{SegmentBytes: blockBytes, SegmentRecords: 2})
	var more atomicx.Event
	for id := range producers {
		s.Go(fmt.Sprint("producer", id), x.producer(id, 1, 1, 1))
	}
	s.Go("appender", func() {
		done := 0
		for done < producers*each {
			switch {
			case x.drain():
				for _, v := range x.got[done:] {
					err := l.Append(&segment.Record{Value: []byte{byte(v >> 32), byte(v)}}, 1)
					explore.Assert(err == nil, "append: %v", err)
				}
				done = len(x.got)
				explore.Assert(l.Publish() == nil, "publish")
				more.Broadcast()
			case x.r.Claimed():
				atomicx.Relax(0)
			case x.r.Sleep():
				x.parker.Park(nil)
			}
		}
		l.Seal()
		more.Broadcast()
	})
	for i := range 2 {
		s.Go(fmt.Sprint("reader", i), func() {
			r, w := l.NewReader(), atomicx.NewWaiter()
			var rec segment.Record
			var next [producers]byte
			st := segment.Ready
			for st != segment.Sealed {
				await(&more, w, func() bool { st = r.Refill(); return st != segment.CaughtUp }, nil)
				for r.Next(&rec) {
					p, v := rec.Value[0], rec.Value[1]
					explore.Assert(next[p] == v, "producer %d: %d, not %d", p, v, next[p])
					next[p]++
				}
			}
			explore.Assert(next == [producers]byte{each, each, each}, "records are missing: %v", next)
		})
	}
	s.Finally(idle(&more))
}
