package segment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// The committed word, what readers look at besides it, and what the appender writes for each record lie on different cache
// lines.
func TestLog_Layout(t *testing.T) {
	v := segment.Layout
	require.GreaterOrEqual(t, v.AppenderStart, v.FirstEnd+atomicx.PadSize)
	require.GreaterOrEqual(t, v.CommittedStart, v.AppenderEnd+atomicx.PadSize)
	require.GreaterOrEqual(t, v.LogEnd, v.CommittedStart+8+atomicx.PadSize)
	require.EqualValues(t, 16, v.EntrySize, "the memory bound rests on this")
	require.LessOrEqual(t, v.ReaderSize, uintptr(128))
	require.LessOrEqual(t, v.SegmentSize, uintptr(128))
}
