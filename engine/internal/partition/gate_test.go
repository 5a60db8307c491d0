package partition_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// try publishes and reports whether there was room.
func try(t testing.TB, p part) bool {
	t.Helper()
	_, next := p.Snapshot()
	err := p.TryPublish(value(fmt.Sprint(next)))
	if err != nil {
		require.ErrorIs(t, err, partition.ErrFull)
	}
	await(p.TakeRole) // whoever the role was handed to is through
	p.HoldRole()
	return err == nil
}

func TestGate_HoldsBack(t *testing.T) {
	for _, policy := range []partition.OnFull{partition.Block, partition.Reject} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			p := start(t, setup{limits: retention.Limits{MaxRecords: 4}, segments: 2, onFull: policy})
			for range 6 {
				require.True(t, try(t, p), "nobody holds anything back")
			}
			first, _ := p.Snapshot()
			require.EqualValues(t, 2, first)
			g, h := gate(t, p), gate(t, p)
			require.False(t, try(t, p))
			g.Advance(5)
			require.False(t, try(t, p), "the other one does")
			h.Advance(3)
			require.False(t, try(t, p), "the segment ends at 4")
			h.Advance(4)
			require.True(t, try(t, p))
			h.Advance(2) // gates only rise
			require.True(t, try(t, p))
			require.False(t, try(t, p))
			p.RemoveGate(h)
			p.RemoveGate(h)
			require.False(t, try(t, p), "g is at 5, in the middle of a segment")
			g.Advance(6)
			require.True(t, try(t, p))
		})
	}
	p := start(t, setup{limits: retention.Limits{MaxRecords: 4}, segments: 2, onFull: partition.DropOldest})
	gate(t, p)
	for range 100 {
		require.True(t, try(t, p))
	}
}

// A gate is added at an offset that is there, whatever is dropped meanwhile: what it is to protect is protected.
func TestGate_StressAddAgainstDrop(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 4}, segments: 1, onFull: partition.Reject})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := p.TryPublish(value("x")); err != nil && err != partition.ErrFull {
					t.Error(err)
				}
			}
		}
	})
	for range rounds(20_000) {
		g := &partition.Gate{Gating: true}
		pos, err := p.AddGate(g, earliest)
		if err != nil {
			t.Fatal(err)
		}
		if first := p.Log().First(); first > pos {
			t.Fatalf("the gate was added at %d, and the log begins at %d", pos, first)
		}
		p.RemoveGate(g)
	}
	close(stop)
	wg.Wait()
}

func TestGate_StartFails(t *testing.T) {
	p := start(t, setup{limits: retention.Limits{MaxRecords: 1}})
	_, err := p.AddGate(&partition.Gate{Gating: true}, func(_, _ uint64) (uint64, error) { return 0, errOver })
	require.ErrorIs(t, err, errOver)
	require.True(t, try(t, p))
	require.True(t, try(t, p), "it is not there")
	_, err = p.NewReader(&partition.Gate{Gating: true}, 0, func(_, _ uint64) (uint64, error) { return 0, errOver })
	require.ErrorIs(t, err, errOver)
	require.True(t, try(t, p), "nor is this one")
}

// Whoever lags by more than its limit is put out, at the publication that makes it so, and holds nothing back any more.
func TestGate_Evicted(t *testing.T) {
	p := start(t, setup{limits: retention.Limits{MaxRecords: 6}, segments: 1, onFull: partition.Reject})
	evicted := map[string]int64{}
	add := func(name string, gating bool, most uint64) *partition.Gate {
		g := &partition.Gate{Name: name, Gating: gating, MaxLag: most}
		g.Evicted = func() { _, evicted[name] = p.Snapshot() }
		_, err := p.AddGate(g, latest)
		require.NoError(t, err)
		return g
	}
	add("three", true, 3)
	five := add("five", true, 5)
	add("loose", false, 4)
	free := add("free", true, 0)
	publish(t, p, 3)
	require.Empty(t, evicted)
	publish(t, p, 1)
	require.Equal(t, map[string]int64{"three": 4}, evicted)
	five.Advance(2)
	publish(t, p, 2)
	require.Equal(t, map[string]int64{"three": 4, "loose": 5}, evicted)
	require.False(t, try(t, p), "free has read nothing")
	free.Advance(6)
	require.True(t, try(t, p))
	require.True(t, try(t, p))
	require.Equal(t, map[string]int64{"three": 4, "loose": 5, "five": 8}, evicted)
	require.True(t, try(t, p))
	p.RemoveGate(five)
	p.RemoveGate(free)
}

