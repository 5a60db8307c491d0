package cursor_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/cursor"
)

// TestSet_Model plays random calls against a slice of members and a slice of positions.
func TestSet_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 6
		var s cursor.Set
		var cursors [n]cursor.Cursor
		var positions [n]uint64
		var members []int
		which := rapid.IntRange(0, n-1)
		position := rapid.OneOf(rapid.Uint64Range(0, 5), rapid.Uint64())
		t.Repeat(map[string]func(*rapid.T){
			"Add": func(t *rapid.T) {
				i := which.Draw(t, "i")
				require.Equal(t, !slices.Contains(members, i), s.Add(&cursors[i]))
				if !slices.Contains(members, i) {
					members = append(members, i)
				}
			},
			"Remove": func(t *rapid.T) {
				i := which.Draw(t, "i")
				require.Equal(t, slices.Contains(members, i), s.Remove(&cursors[i]))
				members = slices.DeleteFunc(members, func(j int) bool { return i == j })
			},
			"Raise": func(t *rapid.T) {
				i, p := which.Draw(t, "i"), position.Draw(t, "p")
				require.Equal(t, p > positions[i], cursors[i].Raise(p))
				positions[i] = max(positions[i], p)
			},
			"Store": func(t *rapid.T) {
				i, p := which.Draw(t, "i"), position.Draw(t, "p")
				if p%2 == 0 {
					cursors[i].Store(p)
				} else {
					cursors[i].StoreRelease(p)
				}
				positions[i] = p
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(members), s.Len())
				low, holder, ok := s.Min()
				require.Equal(t, len(members) > 0, ok)
				if !ok {
					require.Nil(t, holder)
					return
				}
				lowest := slices.MinFunc(members, func(i, j int) int {
					if positions[i] < positions[j] {
						return -1
					}
					return 1 // the first of equals
				})
				for _, i := range members {
					if positions[i] == positions[lowest] {
						lowest = i
						break
					}
				}
				require.Equal(t, positions[lowest], low)
				require.Same(t, &cursors[lowest], holder)
			},
		})
	})
}
