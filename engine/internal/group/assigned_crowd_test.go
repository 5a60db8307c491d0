package group_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// TestAssigned_CrowdNeedsFewPlans: ten thousand members join, share few partitions and leave. No plan is made but where somebody
// gets or has something.
func TestAssigned_CrowdNeedsFewPlans(t *testing.T) {
	const members, partitions = 10_000, 4
	for _, assignor := range []group.Assignor{group.Sticky, group.Range, group.RoundRobin} {
		c := &crowd{Assigned: group.NewAssigned(group.AssignedConfig{Assignor: assignor, RevokeTimeout: time.Second}, 0), topics: []string{"t"}}
		_, err := c.SetPartitions("t", partitions, 0)
		require.NoError(t, err)
		var ids []group.MemberID
		for i := range members {
			ids = append(ids, c.join(t, fmt.Sprintf("m%06d", i)))
		}
		assert.LessOrEqual(t, c.Plans(), 1+partitions, "%v", assignor)
		require.NoError(t, c.CheckPlan())
		generation := c.Generation()
		before := c.Plans()
		for _, i := range rand.Perm(members - partitions) { // who has something are the first
			c.leave(t, ids[partitions+i])
		}
		assert.Equal(t, before, c.Plans(), "%v", assignor)
		assert.Equal(t, generation+members-partitions, c.Generation(), "a new one each time")
		require.NoError(t, c.CheckPlan())
		for _, id := range ids[:partitions] {
			c.leave(t, id)
		}
		assert.True(t, c.Idle())
	}
}

// TestAssigned_CrowdOfManyKinds: members that want few or many topics come and go, many of whom have nothing, and the plan is always
// the one that the assignor makes.
func TestAssigned_CrowdOfManyKinds(t *testing.T) {
	for i := range rounds(300) {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		assignor := []group.Assignor{group.Sticky, group.Range, group.RoundRobin}[random.IntN(3)]
		c := &crowd{Assigned: group.NewAssigned(group.AssignedConfig{Assignor: assignor, RevokeTimeout: time.Second}, 0)}
		for _, name := range []string{"a", "b", "c"} {
			_, err := c.SetPartitions(name, random.IntN(4), 0)
			require.NoError(t, err)
		}
		all, ids := [][]string{{"a", "b", "c"}, {"b"}, {"a", "c"}}[:1+random.IntN(3)], []group.MemberID(nil)
		for range 60 {
			switch n := random.IntN(10); {
			case n < 6:
				c.topics = all[random.IntN(len(all))]
				ids = append(ids, c.join(t, fmt.Sprint(random.Uint64())))
			case len(ids) > 0:
				k := random.IntN(len(ids))
				c.leave(t, ids[k])
				ids = slices.Delete(ids, k, k+1)
			}
			require.NoError(t, c.CheckPlan())
		}
	}
}

// TestAssigned_PlanOfASet: where all want the same topics a sticky plan is, after each member that comes or goes, the one that the assignor
// makes of the plan before, though it is not made anew.
func TestAssigned_PlanOfASet(t *testing.T) {
	for i := range rounds(300) {
		random := rand.New(rand.NewPCG(2, uint64(i)))
		c := &crowd{Assigned: group.NewAssigned(group.AssignedConfig{RevokeTimeout: time.Second}, 0)}
		for _, name := range []string{"a", "b", "c", "d"}[:1+random.IntN(4)] {
			c.topics = append(c.topics, name)
			_, err := c.SetPartitions(name, random.IntN(30), 0)
			require.NoError(t, err)
		}
		var ids []group.MemberID
		for range 60 {
			_, _, before := c.Plan()
			if n := random.IntN(10); n < 6 {
				ids = append(ids, c.join(t, fmt.Sprint(random.Uint64())))
			} else if len(ids) > 0 {
				k := random.IntN(len(ids))
				c.leave(t, ids[k])
				ids = slices.Delete(ids, k, k+1)
			}
			members, sizes, plan := c.Plan()
			require.Equal(t, group.Sticky.Assign(members, sizes, before), plan)
			require.NoError(t, c.CheckPlan())
		}
	}
}

// TestAssigned_CrowdWithAsMany: of ten thousand members each gets a partition when it comes, and gives it to another one when it goes, and
// nothing else moves.
func TestAssigned_CrowdWithAsMany(t *testing.T) {
	const many = 10_000
	c := &crowd{Assigned: group.NewAssigned(group.AssignedConfig{RevokeTimeout: time.Second}, 0), topics: []string{"t", "u"}}
	for _, name := range c.topics {
		_, err := c.SetPartitions(name, many/2, 0)
		require.NoError(t, err)
	}
	ids := c.joinAll(t, many)
	assert.Less(t, c.moved, 10*many, "each time as many as one has of all: a harmonic sum")
	assert.Equal(t, 1+2, c.Plans(), "for each topic and for the first member")
	require.NoError(t, c.CheckPlan())
	for _, id := range ids[1:] {
		c.leave(t, id)
	}
	assert.Equal(t, 1+2, c.Plans())
	require.NoError(t, c.CheckPlan())
}
