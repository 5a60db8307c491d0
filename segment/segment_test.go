package segment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// A reader that found a segment just before it was dropped, and comes to pin it just after.
func TestSegment_DeadIsForGood(t *testing.T) {
	pool := segment.NewPool(0, 1<<20)
	l := segment.NewLog(segment.Config{SegmentRecords: 1, Pool: pool})
	puts(t, l, 2)
	s := l.Find(0)
	require.True(t, l.DropOldest())
	require.EqualValues(t, 4096, pool.Kept())
	for range 3 {
		require.False(t, s.Pin())
		require.False(t, s.Keep())
	}
}

// A pin, or a mark that a view is out, lasts over the drop; the segment is never reused after it, not even once the pin is
// gone.
func TestSegment_PinnedIsLeftToTheCollector(t *testing.T) {
	for name, hold := range map[string]func(segment.Stale) bool{
		"pin":            segment.Stale.Pin,
		"keep":           segment.Stale.Keep,
		"pin and keep":   func(s segment.Stale) bool { return s.Pin() && s.Keep() },
		"keep and unpin": func(s segment.Stale) bool { ok := s.Pin() && s.Keep(); s.Unpin(); return ok },
	} {
		t.Run(name, func(t *testing.T) {
			pool := segment.NewPool(0, 1<<20)
			l := segment.NewLog(segment.Config{SegmentRecords: 1, Pool: pool})
			puts(t, l, 2)
			s := l.Find(0)
			require.True(t, hold(s))
			require.True(t, l.DropOldest())
			require.Zero(t, pool.Kept())
			require.EqualValues(t, 4096, pool.Used())
			require.True(t, s.Pin(), "another that found it can still read it")
			s.Unpin()
			require.Zero(t, pool.Kept())
		})
	}
}
