package engine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestOrdered_Model compares ordered with a slice.
func TestOrdered_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o ordered[int, int]
		var want []int
		key := func() int { return rapid.IntRange(1, 20).Draw(t, "key") }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, len(want), o.size())
				require.Equal(t, want, slices.AppendSeq([]int(nil), o.all()))
				k := key()
				require.Equal(t, slices.Contains(want, k), o.get(k) == k)
				for v := range o.all() {
					require.Equal(t, want[0], v)
					break
				}
			},
			"add": func(t *rapid.T) {
				k := key()
				if slices.Contains(want, k) {
					require.Panics(t, func() { o.add(k, k) })
					return
				}
				o.add(k, k)
				want = append(want, k)
			},
			"remove": func(t *rapid.T) {
				k := key()
				i := slices.Index(want, k)
				require.Equal(t, i >= 0, o.remove(k))
				if i >= 0 {
					want = slices.Delete(want, i, i+1)
				}
				if len(want) == 0 {
					want = nil
				}
			},
		})
	})
}

// TestOrdered_Steps removes many in several orders, and counts how many places are gone through for that.
func TestOrdered_Steps(t *testing.T) {
	const n = 1 << 14
	for name, next := range map[string]func(i int) int{
		"from the front": func(i int) int { return i },
		"from the end":   func(i int) int { return n - 1 - i },
		"here and there": func(i int) int { return i * 7919 % n },
	} {
		t.Run(name, func(t *testing.T) {
			var o ordered[int, int]
			for i := range n {
				o.add(i, i)
			}
			steps := 0
			for i := range n {
				before := len(o.list)
				require.True(t, o.remove(next(i)))
				if len(o.list) < before {
					steps += before
				}
			}
			require.Zero(t, o.size())
			require.LessOrEqual(t, steps, 2*n)
		})
	}
}
