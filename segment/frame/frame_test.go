package frame_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/frame"
)

var (
	topic = frame.ID{0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	file  = frame.Segment{Topic: topic, Partition: 3, Base: 1000, Epoch: 7, Created: 1_700_000_000_000_000_000}
	seed  = file.Seed()
)

// headers returns an encoded list.
func headers(hs ...segment.Header) []byte { return segment.MakeHeaders(hs...).Encoded() }

// samples returns records in which everything occurs.
func samples() []frame.Record {
	return []frame.Record{
		{Appended: 5},
		{Key: []byte{}, Value: []byte{}, Appended: 5},
		{Key: []byte{}, Appended: 5},
		{Value: []byte{}, Appended: 6},
		{Key: []byte("key"), Value: []byte("value"), Appended: 6, Timestamp: -1},
		{Key: []byte("k"), Value: bytes.Repeat([]byte{7}, 300), Appended: 1 << 40, Timestamp: math.MinInt64,
			Headers: headers(segment.Header{Name: "h"}, segment.Header{Name: "", Value: []byte{}}, segment.Header{Name: "n", Value: []byte("v")})},
		{Value: []byte("last"), Appended: 1 << 40, Headers: headers(segment.Header{Name: "x", Value: bytes.Repeat([]byte("y"), 200)})},
	}
}

// build returns the frame of some records at pos.
func build(t testing.TB, pos int64, first uint64, records []frame.Record) []byte {
	var b frame.Builder
	for i := range records {
		require.True(t, b.Add(&records[i]))
	}
	whole := b.Finish(seed, pos, frame.Header{First: first, Epoch: 7, SyncedTo: first - 1})
	require.EqualValues(t, b.Bytes(), len(whole))
	require.Zero(t, len(whole)%frame.Align)
	return bytes.Clone(whole)
}

// unpack returns the records of a batch as Add was given them.
func unpack(t testing.TB, b *frame.Batch) (got []frame.Record) {
	it := b.Records()
	var r frame.Record
	for it.Next(&r) {
		assert.Equal(t, b.First+uint64(len(got)), r.Offset)
		assert.True(t, bytes.Equal(r.Body, bytes.Join([][]byte{r.Headers, r.Key, r.Value}, nil)))
		r.Offset, r.Body = 0, nil
		got = append(got, r)
	}
	require.NoError(t, it.Err())
	assert.False(t, it.Next(&r))
	return got
}

func TestDecode_GivesWhatWasBuilt(t *testing.T) {
	want := samples()
	whole := build(t, 64, 1000, want)
	more := append(bytes.Clone(whole), 1, 2, 3)
	b, err := frame.Decode(more, seed, 64)
	require.NoError(t, err)
	assert.Equal(t, frame.Records, b.Kind)
	assert.EqualValues(t, len(want), b.Count)
	assert.EqualValues(t, 1000, b.First)
	assert.EqualValues(t, 1007, b.Next())
	assert.EqualValues(t, 999, b.SyncedTo)
	assert.EqualValues(t, 7, b.Epoch)
	assert.EqualValues(t, 5, b.Time)
	assert.Equal(t, int64(1<<40), b.Newest)
	assert.EqualValues(t, len(whole), b.Bytes())
	assert.Equal(t, want, unpack(t, &b))
}

func TestDecode_NoticesEachBit(t *testing.T) {
	whole := build(t, 64, 1000, samples())
	for i := range whole {
		for bit := range 8 {
			whole[i] ^= 1 << bit
			_, err := frame.Decode(whole, seed, 64)
			require.Error(t, err, "byte %d bit %d", i, bit)
			whole[i] ^= 1 << bit
		}
	}
	for n := range whole {
		_, err := frame.Decode(whole[:n], seed, 64)
		require.ErrorIs(t, err, frame.ErrShort, "%d bytes", n)
	}
	_, err := frame.Decode(whole, seed, 64)
	require.NoError(t, err)
}

func TestDecode_NoticesWhatIsInTheWrongPlace(t *testing.T) {
	whole := build(t, 64, 1000, samples())
	_, err := frame.Decode(whole, seed, 72)
	assert.ErrorIs(t, err, frame.ErrChecksum, "another position")
	for name, change := range map[string]func(*frame.Segment){
		"topic":     func(s *frame.Segment) { s.Topic[15]++ },
		"partition": func(s *frame.Segment) { s.Partition++ },
		"base":      func(s *frame.Segment) { s.Base++ },
		"epoch":     func(s *frame.Segment) { s.Epoch++ },
	} {
		other := file
		change(&other)
		_, err := frame.Decode(whole, other.Seed(), 64)
		assert.ErrorIs(t, err, frame.ErrChecksum, "another %s", name)
	}
	b, err := frame.Decode(whole[:len(whole)-8], seed, 64)
	assert.ErrorIs(t, err, frame.ErrShort)
	assert.EqualValues(t, 1000, b.First, "a good header is returned all the same")
}

func TestFrame_IsNeverZeroes(t *testing.T) {
	zeroes := make([]byte, 4096)
	_, err := frame.Decode(zeroes, seed, 64)
	assert.ErrorIs(t, err, frame.ErrMagic)
	_, err = frame.DecodeSegment(zeroes)
	assert.ErrorIs(t, err, frame.ErrMagic)
	_, err = frame.DecodeState(zeroes)
	assert.ErrorIs(t, err, frame.ErrMagic)
	whole := build(t, 64, 1, []frame.Record{{Key: []byte{}, Value: []byte{}}})
	assert.NotEqual(t, zeroes[:8], whole[:8])
	// The first sector alone of a frame is not taken for anything.
	whole = build(t, 64, 1, []frame.Record{{Value: make([]byte, 2000)}})
	clear(whole[512:])
	_, err = frame.Decode(whole, seed, 64)
	require.NoError(t, err, "it is all zeroes there anyway")
	whole = build(t, 64, 1, []frame.Record{{Value: append(make([]byte, 2000), 1)}})
	clear(whole[512:])
	_, err = frame.Decode(whole, seed, 64)
	assert.ErrorIs(t, err, frame.ErrChecksum)
}

func TestSegment_Head(t *testing.T) {
	b := frame.AppendSegment([]byte("x"), &file)[1:]
	require.Len(t, b, frame.SegmentBytes)
	got, err := frame.DecodeSegment(append(bytes.Clone(b), 9))
	require.NoError(t, err)
	assert.Equal(t, file, got)
	state := frame.State{Topic: topic, Partition: 3, Epoch: 7, Low: 5, Durable: 1000}
	s := frame.AppendState(nil, &state)
	require.Len(t, s, frame.StateBytes)
	gotState, err := frame.DecodeState(s)
	require.NoError(t, err)
	assert.Equal(t, state, gotState)
	_, err = frame.DecodeState(append(bytes.Clone(s), 0))
	require.ErrorIs(t, err, frame.ErrFormat)

	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			_, err := frame.DecodeSegment(b)
			require.Error(t, err, "byte %d", i)
			b[i] ^= 1 << bit
			s[i] ^= 1 << bit
			_, err = frame.DecodeState(s)
			require.Error(t, err, "byte %d", i)
			s[i] ^= 1 << bit
		}
		_, err = frame.DecodeSegment(b[:i])
		require.ErrorIs(t, err, frame.ErrShort)
		_, err = frame.DecodeState(s[:i])
		require.ErrorIs(t, err, frame.ErrShort)
	}
	_, err = frame.DecodeSegment(s)
	require.ErrorIs(t, err, frame.ErrMagic)
	_, err = frame.DecodeState(b)
	require.ErrorIs(t, err, frame.ErrMagic)
	binary.LittleEndian.PutUint16(b[8:], 2)
	_, err = frame.DecodeSegment(b)
	require.ErrorIs(t, err, frame.ErrVersion, "whatever the checksum says")
	_, err = frame.DecodeSegment([]byte("Leaf"))
	require.ErrorIs(t, err, frame.ErrMagic)
	bad := frame.State{Low: 2, Durable: 1}
	_, err = frame.DecodeState(frame.AppendState(nil, &bad))
	require.ErrorIs(t, err, frame.ErrFormat)
}

