package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestSubscribe_Manual settles records after the handler has returned, in any order: the position is the end of the gap-free
// prefix, a record that is nacked comes again, and one that is settled cannot be settled twice.
func TestSubscribe_Manual(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	tokens := make(chan engine.Token, 10)
	var b book
	s := subscribe(t, topic, handle(func(m *engine.Message) error {
		b.add(m)
		tokens <- m.Token()
		return nil
	}), engine.SubscribeConfig{Mode: engine.Manual})
	publish(t, topic, 0, 4)
	var held []engine.Token
	for range 4 {
		held = append(held, <-tokens)
	}
	require.NoError(t, held[1].Ack())
	require.NoError(t, held[3].Ack())
	assert.EqualValues(t, 0, position(t, s, 0))
	require.NoError(t, held[0].Ack())
	assert.EqualValues(t, 2, position(t, s, 0))
	assert.EqualValues(t, 2, s.Lag())
	require.ErrorIs(t, held[0].Ack(), engine.ErrFenced)
	require.ErrorIs(t, held[0].Nack(0), engine.ErrFenced)

	require.NoError(t, held[2].Nack(0))
	again := <-tokens
	require.ErrorIs(t, held[2].Ack(), engine.ErrFenced, "the first delivery's token")
	require.NoError(t, again.Extend())
	require.NoError(t, again.Ack())
	assert.EqualValues(t, 4, position(t, s, 0))
	assert.Equal(t, []delivered{{0, 0, 1, "0/0"}, {0, 1, 1, "0/1"}, {0, 2, 1, "0/2"}, {0, 3, 1, "0/3"}, {0, 2, 2, "0/2"}}, b.entries())

	publish(t, topic, 0, 3)
	for range 3 {
		again = <-tokens
	}
	require.NoError(t, again.AckThrough())
	assert.EqualValues(t, 7, position(t, s, 0))
	require.NoError(t, e.Drain(background))
	s.Close()
	<-s.Done()
	require.Error(t, again.Ack())
}

// TestSubscribe_ManualSeek: tokens of before a seek count no more.
func TestSubscribe_ManualSeek(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	tokens := make(chan engine.Token, 10)
	s := subscribe(t, topic, handle(func(m *engine.Message) error { tokens <- m.Token(); return nil }),
		engine.SubscribeConfig{Mode: engine.Manual})
	publish(t, topic, 0, 1)
	before := <-tokens
	require.NoError(t, s.Seek(0, engine.Shift(-5)))
	after := <-tokens
	require.ErrorIs(t, before.Ack(), engine.ErrFenced)
	assert.EqualValues(t, 0, position(t, s, 0))
	require.NoError(t, after.Ack())
	assert.EqualValues(t, 1, position(t, s, 0))
	require.NoError(t, s.Seek(0, engine.Shift(-1)))
	require.NoError(t, (<-tokens).Ack())
}

// TestSubscribe_DeadLetter: what fails for good is in the dead-letter topic before the position passes it, in every mode in
// which it can.
func TestSubscribe_DeadLetter(t *testing.T) {
	for name, c := range map[string]engine.SubscribeConfig{
		"in order": {},
		"by key":   {ByKey: engine.Parallelism{Handlers: 2}},
		"manual":   {Mode: engine.Manual},
	} {
		t.Run(name, func(t *testing.T) {
			watchdog(t)
			e := open(t, engine.Config{})
			topic := create(t, e, "t", engine.TopicConfig{})
			dead := create(t, e, "dead", engine.TopicConfig{})
			var b book
			var letters []engine.Message
			subscribe(t, dead, handle(func(m *engine.Message) error {
				m.Record = m.Record.Clone()
				letters = append(letters, *m)
				return nil
			}), engine.SubscribeConfig{})
			c.ID, c.DeadLetter, c.MaxDeliveries, c.Backoff = "sub", "dead", 3, []time.Duration{time.Millisecond}
			s := subscribe(t, topic, handle(func(m *engine.Message) error {
				b.add(m)
				if m.Offset == 1 {
					return errPoison
				}
				return done(m, c.Mode)
			}), c)
			for i := range 3 {
				_, err := topic.Publish(background, engine.Record{
					Key: fmt.Append(nil, i), Value: fmt.Append(nil, "v", i), Headers: engine.MakeHeaders(engine.Header{Name: "own", Value: []byte("x")}),
				})
				require.NoError(t, err)
			}
			require.NoError(t, e.Drain(background))
			assert.EqualValues(t, 3, position(t, s, 0))
			require.Len(t, letters, 1)
			m := letters[0]
			assert.Equal(t, "1", string(m.Key))
			assert.Equal(t, "v1", string(m.Value))
			for name, want := range map[string]string{
				"own": "x", engine.HeaderTopic: "t", engine.HeaderPartition: "0", engine.HeaderOffset: "1",
				engine.HeaderAttempts: "3", engine.HeaderError: "poison", engine.HeaderConsumer: "sub",
			} {
				got, ok := m.Headers.Get(name)
				assert.True(t, ok, name)
				assert.Equal(t, want, string(got), name)
			}
			assert.EqualValues(t, 1, s.Stats().Lanes[0].Buried)
			assert.Zero(t, s.Stats().Lanes[0].Dropped)
		})
	}
}

