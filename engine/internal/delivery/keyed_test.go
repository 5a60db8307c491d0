package delivery_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// keyed makes a Config for a handler.
func keyed(h Handler) delivery.Config { return delivery.Config{Handler: delivery.Handler{One: h}} }

// first is the entries of the first deliveries of the records of key i of m, from an offset up to another.
func firsts(from, to int64, i, m int64) (es []entry) {
	for off := from; off < to; off++ {
		if off%m == i {
			es = append(es, entry{off, 1})
		}
	}
	return es
}

// TestKeyed_DeliversAllInOrderOfEachKey publishes before and after the start, with few and many keys and runners, in both modes.
func TestKeyed_DeliversAllInOrderOfEachKey(t *testing.T) {
	watchdog(t)
	for _, parallel := range []int{1, 3, 16} {
		for _, nkeys := range []int{1, 7, 400} {
			for i := range 4 {
				once, opt := i&1 != 0, dispatch.Options{Dedicated: i&2 != 0}
				t.Run(fmt.Sprintf("parallel=%d/keys=%d/once=%v/dedicated=%v", parallel, nkeys, once, opt.Dedicated), func(t *testing.T) {
					p := newPart(t, partitionSetup{segments: 37})
					p.publishKeys(t, keys(1000, nkeys)...)
					got := newKeyBook(t)
					c := keyed(func(_ context.Context, m *Message) error {
						defer got.enter(m)()
						assert.Equal(t, "topic", m.Topic)
						return nil
					})
					c.Parallel, c.AtMostOnce = parallel, once
					c.MaxInFlight, c.MaxKeys = 50, 20
					k := newKeyedOpt(t, p, c, at(100), opt, &partition.Gate{Gating: true})
					assert.Equal(t, int64(100), k.Position())
					assert.Equal(t, int64(900), k.Lag())
					k.Start()
					await(k.Drained)
					assert.Equal(t, int64(1000), k.Position())
					for _, key := range keys(500, nkeys) {
						p.publishKeys(t, key)
					}
					await(k.Drained)
					assert.Equal(t, int64(1500), k.Position())
					assert.Zero(t, k.Lag())
					for i := range int64(nkeys) {
						var want []entry
						for off := int64(100); off < 1500; off++ {
							if off < 1000 && off%int64(nkeys) == i || off >= 1000 && (off-1000)%int64(nkeys) == i {
								want = append(want, entry{off, 1})
							}
						}
						assert.Equal(t, want, got.entries(fmt.Sprint("k", i)))
					}
					s := k.Stats(p.clock.Now())
					assert.Equal(t, int64(1400), s.Delivered)
					assert.Zero(t, s.InFlight)
				})
			}
		}
	}
}

// TestKeyed_RunsInParallel needs as many handlers at a time as there may be, of different keys, and has no more.
func TestKeyed_RunsInParallel(t *testing.T) {
	watchdog(t)
	const parallel = 5
	p := newPart(t, partitionSetup{workers: 8})
	in, out := make(chan int64, 100), make(chan struct{})
	c := keyed(func(_ context.Context, m *Message) error { in <- m.Offset; <-out; return nil })
	c.Parallel = parallel
	k := newKeyed(t, p, c, nil)
	k.Start()
	p.publishKeys(t, "a", "a", "a", "b", "", "", "c", "c", "d", "e", "f")
	var offs []int64
	for range parallel {
		offs = append(offs, <-in)
	}
	slices.Sort(offs)
	assert.Equal(t, []int64{0, 3, 4, 5, 6}, offs)
	await(func() bool { return p.workers.Running() == parallel && p.workers.Queued() == 0 })
	assert.Empty(t, in)
	_, yes := k.Inside()
	assert.True(t, yes)
	assert.Equal(t, parallel, k.Stats(p.clock.Now()).InFlight)
	assert.False(t, k.Drained())
	close(out)
	await(k.Drained)
	assert.Len(t, in, 11-parallel)
}

