package segment_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// stageRun stages n values of each bytes as one run, in which record i of the log is filled with byte i.
func stageRun(t testing.TB, l *segment.Log, n, each int, now int64) {
	t.Helper()
	var r segment.Reservation
	require.NoError(t, l.ReserveRun(&r, n, n*each, each, now))
	run := r.NextRun(n, each)
	for i := range n {
		copy(run[i*each:], bytes.Repeat([]byte{byte(int(l.Staged()) + i)}, each))
	}
	require.True(t, l.StageRun(&r))
}

// TestRow_FoundFromEverywhere: wherever in its segment a run begins and however long it is, each of its records, and what is before and
// behind, is found by its offset and by its time, and is where each way to read from there on comes to.
func TestRow_FoundFromEverywhere(t *testing.T) {
	const each = 3
	pool := segment.NewPool(0, 1<<20).Poison()
	for before := range 18 {
		for _, run := range []int{1, 2, 15, 16, 17, 33, 50} {
			l := segment.NewLog(segment.Config{Pool: pool, First: 7})
			next := byte(7)
			single := func(key []byte) {
				require.NoError(t, l.Append(&segment.Record{Key: key, Value: []byte{next, next, next}}, int64(next)))
				next++
			}
			for range before {
				single(nil)
			}
			stageRun(t, l, run, each, 1000)
			next += byte(run)
			single(nil)
			single([]byte("key"))
			stageRun(t, l, 2, each, 2000)
			next += 2
			require.NoError(t, l.Publish())

			first, end := l.Snapshot()
			require.EqualValues(t, next, end)
			require.EqualValues(t, first+uint64(before), l.Since(1000))
			require.EqualValues(t, end-2, l.Since(1001))
			require.EqualValues(t, (end-first)*(16+each)+uint64(len("key")), l.Bytes())
			for from := first; from < end; from++ {
				for way, values := range readFrom(t, l, from) {
					var want []byte
					for off := from; off < end; off++ {
						want = append(want, byte(off), byte(off), byte(off))
					}
					require.Equal(t, want, values, "%s from %d, %d before a run of %d", way, from-first, before, run)
				}
				count := end - from
				require.NoError(t, l.EachFrom(from, func(s segment.Shape, _ []byte, _ int64) bool {
					count--
					return s.Value == each
				}))
				require.Zero(t, count, "another size at %d", end-count)
				at, ok := l.TimeOf(from)
				require.True(t, ok)
				switch {
				case from < first+uint64(before):
					require.EqualValues(t, from, at)
				case from < end-2:
					require.EqualValues(t, 1000, at)
				default:
					require.EqualValues(t, 2000, at)
				}
			}
			drain(l)
		}
	}
	require.Zero(t, pool.Used())
}

// readFrom returns all values from an offset on, one behind the other, as each way to read them has them.
func readFrom(t require.TestingT, l *segment.Log, from uint64) map[string][]byte {
	ways := map[string][]byte{}
	with := func(name string, step func(r *segment.Reader) (values []byte, n int)) {
		r := l.NewReader()
		defer r.Close()
		r.Seek(from)
		for r.Refill() == segment.Ready {
			for values, n := step(r); n > 0; values, n = step(r) {
				ways[name] = append(ways[name], values...)
			}
		}
	}
	next := func(r *segment.Reader) (values []byte, n int) {
		var rec segment.Record
		at := r.Position()
		if !r.Next(&rec) {
			return nil, 0
		}
		require.EqualValues(t, at, rec.Offset)
		return rec.Value, 1
	}
	with("Next", next)
	with("Next, back and again", func(r *segment.Reader) (values []byte, n int) {
		at := r.Position()
		next(r)
		r.Back(at)
		return next(r)
	})
	for _, some := range []int{1, 5, 100} {
		recs, list := make([]segment.Record, some), make([][]byte, some)
		with(fmt.Sprint("NextEach of ", some), func(r *segment.Reader) (values []byte, n int) {
			at := r.Position()
			n = r.NextEach(recs)
			for i := range recs[:n] {
				require.EqualValues(t, at+uint64(i), recs[i].Offset)
				values = append(values, recs[i].Value...)
			}
			return values, n
		})
		with(fmt.Sprint("NextValues of ", some), func(r *segment.Reader) (values []byte, n int) {
			n = r.NextValues(list)
			for _, v := range list[:n] {
				values = append(values, v...)
			}
			return values, n
		})
		with(fmt.Sprint("NextRun of ", some), func(r *segment.Reader) ([]byte, int) { return r.NextRun(some) })
	}
	recs := make([]segment.Record, 100)
	n, err := l.ReadAt(from, recs)
	require.NoError(t, err)
	for i := range recs[:n] {
		ways["ReadAt"] = append(ways["ReadAt"], recs[i].Value...)
	}
	require.NoError(t, l.EachFrom(from, func(s segment.Shape, body []byte, _ int64) bool {
		ways["EachFrom"] = append(ways["EachFrom"], body[max(s.Key, 0):]...)
		return true
	}))
	return ways
}

