package frame_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/frame"
)

// mend makes the checksums of a frame right, so that the fuzzer gets past them.
func mend(b []byte, pos int64) {
	if len(b) < frame.HeaderBytes {
		return
	}
	table := crc32.MakeTable(crc32.Castagnoli)
	copy(b, frame.Magic)
	if n := binary.LittleEndian.Uint32(b[8:]); uint64(n) <= uint64(len(b)-frame.HeaderBytes) {
		binary.LittleEndian.PutUint32(b[12:], crc32.Update(uint32(seed), table, b[frame.HeaderBytes:][:n]))
	}
	place := uint64(pos) / frame.Align
	binary.LittleEndian.PutUint32(b[4:], crc32.Update(uint32(seed)^uint32(place)^uint32(place>>32), table, b[8:frame.HeaderBytes]))
}

// walk looks at everything in a frame, and at each byte that it points to.
func walk(t *testing.T, b *frame.Batch, size int) {
	var r frame.Record
	n := 0
	it := b.Records()
	for it.Next(&r) {
		n++
		require.LessOrEqual(t, len(r.Body), size)
		require.Equal(t, len(r.Body), len(r.Headers)+len(r.Key)+len(r.Value))
		require.LessOrEqual(t, n, size)
		// What the log takes the headers for must not surprise it.
		rest := r.Headers
		for len(rest) > 0 {
			k, w := binary.Uvarint(rest)
			rest = rest[w+int(k):]
			k, w = binary.Uvarint(rest)
			rest = rest[w+int(max(k, 1)-1):]
		}
		l := segment.NewLog(segment.Config{})
		dst, err := l.Reserve(segment.Shape{Key: len(r.Key), Value: len(r.Value), Headers: len(r.Headers)}, 1)
		require.NoError(t, err)
		copy(dst, r.Body)
		require.NoError(t, l.Publish())
		var back [1]segment.Record
		_, err = l.ReadAt(0, back[:])
		require.NoError(t, err)
		for range back[0].Headers.All() {
		}
	}
	if it.Err() == nil && b.Kind == frame.Records {
		require.EqualValues(t, b.Count, n)
	}
	index, _, err := b.Index(nil, 0, math.MaxInt64)
	if err == nil {
		require.LessOrEqual(t, len(index), frame.MaxEntries)
	}
}

// FuzzDecode decodes bytes as they are, and with checksums that are right.
func FuzzDecode(f *testing.F) {
	f.Add(build(f, 64, 1000, samples()), int64(64))
	f.Add(frame.AppendSeal(nil, seed, 640, frame.Header{First: 9}, []frame.Entry{{Offset: 1, Pos: 64}}, nil), int64(640))
	f.Add(frame.AppendSeal(nil, seed, 640, frame.Header{First: 9}, []frame.Entry{{Offset: 1, Pos: 64, Sum: frame.None}},
		&frame.Sum{Latest: 3, Body: 4}), int64(640))
	f.Add(frame.AppendSeal(nil, seed, 0, frame.Header{First: 9}, nil, nil), int64(0)) // where it says that it is
	f.Add(frame.AppendLost(nil, seed, 64, frame.Header{First: 9, Count: 1}), int64(64))
	f.Add(frame.AppendSegment(nil, &file), int64(0))
	f.Add(frame.AppendState(nil, &frame.State{}), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, pos int64) {
		before := bytes.Clone(b)
		for range 2 {
			if got, err := frame.Decode(b, seed, pos); err == nil {
				require.LessOrEqual(t, got.Bytes(), int64(len(b)))
				require.LessOrEqual(t, got.Next(), uint64(frame.MaxOffset))
				walk(t, &got, len(b))
			}
			_, _ = frame.DecodeSegment(b)
			_, _ = frame.DecodeState(b)
			if at, ok := frame.FindSeal(b, int64(len(b))); ok {
				require.GreaterOrEqual(t, at, int64(0))
				require.Less(t, at, int64(len(b)))
			}
			require.Equal(t, before, b, "decoding changes nothing")
			mend(b, pos)
			before = bytes.Clone(b)
		}
	})
}

// FuzzRecord builds a frame of three records and gets them back.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), "name", []byte("header"), uint8(0), int64(1), int64(2))
	f.Add([]byte{}, []byte{}, "", []byte{}, uint8(0xff), int64(-1), int64(math.MaxInt64))
	f.Add(make([]byte, 127), make([]byte, 128), "n", []byte{}, uint8(0x10), int64(0), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, key, value []byte, name string, header []byte, flags uint8, timestamp, appended int64) {
		if flags&1 != 0 {
			key = nil
		} else if key == nil {
			key = []byte{}
		}
		if flags&2 != 0 {
			value = nil
		} else if value == nil {
			value = []byte{}
		}
		var list segment.Headers
		for range flags >> 4 {
			list = list.Add(name, header)
		}
		want := []frame.Record{
			{Value: []byte("before"), Appended: math.MinInt64},
			{Key: key, Value: value, Headers: list.Encoded(), Timestamp: timestamp, Appended: appended},
			{Value: []byte("after"), Appended: math.MaxInt64},
		}
		whole := build(t, 64, 1, want)
		got, err := frame.Decode(whole, seed, 64)
		require.NoError(t, err)
		assert.Equal(t, want, unpack(t, &got))
	})
}
