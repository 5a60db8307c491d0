package partition_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
)

// With the ring's mark a slot takes two cache lines, and what producers count is away from what they all read, and that from
// what the holder of the role writes.
func TestPartition_Layout(t *testing.T) {
	l := partition.Layout
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.EqualValues(t, 128, l.Slot+8)
	}
	require.GreaterOrEqual(t, l.State-l.WakeEnd, atomicx.PadSize)
	require.GreaterOrEqual(t, l.CtlMu-l.StuckOnEnd, atomicx.PadSize)
	require.GreaterOrEqual(t, l.Failed-l.BlockedEnd, atomicx.PadSize)
	require.Less(t, l.PartitionEnd, uintptr(4096), "there may be many")
}
