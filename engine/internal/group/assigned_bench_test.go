package group_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// crowd is a group with many members, in which each partition that is asked for is given back at once.
type crowd struct {
	*group.Assigned
	topics []string
	moved  int // how many partitions were asked for
}

// newCrowd returns a group with a thousand partitions in so many topics.
func newCrowd(t testing.TB, assignor group.Assignor, topics int) *crowd {
	c := &crowd{Assigned: group.NewAssigned(group.AssignedConfig{Assignor: assignor, RevokeTimeout: time.Second}, 0)}
	for i := range topics {
		c.topics = append(c.topics, fmt.Sprintf("t%03d", i))
		_, err := c.SetPartitions(c.topics[i], 1000/topics, 0)
		require.NoError(t, err)
	}
	return c
}

// carryOut does what an event has asked for.
func (c *crowd) carryOut(t testing.TB, actions []group.Action, err error) {
	for ; len(actions) > 0; actions = actions[1:] {
		if a := actions[0]; a.Kind == group.Revoke {
			c.moved++
			more, err := c.Released(a.Partition, a.Member, a.Generation, 0)
			if err != nil {
				t.Fatal(err)
			}
			actions = append(actions, more...)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (c *crowd) join(t testing.TB, name string) group.MemberID {
	id, actions, err := c.Join(group.Member{Name: name, Topics: c.topics}, 0)
	c.carryOut(t, actions, err)
	return id
}

func (c *crowd) leave(t testing.TB, id group.MemberID) {
	actions, err := c.Leave(id, 0)
	c.carryOut(t, actions, err)
}

// joinAll lets n members join one after the other.
func (c *crowd) joinAll(t testing.TB, n int) (ids []group.MemberID) {
	for i := range n {
		ids = append(ids, c.join(t, fmt.Sprintf("m%02d", i)))
	}
	return ids
}

// TestAssigned_CrowdMovesNoMoreThanItMust: a hundred members share a thousand partitions. One that joins gets its share and
// nothing else moves; when one leaves, only what it had does.
func TestAssigned_CrowdMovesNoMoreThanItMust(t *testing.T) {
	for _, topics := range []int{1, 1000} {
		c := newCrowd(t, group.Sticky, topics)
		ids := c.joinAll(t, 100)
		c.moved = 0
		id := c.join(t, "one more")
		assert.Equal(t, 1000/101, c.moved)
		c.moved = 0
		c.leave(t, id)
		c.leave(t, ids[50])
		assert.Equal(t, 1000/101+1000/100, c.moved)
	}
}

// TestAssigned_FarMoreMembersThanPartitions: most of them have nothing, and cost next to nothing. What one that joins costs grows
// with the number of members and not with its square, or this test would take minutes.
func TestAssigned_FarMoreMembersThanPartitions(t *testing.T) {
	const members = 3000
	c := &crowd{Assigned: group.NewAssigned(group.AssignedConfig{RevokeTimeout: time.Second}, 0), topics: []string{"t"}}
	_, err := c.SetPartitions("t", 4, 0)
	require.NoError(t, err)
	ids := c.joinAll(t, members)
	assert.Equal(t, 4, c.moved, "the first had all four: the second got two, the next two one each, all others none")
	d := c.Describe()
	require.Len(t, d.Members, members)
	for i, m := range d.Members {
		assert.LessOrEqual(t, m.Owned, 1)
		assert.True(t, i == 0 || d.Members[i-1].Name < m.Name)
	}
	for _, p := range d.Partitions {
		assert.NotZero(t, p.Owner)
	}
	c.carryOut(t, c.RemoveTopic("t", 0), nil)
	for _, id := range ids {
		c.leave(t, id)
	}
	assert.True(t, c.Idle())
	assert.Empty(t, c.Describe().Members)
}

// BenchmarkAssigned_JoinCrowd measures what one member costs that joins ten thousand others, who share four partitions.
func BenchmarkAssigned_JoinCrowd(b *testing.B) {
	b.ReportAllocs()
	c := &crowd{Assigned: group.NewAssigned(group.AssignedConfig{RevokeTimeout: time.Second}, 0), topics: []string{"t"}}
	_, err := c.SetPartitions("t", 4, 0)
	require.NoError(b, err)
	c.joinAll(b, 10_000)
	for b.Loop() {
		id := c.join(b, "n")
		b.StopTimer()
		c.leave(b, id)
		b.StartTimer()
	}
}

// BenchmarkAssigned_Rebalance measures all of the coordinator's work for a thousand partitions: when one member joins
// ninety-nine others, when it leaves again, and when a hundred join one after the other. The time is that of one event, with
// the calls by which what moves is given back.
func BenchmarkAssigned_Rebalance(b *testing.B) {
	for _, assignor := range []group.Assignor{group.Sticky, group.Range, group.RoundRobin} {
		for _, topics := range []int{1, 1000} {
			event := func(name string, events int, run func(b *testing.B, c *crowd)) {
				b.Run(fmt.Sprintf("assignor=%v/topics=%d/event=%s", assignor, topics, name), func(b *testing.B) {
					b.ReportAllocs()
					c := newCrowd(b, assignor, topics)
					run(b, c)
					b.ReportMetric(float64(c.moved)/float64(b.N*events), "moves/event")
					b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*events), "us/event")
				})
			}
			event("join", 1, func(b *testing.B, c *crowd) {
				c.joinAll(b, 99)
				moved := 0
				for b.Loop() {
					c.moved = 0
					id := c.join(b, "n")
					b.StopTimer()
					moved += c.moved
					c.leave(b, id)
					b.StartTimer()
				}
				c.moved = moved
			})
			event("leave", 1, func(b *testing.B, c *crowd) {
				c.joinAll(b, 99)
				moved := 0
				for b.Loop() {
					b.StopTimer()
					id := c.join(b, "n")
					c.moved = 0
					b.StartTimer()
					c.leave(b, id)
					moved += c.moved
				}
				c.moved = moved
			})
			event("hundred-joins", 100, func(b *testing.B, c *crowd) {
				for b.Loop() {
					ids := c.joinAll(b, 100)
					b.StopTimer()
					moved := c.moved
					for _, id := range ids {
						c.leave(b, id)
					}
					c.moved = moved
					b.StartTimer()
				}
			})
		}
	}
}

func BenchmarkAssigned_Owns(b *testing.B) {
	b.ReportAllocs()
	g := group.NewAssigned(group.AssignedConfig{}, 0)
	id, _, _ := g.Join(group.Member{Name: "m", Topics: []string{"t"}}, 0)
	actions, _ := g.SetPartitions("t", 16, 0)
	a := actions[7]
	for b.Loop() {
		if g.Owns(a.Partition, id, a.Generation) != nil {
			b.Fatal("fenced")
		}
	}
}
