package partition_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

// BenchmarkPartition_AddGates measures adding so many gates and taking them out again, for each of them.
func BenchmarkPartition_AddGates(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		for _, lag := range []uint64{0, 1000} {
			b.Run(fmt.Sprintf("gates=%d/maxlag=%d", n, lag), func(b *testing.B) {
				b.ReportAllocs()
				p := start(b, setup{})
				gates := make([]*partition.Gate, n)
				for b.Loop() {
					for i := range gates {
						g := &partition.Gate{Gating: true, MaxLag: lag}
						gates[i] = g
						if _, err := p.AddGate(g, latest); err != nil {
							b.Fatal(err)
						}
					}
					for i := range gates {
						p.RemoveGate(gates[i])
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/gate")
			})
		}
	}
}

// BenchmarkPartition_PublishPastGates measures a publish to a full partition with so many readers that keep up: every few
// records a segment is dropped, and none of them may need it.
func BenchmarkPartition_PublishPastGates(b *testing.B) {
	for _, n := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("gates=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			p := start(b, setup{limits: retention.Limits{MaxRecords: 1024}, segments: 64})
			for range n {
				gate(b, p).Advance(1 << 60) // far ahead, so that this measures what publishers do
			}
			r := value("x")
			for b.Loop() {
				_, err := p.Publish(background, r)
				require.NoError(b, err)
			}
		})
	}
}
