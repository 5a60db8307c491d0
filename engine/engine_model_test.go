package engine_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine"
)

// model is what a partition is meant to be, written so that nobody can get it wrong: all records that there ever were, where
// the segments begin, and where the readers are.
type model struct {
	start, first, next int64
	records            []engine.Record // from start on
	segments           []int64         // where those that are there begin
	most, perSegment   int64
	policy             engine.OnFull
	readers            []*modelReader
}

type modelReader struct {
	pos, window int64 // the next record; the end of those that it has got hold of
	gating      bool
	gate        int64
	lost        int64
}

func (m *model) record(off int64) engine.Record { return m.records[off-m.start] }

// end returns where the segment that off is in ends, or will end.
func (m *model) end(off int64) int64 {
	for _, s := range m.segments {
		if s > off {
			return s
		}
	}
	return m.next
}

// makeRoom makes room for n records if the policy allows it.
func (m *model) makeRoom(n int64) bool {
	for m.most > 0 && m.next-m.first+n > m.most {
		if m.first == m.next {
			return false
		}
		end := m.end(m.first)
		for _, r := range m.readers {
			if m.policy != engine.DropOldest && r.gating && r.gate < end {
				return false
			}
		}
		m.first = end
		m.segments = m.segments[1:]
	}
	return true
}

func (m *model) append(r engine.Record) {
	if n := len(m.segments); n == 0 || m.next-m.segments[n-1] == m.perSegment {
		m.segments = append(m.segments, m.next)
	}
	r.Offset, r.Partition = m.next, 0
	m.records = append(m.records, r)
	m.next++
}

func (m *model) truncate(off int64) {
	m.first = max(m.first, off)
	for len(m.segments) > 0 && m.end(m.segments[0]) <= m.first {
		m.segments = m.segments[1:]
	}
}

// advance says that r is done with what it got before.
func (r *modelReader) advance() { r.gate = max(r.gate, r.pos) }

// TestPartition_Model makes random calls of one partition and its readers, and compares everything with the model.
func TestPartition_Model(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{})
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			start:      rapid.SampledFrom([]int64{0, 1<<31 - 2, 1<<32 - 2, 1 << 53, math.MaxInt64 - 5000}).Draw(t, "start"),
			most:       rapid.SampledFrom([]int64{0, 1, 2, 7, 20}).Draw(t, "MaxRecords"),
			perSegment: rapid.Int64Range(1, 5).Draw(t, "SegmentRecords"),
			policy:     rapid.SampledFrom([]engine.OnFull{engine.Block, engine.Reject, engine.DropOldest}).Draw(t, "OnFull"),
		}
		if m.most > 0 {
			m.perSegment = min(m.perSegment, m.most)
		}
		m.first, m.next = m.start, m.start
		topic, err := e.CreateTopic("topic", engine.FirstAt(engine.TopicConfig{
			Retention:      engine.Retention{MaxRecords: m.most},
			SegmentRecords: int(m.perSegment),
			OnFull:         m.policy,
			HandoverSlots:  rapid.SampledFrom([]int{2, 64}).Draw(t, "HandoverSlots"),
		}, m.start))
		require.NoError(t, err)
		p, err := topic.Partition(0)
		require.NoError(t, err)
		defer func() { require.NoError(t, e.DeleteTopic("topic")) }()
		s := &modelTest{m: m, topic: topic, p: p}
		for i := range 3 {
			r, err := p.Reader(engine.ReaderConfig{Gating: i > 0, Wait: engine.Wait(i)})
			require.NoError(t, err)
			defer r.Close()
			s.readers = append(s.readers, r)
			m.readers = append(m.readers, &modelReader{pos: m.start, window: m.start, gating: i > 0, gate: m.start})
		}
		t.Repeat(map[string]func(*rapid.T){
			"":             s.check,
			"publish":      s.publish,
			"publish more": s.publish,
			"batch":        s.batch,
			"appender":     s.appender,
			"next":         s.next,
			"next batch":   s.nextBatch,
			"next values":  s.nextValues,
			"next run":     s.nextRun,
			"seek":         s.seek,
			"read at":      s.readAt,
			"since":        s.since,
			"truncate":     s.truncate,
		})
	})
}

