package group_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/group"
)

// bytesEach returns how much memory each of many things that make returns keeps.
func bytesEach[T any](create func() *T) int {
	const n = 2000
	keep := make([]*T, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range keep {
		keep[i] = create()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(keep)
	return (int(after.HeapAlloc) - int(before.HeapAlloc)) / n
}

// TestIdle_TakesLittleMemory: a group of which nothing is going on must cost less than 4 KiB in the engine, and this is its
// share.
func TestIdle_TakesLittleMemory(t *testing.T) {
	assigned := func(members ...string) func() *group.Assigned {
		return func() *group.Assigned {
			g := group.NewAssigned(group.AssignedConfig{}, 0)
			_, _ = g.SetPartitions("t", 1, 0)
			for _, name := range members {
				_, _, _ = g.Join(group.Member{Name: name, Topics: []string{"t"}}, 0)
			}
			return g
		}
	}
	for _, x := range []struct {
		name  string
		bytes int
		limit int
	}{
		{"an assigned group with a partition", bytesEach(assigned()), 1000},
		{"with a member", bytesEach(assigned("m")), 2000},
		{"a shared partition", bytesEach(func() *group.Shared { return group.NewShared(group.SharedConfig{}, 0) }), 600},
		{"in order", bytesEach(func() *group.Shared { return group.NewShared(group.SharedConfig{InOrder: true}, 0) }), 700},
		{"with a record", bytesEach(func() *group.Shared {
			s := group.NewShared(group.SharedConfig{}, 0)
			s.Acquire(alice, 1, 0)
			return s
		}), 1600},
	} {
		t.Logf("%s: %d bytes", x.name, x.bytes)
		assert.Less(t, x.bytes, x.limit, x.name)
	}
}
