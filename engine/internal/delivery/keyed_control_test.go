package delivery_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/retention"
)

func TestKeyed_PauseInsideTheHandler(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	var k *keyedLane
	var got book
	c := each(func(_ context.Context, m *Message) error {
		got.add(m)
		if m.Offset == 4 {
			k.Pause()
		}
		return nil
	})
	c.Parallel = 1
	k = newKeyed(t, p, c, nil)
	k.Start()
	p.publishKeys(t, keys(10, 3)...)
	await(func() bool { return k.Paused() && k.Drained() })
	n := got.len()
	assert.Equal(t, int64(4), got.offsets()[n-1], "nothing has begun since")
	assert.LessOrEqual(t, k.Position(), int64(5))
	assert.Equal(t, 10-k.Position(), k.Lag())
	assert.Zero(t, p.Committed().Waiting(), "a paused lane costs publishers nothing")
	k.Resume()
	await(k.Drained)
	assert.ElementsMatch(t, upTo(0, 10), got.offsets())
}

// TestKeyed_RunIsTakenBack stops the lane, or moves it to the end, from inside a handler that is one of many that the runner has
// taken: none of the others is called.
func TestKeyed_RunIsTakenBack(t *testing.T) {
	watchdog(t)
	const inside = 40
	for name, f := range map[string]func(k *keyedLane){
		"pause": func(k *keyedLane) { k.Pause() },
		"seek":  func(k *keyedLane) { assert.NoError(t, k.Seek(latest)) },
		"stop":  func(k *keyedLane) { k.Stop(errOver) },
		"fence": func(k *keyedLane) { k.Fence(errOver) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPart(t, partitionSetup{workers: 1})
			p.publishKeys(t, keys(200, 200)...)
			var k *keyedLane
			var got book
			c := each(func(_ context.Context, m *Message) error {
				got.add(m)
				if m.Offset == inside {
					f(k)
				}
				return nil
			})
			c.Parallel = 1
			k = newKeyed(t, p, c, nil)
			k.Start()
			await(func() bool { return got.len() > inside && k.Drained() })
			assert.Equal(t, upTo(0, inside+1), got.offsets())
			want := map[string]int64{"pause": inside + 1, "seek": 200, "stop": inside + 1, "fence": inside}
			assert.Equal(t, want[name], k.Position())
		})
	}
}

// TestBUG008_KeyedSeekDuringDelivery seeks while a handler has 5, from outside and from inside, in both modes, with a handler that
// succeeds and one that fails: all from the target on comes, as a first attempt, in order, and what the handler returns moves
// nothing.
func TestBUG008_KeyedSeekDuringDelivery(t *testing.T) {
	watchdog(t)
	for _, target := range []uint64{0, 4, 5, 6, 10} {
		for i := range 16 {
			inside, once, fail, nokey := i&1 != 0, i&2 != 0, i&4 != 0, i&8 != 0
			t.Run(fmt.Sprintf("target=%d/inside=%v/once=%v/fail=%v/nokey=%v", target, inside, once, fail, nokey), func(t *testing.T) {
				p := newPart(t, partitionSetup{segments: 4})
				ks := keys(10, 3)
				if nokey {
					ks = make([]string, 10)
				}
				p.publishKeys(t, ks...)
				in, out := make(chan struct{}), make(chan struct{})
				got := newKeyBook(t)
				var k *keyedLane
				var done, five atomic.Bool
				c := each(func(_ context.Context, m *Message) error {
					defer got.enter(m)()
					if m.Offset != 5 {
						return nil
					}
					assert.False(t, five.Swap(true), "it is in a handler already")
					defer five.Store(false)
					if done.Swap(true) {
						return nil
					}
					if inside {
						assert.NoError(t, k.Seek(at(target)))
					} else {
						in <- struct{}{}
						<-out
					}
					if fail {
						return errPoison
					}
					return nil
				})
				c.AtMostOnce = once
				k = newKeyed(t, p, c, at(3))
				k.Start()
				if !inside {
					<-in
					await(func() bool { return k.Stats(p.clock.Now()).Delivered >= 4 }) // all but 8, which waits for 5
					require.NoError(t, k.Seek(at(target)))
					pos := k.Position()
					assert.GreaterOrEqual(t, pos, int64(target))
					if target <= 5 {
						assert.LessOrEqual(t, pos, int64(5), "a handler has it")
					}
					close(out)
				}
				await(k.Drained)
				assert.Equal(t, int64(10), k.Position())
				for i := range int64(3) {
					key := fmt.Sprint("k", i)
					if nokey {
						key = ""
					}
					entries := got.entries(key)
					want := firsts(int64(target), 10, i, 3)
					if nokey {
						want = firsts(int64(target), 10, 0, 1)
						slices.SortStableFunc(entries, func(a, b entry) int { return int(a.off - b.off) })
						for _, e := range want {
							assert.Contains(t, entries, e)
						}
						continue
					}
					require.GreaterOrEqual(t, len(entries), len(want))
					assert.Equal(t, want, append([]entry(nil), entries[len(entries)-len(want):]...))
				}
			})
		}
	}
}

