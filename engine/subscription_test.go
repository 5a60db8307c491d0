package engine_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG008_SeekFromEverywhere seeks while the handler has 50, from outside and from inside: 0 is next, and nothing undoes it.
func TestBUG008_SeekFromEverywhere(t *testing.T) {
	watchdog(t)
	for _, inside := range []bool{false, true} {
		topic := newTopic(t, engine.TopicConfig{Partitions: 2})
		publish(t, topic, 0, 100)
		publish(t, topic, 1, 10)
		var got book
		b := newBlocker()
		first := true
		var s *engine.Subscription
		ready := make(chan struct{})
		s = subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
			<-ready
			got.add(m)
			if m.Partition == 0 && m.Offset == 50 && first {
				first = false
				if inside {
					return s.Seek(0, engine.Earliest())
				}
				return b.OnMessage(ctx, m)
			}
			return nil
		}), engine.SubscribeConfig{Start: engine.Earliest()})
		close(ready)
		if !inside {
			<-b.in
			require.NoError(t, s.Seek(0, engine.At(0)))
			b.release()
		}
		caughtUp(s)
		assert.Equal(t, append(upTo(0, 51), upTo(0, 100)...), got.offsets(0))
		assert.Equal(t, upTo(0, 10), got.offsets(1), "other partitions are left alone")
		assert.Equal(t, engine.Offset(100), position(t, s, 0))
	}
}

// TestBUG068_PauseAndResume pauses partitions and all of them, in each order: after Pause returned and the handlers that were
// running have ended nothing is delivered, and Resume goes on at the exact next record.
func TestBUG068_PauseAndResume(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Partitions: 3})
	var got book
	s := subscribe(t, topic, &got, engine.SubscribeConfig{})
	want := [3]engine.Offset{}
	paused := [3]bool{}
	step := func(op func(...int) error, pause bool, partitions ...int) {
		t.Helper()
		require.NoError(t, op(partitions...))
		if len(partitions) == 0 {
			partitions = []int{0, 1, 2}
		}
		for _, i := range partitions {
			paused[i] = pause
		}
		for i := range 3 {
			publish(t, topic, i, 5)
		}
		stats := func() []engine.LaneStats { return s.Stats().Lanes }
		await(func() bool {
			for i, l := range stats() {
				if l.Running || !paused[i] && l.Lag > 0 {
					return false
				}
			}
			return true
		})
		for i := range 3 {
			if !paused[i] {
				want[i] = part(t, topic, i).Next()
			}
			assert.Equal(t, want[i], position(t, s, i))
			assert.Equal(t, upTo(0, want[i]), got.offsets(int32(i)))
			assert.Equal(t, paused[i], stats()[i].Paused)
		}
	}
	step(s.Pause, true)
	step(s.Resume, false)
	step(s.Pause, true, 1)
	step(s.Pause, true)
	step(s.Resume, false, 1)
	step(s.Resume, false)
	step(s.Pause, true)
	step(s.Pause, true, 2)
	step(s.Resume, false) // all, also the one that was paused by itself
	step(s.Pause, true, 0, 2)
	step(s.Pause, true, 0)
	step(s.Resume, false, 0, 1)
	step(s.Resume, false)
}

// TestSubscription_PausedHoldsBackPublishers, as the doc says, and Resume lets them go on.
func TestSubscription_PausedHoldsBackPublishers(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, bounded(4, engine.Block))
	s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "slow"})
	require.NoError(t, s.Pause())
	publish(t, topic, 0, 4)
	done := make(chan struct{})
	go func() { defer close(done); publish(t, topic, 0, 4) }()
	p := part(t, topic, 0)
	await(func() bool { return p.Stats().HeldBy == "slow" && p.Stats().Blocked == 1 })
	require.NoError(t, s.Resume())
	<-done
}

// TestSubscription_NonGating: publishers do not wait for it, and it is told what it missed.
func TestSubscription_NonGating(t *testing.T) {
	watchdog(t)
	for _, full := range []engine.OnFull{engine.Block, engine.Reject} {
		topic := newTopic(t, bounded(4, full))
		var got book
		var lost int64
		s := subscribe(t, topic, &got, engine.SubscribeConfig{NonGating: true, OnGap: func(g engine.GapError) { lost += g.Lost() }})
		require.NoError(t, s.Pause())
		publish(t, topic, 0, 20)
		require.NoError(t, s.Resume())
		caughtUp(s)
		assert.Equal(t, int64(16), lost)
		assert.Equal(t, upTo(16, 20), got.offsets(0))
	}
}

