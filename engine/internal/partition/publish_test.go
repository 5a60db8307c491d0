package partition_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// ways are the ways in. Each publishes r and returns once it is in the log.
var ways = map[string]func(p part, r segment.Record) error{
	"Publish": func(p part, r segment.Record) error { _, err := p.Publish(background, &r); return err },
	"queued Publish": func(p part, r segment.Record) error {
		return behindTheRole(p, func() error { _, err := p.Publish(background, &r); return err })
	},
	"PublishBatch": func(p part, r segment.Record) error {
		_, err := p.PublishBatch(background, []segment.Record{r})
		return err
	},
	"TryPublish": func(p part, r segment.Record) error {
		for {
			if err := p.TryPublish(&r); err != partition.ErrFull { // while the goroutine is at what came before
				return err
			}
			runtime.Gosched()
		}
	},
	"queued TryPublish": func(p part, r segment.Record) error {
		return behindTheRole(p, func() error { return p.TryPublish(&r) })
	},
	"PublishAsync": func(p part, r segment.Record) error { return p.PublishAsync(background, &r, nil) },
	"queued PublishAsync": func(p part, r segment.Record) error {
		result := make(chan error, 1)
		err := behindTheRole(p, func() error {
			return p.PublishAsync(background, &r, func(_ partition.Published, err error) { result <- err })
		})
		if err != nil {
			return err
		}
		return <-result
	},
	"Appender": func(p part, r segment.Record) error {
		x, err := p.Appender(background)
		if err == nil {
			_, err = x.Append(background, &r)
			err = errors.Join(err, x.Close())
		}
		return err
	},
}

// behindTheRole calls publish while the role is taken, so that it has to go through the hand-over, and then serves it.
func behindTheRole(p part, publish func() error) error {
	await(p.TakeRole)
	before := p.Queued()
	result := make(chan error, 1)
	go func() { result <- publish() }()
	for {
		select {
		case err := <-result: // handed over, or refused
			p.HoldRole()
			return err
		default:
			if p.Queued() > before {
				p.HoldRole()
				return <-result
			}
			runtime.Gosched()
		}
	}
}

// Every shape of record goes through every way in and comes out as it was: nil and empty, headers and timestamps, and sizes
// around those of a slot, of several slots, and of a copy of its own.
func TestPublish_EveryShape(t *testing.T) {
	fill := func(n int, seed byte) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = seed + byte(i*7)
		}
		return b
	}
	sizes := []int{0, 1, partition.InlineBytes - 1, partition.InlineBytes, partition.InlineBytes + 1, 2 * partition.InlineBytes,
		2*partition.InlineBytes + 1, 16 * partition.InlineBytes, 16*partition.InlineBytes + 1, 20_000}
	var records []segment.Record
	for _, size := range sizes {
		for _, headers := range []segment.Headers{{}, segment.MakeHeaders(segment.Header{}, segment.Header{Name: "name", Value: fill(50, 1)}, segment.Header{Name: "nil"})} {
			for _, timestamp := range []int64{0, 1, -1, math.MinInt64, math.MaxInt64} {
				records = append(records,
					segment.Record{Value: fill(size, 1), Headers: headers, Timestamp: timestamp},
					segment.Record{Key: fill(size, 2), Headers: headers, Timestamp: timestamp},
					segment.Record{Key: fill(size/2, 3), Value: fill(size-size/2, 4), Headers: headers, Timestamp: timestamp},
					segment.Record{Key: fill(size, 5), Value: []byte{}, Headers: headers, Timestamp: timestamp},
					segment.Record{Key: []byte{}, Value: fill(size, 6), Headers: headers, Timestamp: timestamp},
					segment.Record{Headers: headers, Timestamp: timestamp})
			}
		}
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			watchdog(t)
			p := start(t, setup{segBytes: 8 << 10, slots: 64}) // a quarter of the ring is 16 slots
			for i := range records {
				r := records[i].Clone()
				require.NoError(t, way(p, r))
				clear(r.Key) // they are the caller's again
				clear(r.Value)
			}
			require.NoError(t, p.Flush(background))
			got := make([]segment.Record, len(records)+1)
			n, err := p.Log().ReadAt(0, got)
			require.NoError(t, err)
			require.Equal(t, len(records), n)
			for i, want := range records {
				if want.Timestamp == 0 {
					require.NotZero(t, got[i].Timestamp)
					want.Timestamp = got[i].Timestamp
				}
				want.Offset, want.Partition = int64(i), 7
				if len(want.Headers.Encoded()) == 0 {
					want.Headers = segment.Headers{}
				}
				require.Equal(t, want, got[i], "%s, record %d", name, i)
			}
		})
	}
}

