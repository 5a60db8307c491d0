package partition_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// made reserves room for the values and makes them there.
func made(t testing.TB, x *partition.Appender, all ...string) *segment.Reservation {
	t.Helper()
	var r segment.Reservation
	size := 0
	for _, v := range all {
		size += len(v)
	}
	require.NoError(t, x.Reserve(background, &r, max(1, len(all)), size))
	for _, v := range all {
		copy(r.Next(len(v)), v)
	}
	return &r
}

func TestReserve(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	publish(t, p, 1)
	x := appender(t, p)
	off, err := x.Append(background, value("1"))
	require.NoError(t, err)
	require.EqualValues(t, 1, off)
	r := made(t, x, "2", "3")
	require.Len(t, values(t, p), 1, "staged before, and nothing visible")
	require.NoError(t, x.Flush())
	require.Len(t, values(t, p), 2, "a flush shows what was appended, not what is being made")
	first, err := x.Commit(background, r)
	require.NoError(t, err)
	require.EqualValues(t, 2, first)
	require.Equal(t, []string{"0", "1", "2", "3"}, values(t, p))
	require.True(t, r.Over())
	_, err = x.Commit(background, r)
	require.ErrorIs(t, err, partition.ErrReservation, "once")
	require.Nil(t, r.Next(0))

	off, err = x.Append(background, value("4"))
	require.NoError(t, err)
	require.EqualValues(t, 4, off)
	first, err = x.Commit(background, made(t, x))
	require.NoError(t, err)
	require.EqualValues(t, 5, first, "nothing, and a flush")
	require.Len(t, values(t, p), 5)
	x.Discard(made(t, x, "discarded"))
	require.NoError(t, x.Close())
	publish(t, p, 1)
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, values(t, p))
	require.ErrorIs(t, x.Reserve(background, new(segment.Reservation), 1, 1), partition.ErrClosed)
}

// TestReserve_OneAtATime: everything else that would append waits for nothing but says so.
func TestReserve_OneAtATime(t *testing.T) {
	p := start(t, setup{})
	x := appender(t, p)
	_, err := x.Append(background, value("0")) // so that the short ways are open
	require.NoError(t, err)
	r := made(t, x, "1")
	require.ErrorIs(t, second(x.Append(background, value("x"))), partition.ErrReserved)
	require.ErrorIs(t, second(x.Publish(background, value("x"))), partition.ErrReserved)
	n, err := x.AppendBatch(background, []segment.Record{*value("x"), *value("x")})
	require.ErrorIs(t, err, partition.ErrReserved)
	require.Zero(t, n)
	var other segment.Reservation
	require.ErrorIs(t, x.Reserve(background, &other, 1, 1), partition.ErrReserved)
	require.ErrorIs(t, second(x.Commit(background, &other)), partition.ErrReservation)
	x.Discard(&other)
	require.NoError(t, p.TruncateBefore(background, 0), "controls run")
	require.NoError(t, second(x.Commit(background, r)))
	require.NoError(t, second(x.Append(background, value("2"))))
	require.NoError(t, x.Close())
	require.Equal(t, []string{"0", "1", "2"}, values(t, p))
}

// TestReserve_Refuses: what cannot be is refused, and nothing of it appears.
func TestReserve_Refuses(t *testing.T) {
	p := start(t, setup{limits: retention.Limits{MaxBytes: 4096, MaxRecords: 10}, maxRecord: 100})
	x := appender(t, p)
	var large *partition.TooLargeError
	for name, c := range map[string]struct {
		records, bytes int
		want           error
	}{
		"no record":                {0, 10, partition.ErrReservation},
		"negative records":         {-1, 10, partition.ErrReservation},
		"negative bytes":           {1, -1, partition.ErrReservation},
		"more records than can be": {1 << 30, 1, partition.ErrTooLarge},
		"more bytes than can be":   {1, math.MaxInt, partition.ErrTooLarge},
		"more records than fit":    {11, 1, partition.ErrTooLarge},
		"more bytes than fit":      {1, 5000, partition.ErrTooLarge},
	} {
		var r segment.Reservation
		err := x.Reserve(background, &r, c.records, c.bytes)
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, errors.Is(c.want, partition.ErrTooLarge), errors.As(err, &large), name)
		require.True(t, r.Over(), name)
	}
	for name, c := range map[string]struct {
		ask  func(r *segment.Reservation)
		want error
	}{
		"a record that is too large": {func(r *segment.Reservation) { r.Next(101) }, partition.ErrTooLarge},
		"more than reserved":         {func(r *segment.Reservation) { r.Next(100); r.Next(51) }, partition.ErrReservation},
		"more records than reserved": {func(r *segment.Reservation) { r.Next(1); r.Next(1); r.Next(1) }, partition.ErrReservation},
		"a negative length":          {func(r *segment.Reservation) { r.Next(-5) }, partition.ErrReservation},
	} {
		var r segment.Reservation
		require.NoError(t, x.Reserve(background, &r, 2, 150), name)
		c.ask(&r)
		first, err := x.Commit(background, &r)
		require.ErrorIs(t, err, c.want, name)
		require.EqualValues(t, -1, first)
		require.True(t, r.Over())
	}
	require.Empty(t, values(t, p))
	require.NoError(t, second(x.Commit(background, made(t, x, "0"))))
	require.Equal(t, []string{"0"}, values(t, p))
}

