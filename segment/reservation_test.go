package segment_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// reserve returns a reservation in a log of its own.
func reserve(t *testing.T, records, bytes int) (*segment.Log, *segment.Reservation) {
	t.Helper()
	l := segment.NewLog(segment.Config{Pool: segment.NewPool(0, 1<<20).Poison()})
	var r segment.Reservation
	require.NoError(t, l.ReserveRun(&r, records, bytes, 50, 1))
	return l, &r
}

// TestReservation_Refuses: what there is no room for is nil, is noted, and makes everything else nil as well only if there is no room.
func TestReservation_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		ask  func(r *segment.Reservation) []byte
		want segment.OverrunError
	}{
		"bytes":         {func(r *segment.Reservation) []byte { r.Next(40); return r.Next(25) }, segment.OverrunError{Size: 25, Left: 24, Records: 2}},
		"a record":      {func(r *segment.Reservation) []byte { return r.Next(51) }, segment.OverrunError{Size: 51, Left: 50, Records: 3}},
		"key and value": {func(r *segment.Reservation) []byte { return r.NextKey(make([]byte, 26), 25) }, segment.OverrunError{Size: 51, Left: 50, Records: 3}},
		"negative":      {func(r *segment.Reservation) []byte { return r.Next(-1) }, segment.OverrunError{Size: -1, Left: 50, Records: 3}},
		"negative, key": {func(r *segment.Reservation) []byte { return r.NextKey([]byte("k"), -1) }, segment.OverrunError{Size: -1, Left: 50, Records: 3}},
		"most":          {func(r *segment.Reservation) []byte { return r.Next(math.MaxInt) }, segment.OverrunError{Size: math.MaxInt, Left: 50, Records: 3}},
		"most, key":     {func(r *segment.Reservation) []byte { return r.NextKey([]byte("k"), math.MaxInt) }, segment.OverrunError{Size: math.MaxInt, Left: 50, Records: 3}},
		"records": {func(r *segment.Reservation) []byte {
			for range 3 {
				r.Next(0)
			}
			return r.Next(0)
		}, segment.OverrunError{Left: 50}},
		"a run":          {func(r *segment.Reservation) []byte { r.Next(1); return r.NextRun(2, 32) }, segment.OverrunError{Size: 32, Left: 63, Records: 2, Run: 2}},
		"a run's record": {func(r *segment.Reservation) []byte { return r.NextRun(1, 51) }, segment.OverrunError{Size: 51, Left: 50, Records: 3, Run: 1}},
		"a run too long": {func(r *segment.Reservation) []byte { return r.NextRun(4, 0) }, segment.OverrunError{Left: 64, Records: 3, Run: 4}},
		"a run of most":  {func(r *segment.Reservation) []byte { return r.NextRun(math.MaxInt, math.MaxInt) }, segment.OverrunError{Size: math.MaxInt, Left: 64, Records: 3, Run: math.MaxInt}},
		"a run of none":  {func(r *segment.Reservation) []byte { return r.NextRun(0, 1) }, segment.OverrunError{Size: 1, Left: 64, Records: 3}},
		"a run below":    {func(r *segment.Reservation) []byte { return r.NextRun(-1, 1) }, segment.OverrunError{Size: 1, Left: 64, Records: 3, Run: -1}},
		"a run negative": {func(r *segment.Reservation) []byte { return r.NextRun(1, -1) }, segment.OverrunError{Size: -1, Left: 50, Records: 3, Run: 1}},
		"shrink nothing": {func(r *segment.Reservation) []byte { r.Shrink(0); return nil }, segment.OverrunError{Left: 50, Records: 3}},
		"shrink to more": {func(r *segment.Reservation) []byte { r.NextKey([]byte("key"), 5); r.Shrink(6); return nil }, segment.OverrunError{Size: 6, Left: 50, Records: 2}},
		"shrink below":   {func(r *segment.Reservation) []byte { r.Next(5); r.Shrink(-1); return nil }, segment.OverrunError{Size: -1, Left: 50, Records: 2}},
	} {
		_, r := reserve(t, 3, 64)
		if !strings.HasPrefix(name, "a run") {
			c.want.Run = 1
		}
		require.Nil(t, c.ask(r), name)
		require.NotNil(t, r.Fault(), name)
		require.Equal(t, c.want, *r.Fault(), name)
		require.NotEmpty(t, r.Fault().Error())
		first := *r.Fault()
		r.Next(1 << 30)
		require.Equal(t, first, *r.Fault(), "%s: the first one counts", name)
	}
}