func TestPublish_TooLarge(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			watchdog(t)
			p := start(t, setup{maxRecord: 100})
			var large *partition.TooLargeError
			err := way(p, segment.Record{Key: make([]byte, 50), Value: make([]byte, 51)})
			require.ErrorAs(t, err, &large)
			require.ErrorIs(t, err, partition.ErrTooLarge)
			require.Equal(t, partition.TooLargeError{Records: 1, Size: 101, Limit: 100}, *large)
			require.Equal(t, "leat: record too large: 101 bytes, limit 100", large.Error())
			require.NoError(t, way(p, segment.Record{Key: make([]byte, 50), Value: make([]byte, 50)}))
			require.NoError(t, p.Flush(background))
			require.Len(t, values(t, p), 1)
		})
	}
}

func TestPublishBatch_TooLarge(t *testing.T) {
	p := start(t, setup{limits: retention.Limits{MaxRecords: 3}, maxRecord: 100})
	var large *partition.TooLargeError
	_, err := p.PublishBatch(background, make([]segment.Record, 4))
	require.ErrorAs(t, err, &large)
	require.Equal(t, "leat: batch too large: 4 records are more than the partition may hold", large.Error())
	_, err = p.PublishBatch(background, []segment.Record{{}, {Value: make([]byte, 101)}})
	require.ErrorAs(t, err, &large)
	require.Equal(t, partition.TooLargeError{Records: 1, Size: 101, Limit: 100}, *large)

	p = start(t, setup{limits: retention.Limits{MaxBytes: 200}, maxRecord: 100})
	batch := []segment.Record{{Value: make([]byte, 84)}, {Value: make([]byte, 85)}}
	_, err = p.PublishBatch(background, batch)
	require.ErrorAs(t, err, &large)
	require.Equal(t, "leat: batch too large: 2 records of 169 bytes, limit 168 bytes", large.Error())
	batch[1].Value = batch[1].Value[1:]
	off, err := p.PublishBatch(background, batch)
	require.NoError(t, err)
	require.Zero(t, off)

	// Where memory is bounded a batch must fit one block.
	p = start(t, setup{memory: 10_000})
	batch = make([]segment.Record, 8<<10/segment.EntryBytes)
	_, err = p.PublishBatch(background, batch)
	require.NoError(t, err)
	_, err = p.PublishBatch(background, append(batch, segment.Record{}))
	require.ErrorAs(t, err, &large)
}

// TestBUG071: an empty batch does nothing, in whatever state the partition is.
func TestBUG071_EmptyBatch(t *testing.T) {
	p := start(t, setup{})
	publish(t, p, 3)
	off, err := p.PublishBatch(background, nil)
	require.NoError(t, err)
	require.EqualValues(t, 3, off)
	require.Len(t, values(t, p), 3)
}

func TestPublishBatch_SetsOffsets(t *testing.T) {
	p := start(t, setup{segments: 3})
	publish(t, p, 2)
	batch := []segment.Record{*value("a"), *value("b"), *value("c"), *value("d"), *value("e")}
	off, err := p.PublishBatch(background, batch)
	require.NoError(t, err)
	require.EqualValues(t, 2, off)
	for i := range batch {
		require.EqualValues(t, i+2, batch[i].Offset)
		require.EqualValues(t, 7, batch[i].Partition)
	}
}

// A context that has ended fails every publish that waits for its result, idle or not, and no record of it appears; and it
// is the error of the context that comes back, whatever its cause. PublishAsync looks at it only when it has to wait.
func TestPublish_EndedContext(t *testing.T) {
	watchdog(t)
	ctx, cancel := context.WithCancelCause(background)
	cancel(errors.New("why not"))
	p := start(t, setup{})
	for _, held := range []bool{false, true} {
		if held {
			require.True(t, p.TakeRole())
			defer p.HoldRole()
		}
		_, err := p.Publish(ctx, value("x"))
		require.Equal(t, context.Canceled, err)
		_, err = p.PublishBatch(ctx, []segment.Record{{}, {}})
		require.Equal(t, context.Canceled, err)
		require.Equal(t, context.Canceled, p.Flush(ctx))
	}
	require.Empty(t, values(t, p))
	require.Zero(t, p.Queued())
}

