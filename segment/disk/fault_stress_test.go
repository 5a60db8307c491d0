package disk_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// TestLog_StressFaults has operations fail now and then while a log is written, synced, trimmed, read and resumed, with rolls behind the
// writes: nothing that was written is lost, since the power stays, and readers are told of nothing but where the log begins and ends.
func TestLog_StressFaults(t *testing.T) {
	testkit.Watchdog(t)
	for _, fault := range []vfs.Fault{{Err: errBoom}, {Err: errBoom, Done: true}, {Err: errBoom, Keep: 10}} {
		m := vfs.NewMem()
		var armed atomic.Bool
		var hits atomic.Int64
		c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			if !armed.Load() || !o.Kind.Changes() || rand.IntN(40) > 0 {
				return nil
			}
			hits.Add(1)
			f := fault
			return &f
		}))
		c.Behind = func(rest func()) { go rest() }
		l := open(t, c)
		armed.Store(true)
		var done atomic.Bool
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for last := uint64(0); !done.Load(); {
					durable, err := l.Sync()
					if err != nil {
						assert.ErrorIs(t, err, errBoom)
						continue
					}
					assert.GreaterOrEqual(t, durable, last)
					last = durable
				}
			})
			wg.Go(func() {
				for !done.Load() {
					if next := l.Next(); next > 100 {
						if err := l.Trim(next - 100); err != nil {
							assert.ErrorIs(t, err, errBoom)
						}
					}
				}
			})
			wg.Go(func() {
				for !done.Load() {
					r, err := l.NewReader(l.First())
					if errors.Is(err, disk.ErrBelow) {
						continue
					}
					if !assert.NoError(t, err) {
						return
					}
					for {
						if _, err = r.Next(); err != nil {
							break
						}
					}
					if err != io.EOF && !errors.Is(err, disk.ErrBelow) {
						assert.NoError(t, err)
					}
					assert.NoError(t, r.Close())
				}
			})
		}
		resumes := 0
		for range testkit.Rounds(1000) {
			next := l.Next()
			if _, err := l.Write(batch(next, 1+rand.IntN(3), 0)); err == nil {
				continue
			} else if !assert.ErrorIs(t, err, errBoom) {
				break
			}
			for l.Resume() != nil {
			}
			resumes++
			if !assert.Equal(t, next, l.Next()) {
				break
			}
		}
		done.Store(true)
		wg.Wait()
		armed.Store(false)
		require.False(t, t.Failed())
		require.Positive(t, hits.Load())
		require.Positive(t, resumes)
		require.NoError(t, l.Resume())
		first, next := l.First(), l.Next()
		requireHolds(t, l, first, next)
		require.NoError(t, l.Close())
		l = open(t, small(m))
		requireHolds(t, l, first, next)
		require.NoError(t, l.Close())
	}
}
