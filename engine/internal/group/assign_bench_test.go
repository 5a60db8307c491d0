package group_test

import (
	"fmt"
	"testing"

	"github.com/leatlog/leat/engine/internal/group"
)

// BenchmarkAssignor measures a plan for a thousand partitions and a hundred members of which one has just joined.
func BenchmarkAssignor(b *testing.B) {
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("m%03d", i)
	}
	one := map[string]int{"t": 1000}
	many, topics := map[string]int{}, []string{}
	for i := range 1000 {
		topics = append(topics, fmt.Sprintf("t%03d", i))
		many[topics[i]] = 1
	}
	for _, assignor := range []group.Assignor{group.Sticky, group.Range, group.RoundRobin} {
		b.Run(fmt.Sprintf("assignor=%v/topics=1", assignor), func(b *testing.B) {
			previous := assignor.Assign(all(names[1:], "t"), one, nil)
			for b.Loop() {
				assignor.Assign(all(names, "t"), one, previous)
			}
		})
		b.Run(fmt.Sprintf("assignor=%v/topics=1000", assignor), func(b *testing.B) {
			previous := assignor.Assign(all(names[1:], topics...), many, nil)
			for b.Loop() {
				assignor.Assign(all(names, topics...), many, previous)
			}
		})
	}
	// Half of what one has moves to another.
	for _, topics := range []int{1, 1 << 14} {
		b.Run(fmt.Sprintf("assignor=sticky/partitions=16384/topics=%d", topics), func(b *testing.B) {
			sizes, names := map[string]int{}, []string{}
			for i := range topics {
				names = append(names, fmt.Sprintf("t%05d", i))
				sizes[names[i]] = 1 << 14 / topics
			}
			previous := group.Sticky.Assign(all([]string{"a"}, names...), sizes, nil)
			for b.Loop() {
				group.Sticky.Assign(all([]string{"a", "b"}, names...), sizes, previous)
			}
		})
	}
	b.Run("assignor=sticky/topics=1000/wanted=some", func(b *testing.B) {
		members := all(names)
		for i := range members {
			members[i].Topics = topics[i : 900+i]
		}
		for b.Loop() {
			group.Sticky.Assign(members, many, nil)
		}
	})
}
