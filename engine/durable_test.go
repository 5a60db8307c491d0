package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

func TestDurable_ComesBack(t *testing.T) {
	d := filepath.Join(t.TempDir(), "a", "b")
	e := open(t, engine.Config{Dir: d})
	c := durable(engine.Always, 3)
	c.MaxRecordBytes, c.Retention.MaxAge, c.OnFull = 1234, time.Hour, engine.Reject
	top := create(t, e, "orders", c)
	_, err := e.CreateTopic("orders", c)
	require.ErrorIs(t, err, engine.ErrTopicExists)
	create(t, e, "memory", engine.TopicConfig{})
	send(t, top, 700) // several files
	id, conf := top.ID(), top.Config()
	_, err = engine.Open(engine.Config{Dir: d})
	require.ErrorIs(t, err, engine.ErrLocked)
	require.NoError(t, e.Close())

	for range 2 {
		e = open(t, engine.Config{Dir: d})
		assert.Equal(t, []string{"orders"}, e.Topics())
		top = topicOf(t, e, "orders")
		assert.Equal(t, id, top.ID())
		assert.Equal(t, conf, top.Config())
		holds(t, top, 700)
		require.NoError(t, e.Close())
	}
	e = open(t, engine.Config{Dir: d})
	top = topicOf(t, e, "orders")
	require.NoError(t, top.SetPartitions(4))
	send(t, top, 1)
	require.NoError(t, e.Close())
	e = open(t, engine.Config{Dir: d})
	top = topicOf(t, e, "orders")
	assert.Equal(t, 4, top.Partitions())
	p := part(t, top, 3)
	assert.Equal(t, engine.Offset(1), p.Durable())
	require.NoError(t, e.DeleteTopic("orders"))
	names, err := os.ReadDir(d)
	require.NoError(t, err)
	for _, n := range names {
		assert.False(t, n.IsDir(), "%s is left", n.Name())
	}
	create(t, e, "orders", c)
	require.NoError(t, e.Close())
	e = open(t, engine.Config{Dir: d})
	holds(t, topicOf(t, e, "orders"), 0)
}

func TestDurable_NeedsADir(t *testing.T) {
	e := open(t, engine.Config{})
	_, err := e.CreateTopic("x", engine.TopicConfig{Durable: &engine.Durable{}})
	require.ErrorIs(t, err, engine.ErrConfig)
	for _, c := range []engine.Config{{ReadOnly: true}, {Salvage: true}, {PositionsEvery: -1}} {
		_, err := engine.Open(c)
		require.ErrorIs(t, err, engine.ErrConfig)
	}
}

func TestDurable_Partitioners(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	for name, p := range map[string]engine.Partitioner{
		"key": engine.ByKey(), "robin": engine.RoundRobin(), "explicit": engine.Explicit(),
		"own": engine.PartitionerFunc(func(*engine.Record, int) int { return 1 }),
	} {
		create(t, e, name, engine.TopicConfig{Partitions: 2, Partitioner: p, Durable: &engine.Durable{FileBytes: 4 << 10}})
	}
	require.NoError(t, e.Close())
	e = on(t, m, engine.Config{})
	_, err := topicOf(t, e, "own").Publish(background, engine.Record{})
	require.ErrorIs(t, err, engine.ErrPartitioner)
	require.NoError(t, e.Close())
	e = on(t, m, engine.Config{Partitioners: map[string]engine.Partitioner{
		"own": engine.PartitionerFunc(func(*engine.Record, int) int { return 0 })}})
	at, err := topicOf(t, e, "own").Publish(background, engine.Record{})
	require.NoError(t, err)
	assert.Equal(t, 0, at.Partition)
	assert.IsType(t, engine.ByKey(), topicOf(t, e, "key").Config().Partitioner)
	assert.IsType(t, engine.RoundRobin(), topicOf(t, e, "robin").Config().Partitioner)
	assert.IsType(t, engine.Explicit(), topicOf(t, e, "explicit").Config().Partitioner)
}

