package delivery_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
)

// BenchmarkShare_Backlog delivers a log that is full of records to trivial handlers of so many seats, again and again: the
// cost of one record.
func BenchmarkShare_Backlog(b *testing.B) {
	const records = 100_000
	ack := func(_ context.Context, m *Message) error { return m.Ack() }
	batch := func(context.Context, []Message) error { return nil }
	for _, c := range []struct {
		name    string
		share   delivery.ShareConfig
		seats   int
		handler delivery.Handler
	}{
		{"AtLeastOnce/seats=1", delivery.ShareConfig{}, 1, delivery.Handler{One: nothing}},
		{"AtLeastOnce/seats=2", delivery.ShareConfig{}, 2, delivery.Handler{One: nothing}},
		{"AtLeastOnce/batch", delivery.ShareConfig{}, 1, delivery.Handler{Batch: batch}},
		{"AtMostOnce/seats=1", delivery.ShareConfig{AtMostOnce: true}, 1, delivery.Handler{One: nothing}},
		{"Manual/seats=1", delivery.ShareConfig{Manual: true}, 1, delivery.Handler{One: ack}},
		{"Manual/inOrder", delivery.ShareConfig{Manual: true, Window: group.SharedConfig{InOrder: true}}, 1, delivery.Handler{One: ack}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := backlog(b, records, 0)
			s := newShare(b, p, c.share)
			for range c.seats {
				s.newSeat(b, delivery.SeatConfig{Handler: c.handler, BatchSize: 64}).Start()
			}
			measure(b, records, func() { _ = s.Seek(at(0)) }, s.Drained)
		})
	}
}

// BenchmarkShare_Poll takes a log that is full of records in pieces.
func BenchmarkShare_Poll(b *testing.B) {
	const records = 100_000
	for _, n := range []int{1, 10, 500} {
		b.Run(fmt.Sprintf("max=%d", n), func(b *testing.B) {
			p := backlog(b, records, 0)
			s := newShare(b, p, delivery.ShareConfig{})
			x := s.pull(b, 512)
			var buf []Message
			b.ReportAllocs()
			for done := 0; b.Loop(); done += len(buf) {
				if done >= records {
					done = 0
					_ = s.Seek(at(0))
				}
				buf, _, _ = x.Take(buf[:0], n)
				x.HandIn()
			}
		})
	}
}
