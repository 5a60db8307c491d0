package engine_test

import (
	"errors"
	"sync/atomic"
	"testing"

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
