package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// dir is where durable engines of these tests are on a vfs.Mem.
const dir = "data"

// durable is a TopicConfig for small files.
func durable(s engine.Sync, n int) engine.TopicConfig {
	return engine.TopicConfig{Partitions: n, Partitioner: engine.Explicit(), Durable: &engine.Durable{Sync: s, FileBytes: 16 << 10}}
}

// on opens an engine on a file system that is not the system's; it need not close well.
func on(t testing.TB, fsys vfs.FS, c engine.Config) *engine.Engine {
	t.Helper()
	c.Dir = dir
	e, err := engine.Open(c.WithFS(fsys))
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// lost returns what a power cut leaves of which nothing was written that was not synced.
func lost(m *vfs.Mem) *vfs.Mem { return m.Crash(func(int) bool { return false }) }

// send publishes n records to each partition, whose values are their numbers.
func send(t testing.TB, top *engine.Topic, n int) {
	t.Helper()
	for p := range top.Partitions() {
		part, err := top.Partition(p)
		require.NoError(t, err)
		for range n {
			off := part.Next()
			got, err := part.Publish(context.Background(), engine.Record{Key: []byte("k"), Value: fmt.Append(nil, off)})
			require.NoError(t, err)
			require.Equal(t, off, got.Offset)
		}
	}
}

// holds checks that each partition has the records [0, n) that send published.
func holds(t testing.TB, top *engine.Topic, n int) {
	t.Helper()
	for p := range top.Partitions() {
		part, err := top.Partition(p)
		require.NoError(t, err)
		require.Equal(t, engine.Offset(n), part.Next(), "partition %d", p)
		at := engine.Offset(0)
		for off, r := range part.Records(0) {
			require.Equal(t, at, off)
			require.Equal(t, fmt.Sprint(off), string(r.Value))
			require.Equal(t, "k", string(r.Key))
			at++
		}
		require.Equal(t, engine.Offset(n), at)
	}
}

func topicOf(t testing.TB, e *engine.Engine, name string) *engine.Topic {
	t.Helper()
	top, err := e.Topic(name)
	require.NoError(t, err)
	return top
}

func TestDurable_ComesBack(t *testing.T) {
	d := filepath.Join(t.TempDir(), "a", "b")
	e := open(t, engine.Config{Dir: d})
	c := durable(engine.Always, 3)
	c.MaxRecordBytes, c.Retention.MaxAge, c.OnFull = 1234, time.Hour, engine.Reject
	top, err := e.CreateTopic("orders", c)
	require.NoError(t, err)
	_, err = e.CreateTopic("orders", c)
	require.ErrorIs(t, err, engine.ErrTopicExists)
	_, err = e.CreateTopic("memory", engine.TopicConfig{})
	require.NoError(t, err)
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
	p, err := top.Partition(3)
	require.NoError(t, err)
	assert.Equal(t, engine.Offset(1), p.Durable())
	require.NoError(t, e.DeleteTopic("orders"))
	names, err := os.ReadDir(d)
	require.NoError(t, err)
	for _, n := range names {
		assert.False(t, n.IsDir(), "%s is left", n.Name())
	}
	_, err = e.CreateTopic("orders", c)
	require.NoError(t, err)
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
		_, err := e.CreateTopic(name, engine.TopicConfig{Partitions: 2, Partitioner: p, Durable: &engine.Durable{FileBytes: 4 << 10}})
		require.NoError(t, err)
	}
	require.NoError(t, e.Close())
	e = on(t, m, engine.Config{})
	_, err := topicOf(t, e, "own").Publish(context.Background(), engine.Record{})
	require.ErrorIs(t, err, engine.ErrPartitioner)
	require.NoError(t, e.Close())
	e = on(t, m, engine.Config{Partitioners: map[string]engine.Partitioner{
		"own": engine.PartitionerFunc(func(*engine.Record, int) int { return 0 })}})
	at, err := topicOf(t, e, "own").Publish(context.Background(), engine.Record{})
	require.NoError(t, err)
	assert.Equal(t, 0, at.Partition)
	assert.IsType(t, engine.ByKey(), topicOf(t, e, "key").Config().Partitioner)
	assert.IsType(t, engine.RoundRobin(), topicOf(t, e, "robin").Config().Partitioner)
	assert.IsType(t, engine.Explicit(), topicOf(t, e, "explicit").Config().Partitioner)
}

