package stream_test

import (
	"testing"

	"github.com/leatlog/leat/bench/load/stream"
)

func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"constant", "poisson", "burst:10ms/90ms", "ramp:0.1-1:10:5s"} {
		b.Run("times="+text, func(b *testing.B) {
			x := arrival(b, text).Times(stream.Part{}, 1e6)
			for b.Loop() {
				x.Next()
			}
		})
	}
	for _, text := range []string{"uniform:64-128", "lognormal:64:1.2", "bimodal:64:4096:0.1"} {
		b.Run("sizes="+text, func(b *testing.B) {
			x := sizes(b, text).Stream(stream.Part{})
			for b.Loop() {
				x.Next()
			}
		})
	}
	for _, text := range []string{"uniform:1000", "zipf:0.99:1000", "zipf:1.2:1000000", "hot:0.9:10:1000"} {
		b.Run("keys="+text, func(b *testing.B) {
			x := keys(b, text).Stream(stream.Part{})
			for b.Loop() {
				x.Next()
			}
		})
	}
}
