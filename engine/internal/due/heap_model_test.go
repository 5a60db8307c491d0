package due_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/due"
)

// entry is a key of the model: a list in the order in which times were given, sorted by time.
type entry struct {
	key int
	at  int64
}

// TestHeap_Model makes random calls and compares with a sorted list: the order, and each key's idea of its place.
func TestHeap_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			places = map[int]int{}
			h      = due.New(func(key, place int) { places[key] = place })
			model  []entry
			keys   int
			times  = rapid.OneOf(rapid.Int64Range(0, 4), rapid.Int64Range(0, 4), rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
		)
		add := func(e entry) {
			model = append(model, e)
			slices.SortStableFunc(model, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
		}
		pick := func(t *rapid.T) int {
			if len(model) == 0 {
				t.Skip("empty")
			}
			return rapid.IntRange(0, len(model)-1).Draw(t, "which")
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				keys++
				at := times.Draw(t, "at")
				h.Push(keys, at)
				add(entry{keys, at})
			},
			"move": func(t *rapid.T) {
				i := pick(t)
				key, at := model[i].key, times.Draw(t, "at")
				h.Move(places[key], at)
				model = slices.Delete(model, i, i+1)
				add(entry{key, at})
			},
			"remove": func(t *rapid.T) {
				i := pick(t)
				key := model[i].key
				h.Remove(places[key])
				require.Zero(t, places[key])
				model = slices.Delete(model, i, i+1)
			},
			"pop": func(t *rapid.T) {
				now := times.Draw(t, "now")
				key, ok := h.Pop(now)
				require.Equal(t, len(model) > 0 && model[0].at <= now, ok)
				if ok {
					require.Equal(t, model[0].key, key)
					require.Zero(t, places[key])
					model = model[1:]
				}
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "one in ten") > 0 {
					t.Skip("not now")
				}
				h.Clear()
				for _, e := range model {
					require.Zero(t, places[e.key])
				}
				model = nil
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(model), h.Len())
				at, ok := h.Next()
				require.Equal(t, len(model) > 0, ok)
				if ok {
					require.Equal(t, model[0].at, at)
				}
				taken := map[int]bool{}
				for _, e := range model {
					place := places[e.key]
					require.False(t, taken[place], "two keys at place %d", place)
					require.True(t, 1 <= place && place <= len(model), "place %d", place)
					taken[place] = true
				}
			},
		})
	})
}
