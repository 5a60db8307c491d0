package engine_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// allocations returns how many allocations n calls of f cause, on whatever goroutine.
func allocations(n int, f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range n {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs)
}

// TestAllocations: in the steady state publishing and reading allocate nothing. A new segment does, a few small things once in
// thousands of records.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	check := func(t *testing.T, n int, f func(t *testing.T, p *engine.Partition) func()) {
		t.Helper()
		watchdog(t)
		topic := newTopic(t, engine.TopicConfig{Retention: engine.Retention{MaxBytes: 4 << 20}})
		p := part(t, topic, 0)
		call := f(t, p)
		for range n / 10 {
			call() // until everything has its size
		}
		published := p.Next()
		some := allocations(n, call)
		// Now and then a segment begins, and other goroutines of the test binary allocate a little: that is not for each.
		require.Less(t, some, 0.02*float64(max(p.Next()-published, int64(n)))+32, "for each record, or each call")
	}
	n := rounds(100_000)
	record := engine.Record{Key: []byte("key"), Value: make([]byte, 64), Headers: engine.MakeHeaders(engine.Header{Name: "h", Value: []byte("v")})}
	done := func(engine.Published, error) {}
	for name, publish := range map[string]func(p *engine.Partition) error{
		"Publish":                         func(p *engine.Partition) error { _, err := p.Publish(background, record); return err },
		"Publish to the topic":            func(p *engine.Partition) error { _, err := p.Topic().Publish(background, record); return err },
		"PublishAsync":                    func(p *engine.Partition) error { return p.PublishAsync(background, record, nil) },
		"PublishAsync to the topic":       func(p *engine.Partition) error { return p.Topic().PublishAsync(background, record, nil) },
		"PublishAsync with a callback":    func(p *engine.Partition) error { return p.PublishAsync(background, record, done) },
		"PublishAsync, topic, a callback": func(p *engine.Partition) error { return p.Topic().PublishAsync(background, record, done) },
		"TryPublish": func(p *engine.Partition) error {
			for {
				if err := p.TryPublish(record); err != engine.ErrFull {
					return err
				}
				runtime.Gosched()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, n, func(t *testing.T, p *engine.Partition) func() {
				return func() {
					if err := publish(p); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
	t.Run("Publish that waits", func(t *testing.T) {
		check(t, n/5, func(t *testing.T, p *engine.Partition) func() {
			stop, ended := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { close(stop); <-ended })
			go func() { // keeps the goroutine of the partition busy, so that the others have to queue
				defer close(ended)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						_ = p.PublishAsync(background, record, nil)
					}
					if i%16 == 0 {
						runtime.Gosched() // or on one processor each of the others waits for 10 ms
					}
				}
			}()
			return func() {
				if _, err := p.Publish(background, record); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	t.Run("PublishBatch", func(t *testing.T) {
		batch := make([]engine.Record, 64)
		for i := range batch {
			batch[i] = record
		}
		check(t, n/100, func(t *testing.T, p *engine.Partition) func() {
			return func() {
				if err := p.PublishBatch(background, batch); err != nil {
					t.Fatal(err)
				}
				if err := p.Topic().PublishBatch(background, batch); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	t.Run("Appender", func(t *testing.T) {
		check(t, n, func(t *testing.T, p *engine.Partition) func() {
			a, err := p.Appender(background)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, a.Close()) })
			return func() {
				if _, err := a.Append(background, record); err != nil {
					t.Fatal(err)
				}
				if _, err := a.Publish(background, record); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	t.Run("Reserve", func(t *testing.T) {
		check(t, n/100, func(t *testing.T, p *engine.Partition) func() {
			a, err := p.Appender(background)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, a.Close()) })
			return func() {
				r, err := a.Reserve(background, 64, 64*(len(record.Key)+len(record.Value)))
				if err != nil {
					t.Fatal(err)
				}
				for range 64 {
					copy(r.NextKey(record.Key, len(record.Value)), record.Value)
				}
				if _, err := r.Commit(background); err != nil {
					t.Fatal(err)
				}
				if r, err = a.Reserve(background, 64, 64*16); err != nil {
					t.Fatal(err)
				}
				clear(r.NextRun(64, 16))
				if _, err := r.Commit(background); err != nil {
					t.Fatal(err)
				}
			}
		})
	})
	reading := func(t *testing.T, wait engine.Wait, read func(r *engine.Reader) error) {
		t.Helper()
		check(t, n/10, func(t *testing.T, p *engine.Partition) func() {
			r := newReader(t, p, engine.ReaderConfig{Gating: true, Wait: wait})
			return func() {
				if err := p.PublishAsync(background, record, nil); err != nil {
					t.Fatal(err)
				}
				if err := read(r); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	for _, wait := range []engine.Wait{engine.WaitPark, engine.WaitYield, engine.WaitSpin} {
		t.Run("Next "+wait.String(), func(t *testing.T) {
			reading(t, wait, func(r *engine.Reader) error { _, err := r.Next(background); return err })
		})
	}
	batch := make([]engine.Record, 64)
	t.Run("NextBatch", func(t *testing.T) {
		reading(t, engine.WaitPark, func(r *engine.Reader) error { _, err := r.NextBatch(background, batch); return err })
	})
	values := make([][]byte, 64)
	t.Run("NextValues", func(t *testing.T) {
		reading(t, engine.WaitPark, func(r *engine.Reader) error { _, err := r.NextValues(background, values); return err })
	})
	t.Run("NextRun", func(t *testing.T) {
		reading(t, engine.WaitPark, func(r *engine.Reader) error { _, _, err := r.NextRun(background, 64); return err })
	})
	t.Run("ReadAt", func(t *testing.T) {
		check(t, n, func(t *testing.T, p *engine.Partition) func() {
			numbers(t, p, 100)
			return func() {
				if n, err := p.ReadAt(20, batch); n != 64 || err != nil {
					t.Fatal(n, err)
				}
			}
		})
	})
}

// TestGoroutines: one for each partition, the workers, and a constant, whatever is done with them; and after Close none.
func TestGoroutines(t *testing.T) {
	watchdog(t)
	count := func(most int) {
		t.Helper()
		await(func() bool { return runtime.NumGoroutine() <= most }) // some are on their way out
	}
	base := runtime.NumGoroutine()
	e, err := engine.Open(engine.Config{Workers: 3})
	require.NoError(t, err)
	const callbacks = 2
	count(base + 3 + callbacks)
	for i, name := range []string{"a", "b", "c"} {
		topic := create(t, e, name, engine.TopicConfig{Partitions: 4, Retention: engine.Retention{MaxRecords: 8, MaxAge: 1 << 40}})
		for range 5 {
			subscribe(t, topic, ignore, engine.SubscribeConfig{})
		}
		for range 100 {
			for _, way := range publishers {
				if err := way.publish(background, topic, value("x")); err != nil {
					require.ErrorIs(t, err, engine.ErrFull, way.name)
				}
			}
			newReader(t, part(t, topic, 1), engine.ReaderConfig{})
		}
		require.NoError(t, topic.Flush(background))
		count(base + 3 + callbacks + 4*(i+1))
	}
	require.NoError(t, e.DeleteTopic("b"))
	count(base + 3 + callbacks + 8)
	require.NoError(t, e.Close())
	count(base)
}