// TestRow_CostsOneEntryInSixteen: this is what rows are for.
func TestRow_CostsOneEntryInSixteen(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	stageRun(t, l, 256, 64, 1)
	require.NoError(t, l.Publish())
	require.Equal(t, 16, l.Entries())

	values := make([]byte, 100*8)
	batch := make([]segment.Record, 100)
	for i := range batch {
		batch[i].Value = values[i*8 : i*8+8]
	}
	n, err := l.AppendEach(batch, 2)
	require.NoError(t, err)
	require.Equal(t, len(batch), n)
	require.NoError(t, l.Publish())
	if !atomicx.Exploring { // it notes each copy by itself
		require.Equal(t, 16+7, l.Entries(), "a batch in one buffer is a run as well")
	}
}

// TestRow_Shrink takes the last record out of its row, of each length, again and again; the row and what comes then are as they should be.
func TestRow_Shrink(t *testing.T) {
	for run := 1; run <= 18; run++ {
		l := segment.NewLog(segment.Config{})
		put(t, l, 1, "before")
		var r segment.Reservation
		require.NoError(t, l.ReserveRun(&r, run+3, 1000, 100, 2))
		copy(r.NextRun(run, 4), bytes.Repeat([]byte("abcd"), run))
		r.Shrink(4)
		for n := 3; n >= 0; n-- {
			r.Shrink(n)
			require.Equal(t, run*4-4+n, r.Bytes())
		}
		copy(r.NextRun(2, 5), "fghijklmno")
		copy(r.Next(2), "xy")
		r.Shrink(1)
		require.Nil(t, r.Fault())
		require.True(t, l.StageRun(&r))
		require.NoError(t, l.Publish())
		for way, values := range readFrom(t, l, 0) {
			require.Equal(t, "before"+string(bytes.Repeat([]byte("abcd"), run-1))+"fghijklmnox", string(values), way)
		}
		recs := make([]segment.Record, 30)
		n, err := l.ReadAt(uint64(run), recs)
		require.NoError(t, err)
		require.Equal(t, 4, n)
		require.NotNil(t, recs[0].Value)
		require.Empty(t, recs[0].Value)
		require.Nil(t, recs[0].Key)
		require.EqualValues(t, 2, recs[0].Timestamp)
	}
}

// TestRow_MovesToAnotherPlace: records of a reservation whose segment has ended go to where their numbers are other ones, and rows end
// elsewhere.
func TestRow_MovesToAnotherPlace(t *testing.T) {
	for before := range 17 {
		l := segment.NewLog(segment.Config{})
		for range before + 1 {
			put(t, l, 1, "-")
		}
		var r, to segment.Reservation
		require.NoError(t, l.ReserveRun(&r, 60, 1000, 100, 2))
		copy(r.NextRun(20, 2), bytes.Repeat([]byte("ab"), 20))
		copy(r.NextKey([]byte("key"), 3), "cde")
		copy(r.NextRun(17, 1), bytes.Repeat([]byte("f"), 17))
		l.Roll()
		require.False(t, l.StageRun(&r))
		require.NoError(t, l.ReserveRun(&to, 60, 1000, 100, 3))
		copy(to.Next(1), "<")
		r.MoveTo(&to)
		require.Equal(t, 39, to.Records())
		to.Shrink(0)
		copy(to.Next(1), ">")
		require.True(t, l.StageRun(&to))
		require.NoError(t, l.Publish())
		want := "<" + string(bytes.Repeat([]byte("ab"), 20)) + "cde" + string(bytes.Repeat([]byte("f"), 16)) + ">"
		for way, values := range readFrom(t, l, uint64(before)+1) {
			require.Equal(t, want, string(values), way)
		}
		recs := make([]segment.Record, 2)
		_, err := l.ReadAt(l.Committed()-2, recs)
		require.NoError(t, err)
		require.Empty(t, recs[0].Value, "the newest one was shrunk where it has gone to")
		require.Equal(t, ">", string(recs[1].Value))
		require.NoError(t, l.EachFrom(l.Committed()-uint64(39+1), func(_ segment.Shape, _ []byte, appended int64) bool {
			require.EqualValues(t, 3, appended, "they have the time of where they have gone to")
			return true
		}))
	}
}

