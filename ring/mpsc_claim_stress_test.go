package ring_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/ring"
)

// TestBUG124_MPSCStressClaims: four goroutines do nothing but claim, so that many of their CASes fail. Each claim has
// positions of its own, and together they have all.
func TestBUG124_MPSCStressClaims(t *testing.T) {
	watchdog(t)
	const capacity, producers = 1 << 16, 4
	for range max(rounds(50), 4) {
		r := ring.New[int](capacity)
		var claims [producers][]uint64
		var wg sync.WaitGroup
		var started atomic.Int32
		for p := range producers {
			wg.Go(func() {
				started.Add(1)
				await(func() bool { return started.Load() == producers })
				for {
					pos, o := r.TryClaim(p%2 + 1)
					if o == ring.Full {
						return
					}
					claims[p] = append(claims[p], pos)
					if p%2 == 1 {
						claims[p] = append(claims[p], r.Advance(pos, 1))
					}
				}
			})
		}
		wg.Wait()
		all := slices.Concat(claims[:]...)
		slices.Sort(all)
		require.Len(t, all, r.Len())
		require.GreaterOrEqual(t, len(all), capacity-1)
		for i, pos := range all {
			if want := r.Advance(0, i); pos != want { // require looks at values for longer than the claims took
				require.Equal(t, want, pos)
			}
		}
	}
}

// TestBUG011_MPSCStressDone: 64 producers wait for room in a ring of four and give up around the moment when it appears,
// with claims of all sizes. No wake-up goes with those who give up, no slot either: all that was claimed is consumed, and
// at the end nobody waits. It attacks "No lost wake-up", "Nothing is taken along" and "One token each" of the line.
func TestBUG011_MPSCStressDone(t *testing.T) {
	watchdog(t)
	const producers = 64
	perProducer := max(rounds(2000), 20)
	r := ring.NewAt[message](4, math.MaxUint64-100*ring.PosStep+1)
	l := newLedger(t, producers)
	c := newConsumer(r, l.visit)
	c.maxRun, c.watch = 1, true
	var consumed, produced sync.WaitGroup
	consumed.Go(c.run)
	want := make([]uint64, producers)
	closed := make(chan struct{})
	close(closed)
	var gaveUp atomic.Int64
	for p := range producers {
		rng := rand.New(rand.NewPCG(uint64(p), 4))
		produced.Go(func() {
			for i := 0; i < perProducer || gaveUp.Load()*c.inLine.Load()*c.held.Load() == 0; i++ {
				n := rng.IntN(4) + 1
				done := make(chan struct{})
				cancelled := done // which is closed at some time
				switch rng.IntN(3) {
				case 0:
					close(done)
				case 1:
					turns := rng.IntN(60)
					produced.Go(func() {
						for range turns {
							runtime.Gosched()
						}
						close(done)
					})
				default:
					cancelled = closed
				}
				pos, o, ok := r.Claim(n, done)
				<-cancelled
				if !ok {
					gaveUp.Add(1)
					continue
				}
				fill(r, pos, n, p, want[p])
				r.Ready(pos)
				c.wake(o)
				want[p] += uint64(n)
			}
		})
	}
	produced.Wait()
	require.Zero(t, r.Waiting())
	require.False(t, r.Held())
	if r.Close() {
		c.parker.Unpark()
	}
	consumed.Wait()
	l.check(want)
	places, tokens := r.Spare()
	assert.LessOrEqual(t, places, producers)
	assert.Zero(t, tokens)
	assert.NotZero(t, l.total, "nobody was served")
	t.Logf("%d gave up, %d messages were served", gaveUp.Load(), l.total)
}

// TestBUG041_MPSCStressUnevenClaims: those who wait for much and those who wait for little share one line. Each is served
// each time, with no other event than the consumer's Release; and the big ones are not starved by four producers of small
// claims which never stop ("Nobody starves").
func TestBUG041_MPSCStressUnevenClaims(t *testing.T) {
	watchdog(t)
	const capacity, small = 8, 4
	r := ring.New[message](capacity)
	l := newLedger(t, small+1)
	c := newConsumer(r, l.visit)
	c.maxRun = 1
	var consumed, produced sync.WaitGroup
	consumed.Go(c.run)
	want := make([]uint64, small+1)
	var stop atomic.Bool
	for p := range small {
		produced.Go(func() {
			for !stop.Load() {
				put(c, 1, p, want[p])
				want[p]++
			}
		})
	}
	full := 0
	for range rounds(20_000) { // the big one
		if r.Len() > 0 {
			full++
		}
		put(c, capacity, small, want[small])
		want[small] += capacity
	}
	stop.Store(true)
	produced.Wait()
	if r.Close() {
		c.parker.Unpark()
	}
	consumed.Wait()
	l.check(want)
	assert.NotZero(t, full, "it never had to wait for room")
	t.Logf("%d big claims beside %d small ones", want[small]/capacity, l.total-int(want[small]))
}

// TestBUG025_MPSCStressWaitersGiveWay: more producers than processors, a collector that wants every goroutine to stop, and
// a ring of eight: whoever waits lets the one run that it waits for.
func TestBUG025_MPSCStressWaitersGiveWay(t *testing.T) {
	watchdog(t)
	const producers = 32
	perProducer := rounds(100_000) / producers
	r := ring.New[message](8)
	l := newLedger(t, producers)
	c := newConsumer(r, l.visit)
	var consumed, produced, collector sync.WaitGroup
	consumed.Go(c.run)
	want := make([]uint64, producers)
	var collections atomic.Int64
	for p := range producers {
		produced.Go(func() {
			for want[p] < uint64(perProducer) || collections.Load() < 3 {
				put(c, 1, p, want[p])
				want[p]++
			}
		})
	}
	stop := make(chan struct{})
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				collections.Add(1)
			}
		}
	})
	produced.Wait()
	close(stop)
	collector.Wait()
	if r.Close() {
		c.parker.Unpark()
	}
	consumed.Wait()
	l.check(want)
}
