package delivery_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

// TestKeyed_StressPause attacks "no new delivery after Pause returned". If no handler runs after Pause has returned, none begins
// before Resume; those that run are the last.
func TestKeyed_StressPause(t *testing.T) {
	watchdog(t)
	const records = 300
	p := newPart(t, partitionSetup{segments: 50})
	p.publishKeys(t, keys(records, 40)...)
	var begun, over atomic.Int64
	c := each(func(context.Context, *Message) error {
		begun.Add(1)
		if rand.N(4) == 0 {
			runtime.Gosched()
		}
		over.Add(1)
		return nil
	})
	c.Parallel = 3
	k := newKeyed(t, p, c, nil)
	k.Start()
	reached := 0
	for i, n := 0, rounds(20_000); i < n || reached == 0; i++ {
		k.Pause()
		if _, inside := k.Inside(); inside {
			reached++
			await(k.Drained)
		}
		n := begun.Load()
		for range rand.N(4) {
			runtime.Gosched()
		}
		require.Equal(t, n, begun.Load(), "a delivery has begun")
		require.Equal(t, n, over.Load())
		await(k.Drained) // those that have just ended are on their way
		if k.Position() > records/2 {
			require.NoError(t, k.Seek(at(0)))
		}
		k.Resume()
		if rand.N(2) == 0 {
			await(func() bool { return begun.Load() > n })
		}
	}
}

// TestKeyed_StressSeek attacks "a seek is never undone": all records of a key from the target on come, in order, after at most one
// whose handler had been called before; and no key is ever in two handlers.
func TestKeyed_StressSeek(t *testing.T) {
	watchdog(t)
	const records, nkeys = 200, 7
	for _, once := range []bool{false, true} {
		p := newPart(t, partitionSetup{segments: 13})
		p.publishKeys(t, keys(records, nkeys)...)
		got := newKeyBook(t)
		c := each(func(_ context.Context, m *Message) error {
			defer got.enter(m)()
			switch rand.N(60) {
			case 0:
				return errPoison
			case 1, 2, 3, 4, 5, 6:
				runtime.Gosched()
			}
			return nil
		})
		c.AtMostOnce, c.Parallel, c.Backoff = once, 3, []time.Duration{time.Microsecond}
		k := newKeyed(t, p, c, nil)
		k.Start()
		reached := 0
		for i, n := 0, rounds(1_000); i < n || reached == 0; i++ {
			var target int64
			for range 1 + rand.N(3) {
				target = rand.Int64N(records)
				require.NoError(t, k.Seek(at(uint64(target))))
				require.GreaterOrEqual(t, k.Position(), target, "a handler that was running has moved the position")
				for range rand.N(5) {
					runtime.Gosched()
				}
				if _, inside := k.Inside(); inside {
					reached++
				}
			}
			await(k.Drained)
			require.Equal(t, int64(records), k.Position())
			for i := range int64(nkeys) {
				key := fmt.Sprint("k", i)
				all := got.entries(key)
				next := target + (i-target%nkeys+nkeys)%nkeys
				if next >= records {
					continue
				}
				end := len(all)
				for off := next + (records-1-next)/nkeys*nkeys; off >= next; off -= nkeys {
					require.Positive(t, end, "key %s: %d is missing", key, off)
					require.Equal(t, off, all[end-1].off, "key %s, from %d on", key, target)
					attempt := all[end-1].attempt
					for ; attempt > 0; attempt-- {
						end--
						require.Equal(t, entry{off, attempt}, all[end], "key %s", key)
					}
				}
			}
			if i%50 == 0 {
				got.mu.Lock()
				clear(got.of)
				got.mu.Unlock()
			}
		}
	}
}

// TestKeyed_StressHandOver moves a partition from owner to owner, who fail, pause and are fenced at any time, with handlers in
// between. Each begins where the one before ended; in the end every record has been processed, those of a key in order but for
// what a new owner does again, and no position was ever beyond a record that was not over.
func TestKeyed_StressHandOver(t *testing.T) {
	watchdog(t)
	const nkeys = 11
	p := newPart(t, partitionSetup{segments: 13})
	records := int64(rounds(40_000))
	p.publishKeys(t, keys(int(records), nkeys)...)
	var mu sync.Mutex
	over := make([]bool, records)
	last := make([]int64, nkeys) // the last offset of a key that was over
	for i := range last {
		last[i] = int64(i) - nkeys
	}
	pos, checked := int64(0), int64(0)
	for owner := 0; pos < records; owner++ {
		var fenced atomic.Bool
		got := newKeyBook(t)
		fence := owner%3 != 0
		c := each(func(_ context.Context, m *Message) error {
			defer got.enter(m)()
			if rand.N(3) == 0 {
				runtime.Gosched()
			}
			if rand.N(30) == 0 {
				return errPoison
			}
			mu.Lock()
			defer mu.Unlock()
			key := m.Offset % nkeys
			// A fenced handler may come late, when the next owner is further.
			if !fenced.Load() && m.Offset > last[key]+nkeys {
				t.Errorf("owner %d: %d follows %d", owner, m.Offset, last[key])
			}
			last[key] = max(last[key], m.Offset)
			over[m.Offset] = true
			return nil
		})
		c.Parallel, c.MaxInFlight, c.Backoff = 1+owner%4, 1+rand.N(200), []time.Duration{time.Microsecond}
		k := newKeyed(t, p, c, at(uint64(pos)))
		k.Start()
		for range rand.N(20) {
			switch rand.N(4) {
			case 0:
				k.Pause()
				k.Resume()
			default:
				runtime.Gosched()
			}
		}
		if owner%8 == 7 {
			await(func() bool { return k.Position() > min(pos+200, records-1) })
		}
		if fence {
			k.Fence(errOver)
			pos = k.Position()
			fenced.Store(true)
		} else {
			k.Stop(errOver)
			<-k.ended
			pos = k.Position()
		}
		mu.Lock()
		for ; checked < pos; checked++ {
			require.True(t, over[checked], "owner %d: the position is %d, and %d is not over", owner, pos, checked)
		}
		mu.Unlock()
		<-k.ended
		require.Equal(t, pos, k.Position(), "it is final")
	}
}

