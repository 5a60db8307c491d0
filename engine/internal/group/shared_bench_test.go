package group_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/leatlog/leat/engine/internal/group"
)

// BenchmarkShared measures one record from its acquisition to its end, with so many in flight, acknowledged in another
// order.
func BenchmarkShared(b *testing.B) {
	run := func(b *testing.B, inFlight int, fails bool) {
		b.ReportAllocs()
		s := group.NewShared(group.SharedConfig{MaxInFlight: inFlight, Backoff: []time.Duration{1000}}, 0)
		ds := make([]group.Delivery, 0, inFlight)
		var now int64
		acquire := func() group.Delivery {
			d, outcome := s.Acquire(1, math.MaxInt64, now)
			if outcome != group.Acquired {
				b.Fatal(outcome)
			}
			return d
		}
		for range inFlight - 1 {
			ds = append(ds, acquire())
		}
		for i := 0; b.Loop(); i++ {
			now++
			at := i * 7 % len(ds)
			if fails && i%16 == 0 && ds[at].Attempt == 1 {
				s.Tick(now, nil)
				if _, err := s.Nack(1, ds[at].Token, now); err != nil {
					b.Fatal(err)
				}
			} else if err := s.Ack(1, ds[at].Token); err != nil {
				b.Fatal(err)
			}
			ds[at] = acquire()
		}
	}
	for _, inFlight := range []int{16, 1000} {
		b.Run(fmt.Sprintf("flight=%d/fails=none", inFlight), func(b *testing.B) { run(b, inFlight, false) })
		b.Run(fmt.Sprintf("flight=%d/fails=16th", inFlight), func(b *testing.B) { run(b, inFlight, true) })
	}
}

// BenchmarkShared_New shows what an idle partition of a group costs.
func BenchmarkShared_New(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		group.NewShared(group.SharedConfig{}, 0)
	}
}

// BenchmarkShared_Release measures a member that leaves with a thousand records.
func BenchmarkShared_Release(b *testing.B) {
	s := group.NewShared(group.SharedConfig{}, 0)
	for b.Loop() {
		for range 1000 {
			s.Acquire(1, 1000, 0)
		}
		if s.Release(1, 0) != 1000 {
			b.Fatal("not all")
		}
	}
}

func BenchmarkChooser(b *testing.B) {
	b.ReportAllocs()
	var c group.Chooser
	takers := make([]group.Taker, 8)
	for i := range takers {
		c.Add(&takers[i], 2)
	}
	for b.Loop() {
		t := c.Next()
		c.Done(t)
	}
}
