package partition_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

func appender(t testing.TB, p part) *partition.Appender {
	t.Helper()
	x, err := p.Appender(background)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

func TestAppender_HasThePartition(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	publish(t, p, 2)
	x := appender(t, p)
	require.True(t, p.Stats().Exclusive)

	_, err := p.Publish(background, value("x"))
	require.ErrorIs(t, err, partition.ErrExclusive)
	_, err = p.PublishBatch(background, []segment.Record{{}})
	require.ErrorIs(t, err, partition.ErrExclusive)
	require.ErrorIs(t, p.TryPublish(value("x")), partition.ErrExclusive)
	require.ErrorIs(t, p.PublishAsync(background, value("x"), func(partition.Published, error) {}), partition.ErrExclusive)
	_, err = p.Appender(background)
	require.ErrorIs(t, err, partition.ErrExclusive)
	require.NoError(t, p.Flush(background), "there is nothing to flush")
	require.Zero(t, p.Pending())

	off, err := x.Append(background, value("2"))
	require.NoError(t, err)
	require.EqualValues(t, 2, off)
	require.Len(t, values(t, p), 2, "staged")
	require.NoError(t, x.Flush())
	require.Len(t, values(t, p), 3)
	_, err = x.Append(background, value("3"))
	require.NoError(t, err)
	off, err = x.Publish(background, value("4"))
	require.NoError(t, err)
	require.EqualValues(t, 4, off)
	require.Equal(t, []string{"3", "4"}, values(t, p)[3:], "and what was staged before")
	batch := []segment.Record{*value("5"), *value("6")}
	n, err := x.AppendBatch(background, batch)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.EqualValues(t, 6, batch[1].Offset)
	require.EqualValues(t, 7, batch[1].Partition)
	n, err = x.AppendBatch(background, nil)
	require.NoError(t, err)
	require.Zero(t, n)

	require.NoError(t, x.Close(), "flushes")
	require.NoError(t, x.Close())
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, values(t, p))
	require.False(t, p.Stats().Exclusive)
	publish(t, p, 1)
	for _, err := range []error{x.Flush(), second(x.Append(background, value("x"))), second(x.Publish(background, value("x"))), second(x.AppendBatch(background, batch))} {
		require.ErrorIs(t, err, partition.ErrClosed)
	}
}

func second[A any](_ A, err error) error { return err }

// What is staged becomes visible by itself every so often, so that it takes no more room than that.
func TestAppender_FlushesByItself(t *testing.T) {
	p := start(t, setup{})
	x := appender(t, p)
	for i := range 2*partition.FlushAfter - 1 {
		_, err := x.Append(background, value("x"))
		require.NoError(t, err)
		_, next := p.Snapshot()
		require.EqualValues(t, (i+1)/partition.FlushAfter*partition.FlushAfter, next)
	}
}

func TestAppender_BatchFailsInTheMiddle(t *testing.T) {
	p := start(t, setup{maxRecord: 10})
	x := appender(t, p)
	require.ErrorIs(t, second(x.Publish(background, &segment.Record{Value: make([]byte, 11)})), partition.ErrTooLarge)
	n, err := x.AppendBatch(background, []segment.Record{*value("a"), *value("b"), {Value: make([]byte, 11)}, *value("c")})
	require.ErrorIs(t, err, partition.ErrTooLarge)
	require.Equal(t, 2, n)
	require.NoError(t, x.Close())
	require.Equal(t, []string{"a", "b"}, values(t, p))
}

// It waits for what was accepted before, until its context ends; then everybody may publish again.
func TestAppender_WaitsForItsTurn(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	require.True(t, p.TakeRole())
	require.NoError(t, p.TryPublish(value("0")))
	ctx, cancel := context.WithCancel(background)
	got := make(chan error)
	go func() { _, err := p.Appender(ctx); got <- err }()
	await(func() bool { return p.Queued() == 2 })
	require.ErrorIs(t, p.TryPublish(value("x")), partition.ErrExclusive)
	cancel()
	require.ErrorIs(t, <-got, context.Canceled)
	require.NoError(t, p.TryPublish(value("1")))
	p.HoldRole()

	require.True(t, p.TakeRole())
	require.NoError(t, p.TryPublish(value("2")))
	go func() {
		x, err := p.Appender(background)
		if err == nil {
			_, err = x.Append(background, value("3"))
			err = errors.Join(err, x.Close())
		}
		got <- err
	}()
	await(func() bool { return p.Queued() == 2 })
	p.HoldRole()
	require.NoError(t, <-got)
	require.Equal(t, []string{"0", "1", "2", "3"}, values(t, p))
}

