package ring_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/ring"
)

// ledger checks what the consumer sees: every message as it was written, and each producer's in order, none missing, none
// twice. Its fields are plain: the race detector checks that the consumer's role is never in two hands.
type ledger struct {
	t        *testing.T
	next     []uint64
	total    int
	inBatch  int // messages of the current claim still to come
	badOrder int
}

func newLedger(t *testing.T, producers int) *ledger {
	return &ledger{t: t, next: make([]uint64, producers)}
}

func (l *ledger) visit(m *message) {
	if l.inBatch == 0 {
		l.inBatch = m.n
	} else if m.n != 0 {
		l.badOrder++ // a claim begins in the middle of another
	}
	l.inBatch--
	if !m.valid() || m.producer >= len(l.next) || m.seq != l.next[m.producer] {
		l.badOrder++
		return
	}
	l.next[m.producer]++
	l.total++
}

func (l *ledger) check(produced []uint64) {
	l.t.Helper()
	require.Zero(l.t, l.badOrder, "messages damaged, lost, repeated or out of order")
	require.Equal(l.t, produced, l.next)
}

// sometimes lets others run, about once in n times: it opens the windows between two steps, most of all on one processor.
func sometimes(rng *rand.Rand, n int) {
	if rng.IntN(n) == 0 {
		runtime.Gosched()
	}
}

// TestMPSC_StressEachOnce attacks "Each position once", "Room", "Publication", "Reuse", "Marks" and "Order": many producers
// with claims of 1 to capacity slots, over the wrap of positions, in rings so small that they are full and empty all the
// time; they go on until they have met a full ring, an empty one, and a claim that is not ready. BUG-056 is the ring of two;
// BUG-092 the batches; BUG-124 what is lost if a failed CAS is taken for a success.
func TestMPSC_StressEachOnce(t *testing.T) {
	watchdog(t)
	for _, capacity := range []int{2, 4, 16, 128} {
		for _, producers := range []int{1, 2, 8} {
			t.Run(fmt.Sprintf("cap=%d/producers=%d", capacity, producers), func(t *testing.T) {
				perProducer := rounds(200_000) / producers
				start := uint64(math.MaxUint64) - uint64(perProducer*producers/2)*ring.PosStep
				start &^= ring.PosStep - 1
				r := ring.NewAt[message](capacity, start)
				l := newLedger(t, producers)
				c := newConsumer(r, l.visit)
				c.watch = true
				var consumed, produced sync.WaitGroup
				consumed.Go(c.run)
				want := make([]uint64, producers)
				var full atomic.Int64
				for p := range producers {
					rng := rand.New(rand.NewPCG(uint64(p), 1))
					produced.Go(func() {
						for want[p] < uint64(perProducer) || full.Load()*c.empty.Load()*c.unready.Load() == 0 {
							n := rng.IntN(min(capacity, 17)) + 1
							pos, o := r.TryClaim(n)
							if o == ring.Full {
								full.Add(1)
								pos, o, _ = r.Claim(n, nil)
							}
							fill(r, pos, n, p, want[p])
							sometimes(rng, 64)
							r.Ready(pos)
							c.wake(o)
							want[p] += uint64(n)
						}
					})
				}
				produced.Wait()
				if r.Close() {
					c.parker.Unpark()
				}
				consumed.Wait()
				l.check(want)
				require.Less(t, r.Head(), start, "positions never wrapped")
			})
		}
	}
}

// TestMPSC_StressSleep attacks "Sleep": of each sleep exactly one claim or TakeIdle is told, no sleep begins while something
// is claimed, and the consumer, which parks without a time limit, is never left asleep with something to do (BUG-001).
func TestMPSC_StressSleep(t *testing.T) {
	watchdog(t)
	const producers = 3
	perProducer := rounds(300_000)
	r := ring.NewAt[message](8, math.MaxUint64-1000*ring.PosStep+1)
	l := newLedger(t, producers)
	parker := atomicx.NewParker()
	var told, taken atomic.Int64
	var consumed, produced, takers sync.WaitGroup
	var refused atomic.Int64 // sleeps, because of a claim that was not ready
	sleeps := int64(0)
	consumed.Go(func() {
		c := newConsumer(r, l.visit)
		for {
			if c.drain() {
				continue // goes to sleep as eagerly as it can: no second look
			}
			if r.Sleep() {
				sleeps++
				parker.Park(nil)
				continue
			}
			if r.Closed() && !r.Claimed() {
				return
			}
			refused.Add(1)
			runtime.Gosched()
		}
	})
	want := make([]uint64, producers)
	for p := range producers {
		rng := rand.New(rand.NewPCG(uint64(p), 2))
		produced.Go(func() {
			for want[p] < uint64(perProducer) || told.Load()*taken.Load()*refused.Load() == 0 {
				pos, o, _ := r.Claim(1, nil)
				sometimes(rng, 8)
				fill(r, pos, 1, p, want[p])
				r.Ready(pos)
				want[p]++
				if o == ring.ClaimedIdle {
					told.Add(1)
					parker.Unpark()
				}
				sometimes(rng, 4)
			}
		})
	}
	stop := make(chan struct{})
	takers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if r.TakeIdle() {
				taken.Add(1)
				parker.Unpark()
			}
			runtime.Gosched()
		}
	})
	produced.Wait()
	close(stop)
	takers.Wait()
	closed := int64(0)
	if r.Close() {
		closed = 1
		parker.Unpark()
	}
	consumed.Wait()
	l.check(want)
	assert.Equal(t, sleeps, told.Load()+taken.Load()+closed, "each sleep is told to exactly one")
}