func TestSeal(t *testing.T) {
	index := []frame.Entry{{Offset: 1000, Pos: 64, Before: math.MinInt64}, {Offset: 1010, Pos: 640, Before: -4}, {Offset: 1020, Pos: 6400, Before: 9}}
	head := frame.Header{First: 1030, Epoch: 7, SyncedTo: 1030, Time: -5, Newest: 10}
	b := frame.AppendSeal([]byte("before"), seed, 8000, head, index, nil)[6:]
	pos, ok := frame.FindSeal(b, 8000+int64(len(b)))
	require.True(t, ok)
	require.EqualValues(t, 8000, pos)
	pos, ok = frame.FindSeal(append(make([]byte, 1000), b...), 8000+int64(len(b)))
	require.True(t, ok)
	require.EqualValues(t, 8000, pos)
	seal, err := frame.Decode(b, seed, 8000)
	require.NoError(t, err)
	assert.Equal(t, frame.Seal, seal.Kind)
	assert.EqualValues(t, 1030, seal.First)
	assert.EqualValues(t, 1030, seal.Next())
	assert.EqualValues(t, -5, seal.Time)
	got, total, err := seal.Index(nil, 1000, 8000)
	require.NoError(t, err)
	assert.Nil(t, total, "it says nothing of sums")
	assert.Equal(t, index, got)
	var it = seal.Records()
	assert.False(t, it.Next(new(frame.Record)))

	_, _, err = seal.Index(nil, 1001, 8000)
	assert.ErrorIs(t, err, frame.ErrFormat, "an offset below the base")
	_, _, err = seal.Index(nil, 1000, 6400)
	assert.ErrorIs(t, err, frame.ErrFormat, "a position beyond the end")
	for _, size := range []int64{8000, 8000 + int64(len(b)) + 8, 0, 100} {
		_, ok := frame.FindSeal(b, size)
		assert.False(t, ok, "%d", size)
	}
	for i := range b {
		b[i] ^= 0x10
		if pos, ok := frame.FindSeal(b, 8000+int64(len(b))); ok && pos == 8000 {
			_, err := frame.Decode(b, seed, pos)
			require.Error(t, err, "byte %d", i)
		}
		b[i] ^= 0x10
	}
	most := make([]frame.Entry, frame.MaxEntries)
	assert.Len(t, frame.AppendSeal(nil, seed, 0, head, most, &frame.None), frame.SealBytes)
	assert.Panics(t, func() { frame.AppendSeal(nil, seed, 0, head, append(most, frame.Entry{}), nil) })
	assert.LessOrEqual(t, frame.SealBytes, 8192)
}