// TestBUG019_DropOldestTellsWhatIsLost overruns a slow handler again and again: each gap is told, from and to, in the order of
// the stream, and delivered and lost together are everything.
func TestBUG019_DropOldestTellsWhatIsLost(t *testing.T) {
	watchdog(t)
	type event struct {
		from, to engine.Offset
		gap      bool
	}
	e := open(t, engine.Config{Hooks: engine.Hooks{}})
	topic := create(t, e, "t", bounded(8, engine.DropOldest))
	var events []event
	step := make(chan struct{})
	s := subscribe(t, topic, handle(func(m *engine.Message) error {
		events = append(events, event{m.Offset, m.Offset + 1, false})
		<-step
		return nil
	}), engine.SubscribeConfig{OnGap: func(g engine.GapError) { events = append(events, event{g.From, g.To, true}) }})
	for i := range 100 {
		publish(t, topic, 0, i%13)
		if i%3 == 0 {
			select {
			case step <- struct{}{}:
			default:
			}
		}
	}
	close(step)
	caughtUp(s)
	at, delivered, lost := engine.Offset(0), int64(0), int64(0)
	for _, ev := range events {
		require.Equal(t, at, ev.from, "%v", events)
		require.Greater(t, ev.to, ev.from)
		at = ev.to
		if ev.gap {
			lost += ev.to - ev.from
		} else {
			delivered++
		}
	}
	next := part(t, topic, 0).Next()
	assert.Equal(t, next, at)
	assert.Positive(t, lost)
	await(func() bool { return s.Stats().Lanes[0].Delivered == delivered })
	assert.Equal(t, lost, s.Stats().Lanes[0].Lost)
	assert.Equal(t, next, delivered+lost)
}

func TestSubscription_FailOnGap(t *testing.T) {
	watchdog(t)
	ended := make(chan error, 1)
	e := open(t, engine.Config{Hooks: engine.Hooks{SubscriptionEnded: func(topic, sub string, cause error) {
		assert.Equal(t, "t/s", topic+"/"+sub)
		ended <- cause
	}}})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 3})
	s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "s", Gap: engine.FailOnGap, OnGap: func(engine.GapError) {
		t.Error("told of a gap")
	}})
	require.NoError(t, s.Pause())
	publish(t, topic, 1, 10)
	require.NoError(t, part(t, topic, 1).TruncateBefore(background, 5))
	assert.NoError(t, s.Err())
	require.NoError(t, s.Resume())
	<-s.Done() // one lane ends them all
	var out *engine.OffsetError
	require.ErrorAs(t, s.Err(), &out)
	assert.Equal(t, engine.OffsetError{Asked: 0, First: 5, Next: 10}, *out)
	assert.Equal(t, s.Err(), <-ended)
	assert.Equal(t, engine.Offset(0), position(t, s, 1))
}

func TestSubscription_BatchHandler(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Partitions: 2})
	for i := range 2 {
		publish(t, topic, i, 100)
	}
	var got book
	s := subscribe(t, topic, batchFunc(func(_ context.Context, ms []engine.Message) error {
		assert.LessOrEqual(t, len(ms), 7)
		assert.Equal(t, len(ms), cap(ms))
		for i := range ms {
			assert.Equal(t, ms[0].Offset+engine.Offset(i), ms[i].Offset)
			assert.Equal(t, ms[0].Partition, ms[i].Partition)
			assert.Equal(t, "topic", ms[i].Topic)
			if ms[0].Attempt == 2 {
				got.add(&ms[i])
			}
		}
		if ms[0].Attempt == 1 {
			return errPoison
		}
		return nil
	}), engine.SubscribeConfig{Start: engine.Earliest(), BatchSize: 7, Backoff: []time.Duration{time.Millisecond}})
	caughtUp(s)
	for i := range int32(2) {
		assert.Equal(t, upTo(0, 100), got.offsets(i))
	}
}

// TestSEED11_Modes crashes a handler (its goroutine ends) after it has done its work: under AtMostOnce the record is never seen
// again, under AtLeastOnce it is.
func TestSEED11_Modes(t *testing.T) {
	watchdog(t)
	for mode, want := range map[engine.Mode][]int{engine.AtMostOnce: {1, 1, 1}, engine.AtLeastOnce: {1, 2, 1}} {
		topic := newTopic(t, engine.TopicConfig{})
		seen := make([]int, 3)
		inside := make([]engine.Offset, 3)
		var s *engine.Subscription
		ready := make(chan struct{})
		s = subscribe(t, topic, handle(func(m *engine.Message) error {
			<-ready
			inside[m.Offset], _ = s.Position(0)
			seen[m.Offset]++
			if m.Offset == 1 && seen[1] == 1 {
				runtime.Goexit()
			}
			return nil
		}), engine.SubscribeConfig{Mode: mode, Backoff: []time.Duration{time.Millisecond}})
		close(ready)
		publish(t, topic, 0, 3)
		caughtUp(s)
		assert.Equal(t, want, seen)
		committed := upTo(0, 3)
		if mode == engine.AtMostOnce {
			committed = upTo(1, 4)
		}
		assert.Equal(t, committed, inside, "the position before or behind the record whose handler runs")
	}
}
