package load_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/leatlog/leat/bench/load"
)

// BenchmarkHarness measures what the harness itself adds to each message: making one, checking one, recording one.
func BenchmarkHarness(b *testing.B) {
	for _, size := range []int{load.MinSize, 64, 1024} {
		s := load.Scenario{Producers: 1, Partitions: 1, Size: size}
		b.Run(fmt.Sprintf("op=make/payload=%dB", size), func(b *testing.B) {
			m := load.NewTestMessage(s, 0)
			b.ReportAllocs()
			for seq := uint64(0); b.Loop(); seq++ {
				m.Set(0, seq, 0)
			}
		})
		for _, op := range []struct {
			name  string
			stamp int64
		}{{"check", 0}, {"check-and-measure", 1}} {
			b.Run(fmt.Sprintf("op=%s/payload=%dB", op.name, size), func(b *testing.B) {
				const ring = 1024
				m := load.NewTestMessage(s, 0)
				l := load.NewTestLane(s, 0)
				var messages [ring][]byte
				b.ReportAllocs()
				for seq := uint64(0); b.Loop(); seq++ {
					if i := seq % ring; i == 0 {
						b.StopTimer()
						for j := range messages {
							messages[j] = bytes.Clone(m.Set(0, seq+uint64(j), op.stamp))
						}
						b.StartTimer()
					}
					l.Deliver(messages[seq%ring])
				}
			})
		}
	}
	b.Run("op=record", func(b *testing.B) {
		h := load.NewHistogram()
		b.ReportAllocs()
		for v := int64(1); b.Loop(); v = v*5 + 1 {
			h.Record(v & 0xFFFFF)
		}
	})
	c := load.NewClock()
	b.Run("op=now", func(b *testing.B) {
		for b.Loop() {
			c.Now()
		}
	})
	b.Run("op=after", func(b *testing.B) {
		for b.Loop() {
			c.After()
		}
	})
}

// BenchmarkSaturated measures the whole loop of a saturating run on a target that does nothing, with and without what records: the one
// message in 61 that is measured, and the windows.
func BenchmarkSaturated(b *testing.B) {
	for _, c := range []struct {
		name   string
		every  int
		window time.Duration
	}{{"recording", 61, 0}, {"none", 1 << 30, -1}} {
		b.Run("record="+c.name, func(b *testing.B) {
			s := load.Scenario{
				Producers: 1, Partitions: 1, Subscribers: 1, Duration: time.Hour, Messages: int64(b.N), SampleEvery: c.every, Window: c.window,
				NoPlacement: true, NoFloor: true,
			}
			b.ReportAllocs()
			res, err := load.Run(b.Context(), load.Null{}, s)
			if err != nil || res.Faults.Any() {
				b.Fatal(err, res.Faults)
			}
		})
	}
}
