package murmur2_test

import (
	"strconv"
	"testing"

	"github.com/leatlog/leat/engine/internal/murmur2"
)

// BenchmarkPartition measures what choosing a partition by key costs a publish.
func BenchmarkPartition(b *testing.B) {
	for _, size := range []int{8, 16, 36, 256} {
		b.Run("key="+strconv.Itoa(size)+"B", func(b *testing.B) {
			b.ReportAllocs()
			key, sum := make([]byte, size), 0
			for b.Loop() {
				sum += murmur2.Partition(key, 12)
			}
		})
	}
}