type modelTest struct {
	m       *model
	topic   *engine.Topic
	p       *engine.Partition
	readers []*engine.Reader
	failed  int64 // accepted and then refused
}

// drawRecord draws a record. Timestamps are few, so that many are the same.
func drawRecord(t *rapid.T) engine.Record {
	bytes := rapid.OneOf(rapid.Just([]byte(nil)), rapid.Just([]byte{}), rapid.SliceOfN(rapid.Byte(), 0, 200))
	r := engine.Record{
		Key:       bytes.Draw(t, "key"),
		Value:     bytes.Draw(t, "value"),
		Timestamp: rapid.SampledFrom([]int64{0, 0, 1, 2, 3, 4, 5}).Draw(t, "timestamp"),
		Offset:    rapid.Int64().Draw(t, "offset that means nothing"),
	}
	if rapid.Bool().Draw(t, "has headers") {
		r.Headers = engine.MakeHeaders(engine.Header{Name: "a", Value: bytes.Draw(t, "header")}, engine.Header{})
	}
	return r
}

func (s *modelTest) same(t *rapid.T, got engine.Record, off int64) {
	want := s.m.record(off)
	if want.Timestamp == 0 {
		require.Greater(t, got.Timestamp, int64(1e18), "the time of the append")
		want.Timestamp = got.Timestamp
	}
	require.Equal(t, want.Headers.Len(), got.Headers.Len())
	want.Headers, got.Headers = engine.Headers{}, engine.Headers{}
	require.Equal(t, want, got)
}

// check compares what can be asked at any time.
func (s *modelTest) check(t *rapid.T) {
	m := s.m
	require.Equal(t, m.first, s.p.First())
	require.Equal(t, m.next, s.p.Next())
	stats := s.p.Stats()
	require.Equal(t, m.first-m.start, stats.Reclaimed)
	require.Equal(t, len(m.segments), stats.Segments)
	require.Equal(t, s.failed, stats.AsyncFailed)
	require.Zero(t, stats.Blocked)
	for i, r := range s.readers {
		require.Equal(t, m.readers[i].pos, r.Position())
		require.Equal(t, m.readers[i].lost, r.Lost())
		require.Equal(t, m.next-max(m.readers[i].pos, m.first), r.Lag())
	}
	from := rapid.Int64Range(m.first-2, m.next+2).Draw(t, "from")
	want := max(from, m.first)
	for off, r := range s.p.Records(from) {
		require.Equal(t, want, off)
		s.same(t, r, off)
		want++
	}
	require.Equal(t, max(want, m.next), max(want, from), "all of them")
}

// publish publishes one record in one of the ways.
func (s *modelTest) publish(t *rapid.T) {
	r := drawRecord(t)
	way := rapid.SampledFrom(publishers[:5]).Draw(t, "way")
	s.put(t, []engine.Record{r}, way.name == "TryPublish", func(ctx context.Context) error { return way.publish(ctx, s.topic, r) })
}

func (s *modelTest) batch(t *rapid.T) {
	rs := rapid.SliceOfN(rapid.Custom(drawRecord), 0, 6).Draw(t, "batch")
	if s.m.most > 0 && int64(len(rs)) > s.m.most {
		require.ErrorIs(t, s.p.PublishBatch(background, rs), engine.ErrTooLarge)
		return
	}
	at := s.m.next
	s.put(t, rs, false, func(ctx context.Context) error { return s.p.PublishBatch(ctx, rs) })
	for i := range rs {
		if at != s.m.next {
			require.Equal(t, at+int64(i), rs[i].Offset)
		}
	}
}

