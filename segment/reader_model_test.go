package segment_test

import (
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/segment"
)

// What the readers of a machine do: see TestLog_Model.

func (x *machine) refill(t *rapid.T) { x.fill(t, rapid.SampledFrom(x.readers).Draw(t, "reader")) }

// reader draws a reader, which most of the time has a window if there is anything for it.
func (x *machine) reader(t *rapid.T) *modelReader {
	r := rapid.SampledFrom(x.readers).Draw(t, "reader")
	if r.r.Window() == 0 && rapid.IntRange(0, 7).Draw(t, "refill") > 0 {
		x.fill(t, r)
	}
	return r
}

func (x *machine) fill(t *rapid.T, r *modelReader) {
	m := &x.m
	r.held, r.want = nil, nil
	s := r.r.Refill()
	r.from = r.pos
	switch {
	case r.pos < m.first:
		require.Equal(t, segment.Below, s)
	case r.pos > m.next:
		require.Equal(t, segment.Beyond, s)
	case r.pos == m.next && m.sealed:
		require.Equal(t, segment.Sealed, s)
	case r.pos == m.next:
		require.Equal(t, segment.CaughtUp, s)
	default:
		require.Equal(t, segment.Ready, s)
		require.Positive(t, r.r.Window())
		require.LessOrEqual(t, r.pos+uint64(r.r.Window()), m.next)
		return
	}
	require.Zero(t, r.r.Window())
}

func (x *machine) next(t *rapid.T) {
	r := x.reader(t)
	for range rapid.IntRange(1, 10).Draw(t, "n") {
		window := r.r.Window()
		var rec segment.Record
		if !r.r.Next(&rec) {
			require.Zero(t, window)
			return
		}
		require.Equal(t, window-1, r.r.Window())
		requireRecord(t, &x.m.at(r.pos).rec, &rec)
		r.held, r.want = append(r.held, rec), append(r.want, r.pos)
		r.pos++
	}
	if r.pos > r.from && rapid.IntRange(0, 3).Draw(t, "back") == 0 {
		r.pos = rapid.Uint64Range(r.from, r.pos).Draw(t, "to")
		r.r.Back(r.pos)
	}
}

func (x *machine) seek(t *rapid.T) {
	r := rapid.SampledFrom(x.readers).Draw(t, "reader")
	r.held, r.want = nil, nil
	r.pos = drawOffset(t, &x.m)
	r.from = r.pos
	r.r.Seek(r.pos)
}

// jump is seek for who wants to keep the window.
func (x *machine) jump(t *rapid.T) {
	r := x.reader(t)
	off := drawOffset(t, &x.m)
	end := r.pos + uint64(r.r.Window())
	jumped := r.r.Jump(off)
	switch {
	case off >= end:
		require.False(t, jumped)
	case off >= r.from:
		require.True(t, jumped)
	}
	if jumped {
		r.pos, r.from = off, min(r.from, off)
		require.EqualValues(t, end-off, r.r.Window())
	}
}

// nextEach is next for many at once, into records that hold something already.
func (x *machine) nextEach(t *rapid.T) {
	r := x.reader(t)
	recs := make([]segment.Record, rapid.IntRange(0, 20).Draw(t, "len(recs)"))
	used := rapid.Bool().Draw(t, "used")
	for i := range recs {
		if used {
			recs[i] = garbage()
		}
	}
	window := r.r.Window()
	n := r.r.NextEach(recs)
	require.Equal(t, min(window, len(recs)), n)
	require.Equal(t, window-n, r.r.Window())
	for i := range recs[:n] {
		requireRecord(t, &x.m.at(r.pos).rec, &recs[i])
		r.held, r.want = append(r.held, recs[i]), append(r.want, r.pos)
		r.pos++
	}
	for i := range recs[n:] {
		if used {
			require.Equal(t, garbage(), recs[n+i], "what is beyond the window stays as it was")
		}
	}
}

// nextValues is nextEach for the values alone.
func (x *machine) nextValues(t *rapid.T) {
	r := x.reader(t)
	values := make([][]byte, rapid.IntRange(0, 20).Draw(t, "len(values)"))
	old := []byte("old")
	for i := range values {
		values[i] = old
	}
	window := r.r.Window()
	n := r.r.NextValues(values)
	require.Equal(t, min(window, len(values)), n)
	require.Equal(t, window-n, r.r.Window())
	for _, v := range values[:n] {
		rec := x.m.at(r.pos).rec
		require.Equal(t, rec.Value, v)
		rec.Value = v // what it keeps is the view
		r.held, r.want = append(r.held, rec), append(r.want, r.pos)
		r.pos++
	}
	for _, v := range values[n:] {
		require.Equal(t, old, v, "what is beyond the window stays as it was")
	}
}

// garbage is what may be in a record that a caller uses again.
func garbage() segment.Record {
	return segment.Record{
		Key: []byte("old key"), Value: make([]byte, 3, 9), Headers: segment.MakeHeaders(segment.Header{Name: "old"}),
		Timestamp: -1, Offset: -1, Partition: -1,
	}
}

// runOf returns how long the run is that begins a window of these records.
func runOf(window []modelRecord, most int) (n int) {
	for n < min(len(window), most) {
		r := &window[n]
		value := r.rec.Value
		if value == nil || len(value) != len(window[0].rec.Value) || r.size != int64(len(value))+segment.EntryBytes {
			break // it has no value, or another size, or more than that
		}
		n++
	}
	return max(n, min(1, len(window), most))
}

// nextRun is nextEach for values of one size.
func (x *machine) nextRun(t *rapid.T) {
	r := x.reader(t)
	most := rapid.IntRange(-1, 40).Draw(t, "most")
	var window []modelRecord
	for i := range r.r.Window() {
		window = append(window, *x.m.at(r.pos + uint64(i)))
	}
	values, n := r.r.NextRun(most)
	require.Equal(t, runOf(window, max(most, 0)), n)
	require.Equal(t, len(window)-n, r.r.Window())
	require.Equal(t, len(values), cap(values))
	for i, m := range window[:n] {
		rec := m.rec
		size := len(values) / n
		v := values[i*size : (i+1)*size : (i+1)*size]
		require.Equal(t, rec.Value, v) // also whether it is nil
		rec.Value = v                  // what it keeps is the view
		r.held, r.want = append(r.held, rec), append(r.want, r.pos)
		r.pos++
	}
}
