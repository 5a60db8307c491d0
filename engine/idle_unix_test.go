//go:build unix

package engine_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// processor returns how much processor time the process has used.
func processor(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// idle checks that there is a window of doing nothing in which the process uses less than so much of a processor. There are many
// tries: others may be at work just now, such as the collector, or tests before this one.
func idle(t testing.TB, window, most time.Duration) {
	t.Helper()
	least := time.Hour
	for range 200 {
		before := processor(t)
		time.Sleep(window) // the passing of time is what is tested
		least = min(least, processor(t)-before)
		if least < most {
			return
		}
	}
	t.Errorf("%v of processor time in %v of doing nothing", least, window)
}

// TestBUG026: whoever waits, for whatever, costs next to nothing. The limit is for loops that run hot, not a measurement.
func TestBUG026_WaitingCostsNothing(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{MaxMemory: 4 << 20})
	var waiting int
	results := make(chan error, 1000)
	wait := func(f func() error) {
		waiting++
		go func() { results <- f() }()
	}
	for i := range 100 { // readers that have caught up
		topic := create(t, e, "idle-"+string(rune('a'+i/26))+string(rune('a'+i%26)), engine.TopicConfig{})
		p := part(t, topic, 0)
		for range 3 {
			r := newReader(t, p, engine.ReaderConfig{Gating: true})
			wait(func() error { _, err := r.Next(background); return err })
		}
		wait(func() error {
			for _, err := range p.Follow(background, 0) {
				return err
			}
			return nil
		})
	}
	full := func(name string, c engine.TopicConfig) (*engine.Topic, *engine.Partition) { // held by a reader that does not read
		topic := create(t, e, name, c)
		p := part(t, topic, 0)
		newReader(t, p, engine.ReaderConfig{Gating: true})
		numbers(t, p, 4)
		return topic, p
	}
	topic, p := full("full", engine.TopicConfig{Retention: engine.Retention{MaxRecords: 4}, HandoverSlots: 8})
	for range 4 {
		topic := topic // the variable is used again below
		wait(func() error { _, err := topic.Publish(background, value("x")); return err })
		wait(func() error { return topic.PublishBatch(background, make([]engine.Record, 2)) })
		wait(func() error { return topic.PublishAsync(background, engine.Record{Value: make([]byte, 150)}, nil) })
		wait(func() error { return topic.Flush(background) })
	}
	await(func() bool { return p.Stats().Full })
	_, p = full("appender", engine.TopicConfig{Retention: engine.Retention{MaxRecords: 4}})
	a, err := p.Appender(background)
	require.NoError(t, err)
	first := a
	wait(func() error { _, err := first.Append(background, value("x")); return err })
	await(func() bool { return p.Stats().Full })
	full("expired", engine.TopicConfig{Retention: engine.Retention{MaxAge: time.Millisecond}}) // its gate holds what has expired
	topic, p = full("memory", engine.TopicConfig{})                                            // no memory is left, and two batches want much of it
	ended, cancel := context.WithCancel(background)
	cancel()
	a, err = p.Appender(background)
	require.NoError(t, err)
	for err == nil {
		_, err = a.Append(ended, engine.Record{Value: make([]byte, 1000)})
	}
	require.NoError(t, a.Close())
	for range 2 {
		topic := topic
		wait(func() error {
			batch := make([]engine.Record, 100)
			for i := range batch {
				batch[i].Value = make([]byte, 1000)
			}
			return topic.PublishBatch(background, batch)
		})
	}
	await(func() bool { return p.Stats().Blocked == 2 })

	idle(t, 100*time.Millisecond, 20*time.Millisecond)
	require.NoError(t, e.Close())
	for range waiting {
		if err := <-results; err != nil {
			require.ErrorIs(t, err, engine.ErrClosed)
		}
	}
}
