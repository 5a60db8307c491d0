package engine_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// waiters starts one goroutine for each call of a topic that can wait, on partitions of it where it has to, and returns how
// each of them ended. The topic is bounded(2, Block) with four partitions: 0 is full and held, 1 has an Appender that waits
// for room, 2 and 3 are empty.
func waiters(t *testing.T, topic *engine.Topic) map[string]<-chan error {
	t.Helper()
	paused := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "paused"})
	require.NoError(t, paused.Pause())
	publish(t, topic, 0, 2)
	publish(t, topic, 1, 2)
	p0, p1, p2 := part(t, topic, 0), part(t, topic, 1), part(t, topic, 2)
	x, err := p1.Appender(background)
	require.NoError(t, err)
	r, err := p2.Reader(engine.ReaderConfig{})
	require.NoError(t, err)

	all := map[string]<-chan error{}
	run := func(name string, f func() error) {
		done := make(chan error, 1)
		all[name] = done
		go func() { done <- f() }()
	}
	run("Publish", func() error { _, err := p0.Publish(background, value("x")); return err })
	run("PublishBatch", func() error { return p0.PublishBatch(background, make([]engine.Record, 2)) })
	run("PublishAsync", func() error {
		done := make(chan error, 1)
		if err := p0.PublishAsync(background, value("x"), func(_ engine.Published, err error) { done <- err }); err != nil {
			return err
		}
		return <-done
	})
	run("Append", func() error { _, err := x.Append(background, value("x")); return err })
	run("Next", func() error { _, err := r.Next(background); return err })
	run("NextBatch", func() error {
		r, err := p2.Reader(engine.ReaderConfig{Gating: true, Wait: engine.WaitYield})
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = r.NextBatch(background, make([]engine.Record, 2))
		return err
	})
	run("NextValues", func() error {
		r, err := p2.Reader(engine.ReaderConfig{Wait: engine.WaitSpin})
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = r.NextValues(background, make([][]byte, 2))
		return err
	})
	run("NextRun", func() error {
		r, err := p2.Reader(engine.ReaderConfig{Wait: engine.WaitSpin})
		if err != nil {
			return err
		}
		defer r.Close()
		_, _, err = r.NextRun(background, 2)
		return err
	})
	run("Follow", func() (last error) {
		for _, err := range p2.Follow(background, 0) {
			last = err
		}
		return last
	})
	run("Done", func() error { <-paused.Done(); return paused.Err() })
	await(func() bool { return p0.Stats().Blocked == 2 && p1.Stats().Full })
	flushed := make(chan error, 1)
	go func() { flushed <- p0.Flush(background) }() // it has something to wait for now
	await(func() bool { return p0.Stats().Blocked == 3 })
	t.Cleanup(func() { assert.NoError(t, <-flushed, "what it waited for has failed, which is a result") })
	t.Cleanup(r.Close)
	return all
}

// TestSEED09_CloseWakesEverybody: all calls that wait end with ErrClosed, and Close returns.
func TestSEED09_CloseWakesEverybody(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	c := bounded(2, engine.Block)
	c.Partitions = 4
	all := waiters(t, create(t, e, "t", c))
	stuck := newBlocker()
	other := create(t, e, "other", engine.TopicConfig{})
	subscribe(t, other, stuck, engine.SubscribeConfig{})
	publish(t, other, 0, 1)
	<-stuck.in
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	for name, done := range all {
		assert.ErrorIs(t, <-done, engine.ErrClosed, name)
	}
	stuck.release()
	assert.NoError(t, <-closed)
}