// TestSeal_Sums has a seal with sums go there and back, and refuses what cannot be.
func TestSeal_Sums(t *testing.T) {
	index := []frame.Entry{
		{Offset: 1000, Pos: 64, Before: math.MinInt64, Sum: frame.None},
		{Offset: 1010, Pos: 640, Before: -4, Sum: frame.Sum{Latest: -4, Body: 100}},
		{Offset: 1020, Pos: 6400, Before: 9, Sum: frame.Sum{Latest: 1 << 60, Body: 100}},
	}
	total := frame.Sum{Latest: 1 << 60, Body: 101}
	head := frame.Header{First: 1030, Epoch: 7, SyncedTo: 1030, Time: -5, Newest: 10}
	b := frame.AppendSeal(nil, seed, 8000, head, index, &total)
	assert.Equal(t, frame.SealSize(3), int64(len(b)))
	pos, ok := frame.FindSeal(b, 8000+int64(len(b)))
	require.True(t, ok)
	require.EqualValues(t, 8000, pos)
	seal, err := frame.Decode(b, seed, 8000)
	require.NoError(t, err)
	got, sum, err := seal.Index(nil, 1000, 8000)
	require.NoError(t, err)
	assert.Equal(t, index, got)
	require.NotNil(t, sum)
	assert.Equal(t, total, *sum)
	for i := range b {
		b[i] ^= 0x10
		_, err := frame.Decode(b, seed, 8000)
		require.Error(t, err, "byte %d", i)
		b[i] ^= 0x10
	}

	for name, change := range map[string]func(){
		"sizes go back":      func() { index[2].Sum.Body = 99 },
		"timestamps go back": func() { index[2].Sum.Latest = -5 },
		"less in all":        func() { total.Body = 99 },
		"before in all":      func() { total.Latest = 5 },
	} {
		i, all := index[2], total
		change()
		seal, err := frame.Decode(frame.AppendSeal(nil, seed, 8000, head, index, &total), seed, 8000)
		require.NoError(t, err)
		_, _, err = seal.Index(nil, 1000, 8000)
		assert.ErrorIs(t, err, frame.ErrFormat, name)
		index[2], total = i, all
	}

	// The flag is for seals only, and no other is known.
	for _, x := range []struct {
		kind frame.Kind
		at   int
		flag byte
	}{{frame.Seal, 21, 2}, {frame.Seal, 21, 3}, {frame.Seal, 22, 1}, {frame.Seal, 23, 1}, {frame.Records, 21, 1}} {
		whole := frame.AppendSeal(nil, seed, 640, head, index[:1], &total)
		if x.kind == frame.Records {
			whole = bytes.Clone(build(t, 640, 1000, samples()))
		}
		whole[x.at] = x.flag
		mend(whole, 640)
		_, err := frame.Decode(whole, seed, 640)
		assert.ErrorIs(t, err, frame.ErrFormat, "%+v", x)
	}
}

