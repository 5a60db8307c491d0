package frame_test

import (
	"fmt"
	"testing"

	"github.com/leatlog/leat/segment/frame"
)

// BenchmarkFrame measures what a record costs on its way into a frame and out of it, in batches, without a disk.
func BenchmarkFrame(b *testing.B) {
	for _, size := range []int{64, 1024} {
		for _, batch := range []int{1, 64, 1024} {
			name := fmt.Sprintf("value=%dB/batch=%d", size, batch)
			records := make([]frame.Record, batch)
			for i := range records {
				records[i] = frame.Record{Value: make([]byte, size), Appended: 1}
			}
			var w frame.Builder
			b.Run("op=build/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				for n := 0; n < b.N; n += batch {
					w.Reset(0)
					for i := range records {
						w.Add(&records[i])
					}
					w.Finish(seed, 64, frame.Header{First: 1})
				}
			})
			whole := w.Finish(seed, 64, frame.Header{First: 1})
			b.Run("op=decode/"+name, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(size))
				var r frame.Record
				for n := 0; n < b.N; n += batch {
					f, err := frame.Decode(whole, seed, 64)
					if err != nil {
						b.Fatal(err)
					}
					it := f.Records()
					for it.Next(&r) {
					}
				}
			})
		}
	}
}