// A context that ends while a publish waits, in the hand-over or for it, is definite.
func TestPublish_CancelWhileWaiting(t *testing.T) {
	watchdog(t)
	p := start(t, setup{slots: 2})
	require.True(t, p.TakeRole())
	ctx, cancel := context.WithCancelCause(background)
	results := make(chan error)
	for i := range 4 { // two in the ring, two that wait for a slot
		go func() {
			var err error
			if i%2 == 0 {
				_, err = p.Publish(ctx, value("x"))
			} else {
				_, err = p.PublishBatch(ctx, []segment.Record{{}, {}})
			}
			results <- err
		}()
	}
	await(func() bool { return p.Stats().Blocked == 4 })
	require.Equal(t, partition.ErrFull, p.TryPublish(value("x")))
	cancel(errors.New("why not"))
	for range 4 {
		require.Equal(t, context.Canceled, <-results)
	}
	require.Zero(t, p.Stats().Blocked)
	p.HoldRole()
	require.Empty(t, values(t, p))
	publish(t, p, 1)
}

// Results come once each, in the order of the log, whoever publishes in between.
func TestPublishAsync_CallsInOrder(t *testing.T) {
	watchdog(t)
	p := start(t, setup{slots: 8})
	var mu sync.Mutex
	var offsets []int64
	n := rounds(2000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range n {
				if err := p.PublishAsync(background, value("x"), func(at partition.Published, err error) {
					mu.Lock()
					defer mu.Unlock()
					if err != nil || at.Partition != 7 {
						t.Errorf("result %v, %v", at, err)
					}
					offsets = append(offsets, at.Offset)
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Flush(background))
	require.Len(t, offsets, 4*n)
	for i, off := range offsets {
		require.EqualValues(t, i, off)
	}
	require.Zero(t, p.Pending())
}

// A failed record is told after those that got in before it.
func TestPublishAsync_FailuresInOrder(t *testing.T) {
	watchdog(t)
	var told []string
	tell := func(what string) partition.Done {
		return func(at partition.Published, err error) {
			told = append(told, fmt.Sprint(what, " ", at.Offset, " ", err))
		}
	}
	p := start(t, setup{first: math.MaxInt64 - 2, slots: 16})
	require.True(t, p.TakeRole())
	for i := range 4 {
		r := value("x")
		if i == 3 {
			r.Value = make([]byte, 1000) // goes as a copy of its own
		}
		require.NoError(t, p.PublishAsync(background, r, tell(fmt.Sprint(i))))
	}
	p.HoldRole()
	require.NoError(t, p.Flush(background))
	require.Equal(t, []string{
		fmt.Sprint("0 ", int64(math.MaxInt64-2), " <nil>"),
		fmt.Sprint("1 ", int64(math.MaxInt64-1), " <nil>"),
		"2 0 leat: offsets exhausted",
		"3 0 leat: offsets exhausted",
	}, told)
}

// A callback may panic, end its goroutine, publish and wait for nobody; the next one is called all the same.
func TestPublishAsync_Callbacks(t *testing.T) {
	watchdog(t)
	var panics []any
	p := start(t, setup{workers: newWorkers(t, 1), panicked: func(v any, stack []byte) {
		panics = append(panics, v)
		if !bytes.Contains(stack, []byte("TestPublishAsync_Callbacks")) {
			t.Errorf("stack: %s", stack)
		}
	}})
	flush := make(chan error, 1)
	last := make(chan int64, 1)
	for _, done := range []partition.Done{
		func(partition.Published, error) { panic("one") },
		func(partition.Published, error) { runtime.Goexit() },
		func(partition.Published, error) { flush <- p.Flush(background) },
		func(partition.Published, error) {
			for range 2 * partition.MaxPending { // more than may be outstanding
				if err := p.PublishAsync(background, value("inside"), func(partition.Published, error) {}); err != nil {
					t.Error(err)
				}
			}
		},
		func(at partition.Published, err error) { last <- at.Offset },
	} {
		require.NoError(t, p.PublishAsync(background, value("x"), done))
	}
	require.ErrorIs(t, <-flush, partition.ErrSelfBlock)
	require.EqualValues(t, 4, <-last)
	require.NoError(t, p.Flush(background))
	require.Equal(t, []any{"one"}, panics)
	require.Len(t, values(t, p), 5+2*partition.MaxPending)
}

// While too many callbacks are outstanding PublishAsync waits; it leaves with its context, with the partition, and when one
// has run.
func TestPublishAsync_WaitsForCallbacks(t *testing.T) {
	watchdog(t)
	p := start(t, setup{workers: newWorkers(t, 1)})
	started, release := make(chan struct{}), make(chan struct{})
	require.NoError(t, p.PublishAsync(background, value("x"), func(partition.Published, error) { close(started); <-release }))
	<-started
	require.True(t, p.InCallback())
	none := func(partition.Published, error) {}
	for range partition.MaxPending {
		require.NoError(t, p.PublishAsync(background, value("x"), none))
	}
	ctx, cancel := context.WithCancel(background)
	results := make(chan error)
	try := func(ctx context.Context) { results <- p.PublishAsync(ctx, value("x"), none) }
	go try(ctx)
	cancel()
	require.Equal(t, context.Canceled, <-results)
	require.NoError(t, p.PublishAsync(background, value("x"), nil), "without a callback it need not wait")

	go try(background)
	go func() { results <- p.Flush(background) }()
	close(release)
	require.NoError(t, <-results)
	require.NoError(t, <-results)

	started, release = make(chan struct{}), make(chan struct{})
	require.NoError(t, p.PublishAsync(background, value("x"), func(partition.Published, error) { close(started); <-release }))
	<-started
	for range partition.MaxPending {
		require.NoError(t, p.PublishAsync(background, value("x"), none))
	}
	go try(background)
	p.Close(errOver)
	require.ErrorIs(t, <-results, errOver)
	<-p.Done() // does not wait for callbacks
	close(release)
	p.FlushCallbacks()
	require.Zero(t, p.Pending())
}

// When the workers go nobody waits for callbacks any more. Flush says whether one has been cut off.
func TestFlush_WithoutWorkers(t *testing.T) {
	watchdog(t)
	for _, cut := range []bool{false, true} {
		w := newWorkers(t, 1)
		p := start(t, setup{workers: w})
		started, release := make(chan struct{}), make(chan struct{})
		require.NoError(t, p.PublishAsync(background, value("x"), func(partition.Published, error) { close(started); <-release }))
		<-started
		if cut {
			require.NoError(t, p.PublishAsync(background, value("x"), func(partition.Published, error) { t.Error("called") }))
		}
		flush := make(chan error)
		go func() { flush <- p.Flush(background) }()
		await(func() bool { return p.Pending() > 0 })
		w.Close()
		close(release)
		for _, err := range []error{<-flush, p.Flush(background)} {
			if cut {
				require.ErrorIs(t, err, partition.ErrClosed)
			} else {
				require.NoError(t, err)
			}
		}
		p.FlushCallbacks()
	}
}

// What a partition holds on to ends with it: the pool of workers keeps no task of it.
func TestPartition_LetsGoOfTheWorkers(t *testing.T) {
	watchdog(t)
	for _, callback := range []bool{false, true} {
		w := newWorkers(t, 1)
		p := start(t, setup{workers: w})
		ran := false
		if callback {
			require.NoError(t, p.PublishAsync(background, value("x"), func(partition.Published, error) { ran = true }))
		}
		p.Close(errOver)
		<-p.Done()
		p.FlushCallbacks()
		require.Equal(t, callback, ran)
		await(p.CallsOver)
	}
}

// TestBUG035: a record that takes a large part of a large ring has its true number of slots.
func TestBUG035_LargeRing(t *testing.T) {
	watchdog(t)
	if testing.Short() {
		t.Skip("takes 200 MB")
	}
	p := start(t, setup{slots: 1 << 19, maxRecord: 32 << 20})
	require.True(t, p.TakeRole())
	large := make([]byte, 12<<20)
	large[len(large)-1] = 1
	for _, n := range []int{6 << 20, 12 << 20} { // in 78644 slots, and as a copy that takes 131072
		require.NoError(t, p.TryPublish(&segment.Record{Value: large[len(large)-n:]}))
		require.NoError(t, p.TryPublish(value("x")))
	}
	p.HoldRole()
	require.NoError(t, p.Flush(background))
	var got [5]segment.Record
	n, err := p.Log().ReadAt(0, got[:])
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.True(t, bytes.Equal(large[6<<20:], got[0].Value))
	require.True(t, bytes.Equal(large, got[2].Value))
	require.Equal(t, "x", string(got[1].Value)+string(got[3].Value)[1:])
}
