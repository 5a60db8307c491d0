package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

func TestSubscribe_StartPositions(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Partitions: 2, SegmentRecords: 10})
	for i := range 2 {
		p := part(t, topic, i)
		for o := range int64(100) {
			_, err := p.Publish(background, engine.Record{Value: []byte(fmt.Sprintf("%d/%d", i, o)), Timestamp: 1000 + 10*o})
			require.NoError(t, err)
		}
		require.NoError(t, p.TruncateBefore(background, 35))
	}
	ts := func(n int64) time.Time { return time.Unix(0, n) }
	for name, try := range map[string]struct {
		start engine.Start
		first engine.Offset
	}{
		"zero value":             {engine.Start{}, 100},
		"earliest":               {engine.Earliest(), 35},
		"latest":                 {engine.Latest(), 100},
		"at first":               {engine.At(35), 35},
		"at 70":                  {engine.At(70), 70},
		"at next":                {engine.At(100), 100},
		"since before all":       {engine.Since(ts(0)), 35},
		"since a dropped one":    {engine.Since(ts(1200)), 35},
		"since a record":         {engine.Since(ts(1700)), 70},
		"since between":          {engine.Since(ts(1701)), 71},
		"since the last":         {engine.Since(ts(1990)), 99},
		"since after all":        {engine.Since(ts(1991)), 100},
		"since the zero time":    {engine.Since(time.Time{}), 35},
		"since before all times": {engine.Since(time.Date(-50_000, 1, 1, 0, 0, 0, 0, time.UTC)), 35},
		"since after all times":  {engine.Since(time.Date(50_000, 1, 1, 0, 0, 0, 0, time.UTC)), 100},
		"since year 2500":        {engine.Since(time.Date(2500, 1, 1, 0, 0, 0, 0, time.UTC)), 100},
		"last 0":                 {engine.Last(0), 100},
		"last 1":                 {engine.Last(1), 99},
		"last 65":                {engine.Last(65), 35},
		"last 66":                {engine.Last(66), 35},
		"last of all":            {engine.Last(math.MaxInt64), 35},
	} {
		t.Run(name, func(t *testing.T) {
			var got book
			s := subscribe(t, topic, &got, engine.SubscribeConfig{Start: try.start})
			defer s.Close()
			caughtUp(s)
			// The same start for Seek, on a subscription that is elsewhere.
			for i := range 2 {
				assert.Equal(t, upTo(try.first, 100), got.offsets(int32(i)))
				want := append(got.offsets(int32(i)), upTo(try.first, 100)...)
				require.NoError(t, s.Seek(i, try.start))
				caughtUp(s)
				assert.Equal(t, want, got.offsets(int32(i)))
				assert.Equal(t, engine.Offset(100), position(t, s, i))
			}
			for _, d := range got.entries() {
				require.Equal(t, fmt.Sprintf("%d/%d", d.part, d.off), d.value)
				require.Equal(t, 1, d.attempt)
			}
		})
	}
}

// TestBUG073_LastN delivers exactly min(n, what is there) old records and then the new one, on logs of several shapes.
func TestBUG073_LastN(t *testing.T) {
	watchdog(t)
	const segment = 8
	for _, shape := range []struct {
		name       string
		n, trimmed int
	}{{"empty", 0, 0}, {"one record", 1, 0}, {"one segment", segment, 0}, {"one segment and one", segment + 1, 0}, {"trimmed", 3 * segment, 10}, {"trimmed to nothing", segment, segment}} {
		t.Run(shape.name, func(t *testing.T) {
			topic := newTopic(t, engine.TopicConfig{SegmentRecords: segment})
			publish(t, topic, 0, shape.n)
			require.NoError(t, part(t, topic, 0).TruncateBefore(background, engine.Offset(shape.trimmed)))
			kept := int64(shape.n - shape.trimmed)
			next := int64(shape.n)
			for _, n := range []int64{0, 1, 2, kept, kept + 1, math.MaxInt64} {
				var got book
				open := make(chan struct{})
				s := subscribe(t, topic, handle(func(m *engine.Message) error { <-open; got.add(m); return nil }),
					engine.SubscribeConfig{Start: engine.Last(n)})
				assert.Equal(t, min(n, kept), s.Lag())
				close(open)
				caughtUp(s)
				assert.Equal(t, upTo(next-min(n, kept), next), got.offsets(0))
				publish(t, topic, 0, 1)
				caughtUp(s)
				assert.Equal(t, upTo(next-min(n, kept), next+1), got.offsets(0))
				s.Close()
				next, kept = next+1, kept+1
			}
		})
	}
}

