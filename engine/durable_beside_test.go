package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// TestDurable_ReadOnlyBesideATrim opens an engine for reading only, and before each operation of that in turn the owner drops
// what is oldest: the topic is there all the same, and what it has is read.
func TestDurable_ReadOnlyBesideATrim(t *testing.T) {
	for n := 1; ; n++ {
		m := vfs.NewMem()
		e := on(t, m, engine.Config{})
		top, err := e.CreateTopic("t", durable(engine.Always, 1))
		require.NoError(t, err)
		send(t, top, 1500)
		p, err := top.Partition(0)
		require.NoError(t, err)
		reached, opened := false, false
		nth := vfs.Nth(n, vfs.Fault{}, vfs.OpList, vfs.OpOpen, vfs.OpRead)
		seen := on(t, vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			if opened || nth(o) == nil {
				return nil
			}
			reached = true
			require.NoError(t, p.TruncateBefore(background, 1300))
			return nil
		}), engine.Config{ReadOnly: true}.WithWarm(-1))
		opened = true
		at, err := topicOf(t, seen, "t").Partition(0)
		require.NoError(t, err, "before operation %d", n)
		require.Equal(t, engine.Offset(1500), at.Next())
		next := at.First()
		for off := range at.Records(next) {
			require.Equal(t, next, off)
			next++
		}
		require.Equal(t, at.Next(), next)
		require.NoError(t, seen.Close())
		require.NoError(t, e.Close())
		if !reached {
			return
		}
	}
}
