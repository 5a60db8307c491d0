package cursor_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/cursor"
)

// acksModel is what Acks is meant to be: a set of offsets and the first one that is not in it.
type acksModel struct {
	floor uint64
	done  map[uint64]bool // at or above the floor
	most  uint64
}

func (m *acksModel) settle() {
	for m.done[m.floor] {
		delete(m.done, m.floor)
		m.floor++
	}
}

func (m *acksModel) raise(to uint64) (passed uint64) {
	for m.floor < to {
		if !m.done[m.floor] {
			passed++
		}
		delete(m.done, m.floor)
		m.floor++
	}
	m.settle()
	return passed
}

// TestAcks_Model acknowledges, raises and resets at random, near multiples of the word and of the ring above all.
func TestAcks_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int{0, 1, 2, 63, 64, 65, 127, 128, 200, 1000}).Draw(t, "MaxAhead")
		a := &cursor.Acks{MaxAhead: most}
		m := &acksModel{done: map[uint64]bool{}, most: uint64(most)}
		if most == 0 {
			m.most = cursor.DefaultMaxAhead
		}
		reach := uint64(min(m.most, 300))
		t.Repeat(map[string]func(*rapid.T){
			"ack": func(t *rapid.T) {
				off := m.floor + rapid.Uint64Range(0, reach+2).Draw(t, "above the floor")
				first, err := a.Ack(off)
				if off-m.floor >= m.most {
					require.ErrorIs(t, err, cursor.ErrTooFarAhead)
					require.False(t, first)
					return
				}
				require.NoError(t, err)
				require.Equal(t, !m.done[off], first)
				m.done[off] = true
				m.settle()
			},
			"ack a run backwards": func(t *rapid.T) {
				n := rapid.Uint64Range(1, min(reach, 140)).Draw(t, "records")
				from := m.floor
				for off := from + n; off > from; off-- {
					first, err := a.Ack(off - 1)
					require.NoError(t, err)
					require.Equal(t, off-1 >= m.floor && !m.done[off-1], first)
					m.done[off-1] = true
					m.settle()
				}
				for off := range m.done { // what the model has been told below its floor
					if off < m.floor {
						delete(m.done, off)
					}
				}
			},
			"ack below the floor": func(t *rapid.T) {
				if m.floor == 0 {
					t.Skip("nothing is below it")
				}
				first, err := a.Ack(m.floor - rapid.Uint64Range(1, min(m.floor, 70)).Draw(t, "below the floor"))
				require.NoError(t, err)
				require.False(t, first)
			},
			"raise": func(t *rapid.T) {
				to := m.floor + rapid.Uint64Range(0, 200).Draw(t, "above the floor") - min(m.floor, 10)
				require.Equal(t, m.raise(to), a.Raise(to))
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "one in five") > 0 {
					t.Skip("not now")
				}
				m.floor = rapid.OneOf(rapid.Uint64Range(0, 500), rapid.Uint64Range(math.MaxInt64-1000, math.MaxInt64)).Draw(t, "floor")
				clear(m.done)
				a.Reset(m.floor)
			},
			"": func(t *rapid.T) {
				require.Equal(t, m.floor, a.Floor())
				require.Equal(t, len(m.done), a.Ahead())
				require.Equal(t, m.floor+m.most, a.Limit())
				for off := m.floor - min(m.floor, 2); off < m.floor+reach+2; off++ {
					require.Equal(t, off < m.floor || m.done[off], a.Done(off), "offset %d, floor %d", off, m.floor)
				}
			},
		})
	})
}
