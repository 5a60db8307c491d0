package cursor_test

import (
	"math/rand/v2"
	"testing"

	"github.com/leatlog/leat/cursor"
)

// BenchmarkAcks_Ack measures one acknowledgement: in order, where the floor just counts, and with so many records in
// progress that are finished in any order.
func BenchmarkAcks_Ack(b *testing.B) {
	b.Run("order=kept", func(b *testing.B) {
		b.ReportAllocs()
		var a cursor.Acks
		for off := uint64(0); b.Loop(); off++ {
			a.Ack(off)
		}
	})
	for _, n := range []struct {
		name    string
		records int
	}{{"order=any/progress=16", 16}, {"order=any/progress=1024", 1024}} {
		b.Run(n.name, func(b *testing.B) {
			b.ReportAllocs()
			var (
				a     cursor.Acks
				order = rand.New(rand.NewPCG(1, 2)).Perm(n.records)
				base  uint64
				i     int
			)
			for b.Loop() {
				a.Ack(base + uint64(order[i]))
				if i++; i == len(order) {
					i = 0
					base += uint64(n.records)
				}
			}
			if a.Floor() != base {
				b.Fatalf("floor %d, base %d", a.Floor(), base)
			}
		})
	}
}