// put has rs published by publish.
func (s *modelTest) put(t *rapid.T, rs []engine.Record, try bool, publish func(ctx context.Context) error) {
	switch room := s.m.makeRoom(int64(len(rs))); {
	case room:
		require.NoError(t, publish(background))
		for _, r := range rs {
			s.m.append(r)
		}
	case s.m.policy == engine.Reject:
		if err := publish(background); err != nil {
			require.ErrorIs(t, err, engine.ErrFull)
		} else {
			s.failed++
		}
	default:
		// It would wait until a reader moves on. Asynchronous ones cannot be called back, so a batch stands for them.
		ctx, cancel := context.WithCancel(background)
		result := make(chan error)
		go func() { result <- s.p.PublishBatch(ctx, rs) }()
		await(func() bool { return s.p.Stats().Full })
		if try {
			require.ErrorIs(t, publish(background), engine.ErrFull)
		}
		cancel()
		require.Equal(t, context.Canceled, <-result)
		await(func() bool { return !s.p.Stats().Full })
	}
	require.NoError(t, s.p.Flush(background))
}

func (s *modelTest) appender(t *rapid.T) {
	a, err := s.p.Appender(background)
	require.NoError(t, err)
	require.ErrorIs(t, s.topic.TryPublish(engine.Record{}), engine.ErrExclusive)
	ended, cancel := context.WithCancel(background)
	cancel() // it is for waiting only
	for range rapid.IntRange(0, 4).Draw(t, "records") {
		r := drawRecord(t)
		want, room := s.m.next, s.m.makeRoom(1)
		off, err := a.Append(ended, r)
		switch {
		case room:
			require.NoError(t, err)
			require.Equal(t, want, off)
			s.m.append(r)
		case s.m.policy == engine.Reject:
			require.ErrorIs(t, err, engine.ErrFull)
		default:
			require.Equal(t, context.Canceled, err)
		}
		if rapid.Bool().Draw(t, "flush") {
			require.NoError(t, a.Flush())
			require.Equal(t, s.m.next, s.p.Next())
		}
	}
	require.NoError(t, a.Close())
}

func (s *modelTest) drawReader(t *rapid.T) (*engine.Reader, *modelReader) {
	i := rapid.IntRange(0, len(s.readers)-1).Draw(t, "reader")
	return s.readers[i], s.m.readers[i]
}

// read has call read up to n records: as many as there are, or, if n is negative, maybe fewer than -n but not none.
func (s *modelTest) read(t *rapid.T, m *modelReader, n int, call func(ctx context.Context) ([]engine.Record, error)) {
	ended, cancel := context.WithCancel(background)
	cancel() // it is for waiting only
	rs, err := call(ended)
	if m.pos == m.window {
		m.advance()
		if m.pos < s.m.first {
			var gap *engine.GapError
			require.ErrorAs(t, err, &gap)
			require.Equal(t, engine.GapError{From: m.pos, To: s.m.first}, *gap)
			m.lost += gap.Lost()
			m.pos, m.window = s.m.first, s.m.first
			m.advance()
			return
		}
		m.window = s.m.end(m.pos)
	}
	if m.pos == m.window {
		require.Equal(t, context.Canceled, err)
		return
	}
	require.NoError(t, err)
	if n < 0 {
		require.NotEmpty(t, rs)
		require.LessOrEqual(t, len(rs), min(-n, int(m.window-m.pos)))
	} else {
		require.Len(t, rs, min(n, int(m.window-m.pos)))
	}
	for _, r := range rs {
		s.same(t, r, m.pos)
		m.pos++
	}
}

func (s *modelTest) next(t *rapid.T) {
	r, m := s.drawReader(t)
	s.read(t, m, 1, func(ctx context.Context) ([]engine.Record, error) {
		rec, err := r.Next(ctx)
		return []engine.Record{rec}, err
	})
}

func (s *modelTest) nextBatch(t *rapid.T) {
	r, m := s.drawReader(t)
	n := rapid.IntRange(1, 10).Draw(t, "n")
	s.read(t, m, n, func(ctx context.Context) ([]engine.Record, error) {
		rs := make([]engine.Record, n)
		n, err := r.NextBatch(ctx, rs)
		return rs[:n], err
	})
}