// TestSEED03_SeekOutOfRange refuses what the partition does not hold, with what it does hold, and moves nothing: neither the
// position, nor publishers on a full topic.
func TestSEED03_SeekOutOfRange(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, bounded(4, engine.Block))
	s := subscribe(t, topic, ignore, engine.SubscribeConfig{})
	publish(t, topic, 0, 10)
	caughtUp(s)
	p := part(t, topic, 0)
	for _, off := range []engine.Offset{-1, math.MinInt64, p.First() - 1, 11, math.MaxInt64} {
		var out *engine.OffsetError
		require.ErrorAs(t, s.Seek(0, engine.At(off)), &out)
		assert.Equal(t, engine.OffsetError{Asked: off, First: p.First(), Next: 10}, *out)
		_, err := topic.Subscribe(ignore, engine.SubscribeConfig{ID: "other", Start: engine.At(off)})
		require.ErrorAs(t, err, &out)
		assert.Equal(t, off, out.Asked)
		assert.Equal(t, engine.Offset(10), position(t, s, 0))
	}
	assert.ErrorIs(t, s.Seek(0, engine.Last(-1)), engine.ErrConfig)
	assert.ErrorIs(t, s.Seek(1, engine.Latest()), engine.ErrUnknownPartition)
	assert.ErrorIs(t, s.Seek(-1, engine.Latest()), engine.ErrUnknownPartition)
	publish(t, topic, 0, 10) // nobody has kept a gate
	caughtUp(s)
}

func TestSubscribe_Errors(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Partitions: 2})
	sub := func(c engine.SubscribeConfig) error {
		_, err := topic.Subscribe(ignore, c)
		return err
	}
	_, err := topic.Subscribe(nil, engine.SubscribeConfig{})
	assert.ErrorIs(t, err, engine.ErrConfig)
	_, err = topic.Subscribe(engine.HandlerFunc(nil), engine.SubscribeConfig{})
	assert.ErrorIs(t, err, engine.ErrConfig)
	for _, c := range []engine.SubscribeConfig{
		{Mode: 2}, {Gap: 2}, {MaxDeliveries: -2}, {MaxLag: -1}, {MaxConcurrency: -1}, {BatchSize: -1}, {BatchSize: 1<<16 + 1},
		{Backoff: []time.Duration{time.Second, -1}},
	} {
		assert.ErrorIs(t, sub(c), engine.ErrConfig)
	}
	for _, id := range []string{".", "..", "a b", "#1", "\x00", "\u00fc"} {
		assert.ErrorIs(t, sub(engine.SubscribeConfig{ID: id}), engine.ErrName)
	}
	require.NoError(t, sub(engine.SubscribeConfig{ID: "taken"}))
	assert.ErrorIs(t, sub(engine.SubscribeConfig{ID: "taken"}), engine.ErrSubscriptionExists)
	assert.Len(t, topic.Stats().Subscriptions, 1, "what failed has left nothing")

	_, err = topic.Subscription("nobody")
	assert.ErrorIs(t, err, engine.ErrUnknownSubscription)
	s, err := topic.Subscription("taken")
	require.NoError(t, err)
	assert.Equal(t, "taken", s.ID())
	assert.Same(t, topic, s.Topic())
	for _, i := range []int{-1, 2} {
		assert.ErrorIs(t, s.Pause(i), engine.ErrUnknownPartition)
		assert.ErrorIs(t, s.Resume(0, i), engine.ErrUnknownPartition)
		_, err = s.Position(i)
		assert.ErrorIs(t, err, engine.ErrUnknownPartition)
	}
}

