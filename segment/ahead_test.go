//go:build !explore

package segment_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// Whatever sizes records have, what the next few take has been fetched, up to the end of the segment.
func TestLog_FetchesAhead(t *testing.T) {
	const bytesLeast = segment.BytesAhead - segment.FetchEach
	const entriesLeast = segment.EntriesAhead - segment.FetchEach/segment.EntryBytes - 1
	for _, most := range []int{0, 1, 16, 64, 200, 3000} {
		l := segment.NewLog(segment.Config{SegmentBytes: 1 << 15})
		value := make([]byte, most)
		opened := 0
		back := false // something of this segment has been taken back
		for active := l.Active(); opened < 4; {
			n := rand.IntN(most + 1)
			switch rand.IntN(64) {
			case 0:
				l.Publish()
			case 1:
				l.Unstage()
				back = true
			case 2: // a run is not fetched ahead, what comes behind it is
				var r segment.Reservation
				require.NoError(t, l.ReserveRun(&r, 8, 8*most, most, 1))
				r.NextRun(8, n)
				require.True(t, l.StageRun(&r))
			}
			if rand.IntN(2) == 0 {
				require.NoError(t, l.Append(&segment.Record{Value: value[:n]}, 1))
			} else {
				_, err := l.Reserve(segment.Shape{Key: -1, Value: n}, 1)
				require.NoError(t, err)
			}
			if l.Active() != active {
				active, back = l.Active(), false
				opened++
			}
			if back {
				continue // it has been fetched before
			}
			bytes, index, ofBytes, ofIndex := l.Ahead()
			require.GreaterOrEqual(t, bytes, min(bytesLeast-n, ofBytes), "values of up to %d bytes, this one %d", most, n)
			require.GreaterOrEqual(t, index, min(entriesLeast, ofIndex), "values of up to %d bytes, this one %d", most, n)
			require.LessOrEqual(t, bytes, segment.BytesAhead, "not all of it at once")
			require.LessOrEqual(t, index, segment.EntriesAhead, "not all of it at once")
		}
	}
}
