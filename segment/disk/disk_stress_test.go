package disk_test

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// TestLog_StressAllAtOnce runs an appender beside syncers, a trimmer, and readers, and checks what each may rely on: the durable
// end never goes back and never passes the written end, a reader sees frames without gaps or a gap that is said, and all that was
// not trimmed is there at the end.
func TestLog_StressAllAtOnce(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		total := uint64(testkit.Rounds(6000))
		if c.FS == (vfs.OS{}) {
			c.SegmentBytes *= 16 // rolls are slow there
		}
		c.Behind = func(rest func()) { go rest() }
		l := open(t, c)
		var wg sync.WaitGroup
		var done atomic.Bool
		var synced, rounds atomic.Int64
		wg.Go(func() {
			defer done.Store(true)
			for l.Next() < total || synced.Load() == 0 || rounds.Load() == 0 { // until all have had a turn
				_, err := l.Write(batch(l.Next(), 2, 0))
				if !assert.NoError(t, err) {
					return
				}
			}
		})
		for range 2 {
			wg.Go(func() {
				last := uint64(0)
				for !done.Load() {
					durable, err := l.Sync()
					if !assert.NoError(t, err) {
						return
					}
					assert.GreaterOrEqual(t, durable, last)
					assert.LessOrEqual(t, durable, l.Next())
					last = durable
					synced.Add(1)
				}
			})
		}
		wg.Go(func() {
			for !done.Load() {
				if next := l.Next(); next > 200 {
					assert.NoError(t, l.Trim(next-200))
				}
				l.Files()
			}
		})
		for range 2 {
			wg.Go(func() {
				for !done.Load() {
					r, err := l.NewReader(l.First())
					if errors.Is(err, disk.ErrBelow) {
						continue
					}
					if !assert.NoError(t, err) {
						return
					}
					rounds.Add(1)
					next := uint64(0)
					for {
						b, err := r.Next()
						if err == io.EOF || errors.Is(err, disk.ErrBelow) {
							break
						}
						if !assert.NoError(t, err) {
							return
						}
						if next > 0 {
							assert.Equal(t, next, b.First)
						}
						next = b.Next()
						var rec frame.Record
						it := b.Records()
						for it.Next(&rec) {
							assert.Equal(t, value(rec.Offset, 0), rec.Value)
						}
						assert.NoError(t, it.Err())
					}
					assert.NoError(t, r.Close())
				}
			})
		}
		wg.Wait()
		require.False(t, t.Failed())
		first := l.First()
		total = l.Next()
		requireHolds(t, l, first, total)
		require.NoError(t, l.Close())
		l = open(t, c)
		requireHolds(t, l, first, total)
		require.NoError(t, l.Close())
	})
}