// TestReserve_LargerThanABlock: what can never lie in one piece of memory is refused as too large, and nothing is dropped for it.
func TestReserve_LargerThanABlock(t *testing.T) {
	for name, c := range map[string]struct {
		memory         int64
		records, bytes int
	}{
		"one record, memory is bounded":  {1 << 20, 1, 1 << 20},
		"many records, with entries":     {0, 1 << 20, segment.MaxRecordBytes},
		"many records without a byte":    {1 << 20, 1<<16 + 1, 0},
		"many records, memory for bytes": {1 << 20, 1 << 15, 1<<19 + 1},
	} {
		p := start(t, setup{memory: c.memory, limits: retention.Limits{MaxBytes: segment.MaxRecordBytes + 1<<25}})
		publish(t, p, 1)
		x := appender(t, p)
		err := x.Reserve(background, new(segment.Reservation), c.records, c.bytes)
		var large *partition.TooLargeError
		require.ErrorAs(t, err, &large, name)
		require.Equal(t, c.records, large.Records, name)
		require.EqualValues(t, c.bytes, large.Size, name)
		require.Positive(t, large.Limit, name)
		require.Len(t, values(t, p), 1, name)
		require.NoError(t, second(x.Commit(background, made(t, x, "1"))), name)
	}
}

// TestReserve_Time: records have the time of Reserve, also if something was staged long before; or, if they have to be moved, that of Commit.
func TestReserve_Time(t *testing.T) {
	watchdog(t)
	synctest.Test(t, func(t *testing.T) {
		p := start(t, aged(10*time.Hour))
		x := appender(t, p)
		began := time.Now()
		at := func(off uint64) time.Duration {
			at, ok := p.Log().TimeOf(off)
			require.True(t, ok)
			return time.Duration(at - began.UnixNano())
		}
		for _, fresh := range []bool{true, false} { // by the long way and the short one
			if !fresh {
				require.NoError(t, x.Flush())
			}
			require.NoError(t, second(x.Append(background, value("staged"))))
			time.Sleep(time.Minute)
			r := made(t, x, "made")
			time.Sleep(time.Minute)
			require.NoError(t, second(x.Commit(background, r)))
		}
		require.Equal(t, []time.Duration{0, time.Minute, 2 * time.Minute, 3 * time.Minute}, []time.Duration{at(0), at(1), at(2), at(3)})
		r := made(t, x, "moved")
		time.Sleep(time.Minute)
		require.NoError(t, p.TruncateBefore(background, 4))
		require.NoError(t, second(x.Commit(background, r)))
		require.Equal(t, 5*time.Minute, at(4))

		r = made(t, x, "old")
		time.Sleep(11 * time.Hour)
		synctest.Wait()
		require.Empty(t, values(t, p), "it does not keep others from their end")
		require.NoError(t, second(x.Commit(background, r)))
		require.Equal(t, 5*time.Minute+11*time.Hour, at(5))
		require.NoError(t, x.Close())
	})
}

// TestReserve_CommitOfNothing is a Flush, also while only handlers may publish.
func TestReserve_CommitOfNothing(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	x := appender(t, p)
	require.NoError(t, second(x.Append(background, value("0"))))
	r, room := made(t, x), segment.Reservation{}
	p.Drain()
	require.NoError(t, second(x.Commit(background, r)))
	require.ErrorIs(t, x.Reserve(background, &room, 1, 1), partition.ErrDraining)
	require.NoError(t, x.Reserve(partition.WithOrigin(background, nil, false), &room, 1, 1))
	copy(room.Next(1), "1")
	require.ErrorIs(t, second(x.Commit(background, &room)), partition.ErrDraining)
	require.Equal(t, []string{"0"}, values(t, p))
}

