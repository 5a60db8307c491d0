package partition_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

func TestPartition_OffsetsAreDense(t *testing.T) {
	p := start(t, setup{segments: 3, first: 10})
	publish(t, p, 10)
	require.Equal(t, []string{"10", "11", "12", "13", "14", "15", "16", "17", "18", "19"}, values(t, p))
	first, next := p.Snapshot()
	require.EqualValues(t, 10, first)
	require.EqualValues(t, 20, next)
	require.Equal(t, 7, p.Index())
}

// The role comes back from everybody who had it: otherwise TakeRole would fail for ever.
func TestPartition_RoleComesBack(t *testing.T) {
	watchdog(t)
	p := start(t, setup{slots: 4})
	idle := func(what string) {
		t.Helper()
		await(p.TakeRole)
		p.HoldRole()
		require.True(t, p.TakeRole(), "after %s", what)
		p.HoldRole()
	}
	idle("the start")
	publish(t, p, 1)
	idle("a direct publish")
	for range 200 { // enough to be taken for a stream
		require.NoError(t, p.PublishAsync(background, value("a"), nil))
	}
	require.NoError(t, p.Flush(background))
	idle("a stream")
	_, err := p.PublishBatch(background, make([]segment.Record, 10))
	require.NoError(t, err)
	idle("a batch")
	require.NoError(t, p.TryPublish(value("b")))
	idle("a try")
	require.NoError(t, p.TruncateBefore(background, 5))
	idle("a control")
	x, err := p.Appender(background)
	require.NoError(t, err)
	require.False(t, p.TakeRole(), "the Appender has it")
	require.NoError(t, x.Close())
	idle("an Appender")
	require.True(t, p.TakeRole())
	p.PassRole()
	idle("the goroutine")
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err = p.Publish(ctx, value("c"))
	require.ErrorIs(t, err, context.Canceled)
	idle("a cancelled publish")
}

// While somebody has the role and does not serve, nothing gets in; then everything does, in the order in which it was queued.
func TestPartition_QueueBehindTheRole(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	require.True(t, p.TakeRole())
	require.NoError(t, p.TryPublish(value("0")))
	require.NoError(t, p.PublishAsync(background, value("1"), nil))
	var wg sync.WaitGroup
	for i := 2; i < 5; i++ {
		queued := p.Queued()
		wg.Go(func() {
			off, err := p.Publish(background, value(fmt.Sprint(i)))
			if err != nil || off != int64(i) {
				t.Errorf("publish %d: %d, %v", i, off, err)
			}
		})
		await(func() bool { return p.Queued() > queued })
	}
	require.Empty(t, values(t, p))
	require.Equal(t, 5, p.Stats().InHandover)
	p.HoldRole()
	wg.Wait()
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, values(t, p))
}

// A publisher that serves others does so for a while and then hands the role on; it returns although more keep coming.
func TestPartition_PassersByDoNotServeForEver(t *testing.T) {
	watchdog(t)
	p := start(t, setup{slots: 1024})
	require.True(t, p.TakeRole())
	for range 1000 {
		require.NoError(t, p.TryPublish(value("x")))
	}
	p.HoldRole() // serves some, and hands on
	require.NoError(t, p.Flush(background))
	require.Len(t, values(t, p), 1000)
}

func TestPartition_Controls(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	ran := 0 // plain: under the role
	count := func() { ran++ }
	require.NoError(t, p.Post(count))
	require.Equal(t, 1, ran, "by the caller, since nobody had the role")

	require.True(t, p.TakeRole())
	require.NoError(t, p.Post(count))
	require.Equal(t, 1, ran)
	p.HoldRole()
	require.Equal(t, 2, ran, "by who had the role")

	x, err := p.Appender(background)
	require.NoError(t, err)
	require.NoError(t, p.Post(count))
	require.Equal(t, 3, ran, "between two calls of the Appender")
	require.NoError(t, x.Close())

	p.Close(errOver)
	<-p.Done()
	require.ErrorIs(t, p.Post(count), errOver)
	require.Equal(t, 3, ran)
}

// A control that the partition's end finds waiting is told so.
func TestPartition_ControlMeetsTheEnd(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	require.True(t, p.TakeRole())
	done := make(chan error)
	go func() { done <- p.TruncateBefore(background, 0) }()
	await(func() bool { return p.Post(func() {}) == nil }) // behind it or before it, whatever
	p.Close(errOver)
	p.PassRole()
	err := <-done
	if err != nil { // else the goroutine came to it first
		require.ErrorIs(t, err, errOver)
	}

	q := start(t, setup{})
	require.True(t, q.TakeRole())
	ctx, cancel := context.WithCancel(background)
	cancel()
	require.ErrorIs(t, q.TruncateBefore(ctx, 0), context.Canceled)
	q.HoldRole()
}

func TestPartition_TruncateBefore(t *testing.T) {
	p := start(t, setup{segments: 4})
	publish(t, p, 10)
	var out *partition.OffsetError
	require.ErrorAs(t, p.TruncateBefore(background, 11), &out)
	require.Equal(t, partition.OffsetError{Asked: 11, First: 0, Next: 10}, *out)
	require.ErrorAs(t, p.TruncateBefore(background, -1), &out)

	for _, off := range []int64{0, 3, 2, 8} {
		require.NoError(t, p.TruncateBefore(background, off))
	}
	require.Equal(t, []string{"8", "9"}, values(t, p))
	s := p.Stats()
	require.EqualValues(t, 8, s.Reclaimed)
	require.Equal(t, 1, s.Segments)

	require.NoError(t, p.TruncateBefore(background, 10))
	require.Empty(t, values(t, p))
	require.Zero(t, p.Stats().Bytes)
	publish(t, p, 1)
	require.Equal(t, []string{"10"}, values(t, p))
}