// A publish that was admitted just before and gets to the hand-over just after an Appender has the role is turned away: it
// must not wait until the Appender is closed.
func TestAppender_TurnsAwayLatecomers(t *testing.T) {
	watchdog(t)
	p := start(t, setup{slots: 8})
	x := appender(t, p)
	p.SetExclusive(false) // as the latecomers have seen it
	results := make(chan error)
	go func() { results <- second(p.Publish(background, value("x"))) }()
	go func() { results <- second(p.PublishBatch(background, make([]segment.Record, 3))) }()
	go func() { results <- p.Flush(background) }()
	go func() {
		if err := p.PublishAsync(background, value("x"), func(_ partition.Published, err error) { results <- err }); err != nil {
			t.Error(err)
		}
	}()
	await(func() bool { return p.Queued() == 3 }) // the flush sees the Appender
	require.NoError(t, <-results, "flush")
	p.SetExclusive(true)
	require.NoError(t, p.Post(p.TurnAway))
	for range 3 {
		require.ErrorIs(t, <-results, partition.ErrExclusive)
	}
	require.Zero(t, p.Queued())
	_, err := x.Append(background, value("0"))
	require.NoError(t, err)
	require.NoError(t, x.Close())
	require.Equal(t, []string{"0"}, values(t, p))
}

// TestAppender_StressLatecomers: the same in real races. Nobody waits for the Appender to close, and no control does.
func TestAppender_StressLatecomers(t *testing.T) {
	watchdog(t)
	p := start(t, setup{slots: 4})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	refused := make([]atomic.Int64, 4)
	accepted := make([]int, 4)
	turnedAway := func() int64 { return refused[0].Load() + refused[1].Load() }
	for i := range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var err error
				switch i {
				case 0:
					_, err = p.Publish(background, value("p"))
				case 1:
					_, err = p.PublishBatch(background, []segment.Record{{}, {}})
				case 2:
					err = p.Flush(background)
				case 3:
					err = p.TruncateBefore(background, 0)
				}
				switch {
				case err == nil:
					accepted[i]++
				case errors.Is(err, partition.ErrExclusive):
					refused[i].Add(1)
				default:
					t.Error(i, err)
				}
			}
		})
	}
	appended := 0
	for i := 0; i < rounds(3000) || turnedAway() == 0; i++ {
		x, err := p.Appender(background)
		require.NoError(t, err)
		off, err := x.Append(background, value("a"))
		require.NoError(t, err)
		more, err := x.Append(background, value("a"))
		require.NoError(t, err)
		require.Equal(t, off+1, more, "nobody comes in between")
		require.NoError(t, x.Close())
		appended += 2
	}
	// What was posted or claimed while the Appender got the role does not wait for its end.
	x, err := p.Appender(background)
	require.NoError(t, err)
	close(stop)
	wg.Wait()
	require.NoError(t, x.Close())
	_, next := p.Snapshot()
	require.EqualValues(t, appended+accepted[0]+2*accepted[1], next)
	require.Zero(t, refused[2].Load()+refused[3].Load())
}

// Close of the partition takes the role from the Appender. What it had appended is there: every Append that returned an
// offset meant it.
func TestAppender_Revoked(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	x := appender(t, p)
	_, err := x.Append(background, value("0"))
	require.NoError(t, err)
	p.Close(errOver)
	<-p.Done()
	require.Equal(t, []string{"0"}, values(t, p))
	require.ErrorIs(t, second(x.Append(background, value("1"))), errOver)
	require.ErrorIs(t, second(x.Publish(background, value("1"))), errOver)
	require.ErrorIs(t, second(x.AppendBatch(background, make([]segment.Record, 1))), errOver)
	require.ErrorIs(t, x.Flush(), errOver)
	require.NoError(t, x.Close())
}