// TestBUG082_EveryWayInIsSynced publishes in every way there is, and then the power goes.
func TestBUG082_EveryWayInIsSynced(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := engine.Record{Value: []byte("v")}
	ways := map[string]func(top *engine.Topic, p *engine.Partition) error{
		"publish": func(top *engine.Topic, _ *engine.Partition) error {
			_, err := top.Publish(context.Background(), r)
			return err
		},
		"cancellable":  func(top *engine.Topic, _ *engine.Partition) error { _, err := top.Publish(ctx, r); return err },
		"batch":        func(top *engine.Topic, _ *engine.Partition) error { return top.PublishBatch(ctx, []engine.Record{r}) },
		"batch of two": func(_ *engine.Topic, p *engine.Partition) error { return p.PublishBatch(ctx, []engine.Record{r, r}) },
		"batch without a ctx": func(_ *engine.Topic, p *engine.Partition) error {
			return p.PublishBatch(context.Background(), []engine.Record{r, r, r})
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
				top, err := e.CreateTopic("t", durable(s, 1))
				require.NoError(t, err)
				p, err := top.Partition(0)
				require.NoError(t, err)
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
		top, err := e.CreateTopic("t", durable(s, 2))
		require.NoError(t, err)
		send(t, top, 20)
		require.NoError(t, e.Close())
		holds(t, topicOf(t, on(t, lost(m), engine.Config{}), "t"), 20)
	}
}

func TestDurable_GroupsComeBack(t *testing.T) {
	for _, kind := range []engine.GroupKind{engine.Assigned, engine.Shared} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, crash), func(t *testing.T) {
				m := vfs.NewMem()
				e := on(t, m, engine.Config{PositionsEvery: time.Hour})
				top, err := e.CreateTopic("t", durable(engine.Always, 2))
				require.NoError(t, err)
				g, err := e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Kind: kind, Start: engine.Earliest(), Mode: engine.Manual})
				require.NoError(t, err)
				conf := g.Config()
				send(t, top, 10)
				c, err := g.Consumer(engine.MemberConfig{})
				require.NoError(t, err)
				got := 0
				for got < 20 {
					ms, err := c.Poll(context.Background(), 20)
					require.NoError(t, err)
					for i := range ms {
						if ms[i].Offset < 7 {
							require.NoError(t, ms[i].Ack())
						}
					}
					got += len(ms)
				}
				require.NoError(t, c.CommitSync(context.Background()))
				at := []engine.Offset{}
				for p := range 2 {
					off, err := g.Committed("t", p)
					require.NoError(t, err)
					at = append(at, off)
				}
				if crash {
					m = lost(m)
				} else {
					require.NoError(t, e.Close())
				}
				e = on(t, m, engine.Config{})
				assert.Equal(t, []string{"g"}, e.Groups())
				g, err = e.Group("g")
				require.NoError(t, err)
				assert.Equal(t, conf, g.Config())
				for p := range 2 {
					off, err := g.Committed("t", p)
					require.NoError(t, err)
					assert.Equal(t, at[p], off)
				}
				require.NoError(t, e.DeleteGroup("g"))
				require.NoError(t, e.Close())
				e = on(t, m, engine.Config{})
				assert.Empty(t, e.Groups())
			})
		}
	}
}

func TestDurable_SubscriptionsComeBack(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top, err := e.CreateTopic("t", durable(engine.Always, 2))
	require.NoError(t, err)
	send(t, top, 10)
	var mu sync.Mutex
	seen := 0
	h := engine.HandlerFunc(func(context.Context, *engine.Message) error {
		mu.Lock()
		defer mu.Unlock()
		seen++
		return nil
	})
	_, err = top.Subscribe(h, engine.SubscribeConfig{ID: "s", Start: engine.Earliest()})
	require.NoError(t, err)
	require.NoError(t, e.Drain(context.Background()))
	require.NoError(t, e.Close())
	assert.Equal(t, 20, seen)
	e = on(t, m, engine.Config{})
	top = topicOf(t, e, "t")
	send(t, top, 3)
	_, err = top.Subscribe(h, engine.SubscribeConfig{ID: "s"})
	require.NoError(t, err)
	require.NoError(t, e.Drain(context.Background()))
	require.NoError(t, e.Close())
	assert.Equal(t, 26, seen)
}

