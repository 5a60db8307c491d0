package partition_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/vfs"
)

// TestReserve_Moves: retention and TruncateBefore do not wait for a reservation; they end its segment, and Commit moves the records.
func TestReserve_Moves(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 3}, segments: 2})
	x := appender(t, p)
	for i := range 3 {
		require.NoError(t, second(x.Append(background, value(fmt.Sprint(i)))))
	}
	r := made(t, x, "3", "4")
	require.NoError(t, x.Flush())
	require.NoError(t, p.TruncateBefore(background, 3), "of all there is")
	first, err := x.Commit(background, r)
	require.NoError(t, err)
	require.EqualValues(t, 3, first)
	require.Equal(t, []string{"3", "4"}, values(t, p))

	g := gate(t, p)
	r = made(t, x, "5")
	require.NoError(t, p.TruncateBefore(background, 5))
	require.NoError(t, second(x.Commit(background, r)))
	require.NoError(t, second(x.Commit(background, made(t, x, "6", "7"))))
	ctx, cancel := context.WithCancel(background)
	result := make(chan error)
	go func() { result <- x.Reserve(ctx, new(segment.Reservation), 1, 1) }()
	await(func() bool { return p.Stats().Blocked == 1 })
	cancel()
	require.ErrorIs(t, <-result, context.Canceled)
	g.Advance(6)
	require.NoError(t, second(x.Commit(background, made(t, x, "8"))))
	require.Equal(t, []string{"6", "7", "8"}, values(t, p))
}

// TestReserve_MoveWaits: a Commit that has to move its records may have to wait for memory. While it does the reservation is still the one
// that is out; and what ends the wait without memory ends the reservation.
func TestReserve_MoveWaits(t *testing.T) {
	watchdog(t)
	for name, c := range map[string]struct {
		end  func(p, other part, x *partition.Appender, cancel func())
		want error
	}{
		"memory comes": {func(_, other part, _ *partition.Appender, _ func()) {
			_, next := other.Snapshot()
			require.NoError(t, other.TruncateBefore(background, next))
		}, nil},
		"its ctx ends":        {func(_, _ part, _ *partition.Appender, cancel func()) { cancel() }, context.Canceled},
		"the Appender closes": {func(_, _ part, x *partition.Appender, _ func()) { require.NoError(t, x.Close()) }, partition.ErrClosed},
		"the partition ends":  {func(p, _ part, _ *partition.Appender, _ func()) { p.Close(errOver) }, errOver},
	} {
		pool := segment.NewPool(4096, 0)
		p, other := start(t, setup{pool: pool}), start(t, setup{pool: pool})
		publish(t, p, 1)
		x := appender(t, p)
		r := made(t, x, "1", "2")
		require.NoError(t, p.TruncateBefore(background, 1), name)
		publish(t, other, 1)
		gate(t, other)

		ctx, cancel := context.WithCancel(background)
		result := make(chan error, 1)
		go func() { result <- second(x.Commit(ctx, r)) }()
		await(func() bool { return p.Stats().Blocked == 1 })
		gone, ended := context.WithCancel(background)
		ended()
		require.ErrorIs(t, second(x.Append(gone, value("x"))), partition.ErrReserved, name)
		require.ErrorIs(t, x.Reserve(gone, new(segment.Reservation), 1, 1), partition.ErrReserved, name)
		c.end(p, other, x, cancel)
		if err := <-result; c.want == nil {
			require.NoError(t, err, name)
			require.Nil(t, values(t, other))
			r := p.Log().NewReader()
			r.Seek(1)
			require.Equal(t, segment.Ready, r.Refill())
			var rec segment.Record
			for _, want := range []string{"1", "2"} {
				require.True(t, r.Next(&rec))
				require.Equal(t, want, string(rec.Value))
			}
			r.Close()
		} else {
			require.ErrorIs(t, err, c.want, name)
			_, next := p.Snapshot()
			require.EqualValues(t, 1, next, name)
		}
		require.True(t, r.Over(), name)
		cancel()
		if name == "its ctx ends" {
			_, next := other.Snapshot()
			require.NoError(t, other.TruncateBefore(background, next))
			require.NoError(t, second(x.Publish(background, value("after"))))
		}
	}
}

// TestReserve_MoveRefused: under Reject a Commit that has to move its records does not wait for memory either, and the reservation is over.
func TestReserve_MoveRefused(t *testing.T) {
	watchdog(t)
	pool := segment.NewPool(4096, 0)
	p, other := start(t, setup{pool: pool, onFull: partition.Reject}), start(t, setup{pool: pool})
	publish(t, p, 1)
	x := appender(t, p)
	r := made(t, x, "1", "2")
	require.NoError(t, p.TruncateBefore(background, 1))
	publish(t, other, 1)
	require.ErrorIs(t, second(x.Commit(background, r)), partition.ErrFull)
	require.True(t, r.Over())
	require.NoError(t, other.TruncateBefore(background, 1))
	first, err := x.Commit(background, made(t, x, "3"))
	require.NoError(t, err)
	require.EqualValues(t, 1, first)
}

// TestReserve_FilesFail: what was staged before a reservation is taken back when the files fail, and with it the segment that it lies in.
// Its holder goes on writing there; nobody else sees that. After Resume its records are behind those that have come back.
func TestReserve_FilesFail(t *testing.T) {
	watchdog(t)
	for name, c := range map[string]struct {
		kind vfs.OpKind
		want []string
	}{
		"sync":  {vfs.OpSync, []string{"staged", "scribbled", "another"}},
		"write": {vfs.OpWrite, []string{"scribbled", "another"}},
	} {
		for _, before := range []int{0, 1} {
			f, pool := newFaults(), segment.NewPool(0, 1<<20)
			p := keep(t, f, storage.Always, setup{pool: pool})
			other := start(t, setup{pool: pool})
			publish(t, p, before)
			x := appender(t, p)
			require.NoError(t, second(x.Append(background, value("staged"))))
			var r segment.Reservation
			require.NoError(t, x.Reserve(background, &r, 2, 20))
			place := r.Next(9)
			f.set(c.kind, &vfs.Fault{Err: errors.New("broken")})
			require.ErrorIs(t, x.Flush(), storage.ErrReadOnly)
			_, err := other.Publish(background, value("somebody else's"))
			require.NoError(t, err)
			copy(place, "scribbled")
			f.set(c.kind, nil)
			require.NoError(t, p.Resume(background), name)
			copy(r.Next(7), "another")
			first, err := x.Commit(background, &r)
			require.NoError(t, err, name)
			want := append(numbers(before), c.want...)
			require.EqualValues(t, len(want)-2, first)
			require.Equal(t, want, values(t, p), "%s after %d", name, before)
			require.Equal(t, []string{"somebody else's"}, values(t, other), "%s after %d", name, before)
			require.NoError(t, x.Close())
			p = p.reopen(t, f, storage.Always, setup{})
			require.Equal(t, want, values(t, p), name)
		}
	}
}

// numbers returns the values that publish publishes first.
func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}
