package engine_test

import (
	"fmt"
	"math"
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
				if try.start == (engine.Start{}) {
					require.ErrorIs(t, s.Seek(i, try.start), engine.ErrConfig, "it says nothing")
					continue
				}
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
		{Mode: 3}, {Gap: 2}, {MaxDeliveries: -2}, {MaxLag: -1}, {MaxConcurrency: -1}, {BatchSize: -1}, {BatchSize: 1<<16 + 1},
		{Backoff: []time.Duration{time.Second, -1}}, {Mode: engine.AtMostOnce, ByKey: engine.Parallelism{Handlers: 2}},
		{ByKey: engine.Parallelism{Handlers: -1}}, {Settling: engine.Settling{MaxInFlight: -1}},
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