// TestSEED09_DeleteTopicWakesEverybody: likewise with ErrTopicDeleted, and DeleteTopic waits for no handler. The name is free at once,
// and nothing of the old topic is seen in the new one, or the other way round.
func TestSEED09_DeleteTopicWakesEverybody(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	c := bounded(2, engine.Block)
	c.Partitions = 4
	topic := create(t, e, "t", c)
	stuck := newBlocker()
	hung := subscribe(t, topic, stuck, engine.SubscribeConfig{ID: "hung"})
	publish(t, topic, 3, 1)
	<-stuck.in
	all := waiters(t, topic)
	require.NoError(t, e.DeleteTopic("t"))
	assert.ErrorIs(t, e.DeleteTopic("t"), engine.ErrUnknownTopic)
	again := create(t, e, "t", engine.TopicConfig{})
	assert.NotEqual(t, topic.ID(), again.ID())
	for name, done := range all {
		assert.ErrorIs(t, <-done, engine.ErrTopicDeleted, name)
	}

	_, err := topic.Publish(background, value("x"))
	assert.ErrorIs(t, err, engine.ErrTopicDeleted)
	_, err = topic.Subscribe(ignore, engine.SubscribeConfig{})
	assert.ErrorIs(t, err, engine.ErrTopicDeleted)
	_, err = topic.Subscription("hung")
	assert.ErrorIs(t, err, engine.ErrTopicDeleted)
	assert.ErrorIs(t, topic.ForgetPositions("hung"), engine.ErrTopicDeleted)
	assert.ErrorIs(t, topic.TryPublish(value("x")), engine.ErrTopicDeleted)
	_, err = part(t, topic, 0).ReadAt(0, make([]engine.Record, 1))
	assert.ErrorIs(t, err, engine.ErrTopicDeleted)
	assert.ErrorIs(t, hung.Err(), engine.ErrTopicDeleted)
	assert.ErrorIs(t, hung.Seek(0, engine.Latest()), engine.ErrTopicDeleted)

	var got book
	s := subscribe(t, again, &got, engine.SubscribeConfig{ID: "hung"})
	publish(t, again, 0, 3)
	caughtUp(s)
	assert.Equal(t, upTo(0, 3), got.offsets(0))
	select {
	case <-hung.Done():
		t.Error("done, and a handler runs")
	default:
	}
	stuck.release()
	<-hung.Done()
}

// TestClose_AfterIt: every call says that it is closed, and none waits.
func TestClose_AfterIt(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	topic := create(t, e, "t", engine.TopicConfig{})
	publish(t, topic, 0, 3)
	s := subscribe(t, topic, ignore, engine.SubscribeConfig{ID: "s"})
	require.NoError(t, e.Close())
	p := part(t, topic, 0)
	for name, f := range map[string]func() error{
		"CreateTopic":     func() error { _, err := e.CreateTopic("u", engine.TopicConfig{}); return err },
		"Topic":           func() error { _, err := e.Topic("t"); return err },
		"DeleteTopic":     func() error { return e.DeleteTopic("t") },
		"Describe":        func() error { _, err := e.Describe("t"); return err },
		"Drain":           func() error { return e.Drain(background) },
		"Publish":         func() error { _, err := topic.Publish(background, value("x")); return err },
		"TryPublish":      func() error { return topic.TryPublish(value("x")) },
		"PublishAsync":    func() error { return topic.PublishAsync(background, value("x"), nil) },
		"PublishBatch":    func() error { return topic.PublishBatch(background, make([]engine.Record, 1)) },
		"Subscribe":       func() error { _, err := topic.Subscribe(ignore, engine.SubscribeConfig{}); return err },
		"Subscription":    func() error { _, err := topic.Subscription("s"); return err },
		"ForgetPositions": func() error { return topic.ForgetPositions("s") },
		"Seek":            func() error { return s.Seek(0, engine.Earliest()) },
		"Err":             s.Err,
		"Reader":          func() error { _, err := p.Reader(engine.ReaderConfig{}); return err },
		"Appender":        func() error { _, err := p.Appender(background); return err },
		"ReadAt":          func() error { _, err := p.ReadAt(0, make([]engine.Record, 1)); return err },
		"TruncateBefore":  func() error { return p.TruncateBefore(background, 1) },
		"Follow": func() (last error) {
			for _, err := range p.Follow(background, 0) {
				last = err
			}
			return last
		},
	} {
		assert.ErrorIs(t, f(), engine.ErrClosed, name)
	}
	<-s.Done()
	s.Close()
	assert.NoError(t, s.Pause())
	assert.NoError(t, s.Resume())
	assert.Zero(t, s.Lag()*0)
	assert.NoError(t, topic.Flush(background), "nothing is under way")
	assert.Empty(t, e.Topics())
	assert.Empty(t, e.Stats().Topics)
	assert.Zero(t, e.Stats().MemoryUsed)
	for range p.Records(0) {
		t.Error("a record")
	}
	assert.Equal(t, "t", topic.Name())
	assert.NoError(t, e.Close())
}

