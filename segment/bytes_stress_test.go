package segment_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
)

// TestLog_StressBytes: whoever asks for Bytes, while segments end, go and are taken back, is told what lies between the oldest segment and the
// committed length of some moment of the call.
func TestLog_StressBytes(t *testing.T) {
	const size = 48 + segment.EntryBytes
	l := segment.NewLog(segment.Config{SegmentRecords: 16})
	var failed firstError
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				next, base := l.Committed(), l.OldestBase()
				n := l.Bytes()
				baseAfter, nextAfter := l.OldestBase(), l.Committed()
				least, most := int64(next-min(next, baseAfter))*size, int64(nextAfter-base)*size
				if n < least || n > most || n%size != 0 {
					failed.set(fmt.Errorf("%d bytes, neither %d to %d nor anything between", n, least, most))
					return
				}
			}
		})
	}
	stop := sync.OnceFunc(func() { close(done); wg.Wait() })
	defer stop()
	rng := rand.New(rand.NewPCG(1, 2))
	rec := segment.Record{Value: make([]byte, 48)}
	for now := range int64(scaled(40_000)) {
		for range rng.IntN(40) {
			require.NoError(t, l.Append(&rec, now))
		}
		switch rng.IntN(8) {
		case 0:
			l.Unstage()
		case 1:
			l.Roll()
		case 2:
			for l.DropOldest() {
			}
		case 3:
			l.TruncateBefore(l.Committed() - min(l.Committed(), uint64(rng.IntN(20))))
		case 4:
			l.DropOldest()
		case 5:
			require.NoError(t, l.Ensure(500, 20, now))
		}
		if rng.IntN(2) == 0 {
			require.NoError(t, l.Publish())
			_, n, _ := l.Retained()
			require.Equal(t, n, l.Bytes())
		}
	}
	stop()
	require.NoError(t, failed.get())
}
