package segment_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/segment"
)

// TestLogEnsure_Keeps checks that what Ensure has promised holds, in logs of any history: the records that it was asked for
// can be staged while the pool gives nothing; append times never go back; and everything can be dropped again.
func TestLogEnsure_Keeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := segment.NewPool(64<<10, 32<<10)
		l := segment.NewLog(segment.Config{SegmentBytes: 8 << 10, SegmentRecords: rapid.IntRange(0, 3).Draw(t, "segment records"), Pool: pool})
		other := segment.NewLog(segment.Config{SegmentBytes: 4 << 10, Pool: pool}) // takes memory away
		now := int64(1e18)
		value := func(n int) *segment.Record { return &segment.Record{Value: make([]byte, n)} }
		t.Repeat(map[string]func(*rapid.T){
			"ensure": func(t *rapid.T) {
				records, size := rapid.IntRange(1, 5).Draw(t, "records"), rapid.IntRange(0, 5000).Draw(t, "bytes")
				now += rapid.Int64Range(0, 1).Draw(t, "later")
				if err := l.Ensure(int64(records*size), records, now); err != nil {
					require.ErrorIs(t, err, segment.ErrNoMemory)
					return
				}
				for other.Append(value(4000), 0) == nil {
				}
				require.NoError(t, other.Publish())
				if rapid.Bool().Draw(t, "in vain") {
					return
				}
				for range records {
					require.NoError(t, l.Append(value(size), now))
				}
				require.NoError(t, l.Publish())
			},
			"append": func(t *rapid.T) {
				now += rapid.Int64Range(0, 1).Draw(t, "later")
				if l.Append(value(rapid.IntRange(0, 9000).Draw(t, "bytes")), now) == nil {
					require.NoError(t, l.Publish())
				}
			},
			"give":  func(*rapid.T) { drain(other) },
			"drop":  func(*rapid.T) { l.DropOldest() },
			"roll":  func(*rapid.T) { l.Roll() },
			"stage": func(t *rapid.T) { _ = l.Append(value(100), now); l.Unstage() },
			"": func(t *rapid.T) {
				first, next := l.Snapshot()
				oldest, ok := l.Oldest()
				require.Equal(t, first < next, ok, "%v of [%d, %d)", oldest, first, next)
				last := int64(0)
				for off := first; off < next; off++ {
					at, ok := l.TimeOf(off)
					require.True(t, ok)
					require.LessOrEqual(t, last, at)
					require.LessOrEqual(t, at, now)
					last = at
				}
			},
		})
		drain(l)
		drain(other)
		require.Zero(t, pool.Used())
	})
}

// TestLogEnsure_OfNewLog checks that a log that never had a record takes one at any time once memory was ensured: the
// segment that was opened for it knows the time.
func TestLogEnsure_OfNewLog(t *testing.T) {
	pool := segment.NewPool(4<<10, 0)
	l := segment.NewLog(segment.Config{Pool: pool})
	const now = int64(1.8e18) // 2027
	require.NoError(t, l.Ensure(10, 1, now))
	put(t, l, now, "0123456789")
	at, ok := l.TimeOf(0)
	require.True(t, ok)
	require.Equal(t, now, at)

	var large *segment.SizeError
	require.ErrorAs(t, l.Ensure(4<<10, 1, now), &large)
	require.EqualValues(t, 4<<10, pool.Largest())
	require.Zero(t, segment.NewPool(0, 0).Largest())
	require.ErrorIs(t, l.Ensure(math.MaxInt64, 1, now), segment.ErrTooLarge)
	require.ErrorIs(t, l.Ensure(0, math.MaxInt, now), segment.ErrTooLarge)
	require.ErrorIs(t, l.Ensure(4001, 6, now), segment.ErrTooLarge, "the index entries count")
	require.NoError(t, l.Ensure(0, 0, now))
}

func TestLogEnsure_AtTheEnd(t *testing.T) {
	pool := segment.NewPool(0, 0)
	last := segment.NewLog(segment.Config{First: segment.MaxOffset - 1, Pool: pool})
	require.NoError(t, last.Ensure(10, 5, 1), "one more is left")
	puts(t, last, 1)
	require.ErrorIs(t, last.Ensure(1, 1, 1), segment.ErrExhausted)
	_, err := last.Reserve(segment.Shape{}, 1)
	require.ErrorIs(t, err, segment.ErrExhausted)
	drain(last)

	sealed := segment.NewLog(segment.Config{Pool: pool})
	sealed.Seal()
	require.NoError(t, sealed.Append(&segment.Record{}, 1))
	require.ErrorIs(t, sealed.Publish(), segment.ErrSealed)
	require.ErrorIs(t, sealed.Ensure(1, 1, 1), segment.ErrSealed)
	require.Zero(t, pool.Used())
}