// TestSEED07_SubscribeTwice refuses the second of an ID, whoever of many at once is first, and that changes nothing for it.
func TestSEED07_SubscribeTwice(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Partitions: 3})
	for i := range 3 {
		publish(t, topic, i, 10)
	}
	for range rounds(200) {
		var got book
		subs := make(chan *engine.Subscription, 8)
		for range cap(subs) {
			go func() {
				s, err := topic.Subscribe(&got, engine.SubscribeConfig{ID: "a", Start: engine.Earliest()})
				if err != nil {
					assert.ErrorIs(t, err, engine.ErrSubscriptionExists)
				}
				subs <- s
			}()
		}
		var first *engine.Subscription
		for range cap(subs) {
			if s := <-subs; s != nil {
				require.Nil(t, first, "two of them")
				first = s
			}
		}
		caughtUp(first)
		assert.Equal(t, 30, got.len())
		first.Close()
		<-first.Done()
	}
}

// TestBUG104_MadeUpNames: a name that the engine makes up is no name of a user's, and no two are the same.
func TestBUG104_MadeUpNames(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{})
	publish(t, topic, 0, 10)
	for i := range 20 { // whatever names it would make up, they are taken, and remembered
		s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: fmt.Sprintf("sub-%d", i), Start: engine.At(3)})
		s.Pause()
		if i%2 == 0 {
			s.Close()
		}
	}
	seen := map[string]bool{}
	for range rounds(200) {
		s := subscribe(t, topic, ignore, engine.SubscribeConfig{})
		assert.False(t, seen[s.ID()])
		seen[s.ID()] = true
		assert.Equal(t, engine.Offset(10), position(t, s, 0), "it starts at the end, not where somebody else was")
		_, err := topic.Subscribe(ignore, engine.SubscribeConfig{ID: s.ID()})
		assert.ErrorIs(t, err, engine.ErrName)
		at, err := topic.Subscription(s.ID())
		require.NoError(t, err)
		assert.Same(t, s, at)
	}
}

// TestSEED12_PositionsAreRemembered: a position is the next record to process, wherever it is seen, and a subscription that
// comes again under its ID goes on exactly there.
func TestSEED12_PositionsAreRemembered(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Partitions: 2})
	publish(t, topic, 0, 5)
	publish(t, topic, 1, 3)
	var got book
	c := engine.SubscribeConfig{ID: "a", Start: engine.Earliest()}
	s := subscribe(t, topic, &got, c)
	caughtUp(s)
	assert.Equal(t, engine.Offset(5), position(t, s, 0))
	assert.Equal(t, engine.Offset(5), s.Stats().Lanes[0].Position)
	s.Close()
	<-s.Done()
	publish(t, topic, 0, 5)
	publish(t, topic, 1, 1)

	c.Start = engine.Start{}
	s = subscribe(t, topic, &got, c)
	caughtUp(s)
	assert.Equal(t, upTo(0, 10), got.offsets(0))
	assert.Equal(t, upTo(0, 4), got.offsets(1))
	assert.ErrorIs(t, topic.ForgetPositions("a"), engine.ErrSubscriptionExists)
	s.Close()

	// A start that is given counts more than what is remembered.
	c.Start = engine.At(3)
	s = subscribe(t, topic, &got, c)
	caughtUp(s)
	assert.Equal(t, append(upTo(0, 10), upTo(3, 10)...), got.offsets(0))
	s.Close()
	<-s.Done()

	require.NoError(t, topic.ForgetPositions("a"))
	assert.ErrorIs(t, topic.ForgetPositions("a"), engine.ErrUnknownSubscription)
	publish(t, topic, 0, 1)
	c.Start = engine.Start{}
	s = subscribe(t, topic, &got, c)
	assert.Equal(t, engine.Offset(11), position(t, s, 0), "latest")
	s.Close()
}

