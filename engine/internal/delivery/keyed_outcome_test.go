package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/partition"
)

// TestBUG013_KeyedFailingHandlers fails record 5 in every way, in both modes: under AtMostOnce it is counted and its key goes on;
// under AtLeastOnce it is delivered again until it succeeds, or is given up, or given up and buried. No other record is
// delivered twice.
func TestBUG013_KeyedFailingHandlers(t *testing.T) {
	watchdog(t)
	for _, f := range failures {
		for i := range 8 {
			once, drop, bury := i&1 != 0, i&2 != 0, i&4 != 0
			t.Run(fmt.Sprintf("%s/once=%v/drop=%v/bury=%v", f.name, once, drop, bury), func(t *testing.T) {
				p := newPart(t, partitionSetup{segments: 4, workers: 1})
				p.publishKeys(t, keys(20, 4)...)
				got := newKeyBook(t)
				var failed, dropped, buried book
				c := each(func(_ context.Context, m *Message) error {
					defer got.enter(m)()
					bad := m.Offset == 5 && (drop || m.Attempt < 3)
					m.Offset, m.Value, m.Key, m.Topic, m.Attempt = -1, nil, nil, "", -1 // changes nothing for anybody
					if bad {
						return f.fail()
					}
					return nil
				})
				c.AtMostOnce, c.MaxDeliveries = once, 3
				told := func(b *book) func(context.Context, *Message, error) {
					return func(_ context.Context, m *Message, err error) {
						f.check(t, err)
						assert.Equal(t, value(5).Value, m.Value)
						assert.Equal(t, "k1", string(m.Key))
						assert.Equal(t, "topic", m.Topic)
						b.add(m)
					}
				}
				c.OnFailure, c.OnDrop = told(&failed), told(&dropped)
				if bury {
					c.Bury = func(ctx context.Context, m *Message, err error) error {
						told(&buried)(ctx, m, err)
						if buried.len() < 3 {
							return f.fail()
						}
						return nil
					}
				}
				k := newKeyed(t, p, c, nil)
				k.Start()
				await(k.Drained)

				attempts, failures := 3, 2
				var wantDropped, wantBuried []entry
				switch {
				case once:
					attempts, failures = 1, 1
				case drop && bury:
					failures = 3
					wantBuried = []entry{{5, 3}, {5, 3}, {5, 3}}
				case drop:
					failures = 3
					wantDropped = []entry{{5, 3}}
				}
				bad := []entry{{1, 1}}
				var wantFailed []entry
				for i := range attempts {
					bad = append(bad, entry{5, i + 1})
					if i < failures {
						wantFailed = append(wantFailed, entry{5, i + 1})
					}
				}
				for i := range int64(4) {
					want := firsts(0, 20, i, 4)
					if i == 1 {
						want = append(bad, want[2:]...)
					}
					assert.Equal(t, want, got.entries(fmt.Sprint("k", i)))
				}
				assert.Equal(t, wantFailed, failed.entries())
				assert.Equal(t, wantDropped, dropped.entries())
				assert.Equal(t, wantBuried, buried.entries())

				s := k.Stats(p.clock.Now())
				assert.Equal(t, int64(20), s.Position)
				assert.Equal(t, int64(failures), s.Failed)
				assert.Equal(t, int64(attempts-1), s.Redelivered)
				assert.Equal(t, int64(len(wantDropped)), s.Dropped)
				assert.Equal(t, int64(len(wantBuried)/3), s.Buried)
				delivered := int64(20)
				if once || drop {
					delivered--
				}
				assert.Equal(t, delivered, s.Delivered)
			})
		}
	}
}

// TestKeyed_HooksMayEndTheGoroutine: what is decided about a record does not depend on who is told of it.
func TestKeyed_HooksMayEndTheGoroutine(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 1})
	p.publishKeys(t, keys(6, 2)...)
	got := newKeyBook(t)
	c := each(func(_ context.Context, m *Message) error { defer got.enter(m)(); return errPoison })
	c.MaxDeliveries = 2
	c.OnFailure = func(context.Context, *Message, error) { runtime.Goexit() }
	c.OnDrop = func(context.Context, *Message, error) { runtime.Goexit() }
	k := newKeyed(t, p, c, nil)
	k.Start()
	await(k.Drained)
	assert.Equal(t, []entry{{0, 1}, {0, 2}, {2, 1}, {2, 2}, {4, 1}, {4, 2}}, got.entries("k0"))
	assert.Equal(t, []entry{{1, 1}, {1, 2}, {3, 1}, {3, 2}, {5, 1}, {5, 2}}, got.entries("k1"))
	assert.Equal(t, int64(6), k.Stats(p.clock.Now()).Dropped)
}