// TestRow_ComesAndGoes: what was a row once and has been taken back is nothing that the next records are confused by.
func TestRow_ComesAndGoes(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	for n := range 40 {
		stageRun(t, l, 30, 8, 1)
		l.Unstage()
		var r segment.Reservation
		require.NoError(t, l.ReserveRun(&r, 30, 300, 10, 1))
		require.NotNil(t, r.NextRun(30, 10))
		l.Forgo()
		put(t, l, int64(n), fmt.Sprintf("%02d", n))
		for way, values := range readFrom(t, l, 0) {
			require.Len(t, values, 2*(n+1), way)
			require.Equal(t, fmt.Sprintf("%02d", n), string(values[2*n:]), way)
		}
	}
	require.Equal(t, 40, l.Entries())
}

// TestRow_RunsAreJoined: to NextRun it is all one, rows, parts of them, and what is in none, if it has one size; also if that is 0.
func TestRow_RunsAreJoined(t *testing.T) {
	for _, each := range []int{0, 3} {
		l := segment.NewLog(segment.Config{})
		put(t, l, 1, "another size")
		for range 3 {
			require.NoError(t, l.Append(&segment.Record{Value: make([]byte, each)}, 1))
			stageRun(t, l, 40, each, 2)
		}
		stageRun(t, l, 20, each+1, 3)
		require.NoError(t, l.Publish())
		r := l.NewReader()
		defer r.Close()
		for from := range uint64(3 * 41) {
			r.Seek(1 + from)
			require.Equal(t, segment.Ready, r.Refill())
			values, n := r.NextRun(1000)
			require.EqualValues(t, 3*41-from, n)
			require.NotNil(t, values)
			require.Len(t, values, n*each)
			values, n = r.NextRun(1000)
			require.Equal(t, 20, n)
			require.Len(t, values, 20*(each+1))
		}
	}
}

// TestRow_LeftInTheMiddle: a reader that leaves a row in the middle of it for a segment without rows does not take that place along.
func TestRow_LeftInTheMiddle(t *testing.T) {
	l := segment.NewLog(segment.Config{})
	stageRun(t, l, 16, 1, 1)
	l.Roll()
	put(t, l, 2, "single")
	r := l.NewReader()
	defer r.Close()
	require.Equal(t, segment.Ready, r.Refill())
	_, n := r.NextRun(5)
	require.Equal(t, 5, n)
	r.Seek(16)
	require.Equal(t, segment.Ready, r.Refill())
	_, n = r.NextRun(5)
	require.Equal(t, 1, n)
	stageRun(t, l, 12, 1, 3)
	require.NoError(t, l.Publish())
	require.Equal(t, segment.Ready, r.Refill())
	for _, want := range []int{7, 5, 0} {
		_, n = r.NextRun(7)
		require.Equal(t, want, n)
	}
}

