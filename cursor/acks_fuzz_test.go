package cursor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/cursor"
)

// FuzzAcks takes each byte for a call, and compares the floor with that of a set.
func FuzzAcks(f *testing.F) {
	f.Add([]byte{1, 2, 3, 0})
	f.Add([]byte{199, 63, 64, 65, 0, 220, 250, 10})
	f.Fuzz(func(t *testing.T, calls []byte) {
		a := &cursor.Acks{MaxAhead: 150}
		m := &acksModel{done: map[uint64]bool{}}
		for _, c := range calls {
			switch n := uint64(c); {
			case c < 200:
				first, err := a.Ack(m.floor + n)
				require.Equal(t, n >= 150, err != nil)
				if err == nil {
					require.Equal(t, !m.done[m.floor+n], first)
					m.done[m.floor+n] = true
					m.settle()
				}
			case c < 250:
				to := m.floor + 4*(n-200)
				require.Equal(t, m.raise(to), a.Raise(to))
			default:
				m.floor = m.floor/2 + n
				clear(m.done)
				a.Reset(m.floor)
			}
			require.Equal(t, m.floor, a.Floor())
			require.Equal(t, len(m.done), a.Ahead())
		}
	})
}