// TestBUG082_EveryWayInIsSynced publishes in every way there is, and then the power goes.
func TestBUG082_EveryWayInIsSynced(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	r := engine.Record{Value: []byte("v")}
	ways := map[string]func(top *engine.Topic, p *engine.Partition) error{
		"publish": func(top *engine.Topic, _ *engine.Partition) error {
			_, err := top.Publish(background, r)
			return err
		},
		"cancellable":  func(top *engine.Topic, _ *engine.Partition) error { _, err := top.Publish(ctx, r); return err },
		"batch":        func(top *engine.Topic, _ *engine.Partition) error { return top.PublishBatch(ctx, []engine.Record{r}) },
		"batch of two": func(_ *engine.Topic, p *engine.Partition) error { return p.PublishBatch(ctx, []engine.Record{r, r}) },
		"batch without a ctx": func(_ *engine.Topic, p *engine.Partition) error {
			return p.PublishBatch(background, []engine.Record{r, r, r})
		},
		"appender publish": func(_ *engine.Topic, p *engine.Partition) error {
			a, err := p.Appender(ctx)
			if err == nil {
				if _, err = a.Publish(ctx, r); err == nil {
					_, err = a.Publish(ctx, r)
				}
			}
			return err
		},
		"large": func(_ *engine.Topic, p *engine.Partition) error {
			_, err := p.Publish(ctx, engine.Record{Value: make([]byte, 100_000)})
			return err
		},
		"appender close": func(_ *engine.Topic, p *engine.Partition) error { return appended(ctx, p, r, (*engine.Appender).Close) },
		"appender flush": func(_ *engine.Topic, p *engine.Partition) error { return appended(ctx, p, r, (*engine.Appender).Flush) },
		"try and flush": func(top *engine.Topic, _ *engine.Partition) error {
			if err := top.TryPublish(r); err != nil {
				return err
			}
			return top.Flush(ctx)
		},
		"async": func(top *engine.Topic, _ *engine.Partition) error {
			done := make(chan error, 1)
			if err := top.PublishAsync(ctx, r, func(_ engine.Published, err error) { done <- err }); err != nil {
				return err
			}
			return <-done
		},
	}
	for _, s := range []engine.Sync{engine.Always, engine.Interval(time.Hour), engine.Never} {
		for name, way := range ways {
			t.Run(fmt.Sprint(s, "/", name), func(t *testing.T) {
				m := vfs.NewMem()
				e := on(t, m, engine.Config{})
				top := create(t, e, "t", durable(s, 1))
				p := part(t, top, 0)
				require.NoError(t, way(top, p))
				n := p.Next()
				require.Positive(t, n)
				if s != engine.Always {
					if !strings.Contains(name, "flush") || strings.Contains(name, "appender") {
						assert.Zero(t, p.Durable())
					}
					require.NoError(t, top.Flush(ctx))
				}
				assert.Equal(t, n, p.Durable())
				q, err := topicOf(t, on(t, lost(m), engine.Config{}), "t").Partition(0)
				require.NoError(t, err)
				assert.Equal(t, n, q.Next())
			})
		}
	}
}

func appended(ctx context.Context, p *engine.Partition, r engine.Record, end func(*engine.Appender) error) error {
	a, err := p.Appender(ctx)
	if err != nil {
		return err
	}
	if _, err := a.Append(ctx, r); err != nil {
		return err
	}
	return end(a)
}

// TestDurable_ClosedIsSafe: Close makes all durable, whatever the policy.
func TestDurable_ClosedIsSafe(t *testing.T) {
	for _, s := range []engine.Sync{engine.Always, engine.Interval(time.Hour), engine.Never} {
		m := vfs.NewMem()
		e := on(t, m, engine.Config{})
		top := create(t, e, "t", durable(s, 2))
		send(t, top, 20)
		require.NoError(t, e.Close())
		holds(t, topicOf(t, on(t, lost(m), engine.Config{}), "t"), 20)
	}
}

// TestBUG085_OffsetsGoOn: a topic from which everything has gone does not begin with 0 again.
func TestBUG085_OffsetsGoOn(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top := create(t, e, "t", durable(engine.Always, 1))
	for i := range 3 {
		send(t, top, 300)
		p := part(t, top, 0)
		next := p.Next()
		require.Equal(t, engine.Offset(300*(i+1)), next)
		require.NoError(t, p.TruncateBefore(background, next))
		if i > 0 {
			require.NoError(t, e.Close())
		} else {
			m = lost(m)
		}
		e = on(t, m, engine.Config{})
		top = topicOf(t, e, "t")
		assert.Equal(t, next, part(t, top, 0).First())
		assert.Equal(t, next, part(t, top, 0).Next())
	}
}

// TestDurable_HandlersPublish: as many handlers as there are workers wait for files at the same time.
func TestDurable_HandlersPublish(t *testing.T) {
	e := on(t, vfs.NewMem(), engine.Config{Workers: 2})
	in := create(t, e, "in", durable(engine.Always, 4))
	out := create(t, e, "out", durable(engine.Always, 1))
	send(t, in, 50)
	_, err := in.Subscribe(engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error {
		_, err := out.Publish(ctx, engine.Record{Key: []byte("k"), Value: m.Value})
		assert.NoError(t, err)
		return err
	}), engine.SubscribeConfig{Start: engine.Earliest(), MaxConcurrency: 2})
	require.NoError(t, err)
	require.NoError(t, e.Drain(background))
	assert.Equal(t, engine.Offset(200), part(t, out, 0).Durable())
}
