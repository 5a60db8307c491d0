package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/vfs"
)

// written reserves room for the values, makes them there, and returns the reservation.
func written(t *testing.T, x *engine.Appender, all ...string) *engine.Reservation {
	t.Helper()
	size := 0
	for _, v := range all {
		size += len(v)
	}
	r, err := x.Reserve(background, len(all), size)
	require.NoError(t, err)
	for _, v := range all {
		copy(r.Next(len(v)), v)
	}
	require.Equal(t, len(all), r.Records())
	return r
}

// exclusive takes the only partition of a topic until the test ends.
func exclusive(t *testing.T, top *engine.Topic) *engine.Appender {
	t.Helper()
	x, err := part(t, top, 0).Appender(background)
	require.NoError(t, err)
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// TestReservation_Durable: what Commit has acknowledged survives a power cut, and what a file failed for is refused as that of a publish.
func TestReservation_Durable(t *testing.T) {
	testkit.Watchdog(t)
	m, broken := vfs.NewMem(), new(atomic.Bool)
	e := on(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if broken.Load() && o.Kind == vfs.OpSync {
			return &vfs.Fault{Err: errors.New("broken")}
		}
		return nil
	}), engine.Config{})
	top, err := e.CreateTopic("t", durable(engine.Always, 1))
	require.NoError(t, err)
	x := exclusive(t, top)
	first, err := written(t, x, "0", "1").Commit(background)
	require.NoError(t, err)
	require.Zero(t, first)
	require.EqualValues(t, 2, part(t, top, 0).Durable())

	r := written(t, x, "2")
	crashed := lost(m)
	survived := []string{}
	for _, rec := range part(t, topicOf(t, on(t, crashed, engine.Config{}), "t"), 0).Records(0) {
		survived = append(survived, string(rec.Value))
	}
	require.Equal(t, []string{"0", "1"}, survived)

	broken.Store(true)
	first, err = r.Commit(background)
	require.ErrorIs(t, err, engine.ErrReadOnly)
	require.ErrorIs(t, err, engine.ErrIndefinite)
	require.EqualValues(t, -1, first)
	_, err = x.Reserve(background, 1, 1)
	require.ErrorIs(t, err, engine.ErrReadOnly)
	require.NotErrorIs(t, err, engine.ErrIndefinite, "nothing of it was ever written")
	_, err = r.Commit(background)
	require.ErrorIs(t, err, engine.ErrReservation)

	broken.Store(false)
	require.NoError(t, top.Resume(background))
	first, err = written(t, x, "3").Commit(background)
	require.NoError(t, err)
	require.EqualValues(t, part(t, top, 0).Next()-1, first)
}

// TestReservation_Ends: what ends the topic does not wait for a reservation.
func TestReservation_Ends(t *testing.T) {
	testkit.Watchdog(t)
	for name, c := range map[string]struct {
		end  func(e *engine.Engine) error
		want error
	}{
		"the engine closes":    {func(e *engine.Engine) error { return e.Close() }, engine.ErrClosed},
		"the topic is deleted": {func(e *engine.Engine) error { return e.DeleteTopic("t") }, engine.ErrTopicDeleted},
		"the engine drains":    {func(e *engine.Engine) error { return e.Drain(background) }, engine.ErrDraining},
	} {
		e, err := engine.Open(engine.Config{})
		require.NoError(t, err)
		top, err := e.CreateTopic("t", engine.TopicConfig{})
		require.NoError(t, err)
		x, err := part(t, top, 0).Appender(background)
		require.NoError(t, err)
		r := written(t, x, "never")
		require.NoError(t, c.end(e), name)
		_, err = r.Commit(background)
		if name == "the engine drains" { // it ends with the topic closed, or still there
			require.Error(t, err, name)
		} else {
			require.ErrorIs(t, err, c.want, name)
		}
		r.Discard()
		_, err = r.Commit(background)
		require.Error(t, err)
		require.NoError(t, x.Close(), name)
		require.NoError(t, e.Close(), name)
	}
}

