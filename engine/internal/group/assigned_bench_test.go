package group_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leatlog/leat/engine/internal/group"
)

// BenchmarkAssigned_Rebalance measures all of the coordinator's work when one member joins a hundred others with a thousand
// partitions, each that moves is given back, and when it leaves again.
func BenchmarkAssigned_Rebalance(b *testing.B) {
	g := group.NewAssigned(group.AssignedConfig{RevokeTimeout: time.Second}, 0)
	var moved int
	release := func(actions []group.Action, err error) {
		for ; len(actions) > 0; actions = actions[1:] {
			if a := actions[0]; a.Kind == group.Revoke {
				moved++
				more, err := g.Released(a.Partition, a.Member, a.Generation, 0)
				if err != nil {
					b.Fatal(err)
				}
				actions = append(actions, more...)
			}
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	actions, err := g.SetPartitions("t", 1000, 0)
	release(actions, err)
	join := func(name string) group.MemberID {
		id, actions, err := g.Join(group.Member{Name: name, Topics: []string{"t"}}, 0)
		release(actions, err)
		return id
	}
	for i := range 99 {
		join(fmt.Sprintf("m%02d", i))
	}
	moved = 0
	n := 0
	for b.Loop() {
		id := join("last")
		actions, err := g.Leave(id, 0)
		release(actions, err)
		n++
	}
	b.ReportMetric(float64(moved)/float64(n), "moves/op")
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
