package segment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/segment"
)

// layout hands out bytes of one buffer, most of them one behind the other.
type layout struct {
	buffer []byte
	at     int
}

func (y *layout) take(t *rapid.T, what string) []byte {
	switch rapid.IntRange(0, 15).Draw(t, what) {
	case 0:
		return nil
	case 1:
		return []byte{} // somewhere else
	case 2:
		y.at++ // a gap
	case 3:
		if y.at > 0 {
			y.at-- // shared with the one before
		}
	}
	n := rapid.SampledFrom([]int{0, 1, 7, 64, 64, 64, 100}).Draw(t, "bytes")
	b := y.buffer[y.at : y.at+n]
	if rapid.IntRange(0, 7).Draw(t, "capped") == 0 {
		b = b[:n:n] // what lies behind it need not be of the same memory
	}
	y.at += n
	return b
}

// TestAppendEach_IsAppendOfEach checks that a batch is staged as its records are one by one, wherever their bytes lie and wherever segments end.
func TestAppendEach_IsAppendOfEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := segment.Config{
			SegmentBytes:   rapid.SampledFrom([]int{400, 2000, 4096, 0}).Draw(t, "segment bytes"),
			SegmentRecords: rapid.SampledFrom([]int{0, 0, 1, 7}).Draw(t, "segment records"),
		}
		newLog := func() *segment.Log {
			c.Pool = segment.NewPool(32<<10, 0) // some batches do not fit
			return segment.NewLog(c)
		}
		all, single := newLog(), newLog()
		buffer := make([]byte, 8<<10)
		for i := range buffer {
			buffer[i] = byte(i * 7)
		}
		now := int64(1e18)
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			now += rapid.SampledFrom([]int64{0, 1, -1, 1000, 1 << 57}).Draw(t, "later")
			y := layout{buffer: buffer}
			batch := make([]segment.Record, rapid.IntRange(1, 40).Draw(t, "records"))
			uniform := 0
			if rapid.Bool().Draw(t, "uniform") {
				uniform = rapid.IntRange(0, len(batch)).Draw(t, "of one size")
			}
			for i := range batch {
				r := &batch[i]
				if i < uniform {
					r.Value = buffer[y.at : y.at+20]
					y.at += 20
					continue
				}
				if rapid.IntRange(0, 9).Draw(t, "keyed") == 0 {
					r.Key = y.take(t, "key")
				}
				r.Value = y.take(t, "value")
				switch rapid.IntRange(0, 19).Draw(t, "more") {
				case 0:
					r.Timestamp = 5
				case 1:
					r.Headers = segment.MakeHeaders(segment.Header{Name: "n", Value: []byte("v")})
				}
			}
			n, err := all.AppendEach(batch, now)
			var wantErr error
			want := 0
			for want < len(batch) && wantErr == nil {
				if wantErr = single.Append(&batch[want], now); wantErr == nil {
					want++
				}
			}
			require.Equal(t, want, n)
			require.Equal(t, wantErr, err)
			require.Equal(t, single.Staged(), all.Staged())
			if rapid.IntRange(0, 9).Draw(t, "unstage") == 0 {
				all.Unstage()
				single.Unstage()
				continue
			}
			require.NoError(t, all.Publish())
			require.NoError(t, single.Publish())
			if rapid.IntRange(0, 3).Draw(t, "retain") == 0 {
				retain(all, 1)
				retain(single, 1)
			}
		}
		records, bytes, segments := all.Retained()
		wantRecords, wantBytes, wantSegments := single.Retained()
		require.Equal(t, []any{wantRecords, wantBytes, wantSegments}, []any{records, bytes, segments})
		first, next := all.Snapshot()
		require.Equal(t, wantRecords, int64(next-first))
		for off := first; off < next; off += rapid.Uint64Range(1, 20).Draw(t, "further") {
			require.Equal(t, readFrom(t, single, off), readFrom(t, all, off))
			want, _ := single.TimeOf(off)
			got, _ := all.TimeOf(off)
			require.Equal(t, want, got)
			require.Equal(t, single.Since(want), all.Since(want))
		}
		got, want := all.NewReader(), single.NewReader()
		for {
			state := want.Refill()
			require.Equal(t, state, got.Refill())
			if state != segment.Ready {
				break
			}
			require.Equal(t, want.Window(), got.Window())
			var g, w segment.Record
			for want.Next(&w) {
				require.True(t, got.Next(&g))
				require.Equal(t, w, g)
			}
		}
		got.Close()
		want.Close()
	})
}
