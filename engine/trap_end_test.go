package engine_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG002: Close wakes every publisher that waits for room, and none of them owns an offset.
func TestBUG002_CloseWakesPublishers(t *testing.T) {
	watchdog(t)
	for _, way := range publishers {
		if way.name == "TryPublish" || way.name == "PublishAsync without a callback" {
			continue // they do not wait
		}
		e := open(t, engine.Config{})
		topic := create(t, e, "topic", engine.TopicConfig{Retention: engine.Retention{MaxRecords: 4}, HandoverSlots: 2})
		p := part(t, topic, 0)
		newReader(t, p, engine.ReaderConfig{Gating: true})
		numbers(t, p, 4)
		results := make(chan error)
		n := 8
		if way.name == "Appender" {
			n = 1
		}
		for range n {
			go func() { results <- way.publish(background, topic, value("x")) }()
		}
		await(func() bool { return p.Stats().Full })
		require.NoError(t, e.Close())
		for range n {
			require.ErrorIs(t, <-results, engine.ErrClosed, way.name)
		}
		require.EqualValues(t, 4, p.Next())
	}
}

// TestBUG044: calls that race with Close either take effect or say that it is closed. None waits after Close has returned.
func TestBUG044_CallsThatRaceWithClose(t *testing.T) {
	watchdog(t)
	for range rounds(200) {
		e, err := engine.Open(engine.Config{})
		require.NoError(t, err)
		topic := create(t, e, "topic", engine.TopicConfig{Retention: engine.Retention{MaxRecords: 8}, HandoverSlots: 4})
		p := part(t, topic, 0)
		gating := newReader(t, p, engine.ReaderConfig{Gating: true})
		var wg sync.WaitGroup
		again := func(f func() error) {
			wg.Go(func() {
				for {
					err := f()
					out, gap := (*engine.OffsetError)(nil), (*engine.GapError)(nil)
					switch {
					case err == nil, errors.Is(err, engine.ErrFull), errors.Is(err, engine.ErrExclusive), errors.As(err, &out), errors.As(err, &gap):
						runtime.Gosched()
					case errors.Is(err, engine.ErrClosed):
						return
					default:
						t.Error(err)
						return
					}
				}
			})
		}
		var told, accepted atomic.Int64
		for _, way := range publishers {
			again(func() error { return way.publish(background, topic, value("x")) })
		}
		again(func() error {
			err := topic.PublishAsync(background, value("x"), func(engine.Published, error) { told.Add(1) })
			if err == nil {
				accepted.Add(1)
			}
			return err
		})
		again(func() error {
			if err := topic.Flush(background); err != nil {
				return err
			}
			return p.TruncateBefore(background, 0)
		})
		r := newReader(t, p, engine.ReaderConfig{})
		again(func() error {
			_, err := r.Next(background)
			if err == nil {
				err = r.Seek(engine.Earliest())
			}
			return err
		})
		again(func() error { _, err := gating.NextBatch(background, make([]engine.Record, 3)); return err })
		again(func() error { _, err := p.ReadAt(p.First(), make([]engine.Record, 3)); return err })
		again(func() error {
			for _, err := range p.Follow(background, p.First()) {
				if err != nil {
					return err
				}
			}
			return nil
		})
		await(func() bool { return p.Next() > 20 })
		require.NoError(t, e.Close())
		wg.Wait()
		require.NoError(t, topic.Flush(background), "and at once")
		require.Equal(t, accepted.Load(), told.Load())
	}
}

// TestBUG046: what was accepted before Close gets in if there is room; the rest fails; each result is told once.
func TestBUG046_AcceptedBeforeClose(t *testing.T) {
	watchdog(t)
	for _, full := range []bool{false, true} {
		for range rounds(100) {
			e, err := engine.Open(engine.Config{})
			require.NoError(t, err)
			c := engine.TopicConfig{}
			if full {
				c.Retention.MaxRecords = 100
			}
			topic := create(t, e, "topic", c)
			p := part(t, topic, 0)
			r := newReader(t, p, engine.ReaderConfig{Gating: true})
			const n = 300
			var in, failed atomic.Int64
			for range n {
				require.NoError(t, topic.PublishAsync(background, value("x"), func(_ engine.Published, err error) {
					switch {
					case err == nil:
						in.Add(1)
					case errors.Is(err, engine.ErrClosed):
						failed.Add(1)
					default:
						t.Error(err)
					}
				}))
			}
			require.NoError(t, e.Close())
			r.Close()
			require.EqualValues(t, n, in.Load()+failed.Load())
			require.Equal(t, p.Next(), in.Load())
			if full {
				require.EqualValues(t, 100, in.Load())
			} else {
				require.EqualValues(t, n, in.Load())
			}
		}
	}
}

// TestBUG074: of every record of every batch there is exactly one result, whatever becomes of the others: a partition that is
// full, one that does not exist, a Close in the middle.
func TestBUG074_OneResultForEachRecord(t *testing.T) {
	watchdog(t)
	for range rounds(40) {
		e, err := engine.Open(engine.Config{})
		require.NoError(t, err)
		topic, err := e.CreateTopic("topic", engine.TopicConfig{
			Partitions: 8, Partitioner: engine.Explicit(), OnFull: engine.Reject, HandoverSlots: 8, Retention: engine.Retention{MaxRecords: 128},
		})
		require.NoError(t, err)
		newReader(t, part(t, topic, 3), engine.ReaderConfig{Gating: true})
		for topic.TryPublish(engine.Record{Partition: 3}) == nil && part(t, topic, 3).Next() < 128 {
			runtime.Gosched()
		}
		var wg sync.WaitGroup
		var enough atomic.Int64
		var in [8]atomic.Int64
		for i := range 3 {
			wg.Go(func() {
				for n := 1; ; n = n%100 + 1 {
					batch := make([]engine.Record, n)
					for k := range batch {
						batch[k] = engine.Record{Partition: int32(k % 9), Offset: -1}
					}
					err := topic.PublishBatch(background, batch)
					var failed *engine.BatchError
					if !errors.As(err, &failed) {
						failed = &engine.BatchError{Errs: make([]error, n)}
					}
					closed := false
					for k, err := range failed.Errs {
						switch {
						case err == nil && batch[k].Offset >= 0:
							in[k%9].Add(1)
						case k%9 == 3 && errors.Is(err, engine.ErrFull):
						case k%9 == 8 && errors.Is(err, engine.ErrUnknownPartition):
						case errors.Is(err, engine.ErrClosed):
							closed = true
						default:
							t.Errorf("publisher %d, record %d of %d: %v", i, k, n, err)
						}
					}
					if closed {
						return
					}
					enough.Add(1)
				}
			})
		}
		var accepted, told, well [8]atomic.Int64
		wg.Go(func() { // asynchronous ones
			for k := 0; ; k = (k + 1) % 8 {
				err := topic.PublishAsync(background, engine.Record{Partition: int32(k)}, func(at engine.Published, err error) {
					told[k].Add(1)
					if err == nil {
						well[at.Partition].Add(1)
					}
				})
				if err != nil {
					if !errors.Is(err, engine.ErrClosed) {
						t.Error(err)
					}
					return
				}
				accepted[k].Add(1)
				runtime.Gosched() // or on one processor each of the others waits for 10 ms
			}
		})
		await(func() bool { return enough.Load() > 100 })
		require.NoError(t, e.Close())
		wg.Wait()
		for i := range 8 {
			require.Equal(t, accepted[i].Load(), told[i].Load())
			if i != 3 {
				require.Equal(t, part(t, topic, i).Next(), in[i].Load()+well[i].Load())
			}
		}
	}
}