func TestKeyed_DoesNothingBeforeStart(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 1})
	p.publishKeys(t, keys(3, 3)...)
	k := newKeyed(t, p, keyed(func(context.Context, *Message) error { t.Error("delivered"); return nil }), nil)
	k.Resume()
	k.Stop(errPoison)
	// The only worker has run whatever was to be run by the time it has run this.
	ran := make(chan struct{})
	p.workers.NewTask(func() dispatch.Again { close(ran); return false }, dispatch.Options{}).Wake()
	<-ran
	assert.Zero(t, k.ends.Load())
	k.Start()
	<-k.ended
	assert.Equal(t, errPoison, k.cause)
}

// TestKeyed_NoPlaceToStart: there is no lane, and nothing is left of it.
func TestKeyed_NoPlaceToStart(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 2}, segments: 1})
	c := keyed(func(context.Context, *Message) error { return nil })
	nowhere := func(uint64, uint64) (uint64, error) { return 0, errPoison }
	_, err := delivery.NewKeyed(background, &c, p.Partition, &partition.Gate{Gating: true}, p.workers, dispatch.Options{Dedicated: true}, nowhere)
	require.ErrorIs(t, err, errPoison)
	p.publishKeys(t, keys(10, 3)...) // nobody gates
}

func TestKeyed_StopCountsTheFirstCause(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	k := runKeyed(t, p, func(context.Context, *Message) error { return nil })
	k.Stop(errPoison)
	k.Fence(errOver)
	<-k.ended
	assert.Equal(t, errPoison, k.cause)
	assert.Equal(t, errPoison, k.Seek(at(0)))
	k.Pause()
	k.Resume()
	assert.True(t, k.Drained())
	p.publishKeys(t, keys(3, 3)...)
	k.Start()
	assert.Equal(t, int32(1), k.ends.Load())
}

// TestKeyed_EndsAfterItsLastHandler stops with three handlers running: what they finish counts, unless it is fenced off, and
// OnEnd waits for the last.
func TestKeyed_EndsAfterItsLastHandler(t *testing.T) {
	watchdog(t)
	for i := range 4 {
		fence, once := i&1 != 0, i&2 != 0
		t.Run(fmt.Sprintf("fence=%v/once=%v", fence, once), func(t *testing.T) {
			p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 6}, segments: 1, workers: 4})
			p.publishKeys(t, keys(6, 6)...)
			in := make(chan struct{})
			out := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
			c := keyed(func(_ context.Context, m *Message) error { in <- struct{}{}; <-out[m.Offset]; return nil })
			c.Parallel, c.AtMostOnce = 3, once
			k := newKeyed(t, p, c, nil)
			k.Start()
			for range out {
				<-in
			}
			want := int64(0)
			if once {
				want = 3
			}
			assert.Equal(t, want, k.Position())
			if fence {
				k.Fence(errPoison)
			} else {
				k.Stop(errPoison)
			}
			p.publishKeys(t, keys(6, 6)...) // nobody gates any more
			for _, i := range []int{0, 2, 1} {
				assert.Zero(t, k.ends.Load())
				assert.False(t, k.Drained(), "a handler is running")
				assert.Equal(t, want, k.Position())
				close(out[i])
				if i == 0 && !fence && !once {
					await(func() bool { return k.Position() == 1 })
					want = 1
				}
			}
			<-k.ended
			if !fence {
				want = 3
			}
			assert.Equal(t, want, k.Position())
			assert.True(t, k.Drained())
			assert.Equal(t, int64(3), k.Stats(p.clock.Now()).Delivered)
			k.Fence(errOver)
			assert.Equal(t, want, k.Position())
		})
	}
}