// TestKeyed_SeekTakesTheLast: of several seeks the last one counts, and a backoff ends.
func TestKeyed_SeekTakesTheLast(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publishKeys(t, keys(10, 2)...)
	got := newKeyBook(t)
	var fail atomic.Bool
	fail.Store(true)
	c := each(func(_ context.Context, m *Message) error {
		defer got.enter(m)()
		if fail.Load() {
			return errPoison
		}
		return nil
	})
	c.Backoff = []time.Duration{time.Hour}
	k := newKeyed(t, p, c, at(2))
	k.Start()
	await(func() bool { return k.Stats(p.clock.Now()).Failed == 2 && p.idle() })
	fail.Store(false)
	k.Pause()
	for _, off := range []uint64{9, 0, 7} {
		require.NoError(t, k.Seek(at(off)))
		assert.Equal(t, int64(off), k.Position())
	}
	require.ErrorIs(t, k.Seek(func(uint64, uint64) (uint64, error) { return 0, errPoison }), errPoison)
	k.Resume()
	await(k.Drained)
	assert.Equal(t, []entry{{2, 1}, {8, 1}}, got.entries("k0"))
	assert.Equal(t, []entry{{3, 1}, {7, 1}, {9, 1}}, got.entries("k1"))
}

// TestKeyed_SeekOfAPausedLaneFreesRoom: publishers that wait for a paused lane go on once it is moved, and who waits for it to rest
// is told, though no runner has anything to do.
func TestKeyed_SeekOfAPausedLaneFreesRoom(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 4}, segments: 1})
	k := runKeyed(t, p, nothing)
	k.Pause()
	p.publishKeys(t, keys(4, 2)...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.publishKeys(t, keys(2, 2)...)
	}()
	await(func() bool { return p.Stats().HeldBy == "keyed" })
	require.NoError(t, k.Seek(at(2)))
	<-done
	assert.Equal(t, int64(2), k.Position())
}

// TestKeyed_WhoWaitsForRestIsTold when a lane that waits for a retry is paused, moved to the end, or stopped.
func TestKeyed_WhoWaitsForRestIsTold(t *testing.T) {
	watchdog(t)
	for i, rest := range []func(k *keyedLane){
		func(k *keyedLane) { k.Pause() },
		func(k *keyedLane) { _ = k.Seek(latest) },
		func(k *keyedLane) { k.Stop(errOver) },
	} {
		p := newPart(t, partitionSetup{})
		p.publishKeys(t, "a")
		c := each(func(context.Context, *Message) error { return errPoison })
		c.Backoff = []time.Duration{time.Hour}
		k := newKeyed(t, p, c, nil)
		k.Start()
		await(func() bool { return k.Stats(p.clock.Now()).Failed == 1 && p.idle() })
		assert.False(t, k.Drained(), i)
		done := make(chan struct{})
		go func() {
			defer close(done)
			newRestWaiter(k).wait()
		}()
		await(func() bool { return k.rested.Waiting() == 1 })
		rest(k)
		<-done
	}
}