// nextValues is nextBatch; what a value does not say is what the model says.
func (s *modelTest) nextValues(t *rapid.T) {
	r, m := s.drawReader(t)
	n := rapid.IntRange(1, 10).Draw(t, "n")
	s.read(t, m, n, func(ctx context.Context) ([]engine.Record, error) {
		values := make([][]byte, n)
		n, err := r.NextValues(ctx, values)
		var rs []engine.Record
		for i, v := range values[:n] {
			rec := s.m.record(r.Position() - engine.Offset(n-i))
			rec.Value = v
			if rec.Timestamp == 0 {
				rec.Timestamp = math.MaxInt64
			}
			rs = append(rs, rec)
		}
		return rs, err
	})
}

// nextRun is nextValues for what has one size.
func (s *modelTest) nextRun(t *rapid.T) {
	r, m := s.drawReader(t)
	most := rapid.IntRange(1, 10).Draw(t, "most")
	s.read(t, m, -most, func(ctx context.Context) ([]engine.Record, error) {
		run, n, err := r.NextRun(ctx, most)
		var rs []engine.Record
		for i := range n {
			rec := s.m.record(r.Position() - engine.Offset(n-i))
			size := len(run) / n
			rec.Value = run[i*size : (i+1)*size : (i+1)*size]
			if rec.Timestamp == 0 {
				rec.Timestamp = math.MaxInt64
			}
			rs = append(rs, rec)
		}
		return rs, err
	})
}

func (s *modelTest) seek(t *rapid.T) {
	r, m := s.drawReader(t)
	n := rapid.Int64Range(-2, 12).Draw(t, "n")
	at := s.m.first - 2 + n
	var start engine.Start
	want, valid := s.m.next, true
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		start, want = engine.Earliest(), s.m.first
	case 1:
		start = engine.Latest()
	case 2:
		start, want, valid = engine.At(at), at, at >= s.m.first && at <= s.m.next
	case 3:
		start, want, valid = engine.Last(n), max(s.m.next-n, s.m.first), n >= 0
	}
	err := r.Seek(start)
	if !valid {
		require.Error(t, err)
		out := (*engine.OffsetError)(nil)
		require.True(t, errors.As(err, &out) || errors.Is(err, engine.ErrConfig))
		return
	}
	require.NoError(t, err)
	m.pos, m.window = want, want
	m.advance()
}

func (s *modelTest) readAt(t *rapid.T) {
	off := rapid.Int64Range(s.m.first-2, s.m.next+2).Draw(t, "off")
	rs := make([]engine.Record, rapid.IntRange(0, 10).Draw(t, "n"))
	n, err := s.p.ReadAt(off, rs)
	if off < s.m.first || off > s.m.next {
		var out *engine.OffsetError
		require.ErrorAs(t, err, &out)
		require.Equal(t, engine.OffsetError{Asked: off, First: s.m.first, Next: s.m.next}, *out)
		return
	}
	require.NoError(t, err)
	require.Equal(t, min(int64(len(rs)), s.m.next-off), int64(n))
	for i, r := range rs[:n] {
		s.same(t, r, off+int64(i))
	}
}

// since looks for the first record with a timestamp, or a later one. Those that got the time of the append are later than all
// others.
func (s *modelTest) since(t *rapid.T) {
	at := rapid.Int64Range(0, 6).Draw(t, "time")
	want := s.m.first
	for want < s.m.next && s.m.record(want).Timestamp != 0 && s.m.record(want).Timestamp < at {
		want++
	}
	r, err := s.p.Reader(engine.ReaderConfig{Start: engine.Since(unixNano(at))})
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, want, r.Position())
}

func (s *modelTest) truncate(t *rapid.T) {
	off := rapid.Int64Range(s.m.first-2, s.m.next+2).Draw(t, "off")
	if rapid.Bool().Draw(t, "everything") {
		off = s.m.next
	}
	err := s.p.TruncateBefore(background, off)
	if off < 0 || off > s.m.next {
		var out *engine.OffsetError
		require.ErrorAs(t, err, &out)
		return
	}
	require.NoError(t, err)
	s.m.truncate(off)
}
