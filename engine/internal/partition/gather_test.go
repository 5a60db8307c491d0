package partition_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment/vfs"
)

// gathered has publishers come at the given times, each look takes a while, and returns when the holder has stopped to wait and how
// many were there.
func gathered(want int, took, look time.Duration, come []time.Duration) (at time.Duration, have int) {
	g := partition.NewGathering(want, took, 0)
	for {
		for have < len(come) && come[have] <= at {
			have++
		}
		if !g.Again(have, int64(at)) {
			return at, have
		}
		at += look
	}
}

func TestGathering(t *testing.T) {
	if atomicx.NoteProcs(); atomicx.OneProc() {
		t.Skip("one turn is enough there")
	}
	const us = time.Microsecond
	every := func(n int, gap time.Duration) (come []time.Duration) {
		for i := range n {
			come = append(come, time.Duration(i)*gap)
		}
		return come
	}
	at, have := gathered(64, 200*us, us/10, every(64, us/2))
	assert.Equal(t, 64, have)
	assert.Less(t, at, 32*us, "it ends when all are there")
	at, have = gathered(64, 200*us, us/10, every(32, 0))
	assert.Equal(t, 32, have)
	assert.Less(t, at, 4*us, "of 64 only 32 come again")
	at, have = gathered(64, 200*us, us/10, append(every(32, 0), 50*us, 51*us))
	assert.Equal(t, 32, have)
	assert.Less(t, at, 4*us, "those who are late wait for the next")
	at, have = gathered(2, 200*us, us/10, []time.Duration{0, 20 * us})
	assert.Equal(t, 2, have)
	assert.Less(t, at, 21*us, "the second one of two had to be woken")
	at, _ = gathered(1000, 200*us, us/10, every(1000, us/5))
	assert.Equal(t, 100*us, at, "they come and come")
	_, have = gathered(64, 200*us, us/10, append([]time.Duration{0, 0, 0, 0, 0, 0, 0, 0}, every(100, 25*us)[1:]...))
	assert.Equal(t, 8, have, "as fast as during the sync: they are others")
	at, have = gathered(64, 0, us/10, every(64, 0)[:1])
	assert.Equal(t, 1, have)
	assert.Zero(t, at, "no sync")
	at, have = gathered(64, time.Hour, 0, every(3, 0))
	assert.Equal(t, 3, have, "a clock that stands still")
	assert.Zero(t, at)
	at, _ = gathered(64, time.Hour, us/10, every(3, 0))
	assert.Less(t, at, 40*us, "whatever a sync takes")
}

// TestGathering_Any: whenever they come, all that are known of end it, it gives up at the first look at which the next one is late, and
// half a sync is not exceeded.
func TestGathering_Any(t *testing.T) {
	if atomicx.NoteProcs(); atomicx.OneProc() {
		t.Skip("one turn is enough there")
	}
	for range 20_000 {
		want, took, look := 2+rand.IntN(100), time.Duration(rand.IntN(1_000_000)), time.Duration(rand.IntN(10_000))
		var come []time.Duration
		at := time.Duration(0)
		for range 1 + rand.IntN(want+10) {
			come = append(come, at)
			at += time.Duration(rand.IntN(1 + rand.IntN(20_000)))
		}
		at, have := gathered(want, took, look, come)
		require.LessOrEqual(t, at, took/2+look, "%v of %d, a sync %v, a look %v", come, want, took, look)
		if have >= want || at >= took/2 {
			continue
		}
		seen, looks := time.Duration(0), time.Duration(256) // when the last of them was found, and how often it was looked since
		if look > 0 {
			seen = (come[have-1] + look - 1) / look * look
			looks = min(looks, max(1, (took/time.Duration(2*max(have, 4))+look-1)/look))
		}
		require.Equal(t, seen+looks*look, at, "%v of %d, a sync %v, a look %v", come, want, took, look)
	}
}

// TestDurable_GatherWhereTimeStandsStill has publishers come again and again in a bubble, whose clock moves only when all wait: nobody
// waits for more than two syncs, the one that was under way and his own.
func TestDurable_GatherWhereTimeStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op) *vfs.Fault {
			if o.Kind == vfs.OpSync {
				time.Sleep(10 * time.Millisecond) // virtual
			}
			return nil
		})
		p := keep(t, f, storage.Always, setup{})
		const publishers, records = 8, 30
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		before := p.Store().Stats().Syncs
		var wg sync.WaitGroup
		for i := range publishers {
			wg.Go(func() {
				ctx := []context.Context{background, ctx}[i%2]
				for range records {
					_, err := p.Publish(ctx, value("x"))
					assert.NoError(t, err)
				}
			})
		}
		wg.Wait()
		syncs := p.Store().Stats().Syncs - before
		assert.GreaterOrEqual(t, syncs, int64(records))
		assert.LessOrEqual(t, syncs, int64(2*records+2))
		p.Close(errOver)
		<-p.Done()
		require.NoError(t, p.Store().Close())
	})
}

// TestDurable_StressGather has many publish again as soon as they have their result, and some give up at any moment: whoever was
// told of an offset finds his record there, whoever was told that he has left does not, and of the others nobody knows.
func TestDurable_StressGather(t *testing.T) {
	watchdog(t)
	f := vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op) *vfs.Fault {
		if o.Kind == vfs.OpSync {
			for began := time.Now(); time.Since(began) < 50*time.Microsecond; { // long enough for all to park at once
				runtime.Gosched()
			}
		}
		return nil
	})
	p := keep(t, f, storage.Always, setup{})
	const publishers = 16
	var published, left, indefinite atomic.Int64
	var mu sync.Mutex
	told, perhaps := map[int64]string{}, map[string]bool{}
	var wg sync.WaitGroup
	for i := range publishers {
		wg.Go(func() {
			for k := range rounds(400) {
				ctx, cancel := context.WithCancel(background)
				switch {
				case i == 0:
					ctx = background
				case k%3 == 0:
					go func() { dawdle(); cancel() }()
				}
				v := fmt.Sprintf("%d-%d", i, k)
				off, err := p.Publish(ctx, value(v))
				cancel()
				mu.Lock()
				switch {
				case err == nil:
					published.Add(1)
					told[off] = v
				case errors.Is(err, storage.ErrIndefinite):
					indefinite.Add(1)
					perhaps[v] = true
				default:
					left.Add(1)
					assert.ErrorIs(t, err, context.Canceled)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Flush(background))
	all := values(t, p)
	for off, v := range all {
		if told[int64(off)] != v {
			require.True(t, perhaps[v], "%q at %d, where %q was told of", v, off, told[int64(off)])
			delete(perhaps, v) // not twice
			delete(told, int64(off))
		}
	}
	require.GreaterOrEqual(t, int64(len(all)), published.Load())
	for off, v := range told {
		require.Less(t, off, int64(len(all)))
		require.Equal(t, v, all[off])
	}
	t.Logf("%d published, %d left, %d indefinite, %d syncs", published.Load(), left.Load(), indefinite.Load(), p.Store().Stats().Syncs)
}
