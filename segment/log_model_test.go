package segment_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/segment"
)

// modelRecord is a record as it was appended.
type modelRecord struct {
	rec  segment.Record // a clone, with the timestamp and offset that a reader must see
	time int64          // append time
	size int64          // bytes it takes, entry included
}

// model is what a Log is meant to be, written so that nobody can get it wrong: a slice and a few numbers.
type model struct {
	base   uint64 // offset of recs[0], never changed
	recs   []modelRecord
	first  uint64
	next   uint64 // published
	newest int64
	sealed bool
}

func (m *model) at(off uint64) *modelRecord { return &m.recs[off-m.base] }
func (m *model) staged() uint64             { return m.base + uint64(len(m.recs)) }

func (m *model) offsetAt(t int64) uint64 {
	for off := m.first; off < m.next; off++ {
		if m.at(off).rec.Timestamp >= t {
			return off
		}
	}
	return m.next
}

// modelReader is a Reader and what it must say.
type modelReader struct {
	r    *segment.Reader
	pos  uint64
	from uint64           // position at the last Refill
	held []segment.Record // views since the last Refill
	want []uint64         // their offsets
}

// machine drives a Log and its model by the same calls.
type machine struct {
	cfg     segment.Config
	l       *segment.Log
	m       model
	readers []*modelReader
	kept    []segment.Record // views from ReadAt, valid for ever
	keptOff []uint64
	now     int64
	refused bool // Publish has returned ErrSealed

	// most is how many records there may be in the segment with that base because Ensure was asked for more than
	// SegmentRecords.
	most map[uint64]int
}

func newMachine(t *rapid.T) *machine {
	cfg := segment.Config{
		SegmentBytes:   rapid.SampledFrom([]int{1, 100, 600, 4096, 10000, 0}).Draw(t, "SegmentBytes"),
		SegmentRecords: rapid.SampledFrom([]int{0, 0, 1, 2, 7}).Draw(t, "SegmentRecords"),
		First:          rapid.SampledFrom([]uint64{0, 1, 1<<32 - 3, 1<<53 - 1, math.MaxInt64 - 40, math.MaxInt64}).Draw(t, "First"),
		Partition:      rapid.Int32().Draw(t, "Partition"),
		Pool: segment.NewPool(
			rapid.SampledFrom([]int64{0, 16 << 10, 40 << 10}).Draw(t, "maxBytes"),
			rapid.SampledFrom([]int64{0, 8 << 10, 1 << 20}).Draw(t, "keepBytes")).Poison(),
	}
	return machineFor(cfg)
}

func machineFor(cfg segment.Config) *machine {
	x := &machine{cfg: cfg, l: segment.NewLog(cfg), most: map[uint64]int{}}
	x.m = model{base: cfg.First, first: cfg.First, next: cfg.First, newest: math.MinInt64}
	for range 3 {
		x.readers = append(x.readers, &modelReader{r: x.l.NewReader(), pos: cfg.First, from: cfg.First})
	}
	return x
}

func drawBytes(t *rapid.T, label string) []byte {
	switch n := rapid.SampledFrom([]int{-1, 0, 1, 8, 60, 300, 5000, 17_000}).Draw(t, label); n {
	case -1:
		return nil
	default:
		return bytes.Repeat([]byte{rapid.Byte().Draw(t, label+" byte")}, n)
	}
}

// append appends a few records and often publishes them, so that readers have something to walk through.
func (x *machine) append(t *rapid.T) {
	for range rapid.IntRange(1, 6).Draw(t, "records") {
		x.appendOne(t)
	}
	if rapid.Bool().Draw(t, "publish") {
		x.publish(t)
	}
}

func (x *machine) appendOne(t *rapid.T) {
	rec := segment.Record{Value: drawBytes(t, "value")}
	if !rapid.Bool().Draw(t, "a value alone") {
		rec.Key = drawBytes(t, "key")
		for range rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "headers") {
			rec.Headers = rec.Headers.Add(rapid.StringN(0, 4, -1).Draw(t, "name"), drawBytes(t, "header"))
		}
		rec.Timestamp = rapid.SampledFrom([]int64{0, 0, 0, -5, 1, 7, 50, math.MaxInt64, math.MinInt64}).Draw(t, "timestamp")
	}
	x.now += rapid.SampledFrom([]int64{0, 0, 1, 5, -3, 1 << 57}).Draw(t, "tick")

	if err := x.l.Append(&rec, x.now); err != nil {
		x.appendFailed(t, &rec, err)
		return
	}
	x.appended(t, &rec)
	// The log must have copied: scribble over what was passed in.
	for _, b := range [][]byte{rec.Key, rec.Value} {
		for i := range b {
			b[i] ^= 0xff
		}
	}
}