// TestReservation_Bounded: with a bound on memory a reservation waits for memory as a record does, and one that can never fit is refused.
func TestReservation_Bounded(t *testing.T) {
	testkit.Watchdog(t)
	e, err := engine.Open(engine.Config{MaxMemory: 64 << 10})
	require.NoError(t, err)
	defer e.Close()
	top, err := e.CreateTopic("t", engine.TopicConfig{OnFull: engine.Reject})
	require.NoError(t, err)
	x := exclusive(t, top)
	_, err = x.Reserve(background, 4, 128<<10)
	var large *engine.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, 4, large.Records)
	for range 100 { // nothing gates, so the oldest goes
		_, err := written(t, x, string(make([]byte, 3000)), string(make([]byte, 2000))).Commit(background)
		require.NoError(t, err)
	}
	require.EqualValues(t, 200, part(t, top, 0).Next())
	require.LessOrEqual(t, e.Stats().MemoryUsed, int64(64<<10))
}

// content returns the values of a partition.
func content(t *testing.T, top *engine.Topic) []string {
	all := []string{}
	for _, rec := range part(t, top, 0).Records(0) {
		all = append(all, string(rec.Value))
	}
	return all
}

// TestReservation_WrongOrder: what is called on a Reservation that is over does nothing, but to the one that is out.
func TestReservation_WrongOrder(t *testing.T) {
	top := topicOf(t, running(t), "t")
	x := exclusive(t, top)
	r := written(t, x, "0")
	_, err := r.Commit(background)
	require.NoError(t, err)
	r.Discard()
	_, err = r.Commit(background)
	require.ErrorIs(t, err, engine.ErrReservation)
	require.Nil(t, r.Next(0))
	require.Nil(t, r.NextKey([]byte{}, 0))
	r.Shrink(0)
	require.Zero(t, r.Records())
	require.Equal(t, []string{"0"}, content(t, top))

	r = written(t, x, "never") // what was asked of it when it was over does not count
	r.Discard()
	r.Discard()
	_, err = r.Commit(background)
	require.ErrorIs(t, err, engine.ErrReservation)
	_, err = x.Publish(background, engine.Record{Value: []byte("1")})
	require.NoError(t, err)
	first, err := written(t, x, "2", "3").Commit(background)
	require.NoError(t, err)
	require.EqualValues(t, 2, first)
	require.Equal(t, []string{"0", "1", "2", "3"}, content(t, top))

	r = written(t, x, "too", "late")
	require.NoError(t, x.Close())
	_, err = r.Commit(background)
	require.ErrorIs(t, err, engine.ErrClosed)
	_, err = x.Reserve(background, 1, 1)
	require.ErrorIs(t, err, engine.ErrClosed)
	x = exclusive(t, top)
	r2 := written(t, x, "4")
	r.Discard() // of another Appender
	_, err = r.Commit(background)
	require.ErrorIs(t, err, engine.ErrClosed)
	_, err = r2.Commit(background)
	require.NoError(t, err)
	require.Equal(t, []string{"0", "1", "2", "3", "4"}, content(t, top))
}