// TestBUG005_KeyedFloorDoesNotJumpOverWorkInProgress: of a hundred records that eight handlers share number 3 never ends, and the
// lane is handed over.
func TestBUG005_KeyedFloorDoesNotJumpOverWorkInProgress(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 8, segments: 10})
	p.publishKeys(t, keys(100, 50)...)
	in, out := make(chan struct{}), make(chan struct{})
	var done atomic.Int64
	c := keyed(func(_ context.Context, m *Message) error {
		if m.Offset == 3 {
			in <- struct{}{}
			<-out
			return errPoison
		}
		done.Add(1)
		return nil
	})
	c.Parallel = 8
	k := newKeyed(t, p, c, nil)
	k.Start()
	<-in
	await(func() bool { return done.Load() == 98 }) // all but 3, and 53 behind it
	await(func() bool { return k.Stats(p.clock.Now()).Delivered == 98 })
	assert.Equal(t, int64(3), k.Position())
	k.Fence(errPoison)
	close(out)
	<-k.ended
	require.Equal(t, int64(3), k.Position())

	got := newKeyBook(t)
	next := newKeyed(t, p, keyed(func(_ context.Context, m *Message) error { defer got.enter(m)(); return nil }), at(uint64(k.Position())))
	next.Start()
	await(next.Drained)
	for i := range int64(50) {
		assert.Equal(t, firsts(3, 100, i, 50), got.entries(fmt.Sprint("k", i)))
	}
}

// TestBUG122_KeyedFailingKeyHoldsNobodyUp hangs in one record of key 0, or fails with it again and again: all records of 49 other
// keys are delivered, as far as the window goes, and then nothing is done.
func TestBUG122_KeyedFailingKeyHoldsNobodyUp(t *testing.T) {
	watchdog(t)
	const records, nkeys, bad = 10_000, 50, 1000 // a thousand records are fast before that
	for _, hang := range []bool{true, false} {
		t.Run(fmt.Sprintf("hang=%v", hang), func(t *testing.T) {
			p := newPart(t, partitionSetup{workers: 2, segments: 100})
			p.publishKeys(t, keys(records, nkeys)...)
			got := newKeyBook(t)
			out := make(chan struct{})
			c := keyed(func(_ context.Context, m *Message) error {
				defer got.enter(m)()
				if m.Offset != bad {
					return nil
				}
				if hang {
					<-out
					return nil
				}
				select {
				case <-out:
					return nil
				default:
					return errPoison
				}
			})
			c.Parallel, c.MaxInFlight, c.Backoff = 2, records, []time.Duration{time.Hour}
			k := newKeyed(t, p, c, nil)
			k.Start()
			others := int64(records - (records-bad)/nkeys) // all but those of key 0 from the bad one on
			await(func() bool { return k.Stats(p.clock.Now()).Delivered == others })
			assert.Equal(t, int64(bad), k.Position())
			for i := int64(1); i < nkeys; i++ {
				assert.Equal(t, firsts(0, records, i, nkeys), got.entries(fmt.Sprint("k", i)))
			}
			assert.Equal(t, firsts(0, bad+1, 0, nkeys), got.entries("k0"))
			assert.Equal(t, 1, k.Stats(p.clock.Now()).InFlight)
			running := 0
			if hang {
				running = 1
			}
			await(func() bool { return p.workers.Queued() == 0 && p.workers.Running() == running })
			close(out)
			if !hang {
				require.NoError(t, k.Seek(at(bad)))
			}
			await(k.Drained)
			assert.Equal(t, int64(records), k.Position())
		})
	}
}

// TestBUG121_KeyedOrderIsKeptAcrossRedelivery: 50 keys, one delivery in twenty fails. The sequence of a key never steps back, but
// that a record that failed comes again, as the next of its key.
func TestBUG121_KeyedOrderIsKeptAcrossRedelivery(t *testing.T) {
	watchdog(t)
	const nkeys = 50
	records := int64(rounds(20_000))
	p := newPart(t, partitionSetup{segments: 100})
	got := newKeyBook(t)
	var n atomic.Int64
	c := keyed(func(_ context.Context, m *Message) error {
		defer got.enter(m)()
		if n.Add(1)%20 == 0 {
			return errPoison
		}
		return nil
	})
	c.Backoff, c.Parallel = []time.Duration{time.Microsecond, 100 * time.Microsecond}, 6
	k := newKeyed(t, p, c, nil)
	k.Start()
	p.publishKeys(t, keys(int(records), nkeys)...)
	await(k.Drained)
	redelivered := int64(0)
	for i := range int64(nkeys) {
		next, attempt := i, 0
		for _, e := range got.entries(fmt.Sprint("k", i)) {
			if e.off == next-nkeys && e.attempt == attempt+1 { // the one before, again
				attempt++
				redelivered++
				continue
			}
			require.Equal(t, entry{next, 1}, e)
			next, attempt = next+nkeys, 1
		}
		require.GreaterOrEqual(t, next, records)
	}
	s := k.Stats(p.clock.Now())
	assert.Equal(t, redelivered, s.Redelivered)
	assert.Equal(t, redelivered, s.Failed)
	assert.Equal(t, records, s.Delivered)
}