// appendFailed checks why a record could not be appended.
func (x *machine) appendFailed(t *rapid.T, rec *segment.Record, err error) {
	switch {
	case errors.Is(err, segment.ErrNoMemory): // any state may refuse; that nothing has changed is checked after each step
	case errors.Is(err, segment.ErrTooLarge):
		require.Greater(t, rec.Size()+28, 16<<10)
	case errors.Is(err, segment.ErrExhausted):
		require.Equal(t, uint64(math.MaxInt64), x.m.staged())
	case errors.Is(err, segment.ErrSealed):
		require.True(t, x.refused)
	default:
		require.NoError(t, err)
	}
}

// appended notes a record that has been staged.
func (x *machine) appended(t *rapid.T, rec *segment.Record) {
	require.False(t, x.refused)
	size := int64(rec.Size()) + 16
	if rec.Headers.Size() > 0 {
		size += 4
	}
	if rec.Timestamp != 0 {
		size += 8
	}
	x.m.newest = max(x.m.newest, x.now)
	want := rec.Clone()
	want.Offset, want.Partition = int64(x.m.staged()), x.cfg.Partition
	if want.Timestamp == 0 {
		want.Timestamp = x.m.newest
	}
	x.m.recs = append(x.m.recs, modelRecord{rec: want, time: x.m.newest, size: size})
}

// batch appends values of one size that lie in one buffer, which makes rows of them, and often publishes them.
func (x *machine) batch(t *rapid.T) {
	batch := make([]segment.Record, rapid.IntRange(1, 40).Draw(t, "records"))
	size := rapid.SampledFrom([]int{0, 1, 8}).Draw(t, "size")
	buffer := make([]byte, len(batch)*size)
	for i := range batch {
		batch[i].Value = buffer[i*size : (i+1)*size]
		for j := range batch[i].Value {
			batch[i].Value[j] = byte(len(x.m.recs) + i)
		}
	}
	x.now += rapid.SampledFrom([]int64{0, 0, 1, 5, -3}).Draw(t, "tick")
	n, err := x.l.AppendEach(batch, x.now)
	for i := range batch[:n] {
		x.appended(t, &batch[i])
	}
	if n < len(batch) {
		x.appendFailed(t, &batch[n], err)
	}
	clear(buffer) // the log must have copied
	if rapid.Bool().Draw(t, "publish") {
		x.publish(t)
	}
}

func (x *machine) publish(t *rapid.T) {
	err := x.l.Publish()
	switch {
	case x.m.staged() == x.m.next:
		require.NoError(t, err)
	case x.m.sealed:
		require.ErrorIs(t, err, segment.ErrSealed)
		x.refused = true
		x.unstaged()
	default:
		require.NoError(t, err)
		x.m.next = x.m.staged()
	}
}

func (x *machine) unstaged() { x.m.recs = x.m.recs[:x.m.next-x.m.base] }

