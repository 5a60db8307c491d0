package bench_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/atomicx"
)

// topic returns the single partition of a new topic on a new engine that ends with the benchmark.
func topic(tb testing.TB, c engine.TopicConfig) (*engine.Topic, *engine.Partition) {
	e, err := engine.Open(engine.Config{})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, e.Close()) })
	t, err := e.CreateTopic("bench", c)
	require.NoError(tb, err)
	p, err := t.Partition(0)
	require.NoError(tb, err)
	return t, p
}

// BenchmarkAppend has one goroutine write and nobody read. The floor is what the hardware charges for the same: a copy of 64
// bytes into memory that is used again and again, and a store that publishes it. A channel needs somebody to take the messages
// out: here the same goroutine, a thousand at a time, so that its figure is a send and a receive.
func BenchmarkAppend(b *testing.B) {
	ctx, m := context.Background(), make([]byte, size)
	run := func(name string, setup func(b *testing.B) (step func(seq uint64) error, end func())) {
		b.Run(name, func(b *testing.B) {
			step, end := setup(b)
			b.ReportAllocs()
			b.SetBytes(size)
			seq := uint64(0)
			one := func() {
				fill(m, 0, seq)
				if err := step(seq); err != nil {
					b.Fatal(err)
				}
				seq++
			}
			for range warm {
				one()
			}
			for b.Loop() {
				one()
			}
			end()
		})
	}
	recycle := engine.TopicConfig{Retention: engine.Retention{MaxBytes: hot}}
	run("impl=leat/mode=appender", func(b *testing.B) (func(uint64) error, func()) {
		_, p := topic(b, recycle)
		x, err := p.Appender(ctx)
		require.NoError(b, err)
		var n engine.Offset
		return func(uint64) error { n, err = x.Append(ctx, engine.Record{Value: m}); return err }, func() {
			require.NoError(b, x.Close())
			require.Equal(b, n+1, p.Next())
		}
	})
	run("impl=leat/mode=reserve", func(b *testing.B) (func(uint64) error, func()) {
		const most = 64
		_, p := topic(b, recycle)
		x, err := p.Appender(ctx)
		require.NoError(b, err)
		r, err := x.Reserve(ctx, most, most*size)
		require.NoError(b, err)
		return func(uint64) error {
				copy(r.Next(size), m)
				if r.Records() < most {
					return nil
				}
				if _, err = r.Commit(ctx); err == nil {
					r, err = x.Reserve(ctx, most, most*size)
				}
				return err
			}, func() {
				require.NoError(b, x.Close())
			}
	})
	run("impl=leat/mode=async", func(b *testing.B) (func(uint64) error, func()) {
		_, p := topic(b, recycle)
		var n uint64
		return func(seq uint64) error { n = seq; return p.PublishAsync(ctx, engine.Record{Value: m}, nil) }, func() {
			require.NoError(b, p.Flush(ctx))
			require.Equal(b, engine.Offset(n+1), p.Next())
		}
	})
	run("impl=leat/mode=sync", func(b *testing.B) (func(uint64) error, func()) {
		_, p := topic(b, recycle)
		return func(uint64) error { _, err := p.Publish(ctx, engine.Record{Value: m}); return err }, func() {}
	})
	run("impl=chan", func(b *testing.B) (func(uint64) error, func()) {
		c := make(chan baseline.Slot, baseline.Capacity)
		k := newChecker(1)
		return func(uint64) error {
				if len(c) == cap(c) {
					for range cap(c) {
						v := <-c
						k.see(v[:])
					}
				}
				var v baseline.Slot
				copy(v[:], m)
				c <- v
				return nil
			}, func() {
				require.NoError(b, k.wrong)
			}
	})
	run("impl=mutexlog", func(b *testing.B) (func(uint64) error, func()) {
		l := baseline.NewLog(hot / size)
		return func(uint64) error { _, err := l.Append(m); return err }, func() {}
	})
	run("impl=floor", func(b *testing.B) (func(uint64) error, func()) {
		memory := make([]byte, hot)
		var committed atomicx.PaddedUint64
		at := 0
		return func(seq uint64) error {
			copy(memory[at:], m)
			if at += size; at == len(memory) {
				at = 0
			}
			committed.Store(seq)
			return nil
		}, func() {}
	})
}

// BenchmarkRead reads a log of 100,000 messages over and over, with nobody writing, and checks them. There is no such thing on
// a channel, which keeps nothing.
func BenchmarkRead(b *testing.B) {
	const kept = 100_000
	ctx := context.Background()
	_, p := topic(b, engine.TopicConfig{Retention: engine.Retention{MaxBytes: engine.Unlimited}})
	fillLeat(b, p, kept)
	mutex := baseline.NewLog(0)
	fillMutexLog(b, mutex, kept)

	run := func(name string, pass func(c *checker) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(size)
			n := 0
			for b.Loop() {
				if n == 0 { // a pass over all of it counts as that many operations
					c := newChecker(1)
					require.NoError(b, pass(c))
					require.NoError(b, c.wrong)
					require.Equal(b, uint64(kept), c.seen())
					n = kept
				}
				n--
			}
		})
	}
	reader := func() *engine.Reader {
		r, err := p.Reader(engine.ReaderConfig{Start: engine.Earliest()})
		require.NoError(b, err)
		b.Cleanup(r.Close)
		return r
	}
	r, window := reader(), make([]engine.Record, 256)
	run("impl=leat/mode=NextBatch", func(c *checker) error {
		if err := r.Seek(engine.Earliest()); err != nil {
			return err
		}
		for left := kept; left > 0; {
			n, err := r.NextBatch(ctx, window[:min(left, len(window))])
			if err != nil {
				return err
			}
			for i := range window[:n] {
				c.see(window[i].Value)
			}
			left -= n
		}
		return nil
	})
	run("impl=leat/mode=Next", func(c *checker) error {
		if err := r.Seek(engine.Earliest()); err != nil {
			return err
		}
		for range kept {
			rec, err := r.Next(ctx)
			if err != nil {
				return err
			}
			c.see(rec.Value)
		}
		return nil
	})
	run("impl=leat/mode=Records", func(c *checker) error {
		for _, rec := range p.Records(0) {
			c.see(rec.Value)
		}
		return nil
	})
	run("impl=leat/mode=ReadAt", func(c *checker) error {
		for off := engine.Offset(0); off < kept; {
			n, err := p.ReadAt(off, window)
			if err != nil {
				return err
			}
			for i := range window[:n] {
				c.see(window[i].Value)
			}
			off += engine.Offset(n)
		}
		return nil
	})
	run("impl=mutexlog/mode=ReadAt", func(c *checker) error {
		for off := range uint64(kept) {
			m, ok := mutex.ReadAt(off)
			if !ok {
				return baseline.ErrClosed
			}
			c.see(m)
		}
		return nil
	})
}

// fillLeat appends n messages of producer 0.
func fillLeat(tb testing.TB, p *engine.Partition, n uint64) {
	ctx, m := context.Background(), make([]byte, size)
	x, err := p.Appender(ctx)
	require.NoError(tb, err)
	for seq := range n {
		fill(m, 0, seq)
		if _, err := x.Append(ctx, engine.Record{Value: m}); err != nil {
			tb.Fatal(err)
		}
	}
	require.NoError(tb, x.Close())
}

func fillMutexLog(tb testing.TB, l *baseline.Log, n uint64) {
	m := make([]byte, size)
	for seq := range n {
		fill(m, 0, seq)
		if _, err := l.Append(m); err != nil {
			tb.Fatal(err)
		}
	}
}
