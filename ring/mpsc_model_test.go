package ring_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/ring"
)

// model is what a ring is meant to be, written so that nobody can get it wrong: a list of claims and two flags.
type model struct {
	capacity     int
	claims       []claimed // made and not released, oldest first
	seen         int       // how many of them the consumer has looked at
	idle, closed bool
	next         int // the next value
}

type claimed struct {
	pos    uint64
	values []int
	ready  bool
}

func (m *model) used() (n int) {
	for _, c := range m.claims {
		n += len(c.values)
	}
	return n
}

// claim returns the outcome that a claim of n slots must have.
func (m *model) claim(n int) ring.Outcome {
	switch {
	case m.closed:
		return ring.Closed
	case m.used()+n > m.capacity:
		return ring.Full
	case m.idle:
		m.idle = false
		return ring.ClaimedIdle
	}
	return ring.Claimed
}

// unready returns the claims that are not ready.
func (m *model) unready() (list []*claimed) {
	for i := range m.claims {
		if !m.claims[i].ready {
			list = append(list, &m.claims[i])
		}
	}
	return list
}

func TestMPSC_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{capacity: 1 << rapid.IntRange(1, 4).Draw(t, "capacity bits")}
		start := rapid.Uint64().Draw(t, "start") &^ (ring.PosStep - 1)
		if rapid.Bool().Draw(t, "near the wrap") {
			start = math.MaxUint64 - ring.PosStep + 1 - start%64
		}
		r := ring.NewAt[int](m.capacity, start)
		slots := uint64(0) // claimed so far
		done := make(chan struct{})
		close(done)

		claim := func(t *rapid.T, try func(n int) (uint64, ring.Outcome)) {
			n := rapid.IntRange(1, m.capacity).Draw(t, "n")
			want := m.claim(n)
			pos, o := try(n)
			require.Equal(t, want, o)
			if o != ring.Claimed && o != ring.ClaimedIdle {
				require.Zero(t, pos)
				return
			}
			require.Equal(t, start+slots*ring.PosStep, pos)
			slots += uint64(n)
			c := claimed{pos: pos}
			for i := range n {
				m.next++
				c.values = append(c.values, m.next)
				*r.Slot(pos, i) = m.next
			}
			m.claims = append(m.claims, c)
		}
		t.Repeat(map[string]func(*rapid.T){
			"TryClaim": func(t *rapid.T) { claim(t, r.TryClaim) },
			"Claim": func(t *rapid.T) {
				claim(t, func(n int) (uint64, ring.Outcome) {
					pos, o, ok := r.Claim(n, done)
					require.Equal(t, o != ring.Full, ok)
					return pos, o
				})
			},
			"Ready": func(t *rapid.T) {
				list := m.unready()
				if len(list) == 0 {
					t.Skip("nothing to do")
				}
				c := rapid.SampledFrom(list).Draw(t, "claim")
				r.Ready(c.pos)
				c.ready = true
			},
			"Look": func(t *rapid.T) {
				if m.seen == len(m.claims) {
					// Where no claim begins yet nothing is ready, whatever mark is left there.
					require.False(t, r.IsReady(r.Advance(start, int(slots))))
					return
				}
				c := m.claims[m.seen]
				require.Equal(t, c.ready, r.IsReady(c.pos))
				if !c.ready {
					return
				}
				for i, v := range c.values {
					require.Equal(t, v, *r.Slot(c.pos, i))
				}
				m.seen++
			},
			"Release": func(t *rapid.T) {
				n := rapid.IntRange(0, m.seen).Draw(t, "claims")
				to := r.Head()
				for _, c := range m.claims[:n] {
					require.Equal(t, to, c.pos)
					to = r.Advance(to, len(c.values))
				}
				r.Release(to)
				m.claims = m.claims[n:]
				m.seen -= n
			},
			"Sleep": func(t *rapid.T) {
				want := len(m.claims) == 0 && !m.closed
				require.Equal(t, want, r.Sleep())
				m.idle = m.idle || want
			},
			"TakeIdle": func(t *rapid.T) {
				require.Equal(t, m.idle, r.TakeIdle())
				m.idle = false
			},
			"Close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "dice") != 0 {
					t.Skip("seldom")
				}
				require.Equal(t, m.idle, r.Close())
				m.idle, m.closed = false, true
			},
			"": func(t *rapid.T) {
				require.Equal(t, m.used(), r.Len())
				require.Equal(t, len(m.claims) > 0, r.Claimed())
				require.Equal(t, m.closed, r.Closed())
				require.Zero(t, r.Waiting())
				require.False(t, r.Held())
				if len(m.claims) > 0 {
					require.Equal(t, m.claims[0].pos, r.Head())
				}
			},
		})
	})
}
