package engine_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
)

// TestBUG070: nil and empty are different, in and out, in whatever way.
func TestBUG070_NilAndEmpty(t *testing.T) {
	for _, way := range publishers {
		topic := newTopic(t, engine.TopicConfig{})
		p := part(t, topic, 0)
		shapes := []engine.Record{{}, {Key: []byte{}}, {Value: []byte{}}, {Key: []byte{}, Value: []byte{}}}
		for _, r := range shapes {
			r.Headers = engine.MakeHeaders(engine.Header{Name: "", Value: nil}, engine.Header{Name: "e", Value: []byte{}})
			require.NoError(t, way.publish(background, topic, r))
		}
		require.NoError(t, topic.Flush(background))
		r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest()})
		for off, want := range shapes {
			rec, err := r.Next(background)
			require.NoError(t, err)
			at := make([]engine.Record, 1)
			_, err = p.ReadAt(int64(off), at)
			require.NoError(t, err)
			for _, got := range []engine.Record{rec, at[0], rec.Clone()} {
				require.Equal(t, want.Key == nil, got.Key == nil, way.name)
				require.Equal(t, want.Value == nil, got.Value == nil, way.name)
				require.Empty(t, got.Key)
				require.Empty(t, got.Value)
				v, ok := got.Headers.Get("")
				require.True(t, ok && v == nil)
				v, ok = got.Headers.Get("e")
				require.True(t, ok && v != nil && len(v) == 0)
			}
		}
	}
}

// TestBUG125: every way in and out on whatever this platform is. On one of 32 bits, a counter that is not aligned would
// panic.
func TestBUG125_EveryWay(t *testing.T) {
	watchdog(t)
	for _, way := range publishers {
		topic := newTopic(t, engine.TopicConfig{Retention: engine.Retention{MaxAge: 1 << 50}, SegmentRecords: 1})
		p := part(t, topic, 0)
		r := newReader(t, p, engine.ReaderConfig{Gating: true, MaxLag: 1 << 40})
		for range 3 {
			require.NoError(t, way.publish(background, topic, value(way.name)))
		}
		require.NoError(t, topic.Flush(background))
		for range 3 {
			rec, err := r.Next(background)
			require.NoError(t, err)
			require.Equal(t, way.name, string(rec.Value))
		}
		require.NoError(t, p.TruncateBefore(background, 2))
		s := topic.Stats()
		require.EqualValues(t, 3, s.Partitions[0].Next, fmt.Sprint(s))
	}
}

// TestBUG091: a partition whose numbering is about to pass what smaller counters hold.
func TestBUG091_HighOffsets(t *testing.T) {
	for _, start := range []int64{1<<31 - 5, 1<<32 - 5, 1<<53 - 5, math.MaxInt64 - 100} {
		topic := newTopic(t, engine.FirstAt(engine.TopicConfig{Retention: engine.Retention{MaxRecords: 8}, SegmentRecords: 2}, start))
		p := part(t, topic, 0)
		require.Equal(t, start, p.First())
		r := newReader(t, p, engine.ReaderConfig{Gating: true, MaxLag: math.MaxInt64})
		for i := range int64(20) {
			numbers(t, p, 1)
			wantNext(t, r, start+i)
			require.Zero(t, r.Lag())
		}
		require.Equal(t, start+20, p.Next())
		require.GreaterOrEqual(t, p.First(), start+12)
		require.NoError(t, r.Seek(engine.Last(3)))
		wantNext(t, r, start+17)
		require.NoError(t, p.TruncateBefore(background, start+19))
		_, err := r.Next(background)
		var gap *engine.GapError
		require.NoError(t, r.Seek(engine.Earliest()))
		if errors.As(err, &gap) {
			require.Equal(t, start+19, gap.To)
		}
		wantNext(t, r, start+19)
		s := p.Stats()
		require.EqualValues(t, 19, s.Reclaimed)
	}
}

// TestBUG100: as many as there are, as many as fit, and not one more, from each of several partitions.
func TestBUG100_BatchLimits(t *testing.T) {
	topic := newTopic(t, engine.TopicConfig{Partitions: 4, Partitioner: engine.Explicit()})
	for i := range 4 {
		p := part(t, topic, i)
		numbers(t, p, 10*i)
		for _, n := range []int{10*i - 1, 10 * i, 10*i + 1} {
			if n <= 0 || i == 0 {
				continue
			}
			r := newReader(t, p, engine.ReaderConfig{Start: engine.Earliest()})
			batch := make([]engine.Record, n)
			at, err := p.ReadAt(0, batch)
			require.NoError(t, err)
			require.Equal(t, min(n, 10*i), at)
			got, err := r.NextBatch(background, batch)
			require.NoError(t, err)
			require.Equal(t, min(n, 10*i), got)
			require.EqualValues(t, 10*i-got, r.Lag())
		}
	}
}

// TestBUG109: a timestamp that is not set is the time of the append, for each record of a batch; one that is set is kept,
// whatever it is.
func TestBUG109_Timestamps(t *testing.T) {
	before := unixNow()
	for _, way := range publishers {
		topic := newTopic(t, engine.TopicConfig{})
		stamps := []int64{0, -1, 0, math.MinInt64, 1, 0, math.MaxInt64}
		for _, s := range stamps {
			require.NoError(t, way.publish(background, topic, engine.Record{Timestamp: s}))
		}
		batch := make([]engine.Record, len(stamps))
		for i, s := range stamps {
			batch[i].Timestamp = s
		}
		require.NoError(t, topic.PublishBatch(background, batch))
		for off, r := range part(t, topic, 0).Records(0) {
			if want := stamps[off%int64(len(stamps))]; want != 0 {
				require.Equal(t, want, r.Timestamp, way.name)
				continue
			}
			require.GreaterOrEqual(t, r.Timestamp, before)
			require.LessOrEqual(t, r.Timestamp, unixNow())
			require.Equal(t, r.Timestamp, r.Time().UnixNano())
		}
	}
}

// TestBUG115: the search by time, while records with timestamps in any order come in, finds an offset whose record has that
// time or a later one, and in the end the first of them.
func TestBUG115_SearchByTimeWhilePublishing(t *testing.T) {
	watchdog(t)
	topic := newTopic(t, engine.TopicConfig{SegmentRecords: 16})
	p := part(t, topic, 0)
	n := rounds(3000)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			for range n {
				if err := topic.PublishAsync(background, engine.Record{Timestamp: 1 + rnd.Int64N(1_000_000)}, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	at := make([]engine.Record, 1)
	during(&wg, func() {
		want := rand.Int64N(1_000_000)
		next := p.Next()
		r := newReader(t, p, engine.ReaderConfig{Start: engine.Since(unixNano(want))})
		if n, err := p.ReadAt(r.Position(), at); n > 0 {
			require.NoError(t, err)
			require.True(t, at[0].Timestamp >= want || r.Position() >= next)
		}
		r.Close()
	})
	require.NoError(t, topic.Flush(background))
	var all []int64
	for _, r := range p.Records(0) {
		all = append(all, r.Timestamp)
	}
	for want := int64(0); want < 1_000_000; want += 9973 {
		r := newReader(t, p, engine.ReaderConfig{Start: engine.Since(unixNano(want))})
		first := slices.IndexFunc(all, func(at int64) bool { return at >= want })
		if first < 0 {
			first = len(all)
		}
		require.EqualValues(t, first, r.Position())
	}
}