// TestDurable_PositionsAreWritten waits for the keeper, which is told of nothing.
func TestDurable_PositionsAreWritten(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{PositionsEvery: time.Millisecond})
	top, err := e.CreateTopic("t", durable(engine.Always, 1))
	require.NoError(t, err)
	g, err := e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest()})
	require.NoError(t, err)
	send(t, top, 10)
	_, err = g.Join(engine.HandlerFunc(func(context.Context, *engine.Message) error { return nil }), engine.MemberConfig{})
	require.NoError(t, err)
	testkit.Await(func() bool {
		other, err := engine.Open(engine.Config{Dir: dir}.WithFS(lost(m)))
		require.NoError(t, err)
		defer other.Close()
		g, err := other.Group("g")
		require.NoError(t, err)
		off, err := g.Committed("t", 0)
		require.NoError(t, err)
		return off == 10
	})
}

// TestBUG086_PositionBeyondTheLog: older files of the topic are brought back below a group that was further.
func TestBUG086_PositionBeyondTheLog(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top, err := e.CreateTopic("t", durable(engine.Never, 1))
	require.NoError(t, err)
	for _, gap := range []engine.GapPolicy{engine.SkipGap, engine.FailOnGap} {
		_, err = e.CreateGroup(fmt.Sprint("g", gap), engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest(), Gap: gap})
		require.NoError(t, err)
	}
	send(t, top, 5)
	require.NoError(t, top.Flush(context.Background()))
	send(t, top, 5)
	for _, name := range e.Groups() {
		require.NoError(t, e.ResetOffsets(name, "t", engine.At(10), engine.ResetOptions{}))
		g, err := e.Group(name)
		require.NoError(t, err)
		off, err := g.Committed("t", 0)
		require.NoError(t, err)
		require.Equal(t, engine.Offset(10), off)
	}
	// Never more than what is durable is written.
	require.NoError(t, e.SavePositions())
	other := on(t, lost(m), engine.Config{Hooks: engine.Hooks{Truncated: func(string, string, *engine.TruncatedError) { t.Error("told") }}})
	g, err := other.Group("g0")
	require.NoError(t, err)
	off, err := g.Committed("t", 0)
	require.NoError(t, err)
	assert.Equal(t, engine.Offset(5), off)

	// But a disk may lie.
	require.NoError(t, e.SavePositionsUnsafely())
	var told []string
	other = on(t, lost(m), engine.Config{Hooks: engine.Hooks{Truncated: func(topic, consumer string, err *engine.TruncatedError) {
		told = append(told, fmt.Sprint(consumer, topic, err.Partition, err.Committed, err.Next))
	}}})
	assert.ElementsMatch(t, []string{"g0t0 10 5", "g1t0 10 5"}, told)
	g, err = other.Group("g1")
	require.NoError(t, err)
	off, err = g.Committed("t", 0)
	require.NoError(t, err)
	assert.Equal(t, engine.Offset(5), off)
	_, err = g.Consumer(engine.MemberConfig{})
	require.ErrorIs(t, err, engine.ErrTruncated)
	var cut *engine.TruncatedError
	require.ErrorAs(t, err, &cut)
	assert.Equal(t, engine.TruncatedError{Topic: "t", Committed: 10, Next: 5}, *cut)
	_, err = g.Consumer(engine.MemberConfig{}) // once
	require.NoError(t, err)
}

// TestBUG086_OtherRecordsAtItsOffset: the log lost what a group had processed, and has other records there by the time that the group is
// opened again. It goes back to where the log had ended.
func TestBUG086_OtherRecordsAtItsOffset(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top, err := e.CreateTopic("t", durable(engine.Never, 1))
	require.NoError(t, err)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest(), Gap: engine.FailOnGap})
	require.NoError(t, err)
	send(t, top, 5)
	require.NoError(t, top.Flush(context.Background()))
	send(t, top, 5)
	require.NoError(t, e.ResetOffsets("g", "t", engine.At(10), engine.ResetOptions{}))
	require.NoError(t, e.SavePositionsUnsafely())
	cut := lost(m)
	group := filepath.Join(dir, "group-1")
	require.NoError(t, cut.Rename(group, group+".kept"))
	other := on(t, cut, engine.Config{})
	_, err = other.Group("g")
	require.ErrorIs(t, err, engine.ErrCorrupt, "its file is missing")
	send(t, topicOf(t, other, "t"), 20)
	require.NoError(t, other.Close())
	require.NoError(t, cut.Rename(group+".kept", group))
	other = on(t, cut, engine.Config{})
	g, err := other.Group("g")
	require.NoError(t, err)
	off, err := g.Committed("t", 0)
	require.NoError(t, err)
	assert.Equal(t, engine.Offset(5), off)
	_, err = g.Consumer(engine.MemberConfig{})
	var told *engine.TruncatedError
	require.ErrorAs(t, err, &told)
	assert.Equal(t, engine.TruncatedError{Topic: "t", Committed: 10, Next: 5}, *told)

	// What is where it belongs stays.
	require.NoError(t, other.ResetOffsets("g", "t", engine.At(22), engine.ResetOptions{}))
	require.NoError(t, other.Close())
	for range 3 {
		other = on(t, cut, engine.Config{Hooks: engine.Hooks{Truncated: func(string, string, *engine.TruncatedError) { t.Error("told") }}})
		g, err = other.Group("g")
		require.NoError(t, err)
		off, err = g.Committed("t", 0)
		require.NoError(t, err)
		assert.Equal(t, engine.Offset(22), off)
		send(t, topicOf(t, other, "t"), 3)
		require.NoError(t, other.Close())
	}
}

