package segment_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/segment"
)

// rest is a record as a source has it: what it was appended with.
type rest struct {
	rec segment.Record
	now int64
}

// size returns what it takes in a segment.
func (r *rest) size() int64 {
	n := segment.EntryBytes + len(r.rec.Key) + len(r.rec.Value)
	if h := len(r.rec.Headers.Encoded()); h > 0 {
		n += 4 + h
	}
	if r.rec.Timestamp != 0 {
		n += 8
	}
	return int64(n)
}

// source has records elsewhere, from an offset on.
type source struct {
	first uint64
	all   []rest
	loads int
	fail  error
}

// cold describes those of the offsets [from, to).
func (s *source) cold(from, to uint64) segment.Cold {
	list := s.all[from-s.first : to-s.first]
	c := segment.Cold{First: from, End: to, Oldest: list[0].now, Newest: list[len(list)-1].now, Latest: math.MinInt64}
	for i := range list {
		c.Bytes += list[i].size()
		at := list[i].now
		if list[i].rec.Timestamp != 0 {
			at = list[i].rec.Timestamp
		}
		c.Latest = max(c.Latest, at)
	}
	c.Load = func(to *segment.Log) error {
		s.loads++
		for i := range list {
			if s.fail != nil && i == len(list)/2 {
				return s.fail
			}
			if err := to.Append(&list[i].rec, list[i].now); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// numbers returns a source of n records, whose values and append times are their offsets.
func numbers(n int) *source {
	s := &source{}
	for i := range n {
		s.all = append(s.all, rest{segment.Record{Value: []byte(fmt.Sprint(i))}, int64(i)})
	}
	return s
}

// attached returns a log with cold segments of each records of s.
func attached(t testing.TB, s *source, each int, c segment.Config) *segment.Log {
	l := segment.NewLog(c)
	for i := 0; i < len(s.all); i += each {
		require.NoError(t, l.AttachCold(s.cold(s.first+uint64(i), s.first+uint64(min(i+each, len(s.all))))))
	}
	return l
}

// TestAttachCold has cold segments read like others, each loaded once, and only those that somebody reads.
func TestAttachCold(t *testing.T) {
	s := numbers(30)
	l := attached(t, s, 10, segment.Config{Partition: 5})
	require.EqualValues(t, 30, l.Committed())
	require.EqualValues(t, 30, l.Staged())
	assert.Equal(t, 3, l.Cold())
	puts(t, l, 5)
	records, bytes, segments := l.Retained()
	require.Equal(t, bytes, l.Bytes())
	assert.EqualValues(t, 35, records)
	assert.EqualValues(t, 35*segment.EntryBytes+10+25*2, bytes)
	assert.Equal(t, 4, segments)
	at, ok := l.TimeOf(17)
	assert.True(t, ok)
	assert.EqualValues(t, 10, at, "when the oldest of its segment came")
	oldest, ok := l.Oldest()
	assert.True(t, ok)
	assert.Equal(t, segment.Info{First: 0, End: 10, Bytes: 10*segment.EntryBytes + 10, NewestAppend: 9}, oldest)
	assert.Zero(t, s.loads, "nobody has read anything")

	var recs [20]segment.Record
	n, err := l.ReadAt(15, recs[:5])
	require.NoError(t, err)
	require.Equal(t, 5, n)
	assert.Equal(t, "17", string(recs[2].Value))
	assert.EqualValues(t, 17, recs[2].Timestamp)
	assert.EqualValues(t, 17, recs[2].Offset)
	assert.EqualValues(t, 5, recs[2].Partition)
	assert.Equal(t, 1, s.loads)
	assert.Equal(t, 2, l.Cold())
	at, _ = l.TimeOf(17)
	assert.EqualValues(t, 17, at)

	r := l.NewReader()
	defer r.Close()
	values, state := read(r)
	assert.Equal(t, segment.CaughtUp, state)
	assert.Len(t, values, 35)
	for i, v := range values {
		assert.Equal(t, fmt.Sprint(i), v)
	}
	assert.Equal(t, 3, s.loads)
	assert.Zero(t, l.Cold())
	records, again, _ := l.Retained()
	assert.Equal(t, bytes, l.Bytes())
	assert.EqualValues(t, 35, records)
	assert.Equal(t, bytes, again)
}

// TestAttachCold_Drop drops cold segments, by each way there is, and loads nothing for it.
func TestAttachCold_Drop(t *testing.T) {
	pool := segment.NewPool(0, 0)
	s := numbers(50)
	l := attached(t, s, 10, segment.Config{Pool: pool})
	assert.EqualValues(t, 176+4*192, pool.Used(), "counted from the beginning, in whole entries")
	require.True(t, l.DropOldest())
	require.EqualValues(t, 10, l.First())
	l.TruncateBefore(25)
	require.EqualValues(t, 25, l.First())
	puts(t, l, 1)
	_, _, segments := l.Retained()
	require.Equal(t, 4, segments)
	r := l.NewReader()
	r.Seek(24)
	require.Equal(t, segment.Below, r.Refill())
	drain(l)
	assert.Zero(t, pool.Used())
	assert.Zero(t, s.loads)
	records, bytes, segments := l.Retained()
	assert.Zero(t, records)
	assert.Zero(t, bytes)
	assert.Zero(t, segments)
}

// TestAttachCold_Fails has a load fail: readers are told why, stay where they are, and try again.
func TestAttachCold_Fails(t *testing.T) {
	boom := errors.New("boom")
	s := numbers(20)
	l := attached(t, s, 10, segment.Config{})
	r := l.NewReader()
	defer r.Close()
	values, _ := readSome(r, 10)
	require.Len(t, values, 10)
	s.fail = boom
	for range 2 {
		require.Equal(t, segment.Unreadable, r.Refill())
		require.Equal(t, boom, r.Err())
		require.EqualValues(t, 10, r.Position())
		require.Zero(t, r.Window())
	}
	assert.Equal(t, "Unreadable", segment.Unreadable.String())
	var recs [20]segment.Record
	n, err := l.ReadAt(5, recs[:])
	require.NoError(t, err, "what there is before it comes first")
	require.Equal(t, 5, n)
	_, err = l.ReadAt(10, recs[:])
	require.Equal(t, boom, err)
	_, err = l.OffsetAt(12)
	require.Equal(t, boom, err)
	off, err := l.OffsetAt(5)
	require.NoError(t, err, "before it")
	require.EqualValues(t, 5, off)
	off, err = l.OffsetAt(20)
	require.NoError(t, err, "nothing that late can be in it")
	require.EqualValues(t, 20, off)
	require.Equal(t, boom, l.EachFrom(3, func(segment.Shape, []byte, int64) bool { return true }))
	pins, _ := l.Pins(12)
	require.Zero(t, pins)

	s.fail = nil
	values, state := read(r)
	require.Equal(t, segment.CaughtUp, state)
	require.Len(t, values, 10)
	off, err = l.OffsetAt(12)
	require.NoError(t, err)
	require.EqualValues(t, 12, off)
	n = 0
	require.NoError(t, l.EachFrom(3, func(segment.Shape, []byte, int64) bool { n++; return true }))
	require.Equal(t, 17, n)
	drain(l)
}

// TestReader_RefillWarm looks at a cold segment without loading it, and has it loaded.
func TestReader_RefillWarm(t *testing.T) {
	s := numbers(20)
	l := attached(t, s, 10, segment.Config{})
	r := l.NewReader()
	defer r.Close()
	for range 2 {
		require.Equal(t, segment.Frozen, r.RefillWarm())
		require.Zero(t, r.Window())
		require.Zero(t, r.Position())
	}
	require.Zero(t, s.loads)
	pins, _ := l.Pins(0)
	require.Zero(t, pins)
	assert.Equal(t, "Frozen", segment.Frozen.String())

	s.fail = errors.New("boom")
	require.Equal(t, s.fail, l.Warm(5))
	require.Equal(t, segment.Frozen, r.RefillWarm())
	s.fail = nil
	require.NoError(t, l.Warm(5))
	require.NoError(t, l.Warm(5))
	require.Equal(t, 2, s.loads)
	pins, _ = l.Pins(5)
	require.Zero(t, pins)
	require.Equal(t, segment.Ready, r.RefillWarm())
	require.Equal(t, 10, r.Window())
	r.Seek(10)
	require.Equal(t, segment.Frozen, r.RefillWarm())
	require.NoError(t, l.Warm(20), "nothing is there")
	require.NoError(t, l.Warm(21))
	l.TruncateBefore(15)
	require.Equal(t, segment.Below, r.RefillWarm())
	require.NoError(t, l.Warm(14), "nor there any more")
	require.Equal(t, 2, s.loads)
	r.Seek(15)
	require.Equal(t, segment.Frozen, r.RefillWarm())
	require.Equal(t, segment.Ready, r.Refill())
	require.Equal(t, 5, r.Window())
	l.Seal()
	r.Seek(20)
	require.Equal(t, segment.Sealed, r.RefillWarm())
}

// readSome reads up to n values.
func readSome(r *segment.Reader, n int) (values []string, s segment.State) {
	var rec segment.Record
	for len(values) < n {
		if s = r.Refill(); s != segment.Ready {
			return values, s
		}
		for len(values) < n && r.Next(&rec) {
			values = append(values, string(rec.Value))
		}
	}
	return values, segment.Ready
}

// TestAttachCold_Announced refuses what is not what was announced.
func TestAttachCold_Announced(t *testing.T) {
	for name, change := range map[string]func(c *segment.Cold, s *source){
		"fewer records": func(c *segment.Cold, s *source) {
			c.Load = s.cold(0, 9).Load
		},
		"more records": func(c *segment.Cold, s *source) {
			c.Load = s.cold(0, 11).Load
		},
		"larger ones": func(c *segment.Cold, s *source) {
			c.Bytes -= 16
		},
		"published": func(c *segment.Cold, _ *source) {
			load := c.Load
			c.Load = func(to *segment.Log) error { return errors.Join(load(to), to.Publish()) }
		},
		"rolled": func(c *segment.Cold, _ *source) {
			load := c.Load
			c.Load = func(to *segment.Log) error { err := load(to); to.Roll(); return err }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := numbers(20)
			c := s.cold(0, 10)
			change(&c, s)
			l := segment.NewLog(segment.Config{})
			require.NoError(t, l.AttachCold(c))
			r := l.NewReader()
			defer r.Close()
			require.Equal(t, segment.Unreadable, r.Refill())
			require.ErrorIs(t, r.Err(), segment.ErrCold)
		})
	}
}

// TestAttachCold_Refused has the pool, the seal and a size refuse a segment, after which nothing has changed.
func TestAttachCold_Refused(t *testing.T) {
	s := numbers(30)
	l := segment.NewLog(segment.Config{Pool: segment.NewPool(4096, 0)})
	big := s.cold(0, 10)
	big.Bytes = 4000
	require.NoError(t, l.AttachCold(big))
	require.Equal(t, segment.ErrNoMemory, l.AttachCold(s.cold(10, 20)))
	require.EqualValues(t, 10, l.Committed())
	require.True(t, l.DropOldest())
	require.NoError(t, l.AttachCold(s.cold(10, 20)))

	huge := s.cold(20, 30)
	huge.Bytes = 1 << 31
	require.ErrorIs(t, l.AttachCold(huge), segment.ErrTooLarge)
	long := s.cold(20, 30)
	long.Oldest, long.Newest = math.MinInt64, math.MaxInt64
	require.ErrorIs(t, l.AttachCold(long), segment.ErrTooLarge)
	require.Panics(t, func() { _ = l.AttachCold(s.cold(19, 30)) })
	require.Panics(t, func() { _ = l.AttachCold(s.cold(21, 30)) })
	l.Seal()
	require.Equal(t, segment.ErrSealed, l.AttachCold(s.cold(20, 30)))
	require.EqualValues(t, 20, l.Committed())
	_, _, segments := l.Retained()
	require.Equal(t, 1, segments)
}

// TestAttachCold_Unstage drops what was staged behind a cold segment, and loads nothing for it.
func TestAttachCold_Unstage(t *testing.T) {
	s := numbers(20)
	l := attached(t, s, 10, segment.Config{SegmentRecords: 2})
	_, before, _ := l.Retained()
	for range 7 {
		require.NoError(t, l.Append(&segment.Record{Value: []byte("x")}, 1))
	}
	l.Unstage()
	_, bytes, segments := l.Retained()
	require.Equal(t, before, bytes)
	require.Equal(t, 2, segments)
	require.Zero(t, s.loads)
	puts(t, l, 3)
	at, _ := l.TimeOf(20)
	require.EqualValues(t, 20, at)
	l.TruncateBefore(20)
	require.Zero(t, s.loads)
}

// TestAttachCold_Model compares a log that was attached cold with one to which the same records were appended.
func TestAttachCold_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &source{first: rapid.SampledFrom([]uint64{0, 7, 1 << 40}).Draw(t, "first")}
		now := rapid.Int64Range(-50, 50).Draw(t, "now")
		n := rapid.IntRange(1, 60).Draw(t, "records")
		own := rapid.IntRange(0, 2).Draw(t, "own timestamps")
		random := func() rest {
			now += rapid.Int64Range(0, 2).Draw(t, "later")
			r := segment.Record{Value: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "value")}
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				r.Key = []byte("key")
			case 1:
				r.Value = nil
			case 2:
				r.Headers = segment.MakeHeaders(segment.Header{Name: "h", Value: []byte("v")})
			}
			if own == 2 || own == 1 && rapid.Bool().Draw(t, "own") {
				r.Timestamp = rapid.Int64Range(-60, 200).Draw(t, "timestamp")
			}
			return rest{r, now}
		}
		for range n {
			s.all = append(s.all, random())
		}
		end := s.first + uint64(n)

		low := s.first + uint64(rapid.IntRange(0, n-1).Draw(t, "low"))
		l := segment.NewLog(segment.Config{First: low, SegmentRecords: 8})
		want := segment.NewLog(segment.Config{First: low, SegmentRecords: 8})
		for from := s.first; from < end; {
			to := from + uint64(rapid.IntRange(1, 20).Draw(t, "piece"))
			to = min(to, end)
			if to > low {
				require.NoError(t, l.AttachCold(s.cold(from, to)))
			}
			from = to
		}
		for i := low; i < end; i++ {
			require.NoError(t, want.Append(&s.all[i-s.first].rec, s.all[i-s.first].now))
		}
		require.NoError(t, want.Publish())
		same := func(off uint64) {
			var a, b [4]segment.Record
			n, err := l.ReadAt(off, a[:])
			m, wrong := want.ReadAt(off, b[:])
			require.Equal(t, wrong, err)
			require.Equal(t, m, n)
			require.Equal(t, b[:m], a[:n])
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, want.Committed(), l.Committed())
				require.Equal(t, want.First(), l.First())
			},
			"append": func(t *rapid.T) {
				r := random()
				require.NoError(t, l.Append(&r.rec, r.now))
				require.NoError(t, want.Append(&r.rec, r.now))
				require.NoError(t, l.Publish())
				require.NoError(t, want.Publish())
			},
			"read": func(t *rapid.T) { same(rapid.Uint64Range(s.first, l.Committed()+1).Draw(t, "offset")) },
			"search": func(t *rapid.T) {
				at := rapid.Int64Range(-100, 250).Draw(t, "time")
				a, err := l.OffsetAt(at)
				require.NoError(t, err)
				b, err := want.OffsetAt(at)
				require.NoError(t, err)
				require.Equal(t, b, a)
			},
			"fail": func(t *rapid.T) {
				s.fail = errors.New("boom")
				_, _ = l.OffsetAt(rapid.Int64Range(-100, 250).Draw(t, "time"))
				var a [40]segment.Record
				_, _ = l.ReadAt(rapid.Uint64Range(s.first, l.Committed()).Draw(t, "offset"), a[:])
				s.fail = nil
			},
			"truncate": func(t *rapid.T) {
				off := rapid.Uint64Range(l.First(), min(l.First()+10, l.Committed())).Draw(t, "offset")
				l.TruncateBefore(off)
				want.TruncateBefore(off)
			},
			"drop": func(t *rapid.T) {
				info, ok := l.Oldest()
				if !ok {
					return
				}
				require.True(t, l.DropOldest())
				require.Equal(t, info.End, l.First())
				want.TruncateBefore(info.End)
			},
		})
		for off := l.First(); off <= l.Committed(); off++ {
			same(off)
		}
		drain(l)
		_, bytes, segments := l.Retained()
		require.Zero(t, bytes)
		require.Zero(t, segments)
	})
}