// TestKeyed_Bounds: one record that fails lets the lane read MaxInFlight records from it on, and so many that fail as may have
// different keys stop it.
func TestKeyed_Bounds(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publishKeys(t, keys(100, 100)...)
	for _, bad := range []int64{1, 5} {
		var got book
		c := keyed(func(_ context.Context, m *Message) error {
			if m.Offset < bad {
				return errPoison
			}
			got.add(m)
			return nil
		})
		c.MaxInFlight, c.MaxKeys, c.Backoff = 30, 5, []time.Duration{time.Hour}
		k := newKeyed(t, p, c, nil)
		k.Start()
		want := upTo(1, 30)
		if bad == 5 {
			want = nil
		}
		await(func() bool { return k.Stats(p.clock.Now()).Failed == bad && got.len() == len(want) && p.idle() })
		assert.ElementsMatch(t, want, got.offsets())
		assert.Zero(t, k.Position())
		assert.Zero(t, p.Committed().Waiting(), "it waits for its own records")
		assert.Equal(t, int(bad), k.Stats(p.clock.Now()).InFlight)
		k.Stop(errOver)
	}
}

// TestKeyed_WithoutKeysThereIsNoOrder: such records do not wait for each other; one with an empty key does.
func TestKeyed_WithoutKeysThereIsNoOrder(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 4})
	for i := range int64(8) {
		r := value(i)
		if i%2 == 1 {
			r.Key = []byte{}
		}
		_, err := p.Publish(background, r)
		require.NoError(t, err)
	}
	in, out := make(chan int64), make(chan struct{})
	k := runKeyed(t, p, func(_ context.Context, m *Message) error {
		in <- m.Offset
		if m.Offset == 1 || m.Offset == 0 {
			<-out
		}
		return nil
	})
	var got []int64
	for range 5 {
		got = append(got, <-in)
	}
	assert.ElementsMatch(t, []int64{0, 1, 2, 4, 6}, got)
	close(out)
	for range 3 {
		<-in
	}
	await(k.Drained)
}

