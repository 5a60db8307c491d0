package group_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/group"
)

// all returns members that want the same topics.
func all(names []string, topics ...string) []group.Subscriber {
	members := make([]group.Subscriber, len(names))
	for i, name := range names {
		members[i] = group.Subscriber{Name: name, Topics: topics}
	}
	return members
}

func TestAssignor_Assign(t *testing.T) {
	type sizes = map[string]int
	type plan = group.Plan
	abc := []string{"a", "b", "c"}
	for _, c := range []struct {
		name       string
		assignor   group.Assignor
		members    []group.Subscriber
		partitions sizes
		previous   plan
		want       plan
	}{
		{"range: runs in the order of names", group.Range, all([]string{"b", "a"}, "t"), sizes{"t": 5}, nil,
			plan{"t": {"a", "a", "a", "b", "b"}}},
		{"range: the longer run of the next topic is another's", group.Range, all(abc, "t", "u"), sizes{"t": 4, "u": 4}, nil,
			plan{"t": {"a", "a", "b", "c"}, "u": {"a", "b", "b", "c"}}},
		{"range: topics that divide evenly are cut alike", group.Range, all(abc, "t", "u"), sizes{"t": 6, "u": 6}, nil,
			plan{"t": {"a", "a", "b", "b", "c", "c"}, "u": {"a", "a", "b", "b", "c", "c"}}},
		{"range: only those who want the topic", group.Range, append(all(abc, "t"), group.Subscriber{Name: "d", Topics: []string{"u"}}),
			sizes{"t": 3, "u": 2}, nil, plan{"t": {"a", "b", "c"}, "u": {"d", "d"}}},
		{"range: fewer partitions than members", group.Range, all(abc, "t"), sizes{"t": 1}, nil, plan{"t": {"a"}}},

		{"round-robin: goes on over topics", group.RoundRobin, all(abc, "t", "u"), sizes{"t": 4, "u": 2}, nil,
			plan{"t": {"a", "b", "c", "a"}, "u": {"b", "c"}}},
		{"round-robin: leaves out who does not want it", group.RoundRobin,
			[]group.Subscriber{{Name: "a", Topics: []string{"t"}}, {Name: "b", Topics: []string{"t", "u"}}, {Name: "c", Topics: []string{"u"}}},
			sizes{"t": 2, "u": 3}, nil, plan{"t": {"a", "b"}, "u": {"c", "b", "c"}}},

		{"sticky: from nothing", group.Sticky, all(abc, "t"), sizes{"t": 5}, nil, plan{"t": {"a", "b", "c", "a", "b"}}},
		{"sticky: nothing changes, nothing moves", group.Sticky, all(abc, "t"), sizes{"t": 5}, plan{"t": {"c", "c", "a", "b", "b"}},
			plan{"t": {"c", "c", "a", "b", "b"}}},
		{"sticky: one joins", group.Sticky, all(append(abc, "d"), "t"), sizes{"t": 6}, plan{"t": {"a", "a", "b", "b", "c", "c"}},
			plan{"t": {"a", "d", "b", "b", "c", "c"}}},
		{"sticky: one leaves", group.Sticky, all([]string{"a", "c"}, "t"), sizes{"t": 6}, plan{"t": {"a", "a", "b", "b", "c", "c"}},
			plan{"t": {"a", "a", "a", "c", "c", "c"}}},
		{"sticky: the topic grows", group.Sticky, all(abc, "t"), sizes{"t": 5}, plan{"t": {"b", "a"}},
			plan{"t": {"b", "a", "c", "a", "b"}}},
		{"sticky: the topic has become smaller", group.Sticky, all(abc, "t"), sizes{"t": 1}, plan{"t": {"b", "a"}}, plan{"t": {"b"}}},
		{"sticky: one no longer wants the topic", group.Sticky,
			[]group.Subscriber{{Name: "a", Topics: []string{"u"}}, {Name: "b", Topics: []string{"t"}}},
			sizes{"t": 2, "u": 1}, plan{"t": {"a", "b"}, "u": {"b"}}, plan{"t": {"b", "b"}, "u": {"a"}}},
		{"sticky: evens out along a chain", group.Sticky,
			[]group.Subscriber{{Name: "a", Topics: []string{"t"}}, {Name: "b", Topics: []string{"t", "u"}}, {Name: "c", Topics: []string{"u"}}},
			sizes{"t": 2, "u": 1}, plan{"t": {"a", "a"}, "u": {"b"}}, plan{"t": {"a", "b"}, "u": {"c"}}},
		{"sticky: what is new to a member goes on before what it had", group.Sticky,
			[]group.Subscriber{{Name: "a", Topics: []string{"t", "u"}}, {Name: "b", Topics: []string{"t", "v"}}},
			sizes{"t": 2, "u": 2, "v": 2}, plan{"t": {"", "a"}, "v": {"b", "b"}},
			plan{"t": {"b", "a"}, "u": {"a", "a"}, "v": {"b", "b"}}},

		{"nobody wants the topic", group.Sticky, all(abc, "t"), sizes{"t": 1, "u": 2}, plan{"u": {"a", "b"}},
			plan{"t": {"a"}, "u": {"", ""}}},
		{"nobody is there", group.Range, nil, sizes{"t": 2}, nil, plan{"t": {"", ""}}},
		{"no partitions", group.RoundRobin, all(abc, "t"), sizes{"t": 0}, nil, plan{"t": {}}},
		{"a topic that is not there, and one named twice", group.RoundRobin, all(abc, "t", "gone", "t"), sizes{"t": 3}, nil,
			plan{"t": {"a", "b", "c"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, c.assignor.Assign(c.members, c.partitions, c.previous))
		})
	}
}

