package engine_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

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

// TestSubscribe_ResumesBehindAGapWithMaxLag: what was dropped while nobody was there is lost, but it is no lag.
func TestSubscribe_ResumesBehindAGapWithMaxLag(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 1})
	topic := create(t, e, "t", bounded(4, engine.Block))
	s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "a"})
	publish(t, topic, 0, 2)
	caughtUp(s)
	s.Close()
	<-s.Done()
	publish(t, topic, 0, 100)
	b := newBlocker()
	other := create(t, e, "other", engine.TopicConfig{})
	subscribe(t, other, b, engine.SubscribeConfig{})
	publish(t, other, 0, 1)
	<-b.in // there is no worker for what comes next
	var lost int64
	s = subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "a", MaxLag: 8, NonGating: true, OnGap: func(g engine.GapError) { lost += g.Lost() }})
	publish(t, topic, 0, 2)
	assert.NoError(t, s.Err())
	b.release()
	caughtUp(s)
	assert.NoError(t, s.Err())
	assert.Equal(t, int64(98), lost)
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

// TestSubscription_LagsByWhatIsNotHandled: records that a subscription is done with do not count, however many it was handed at once.
func TestSubscription_LagsByWhatIsNotHandled(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{Partitions: 1})
	in, out, last := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := subscribe(t, topic, handle(func(m *engine.Message) error {
		switch m.Offset {
		case 0, 7:
			in <- struct{}{}
			<-out
		case 14:
			close(last)
		}
		return nil
	}), engine.SubscribeConfig{MaxLag: 8})
	publish(t, topic, 0, 1)
	<-in
	publish(t, topic, 0, 7)
	out <- struct{}{}
	<-in // of these 7 it has handled 6
	publish(t, topic, 0, 7)
	out <- struct{}{}
	select {
	case <-last:
	case <-s.Done():
		t.Error("8 is not above 8:", s.Err())
	}
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
		s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "late", Start: engine.Earliest(), MaxLag: 1, NonGating: true})
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
