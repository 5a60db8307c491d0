package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// TestDurable_AgeGoesOn: what is too old when the topic is opened goes, and what is not goes when its time has come.
func TestDurable_AgeGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := vfs.NewMem()
		e, err := engine.Open(engine.Config{Dir: dir}.WithFS(m))
		require.NoError(t, err)
		c := durable(engine.Always, 1)
		c.Retention.MaxAge = time.Hour
		top := create(t, e, "t", c)
		send(t, top, 1)
		time.Sleep(40 * time.Minute)
		send(t, top, 1)
		require.NoError(t, e.Close())
		time.Sleep(30 * time.Minute)
		e, err = engine.Open(engine.Config{Dir: dir}.WithFS(m))
		require.NoError(t, err)
		p := part(t, topicOf(t, e, "t"), 0)
		time.Sleep(time.Minute)
		assert.Equal(t, engine.Offset(1), p.First())
		time.Sleep(time.Hour)
		assert.Equal(t, engine.Offset(2), p.First())
		require.NoError(t, e.Close())
	})
}

// TestDurable_IntervalComes: under Interval a record is durable when that time has passed, and not before.
func TestDurable_IntervalComes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, err := engine.Open(engine.Config{Dir: dir}.WithFS(vfs.NewMem()))
		require.NoError(t, err)
		top := create(t, e, "t", durable(engine.Interval(time.Minute), 1))
		p := part(t, top, 0)
		for i := range engine.Offset(3) {
			send(t, top, 1)
			time.Sleep(59 * time.Second)
			assert.Equal(t, i, p.Durable())
			time.Sleep(2 * time.Second)
			assert.Equal(t, i+1, p.Durable())
		}
		require.NoError(t, e.Close())
	})
}

// TestDurable_IntervalBesideASync: what is written while a sync goes on is for the next one, which comes by itself.
func TestDurable_IntervalBesideASync(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var slow atomic.Bool
		f := vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op) *vfs.Fault {
			if slow.Load() && o.Kind == vfs.OpSync {
				time.Sleep(10 * time.Second) // virtual
			}
			return nil
		})
		e, err := engine.Open(engine.Config{Dir: dir}.WithFS(f))
		require.NoError(t, err)
		top := create(t, e, "t", durable(engine.Interval(time.Minute), 1))
		p := part(t, top, 0)
		slow.Store(true)
		send(t, top, 1)
		time.Sleep(65 * time.Second)
		send(t, top, 1) // does not wait
		time.Sleep(6 * time.Second)
		assert.Equal(t, engine.Offset(1), p.Durable())
		time.Sleep(71 * time.Second)
		assert.Equal(t, engine.Offset(2), p.Durable())
		slow.Store(false)
		require.NoError(t, e.Close())
	})
}

// TestDurable_SlowFiles: a publish that hangs is told of.
func TestDurable_SlowFiles(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var slow atomic.Bool
		f := vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op) *vfs.Fault {
			if slow.Load() && o.Kind == vfs.OpSync {
				time.Sleep(2500 * time.Millisecond) // virtual
			}
			return nil
		})
		var told []time.Duration
		e, err := engine.Open(engine.Config{Dir: dir, Hooks: engine.Hooks{FilesSlow: func(topic string, p int, d time.Duration) {
			told = append(told, d)
		}}}.WithFS(f))
		require.NoError(t, err)
		top := create(t, e, "t", durable(engine.Always, 1))
		time.Sleep(300 * time.Millisecond)
		slow.Store(true)
		send(t, top, 2)
		slow.Store(false)
		time.Sleep(2 * time.Second)
		assert.Zero(t, part(t, top, 0).DurableStats().Stalled)
		require.NoError(t, e.Close())
		require.Len(t, told, 2)
		for _, d := range told {
			assert.True(t, d >= time.Second && d < 2500*time.Millisecond, "%v", d)
		}
	})
}
