package disk_test

import (
	"errors"
	"io/fs"
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

// TestOpen_StressReadOnlyBesideItsOwner opens a log for reading only, again and again, while its owner does all that there is.
func TestOpen_StressReadOnlyBesideItsOwner(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		c.Behind = func(rest func()) { go rest() }
		l := open(t, c)
		var done atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !done.Load() {
				seen, err := disk.Open(dir, disk.Config{FS: c.FS, ReadOnly: true})
				if !assert.NoError(t, err) {
					return
				}
				assert.Empty(t, seen.Recovery().Damage)
				if _, err := lives(seen, seen.First()); err != nil && !errors.Is(err, fs.ErrNotExist) {
					assert.NoError(t, err)
				}
				v, err := seen.Verify(nil)
				if !errors.Is(err, fs.ErrNotExist) {
					assert.NoError(t, err)
				}
				assert.Empty(t, v.Damage)
				assert.NoError(t, seen.Close())
			}
		})
		rng := rand.New(rand.NewPCG(1, 2))
		rounds := testkit.Rounds(2000)
		if c.FS == (vfs.OS{}) {
			rounds /= 4 // rolls are slow there
		}
		for range rounds {
			switch k := rng.IntN(100); {
			case k < 70:
				_, err := l.Write(batch(l.Next(), 1+rng.IntN(5), 0))
				require.NoError(t, err)
			case k < 80:
				_, err := l.Sync()
				require.NoError(t, err)
			case k < 90:
				require.NoError(t, l.Trim(l.First()+rng.Uint64N(l.Next()-l.First()+1)))
			case k < 95:
				next := l.Next()
				l.Fail(errBoom)
				require.NoError(t, l.Resume())
				require.Equal(t, next, l.Next())
			case k < 98:
				next := l.Next()
				require.NoError(t, l.Abandon())
				l = open(t, c)
				require.Equal(t, next, l.Next())
			default:
				require.NoError(t, l.Close())
				l = open(t, c)
			}
		}
		done.Store(true)
		wg.Wait()
		require.NoError(t, l.Close())
	})
}
