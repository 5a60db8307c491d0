package segment_test

import (
	"math/rand/v2"
	"testing"

	"github.com/leatlog/leat/segment"
)

func BenchmarkAppend(b *testing.B) {
	payload := make([]byte, 64)
	b.Run("impl=reserve", func(b *testing.B) {
		b.ReportAllocs()
		l := segment.NewLog(segment.Config{})
		n := 0
		for range b.N {
			dst, err := l.Reserve(segment.Shape{Key: -1, Value: 64}, 1)
			if err != nil {
				b.Fatal(err)
			}
			copy(dst, payload)
			if n++; n&255 == 0 {
				l.Publish()
				retain(l, 6)
			}
		}
	})
	b.Run("impl=append", func(b *testing.B) {
		b.ReportAllocs()
		l := segment.NewLog(segment.Config{})
		n := 0
		rec := segment.Record{Value: payload}
		for range b.N {
			if err := l.Append(&rec, 1); err != nil {
				b.Fatal(err)
			}
			if n++; n&255 == 0 {
				l.Publish()
				retain(l, 6)
			}
		}
	})
	b.Run("impl=floor", func(b *testing.B) {
		buf := make([]byte, 6<<20)
		at := 0
		for range b.N {
			if at+64 > len(buf) {
				at = 0
			}
			copy(buf[at:at+len(payload)], payload)
			at += 64
		}
	})
}

func fill(b *testing.B, n, size int) *segment.Log {
	l := segment.NewLog(segment.Config{})
	rec := segment.Record{Value: make([]byte, size)}
	for range n {
		if err := l.Append(&rec, 1); err != nil {
			b.Fatal(err)
		}
	}
	l.Publish()
	return l
}

func BenchmarkNext(b *testing.B) {
	for _, size := range []int{64, 1024} {
		b.Run("size="+map[int]string{64: "64B", 1024: "1KiB"}[size], func(b *testing.B) {
			b.ReportAllocs()
			l := fill(b, 6<<20/size, size)
			r := l.NewReader()
			var rec segment.Record
			for range b.N {
				if !r.Next(&rec) {
					if r.Refill() != segment.Ready {
						r.Seek(0)
					}
				}
			}
		})
	}
}

func BenchmarkReadAt(b *testing.B) {
	b.ReportAllocs()
	const n = 10_000_000
	l := fill(b, n, 64)
	offs := make([]uint64, 1<<16)
	for i := range offs {
		offs[i] = rand.Uint64N(n)
	}
	dst := make([]segment.Record, 1)
	i := 0
	for range b.N {
		i++
		l.ReadAt(offs[i&(1<<16-1)], dst)
	}
}