// Finish takes what was accepted, and refuses what comes later; Close does the same as long as there is room.
func TestPartition_End(t *testing.T) {
	for name, end := range map[string]func(*partition.Partition, error){"Finish": (*partition.Partition).Finish, "Close": (*partition.Partition).Close} {
		t.Run(name, func(t *testing.T) {
			watchdog(t)
			p := start(t, setup{})
			require.True(t, p.TakeRole())
			var results []error
			require.NoError(t, p.PublishAsync(background, value("0"), func(_ partition.Published, err error) { results = append(results, err) }))
			require.NoError(t, p.TryPublish(value("1")))
			end(p.Partition, errOver)
			end(p.Partition, errors.New("too late"))
			_, err := p.Publish(background, value("2"))
			require.ErrorIs(t, err, errOver)
			require.ErrorIs(t, p.TryPublish(value("2")), errOver)
			require.ErrorIs(t, p.PublishAsync(background, value("2"), nil), errOver)
			_, err = p.PublishBatch(background, []segment.Record{*value("2")})
			require.ErrorIs(t, err, errOver)
			_, err = p.Appender(background)
			require.ErrorIs(t, err, errOver)
			require.False(t, p.Ended())
			p.HoldRole()
			<-p.Done()
			require.True(t, p.Ended())
			require.ErrorIs(t, p.Cause(), errOver)
			require.NoError(t, p.Flush(background))
			require.Equal(t, []error{nil}, results)
			require.Equal(t, []string{"0", "1"}, values(t, p))
			p.Free()
			require.Empty(t, values(t, p))
			require.Zero(t, p.pool.Used())
		})
	}
}

// Close does not wait for room: what has none fails, each with its result. Finish waits for room, until Close.
func TestPartition_EndOfAFullOne(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 2}, segments: 1})
	gate(t, p)
	publish(t, p, 2)
	var failed atomic.Int32
	for range 3 {
		require.NoError(t, p.PublishAsync(background, value("x"), func(_ partition.Published, err error) {
			if errors.Is(err, errOver) {
				failed.Add(1)
			}
		}))
	}
	require.NoError(t, p.PublishAsync(background, value("x"), nil))
	results := make(chan error)
	go func() { _, err := p.Publish(background, value("x")); results <- err }()
	go func() { results <- p.Flush(background) }()
	await(func() bool { return p.Stats().Full && p.Queued() == 6 })
	p.Finish(errOver)
	await(func() bool { return p.Stats().Full })
	select {
	case <-p.Done():
		t.Fatal("did not wait for room")
	default:
	}
	p.Close(errors.New("too late"))
	<-p.Done()
	a, b := <-results, <-results
	require.True(t, a == nil || b == nil, "the flush: everything before it has its result")
	require.True(t, errors.Is(a, errOver) || errors.Is(b, errOver), "the publish")
	require.NoError(t, p.Flush(background))
	require.EqualValues(t, 3, failed.Load())
	require.EqualValues(t, 1, p.Stats().AsyncFailed)
	require.Len(t, values(t, p), 2)
}

func TestPartition_Drain(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	inside := partition.WithOrigin(background, nil, true)
	x, err := p.Appender(background)
	require.NoError(t, err)
	_, err = x.Append(background, value("0"))
	require.NoError(t, err)
	p.Drain()
	_, err = x.Append(background, value("1"))
	require.ErrorIs(t, err, partition.ErrDraining)
	n, err := x.AppendBatch(background, make([]segment.Record, 1))
	require.ErrorIs(t, err, partition.ErrDraining)
	require.Zero(t, n)
	_, err = x.Append(inside, value("1"))
	require.NoError(t, err)
	require.NoError(t, x.Close())

	_, err = p.Publish(background, value("2"))
	require.ErrorIs(t, err, partition.ErrDraining)
	require.ErrorIs(t, p.PublishAsync(background, value("2"), nil), partition.ErrDraining)
	require.ErrorIs(t, p.TryPublish(value("2")), partition.ErrDraining)
	_, err = p.Appender(background)
	require.ErrorIs(t, err, partition.ErrDraining)

	// Handlers may, and what runs on a worker needs no context for it.
	called := make(chan error)
	require.NoError(t, p.PublishAsync(inside, value("2"), func(partition.Published, error) { called <- p.TryPublish(value("3")) }))
	require.NoError(t, <-called)
	_, err = p.Publish(inside, value("4"))
	require.NoError(t, err)
	require.NoError(t, p.TruncateBefore(background, 1))
	require.NoError(t, p.Flush(background))
	require.Equal(t, []string{"1", "2", "3", "4"}, values(t, p))
}

func TestPartition_Stats(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 2}, segments: 1})
	require.Equal(t, partition.Stats{Partition: 7}, p.Stats())
	gate(t, p)
	publish(t, p, 2)
	ctx, cancel := context.WithCancel(background)
	done := make(chan error)
	go func() { _, err := p.Publish(ctx, value("x")); done <- err }()
	await(func() bool { s := p.Stats(); return s.Full && s.Blocked == 1 && s.HeldBy != "" })
	require.Equal(t, partition.Stats{
		Partition: 7, Next: 2, Bytes: 2 * (1 + segment.EntryBytes), Segments: 2, InHandover: 1, Blocked: 1, Full: true, HeldBy: "gate",
	}, p.Stats())
	require.ErrorIs(t, p.TryPublish(value("x")), partition.ErrFull)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	await(func() bool { s := p.Stats(); return !s.Full && s.InHandover == 0 }) // what was given up is dropped
	require.Equal(t, partition.Stats{Partition: 7, Next: 2, Bytes: 2 * (1 + segment.EntryBytes), Segments: 2}, p.Stats())
}