func (x *machine) check(t *rapid.T) {
	l, m := x.l, &x.m
	first, next := l.Snapshot()
	require.Equal(t, m.first, first)
	require.Equal(t, m.next, next)
	require.Equal(t, m.first, l.First())
	require.Equal(t, m.next, l.Committed())
	require.Equal(t, m.staged(), l.Staged())
	require.Equal(t, int(m.staged()-m.next), l.Unpublished())
	require.Equal(t, m.sealed, l.Sealed())

	// Recount.
	records, size, segments := l.Retained()
	require.EqualValues(t, m.staged()-m.first, records)
	bases := l.Bases()
	require.Len(t, bases, segments)
	var want, published int64
	for i, base := range bases {
		end := m.staged()
		if i+1 < len(bases) {
			end = bases[i+1]
		}
		if i+1 < len(bases) {
			require.Greater(t, end, base, "an empty segment")
		}
		var in int64
		for off := base; off < end; off++ {
			in += m.at(off).size
			if off < m.next {
				published += m.at(off).size
			}
		}
		if n := int(end - base); x.cfg.SegmentRecords > 0 {
			require.LessOrEqual(t, n, max(x.cfg.SegmentRecords, x.most[base]))
		}
		want += in
	}
	require.Equal(t, want, size)
	require.Equal(t, published, l.Bytes())
	if len(bases) > 0 {
		require.LessOrEqual(t, bases[0], max(m.first, bases[0]))
	} else {
		require.Equal(t, m.first, m.staged())
	}
	if info, ok := l.Oldest(); ok {
		require.Equal(t, m.first, info.First)
		require.Greater(t, info.End, info.First)
		require.LessOrEqual(t, info.End, m.next)
		require.Equal(t, m.at(info.End-1).time, info.NewestAppend)
	} else {
		require.True(t, m.first == m.next, "first %d, next %d", m.first, m.next)
	}

	// Memory: used covers what is retained, and the bound holds.
	used := x.cfg.Pool.Used()
	require.GreaterOrEqual(t, used, size)
	if segments == 0 {
		require.Zero(t, used)
	}

	for i := range x.kept {
		requireRecord(t, &m.at(x.keptOff[i]).rec, &x.kept[i])
	}
	for _, r := range x.readers {
		require.Equal(t, r.pos, r.r.Position())
		for i := range r.held {
			requireRecord(t, &m.at(r.want[i]).rec, &r.held[i])
		}
	}
}

func requireRecord(t require.TestingT, want, got *segment.Record) {
	require.Equal(t, want.Offset, got.Offset)
	require.Equal(t, want.Partition, got.Partition)
	require.Equal(t, want.Timestamp, got.Timestamp)
	for _, b := range [][2][]byte{{want.Key, got.Key}, {want.Value, got.Value}} {
		require.Equal(t, b[0] == nil, b[1] == nil, "nil and empty differ")
		if !bytes.Equal(b[0], b[1]) {
			require.Equal(t, b[0], b[1])
		}
		require.Equal(t, len(b[1]), cap(b[1]), "a view must be capped")
	}
	require.Equal(t, headerList(want.Headers), headerList(got.Headers))
}

func headerList(h segment.Headers) (list []segment.Header) {
	for name, value := range h.All() {
		list = append(list, segment.Header{Name: name, Value: slices.Clone(value)})
	}
	return list
}

func (x *machine) readAt(t *rapid.T) {
	m := &x.m
	off := drawOffset(t, m)
	dst := make([]segment.Record, rapid.IntRange(0, 5).Draw(t, "len(dst)"))
	n, err := x.l.ReadAt(off, dst)
	switch {
	case off < m.first:
		require.ErrorIs(t, err, segment.ErrBelow)
		require.Zero(t, n)
	case off > m.next:
		require.ErrorIs(t, err, segment.ErrBeyond)
		require.Zero(t, n)
	default:
		require.NoError(t, err)
		require.Equal(t, min(len(dst), int(m.next-off)), n)
		for i := range n {
			x.kept = append(x.kept, dst[i])
			x.keptOff = append(x.keptOff, off+uint64(i))
		}
	}
	at, ok := x.l.TimeOf(off)
	require.Equal(t, off >= m.first && off < m.next, ok)
	if ok {
		require.Equal(t, m.at(off).time, at)
	}
}

// drawOffset draws an offset around those that there are.
func drawOffset(t *rapid.T, m *model) uint64 {
	off := m.base + uint64(rapid.IntRange(0, len(m.recs)+2).Draw(t, "offset"))
	if m.base > 0 && rapid.IntRange(0, 9).Draw(t, "before the base") == 0 {
		off = m.base - 1
	}
	return off
}

// ensure asks for memory ahead, uses some of it or none, and so now and then leaves an active segment without a record.
func (x *machine) ensure(t *rapid.T) {
	records, size := rapid.IntRange(1, 4).Draw(t, "records"), rapid.SampledFrom([]int{0, 10, 600, 5000}).Draw(t, "size")
	before := x.l.Active()
	err := x.l.Ensure(int64(records*size), records, x.now)
	if err != nil {
		known := errors.Is(err, segment.ErrNoMemory) || errors.Is(err, segment.ErrTooLarge)
		require.True(t, known || errors.Is(err, segment.ErrSealed) == x.refused || errors.Is(err, segment.ErrExhausted), "%v", err)
		return
	}
	require.False(t, x.refused)
	if x.l.Active() != before {
		x.m.newest = max(x.m.newest, x.now) // the segment that it opened begins then
		x.most[x.m.staged()] = records
	}
	if x.m.staged()+uint64(records) > math.MaxInt64 {
		return
	}
	for range rapid.IntRange(0, records).Draw(t, "used") {
		rec := segment.Record{Value: make([]byte, size)}
		require.NoError(t, x.l.Append(&rec, x.now), "Ensure said that there is room")
		x.m.newest = max(x.m.newest, x.now)
		rec.Offset, rec.Partition, rec.Timestamp = int64(x.m.staged()), x.cfg.Partition, x.m.newest
		x.m.recs = append(x.m.recs, modelRecord{rec: rec, time: x.m.newest, size: int64(size) + 16})
	}
}