func TestDurable_GroupsOfBothKinds(t *testing.T) {
	e := on(t, vfs.NewMem(), engine.Config{})
	_, err := e.CreateTopic("d", durable(engine.Always, 1))
	require.NoError(t, err)
	_, err = e.CreateTopic("m", engine.TopicConfig{})
	require.NoError(t, err)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"d", "m"}})
	require.ErrorIs(t, err, engine.ErrConfig)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"d"}, DeadLetter: "m"})
	require.ErrorIs(t, err, engine.ErrConfig)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"m"}, DeadLetter: "d"})
	require.NoError(t, err)
}

// damage flips one byte of the first file of partition 0 that is sealed.
func damage(t testing.TB, m vfs.FS, id engine.TopicID) {
	t.Helper()
	d := filepath.Join(dir, id.String(), "00000")
	names, err := m.List(d)
	require.NoError(t, err)
	for _, n := range names {
		if strings.HasSuffix(n, ".leat") {
			f, err := m.Open(filepath.Join(d, n))
			require.NoError(t, err)
			defer f.Close()
			b := make([]byte, 1)
			_, err = f.ReadAt(b, 3000)
			require.NoError(t, err)
			b[0] ^= 0xff
			_, err = f.WriteAt(b, 3000)
			require.NoError(t, err)
			return
		}
	}
	t.Fatal("no file")
}

func TestDurable_DamageIsRefused(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top, err := e.CreateTopic("bad", durable(engine.Always, 1))
	require.NoError(t, err)
	send(t, top, 500)
	good, err := e.CreateTopic("good", durable(engine.Always, 1))
	require.NoError(t, err)
	send(t, good, 5)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"bad"}, Start: engine.Earliest()})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	damage(t, m, top.ID())

	e = on(t, m, engine.Config{})
	_, err = e.Topic("bad")
	require.ErrorIs(t, err, engine.ErrCorrupt)
	var where *disk.CorruptError
	require.ErrorAs(t, err, &where)
	assert.Less(t, where.From, where.To)
	_, err = e.Group("g")
	require.ErrorIs(t, err, engine.ErrCorrupt)
	_, err = e.CreateTopic("bad", engine.TopicConfig{})
	require.ErrorIs(t, err, engine.ErrTopicExists)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"good"}})
	require.ErrorIs(t, err, engine.ErrGroupExists)
	holds(t, topicOf(t, e, "good"), 5)
	require.NoError(t, e.Close())

	// Whoever does not want it any more can delete it.
	copied := m.Crash(func(int) bool { return true })
	e = on(t, copied, engine.Config{})
	require.NoError(t, e.DeleteTopic("bad"))
	require.NoError(t, e.DeleteGroup("g"))
	require.ErrorIs(t, e.DeleteTopic("bad"), engine.ErrUnknownTopic)
	require.ErrorIs(t, e.DeleteGroup("g"), engine.ErrUnknownGroup)
	_, err = e.CreateTopic("bad", durable(engine.Always, 1))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	e = on(t, copied, engine.Config{})
	assert.Equal(t, []string{"bad", "good"}, e.Topics())

	for range 2 {
		e = on(t, m, engine.Config{Salvage: true})
		top = topicOf(t, e, "bad")
		p, err := top.Partition(0)
		require.NoError(t, err)
		assert.Equal(t, engine.Offset(500), p.Next())
		assert.Positive(t, p.First())
		assert.Less(t, p.First(), engine.Offset(500))
		for off, r := range p.Records(0) {
			require.Equal(t, fmt.Sprint(off), string(r.Value))
		}
		require.NoError(t, e.Close())
	}
	e = on(t, m, engine.Config{})
	send(t, topicOf(t, e, "bad"), 1)
}

