package partition_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/segment/vfs"
)

// TestDurable_SlotsAreFreeDuringAWrite has producers fill the hand-over while the records before are being written, and others wait for
// room in it. The write goes well, fails, or the partition ends meanwhile: each is told once, in order.
func TestDurable_SlotsAreFreeDuringAWrite(t *testing.T) {
	watchdog(t)
	const slots, waiting = 8, 3
	for _, policy := range []storage.Policy{storage.Always, storage.Never} {
		for _, how := range []string{"well", "fails", "ends", "ends and fails"} {
			f := newFaults()
			p := keep(t, f, policy, setup{slots: slots})
			var mu sync.Mutex
			var offs []int64
			var errs []error
			var told sync.WaitGroup
			told.Add(1 + slots + waiting)
			done := func(at partition.Published, err error) {
				mu.Lock()
				defer mu.Unlock()
				offs, errs = append(offs, at.Offset), append(errs, err)
				told.Done()
			}
			if how == "fails" || how == "ends and fails" {
				f.set(vfs.OpWrite, &vfs.Fault{Err: errors.New("broken")})
			}
			goOn := f.hang(vfs.OpWrite)
			require.NoError(t, p.PublishAsync(background, value("0"), done))
			<-f.stuck
			n := 0
			for err := error(nil); err == nil; {
				if err = p.TryPublish(value(fmt.Sprint(1 + n))); err == nil {
					n++
				}
			}
			assert.Equal(t, slots, n, "all of them")
			assert.Equal(t, slots, p.Stats().InHandover)
			told.Add(-slots) // nobody is told of these
			var wg sync.WaitGroup
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			for range waiting {
				wg.Go(func() {
					if err := p.PublishAsync(ctx, value("w"), done); err != nil {
						assert.NotErrorIs(t, err, storage.ErrIndefinite)
						told.Done()
					}
				})
			}
			await(func() bool { return p.Stats().Blocked == waiting })
			if how == "ends" || how == "ends and fails" {
				p.Close(errOver)
			}
			goOn()
			wg.Wait()
			told.Wait()
			mu.Lock()
			failed := p.Stats().AsyncFailed
			switch how {
			case "well":
				assert.Equal(t, []int64{0, slots + 1, slots + 2, slots + 3}, offs)
				assert.Zero(t, failed)
			case "ends":
				<-p.Done()
				assert.NoError(t, errs[0])
				assert.Len(t, values(t, p), 1+slots)
				assert.Zero(t, failed)
			default:
				require.ErrorIs(t, errs[0], storage.ErrIndefinite)
				for _, err := range errs[1:] {
					require.Error(t, err)
					require.NotErrorIs(t, err, storage.ErrIndefinite)
				}
				if how == "ends and fails" {
					<-p.Done()
				}
				require.EqualValues(t, slots, p.Stats().AsyncFailed, "who is not told is counted")
				require.Empty(t, values(t, p))
			}
			mu.Unlock()
			if how == "fails" {
				f.set(vfs.OpWrite, nil)
				require.NoError(t, p.Resume(background))
				publish(t, p, 2)
				require.Equal(t, []string{"0", "1"}, values(t, p))
			}
		}
	}
}
