package partition_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

var waits = []cursor.Wait{cursor.WaitPark, cursor.WaitYield, cursor.WaitSpin}

func at(off uint64) func(first, next uint64) (uint64, error) {
	return func(_, _ uint64) (uint64, error) { return off, nil }
}

// next returns the value of the reader's next record.
func next(t testing.TB, r *partition.Reader) string {
	t.Helper()
	var rec segment.Record
	require.NoError(t, r.Next(background, &rec))
	return string(rec.Value)
}

func TestReader_ReadsOn(t *testing.T) {
	p := start(t, setup{segments: 2})
	publish(t, p, 5)
	r := reader(t, p, nil, earliest)
	for i := range 3 {
		require.Equal(t, fmt.Sprint(i), next(t, r))
	}
	batch := make([]segment.Record, 10)
	n, err := r.NextBatch(background, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	for _, want := range []int{1, 1} { // a batch does not cross a segment's end
		n, err = r.NextBatch(background, batch)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	require.EqualValues(t, 4, batch[0].Offset)
	require.EqualValues(t, 7, batch[0].Partition)
	require.EqualValues(t, 5, r.Position())
	require.NoError(t, r.Seek(at(2)))
	values := [][]byte{[]byte("old"), []byte("old"), []byte("old")}
	n, err = r.NextValues(background, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = r.NextValues(background, values)
	require.NoError(t, err)
	require.Equal(t, 2, n, "nor do values")
	require.Equal(t, [][]byte{[]byte("2"), []byte("3"), []byte("old")}, values)
	require.EqualValues(t, 4, r.Position())
	require.NoError(t, r.Seek(at(2)))
	run, n, err := r.NextRun(background, 0)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Nil(t, run)
	run, n, err = r.NextRun(background, 3)
	require.NoError(t, err)
	require.Equal(t, 2, n, "nor does a run")
	require.Equal(t, "23", string(run))
	require.EqualValues(t, 4, r.Position())
	require.NoError(t, r.Seek(at(1)))
	require.Equal(t, "1", next(t, r))
	require.ErrorIs(t, r.Seek(func(_, _ uint64) (uint64, error) { return 0, errOver }), errOver)
	require.Equal(t, "2", next(t, r), "a seek that fails moves nothing")
}

// A reader that has caught up waits, and leaves with its context, with the partition, and with its own Close; what was
// there comes first, even if the context has ended.
func TestReader_Waits(t *testing.T) {
	for _, wait := range waits {
		t.Run(wait.String(), func(t *testing.T) {
			watchdog(t)
			p := start(t, setup{})
			publish(t, p, 1)
			var readers [4]*partition.Reader
			for i := range readers {
				r, err := p.NewReader(nil, wait, earliest)
				require.NoError(t, err)
				readers[i] = r
			}
			ended, cancel := context.WithCancelCause(background)
			cancel(errors.New("why not"))
			var rec segment.Record
			for _, r := range readers {
				require.NoError(t, r.Next(ended, &rec))
				for range 2 {
					require.Equal(t, context.Canceled, r.Next(ended, &rec))
					_, err := r.NextBatch(ended, make([]segment.Record, 1))
					require.Equal(t, context.Canceled, err)
					_, err = r.NextValues(ended, make([][]byte, 1))
					require.Equal(t, context.Canceled, err)
					_, _, err = r.NextRun(ended, 1)
					require.Equal(t, context.Canceled, err)
				}
				require.EqualValues(t, 1, r.Position(), "it stays where it is")
			}
			results := make(chan error)
			wait := func(ctx context.Context, r *partition.Reader) {
				var rec segment.Record
				results <- r.Next(ctx, &rec)
			}
			ctx, stop := context.WithCancel(background)
			go wait(ctx, readers[0])
			stop()
			require.Equal(t, context.Canceled, <-results)
			go wait(background, readers[1])
			publish(t, p, 1)
			require.NoError(t, <-results)
			go wait(background, readers[2])
			require.NoError(t, <-results)
			go wait(background, readers[2])
			readers[2].Close()
			require.Equal(t, partition.ErrReadClosed, <-results)
			readers[2].Close()
			require.Equal(t, partition.ErrReadClosed, readers[2].Next(background, &rec))
			require.Equal(t, partition.ErrReadClosed, readers[2].Seek(earliest))
			go wait(background, readers[1])
			p.Close(errOver)
			require.ErrorIs(t, <-results, errOver)
			require.NoError(t, readers[3].Next(background, &rec), "what is there is there")
			require.ErrorIs(t, readers[3].Next(background, &rec), errOver)
			for _, r := range readers {
				r.Close()
			}
			<-p.Done()
			_, err := p.NewReader(nil, cursor.WaitPark, earliest)
			require.ErrorIs(t, err, errOver)
		})
	}
}

func TestReader_Below(t *testing.T) {
	p := start(t, setup{segments: 2})
	publish(t, p, 10)
	r := reader(t, p, nil, earliest)
	require.Equal(t, "0", next(t, r))
	require.NoError(t, p.TruncateBefore(background, 5))
	require.Equal(t, "1", next(t, r), "the window is pinned")
	var rec segment.Record
	for range 2 {
		var out *partition.OffsetError
		require.ErrorAs(t, r.Next(background, &rec), &out)
		require.Equal(t, partition.OffsetError{Asked: 2, First: 5, Next: 10}, *out)
		require.Equal(t, "leat: offset 2 out of range: the partition holds [5, 10)", out.Error())
	}
	require.NoError(t, r.Seek(earliest))
	require.Equal(t, "5", next(t, r))

	// After the end it is the cause that counts.
	require.NoError(t, r.Seek(at(5)))
	p.Close(errOver)
	<-p.Done()
	p.Free()
	require.ErrorIs(t, r.Next(background, &rec), errOver)
}

// A gate of a reader rises with what the reader is done with, at the next call; a seek forward does so at once, and one back
// takes nothing back.
func TestReader_Gate(t *testing.T) {
	p := start(t, setup{limits: retention.Limits{MaxRecords: 4}, segments: 1, onFull: partition.Reject})
	g := &partition.Gate{Gating: true}
	r := reader(t, p, g, latest)
	publish(t, p, 4)
	require.False(t, try(t, p))
	require.Equal(t, "0", next(t, r))
	require.False(t, try(t, p), "it may still be at it")
	require.Equal(t, "1", next(t, r))
	require.True(t, try(t, p))
	require.False(t, try(t, p))
	require.NoError(t, r.Seek(latest))
	for range 4 {
		require.True(t, try(t, p))
	}
	require.False(t, try(t, p))
	require.NoError(t, r.Seek(earliest))
	require.EqualValues(t, 5, g.Load())
	require.Equal(t, "5", next(t, r))
	r.Close()
	for range 10 {
		require.True(t, try(t, p))
	}
}

// A reader with a limit is put out by the publication that makes it lag more, and told at the next call, wherever it is. What
// it has got and is done with does not count as lag.
func TestReader_Evicted(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	g := &partition.Gate{MaxLag: 10}
	r := reader(t, p, g, latest)
	publish(t, p, 10)
	for i := range 100 { // one window after the other, and never more than 10 behind
		require.Equal(t, fmt.Sprint(i), next(t, r))
		require.Equal(t, fmt.Sprint(i+1), next(t, r))
		require.NoError(t, r.Seek(at(uint64(i+1))))
		publish(t, p, 1)
	}
	publish(t, p, 1)
	var rec segment.Record
	require.Equal(t, partition.ErrEvicted, r.Next(background, &rec))
	require.Equal(t, partition.ErrEvicted, r.Next(background, &rec))
	require.EqualValues(t, 100, r.Position())

	// One that waits is woken by what puts it out.
	r = reader(t, p, &partition.Gate{MaxLag: 1}, latest)
	result := make(chan error)
	go func() { result <- second(r.NextBatch(background, make([]segment.Record, 1))) }()
	await(func() bool { return p.WaitingReaders() == 1 })
	_, err := p.PublishBatch(background, make([]segment.Record, 2))
	require.NoError(t, err)
	if err = <-result; err == nil { // it saw the records first
		err = r.Next(background, &rec) // in the window
		require.NoError(t, err)
		err = r.Next(background, &rec)
	}
	require.Equal(t, partition.ErrEvicted, err)
}

// Two goroutines in one reader is a mistake, which is told to the second one.
func TestReader_Busy(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	r := reader(t, p, nil, earliest)
	result := make(chan error)
	go func() {
		var rec segment.Record
		result <- r.Next(background, &rec)
	}()
	await(func() bool { return p.WaitingReaders() == 1 })
	var rec segment.Record
	require.Equal(t, partition.ErrReaderBusy, r.Next(background, &rec))
	require.Equal(t, partition.ErrReaderBusy, second(r.NextBatch(background, make([]segment.Record, 1))))
	require.Equal(t, partition.ErrReaderBusy, second(r.NextValues(background, make([][]byte, 1))))
	_, _, err := r.NextRun(background, 1)
	require.Equal(t, partition.ErrReaderBusy, err)
	require.Equal(t, partition.ErrReaderBusy, r.Seek(earliest))
	publish(t, p, 1)
	require.NoError(t, <-result)
}

// TestReader_StressClose attacks the proof of Reader: Close from any goroutine ends a call that waits, and the pin is given
// back once, so that in the end all memory is.
func TestReader_StressClose(t *testing.T) {
	watchdog(t)
	p := start(t, setup{segments: 1})
	for range rounds(5000) {
		g := &partition.Gate{Gating: true}
		r, err := p.NewReader(g, cursor.WaitPark, earliest)
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			var rec segment.Record
			for {
				if err := r.Next(background, &rec); err != nil {
					if err != partition.ErrReadClosed {
						t.Error(err)
					}
					return
				}
			}
		})
		wg.Go(func() { _ = p.TryPublish(value("x")) })
		wg.Go(r.Close)
		wg.Go(r.Close)
		wg.Wait()
		require.NoError(t, p.TruncateBefore(background, int64(p.Log().Committed())))
		require.Zero(t, p.pool.Used())
	}
	require.NotZero(t, p.pool.Kept(), "what was pinned would have been left to the collector")
}

// TestReader_StressChase: a reader at the heels of the appender that drops what it has not read never gets a record that is
// not there: throttled, it may find that what it saw is gone.
func TestReader_StressChase(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 2}, segments: 1, onFull: partition.DropOldest})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := p.PublishAsync(background, value("x"), nil); err != nil {
					t.Error(err)
				}
				runtime.Gosched()
			}
		}
	})
	var readers sync.WaitGroup
	for i := range 2 {
		readers.Go(func() {
			r, err := p.NewReader(nil, waits[i], earliest)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			var read, lost int64
			from := int64(r.Position())
			batch := make([]segment.Record, 3)
			for range rounds(5000) {
				clear(batch)
				n, err := r.NextBatch(background, batch)
				var out *partition.OffsetError
				switch {
				case errors.As(err, &out):
					if out.Asked >= out.First || r.Seek(earliest) != nil {
						t.Error(out)
					}
					lost += int64(r.Position()) - out.Asked
				case err != nil || n == 0:
					t.Error(n, err)
				default:
					for _, rec := range batch[:n] {
						if string(rec.Value) != "x" || rec.Offset != read+lost+from {
							t.Errorf("%q at %d, after %d read and %d lost", rec.Value, rec.Offset, read, lost)
						}
						read++
					}
				}
			}
		})
	}
	readers.Wait()
	close(stop)
	wg.Wait()
}