// TestSubscribe_DeadLetterFull: as long as there is no room for the dead letter the record stays due, and nothing is lost.
func TestSubscribe_DeadLetterFull(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	dead := create(t, e, "dead", bounded(1, engine.Reject))
	read, err := part(t, dead, 0).Reader(engine.ReaderConfig{Gating: true})
	require.NoError(t, err)
	publish(t, dead, 0, 1)
	s := subscribe(t, topic, handle(func(m *engine.Message) error { return errPoison }), engine.SubscribeConfig{DeadLetter: "dead", MaxDeliveries: 1, Backoff: []time.Duration{time.Millisecond}})
	publish(t, topic, 0, 1)
	await(func() bool { st := s.Stats().Lanes[0]; return st.Failed == 1 })
	require.EqualValues(t, 0, position(t, s, 0))
	_, err = read.Next(background)
	require.NoError(t, err)
	m, err := read.Next(soonCancelled()) // says that it is done with the first; the letter may be there by then
	await(func() bool { return position(t, s, 0) == 1 })
	if err != nil {
		m, err = read.Next(background)
	}
	require.NoError(t, err)
	assert.Equal(t, "0/0", string(m.Value))
}

func soonCancelled() context.Context {
	ctx, cancel := context.WithCancel(background)
	cancel()
	return ctx
}

func TestSubscribe_DeadLetterConfig(t *testing.T) {
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	_, err := topic.Subscribe(ignore, engine.SubscribeConfig{DeadLetter: "none"})
	require.ErrorIs(t, err, engine.ErrUnknownTopic)
	_, err = topic.Subscribe(ignore, engine.SubscribeConfig{DeadLetter: "t"})
	require.ErrorIs(t, err, engine.ErrConfig)
	_, err = topic.Subscribe(ignore, engine.SubscribeConfig{Mode: engine.Manual, ByKey: engine.Parallelism{Handlers: 2}})
	require.ErrorIs(t, err, engine.ErrConfig)
	_, err = topic.Subscribe(batchFunc(nil), engine.SubscribeConfig{ByKey: engine.Parallelism{Handlers: 2}})
	require.ErrorIs(t, err, engine.ErrConfig)
	_, err = topic.Subscribe(ignore, engine.SubscribeConfig{Start: engine.Shift(1)})
	require.ErrorIs(t, err, engine.ErrConfig)
}

// TestSubscribe_ByKey: records of different keys are worked on at the same time, those of one key in order, and the position
// waits for the first one that is not processed.
func TestSubscribe_ByKey(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	in, out := make(chan string), make(chan struct{})
	var mu sync.Mutex
	got := map[string][]engine.Offset{}
	s := subscribe(t, topic, handle(func(m *engine.Message) error {
		if string(m.Key) == "slow" && m.Offset < 2 {
			in <- "in"
			<-out
		}
		mu.Lock()
		defer mu.Unlock()
		got[string(m.Key)] = append(got[string(m.Key)], m.Offset)
		return nil
	}), engine.SubscribeConfig{ByKey: engine.Parallelism{Handlers: 2}})
	for i := range 10 {
		key := "fast"
		if i%2 == 0 {
			key = "slow"
		}
		_, err := topic.Publish(background, engine.Record{Key: []byte(key)})
		require.NoError(t, err)
	}
	<-in
	await(func() bool { mu.Lock(); defer mu.Unlock(); return len(got["fast"]) == 5 })
	assert.EqualValues(t, 0, position(t, s, 0))
	close(out)
	require.NoError(t, e.Drain(background))
	assert.EqualValues(t, 10, position(t, s, 0))
	assert.Equal(t, []engine.Offset{0, 2, 4, 6, 8}, got["slow"])
	assert.Equal(t, []engine.Offset{1, 3, 5, 7, 9}, got["fast"])
}

// TestSubscribe_ManualRejected: a record that is rejected does not come again.
func TestSubscribe_ManualRejected(t *testing.T) {
	for _, keep := range []bool{false, true} {
		watchdog(t)
		dropped := make(chan error, 1)
		e := open(t, engine.Config{Hooks: engine.Hooks{Dropped: func(_ context.Context, _ string, _ *engine.Message, err error) { dropped <- err }}})
		topic := create(t, e, "t", engine.TopicConfig{})
		dead := create(t, e, "dead", engine.TopicConfig{})
		s := subscribe(t, topic, handle(func(m *engine.Message) error { return m.Reject(errPoison) }),
			engine.SubscribeConfig{Mode: engine.Manual, DeadLetter: "dead", DeadLetterRejected: keep})
		publish(t, topic, 0, 1)
		await(func() bool { return position(t, s, 0) == 1 })
		if keep {
			assert.EqualValues(t, 1, part(t, dead, 0).Next())
			continue
		}
		err := <-dropped
		assert.True(t, errors.Is(err, engine.ErrRejected) && errors.Is(err, errPoison), "%v", err)
		assert.Zero(t, part(t, dead, 0).Next())
	}
}