// TestRow_UnstageLooksAtEntriesAlone: what lies where a row has no entries may look like anything, such as records with a timestamp. When
// the log counts those again it must not be misled, or the next one does not make searches slow.
func TestRow_UnstageLooksAtEntriesAlone(t *testing.T) {
	pool := segment.NewPool(0, 1<<20)
	old := segment.NewLog(segment.Config{Pool: pool})
	for range 50 {
		require.NoError(t, old.Append(&segment.Record{Timestamp: 5}, 1))
	}
	require.NoError(t, old.Publish())
	drain(old)

	l := segment.NewLog(segment.Config{Pool: pool})
	stageRun(t, l, 40, 1, 10)
	require.NoError(t, l.Publish())
	put(t, l, 11, "published")
	require.NoError(t, l.Append(&segment.Record{}, 12))
	l.Unstage()
	require.NoError(t, l.Append(&segment.Record{Timestamp: 1000}, 13))
	put(t, l, 14, "last")
	require.EqualValues(t, 41, l.Since(1000))
	require.EqualValues(t, 41, l.Since(13))
	require.EqualValues(t, 40, l.Since(11))
}

// TestRow_InAColdSegment: what is loaded can be rows as well.
func TestRow_InAColdSegment(t *testing.T) {
	const records, each = 40, 2
	load := func(to *segment.Log) error {
		var r segment.Reservation
		if err := to.ReserveRun(&r, records, records*each, each, 5); err != nil {
			return err
		}
		run := r.NextRun(records, each)
		for i := range run {
			run[i] = byte(i / each)
		}
		to.StageRun(&r)
		return nil
	}
	for from := range uint64(records) {
		l := segment.NewLog(segment.Config{})
		require.NoError(t, l.AttachCold(segment.Cold{
			End: records, Bytes: records * (each + segment.EntryBytes), Oldest: 5, Newest: 5, Latest: 5, Load: load,
		}))
		for way, values := range readFrom(t, l, from) {
			require.Len(t, values, each*int(records-from), way)
			require.EqualValues(t, from, values[0], way)
		}
		at, ok := l.TimeOf(from)
		require.True(t, ok)
		require.EqualValues(t, 5, at)
	}
}

// appendSmall appends a record that is in no row.
func (x *machine) appendSmall(t *rapid.T) {
	rec := segment.Record{Value: []byte{byte(len(x.m.recs))}}
	switch rapid.SampledFrom([]string{"value", "no value", "key", "timestamp", "headers"}).Draw(t, "with") {
	case "no value":
		rec.Value = nil
	case "key":
		rec.Key = []byte("key")[:rapid.IntRange(0, 3).Draw(t, "key")]
	case "timestamp":
		rec.Timestamp = rapid.SampledFrom([]int64{-5, 1, 7, 50}).Draw(t, "timestamp")
	case "headers":
		rec.Headers = segment.MakeHeaders(segment.Header{Name: "name"})
	}
	x.now += rapid.SampledFrom([]int64{0, 1}).Draw(t, "tick")
	require.NoError(t, x.l.Append(&rec, x.now))
	x.appended(t, &rec)
}

// TestRow_Model is TestLog_Model where most records are in rows: small ones, many to a segment, of which few are anything but values.
func TestRow_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := segment.Config{
			SegmentBytes:   rapid.SampledFrom([]int{600, 4096, 0}).Draw(t, "SegmentBytes"),
			SegmentRecords: rapid.SampledFrom([]int{0, 0, 17, 33}).Draw(t, "SegmentRecords"),
			First:          rapid.SampledFrom([]uint64{0, 5}).Draw(t, "First"),
			Pool:           segment.NewPool(0, 1<<20).Poison(),
		}
		x := machineFor(cfg)
		t.Repeat(map[string]func(*rapid.T){
			"":         x.check,
			"append":   x.appendSmall,
			"batch":    x.batch,
			"batch2":   x.batch,
			"reserve":  x.reserve,
			"reserve2": x.reserve,
			"publish":  x.publish,
			"unstage":  func(*rapid.T) { x.l.Unstage(); x.unstaged() },
			"roll":     func(*rapid.T) { x.l.Roll() },
			"truncate": x.truncate,
			"readAt":   x.readAt,
			"offsetAt": x.offsetAt,
			"each":     x.forEach,
			"next":     x.next,
			"nextEach": x.nextEach,
			"values":   x.nextValues,
			"run":      x.nextRun,
			"seek":     x.seek,
			"jump":     x.jump,
		})
		drain(x.l)
		require.Zero(t, cfg.Pool.Used())
	})
}
