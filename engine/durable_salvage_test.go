package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// TestDurable_SalvageKeepsPositions has a partition salvaged that a group and a subscription have positions in. What is sound keeps
// its offsets, so they stay where they were.
func TestDurable_SalvageKeepsPositions(t *testing.T) {
	for _, clean := range []bool{true, false} {
		m := vfs.NewMem()
		e := on(t, m, engine.Config{})
		top, err := e.CreateTopic("t", durable(engine.Always, 1))
		require.NoError(t, err)
		send(t, top, 1500)
		_, err = e.CreateGroup("g", engine.GroupConfig{Topics: []string{"t"}, Start: engine.Earliest(), Gap: engine.FailOnGap})
		require.NoError(t, err)
		require.NoError(t, e.ResetOffsets("g", "t", engine.At(1400), engine.ResetOptions{}))
		if clean {
			require.NoError(t, e.Close())
		} else {
			require.NoError(t, e.SavePositionsUnsafely())
			m = lost(m)
		}
		damage(t, m, top.ID())
		told := func(string, string, *engine.TruncatedError) { t.Error("told that a position was beyond the end") }
		for range 2 {
			e = on(t, m, engine.Config{Salvage: true, Hooks: engine.Hooks{Truncated: told}})
			g, err := e.Group("g")
			require.NoError(t, err)
			off, err := g.Committed("t", 0)
			require.NoError(t, err)
			assert.Equal(t, engine.Offset(1400), off)
			require.NoError(t, e.Close())
		}
	}
}