// TestReservation_Run: a run is as many records of one size, in the place that Next would have given them. Shrink is for its last one, and
// a run that does not fit changes nothing.
func TestReservation_Run(t *testing.T) {
	l, r := reserve(t, 7, 60)
	copy(r.NextKey([]byte("key"), 3), "one")
	run := r.NextRun(3, 4)
	require.Equal(t, 12, len(run))
	require.Equal(t, 12, cap(run))
	copy(run, "two.three...")
	require.Equal(t, 4, r.Records())
	r.Shrink(1)
	require.Equal(t, 3+3+9, r.Bytes())
	require.Len(t, r.NextRun(1, 41), 41)
	r.Shrink(0)
	require.NotNil(t, r.NextRun(2, 0))
	require.Nil(t, r.Fault())
	require.Nil(t, r.NextRun(1, 0))
	require.Equal(t, 7, r.Records(), "the one that did not fit is none of them")
	require.True(t, l.StageRun(r))
	require.NoError(t, l.Publish())
	var rec segment.Record
	var got []string
	for in := l.NewReader(); in.Refill() == segment.Ready; {
		for in.Next(&rec) {
			got = append(got, fmt.Sprintf("%q=%q", rec.Key, rec.Value))
			require.NotNil(t, rec.Value)
			require.Equal(t, rec.Offset == 0, rec.Key != nil)
		}
	}
	require.Equal(t, []string{`"key"="one"`, `""="two."`, `""="thre"`, `""="e"`, `""=""`, `""=""`, `""=""`}, got)
}

// TestReservation_GivesBackWhatShrinkLeaves: the room counts for the next records, and nobody sees what was written there.
func TestReservation_GivesBackWhatShrinkLeaves(t *testing.T) {
	l, r := reserve(t, 3, 50)
	copy(r.NextKey([]byte("key"), 47), "short, and then what has been cut off ..........")
	r.Shrink(5)
	copy(r.Next(30), "and room for another of thirty")
	require.NotNil(t, r.NextKey([]byte{}, 12))
	r.Shrink(0)
	require.Nil(t, r.Fault())
	require.True(t, l.StageRun(r))
	require.NoError(t, l.Publish())
	recs := make([]segment.Record, 4)
	n, err := l.ReadAt(0, recs)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, "key short", string(recs[0].Key)+" "+string(recs[0].Value))
	require.Nil(t, recs[1].Key)
	require.Equal(t, "and room for another of thirty", string(recs[1].Value))
	require.NotNil(t, recs[2].Key)
	require.Empty(t, recs[2].Key)
	require.NotNil(t, recs[2].Value)
	require.Empty(t, recs[2].Value)
}

// TestReservation_KeepsItsBlock: a block that somebody may still write to does not go back to the pool, whatever ends its segment.
func TestReservation_KeepsItsBlock(t *testing.T) {
	for name, end := range map[string]func(l *segment.Log){
		"roll":     func(l *segment.Log) { l.Roll() },
		"drop":     func(l *segment.Log) { l.DropOldest() },
		"truncate": func(l *segment.Log) { l.TruncateBefore(1) },
	} {
		for _, before := range []int{0, 1} {
			pool := segment.NewPool(0, 1<<20).Poison()
			l := segment.NewLog(segment.Config{Pool: pool})
			puts(t, l, before)
			var r segment.Reservation
			require.NoError(t, l.ReserveRun(&r, 2, 20, 20, 1))
			place := r.Next(9)
			end(l)
			drain(l)
			if before == 0 {
				l.Roll()
			}
			require.Zero(t, pool.Kept(), "%s after %d", name, before)
			require.Zero(t, pool.Used())
			require.False(t, l.StageRun(&r))
			copy(place, "still our")
			require.NotNil(t, r.Next(3))

			var to segment.Reservation
			require.NoError(t, l.ReserveRun(&to, r.Records(), r.Bytes(), 20, 2))
			r.MoveTo(&to)
			copy(place, "elsewhere")
			require.True(t, l.StageRun(&to))
			require.NoError(t, l.Publish())
			reader := l.NewReader()
			reader.Seek(uint64(before))
			got, _ := read(reader)
			require.Equal(t, []string{"still our", "\x00\x00\x00"}, got, "%s after %d", name, before)
			at, ok := l.TimeOf(uint64(before) + 1)
			require.True(t, ok)
			require.Equal(t, int64(2), at)
			reader.Close()
			drain(l)
			require.Equal(t, int64(4096), pool.Kept(), "one that is over does not keep its block")
		}
	}
}

// TestReservation_KeepsItsBlockInUnstage: the segment goes because records that were staged before are all it had.
func TestReservation_KeepsItsBlockInUnstage(t *testing.T) {
	for name, before := range map[string]int{"the only segment": 0, "one of two": 1} {
		pool := segment.NewPool(0, 1<<20).Poison()
		l := segment.NewLog(segment.Config{Pool: pool, SegmentRecords: 1})
		puts(t, l, before)
		require.NoError(t, l.Append(&segment.Record{Value: []byte("gone")}, 1))
		var r segment.Reservation
		require.NoError(t, l.ReserveRun(&r, 2, 20, 20, 1)) // the segment has no record left for it, so it gets one of its own
		place := r.Next(9)
		copy(place, "still our")
		l.Unstage()
		other := segment.NewLog(segment.Config{Pool: pool})
		put(t, other, 1, "theirs")
		require.Equal(t, "still our", string(place), name)
		copy(place, "scribbled")
		copy(r.Next(6), "record")
		recs := make([]segment.Record, 2)
		n, err := other.ReadAt(0, recs)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, "theirs", string(recs[0].Value), name)

		require.False(t, l.StageRun(&r), name)
		var to segment.Reservation
		require.NoError(t, l.ReserveRun(&to, r.Records(), r.Bytes(), 20, 2))
		r.MoveTo(&to)
		require.True(t, l.StageRun(&to))
		require.NoError(t, l.Publish())
		n, err = l.ReadAt(uint64(before), recs)
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, "scribbledrecord", string(recs[0].Value)+string(recs[1].Value), name)
	}
}

