package segment_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

func TestReader_States(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 4})
	puts(t, l, 6)
	r := l.NewReader()
	require.Zero(t, r.Window())
	require.Equal(t, segment.Ready, r.Refill())
	require.Equal(t, 4, r.Window(), "to the end of the segment")
	var rec segment.Record
	require.True(t, r.Next(&rec))
	require.EqualValues(t, 1, r.Position())
	require.Equal(t, 3, r.Window())
	require.Equal(t, segment.Ready, r.Refill())
	require.Equal(t, 3, r.Window())

	values, s := read(r)
	require.Equal(t, []string{"1", "2", "3", "4", "5"}, values)
	require.Equal(t, segment.CaughtUp, s)
	require.False(t, r.Next(&rec))

	r.Seek(7)
	require.Equal(t, segment.Beyond, r.Refill())
	puts(t, l, 1)
	require.Equal(t, segment.CaughtUp, r.Refill())
	puts(t, l, 1)
	require.Equal(t, segment.Ready, r.Refill())

	r.Seek(0)
	require.Equal(t, segment.Ready, r.Refill())
	l.TruncateBefore(3)
	require.Equal(t, 4, r.Window(), "what is in the window stays readable")
	require.True(t, r.Next(&rec))
	require.Equal(t, "0", string(rec.Value))
	require.Equal(t, segment.Below, r.Refill(), "and is not given out again")
	require.EqualValues(t, 1, r.Position())
	require.Zero(t, r.Window())
	require.Equal(t, segment.Below, r.Refill())
	r.Seek(l.First())
	values, _ = read(r)
	require.Equal(t, []string{"3", "4", "5", "6", "7"}, values)

	l.Seal()
	require.Equal(t, segment.Sealed, r.Refill())
	r.Seek(3)
	require.Equal(t, segment.Ready, r.Refill(), "a sealed log is read to its end")
	r.Seek(9)
	require.Equal(t, segment.Beyond, r.Refill())
}

func TestReader_Record(t *testing.T) {
	l := segment.NewLog(segment.Config{Partition: -7, First: 5})
	h := segment.MakeHeaders(segment.Header{Name: "n", Value: []byte("h")})
	require.NoError(t, l.Append(&segment.Record{Key: []byte("k"), Value: []byte("v"), Headers: h, Offset: 99, Partition: 99}, 12))
	require.NoError(t, l.Publish())
	r := l.NewReader()
	require.Equal(t, segment.Ready, r.Refill())
	var rec segment.Record
	require.True(t, r.Next(&rec))
	require.Equal(t, segment.Record{Key: []byte("k"), Value: []byte("v"), Headers: h, Timestamp: 12, Offset: 5, Partition: -7}, rec)
	var at [1]segment.Record
	_, err := l.ReadAt(5, at[:])
	require.NoError(t, err)
	require.Equal(t, rec, at[0])
}

// kinds are records of all that readers tell apart.
func kinds() []segment.Record {
	h := segment.MakeHeaders(segment.Header{Name: "n", Value: []byte("h")})
	k, v, none := []byte("key"), []byte("value"), []byte{}
	return []segment.Record{
		{Value: v}, {Value: none}, {}, {Key: k}, {Key: none}, {Key: none, Value: none}, {Key: k, Value: none}, {Key: k, Value: v},
		{Value: v, Headers: h}, {Key: k, Headers: h}, {Value: v, Timestamp: 77}, {Timestamp: -1}, {Key: k, Value: v, Headers: h, Timestamp: 5},
	}
}

// TestReader_NextEach, of records and of values alone, has records of each kind before and behind those of each other, in windows of each length that were used for
// others before, in segments that are full, that still grow, and that are loaded.
func TestReader_NextEach(t *testing.T) {
	s := &source{}
	add := func(r segment.Record) { s.all = append(s.all, rest{r, int64(len(s.all) / 3)}) }
	for _, a := range kinds() {
		for _, b := range kinds() {
			for _, r := range []segment.Record{a, a, b, a, b, b, b} {
				add(r)
			}
		}
	}
	cfg := segment.Config{SegmentRecords: 50, Partition: 3}
	warm := segment.NewLog(cfg)
	for i := range s.all {
		require.NoError(t, warm.Append(&s.all[i].rec, s.all[i].now))
	}
	require.NoError(t, warm.Publish())
	for name, l := range map[string]*segment.Log{"warm": warm, "cold": attached(t, s, 50, cfg)} {
		for size := 1; size <= 64; size++ {
			recs := make([]segment.Record, size)
			for i := range recs {
				recs[i] = garbage()
			}
			r, off := l.NewReader(), 0
			for r.Refill() == segment.Ready {
				require.Equal(t, min(50, len(s.all)-off), r.Window())
				for n := r.NextEach(recs); n > 0; n = r.NextEach(recs) {
					for i := range recs[:n] {
						want := s.all[off].rec
						want.Offset, want.Partition = int64(off), 3
						if want.Timestamp == 0 {
							want.Timestamp = s.all[off].now
						}
						requireRecord(t, &want, &recs[i])
						off++
					}
				}
			}
			require.Equal(t, len(s.all), off, "%s, %d at a time", name, size)
			require.Zero(t, r.NextEach(recs), "behind all that is there")
			r.Seek(0)
			values := make([][]byte, size)
			for off = 0; r.Refill() == segment.Ready; {
				for n := r.NextValues(values); n > 0; n = r.NextValues(values) {
					for i := range values[:n] {
						require.Equal(t, s.all[off].rec.Value, values[i]) // also whether it is nil
						require.Equal(t, len(values[i]), cap(values[i]))
						off++
					}
					require.EqualValues(t, off, r.Position())
				}
			}
			require.Equal(t, len(s.all), off, "%s, %d values at a time", name, size)
			require.Zero(t, r.NextValues(values), "behind all that is there")
			r.Close()
		}
	}
}