func TestDurable_MissingIsDamage(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top, err := e.CreateTopic("t", durable(engine.Always, 1))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.NoError(t, disk.Remove(filepath.Join(dir, top.ID().String(), "00000"), m))
	e = on(t, m, engine.Config{})
	_, err = e.Topic("t")
	require.ErrorIs(t, err, engine.ErrCorrupt)
	require.NoError(t, e.Close())
	require.NoError(t, m.Remove(filepath.Join(dir, "catalog")))
	_, err = engine.Open(engine.Config{Dir: dir}.WithFS(m))
	require.ErrorIs(t, err, engine.ErrCorrupt)
}

func TestDurable_ReadOnly(t *testing.T) {
	m := vfs.NewMem()
	e := on(t, m, engine.Config{})
	top, err := e.CreateTopic("t", durable(engine.Always, 2))
	require.NoError(t, err)
	send(t, top, 10)
	_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest()})
	require.NoError(t, err)
	before := m.String()
	for range 2 { // beside the engine, and after it
		x := on(t, m, engine.Config{ReadOnly: true})
		top = topicOf(t, x, "t")
		holds(t, top, 10)
		_, err = top.Publish(context.Background(), engine.Record{})
		require.ErrorIs(t, err, engine.ErrReadOnly)
		_, err = x.CreateTopic("u", durable(engine.Always, 1))
		require.ErrorIs(t, err, engine.ErrReadOnly)
		require.ErrorIs(t, x.DeleteTopic("t"), engine.ErrReadOnly)
		require.ErrorIs(t, top.SetPartitions(3), engine.ErrReadOnly)
		require.ErrorIs(t, part(t, top, 0).TruncateBefore(context.Background(), 5), engine.ErrReadOnly)
		require.ErrorIs(t, top.Resume(context.Background()), engine.ErrReadOnly)
		_, err = x.Group("g")
		require.NoError(t, err)
		require.NoError(t, x.Close())
		assert.Equal(t, before, m.String())
		require.NoError(t, e.Close())
		before = m.String()
	}
}

// TestDurable_Resume fills a disk, and lets writing go on.
func TestDurable_Resume(t *testing.T) {
	for _, s := range []engine.Sync{engine.Always, engine.Interval(time.Millisecond), engine.Never} {
		t.Run(s.String(), func(t *testing.T) {
			m := vfs.NewMem()
			told := make(chan error, 1)
			e := on(t, m, engine.Config{Hooks: engine.Hooks{FilesFailed: func(_ string, _ int, err error) { told <- err }}})
			top, err := e.CreateTopic("t", durable(s, 1))
			require.NoError(t, err)
			p, err := top.Partition(0)
			require.NoError(t, err)
			m.SetLimit(m.Used() + 40<<10)
			acked := map[engine.Offset]string{}
			put := func() error {
				v := fmt.Sprint(len(acked), strings.Repeat("x", 500))
				at, err := p.Publish(context.Background(), engine.Record{Value: []byte(v)})
				if err == nil {
					acked[at.Offset] = v
				}
				return err
			}
			for err == nil {
				err = put()
			}
			require.ErrorIs(t, err, engine.ErrNoSpace)
			require.ErrorIs(t, err, engine.ErrReadOnly)
			require.ErrorIs(t, <-told, engine.ErrNoSpace)
			require.Error(t, p.DurableStats().ReadOnly)
			m.SetLimit(0)
			require.ErrorIs(t, top.Resume(context.Background()), engine.ErrNoSpace)
			m.SetLimit(-1)
			require.NoError(t, top.Resume(context.Background()))
			require.NoError(t, p.DurableStats().ReadOnly)
			for range 100 {
				require.NoError(t, put())
			}
			require.NoError(t, top.Flush(context.Background()))
			for _, top := range []*engine.Topic{top, topicOf(t, on(t, lost(m), engine.Config{}), "t")} {
				p, err := top.Partition(0)
				require.NoError(t, err)
				n := 0
				for off, r := range p.Records(0) {
					if v, ok := acked[off]; ok {
						require.Equal(t, v, string(r.Value))
						n++
					}
				}
				assert.Equal(t, len(acked), n)
			}
		})
	}
}
