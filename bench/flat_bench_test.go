package bench_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/engine"
)

// What these benchmarks ask: does anything cost more because much is retained, or because many look on? Every line of one
// benchmark should show the same figure.

var retained = []uint64{1e3, 1e4, 1e5, 1e6, 1e7}

// keeping is a topic that keeps about n records, however many come.
func keeping(n uint64) engine.TopicConfig {
	return engine.TopicConfig{Retention: engine.Retention{MaxBytes: engine.Unlimited, MaxRecords: int64(n)}}
}

// appending measures an exclusive appender.
func appending(b *testing.B, p *engine.Partition) {
	ctx, m := context.Background(), make([]byte, size)
	x, err := p.Appender(ctx)
	require.NoError(b, err)
	b.ReportAllocs()
	b.SetBytes(size)
	for b.Loop() {
		if _, err := x.Append(ctx, engine.Record{Value: m}); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, x.Close())
}

// BenchmarkPublishRetained appends to a log that keeps so many records: each append that adds one also lets one go, by
// segments.
func BenchmarkPublishRetained(b *testing.B) {
	m := make([]byte, size)
	for _, n := range retained {
		b.Run(fmt.Sprintf("retained=%.0e/impl=leat", float64(n)), func(b *testing.B) {
			_, p := topic(b, keeping(n))
			fillLeat(b, p, n+n/4)
			appending(b, p)
			require.LessOrEqual(b, uint64(p.Next()-p.First()), n)
		})
		b.Run(fmt.Sprintf("retained=%.0e/impl=mutexlog", float64(n)), func(b *testing.B) {
			l := baseline.NewLog(int(n))
			fillMutexLog(b, l, n+n/4)
			b.ReportAllocs()
			b.SetBytes(size)
			for b.Loop() {
				if _, err := l.Append(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReadRetained reads the newest thousand of so many records over and over.
func BenchmarkReadRetained(b *testing.B) {
	const newest = 1000
	ctx := context.Background()
	for _, n := range retained {
		b.Run(fmt.Sprintf("retained=%.0e/impl=leat", float64(n)), func(b *testing.B) {
			_, p := topic(b, engine.TopicConfig{Retention: engine.Retention{MaxBytes: engine.Unlimited}})
			fillLeat(b, p, n)
			r, err := p.Reader(engine.ReaderConfig{})
			require.NoError(b, err)
			defer r.Close()
			window := make([]engine.Record, 256)
			b.ReportAllocs()
			b.SetBytes(size)
			left := 0
			for b.Loop() {
				if left == 0 {
					require.NoError(b, r.Seek(engine.Last(newest)))
					c := &checker{next: []uint64{n - newest}}
					for got := 0; got < newest; {
						k, err := r.NextBatch(ctx, window)
						if err != nil {
							b.Fatal(err)
						}
						for i := range window[:k] {
							c.see(window[i].Value)
						}
						got += k
					}
					require.NoError(b, c.wrong)
					left = newest
				}
				left--
			}
		})
	}
}

// BenchmarkReadAtRandom reads one record at a random offset of ten million. p50-ns is the median of single calls, a look into
// the payload and at the clock (about 20 ns) included; most of it is the way to memory.
func BenchmarkReadAtRandom(b *testing.B) {
	const n = 10_000_000
	single := func(b *testing.B, read func(off uint64) ([]byte, bool)) {
		clock, h, rng := load.NewClock(), load.NewHistogram(), rand.New(rand.NewPCG(1, 2))
		b.ReportAllocs()
		for b.Loop() {
			off := rng.Uint64N(n)
			from := clock.Now()
			m, ok := read(off)
			right := ok && binary.LittleEndian.Uint64(m) == off
			h.Record(clock.After() - from)
			if !right {
				b.Fatal("offset ", off)
			}
		}
		b.ReportMetric(float64(h.Percentile(50)), "p50-ns")
		b.ReportMetric(float64(h.Percentile(99)), "p99-ns")
	}
	b.Run("retained=1e+07/impl=leat", func(b *testing.B) {
		_, p := topic(b, engine.TopicConfig{Retention: engine.Retention{MaxBytes: engine.Unlimited}})
		fillLeat(b, p, n)
		one := make([]engine.Record, 1)
		single(b, func(off uint64) ([]byte, bool) {
			k, err := p.ReadAt(engine.Offset(off), one)
			return one[0].Value, err == nil && k == 1
		})
	})
	b.Run("retained=1e+07/impl=mutexlog", func(b *testing.B) {
		l := baseline.NewLog(0)
		fillMutexLog(b, l, n)
		single(b, l.ReadAt)
	})
}

// BenchmarkPublishIdleSubscriptions appends while so many subscriptions have nothing to do: on other topics of the engine, or
// paused on this one.
func BenchmarkPublishIdleSubscriptions(b *testing.B) {
	ignore := engine.HandlerFunc(func(context.Context, *engine.Message) error { return nil })
	for _, where := range []string{"elsewhere", "paused"} {
		for _, subs := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("subs=%d/where=%s/impl=leat", subs, where), func(b *testing.B) {
				e, err := engine.Open(engine.Config{})
				require.NoError(b, err)
				defer func() { require.NoError(b, e.Close()) }()
				here, err := e.CreateTopic("here", engine.TopicConfig{Retention: engine.Retention{MaxBytes: hot}})
				require.NoError(b, err)
				t := here
				for i := range subs {
					if where == "elsewhere" && i%10 == 0 {
						t, err = e.CreateTopic(fmt.Sprint("topic", i), engine.TopicConfig{})
						require.NoError(b, err)
					}
					s, err := t.Subscribe(ignore, engine.SubscribeConfig{NonGating: true})
					require.NoError(b, err)
					if where == "paused" {
						require.NoError(b, s.Pause())
					}
				}
				p, err := here.Partition(0)
				require.NoError(b, err)
				fillLeat(b, p, warm)
				appending(b, p)
			})
		}
	}
}

// BenchmarkGC runs the collector while ten million messages are retained. The floor is the collector with nothing retained.
// retained-B/B is how many bytes of heap each retained byte of payload takes.
func BenchmarkGC(b *testing.B) {
	const n = 10_000_000
	for _, c := range []struct {
		name   string
		retain func(b *testing.B) (keep any)
	}{
		{"retained=0e+00/impl=floor", nil},
		{"retained=1e+07/impl=leat", func(b *testing.B) any {
			_, p := topic(b, engine.TopicConfig{Retention: engine.Retention{MaxBytes: engine.Unlimited}})
			fillLeat(b, p, n)
			return p
		}},
		{"retained=1e+07/impl=mutexlog", func(b *testing.B) any {
			l := baseline.NewLog(0)
			fillMutexLog(b, l, n)
			return l
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			before := heap()
			var kept any
			if c.retain != nil {
				kept = c.retain(b)
			}
			after := heap()
			var from, to runtime.MemStats
			runtime.ReadMemStats(&from)
			for b.Loop() {
				runtime.GC()
			}
			runtime.ReadMemStats(&to)
			b.ReportMetric(float64(to.PauseTotalNs-from.PauseTotalNs)/float64(to.NumGC-from.NumGC), "pause-ns/op")
			if kept != nil {
				b.ReportMetric(float64(after-min(before, after))/(n*size), "retained-B/B")
			}
			runtime.KeepAlive(kept)
		})
	}
}

// heap returns the bytes of the heap in use, after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one found finalizable or pooled
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// BenchmarkIdle has 1000 subscriptions on 100 topics and no traffic. cpu-% is how much of one core the process uses meanwhile.
func BenchmarkIdle(b *testing.B) {
	b.Run("topics=100/subs=1000/impl=leat", func(b *testing.B) {
		e, err := engine.Open(engine.Config{})
		require.NoError(b, err)
		defer func() { require.NoError(b, e.Close()) }()
		ignore := engine.HandlerFunc(func(context.Context, *engine.Message) error { return nil })
		for i := range 100 {
			t, err := e.CreateTopic(fmt.Sprint("topic", i), engine.TopicConfig{})
			require.NoError(b, err)
			for range 10 {
				_, err := t.Subscribe(ignore, engine.SubscribeConfig{})
				require.NoError(b, err)
			}
		}
		runtime.GC()
		begin, cpu := time.Now(), load.CPUTime()
		for b.Loop() {
			time.Sleep(100 * time.Millisecond) // the time that passes is what is measured
		}
		b.ReportMetric(100*float64(load.CPUTime()-cpu)/float64(time.Since(begin)), "cpu-%")
		b.ReportMetric(float64(runtime.NumGoroutine()), "goroutines")
	})
}