func TestReader_NextEachAllocates(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	for _, rec := range kinds() {
		require.NoError(t, l.Append(&rec, 1))
	}
	require.NoError(t, l.Publish())
	r, recs, values := l.NewReader(), make([]segment.Record, 100), make([][]byte, 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Seek(0)
		r.Refill()
		r.NextEach(recs)
		r.Seek(0)
		r.Refill()
		r.NextValues(values)
		r.Seek(0)
		r.Refill()
		for _, n := r.NextRun(100); n > 0; {
			_, n = r.NextRun(100)
		}
	}))
}

func TestReader_PinsItsSegmentOnly(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 2})
	puts(t, l, 5)
	pins := func() (p [3]int) {
		for i := range p {
			p[i], _ = l.Pins(uint64(2 * i))
		}
		return p
	}
	r := l.NewReader()
	require.Equal(t, [3]int{}, pins())
	var rec segment.Record
	r.Refill()
	require.Equal(t, [3]int{1, 0, 0}, pins())
	r.Next(&rec)
	r.Next(&rec)
	require.Equal(t, [3]int{1, 0, 0}, pins(), "the last view is still valid")
	r.Refill()
	require.Equal(t, [3]int{0, 1, 0}, pins())
	r.Seek(4)
	require.Equal(t, [3]int{}, pins())
	r.Refill()
	require.Equal(t, [3]int{0, 0, 1}, pins())
	r.Seek(4)
	require.Zero(t, r.Window())
	require.Equal(t, [3]int{0, 0, 1}, pins(), "seeking to where it is keeps the pin")
	r.Refill()
	r.Next(&rec)
	require.Equal(t, segment.CaughtUp, r.Refill())
	require.Equal(t, [3]int{0, 0, 1}, pins(), "more may come here")
	puts(t, l, 1)
	r.Refill()
	r.Next(&rec)
	l.Roll()
	require.Equal(t, segment.CaughtUp, r.Refill())
	require.Equal(t, [3]int{}, pins(), "nothing more comes here")
	r.Seek(0)
	r.Refill()
	r.Close()
	r.Close()
	require.Equal(t, [3]int{}, pins())
	require.Equal(t, segment.Ready, r.Refill(), "a closed reader can go on")
	require.Equal(t, "0", func() string { r.Next(&rec); return string(rec.Value) }())
	r.Seek(9)
	require.Equal(t, segment.Beyond, r.Refill())
	require.Equal(t, [3]int{}, pins())
}

func TestReader_Back(t *testing.T) {
	l := segment.NewLog(segment.Config{SegmentRecords: 4})
	puts(t, l, 8)
	l.TruncateBefore(1)
	r := l.NewReader()
	r.Seek(4)
	var rec segment.Record
	require.Equal(t, segment.Ready, r.Refill())
	for range 4 {
		require.True(t, r.Next(&rec))
	}
	for _, off := range []uint64{8, 7, 5, 4} {
		r.Back(off)
		require.Equal(t, off, r.Position())
		require.Equal(t, int(8-off), r.Window())
		for ; off < 8; off++ {
			require.True(t, r.Next(&rec))
			require.EqualValues(t, off, rec.Offset)
			require.EqualValues(t, off, rec.Value[0]-'0')
		}
		require.False(t, r.Next(&rec))
	}
}

func TestReader_PinnedBlockIsNotReused(t *testing.T) {
	pool := segment.NewPool(0, 1<<20).Poison()
	l := segment.NewLog(segment.Config{SegmentRecords: 2, Pool: pool})
	puts(t, l, 4)
	r := l.NewReader()
	var rec segment.Record
	require.Equal(t, segment.Ready, r.Refill())
	require.True(t, r.Next(&rec))
	require.True(t, l.DropOldest())
	require.Zero(t, pool.Kept())
	require.EqualValues(t, 4096, pool.Used(), "a block that is left to the collector does not count")
	require.True(t, l.DropOldest())
	require.EqualValues(t, 4096, pool.Kept())
	puts(t, l, 10)
	require.Equal(t, "0", string(rec.Value))
	require.True(t, r.Next(&rec))
	require.Equal(t, "1", string(rec.Value))
	require.Equal(t, segment.Below, r.Refill())
}

func TestState_String(t *testing.T) {
	want := map[segment.State]string{segment.Ready: "Ready", segment.CaughtUp: "CaughtUp", segment.Sealed: "Sealed",
		segment.Below: "Below", segment.Beyond: "Beyond", 9: "State(?)"}
	for s, name := range want {
		require.Equal(t, name, s.String())
	}
}