// A publish that waits for a gate goes on when that one is evicted by somebody else's publication... and not before.
func TestGate_LargestLimit(t *testing.T) {
	p := start(t, setup{first: 1<<63 - 3})
	g := &partition.Gate{MaxLag: 1<<63 - 1, Evicted: func() { t.Error("evicted") }}
	_, err := p.AddGate(g, earliest)
	require.NoError(t, err)
	require.True(t, try(t, p))
	require.True(t, try(t, p))
}

// TestGate_SelfBlock: a publish from inside the handler of the very lane that it would wait for fails, whichever comes first:
// the publish, or the holder that finds itself stuck. Others wait.
func TestGate_SelfBlock(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 2}, segments: 1, slots: 2})
	g := gate(t, p)
	inside := partition.WithOrigin(background, g, true)
	publish(t, p, 2)
	_, err := p.Publish(inside, value("x"))
	require.ErrorIs(t, err, partition.ErrSelfBlock)
	_, err = p.PublishBatch(inside, []segment.Record{{}, {}})
	require.ErrorIs(t, err, partition.ErrSelfBlock)

	await(func() bool { return p.Queued() == 0 }) // those who left are dropped
	results := make(chan error)
	outside := func() { results <- second(p.Publish(background, value("x"))) }
	go outside()
	go outside()
	await(func() bool { return p.Queued() == 2 && p.Stats().Full })
	require.ErrorIs(t, p.PublishAsync(inside, value("x"), nil), partition.ErrSelfBlock, "it waits for a slot, the slots for the gate")
	require.ErrorIs(t, second(p.Publish(inside, value("x"))), partition.ErrSelfBlock)
	other := partition.WithOrigin(background, &partition.Gate{}, true)
	go func() { results <- p.PublishAsync(other, value("x"), nil) }()
	await(func() bool { return p.Stats().Blocked == 3 })
	g.Advance(2)
	for range 3 {
		require.NoError(t, <-results)
	}
	g.Advance(4)
	require.NoError(t, p.Flush(background))
	require.Len(t, values(t, p), 2)
}

// TestGate_StressSelfBlock: publishers inside and outside of a handler, on a full partition. Those inside never hang.
func TestGate_StressSelfBlock(t *testing.T) {
	watchdog(t)
	p := start(t, setup{limits: retention.Limits{MaxRecords: 2}, segments: 1, slots: 2})
	g := gate(t, p)
	inside := partition.WithOrigin(background, g, true)
	var wg sync.WaitGroup
	n := rounds(2000)
	var refused atomic.Int64
	for range 2 {
		wg.Go(func() {
			for i := 0; i < n || refused.Load() == 0; i++ {
				if _, err := p.Publish(background, value("x")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	stop := make(chan struct{})
	var handler sync.WaitGroup
	handler.Go(func() { // "handles" a record, publishing from inside, and moves on
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, next := p.Snapshot()
			switch _, err := p.Publish(inside, value("y")); {
			case err == nil:
			case errors.Is(err, partition.ErrSelfBlock):
				refused.Add(1)
			default:
				t.Error(err)
			}
			g.Advance(uint64(next))
		}
	})
	wg.Wait()
	close(stop)
	handler.Wait()
	require.NotZero(t, refused.Load())
}
