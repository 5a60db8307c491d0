package frame_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/frame"
)

var update = flag.Bool("update", false, "write the golden files anew: only for a new version of the format")

// golden returns a file of records with each kind of frame, and a state.
func golden(t testing.TB) (log, state []byte) {
	log = frame.AppendSegment(nil, &file)
	first := file.Base
	index := []frame.Entry{{Offset: first, Pos: int64(len(log)), Before: math.MinInt64}}
	whole := build(t, int64(len(log)), first, samples())
	log = append(log, whole...)
	first += uint64(len(samples()))
	log = frame.AppendLost(log, seed, int64(len(log)), frame.Header{First: first, Count: 3, Epoch: 7, SyncedTo: first, Time: 1 << 40, Newest: 1 << 40})
	first += 3
	index = append(index, frame.Entry{Offset: first, Pos: int64(len(log)), Before: 1 << 40})
	log = append(log, build(t, int64(len(log)), first, []frame.Record{{Key: []byte("only"), Value: []byte("one"), Appended: 1 << 41}})...)
	first++
	log = frame.AppendSeal(log, seed, int64(len(log)), frame.Header{First: first, Epoch: 7, SyncedTo: first, Time: 5, Newest: 1 << 41}, index, nil)
	return log, frame.AppendState(nil, &frame.State{Topic: topic, Partition: 3, Epoch: 7, Low: 1000, Durable: first})
}

// TestGolden compares with files that were written by an earlier build: the bytes are the same on each platform, and are read
// to the same values.
func TestGolden(t *testing.T) {
	log, state := golden(t)
	sums := frame.AppendSegment(nil, &file)
	whole := build(t, int64(len(sums)), file.Base, samples())
	behind := int64(len(sums) + len(whole))
	end := frame.Header{First: file.Base + uint64(len(samples())), Epoch: 7, SyncedTo: file.Base, Time: 5, Newest: 1 << 40}
	sums = frame.AppendSeal(append(sums, whole...), seed, behind, end, []frame.Entry{{Offset: file.Base, Pos: frame.SegmentBytes,
		Before: math.MinInt64, Sum: frame.None}}, &frame.Sum{Latest: 1 << 50, Body: 99})
	names := map[string][]byte{filepath.Join("testdata", "v1-sums.leat"): sums, filepath.Join("testdata", "v1.leat"): log, filepath.Join("testdata", "v1.state"): state}
	for name, now := range names {
		if *update {
			require.NoError(t, os.WriteFile(name, now, 0o644))
		}
		want, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, want, now, "what is written today differs from %s", name)
	}

	b, err := os.ReadFile(filepath.Join("testdata", "v1.leat"))
	require.NoError(t, err)
	head, err := frame.DecodeSegment(b)
	require.NoError(t, err)
	assert.Equal(t, file, head)
	var kinds []frame.Kind
	next, pos := head.Base, int64(frame.SegmentBytes)
	for pos < int64(len(b)) {
		got, err := frame.Decode(b[pos:], head.Seed(), pos)
		require.NoError(t, err)
		assert.Equal(t, next, got.First)
		if len(kinds) == 0 {
			assert.Equal(t, samples(), unpack(t, &got))
		}
		kinds = append(kinds, got.Kind)
		next, pos = got.Next(), pos+got.Bytes()
	}
	assert.Equal(t, []frame.Kind{frame.Records, frame.Lost, frame.Records, frame.Seal}, kinds)
	assert.EqualValues(t, 1011, next)
	at, ok := frame.FindSeal(b[len(b)-min(len(b), frame.SealBytes):], int64(len(b)))
	require.True(t, ok)
	seal, err := frame.Decode(b[at:], head.Seed(), at)
	require.NoError(t, err)
	index, total, err := seal.Index(nil, head.Base, at)
	require.NoError(t, err)
	assert.Nil(t, total)
	assert.Len(t, index, 2)
}
