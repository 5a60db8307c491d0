package partition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// What comes while a reader stays away is in its window afterwards; one that may be put out for its lag does not look away.
func TestChase_Stay(t *testing.T) {
	atomicx.NoteProcs()
	away := 100
	if atomicx.OneProc() {
		away = 2 // nobody could publish meanwhile
	}
	// stay returns how many records a reader has that has found a few eight times, and this time, and of which more have come meanwhile.
	stay := func(g *partition.Gate, waited int64, most int) int {
		l := segment.NewLog(segment.Config{})
		publish := func(n int) {
			for range n {
				require.NoError(t, l.Append(&segment.Record{Value: []byte("x")}, 1))
			}
			require.NoError(t, l.Publish())
		}
		var r segment.Reader
		var c partition.Chase
		var rec segment.Record
		r.Init(l)
		defer r.Close()
		for range 8 {
			publish(1)
			require.Equal(t, segment.Ready, r.Refill())
			c.Stay(&r, g, waited, most)
			require.Equal(t, 1, r.Window(), "too soon")
			require.True(t, r.Next(&rec))
		}
		publish(2)
		require.Equal(t, segment.Ready, r.Refill())
		publish(98)
		c.Stay(&r, g, waited, most)
		return r.Window()
	}
	const most = 4096
	require.Equal(t, away, stay(nil, 0, most))
	require.Equal(t, away, stay(&partition.Gate{Gating: true}, 0, most), "there is no lag that is too much")
	require.Equal(t, away, stay(&partition.Gate{MaxLag: 1 << 40}, 0, most))
	require.Equal(t, away, stay(&partition.Gate{MaxLag: 1024}, 0, most))
	require.Equal(t, 2, stay(&partition.Gate{MaxLag: 1023}, 0, most), "it might lag by too much")
	require.Equal(t, 2, stay(&partition.Gate{MaxLag: 1}, 0, most))
	require.Equal(t, 2, stay(nil, 0, 2), "as many as it wants")
	require.Equal(t, 2, stay(nil, 1e6, most), "they come slowly")
}