// TestBUG065_PositionsWhenClosedInAHandler closes a subscription whose handler is running: what that has processed is not
// processed again by the one that comes after Done; and one that comes before begins with it.
func TestBUG065_PositionsWhenClosedInAHandler(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{})
	publish(t, topic, 0, 10)
	c := engine.SubscribeConfig{ID: "a"}
	closeAt := func(off engine.Offset) (*engine.Subscription, *blocker) {
		b := newBlocker()
		s := subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
			if m.Offset == off {
				return b.OnMessage(ctx, m)
			}
			return nil
		}), engine.SubscribeConfig{ID: "a", Start: engine.Earliest()})
		<-b.in
		s.Close()
		return s, b
	}

	s, b := closeAt(5)
	b.release()
	<-s.Done()
	var got book
	s = subscribe(t, topic, &got, c)
	caughtUp(s)
	assert.Equal(t, upTo(6, 10), got.offsets(0))
	s.Close()
	<-s.Done()

	s, b = closeAt(5)
	got = book{}
	second := subscribe(t, topic, &got, c)
	caughtUp(second)
	assert.Equal(t, upTo(5, 10), got.offsets(0))
	second.Close()
	<-second.Done()
	b.release()
	<-s.Done()
	third := subscribe(t, topic, ignore, c)
	assert.Equal(t, engine.Offset(10), position(t, third, 0), "the first does not take back what the second has done")
	third.Close()
	<-third.Done()

	s, b = closeAt(5)
	require.NoError(t, topic.ForgetPositions("a"))
	b.release()
	<-s.Done()
	assert.ErrorIs(t, topic.ForgetPositions("a"), engine.ErrUnknownSubscription, "it stays forgotten")
}

// TestSubscribe_ResumesBehindAGap: records that were dropped while nobody was there are told of as a gap.
func TestSubscribe_ResumesBehindAGap(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, bounded(4, engine.Block))
	s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "a"})
	publish(t, topic, 0, 2)
	caughtUp(s)
	s.Close()
	publish(t, topic, 0, 10)
	var gap engine.GapError
	var got book
	s = subscribe(t, topic, &got, engine.SubscribeConfig{ID: "a", OnGap: func(g engine.GapError) { gap = g }})
	caughtUp(s)
	first := part(t, topic, 0).First()
	assert.Equal(t, engine.GapError{Partition: 0, From: 2, To: first}, gap)
	assert.Equal(t, first-2, gap.Lost())
	assert.Equal(t, upTo(first, 12), got.offsets(0))
	assert.Equal(t, int64(first-2), s.Stats().Lanes[0].Lost)
}

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

// TestSubscription_Evicted hangs a handler: the subscription is over at once, for its publishers, its users and the hook; Done
// waits for the handler.
func TestSubscription_Evicted(t *testing.T) {
	watchdog(t)
	ended := make(chan error, 1)
	e := open(t, engine.Config{Workers: 1, Hooks: engine.Hooks{SubscriptionEnded: func(_, _ string, cause error) { ended <- cause }}})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2, Retention: engine.Retention{MaxRecords: 16}, SegmentRecords: 1})
	b := newBlocker()
	s := subscribe(t, topic, b, engine.SubscribeConfig{ID: "slow", MaxLag: 8})
	publish(t, topic, 0, 1)
	<-b.in
	publish(t, topic, 0, 7)
	publish(t, topic, 1, 7)
	assert.NoError(t, s.Err(), "8 is not above 8")
	publish(t, topic, 0, 100)
	assert.Equal(t, engine.ErrEvicted, <-ended)
	assert.Equal(t, engine.ErrEvicted, s.Err())
	assert.Equal(t, engine.ErrEvicted, s.Seek(1, engine.Latest()))
	select {
	case <-s.Done():
		t.Error("done, and a handler runs")
	default:
	}
	again := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "slow"}) // where the other has been
	assert.Equal(t, engine.Offset(0), position(t, again, 0))
	again.Close()
	b.release()
	<-s.Done()
	assert.Equal(t, engine.Offset(1), position(t, s, 0))
}

