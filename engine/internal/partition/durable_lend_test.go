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
	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/vfs"
)

// TestDurable_Lent has a producer use the role on loan: only one that would wait whatever comes may, since it waits for the write.
func TestDurable_Lent(t *testing.T) {
	f := newFaults()
	p := keep(t, f, storage.Never, setup{})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	require.True(t, p.TakeRole())
	p.Lend(func() {
		for i := range partition.DirectFiles - 1 {
			require.NoError(t, p.PublishAsync(background, value(fmt.Sprint(i)), nil))
		}
		require.Zero(t, p.Queued(), "it has appended by itself")
		require.Zero(t, p.Log().Committed(), "and not written yet")
		require.NoError(t, p.PublishAsync(background, value("last"), nil))
		require.Equal(t, uint64(partition.DirectFiles), p.Log().Committed())
		require.Equal(t, int64(1), p.Store().Stats().Writes)
		require.NoError(t, p.PublishAsync(ctx, value("handed over"), nil))
		require.Equal(t, 1, p.Queued())
		require.NoError(t, p.PublishAsync(background, value("behind it"), nil))
		require.Zero(t, p.Queued(), "it has drained what came before")
	})
	p.PassRole()
	require.NoError(t, p.Flush(background))
	all := values(t, p)
	require.Len(t, all, partition.DirectFiles+2)
	assert.Equal(t, []string{"last", "handed over", "behind it"}, all[partition.DirectFiles-1:])

	// A write that fails: nobody waits, so it is counted.
	testkit.Await(p.TakeRole)
	f.set(vfs.OpWrite, &vfs.Fault{Err: errors.New("broken")})
	p.Lend(func() {
		for range partition.DirectFiles {
			require.NoError(t, p.PublishAsync(background, value("lost"), nil))
		}
		require.ErrorIs(t, p.PublishAsync(background, value("refused"), nil), storage.ErrReadOnly)
	})
	f.set(vfs.OpWrite, nil)
	p.PassRole()
	assert.Equal(t, int64(partition.DirectFiles), p.Stats().AsyncFailed)
	require.NoError(t, p.Resume(background))
	publish(t, p, 1)
	p = p.reopen(t, f.mem, storage.Never, setup{})
	assert.Equal(t, append(all, fmt.Sprint(len(all))), values(t, p))
}

// TestDurable_EveryWayTellsOfAFailure: whoever waits is told by the error, and nothing is counted twice.
func TestDurable_EveryWayTellsOfAFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	two := func() []segment.Record { return []segment.Record{*value("a"), *value("b")} }
	appender := func(p part) error {
		x, err := p.Appender(ctx)
		require.NoError(t, err)
		defer x.Close()
		for range 2 { // the second one goes the short way
			if _, err = x.Publish(ctx, value("x")); err != nil {
				break
			}
		}
		return err
	}
	for name, way := range map[string]func(p part) error{
		"publish":            func(p part) error { _, err := p.Publish(background, value("x")); return err },
		"publish with a ctx": func(p part) error { _, err := p.Publish(ctx, value("x")); return err },
		"batch":              func(p part) error { _, err := p.PublishBatch(background, two()); return err },
		"batch with a ctx":   func(p part) error { _, err := p.PublishBatch(ctx, two()); return err },
		"appender publish":   appender,
	} {
		for _, policy := range []storage.Policy{storage.Always, storage.Never} {
			f := newFaults()
			p := keep(t, f, policy, setup{})
			require.NoError(t, way(p), name)
			all := values(t, p)
			f.set(vfs.OpWrite, &vfs.Fault{Err: errors.New("broken")})
			err := way(p)
			require.ErrorIs(t, err, storage.ErrIndefinite, name)
			require.ErrorIs(t, err, storage.ErrReadOnly, name)
			assert.Equal(t, all, values(t, p), name)
			assert.Zero(t, p.Stats().AsyncFailed, name)
			f.set(vfs.OpWrite, nil)
			require.NoError(t, p.Resume(background), name)
			require.NoError(t, way(p), name)
		}
	}
}

// TestDurable_StressStreams has producers publish as fast as they can, some of them with a ctx that can end, while the files fail and
// are resumed: each producer's records are there in order, and all but those that were counted as failed.
func TestDurable_StressStreams(t *testing.T) {
	for _, producers := range []int{1, 3} {
		for _, policy := range []storage.Policy{storage.Never, storage.Every, storage.Always} {
			t.Run(fmt.Sprintf("producers=%d/policy=%d", producers, policy), func(t *testing.T) {
				stressStreams(t, producers, policy)
			})
		}
	}
}

func stressStreams(t *testing.T, producers int, policy storage.Policy) {
	f := newFaults()
	p := keep(t, f, policy, setup{slots: 64})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	const n = 5000
	accepted := make([]int, producers)
	var wg sync.WaitGroup
	for i := range producers {
		wg.Go(func() {
			ctx := []context.Context{background, ctx}[i%2]
			for k := range n {
				switch err := p.PublishAsync(ctx, value(fmt.Sprintf("%d %06d", i, k)), nil); {
				case err == nil:
					accepted[i]++
				case !assert.ErrorIs(t, err, storage.ErrReadOnly):
					return
				}
				switch {
				case i > 0:
				case k == n/2:
					f.set(vfs.OpWrite, &vfs.Fault{Err: errors.New("broken")})
				case k > n/2 && k%50 == 0:
					f.set(vfs.OpWrite, nil)
					assert.NoError(t, p.Resume(background))
				}
			}
		})
	}
	wg.Wait()
	f.set(vfs.OpWrite, nil)
	require.NoError(t, p.Resume(background))
	require.NoError(t, p.Flush(background))
	all, total := values(t, p), 0
	last := make([]string, producers)
	for _, v := range all {
		i := int(v[0] - '0')
		if v <= last[i] {
			t.Fatalf("%q comes after %q", v, last[i])
		}
		last[i] = v
	}
	for _, n := range accepted {
		total += n
	}
	require.Equal(t, int64(total-len(all)), p.Stats().AsyncFailed, "%d accepted", total)
	p = p.reopen(t, f.mem, policy, setup{})
	require.Equal(t, all, values(t, p))
}
