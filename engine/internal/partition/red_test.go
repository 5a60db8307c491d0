package partition_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestRed_ExpiredHeld(t *testing.T) {
	p := start(t, setup{limits: retention.Limits{MaxAge: time.Millisecond}})
	gate(t, p)
	publish(t, p, 1)
	time.Sleep(20 * time.Millisecond)
	c := cpu()
	time.Sleep(300 * time.Millisecond)
	t.Log(cpu() - c)
	require.Less(t, cpu()-c, 50*time.Millisecond)
}

func TestRed_MemoryGate(t *testing.T) {
	p := start(t, setup{memory: 8 << 10, segBytes: 4 << 10})
	g := gate(t, p)
	ctx, cancel := context.WithTimeout(background, time.Second)
	defer cancel()
	n := 0
	for ; n < 1000; n++ {
		c, cancel := context.WithTimeout(background, 50*time.Millisecond)
		_, err := p.Publish(c, value("0123456789012345678901234567890123456789"))
		cancel()
		if err != nil {
			break
		}
	}
	t.Log(n)
	done := make(chan error)
	go func() { _, err := p.Publish(ctx, value("01234567890123456789012345678901234567")); done <- err }()
	time.Sleep(50 * time.Millisecond)
	g.Advance(uint64(n))
	require.NoError(t, <-done)
}

func TestRed_FlushAfterClose(t *testing.T) {
	w := newWorkers(t, 1)
	p := start(t, setup{workers: w})
	p.Close(errOver)
	<-p.Done()
	w.Close()
	ctx, cancel := context.WithTimeout(background, time.Second)
	defer cancel()
	require.NotErrorIs(t, p.Flush(ctx), context.DeadlineExceeded)
}

func TestRed_ThrottleEmpty(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 2}, segments: 1, onFull: partition.DropOldest})
	r := reader(t, p, nil, latest)
	ctx, cancel := context.WithCancel(background)
	go func() {
		for ctx.Err() == nil {
			p.PublishAsync(ctx, value("x"), nil)
		}
	}()
	defer cancel()
	var rec segment.Record
	for i := 0; i < 300000; i++ {
		rec = segment.Record{}
		err := r.Next(background, &rec)
		if err != nil {
			r.Seek(latest)
			continue
		}
		require.Equal(t, "x", string(rec.Value), i)
	}
}

func TestRed_AgeSpan(t *testing.T) {
	p := start(t, setup{limits: retention.Limits{MaxAge: 400 * time.Millisecond}})
	publish(t, p, 1)
	time.Sleep(40 * time.Millisecond)
	publish(t, p, 1)
	time.Sleep(320 * time.Millisecond)
	publish(t, p, 1)
	time.Sleep(230 * time.Millisecond)
	first, _ := p.Snapshot()
	require.EqualValues(t, 2, first)
}

func TestRed_AgeNotArmed(t *testing.T) {
	p := start(t, setup{limits: retention.Limits{MaxAge: 1}})
	publish(t, p, 1)
	time.Sleep(50 * time.Millisecond)
	first, _ := p.Snapshot()
	require.EqualValues(t, 1, first)
}

func TestRed_BatchBeyondMemory(t *testing.T) {
	p := start(t, setup{memory: 8 << 10, segBytes: 4 << 10})
	ctx, cancel := context.WithTimeout(background, time.Second)
	defer cancel()
	batch := make([]segment.Record, 1000)
	_, err := p.PublishBatch(ctx, batch)
	require.ErrorIs(t, err, partition.ErrTooLarge)
}

func TestRed_BigSlots(t *testing.T) {
	watchdog(t)
	p := start(t, setup{slots: 1 << 19, maxRecord: 32 << 20})
	x, err := p.Appender(background)
	require.NoError(t, err)
	x.Close()
	g := make([]byte, 12<<20)
	for i := 0; i < 3; i++ {
		for p.TryPublish(value("x")) == nil && p.Stats().InHandover < 2 {
		}
		require.NoError(t, p.PublishAsync(background, &segment.Record{Value: g}, nil))
	}
	require.NoError(t, p.Flush(background))
}
