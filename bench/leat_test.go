package bench_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// impls returns everything that is measured.
func impls() []impl {
	single := func(f flow) bool { return f.producers == 1 }
	return []impl{
		{name: "leat", mode: "async", open: openLeat(leatAsync)},
		{name: "leat", mode: "batch", open: openLeat(leatBatch)},
		{name: "leat", mode: "sync", open: openLeat(leatSync)},
		{name: "leat", mode: "appender", open: openLeat(leatAppend), only: single},
		{name: "leat", mode: "appender-batch", open: openLeat(leatAppendBatch), only: single},
		{name: "leat", mode: "reserve", open: openLeat(leatReserve), only: single},
		{name: "chan", open: openChan},
		{name: "mutexlog", open: openMutexLog},
	}
}

// keep is how much a partition keeps in these benchmarks: the default.
const keep = 64 << 20

// hot is how much a partition keeps where only the engine's own cost is of interest: it stays in the caches.
const hot = 8 << 20

// leatLine is one partition that makes producers wait for the slowest consumer.
type leatLine struct {
	engine  *engine.Engine
	part    *engine.Partition
	publish leatPublish
	readers []*engine.Reader
	x       *engine.Appender
	*pushers
}

// leatPublish publishes n messages of one producer.
type leatPublish func(l *leatLine, producer int, from, n uint64) error

func openLeat(publish leatPublish) func(testing.TB, flow) line {
	return func(tb testing.TB, f flow) line {
		e, err := engine.Open(engine.Config{})
		require.NoError(tb, err)
		t, err := e.CreateTopic("bench", engine.TopicConfig{Retention: engine.Retention{MaxBytes: keep}})
		require.NoError(tb, err)
		p, err := t.Partition(0)
		require.NoError(tb, err)
		l := &leatLine{engine: e, part: p, publish: publish}
		if f.push {
			l.pushers = newPushers(f)
			for _, handle := range l.handlers {
				_, err := t.Subscribe(engine.HandlerFunc(func(_ context.Context, m *engine.Message) error {
					handle(m.Value)
					return nil
				}), engine.SubscribeConfig{Start: engine.Earliest(), Gap: engine.FailOnGap})
				require.NoError(tb, err)
			}
			return l
		}
		for range f.consumers {
			r, err := p.Reader(engine.ReaderConfig{Start: engine.Earliest(), Gating: true, Gap: engine.FailOnGap})
			require.NoError(tb, err)
			l.readers = append(l.readers, r)
		}
		return l
	}
}

func (l *leatLine) produce(producer int, from, n uint64) error {
	return l.publish(l, producer, from, n)
}

func leatAsync(l *leatLine, producer int, from, n uint64) error {
	ctx, m := context.Background(), make([]byte, size)
	for seq := from; seq < from+n; seq++ {
		fill(m, uint64(producer), seq)
		if err := l.part.PublishAsync(ctx, engine.Record{Value: m}, nil); err != nil {
			return err
		}
	}
	return nil
}

func leatSync(l *leatLine, producer int, from, n uint64) error {
	ctx, m := context.Background(), make([]byte, size)
	for seq := from; seq < from+n; seq++ {
		fill(m, uint64(producer), seq)
		if _, err := l.part.Publish(ctx, engine.Record{Value: m}); err != nil {
			return err
		}
	}
	return nil
}

func leatBatch(l *leatLine, producer int, from, n uint64) error {
	const most = 64
	ctx, m, batch := context.Background(), make([]byte, most*size), make([]engine.Record, most)
	for n > 0 {
		k := min(n, most)
		for i := range k {
			v := m[i*size : (i+1)*size]
			fill(v, uint64(producer), from+i)
			batch[i] = engine.Record{Value: v}
		}
		if err := l.part.PublishBatch(ctx, batch[:k]); err != nil {
			return err
		}
		from, n = from+k, n-k
	}
	return nil
}

func leatAppendBatch(l *leatLine, producer int, from, n uint64) error {
	const most = 64
	ctx, m, batch := context.Background(), make([]byte, most*size), make([]engine.Record, most)
	if err := l.take(ctx); err != nil {
		return err
	}
	for n > 0 {
		k := min(n, most)
		for i := range k {
			v := m[i*size : (i+1)*size]
			fill(v, uint64(producer), from+i)
			batch[i] = engine.Record{Value: v}
		}
		if _, err := l.x.AppendBatch(ctx, batch[:k]); err != nil {
			return err
		}
		from, n = from+k, n-k
	}
	return l.x.Flush()
}

func leatReserve(l *leatLine, producer int, from, n uint64) error {
	const most = 64
	ctx := context.Background()
	if err := l.take(ctx); err != nil {
		return err
	}
	for n > 0 {
		k := min(n, most)
		r, err := l.x.Reserve(ctx, int(k), int(k)*size)
		if err != nil {
			return err
		}
		for i := range k {
			fill(r.Next(size), uint64(producer), from+i)
		}
		if _, err := r.Commit(ctx); err != nil {
			return err
		}
		from, n = from+k, n-k
	}
	return nil
}

// take takes the partition for the line's producer.
func (l *leatLine) take(ctx context.Context) (err error) {
	if l.x == nil {
		l.x, err = l.part.Appender(ctx)
	}
	return err
}

func leatAppend(l *leatLine, producer int, from, n uint64) error {
	ctx, m := context.Background(), make([]byte, size)
	if err := l.take(ctx); err != nil {
		return err
	}
	for seq := from; seq < from+n; seq++ {
		fill(m, uint64(producer), seq)
		if _, err := l.x.Append(ctx, engine.Record{Value: m}); err != nil {
			return err
		}
	}
	return l.x.Flush()
}

func (l *leatLine) consume(consumer int, c *checker, n uint64) error {
	if l.pushers != nil {
		l.await(consumer, c, n)
		return nil
	}
	r, ctx := l.readers[consumer], context.Background()
	window := make([]engine.Record, 256)
	for n > 0 {
		k, err := r.NextBatch(ctx, window[:min(n, uint64(len(window)))])
		if err != nil {
			return err
		}
		for i := range window[:k] {
			c.see(window[i].Value)
		}
		n -= uint64(k)
	}
	return nil
}

func (l *leatLine) close() error { return l.engine.Close() }