// TestReservation_AfterUnstage: records that were staged before and are taken back leave no hole.
func TestReservation_AfterUnstage(t *testing.T) {
	l := segment.NewLog(segment.Config{Pool: segment.NewPool(0, 0)})
	puts(t, l, 1)
	require.NoError(t, l.Append(&segment.Record{Value: []byte("gone")}, 1))
	var r segment.Reservation
	require.NoError(t, l.ReserveRun(&r, 1, 4, 4, 1))
	copy(r.Next(4), "here")
	l.Unstage()
	require.False(t, l.StageRun(&r))
	require.EqualValues(t, 1, l.Staged())
	l.Forgo()
	put(t, l, 2, "next")
	recs := make([]segment.Record, 3)
	n, err := l.ReadAt(0, recs)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, "next", string(recs[1].Value))
}

// TestReservation_MovesWithinItsSegment: to a place that overlaps its own, in front of it, where what was staged has been taken back. The
// records get the time of the new place. That what was staged had no byte makes no difference.
func TestReservation_MovesWithinItsSegment(t *testing.T) {
	for _, gone := range []string{"", "x", "longer than all the rest"} {
		l := segment.NewLog(segment.Config{Pool: segment.NewPool(0, 0)})
		puts(t, l, 1)
		in := l.Active()
		require.NoError(t, l.Append(&segment.Record{Value: []byte(gone)}, 1))
		var r segment.Reservation
		require.NoError(t, l.ReserveRun(&r, 3, 20, 20, 10))
		copy(r.Next(5), "first")
		copy(r.NextKey([]byte("key"), 6), "second")
		r.NextKey([]byte{}, 0)
		l.Unstage()
		require.False(t, l.StageRun(&r), "%q", gone)
		var to segment.Reservation
		require.Nil(t, to.Next(1), "before it is one")
		require.NoError(t, l.ReserveRun(&to, r.Records(), r.Bytes(), 20, 30))
		require.Nil(t, to.Fault())
		r.MoveTo(&to)
		require.True(t, l.StageRun(&to))
		require.NoError(t, l.Publish())
		require.Same(t, in, l.Active())
		recs := make([]segment.Record, 4)
		n, err := l.ReadAt(0, recs)
		require.NoError(t, err)
		require.Equal(t, 4, n)
		require.Equal(t, "0 first second ", string(recs[0].Value)+" "+string(recs[1].Value)+" "+string(recs[2].Value)+" "+string(recs[3].Value))
		require.Nil(t, recs[1].Key)
		require.Equal(t, "key", string(recs[2].Key))
		require.NotNil(t, recs[3].Key)
		for off, want := range []int64{0, 30, 30, 30} {
			at, ok := l.TimeOf(uint64(off))
			require.True(t, ok)
			require.Equal(t, want, at, "%q", gone)
		}
	}
}

func TestReservation_AtTheEnd(t *testing.T) {
	l := segment.NewLog(segment.Config{First: segment.MaxOffset - 1, Pool: segment.NewPool(0, 0)})
	var r segment.Reservation
	require.ErrorIs(t, l.ReserveRun(&r, 2, 10, 10, 1), segment.ErrExhausted)
	require.True(t, r.Over())
	require.NoError(t, l.ReserveRun(&r, 1, 10, 10, 1))
	r.Next(0)
	require.True(t, l.StageRun(&r))
	require.NoError(t, l.Publish())
	require.ErrorIs(t, l.ReserveRun(&r, 1, 0, 10, 1), segment.ErrExhausted)

	var never segment.Reservation
	require.False(t, l.StageRun(&never))
	require.True(t, never.Over())
	require.Nil(t, never.Next(0))
}

// A reservation whose records have no bound of their own refuses what would be too many bytes, also where their number does not fit an int.
func TestReservation_NextRunWithoutMost(t *testing.T) {
	for _, records := range []int{1, 2, 4, 8} {
		for _, n := range []int{65, math.MaxInt/2 + 1, math.MaxInt/4 + 1, math.MaxInt - 1, math.MaxInt} {
			l := segment.NewLog(segment.Config{})
			var r segment.Reservation
			require.NoError(t, l.ReserveRun(&r, 8, 64, math.MaxInt, 5))
			require.Nil(t, r.NextRun(records, n), "%d of %d", records, n)
			require.NotNil(t, r.Fault())
			require.Zero(t, r.Records())
		}
	}
}
