package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// many is a group of so many partitions, with members that do nothing.
type many struct {
	t          testing.TB
	e          *engine.Engine
	g          *engine.Group
	partitions int
	pull       bool
}

func newMany(t testing.TB, partitions int, pull bool) *many {
	e, err := engine.Open(engine.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	_, err = e.CreateTopic("t", engine.TopicConfig{Partitions: partitions})
	require.NoError(t, err)
	g, err := e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}})
	require.NoError(t, err)
	return &many{t, e, g, partitions, pull}
}

func (x *many) join() *engine.Member {
	if x.pull {
		c, err := x.g.Consumer(engine.MemberConfig{})
		require.NoError(x.t, err)
		return c.Member
	}
	m, err := x.g.Join(engine.HandlerFunc(func(context.Context, *engine.Message) error { return nil }), engine.MemberConfig{})
	require.NoError(x.t, err)
	return m
}

// share waits until members have so many partitions each.
func (x *many) share(members ...*engine.Member) {
	for _, m := range members {
		await(func() bool { return len(m.Assignment()) == x.partitions/len(members) })
	}
}

// rebalance lets one join, another, the first leave, and the other be put out.
func (x *many) rebalance() {
	a := x.join()
	x.share(a)
	b := x.join()
	x.share(a, b)
	a.Close()
	x.share(b)
	require.NoError(x.t, x.g.Evict(b.Name()))
	<-a.Done()
	<-b.Done()
}

// TestGroup_ManyPartitions moves as many partitions as a topic may have.
func TestGroup_ManyPartitions(t *testing.T) {
	n := 1 << 14
	if testing.Short() {
		n = 1 << 10
	}
	for _, pull := range []bool{false, true} {
		t.Run(fmt.Sprintf("pull=%v", pull), func(t *testing.T) {
			x := newMany(t, n, pull)
			x.rebalance()
			m := x.join()
			all := m.Assignment()
			require.Len(t, all, n)
			for i, at := range all {
				if at.Partition != i { // require takes longer to look at two numbers than to move a partition
					require.Equal(t, i, at.Partition)
				}
			}
			require.NoError(t, x.e.DeleteTopic("t"))
			<-m.Done()
			require.ErrorIs(t, m.Err(), engine.ErrTopicDeleted)
		})
	}
}

// BenchmarkGroup_Rebalance measures what two joins, a leave and an eviction take, by partition: it does not depend on how many
// there are.
func BenchmarkGroup_Rebalance(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 12, 1 << 14} {
		if testing.Short() && n > 1<<10 {
			continue
		}
		b.Run(fmt.Sprintf("partitions=%d", n), func(b *testing.B) {
			x := newMany(b, n, false)
			for b.Loop() {
				x.rebalance()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/partition")
		})
	}
}