func TestAppender_StressRevoke(t *testing.T) {
	watchdog(t)
	workers := newWorkers(t, 1)
	for range rounds(1000) {
		p := start(t, setup{workers: workers, segments: 2})
		var wg sync.WaitGroup
		var appended int
		wg.Go(func() {
			x, err := p.Appender(background)
			for err == nil {
				if appended%3 == 2 || appended == 100 {
					runtime.Gosched()
					err = x.Flush()
				}
				if err == nil && appended < 100 {
					publish := x.Append
					if appended%5 == 0 {
						publish = x.Publish
					}
					if _, err = publish(background, value("x")); err == nil {
						appended++
					}
				}
			}
			if !errors.Is(err, errOver) {
				t.Error(err)
			}
		})
		wg.Go(func() { _ = p.TruncateBefore(background, 0) })
		wg.Go(func() { p.Close(errOver) })
		wg.Wait()
		<-p.Done()
		require.Len(t, values(t, p), appended)
	}
}

// A full log makes Append wait for the gate, until its context, the partition or the Appender itself ends; and then what was
// staged before is visible.
func TestAppender_WaitsForRoom(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 4}, segments: 2})
	g := gate(t, p)
	x := appender(t, p)
	for i := range 4 {
		_, err := x.Append(background, value(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	require.Empty(t, values(t, p))
	ctx, cancel := context.WithCancel(background)
	result := make(chan error)
	append := func(ctx context.Context) { result <- second(x.Append(ctx, value("x"))) }
	go append(ctx)
	await(func() bool { s := p.Stats(); return s.Full && s.HeldBy == "gate" && s.Blocked == 1 })
	require.Len(t, values(t, p), 4)
	require.NoError(t, p.TruncateBefore(background, 0), "controls run while it waits")
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	require.False(t, p.Stats().Full)

	go func() { result <- second(x.Publish(background, value("x"))) }()
	await(func() bool { return p.Stats().Full })
	g.Advance(2)
	require.NoError(t, <-result)
	require.Equal(t, []string{"2", "3", "x"}, values(t, p), "published, though it had to wait")

	go func() { // the second record finds no room
		n, err := x.AppendBatch(background, make([]segment.Record, 3))
		if n != 1 {
			t.Error(n)
		}
		result <- err
	}()
	await(func() bool { return p.Stats().Full })
	require.NoError(t, x.Close())
	require.ErrorIs(t, <-result, partition.ErrClosed)
	require.Equal(t, []string{"2", "3", "x", ""}, values(t, p))

	y := appender(t, p)
	go func() { result <- second(y.Append(background, value("y"))) }()
	await(func() bool { return p.Stats().Full })
	p.Close(errOver)
	require.ErrorIs(t, <-result, errOver)
}

// An Append from inside the handler that it would wait for fails instead.
func TestAppender_SelfBlock(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 1}})
	g := gate(t, p)
	x := appender(t, p)
	inside := partition.WithOrigin(background, g, true)
	_, err := x.Append(inside, value("0"))
	require.NoError(t, err)
	_, err = x.Append(inside, value("1"))
	require.ErrorIs(t, err, partition.ErrSelfBlock)
	g.Advance(1)
	_, err = x.Append(inside, value("1"))
	require.NoError(t, err)
}

// Calls from several goroutines exclude each other.
func TestAppender_StressShared(t *testing.T) {
	watchdog(t)
	p := start(t, setup{segments: 3})
	x := appender(t, p)
	n := rounds(5000)
	seen := make([]bool, 4*n)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range n {
				publish := x.Append
				if i%7 == 0 {
					publish = x.Publish
				}
				off, err := publish(background, value("x"))
				if err != nil || seen[off] {
					t.Error(off, err)
				}
				seen[off] = true
				if i%10 == 0 && x.Flush() != nil {
					t.Error("flush")
				}
			}
		})
	}
	wg.Go(func() {
		for range n {
			if err := p.TruncateBefore(background, 0); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	require.NoError(t, x.Close())
	require.Len(t, values(t, p), 4*n)
}
