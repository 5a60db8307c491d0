package bench_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// groupRun is one way to share the records of a topic in a group.
type groupRun struct {
	name   string
	group  engine.GroupConfig
	member engine.MemberConfig
	poll   bool
}

func groupRuns() []groupRun {
	return []groupRun{
		{name: "kind=assigned/mode=at-least-once"},
		{name: "kind=assigned/mode=at-most-once", group: engine.GroupConfig{Mode: engine.AtMostOnce}},
		{name: "kind=assigned/mode=manual", group: engine.GroupConfig{Mode: engine.Manual}},
		{name: "kind=assigned/mode=at-least-once/by=key", member: engine.MemberConfig{ByKey: engine.Parallelism{Handlers: 2}}},
		{name: "kind=assigned/mode=at-least-once/poll", poll: true},
		{name: "kind=shared/mode=at-least-once", group: engine.GroupConfig{Kind: engine.Shared}},
		{name: "kind=shared/mode=manual", group: engine.GroupConfig{Kind: engine.Shared, Mode: engine.Manual}},
		{name: "kind=shared/mode=at-least-once/poll", group: engine.GroupConfig{Kind: engine.Shared}, poll: true},
	}
}

const groupPartitions, groupMembers = 4, 4

// BenchmarkGroup is the whole way: one producer publishes batches of 64 to 4 partitions, and 4 members of a group process
// them. Each member checks that it gets the records of a partition in order, where they come in order.
func BenchmarkGroup(b *testing.B) {
	for _, r := range groupRuns() {
		b.Run(fmt.Sprintf("partitions=%d/members=%d/payload=%dB/%s", groupPartitions, groupMembers, size, r.name), func(b *testing.B) {
			l := openGroup(b, r)
			defer l.close()
			l.pass(b, warm)
			b.ReportAllocs()
			b.SetBytes(size)
			b.ResetTimer()
			took := l.pass(b, b.N)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/took.Seconds(), "msgs/s")
		})
	}
}

// groupLine is a topic with a group.
type groupLine struct {
	run    groupRun
	engine *engine.Engine
	parts  [groupPartitions]*engine.Partition
	sent   [groupPartitions]uint64
	next   [groupPartitions]atomic.Uint64 // what comes next in order; each has one owner at a time
	wrong  atomic.Int64
	seen   atomic.Int64
	want   atomic.Int64
	done   chan struct{}
}

func openGroup(tb testing.TB, r groupRun) *groupLine {
	e, err := engine.Open(engine.Config{})
	require.NoError(tb, err)
	t, err := e.CreateTopic("bench", engine.TopicConfig{Partitions: groupPartitions, Retention: engine.Retention{MaxBytes: hot}})
	require.NoError(tb, err)
	l := &groupLine{run: r, engine: e, done: make(chan struct{}, 1)}
	for i := range l.parts {
		l.parts[i], err = t.Partition(i)
		require.NoError(tb, err)
	}
	r.group.Topics = []string{"bench"}
	g, err := e.CreateGroup("g", r.group)
	require.NoError(tb, err)
	for range groupMembers {
		if r.poll {
			c, err := g.Consumer(r.member)
			require.NoError(tb, err)
			go l.poll(c)
			continue
		}
		_, err = g.Join(engine.HandlerFunc(l.handle), r.member)
		require.NoError(tb, err)
	}
	return l
}

// handle is the handler of all members.
func (l *groupLine) handle(_ context.Context, m *engine.Message) error {
	l.see(m)
	l.count(1)
	if l.run.group.Mode == engine.Manual {
		return m.Ack()
	}
	return nil
}

func (l *groupLine) poll(c *engine.Consumer) {
	for {
		ms, err := c.Poll(context.Background(), 256)
		if err != nil {
			return
		}
		for i := range ms {
			l.see(&ms[i])
		}
		l.count(len(ms))
	}
}

// see checks a message.
func (l *groupLine) see(m *engine.Message) {
	seq := binary.LittleEndian.Uint64(m.Value)
	if l.run.group.Kind == engine.Shared || l.run.member.ByKey.Handlers > 0 {
		if seq != uint64(m.Offset) {
			l.wrong.Add(1)
		}
		return
	}
	next := &l.next[m.Partition]
	if next.Load() != seq {
		l.wrong.Add(1)
	}
	next.Store(seq + 1)
}

func (l *groupLine) count(n int) {
	if l.seen.Add(int64(n)) == l.want.Load() {
		l.done <- struct{}{}
	}
}

// pass lets n messages through.
func (l *groupLine) pass(tb testing.TB, n int) time.Duration {
	const most = 64
	ctx, m, batch := context.Background(), make([]byte, most*size), make([]engine.Record, most)
	l.want.Add(int64(n))
	begin := time.Now()
	for p := 0; n > 0; p = (p + 1) % groupPartitions {
		k := min(n, most)
		for i := range k {
			v := m[i*size : (i+1)*size]
			fill(v, 0, l.sent[p])
			batch[i] = engine.Record{Key: v[:8], Value: v}
			l.sent[p]++
		}
		require.NoError(tb, l.parts[p].PublishBatch(ctx, batch[:k]))
		n -= k
	}
	<-l.done
	took := time.Since(begin)
	require.Zero(tb, l.wrong.Load())
	return took
}

func (l *groupLine) close() { _ = l.engine.Close() }