func TestAssignor_Strings(t *testing.T) {
	assert.Equal(t, "sticky", group.Assignor(0).String())
	assert.Equal(t, "range", group.Range.String())
	assert.Equal(t, "round-robin", group.RoundRobin.String())
	assert.Equal(t, "Assignor(7)", group.Assignor(7).String())
	assert.False(t, group.Assignor(3).Valid())
	assert.Panics(t, func() { group.Assignor(3).Assign(nil, nil, nil) })
}

// TestBUG050_SickClaimsAreNotHonoured: a previous plan names members that are gone, topics and partitions that do not
// exist, and members that do not want the topic. Each partition still has exactly one owner, and it is one who may have it.
func TestBUG050_SickClaimsAreNotHonoured(t *testing.T) {
	members := []group.Subscriber{{Name: "m1", Topics: []string{"t"}}, {Name: "m2", Topics: []string{"t"}}, {Name: "m3", Topics: []string{"u"}}}
	previous := group.Plan{
		"t":    {"gone", "m3", "m1", "m1", "m1", "m1", "m1", "m1"},
		"gone": {"m1", "m2"},
		"u":    {"", "m1"},
	}
	plan := group.Sticky.Assign(members, map[string]int{"t": 4, "u": 2}, previous)
	require.Len(t, plan, 2)
	assert.Equal(t, []string{"m2", "m2", "m1", "m1"}, plan["t"])
	assert.Equal(t, []string{"m3", "m3"}, plan["u"])
}

// TestSticky_AThousandPartitions: over a hundred members, of which one leaves and two come.
func TestSticky_AThousandPartitions(t *testing.T) {
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("m%03d", i)
	}
	sizes := map[string]int{"t": 1000}
	before := group.Sticky.Assign(all(names, "t"), sizes, nil)

	after := group.Sticky.Assign(all(names[1:], "t"), sizes, before)
	assert.Equal(t, 10, moved(before, after), "those of the member that left")

	before = after
	after = group.Sticky.Assign(all(append(names[1:], "n1", "n2"), "t"), sizes, before)
	assert.Equal(t, 9+9, moved(before, after), "what the new ones get")
}

// moved counts the partitions that have another owner after than before.
func moved(before, after group.Plan) (n int) {
	for topic, owners := range before {
		for i, owner := range owners {
			if i < len(after[topic]) && after[topic][i] != owner {
				n++
			}
		}
	}
	return n
}