// TestSum has a builder and what is decoded agree on what the records are.
func TestSum(t *testing.T) {
	var b frame.Builder
	for range 2 {
		b.Reset(0)
		want := frame.None
		for _, r := range samples() {
			require.True(t, b.Add(&r))
			one := frame.Sum{Latest: r.Appended, Body: uint64(len(r.Key) + len(r.Value) + len(r.Headers))}
			if r.Timestamp != 0 {
				one.Latest = r.Timestamp
				one.Body += 8
			}
			if len(r.Headers) > 0 {
				one.Body += 4
			}
			want.Add(one)
		}
		assert.Equal(t, want, b.Sum())
		got, err := frame.Decode(b.Finish(seed, 64, frame.Header{First: 1000, Epoch: 7}), seed, 64)
		require.NoError(t, err)
		sum, err := got.Sum()
		require.NoError(t, err)
		assert.Equal(t, want, sum)
	}
}

func TestLost(t *testing.T) {
	b := frame.AppendLost(nil, seed, 128, frame.Header{First: 1000, Count: 5, Epoch: 7, SyncedTo: 1000})
	got, err := frame.Decode(b, seed, 128)
	require.NoError(t, err)
	assert.Equal(t, frame.Lost, got.Kind)
	assert.EqualValues(t, 1005, got.Next())
	assert.Empty(t, unpack(t, &got))
	assert.EqualValues(t, frame.HeaderBytes, got.Bytes())
}

