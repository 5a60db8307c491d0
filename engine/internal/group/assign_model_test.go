package group_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/group"
)

var topicNames = []string{"t", "u", "v", "w"}

// world is an input of an assignor.
type world struct {
	members []group.Subscriber
	sizes   map[string]int
}

func drawWorld(t *rapid.T, maxMembers, maxPartitions int, equal bool) world {
	w := world{sizes: map[string]int{}}
	for _, topic := range topicNames[:rapid.IntRange(1, len(topicNames)).Draw(t, "topics")] {
		w.sizes[topic] = rapid.IntRange(0, maxPartitions).Draw(t, topic)
	}
	some := rapid.SliceOfDistinct(rapid.SampledFrom(topicNames), rapid.ID)
	topics := some.Draw(t, "topics wanted")
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 2*maxMembers), 0, maxMembers, rapid.ID).Draw(t, "members") {
		m := group.Subscriber{Name: fmt.Sprintf("m%02d", i), Topics: topics}
		if !equal {
			m.Topics = some.Draw(t, m.Name)
		}
		w.members = append(w.members, m)
	}
	return w
}

func (w world) wants(member, topic string) bool {
	return slices.ContainsFunc(w.members, func(m group.Subscriber) bool {
		return m.Name == member && slices.Contains(m.Topics, topic)
	})
}

func (w world) wanted(topic string) bool {
	return slices.ContainsFunc(w.members, func(m group.Subscriber) bool { return slices.Contains(m.Topics, topic) })
}

func (w world) loads(plan group.Plan) map[string]int {
	loads := map[string]int{}
	for _, m := range w.members {
		loads[m.Name] = 0
	}
	for _, owners := range plan {
		for _, owner := range owners {
			if owner != "" {
				loads[owner]++
			}
		}
	}
	return loads
}

// check fails t if the plan is not complete.
func (w world) check(t require.TestingT, plan group.Plan) {
	require.Len(t, plan, len(w.sizes))
	for topic, n := range w.sizes {
		require.Len(t, plan[topic], n)
		for _, owner := range plan[topic] {
			if w.wanted(topic) {
				require.True(t, w.wants(owner, topic), "%s of %s", owner, topic)
			} else {
				require.Empty(t, owner)
			}
		}
	}
}

func spread(loads map[string]int) int {
	low, high := int(^uint(0)>>1), 0
	for _, n := range loads {
		low, high = min(low, n), max(high, n)
	}
	return max(0, high-low)
}

func squares(loads map[string]int) (sum int) {
	for _, n := range loads {
		sum += n * n
	}
	return sum
}

// drawAssignor draws one, and a previous plan that is anything from right to nonsense.
func drawAssignor(t *rapid.T, w world) (group.Assignor, group.Plan) {
	assignor := rapid.SampledFrom([]group.Assignor{group.Sticky, group.Range, group.RoundRobin}).Draw(t, "assignor")
	previous := group.Plan{}
	for _, topic := range topicNames {
		previous[topic] = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			if len(w.members) == 0 || rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
				return rapid.SampledFrom([]string{"", "gone", "a"}).Draw(t, "who")
			}
			return rapid.SampledFrom(w.members).Draw(t, "who").Name
		}), 0, w.sizes[topic]+1).Draw(t, "previously "+topic)
	}
	return assignor, previous
}

// TestAssignor_Model checks that any plan is complete and depends on nothing but the sets that it is made from.
func TestAssignor_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 8, 12, false)
		assignor, previous := drawAssignor(t, w)
		plan := assignor.Assign(w.members, w.sizes, previous)
		w.check(t, plan)
		require.Equal(t, plan, assignor.Assign(rapid.Permutation(w.members).Draw(t, "in another order"), w.sizes, previous))
		plan = group.Sticky.Assign(w.members, w.sizes, plan)
		w.check(t, plan)
		require.Equal(t, plan, group.Sticky.Assign(w.members, w.sizes, plan), "what is as even as can be is left alone")
	})
}

