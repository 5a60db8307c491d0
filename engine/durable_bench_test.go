package engine_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// BenchmarkDurable_Publish is one record after the other from several publishers, on the file system of the tests' temporary
// directory. bare is what it is to be compared with: the same bytes, written and synced by a loop.
func BenchmarkDurable_Publish(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		f, err := vfs.OS{}.Create(b.TempDir() + "/f")
		require.NoError(b, err)
		defer f.Close()
		buf, at := make([]byte, 320), int64(0)
		require.NoError(b, f.Allocate(8<<20))
		for b.Loop() {
			_, err := f.WriteAt(buf, at)
			require.NoError(b, err)
			require.NoError(b, f.Sync())
			if at += 320; at+320 > 8<<20 {
				at = 0
			}
		}
	})
	for _, s := range []engine.Sync{engine.Always, engine.Interval(10 * time.Millisecond), engine.Never} {
		for _, publishers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%v/publishers=%d", s, publishers), func(b *testing.B) {
				e := open(b, engine.Config{Dir: b.TempDir()})
				top, err := e.CreateTopic("t", engine.TopicConfig{OnFull: engine.DropOldest, Durable: &engine.Durable{Sync: s}})
				require.NoError(b, err)
				r := engine.Record{Value: make([]byte, 256)}
				var wg sync.WaitGroup
				b.ResetTimer()
				for i := range publishers {
					wg.Go(func() {
						for range (b.N + i) / publishers {
							if _, err := top.Publish(background, r); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				x := part(b, top, 0).DurableStats()
				b.ReportMetric(float64(b.N)/float64(max(x.Writes, 1)), "records/write")
			})
		}
	}
}