func TestBuilder_Limits(t *testing.T) {
	var b frame.Builder
	assert.Nil(t, b.Reserve(frame.Shape{Key: math.MaxInt32, Value: math.MaxInt32, Headers: math.MaxInt32}))
	assert.Nil(t, b.Reserve(frame.Shape{Key: frame.MaxPayload - 10}))
	assert.Zero(t, b.Count())
	assert.Zero(t, b.Bytes())
	assert.Panics(t, func() { b.Finish(seed, 0, frame.Header{}) })
	require.NotNil(t, b.Reserve(frame.Shape{}), "a place of no bytes is not nil")
	require.NotNil(t, b.Reserve(frame.Shape{Key: -1, Value: -1}))
	assert.Equal(t, 2, b.Count())
	b.Reset(1 << 20)
	assert.Zero(t, b.Count())
	require.True(t, b.Add(&frame.Record{Value: make([]byte, 1<<16), Appended: 9}))
	require.True(t, b.Add(&frame.Record{Appended: 3}))
	got, err := frame.Decode(b.Finish(seed, 0, frame.Header{}), seed, 0)
	require.NoError(t, err)
	records := unpack(t, &got)
	assert.EqualValues(t, 9, records[1].Appended, "append times never go back")
	b.Reset(1 << 10)
	require.True(t, b.Add(&frame.Record{Appended: 3}))
	got, err = frame.Decode(b.Finish(seed, 0, frame.Header{}), seed, 0)
	require.NoError(t, err)
	assert.EqualValues(t, 3, got.Time, "a new frame begins its own time")
}

// TestBuilder_FinishAgain finishes a frame for two places, and goes on adding after that.
func TestBuilder_FinishAgain(t *testing.T) {
	var b frame.Builder
	records := samples()
	for n := range records {
		require.True(t, b.Add(&records[n]))
		for pos := range int64(3) {
			got, err := frame.Decode(b.Finish(seed, pos*64, frame.Header{First: 5}), seed, pos*64)
			require.NoError(t, err)
			require.Equal(t, records[:n+1], unpack(t, &got))
		}
	}
}

// TestFrame_AllocatesNothing builds, finishes, decodes and walks with a buffer that is used again.
func TestFrame_AllocatesNothing(t *testing.T) {
	var b frame.Builder
	records := samples()
	n := testing.AllocsPerRun(100, func() {
		b.Reset(0)
		for i := range records {
			b.Add(&records[i])
		}
		got, err := frame.Decode(b.Finish(seed, 64, frame.Header{First: 5}), seed, 64)
		if err != nil {
			panic(err)
		}
		it := got.Records()
		var r frame.Record
		for it.Next(&r) {
		}
	})
	assert.Zero(t, n)
}

// TestRecord_GoesBackIntoALog puts a log's records into a frame and from there into another log, as recovery does, without a
// look at what they are.
func TestRecord_GoesBackIntoALog(t *testing.T) {
	from := segment.NewLog(segment.Config{})
	in := []segment.Record{
		{Key: []byte("k"), Value: []byte("v")},
		{},
		{Key: []byte{}, Value: []byte{}, Timestamp: 77},
		{Value: []byte("x"), Headers: segment.MakeHeaders(segment.Header{Name: "a", Value: []byte("b")}, segment.Header{Name: "c"})},
	}
	var b frame.Builder
	for i := range in {
		s := in[i].Shape()
		now := int64(100 + i)
		require.NoError(t, from.Append(&in[i], now))
		dst := b.Reserve(frame.Shape{Key: s.Key, Value: s.Value, Headers: s.Headers, Timestamp: s.Timestamp, Appended: now})
		in[i].CopyTo(dst)
	}
	require.NoError(t, from.Publish())

	to := segment.NewLog(segment.Config{})
	batch, err := frame.Decode(b.Finish(seed, 64, frame.Header{}), seed, 64)
	require.NoError(t, err)
	it := batch.Records()
	var r frame.Record
	for it.Next(&r) {
		s := segment.Shape{Key: len(r.Key), Value: len(r.Value), Headers: len(r.Headers), Timestamp: r.Timestamp}
		if r.Key == nil {
			s.Key = -1
		}
		if r.Value == nil {
			s.Value = -1
		}
		dst, err := to.Reserve(s, r.Appended)
		require.NoError(t, err)
		copy(dst, r.Body)
	}
	require.NoError(t, it.Err())
	require.NoError(t, to.Publish())
	var x, y [4]segment.Record
	n, err := from.ReadAt(0, x[:])
	require.NoError(t, err)
	require.Equal(t, 4, n)
	n, err = to.ReadAt(0, y[:])
	require.NoError(t, err)
	require.Equal(t, 4, n)
	assert.Equal(t, x, y)
}