// TestAssignor_ModelEven checks that members that want the same topics differ by at most one, and that nobody could do with
// fewer moves than Sticky.
func TestAssignor_ModelEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 8, 12, true)
		assignor, previous := drawAssignor(t, w)
		plan := assignor.Assign(w.members, w.sizes, previous)
		w.check(t, plan)
		require.LessOrEqual(t, spread(w.loads(plan)), 1, "%v", plan)

		if assignor != group.Sticky || len(w.members) == 0 {
			return
		}
		// The most that can stay: each member keeps no more than its share, and as many as the remainder says keep one more.
		had, total, stayed := w.loads(nil), 0, 0
		for topic, owners := range plan {
			for i, owner := range owners {
				if owner == "" {
					continue
				}
				total++
				if i < len(previous[topic]) && w.wants(previous[topic][i], topic) {
					had[previous[topic][i]]++
					if owner == previous[topic][i] {
						stayed++
					}
				}
			}
		}
		share, more := total/len(w.members), total%len(w.members)
		most := 0
		for _, n := range had {
			most += min(n, share)
			if n > share && more > 0 {
				most++
				more--
			}
		}
		require.Equal(t, most, stayed, "%v -> %v", previous, plan)
	})
}

// TestSticky_ModelAsEvenAsTopicsAllow compares with the evenest of all assignments, in worlds that are small enough to try
// them all.
func TestSticky_ModelAsEvenAsTopicsAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 3, 2, false)
		_, previous := drawAssignor(t, w)
		plan := group.Sticky.Assign(w.members, w.sizes, previous)
		w.check(t, plan)

		var all []group.Partition
		for topic, n := range w.sizes {
			for i := range n {
				if w.wanted(topic) {
					all = append(all, group.Partition{Topic: topic, Index: i})
				}
			}
		}
		loads := w.loads(nil)
		best := -1
		var try func(i int)
		try = func(i int) {
			if i == len(all) {
				if sum := squares(loads); best < 0 || sum < best {
					best = sum
				}
				return
			}
			for _, m := range w.members {
				if slices.Contains(m.Topics, all[i].Topic) {
					loads[m.Name]++
					try(i + 1)
					loads[m.Name]--
				}
			}
		}
		try(0)
		require.Equal(t, best, squares(w.loads(plan)), "%v", plan)
	})
}

// FuzzAssignor takes bytes for subscriptions, sizes and previous owners.
func FuzzAssignor(f *testing.F) {
	f.Add([]byte{3, 0xf, 0x1, 0x6}, []byte{4, 2, 9}, []byte{0, 1, 2, 2, 1, 0})
	f.Add([]byte{0xf, 0xf}, []byte{1, 1, 1, 1}, []byte{})
	f.Fuzz(func(t *testing.T, wants, sizes, previous []byte) {
		w := world{sizes: map[string]int{}}
		for i, bits := range wants[:min(len(wants), 12)] {
			m := group.Subscriber{Name: fmt.Sprint("m", i)}
			for j, topic := range topicNames {
				if bits>>j&1 == 1 {
					m.Topics = append(m.Topics, topic)
				}
			}
			w.members = append(w.members, m)
		}
		before := group.Plan{}
		for i, n := range sizes[:min(len(sizes), len(topicNames))] {
			w.sizes[topicNames[i]] = int(n % 20)
		}
		for i, b := range previous {
			topic := topicNames[i%len(topicNames)]
			before[topic] = append(before[topic], fmt.Sprint("m", b%14))
		}
		for _, assignor := range []group.Assignor{group.Sticky, group.Range, group.RoundRobin} {
			plan := assignor.Assign(w.members, w.sizes, before)
			w.check(t, plan)
			if assignor == group.Sticky {
				require.Equal(t, plan, group.Sticky.Assign(w.members, w.sizes, plan))
			}
		}
	})
}