// TestSubscriptionEnded_IsToldOnce for each subscription, whatever ends it, also if the hook panics or ends its goroutine.
func TestSubscriptionEnded_IsToldOnce(t *testing.T) {
	watchdog(t)
	for _, how := range []func(){func() {}, func() { panic("hook") }, runtime.Goexit} {
		var mu sync.Mutex
		told := map[string]int{}
		e := open(t, engine.Config{Hooks: engine.Hooks{SubscriptionEnded: func(topic, sub string, cause error) {
			mu.Lock()
			told[topic+"/"+sub+": "+cause.Error()]++
			mu.Unlock()
			how()
		}}})
		own := func(f func()) { // Goexit ends the goroutine that calls the hook
			done := make(chan struct{})
			go func() { defer close(done); f() }()
			<-done
		}
		a, b, c := create(t, e, "a", engine.TopicConfig{}), create(t, e, "b", engine.TopicConfig{Partitions: 3}), create(t, e, "c", engine.TopicConfig{})
		closed := subscribe(t, a, ignore, engine.SubscribeConfig{ID: "closed"})
		own(closed.Close)
		own(closed.Close)
		lane := subscribe(t, b, ignore, engine.SubscribeConfig{ID: "lane", Gap: engine.FailOnGap})
		assert.NoError(t, lane.Pause())
		publish(t, b, 1, 10)
		assert.NoError(t, part(t, b, 1).TruncateBefore(background, 5))
		assert.NoError(t, lane.Resume())
		<-lane.Done()
		subscribe(t, c, ignore, engine.SubscribeConfig{ID: "deleted"})
		own(func() { assert.NoError(t, e.DeleteTopic("c")) })
		for i := range 5 {
			subscribe(t, b, ignore, engine.SubscribeConfig{ID: fmt.Sprint(i)})
		}
		own(func() { assert.NoError(t, e.Close()) })
		require.NoError(t, e.Close()) // the first one may have ended in a hook
		want := map[string]int{
			"a/closed: " + engine.ErrSubscriptionClosed.Error(): 1,
			"b/lane: " + lane.Err().Error():                     1,
			"c/deleted: " + engine.ErrTopicDeleted.Error():      1,
		}
		for i := range 5 {
			want[fmt.Sprintf("b/%d: %s", i, engine.ErrClosed)] = 1
		}
		assert.Equal(t, want, told)
	}
}

// TestClose_CallbacksRun: each publish that was accepted has its result told exactly once, by Close and by DeleteTopic.
func TestClose_CallbacksRun(t *testing.T) {
	watchdog(t)
	for range rounds(100) {
		e := open(t, engine.Config{})
		var accepted, called atomic.Int64
		var publishers sync.WaitGroup
		for i := range 4 {
			topic := create(t, e, fmt.Sprint(i), engine.TopicConfig{HandoverSlots: 4})
			publishers.Go(func() {
				for {
					if err := topic.PublishAsync(background, value("x"), func(engine.Published, error) { called.Add(1) }); err != nil {
						return
					}
					accepted.Add(1)
					runtime.Gosched() // with one processor others would wait for their turn
				}
			})
		}
		await(func() bool { return accepted.Load() > 100 })
		require.NoError(t, e.DeleteTopic("0"))
		require.NoError(t, e.Close())
		n := called.Load()
		publishers.Wait()
		assert.Equal(t, accepted.Load(), called.Load())
		assert.Equal(t, n, called.Load(), "after Close")
	}
}
