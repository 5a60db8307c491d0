package segment_test

import (
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// 64-byte records take at most 1.3 times their bytes, all told, and the collector looks at next to none of it.
func TestLog_Memory(t *testing.T) {
	const heap, objects, scanned = "/memory/classes/heap/objects:bytes", "/gc/heap/objects:objects", "/gc/scan/heap:bytes"
	records := 1_000_000
	if testing.Short() {
		records = 200_000
	}
	measure := func() (h, o, s int64) {
		runtime.GC()
		runtime.GC()
		return int64(metric(heap)), int64(metric(objects)), int64(metric(scanned))
	}
	h0, o0, s0 := measure()
	l := segment.NewLog(segment.Config{})
	rec := segment.Record{Value: make([]byte, 64)}
	for n := range records {
		require.NoError(t, l.Append(&rec, int64(n)))
	}
	require.NoError(t, l.Publish())
	h1, o1, s1 := measure()

	payload := int64(records) * 64
	_, _, segments := l.Retained()
	require.LessOrEqual(t, h1-h0, payload*13/10+segment.DefaultSegmentBytes, "and what the active segment has not filled yet")
	require.LessOrEqual(t, o1-o0, int64(segments)*4+1000, "few objects")
	require.LessOrEqual(t, s1-s0, payload/100, "blocks are not scanned")
	runtime.KeepAlive(l)
}
