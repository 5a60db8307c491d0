package segment_test

import (
	"errors"
	"math"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/segment"
)

// reserve makes records in place. Now and then the segment ends before they are staged, so that they have to move, while whoever made
// them goes on writing where they were.
func (x *machine) reserve(t *rapid.T) {
	records := rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(6, 40)).Draw(t, "records")
	size := rapid.SampledFrom([]int{0, 10, 60, 600, 5000}).Draw(t, "bytes")
	x.now += rapid.SampledFrom([]int64{0, 0, 1, 5, -3}).Draw(t, "tick")
	var r segment.Reservation
	if !x.reserveRun(t, &r, records, size) {
		return
	}
	var made []modelRecord
	var places [][]byte
	left := size
	add := func(key, value []byte) {
		for i := range value {
			value[i] = byte(len(made) + i)
		}
		left -= len(key) + len(value)
		places = append(places, value)
		rec := (&segment.Record{Key: key, Value: value}).Clone()
		made = append(made, modelRecord{rec: rec, size: int64(len(key)+len(value)) + 16})
	}
	for n := rapid.IntRange(0, records).Draw(t, "made"); len(made) < n; {
		if rapid.IntRange(0, 3).Draw(t, "one in four") == 0 {
			run := rapid.IntRange(1, n-len(made)).Draw(t, "run")
			length := rapid.IntRange(0, left/run).Draw(t, "length of each")
			values := r.NextRun(run, length)
			require.NotNil(t, values)
			require.Len(t, values, run*length)
			require.Equal(t, run*length, cap(values))
			for i := range run - 1 {
				add(nil, values[i*length:(i+1)*length:(i+1)*length])
			}
			add(nil, shrink(t, &r, values[(run-1)*length:]))
			continue
		}
		key := drawBytes(t, "key")
		if len(key) > left {
			key = nil
		}
		length := rapid.IntRange(0, left-len(key)).Draw(t, "length")
		value := r.NextKey(key, length)
		require.NotNil(t, value)
		require.Len(t, value, length)
		require.Equal(t, length, cap(value))
		add(key, shrink(t, &r, value))
		require.Equal(t, len(made), r.Records())
		require.Equal(t, size-left, r.Bytes())
	}
	require.Nil(t, r.Fault())
	in := x.l.Active()
	x.meddle(t)
	switch rapid.SampledFrom([]string{"stage", "stage", "forgo", "move"}).Draw(t, "end") {
	case "forgo":
		x.l.Forgo()
		r.End()
		require.Nil(t, r.Next(0))
		return
	case "move":
		x.l.Roll()
		require.False(t, x.l.StageRun(&r))
	}
	if !x.l.StageRun(&r) {
		var to segment.Reservation
		ended := x.l.Active() != in // or its records were taken back that came before
		if len(made) == 0 || !x.reserveRun(t, &to, len(made), r.Bytes()) {
			x.l.Forgo()
			return
		}
		r.MoveTo(&to)
		require.True(t, r.Over())
		require.Equal(t, len(made), to.Records())
		for _, p := range places { // as a holder does who does not know yet
			for i := range p {
				if ended {
					p[i] = 0xee
				}
			}
		}
		require.True(t, x.l.StageRun(&to))
	}
	require.True(t, r.Over())
	for _, m := range made {
		m.rec.Offset, m.rec.Partition, m.rec.Timestamp, m.time = int64(x.m.staged()), x.cfg.Partition, x.m.newest, x.m.newest
		x.m.recs = append(x.m.recs, m)
	}
}

// shrink makes the value of the newest record shorter, or leaves it, and returns what there is of it.
func shrink(t *rapid.T, r *segment.Reservation, value []byte) []byte {
	if rapid.Bool().Draw(t, "shrink") {
		value = value[:rapid.IntRange(0, len(value)).Draw(t, "shrunk")]
		r.Shrink(len(value))
	}
	return slices.Clip(value)
}

// meddle does what the appender may do while a reservation is out.
func (x *machine) meddle(t *rapid.T) {
	switch rapid.SampledFrom([]string{"", "", "", "unstage", "truncate", "publish"}).Draw(t, "meddle") {
	case "unstage":
		x.l.Unstage()
		x.unstaged()
	case "truncate":
		x.l.TruncateBefore(x.m.next)
		x.m.first = x.m.next
	case "publish":
		x.publish(t)
	}
	x.check(t)
}

// reserveRun is ReserveRun, and reports whether it succeeded.
func (x *machine) reserveRun(t *rapid.T, r *segment.Reservation, records, size int) bool {
	if x.m.staged()+uint64(records) > math.MaxInt64 {
		return false // see TestReservation_AtTheEnd
	}
	before := x.l.Active()
	if err := x.l.ReserveRun(r, records, size, 1<<20, x.now); err != nil {
		known := errors.Is(err, segment.ErrNoMemory) || errors.Is(err, segment.ErrTooLarge)
		require.True(t, known || errors.Is(err, segment.ErrSealed) == x.refused, "%v", err)
		return false
	}
	require.False(t, x.refused)
	x.m.newest = max(x.m.newest, x.now)
	if x.l.Active() != before {
		x.most[x.m.staged()] = records
	}
	return true
}