// TestKeyed_StressStop attacks "no delivery begins after Stop returned", and checks that each lane ends exactly once, whoever
// stops it, pauses it, moves it or publishes meanwhile, and that its gate is gone.
func TestKeyed_StressStop(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 16}, segments: 1})
	over := make(chan struct{})
	var publishers sync.WaitGroup
	publishers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			default:
				_, next := p.Snapshot()
				r := value(next)
				r.Key = fmt.Append(nil, i%5)
				_, _ = p.Publish(background, r)
				runtime.Gosched() // or on one processor nobody else comes to anything
			}
		}
	})
	reached := 0
	for i, n := 0, rounds(2_000); i < n || reached == 0; i++ {
		var stopped atomic.Bool
		var late, begun, ended atomic.Int64
		parallel := 1 + i%3
		c := delivery.Config{Parallel: parallel, AtMostOnce: i%5 == 0, Handler: delivery.Handler{One: func(context.Context, *Message) error {
			if stopped.Load() {
				late.Add(1)
			}
			begun.Add(1)
			runtime.Gosched()
			ended.Add(1)
			return nil
		}}}
		k := newKeyedOpt(t, p, c, earliest, dispatch.Options{Dedicated: i%10 == 0}, &partition.Gate{Gating: i%2 == 0, MaxLag: uint64(i % 3)})
		k.Start()
		var others sync.WaitGroup
		others.Go(func() { _ = k.Seek(latest); k.Pause(); k.Resume() })
		if i%3 == 0 {
			others.Go(func() { k.Stop(errPoison) })
		}
		for range rand.N(20) {
			runtime.Gosched()
		}
		if i%2 == 0 {
			k.Stop(errOver)
		} else {
			k.Fence(errOver)
		}
		pos := k.Position()
		_, inside := k.Inside()
		stopped.Store(true)
		<-k.ended
		others.Wait()
		n := begun.Load()
		require.Equal(t, n, ended.Load(), "it has ended, and a handler runs")
		if inside {
			reached++
			require.LessOrEqual(t, late.Load(), int64(parallel))
		} else {
			require.Zero(t, late.Load(), "a delivery has begun")
		}
		if i%2 == 1 {
			require.Equal(t, pos, k.Position(), "it is final")
		}
		k.Start() // once more does nothing
		require.Equal(t, int32(1), k.ends.Load())
	}
	close(over)
	publishers.Wait()
	p.publish(t, 100) // nobody gates
}

// TestKeyed_StressPublish attacks "no record is forgotten": each round waits until the record that it publishes has been
// delivered, with nobody else to wake the lane; and, where there are other runners, sometimes with a handler that hangs
// meanwhile. With one runner there is no alarm that would come to the rescue.
func TestKeyed_StressPublish(t *testing.T) {
	watchdog(t)
	for _, parallel := range []int{1, 3} {
		p := newPart(t, partitionSetup{segments: 16, limits: retention.Limits{MaxRecords: 64}, workers: 3})
		seen, hung, out := make(chan int64), make(chan struct{}, 1), make(chan struct{})
		c := each(func(_ context.Context, m *Message) error {
			if string(m.Key) == "hang" {
				hung <- struct{}{}
				<-out
			}
			seen <- m.Offset
			return nil
		})
		c.Parallel = parallel
		k := newKeyed(t, p, c, nil)
		k.Start()
		n := int64(rounds(30_000))
		for i := int64(0); i < n; i++ {
			if i%100 == 50 && parallel > 1 {
				p.publishKeys(t, "hang")
				<-hung
				for range 10 {
					i++
					p.publishKeys(t, "a")
					require.Equal(t, i, <-seen)
				}
				out <- struct{}{}
				require.Equal(t, i-10, <-seen)
				continue
			}
			p.publishKeys(t, "a")
			require.Equal(t, i, <-seen)
		}
	}
}

// TestKeyed_StressDrained attacks "Drained is true only if nothing is left": when it is, all that was published before is
// handled, its handler has returned, and the counters say so. And somebody who waits for Rested is woken.
func TestKeyed_StressDrained(t *testing.T) {
	watchdog(t)
	for _, once := range []bool{false, true} {
		p := newPart(t, partitionSetup{segments: 16, limits: retention.Limits{MaxRecords: 64}})
		var over atomic.Int64
		c := each(func(context.Context, *Message) error {
			runtime.Gosched()
			over.Add(1)
			return nil
		})
		c.AtMostOnce, c.Parallel = once, 2
		k := newKeyed(t, p, c, nil)
		k.Start()
		w := newRestWaiter(k)
		for i := range int64(rounds(5_000)) {
			p.publishKeys(t, keys(2, 2)...)
			if i%2 == 0 {
				w.wait()
			}
			for !k.Drained() {
				runtime.Gosched()
			}
			require.Equal(t, 2*(i+1), over.Load())
			require.Equal(t, 2*(i+1), k.Stats(p.clock.Now()).Delivered)
		}
	}
}
