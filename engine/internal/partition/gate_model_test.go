package partition_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/partition"
)

// TestGates_Model adds, removes and raises gates at random, and asks for those below an offset that rises and sometimes does not:
// there is an answer if and only if some gate is below, and it is one of these.
func TestGates_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s partition.Gates
		var members []*partition.Gate
		end := uint64(0)
		some := func(t *rapid.T) int {
			if len(members) == 0 {
				t.Skip("there is none")
			}
			return rapid.IntRange(0, len(members)-1).Draw(t, "which")
		}
		ask := func(t *rapid.T, end uint64) {
			below := map[*partition.Gate]bool{}
			for _, g := range members {
				if g.Load() < end {
					below[g] = true
				}
			}
			if g := s.Below(end); g == nil {
				require.Empty(t, below)
			} else {
				require.True(t, below[g], "a gate that is not below, or not there")
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				g := &partition.Gate{Gating: true}
				g.Raise(rapid.Uint64Range(0, end+3).Draw(t, "position"))
				s.Add(g)
				members = append(members, g)
			},
			"remove": func(t *rapid.T) {
				i := some(t)
				s.Remove(members[i])
				members = append(members[:i], members[i+1:]...)
			},
			"raise": func(t *rapid.T) {
				g := members[some(t)]
				g.Raise(g.Load() + rapid.Uint64Range(0, 5).Draw(t, "by"))
			},
			"ask": func(t *rapid.T) {
				end += rapid.Uint64Range(0, 3).Draw(t, "on")
				ask(t, end)
			},
			"ask back": func(t *rapid.T) { ask(t, rapid.Uint64Range(0, end).Draw(t, "end")) },
			"": func(t *rapid.T) {
				passed, all := s.Passed()
				require.ElementsMatch(t, members, all)
				require.LessOrEqual(t, passed, len(all))
			},
		})
	})
}

// TestGates_WalkGoesOn: while a segment waits to be dropped the gates are walked over once, however often somebody looks, and
// those that are beyond it by far are not walked over for the next.
func TestGates_WalkGoesOn(t *testing.T) {
	const n = 100
	var s partition.Gates
	gates := make([]*partition.Gate, n)
	for i := range gates {
		gates[i] = &partition.Gate{Gating: true}
		s.Add(gates[i])
	}
	for i, g := range gates { // each of them, one after the other, is what the segment that ends at 8 waits for
		require.Same(t, g, s.Below(8))
		require.Same(t, g, s.Below(8))
		passed, _ := s.Passed()
		require.Equal(t, i, passed)
		g.Raise(1000)
	}
	require.Nil(t, s.Below(8))
	slow := &partition.Gate{Gating: true}
	slow.Raise(8)
	s.Add(slow)
	for end := uint64(16); end < 1000; end += 8 {
		require.Same(t, slow, s.Below(end))
		passed, _ := s.Passed()
		require.Equal(t, n, passed, "all others have passed, and still have at %d", end)
		slow.Raise(end)
	}
	s.Remove(gates[3]) // its place goes to one that has passed, and that one's to the slow one
	require.Same(t, slow, s.Below(1000))
	passed, _ := s.Passed()
	require.Equal(t, n-1, passed)
	slow.Raise(1000)
	require.Nil(t, s.Below(1000))
	require.NotNil(t, s.Below(1001))
}

// Adding a gate, or taking one out, leaves the next look at the limits where it is or too early, never too late: after each
// publication nobody is over his limit, and everybody else is there.
func TestGate_ManyLimits(t *testing.T) {
	p := start(t, setup{})
	rnd := rand.New(rand.NewPCG(7, 7))
	alive, lowest := map[*partition.Gate]bool{}, map[*partition.Gate]uint64{}
	out := 0
	for range rounds(2000) {
		_, next := p.Snapshot()
		switch rnd.IntN(4) {
		case 0:
			g := &partition.Gate{Gating: rnd.IntN(2) == 0, MaxLag: 1 + rnd.Uint64N(20)}
			g.Evicted = func() {
				_, next := p.Snapshot()
				require.True(t, alive[g])
				require.Greater(t, uint64(next)-lowest[g], g.MaxLag)
				delete(alive, g)
				out++
			}
			_, err := p.AddGate(g, latest)
			require.NoError(t, err)
			alive[g], lowest[g] = true, uint64(next)
		case 1:
			for g := range alive {
				if rnd.IntN(3) == 0 {
					p.RemoveGate(g)
					p.RemoveGate(g)
					delete(alive, g)
				} else {
					lowest[g] = uint64(next) - rnd.Uint64N(uint64(next)-lowest[g]+1)
					g.Advance(lowest[g])
				}
				break
			}
		default:
			publish(t, p, 1)
		}
		_, next = p.Snapshot()
		for g := range alive {
			require.LessOrEqual(t, uint64(next)-lowest[g], g.MaxLag)
		}
		_, limited := p.EvictAt()
		require.Equal(t, len(alive), limited)
	}
	require.NotZero(t, out)
	for g := range alive {
		p.RemoveGate(g)
	}
	publish(t, p, 100)
	at, limited := p.EvictAt()
	require.EqualValues(t, uint64(partition.NoEviction), at)
	require.Zero(t, limited)
}