func TestKeyed_PauseInsideTheHandler(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	var k *keyedLane
	var got book
	c := keyed(func(_ context.Context, m *Message) error {
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
			c := keyed(func(_ context.Context, m *Message) error {
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
				c := keyed(func(_ context.Context, m *Message) error {
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
	c := keyed(func(_ context.Context, m *Message) error {
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
	k := runKeyed(t, p, func(context.Context, *Message) error { return nil })
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
		c := keyed(func(context.Context, *Message) error { return errPoison })
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

func TestKeyed_EndsWithItsPartition(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	k := runKeyed(t, p, func(_ context.Context, m *Message) error {
		if m.Offset == 3 && m.Attempt < 3 {
			return errPoison
		}
		return nil
	})
	p.publishKeys(t, keys(10, 5)...)
	p.Finish(errOver)
	<-k.ended
	assert.Equal(t, errOver, k.cause)
	assert.Equal(t, int64(10), k.Position(), "what was there is delivered before")
}

// TestKeyed_Evicted hangs a handler: the gate is gone, and who asked is told, long before the lane can end.
func TestKeyed_Evicted(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 8}, segments: 1})
	in, out, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c := keyed(func(_ context.Context, m *Message) error {
		if m.Offset == 0 {
			in <- struct{}{}
			<-out
		}
		return nil
	})
	c.OnEvicted = func() { close(told) }
	k := newKeyedOpt(t, p, c, nil, dispatch.Options{}, &partition.Gate{Gating: true, MaxLag: 4})
	k.Start()
	p.publishKeys(t, "a")
	<-in
	p.publishKeys(t, keys(20, 3)...)
	<-told
	assert.Zero(t, k.ends.Load())
	assert.Equal(t, partition.ErrEvicted, k.Seek(at(20)))
	close(out)
	<-k.ended
	assert.Equal(t, partition.ErrEvicted, k.cause)
	assert.Positive(t, k.Position())
}

// TestKeyed_GateKept leaves the gate to the owner, and tells it where the lane is.
func TestKeyed_GateKept(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 4}, segments: 1})
	gate := &partition.Gate{Name: "kept", Gating: true}
	_, err := p.AddGate(gate, earliest)
	require.NoError(t, err)
	c := keyed(func(context.Context, *Message) error { return nil })
	c.GateKept = true
	for range 3 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.publishKeys(t, keys(10, 3)...)
		}()
		await(func() bool { return p.Stats().HeldBy == "kept" })
		k := newKeyedOpt(t, p, c, at(gate.Load()), dispatch.Options{}, gate)
		k.Start()
		<-done
		await(k.Drained)
		k.Fence(errOver)
		<-k.ended
		assert.Equal(t, uint64(k.Position()), gate.Load())
	}
	p.RemoveGate(gate)
}

// TestKeyed_SegmentsAreUsedAgain: publishers that wait for the lane drop each segment when it is through with it, and not while
// one of its runners still stands there.
func TestKeyed_SegmentsAreUsedAgain(t *testing.T) {
	watchdog(t)
	const records, bytes = 64, 64 << 10
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 4 * records}, segments: records})
	runKeyed(t, p, func(context.Context, *Message) error { return nil })
	r := segment.Record{Value: make([]byte, bytes/records)}
	fill := func(segments int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range segments * records {
			_, err := p.Publish(background, &r)
			require.NoError(t, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	fill(20)
	n := rounds(1000)
	assert.Less(t, fill(n), uint64(n*bytes/4+20*bytes), "new memory")
}

// TestKeyed_GivesItsPinsBack: no memory is lost to the log's pool for the sake of a lane that has ended.
func TestKeyed_GivesItsPinsBack(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 3})
	p.publishKeys(t, keys(20, 7)...)
	k := runKeyed(t, p, func(context.Context, *Message) error { return nil })
	await(k.Drained)
	k.Stop(errOver)
	<-k.ended
	used := p.pool.Used()
	p.Close(errOver)
	<-p.Done()
	p.Free()
	assert.Positive(t, used)
	assert.Equal(t, used, p.pool.Kept(), "all can be used again")
}

// TestKeyed_AllocatesNothing once it has met as many keys and records as it holds at a time.
func TestKeyed_AllocatesNothing(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publishKeys(t, keys(5000, 600)...)
	for _, once := range []bool{false, true} {
		c := keyed(func(context.Context, *Message) error { return nil })
		c.AtMostOnce = once
		k := newKeyed(t, p, c, nil)
		k.Start()
		await(k.Drained)
		again := at(0)
		n := testing.AllocsPerRun(10, func() {
			_ = k.Seek(again)
			await(k.Drained)
		})
		assert.Less(t, n, 50.0, "for 5000 records") // what the test and the runtime need now and then
	}
}

// TestKeyed_NoRunnersLeft: the tasks of a lane that has ended are gone, with the goroutines of dedicated ones.
func TestKeyed_NoRunnersLeft(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publishKeys(t, "a")
	for range 50 {
		k := newKeyedOpt(t, p, keyed(func(context.Context, *Message) error { return nil }), nil, dispatch.Options{Dedicated: true}, &partition.Gate{})
		k.Start()
		await(k.Drained)
		k.Stop(errOver)
		<-k.ended
	}
	await(func() bool { return runtime.NumGoroutine() < 50 })
}