// TestReserve_OverKeepsNoBlock: once a reservation is over, however, the memory that it was in is used again.
func TestReserve_OverKeepsNoBlock(t *testing.T) {
	for name, end := range map[string]func(x *partition.Appender, r *segment.Reservation) error{
		"discarded":           func(x *partition.Appender, r *segment.Reservation) error { x.Discard(r); return nil },
		"committed":           func(x *partition.Appender, r *segment.Reservation) error { return second(x.Commit(background, r)) },
		"committed, empty":    func(x *partition.Appender, r *segment.Reservation) error { return second(x.Commit(background, r)) },
		"refused":             func(x *partition.Appender, r *segment.Reservation) error { r.Next(100); return nil },
		"refused, and closed": func(x *partition.Appender, r *segment.Reservation) error { r.Next(100); return nil },
	} {
		p := start(t, setup{})
		publish(t, p, 1)
		x := appender(t, p)
		r := new(segment.Reservation)
		require.NoError(t, x.Reserve(background, r, 1, 10))
		if name != "committed, empty" {
			r.Next(5)
		}
		require.NoError(t, end(x, r), name)
		if r.Fault() != nil {
			require.ErrorIs(t, second(x.Commit(background, r)), partition.ErrReservation, name)
		}
		if name == "refused, and closed" {
			require.NoError(t, x.Close())
		}
		_, next := p.Snapshot()
		require.NoError(t, p.TruncateBefore(background, next))
		require.EqualValues(t, 4096, p.pool.Kept(), name)
	}
}

// TestReserve_Abandoned: whoever has the partition next does not write where the holder of a reservation may still do.
func TestReserve_Abandoned(t *testing.T) {
	watchdog(t)
	for name, end := range map[string]func(x *partition.Appender){
		"closed":            func(x *partition.Appender) { require.NoError(t, x.Close()) },
		"closed after some": func(x *partition.Appender) { require.NoError(t, x.Close()) },
	} {
		p := start(t, setup{})
		x := appender(t, p)
		want := []string{}
		if name == "closed after some" {
			require.NoError(t, second(x.Append(background, value("0"))))
			want = append(want, "0")
		}
		var r segment.Reservation
		require.NoError(t, x.Reserve(background, &r, 2, 20))
		place := r.Next(10)
		end(x)
		publish(t, p, 1)
		want = append(want, fmt.Sprint(len(want)))
		copy(place, "0123456789")
		copy(r.Next(10), "0123456789")
		require.ErrorIs(t, second(x.Commit(background, &r)), partition.ErrClosed, name)
		require.True(t, r.Over())
		x.Discard(&r)
		publish(t, p, 1)
		require.Equal(t, append(want, fmt.Sprint(len(want))), values(t, p), name)
	}
}

// TestReserve_Revoked: the end of the partition does not wait for a reservation.
func TestReserve_Revoked(t *testing.T) {
	watchdog(t)
	p := start(t, setup{})
	x := appender(t, p)
	require.NoError(t, second(x.Append(background, value("0"))))
	r, other := made(t, x, "1"), segment.Reservation{}
	p.Close(errOver)
	<-p.Done()
	require.ErrorIs(t, second(x.Commit(background, r)), errOver)
	require.True(t, r.Over())
	require.ErrorIs(t, x.Reserve(background, &other, 1, 1), errOver)
	require.NoError(t, x.Close())
	require.Equal(t, []string{"0"}, values(t, p))
}

func TestReserve_Allocations(t *testing.T) {
	p := start(t, setup{limits: retention.Limits{MaxBytes: 1 << 20}, segBytes: 64 << 10})
	x := appender(t, p)
	var r segment.Reservation
	key := []byte("key")
	pass := func() {
		require.NoError(t, x.Reserve(background, &r, 64, 64*64))
		for range 32 {
			r.Next(61)[0] = 1
			r.NextKey(key, 64)[0] = 1
		}
		require.NoError(t, second(x.Commit(background, &r)))
	}
	for range 1000 {
		pass()
	}
	require.Zero(t, testing.AllocsPerRun(1000, pass))
}