// running returns an engine with a topic "t" of one partition.
func running(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.Open(engine.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	_, err = e.CreateTopic("t", engine.TopicConfig{})
	require.NoError(t, err)
	return e
}

// TestReservation_Panics: of one whose maker panics nothing appears, and with a deferred Discard or Close it is in nobody's way.
func TestReservation_Panics(t *testing.T) {
	top := topicOf(t, running(t), "t")
	x := exclusive(t, top)
	for _, after := range []func(r *engine.Reservation){
		func(r *engine.Reservation) { r.Discard() },
		func(*engine.Reservation) { _ = x.Close() },
	} {
		require.Panics(t, func() {
			r, err := x.Reserve(background, 2, 10)
			require.NoError(t, err)
			defer after(r)
			copy(r.Next(5), "never")
			panic("made badly")
		})
		_, err := x.Publish(background, engine.Record{Value: []byte("fine")})
		require.True(t, err == nil || errors.Is(err, engine.ErrClosed))
	}
	_, err := top.Publish(background, engine.Record{Value: []byte("others")})
	require.NoError(t, err)
	require.Equal(t, []string{"fine", "others"}, content(t, top))
}

// TestReservation_HoldsUpNobody: the topic grows, is read, truncated and flushed while one is out.
func TestReservation_HoldsUpNobody(t *testing.T) {
	testkit.Watchdog(t)
	top := topicOf(t, running(t), "t")
	x := exclusive(t, top)
	r := written(t, x, "0", "1")
	require.NoError(t, top.SetPartitions(3))
	require.NoError(t, top.Flush(background))
	_, err := top.Publish(background, engine.Record{Key: []byte("k")})
	require.True(t, err == nil || errors.Is(err, engine.ErrExclusive))
	require.NoError(t, part(t, top, 0).TruncateBefore(background, 0))
	require.NoError(t, x.Flush())
	first, err := r.Commit(background)
	require.NoError(t, err)
	require.Zero(t, first)
	require.Equal(t, []string{"0", "1"}, content(t, top))
}

// TestReservation_Full: what becomes of one for which there is no room is the policy's, and ctx is not looked at where there is some.
func TestReservation_Full(t *testing.T) {
	testkit.Watchdog(t)
	gone, cancel := context.WithCancel(background)
	cancel()
	for policy, want := range map[engine.OnFull]error{engine.Reject: engine.ErrFull, engine.Block: context.Canceled, engine.DropOldest: nil} {
		e := running(t)
		top, err := e.CreateTopic("full", engine.TopicConfig{OnFull: policy, Retention: engine.Retention{MaxRecords: 3}})
		require.NoError(t, err)
		pull, err := part(t, top, 0).Reader(engine.ReaderConfig{Gating: true})
		require.NoError(t, err)
		x := exclusive(t, top)
		_, err = written(t, x, "0", "1").Commit(gone)
		require.NoError(t, err)
		_, err = x.Reserve(gone, 4, 0)
		require.ErrorIs(t, err, engine.ErrTooLarge)
		_, err = x.Reserve(gone, 2, 1)
		if want != nil {
			require.ErrorIs(t, err, want, "%v", policy)
			pull.Close()
			_, err = x.Reserve(gone, 2, 1)
		}
		require.NoError(t, err, "%v", policy)
	}
}

// TestReservation_InsideHandler: one that would wait for the handler that asks for it is refused.
func TestReservation_InsideHandler(t *testing.T) {
	testkit.Watchdog(t)
	e := running(t)
	top, err := e.CreateTopic("full", engine.TopicConfig{OnFull: engine.Block, Retention: engine.Retention{MaxRecords: 2}})
	require.NoError(t, err)
	x := exclusive(t, top)
	result := make(chan error, 10)
	_, err = top.Subscribe(engine.HandlerFunc(func(ctx context.Context, _ *engine.Message) error {
		_, err := x.Reserve(ctx, 2, 10)
		result <- err
		return nil
	}), engine.SubscribeConfig{Start: engine.Earliest()})
	require.NoError(t, err)
	_, err = written(t, x, "0").Commit(background)
	require.NoError(t, err)
	require.ErrorIs(t, <-result, engine.ErrSelfBlock)
	r, err := x.Reserve(background, 2, 10) // when it has returned there is room
	require.NoError(t, err)
	r.Discard()
}

// TestReservation_Times: the timestamp of each record is the time of its Reserve.
func TestReservation_Times(t *testing.T) {
	top := topicOf(t, running(t), "t")
	x := exclusive(t, top)
	before := time.Now().UnixNano()
	r := written(t, x, "0", "1")
	after := time.Now().UnixNano()
	_, err := r.Commit(background)
	require.NoError(t, err)
	for _, rec := range part(t, top, 0).Records(0) {
		require.GreaterOrEqual(t, rec.Timestamp, before)
		require.LessOrEqual(t, rec.Timestamp, after)
		require.Zero(t, rec.Headers.Size())
	}
}
