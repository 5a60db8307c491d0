package delivery_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// BenchmarkKeyed_Backlog delivers a log that is full of records to a trivial handler again and again: the cost of one record,
// for so many keys (0: none has one) and runners on two workers. lane=true is a Lane for comparison.
func BenchmarkKeyed_Backlog(b *testing.B) {
	const records = 100_000
	for _, c := range []struct{ keys, parallel int }{{1, 1}, {100, 1}, {100, 2}, {100, 8}, {10_000, 2}, {1, 2}, {0, 2}} {
		b.Run(fmt.Sprintf("keys=%d/parallel=%d", c.keys, c.parallel), func(b *testing.B) {
			p := backlog(b, records, c.keys)
			k := newKeyed(b, p, delivery.Config{Parallel: c.parallel, Handler: delivery.Handler{One: func(context.Context, *Message) error { return nil }}}, latest)
			k.Start()
			measure(b, records, func() { _ = k.Seek(at(0)) }, k.Drained)
		})
	}
	b.Run("lane=true", func(b *testing.B) {
		p := backlog(b, records, 100)
		l := newLane(b, p, each(nothing), latest)
		l.Start()
		measure(b, records, func() { _ = l.Seek(at(0)) }, l.Drained)
	})
}

// BenchmarkKeyed_Stream publishes one record after the other to a lane with a trivial handler that keeps up.
func BenchmarkKeyed_Stream(b *testing.B) {
	stream := func(b *testing.B, p *part, over func() bool) {
		r := segment.Record{Value: make([]byte, 64)}
		ks := make([][]byte, 100)
		for i := range ks {
			ks[i] = fmt.Append(nil, i)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			r.Key = ks[i%len(ks)]
			if _, err := p.Publish(background, &r); err != nil {
				b.Fatal(err)
			}
		}
		await(over)
	}
	setup := partitionSetup{limits: retention.Limits{MaxRecords: 100_000}, segments: 10_000}
	for _, parallel := range []int{1, 4} {
		b.Run(fmt.Sprintf("parallel=%d", parallel), func(b *testing.B) {
			p := newPart(b, setup)
			k := newKeyed(b, p, delivery.Config{Parallel: parallel, Handler: delivery.Handler{One: nothing}}, nil)
			k.Start()
			stream(b, p, k.Drained)
		})
	}
	b.Run("lane=true", func(b *testing.B) {
		p := newPart(b, setup)
		l := newLane(b, p, each(nothing), nil)
		l.Start()
		stream(b, p, l.Drained)
	})
}

func backlog(b *testing.B, records, keys int) *part {
	p := newPart(b, partitionSetup{})
	for i := range records {
		r := &segment.Record{Value: make([]byte, 64)}
		if keys > 0 {
			r.Key = fmt.Appendf(nil, "key-%d", i*7919%keys)
		}
		if _, err := p.Publish(background, r); err != nil {
			b.Fatal(err)
		}
	}
	return p
}

// measure does rounds of so many records until b.N are through.
func measure(b *testing.B, records int, again func(), over func() bool) {
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += records {
		again()
		await(over)
	}
	b.StopTimer()
	rounds := (b.N + records - 1) / records
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rounds*records), "ns/record")
}