// TestMPSC_StressRoleMoves attacks "Sleep", last sentence: there is no consumer goroutine, whoever is told ClaimedIdle is
// the consumer until it can sleep. The ledger's plain fields have the race detector check the order between them.
func TestMPSC_StressRoleMoves(t *testing.T) {
	watchdog(t)
	const producers = 4
	perProducer := rounds(200_000)
	r := ring.New[message](4)
	l := newLedger(t, producers)
	require.True(t, r.Sleep())
	want := make([]uint64, producers)
	var had [producers]bool   // the role
	var others [producers]int // messages of other producers that it consumed
	var moved atomic.Int32
	var wg sync.WaitGroup
	for p := range producers {
		rng := rand.New(rand.NewPCG(uint64(p), 3))
		wg.Go(func() {
			c := newConsumer(r, func(m *message) {
				l.visit(m)
				if m.producer != p {
					others[p]++
				}
			})
			for want[p] < uint64(perProducer) || moved.Load() < producers {
				sometimes(rng, 64)
				pos, o, _ := r.Claim(1, nil)
				sometimes(rng, 64)
				fill(r, pos, 1, p, want[p])
				r.Ready(pos)
				want[p]++
				if o == ring.ClaimedIdle {
					if !had[p] {
						had[p] = true
						moved.Add(1)
					}
					for turn := uint32(0); !r.Sleep(); turn++ {
						if c.drain() {
							turn = 0
						} else {
							atomicx.Relax(turn)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	l.check(want)
	assert.False(t, r.Claimed())
	assert.True(t, r.TakeIdle())
	assert.NotZero(t, slices.Max(others[:]), "nobody ever consumed what others produced")
}

// TestMPSC_StressClose attacks "Close": what was claimed before Close is consumed, all of it; nothing is claimed after it;
// nobody is left waiting (BUG-002, BUG-044). A round counts if Close struck while producers were at work.
func TestMPSC_StressClose(t *testing.T) {
	watchdog(t)
	const producers, perProducer = 3, 40
	midway, waited, idle := 0, 0, 0
	for round := range rounds(20_000) {
		capacity := 2 << (round % 4)
		r := ring.New[message](capacity)
		l := newLedger(t, producers)
		c := newConsumer(r, l.visit)
		want := make([]uint64, producers)
		var wg sync.WaitGroup
		var closing, late atomic.Bool
		var waits atomic.Int64
		wg.Go(c.run)
		for p := range producers {
			rng := rand.New(rand.NewPCG(uint64(p), uint64(round)))
			wg.Go(func() {
				for want[p] < perProducer {
					n := rng.IntN(2) + 1
					after := closing.Load()
					pos, o := r.TryClaim(n)
					if o == ring.Full {
						waits.Add(1)
						pos, o, _ = r.Claim(n, nil)
					}
					if o == ring.Closed {
						return
					}
					if after {
						late.Store(true)
					}
					fill(r, pos, n, p, want[p])
					sometimes(rng, 16)
					r.Ready(pos)
					c.wake(o)
					want[p] += uint64(n)
				}
			})
		}
		wg.Go(func() {
			for range round % 50 {
				runtime.Gosched()
			}
			wasIdle := r.Close()
			closing.Store(true)
			if wasIdle {
				idle++
				c.parker.Unpark()
			}
		})
		wg.Wait()
		l.check(want)
		require.False(t, late.Load(), "a claim that began after Close had returned succeeded")
		require.False(t, r.Claimed())
		require.Zero(t, r.Waiting())
		require.False(t, r.Held())
		if l.total > 0 && l.total < producers*perProducer {
			midway++
		}
		if waits.Load() > 0 {
			waited++
		}
	}
	assert.NotZero(t, midway, "Close never struck while producers were at work")
	assert.NotZero(t, waited, "nobody ever waited for room")
	t.Logf("midway %d, waited %d, idle %d", midway, waited, idle)
}

// TestBUG001_MPSCPingPong: one message at a time, each sent when the one before has been consumed, nothing else going on: a
// lost wake-up would be the end of it.
func TestBUG001_MPSCPingPong(t *testing.T) {
	watchdog(t)
	r := ring.New[message](2)
	l := newLedger(t, 1)
	back := make(chan struct{}, 1)
	c := newConsumer(r, func(m *message) { l.visit(m); back <- struct{}{} })
	var consumed sync.WaitGroup
	consumed.Go(c.run)
	n := uint64(rounds(300_000))
	for i := range n {
		put(c, 1, 0, i)
		<-back
	}
	if r.Close() {
		c.parker.Unpark()
	}
	consumed.Wait()
	l.check([]uint64{n})
}