func (x *machine) truncate(t *rapid.T) {
	m := &x.m
	off := drawOffset(t, m)
	x.l.TruncateBefore(off)
	m.first = max(m.first, min(off, m.next))
}

func (x *machine) offsetAt(t *rapid.T) {
	at := rapid.SampledFrom([]int64{math.MinInt64, -6, -5, 0, 1, 2, 8, x.now, x.now + 1, 1 << 57, math.MaxInt64}).Draw(t, "time")
	require.Equal(t, x.m.offsetAt(at), x.l.Since(at))
}

// forEach looks at the records as the appender does: at those from somewhere on that are published, or at those that are not.
func (x *machine) forEach(t *rapid.T) {
	m := &x.m
	off, end := m.next, m.staged()
	look := func(s segment.Shape, body []byte, appended int64) bool {
		want := m.at(off)
		require.Equal(t, want.time, appended)
		if s.Timestamp != 0 {
			require.Equal(t, want.rec.Timestamp, s.Timestamp)
		}
		shape := want.rec.Shape()
		shape.Timestamp = s.Timestamp
		require.Equal(t, shape, s)
		whole := make([]byte, want.rec.Size())
		want.rec.CopyTo(whole)
		require.True(t, bytes.Equal(whole, body))
		off++
		return true
	}
	if rapid.Bool().Draw(t, "staged") {
		x.l.EachStaged(look)
	} else {
		off, end = max(m.first, min(drawOffset(t, m), m.next)), m.next
		require.NoError(t, x.l.EachFrom(off, look))
	}
	require.Equal(t, end, off)
}

func TestLog_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newMachine(t)
		l, m := x.l, &x.m
		for range rapid.IntRange(0, 4).Draw(t, "appends") {
			x.append(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":        x.check,
			"append":  x.append,
			"append2": x.append,
			"batch":   x.batch,
			"ensure":  x.ensure,
			"reserve": x.reserve,
			"publish": x.publish,
			"unstage": func(t *rapid.T) { l.Unstage(); x.unstaged() },
			"roll":    func(t *rapid.T) { l.Roll() },
			"drop": func(t *rapid.T) {
				info, ok := l.Oldest()
				bases := l.Bases()
				mayGo := ok && !(info.Active && l.Unpublished() > 0)
				if mayGo && len(bases) > 1 {
					mayGo = bases[1] <= m.next
				} else if mayGo && !info.Active {
					mayGo = l.Unpublished() == 0
				}
				inVain := len(bases) == 1 && bases[0] == m.staged() // Ensure opened it, and nothing came
				dropped := l.DropOldest()
				require.Equal(t, mayGo || inVain, dropped)
				if mayGo {
					m.first = info.End
				}
			},
			"truncate": x.truncate,
			"seal": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "really") == 0 {
					require.Equal(t, m.next, l.Seal())
					m.sealed = true
				}
			},
			"readAt":   x.readAt,
			"offsetAt": x.offsetAt,
			"each":     x.forEach,
			"refill":   x.refill,
			"next":     x.next,
			"next2":    x.next,
			"nextEach": x.nextEach,
			"values":   x.nextValues,
			"run":      x.nextRun,
			"seek":     x.seek,
			"jump":     x.jump,
			"close": func(t *rapid.T) {
				r := rapid.SampledFrom(x.readers).Draw(t, "reader")
				r.held, r.want = nil, nil
				r.from = r.pos
				r.r.Close()
			},
		})
		drain(l)
		require.Zero(t, x.cfg.Pool.Used())
		_, size, segments := l.Retained()
		require.Zero(t, size)
		require.Zero(t, segments)
	})
}
