package segment_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// FuzzRecord appends a record between two others and reads all back in both ways.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(nil), []byte(nil), "", []byte(nil), uint8(0), int64(0), 0)
	f.Add([]byte("key"), []byte("value"), "name", []byte("header"), uint8(2), int64(-1), 100)
	f.Add([]byte{}, []byte{}, "", []byte{}, uint8(7), int64(1<<62), 5000)
	f.Add(bytes.Repeat([]byte{1}, 4000), []byte{1}, "n", []byte{}, uint8(1<<4|1), int64(7), 4080)
	f.Fuzz(func(t *testing.T, key, value []byte, name string, header []byte, flags uint8, timestamp int64, segmentBytes int) {
		// A fuzzer gives no nil slices, so the flags say where one is meant.
		if flags&1 != 0 {
			key = nil
		}
		if flags&2 != 0 {
			value = nil
		}
		if flags&4 != 0 {
			header = nil
		}
		rec := segment.Record{Key: key, Value: value, Timestamp: timestamp}
		for range flags >> 4 {
			rec.Headers = rec.Headers.Add(name, header)
		}
		l := segment.NewLog(segment.Config{SegmentBytes: segmentBytes & (1<<16 - 1)})
		around := segment.Record{Value: []byte("around")}
		require.NoError(t, l.Append(&around, 41))
		require.NoError(t, l.Append(&rec, 42))
		require.NoError(t, l.Append(&around, 43))
		require.NoError(t, l.Publish())

		want := rec.Clone()
		want.Offset = 1
		if timestamp == 0 {
			want.Timestamp = 42
		}
		var dst [3]segment.Record
		n, err := l.ReadAt(0, dst[:])
		require.NoError(t, err)
		require.Equal(t, 3, n)
		requireRecord(t, &want, &dst[1])
		require.Equal(t, "around", string(dst[2].Value))

		r := l.NewReader()
		var got segment.Record
		for want := range uint64(3) {
			for !r.Next(&got) {
				require.Equal(t, segment.Ready, r.Refill())
			}
			require.EqualValues(t, want, got.Offset)
			if want == 1 {
				requireRecord(t, &dst[1], &got)
			} else {
				require.Equal(t, "around", string(got.Value))
				require.Zero(t, got.Headers.Len())
			}
		}
		require.EqualValues(t, got.Offset, 2)
		require.EqualValues(t, 43, got.Timestamp)
	})
}