// TestSubscribe_EvictedAtOnce subscribes where it is too late already, while others publish: the lanes that are made first
// may be put out before the last is made.
func TestSubscribe_EvictedAtOnce(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Partitions: 4, Retention: engine.Retention{MaxRecords: 64}, Partitioner: engine.RoundRobin()})
	over := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			default:
				_ = topic.PublishBatch(background, make([]engine.Record, 32))
				runtime.Gosched()
			}
		}
	}()
	for range rounds(500) {
		s, err := topic.Subscribe(ignore, engine.SubscribeConfig{ID: "late", Start: engine.Earliest(), MaxLag: 1, NonGating: true})
		require.NoError(t, err)
		<-s.Done()
		assert.Equal(t, engine.ErrEvicted, s.Err())
		bad, err := topic.Subscribe(ignore, engine.SubscribeConfig{ID: "bad", Start: engine.At(1), MaxLag: 1})
		if err == nil { // not trimmed yet
			bad.Close()
			<-bad.Done()
		}
	}
	close(over)
	<-done
	assert.Empty(t, topic.Stats().Subscriptions)
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

// TestSubscription_MaxConcurrency runs no more lanes of a subscription at a time than it may, by default one less than there
// are workers.
func TestSubscription_MaxConcurrency(t *testing.T) {
	watchdog(t)
	for _, try := range []struct{ workers, max, want int }{{4, 0, 3}, {4, 1, 1}, {4, 2, 2}, {4, 100, 4}, {1, 0, 1}, {2, 0, 1}} {
		e := open(t, engine.Config{Workers: try.workers})
		topic := create(t, e, "t", engine.TopicConfig{Partitions: 8})
		b := newBlocker()
		s := subscribe(t, topic, b, engine.SubscribeConfig{MaxConcurrency: try.max})
		for i := range 8 {
			publish(t, topic, i, 2)
		}
		for range try.want {
			<-b.in
		}
		if try.want < try.workers { // another subscription gets a worker, by the time it has run this one has taken what it may
			var got book
			other := subscribe(t, topic, &got, engine.SubscribeConfig{Start: engine.Earliest()})
			caughtUp(other)
			assert.Equal(t, 16, got.len())
		}
		await(func() bool { return e.Stats().Running == try.want })
		assert.Empty(t, b.in)
		b.release()
		caughtUp(s)
	}
}

// TestSEED15_BlockedHandlers: a subscription whose handlers never return leaves a worker for others, Stats name it, and a
// dedicated one works even when all workers are taken.
func TestSEED15_BlockedHandlers(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 2})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	stuck, stuck2 := newBlocker(), newBlocker()
	defer stuck.release()
	defer stuck2.release()
	subscribe(t, topic, stuck, engine.SubscribeConfig{ID: "stuck"})
	publish(t, topic, 0, 1)
	publish(t, topic, 1, 1)
	<-stuck.in

	var got book
	third := subscribe(t, topic, &got, engine.SubscribeConfig{Start: engine.Earliest()})
	caughtUp(third)
	assert.Equal(t, 2, got.len())

	subscribe(t, topic, stuck2, engine.SubscribeConfig{ID: "stuck-too", Start: engine.Earliest()})
	<-stuck2.in
	await(func() bool { return e.Stats().Running == 2 })
	var names []string
	for _, s := range e.Stats().Topics[0].Subscriptions {
		for _, l := range s.Lanes {
			if l.Running {
				names = append(names, s.ID)
			}
		}
	}
	assert.Equal(t, []string{"stuck", "stuck-too"}, names)

	var own book
	dedicated := subscribe(t, topic, &own, engine.SubscribeConfig{Dedicated: true, Start: engine.Earliest()})
	caughtUp(dedicated)
	assert.Equal(t, 2, own.len())
}

// TestSEED01_SlowHandlersStopNobodyElse: no lock is held over a handler. While one hangs, the same topic can be published to,
// read, subscribed to and looked at, and others are delivered to.
func TestSEED01_SlowHandlersStopNobodyElse(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	b := newBlocker()
	s := subscribe(t, topic, b, engine.SubscribeConfig{ID: "slow"})
	var got book
	other := subscribe(t, topic, &got, engine.SubscribeConfig{ID: "other"})
	publish(t, topic, 0, 1)
	<-b.in
	publish(t, topic, 0, 100)
	publish(t, topic, 1, 100)
	caughtUp(other)
	assert.Equal(t, 201, got.len())
	await(func() bool { return s.Stats().Lanes[0].Running })
	assert.Len(t, e.Stats().Topics[0].Subscriptions, 2)
	require.NoError(t, s.Pause(1))
	require.NoError(t, s.Resume(1))
	third := subscribe(t, topic, ignore, engine.SubscribeConfig{Start: engine.Earliest()})
	caughtUp(third)
	third.Close()
	<-third.Done()
	require.NoError(t, topic.Flush(background))
	b.release()
	caughtUp(s)
}