// TestKeyed_KeyWaitsForHooks: while anybody is still told of a failure no other record of its key is delivered.
func TestKeyed_KeyWaitsForHooks(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 4})
	p.publishKeys(t, "a", "a", "b", "b")
	in, out := make(chan struct{}), make(chan struct{})
	var got book
	c := each(func(_ context.Context, m *Message) error {
		got.add(m)
		if m.Offset == 0 {
			return errPoison
		}
		return nil
	})
	c.MaxDeliveries = 1
	c.OnDrop = func(context.Context, *Message, error) { in <- struct{}{}; <-out }
	k := newKeyed(t, p, c, nil)
	k.Start()
	<-in
	await(func() bool { return got.len() == 3 && p.workers.Running() == 1 })
	assert.ElementsMatch(t, []int64{0, 2, 3}, got.offsets())
	assert.Equal(t, int64(1), k.Position(), "it is given up")
	_, yes := k.Inside()
	assert.True(t, yes)
	close(out)
	await(k.Drained)
	assert.Equal(t, int64(4), k.Position())
}

// TestKeyed_GapHookMayEndTheGoroutine: it is told once all the same.
func TestKeyed_GapHookMayEndTheGoroutine(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 1, workers: 1})
	p.publishKeys(t, keys(10, 3)...)
	require.NoError(t, p.TruncateBefore(background, 4))
	var got book
	gaps := 0
	c := each(func(_ context.Context, m *Message) error { got.add(m); return nil })
	c.OnGap = func(int, int64, int64) { gaps++; runtime.Goexit() }
	k := newKeyed(t, p, c, nil)
	k.Start()
	await(k.Drained)
	assert.Equal(t, 1, gaps)
	assert.ElementsMatch(t, upTo(4, 10), got.offsets())
}

// TestKeyed_NotDroppedOnceItsContextIsOver: a subscription that is being closed fails its handlers, and that must not use up
// their attempts.
func TestKeyed_NotDroppedOnceItsContextIsOver(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	in := make(chan struct{}, 1)
	c := each(func(ctx context.Context, _ *Message) error {
		in <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	c.MaxDeliveries = 1
	c.OnDrop = func(context.Context, *Message, error) { t.Error("dropped") }
	c.Bury = func(context.Context, *Message, error) error { t.Error("buried"); return nil }
	k := newKeyed(t, p, c, nil)
	k.Start()
	p.publishKeys(t, "a")
	<-in
	k.Stop(errPoison)
	k.cancel()
	<-k.ended
	assert.Zero(t, k.Position())
	assert.False(t, errors.Is(k.cause, context.Canceled))
}

// TestKeyed_CrowdedDoesNotCount: a record whose handler was refused because every worker waited comes again, with the same attempt,
// however often.
func TestKeyed_CrowdedDoesNotCount(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	var n atomic.Int64
	got := newKeyBook(t)
	c := each(func(_ context.Context, m *Message) error {
		defer got.enter(m)()
		if n.Add(1) <= 5 {
			return fmt.Errorf("publish: %w", partition.ErrWorkersBlocked)
		}
		return nil
	})
	c.MaxDeliveries = 2
	c.OnDrop = func(context.Context, *Message, error) { t.Error("dropped") }
	k := newKeyed(t, p, c, nil)
	k.Start()
	p.publishKeys(t, "a", "a")
	await(k.Drained)
	assert.Equal(t, []entry{{0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {0, 1}, {1, 1}}, got.entries("a"))
}

// TestKeyed_FenceDuringBury: what is buried after the fence does not move the position, so the next owner gets it again.
func TestKeyed_FenceDuringBury(t *testing.T) {
	watchdog(t)
	for _, fence := range []bool{false, true} {
		p := newPart(t, partitionSetup{})
		in, out := make(chan struct{}), make(chan struct{})
		c := each(func(context.Context, *Message) error { return errPoison })
		c.MaxDeliveries = 1
		c.Bury = func(context.Context, *Message, error) error { in <- struct{}{}; <-out; return nil }
		k := newKeyed(t, p, c, nil)
		k.Start()
		p.publishKeys(t, "a")
		<-in
		want := int64(0)
		if fence {
			k.Fence(errOver)
		} else {
			k.Stop(errOver)
			want = 1
		}
		assert.Zero(t, k.Position())
		close(out)
		<-k.ended
		assert.Equal(t, want, k.Position())
	}
}

// TestKeyed_SeekDuringHooks: what is decided before a seek is forgotten, and the record starts over.
func TestKeyed_SeekDuringHooks(t *testing.T) {
	watchdog(t)
	for _, target := range []uint64{0, 1} {
		p := newPart(t, partitionSetup{})
		got := newKeyBook(t)
		var k *keyedLane
		c := each(func(_ context.Context, m *Message) error { defer got.enter(m)(); return errPoison })
		c.MaxDeliveries = 2
		c.OnFailure = func(_ context.Context, m *Message, _ error) {
			if m.Offset == 0 && len(got.entries("a")) == 1 {
				assert.NoError(t, k.Seek(at(target)))
			}
		}
		k = newKeyed(t, p, c, nil)
		k.Pause()
		k.Start()
		p.publishKeys(t, "a", "a")
		k.Resume()
		await(k.Drained)
		want := []entry{{0, 1}}
		for off := int64(target); off < 2; off++ {
			want = append(want, entry{off, 1}, entry{off, 2})
		}
		assert.Equal(t, want, got.entries("a"))
	}
}