// TestSubscription_SelfBlock publishes from inside a handler to the handler's own full partition: that would wait for itself,
// so it fails, in every way of publishing that waits, and goes on once there is room.
func TestSubscription_SelfBlock(t *testing.T) {
	watchdog(t)
	const n = 4
	topic := newTopic(t, bounded(n, engine.Block))
	type result struct {
		how string
		err error
	}
	results := make(chan result, 10)
	filled := make(chan struct{})
	s := subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		if m.Offset != 0 {
			return nil
		}
		<-filled
		_, err := topic.Publish(ctx, value("x"))
		results <- result{"Publish", err}
		results <- result{"PublishBatch", topic.PublishBatch(ctx, []engine.Record{value("x"), value("y")})}
		results <- result{"Flush", topic.Flush(ctx)} // nothing is under way
		return nil
	}), engine.SubscribeConfig{})
	publish(t, topic, 0, n)
	close(filled)
	assert.ErrorIs(t, (<-results).err, engine.ErrSelfBlock)
	assert.ErrorIs(t, (<-results).err, engine.ErrSelfBlock)
	<-results
	caughtUp(s)
	assert.Equal(t, engine.Offset(n), part(t, topic, 0).Next(), "what failed is not there")
	publish(t, topic, 0, 10)
}

// TestSubscription_FromInside calls everything that a handler may call of its own topic and subscription.
func TestSubscription_FromInside(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 1})
	topic := create(t, e, "t", engine.TopicConfig{Partitions: 2})
	var s *engine.Subscription
	ready, done := make(chan struct{}), make(chan error, 1)
	s = subscribe(t, topic, engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		<-ready
		if m.Offset > 0 || m.Partition > 0 {
			return nil
		}
		done <- func() error {
			for _, f := range []func() error{
				func() error { _, err := topic.Publish(ctx, value("x")); return err },
				func() error { return topic.TryPublish(value("x")) },
				func() error { return topic.PublishBatch(ctx, make([]engine.Record, 3)) },
				func() error {
					called := make(chan struct{})
					err := topic.PublishAsync(ctx, value("x"), func(engine.Published, error) { close(called) })
					<-called // callbacks do not need the worker that we have
					return err
				},
				func() error { return topic.Flush(ctx) },
				func() error { return s.Pause(1) },
				func() error { return s.Seek(1, engine.Latest()) },
				func() error { return s.Resume() },
				func() error {
					other, err := topic.Subscribe(ignore, engine.SubscribeConfig{Start: engine.Earliest()})
					if err == nil {
						other.Close()
					}
					return err
				},
				func() error {
					if _, err := e.CreateTopic("new", engine.TopicConfig{}); err != nil {
						return err
					}
					return e.DeleteTopic("new")
				},
				func() error {
					p, err := topic.Partition(0)
					if err != nil {
						return err
					}
					if err := p.TruncateBefore(ctx, 1); err != nil {
						return err
					}
					x, err := p.Appender(ctx)
					if err != nil {
						return err
					}
					if _, err := x.Append(ctx, value("x")); err != nil {
						return err
					}
					return x.Close()
				},
				func() error { e.Stats(); _, err := e.Describe("t"); return err },
				func() error {
					if err := e.Drain(ctx); !errors.Is(err, engine.ErrSelfBlock) {
						return fmt.Errorf("Drain: %w", err)
					}
					return nil
				},
			} {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		}()
		return nil
	}), engine.SubscribeConfig{})
	close(ready)
	publish(t, topic, 0, 1)
	require.NoError(t, <-done)
	caughtUp(s)
	assert.NoError(t, s.Err())
}
