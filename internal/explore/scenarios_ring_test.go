//go:build explore

package explore_test

import (
	"fmt"
	"testing"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
	"github.com/leatlog/leat/ring"
)

// item is a slot's value: cells, so that the explorer sees who touches a slot when.
type item struct {
	n     atomicx.Cell[int]    // slots in the claim; in its first only
	value atomicx.Cell[uint64] // producer<<32 | number
}

// ringRun is a ring with its consumer, and what the consumer has seen.
type ringRun struct {
	r      *ring.MPSC[item]
	parker atomicx.Parker
	role   atomicx.Cell[int] // touched by whoever has the consumer's role
	got    []uint64
	left   atomicx.Int64 // producers that are not done; the last one closes
}

func newRingRun(capacity, producers int) *ringRun {
	x := &ringRun{r: ring.New[item](capacity), parker: atomicx.NewParker()}
	x.left.Store(int64(producers))
	return x
}

// publish fills the claim at pos with n values of a producer, from first on.
func (x *ringRun) publish(pos uint64, n, producer int, first uint64) {
	for i := range n {
		s := x.r.Slot(pos, i)
		s.n.Set(0)
		s.value.Set(uint64(producer)<<32 | (first + uint64(i)))
	}
	x.r.Slot(pos, 0).n.Set(n)
	x.r.Ready(pos)
}

// put claims, fills and publishes, and wakes the consumer if it must.
func (x *ringRun) put(n, producer int, first uint64, done <-chan struct{}) ring.Outcome {
	pos, o, ok := x.r.Claim(n, done)
	if !ok || o == ring.Closed {
		return o
	}
	x.publish(pos, n, producer, first)
	if o == ring.ClaimedIdle {
		x.parker.Unpark()
	}
	return o
}

// producer puts claims of the given sizes one after the other; the last producer to be done closes the ring.
func (x *ringRun) producer(id int, sizes ...int) func() {
	return func() {
		next := uint64(0)
		for _, n := range sizes {
			o := x.put(n, id, next, nil)
			explore.Assert(o == ring.Claimed || o == ring.ClaimedIdle, "outcome %v", o)
			next += uint64(n)
		}
		x.end()
	}
}

func (x *ringRun) end() {
	if x.left.Add(-1) == 0 && x.r.Close() {
		x.parker.Unpark()
	}
}

// drain takes what is ready and reports whether that was anything.
func (x *ringRun) drain() bool {
	x.role.Set(x.role.Get() + 1)
	head := x.r.Head()
	pos := head
	for x.r.IsReady(pos) {
		n := x.r.Slot(pos, 0).n.Get()
		explore.Assert(n > 0, "a claim of %d slots", n)
		for i := range n {
			x.got = append(x.got, x.r.Slot(pos, i).value.Get())
		}
		pos = x.r.Advance(pos, n)
	}
	if pos == head {
		return false
	}
	x.r.Release(pos)
	return true
}

// consume is the consumer of the engine: it drains, waits for claims that are not ready, sleeps, and ends when the ring is
// closed and empty.
func (x *ringRun) consume() {
	for {
		switch {
		case x.drain():
		case x.r.Claimed():
			atomicx.Relax(0)
		case x.r.Closed():
			if !x.r.Claimed() {
				return
			}
		case x.r.Sleep():
			x.parker.Park(nil)
		}
	}
}

// whole returns a check that everything came, each producer's in order: counts says how many each had.
func (x *ringRun) whole(counts ...uint64) func() error {
	return func() error {
		next := make([]uint64, len(counts))
		for _, v := range x.got {
			if p := v >> 32; next[p] != uint64(uint32(v)) {
				return fmt.Errorf("got %x", x.got)
			} else {
				next[p]++
			}
		}
		if fmt.Sprint(next) != fmt.Sprint(counts) || x.r.Len() != 0 || x.r.Waiting() != 0 {
			return fmt.Errorf("got %x of %d, %d left, %d waiting", x.got, counts, x.r.Len(), x.r.Waiting())
		}
		return nil
	}
}

// ringOf is producers that make claims of the given sizes, each from a thread, and the consumer.
func ringOf(capacity int, sizes ...[]int) func(s *explore.S) {
	return func(s *explore.S) {
		x := newRingRun(capacity, len(sizes))
		var counts []uint64
		for id, claims := range sizes {
			sum := uint64(0)
			for _, n := range claims {
				sum += uint64(n)
			}
			counts = append(counts, sum)
			s.Go(fmt.Sprint("producer", id), x.producer(id, claims...))
		}
		s.Go("consumer", x.consume)
		s.Finally(x.whole(counts...))
	}
}

var ringScenarios = []scenario{
	{"ring: one producer, empty and full", 3, ringOf(2, []int{1, 1, 1})},
	{"ring: two producers", 5, ringOf(2, []int{1}, []int{1})},
	{"ring: two producers wrap", 3, ringOf(2, []int{1, 1}, []int{1, 1})},
	{"ring: three producers for two slots", 3, ringOf(2, []int{1}, []int{1}, []int{1})},
	{"ring: claims of many slots", 4, ringOf(2, []int{2, 2})},
	{"ring: claims of many and of one", 3, ringOf(2, []int{2}, []int{1, 1})},
	{"ring: claims that wrap", 3, ringOf(4, []int{3, 3}, []int{1})},
	{"ring: a producer in line is served", 3, func(s *explore.S) {
		// The claim of the whole ring must wait for the others; small ones that do not wait in line come as often as they can.
		x := newRingRun(2, 2)
		s.Go("large", x.producer(0, 2))
		var small uint64
		s.Go("small", func() {
			for range 3 {
				if pos, o := x.r.TryClaim(1); o != ring.Full {
					x.publish(pos, 1, 1, small)
					small++
					if o == ring.ClaimedIdle {
						x.parker.Unpark()
					}
				}
			}
			x.end()
		})
		s.Go("consumer", x.consume)
		s.Finally(func() error { return x.whole(2, small)() })
	}},
	{"ring: cancel against room", 3, func(s *explore.S) {
		// Two wait for room, one of them gives up; the other must be served.
		x := newRingRun(2, 2)
		for i := range 2 {
			x.publish(first(x.r.TryClaim(1)), 1, 2, uint64(i))
		}
		done := make(chan struct{})
		var came uint64
		s.Go("impatient", func() {
			if x.put(2, 0, 0, done) != ring.Full {
				came = 2
			}
			x.end()
		})
		s.Go("patient", x.producer(1, 1))
		s.Go("canceller", func() { s.Close(done) })
		s.Go("consumer", x.consume)
		s.Finally(func() error { return x.whole(came, 1, 2)() })
	}},
	{"ring: cancel while room is held", 3, func(s *explore.S) {
		// One waits for the whole ring, is passed over and has room held for it; then it gives up. Nobody else may be shut out.
		x := newRingRun(2, 2)
		x.publish(first(x.r.TryClaim(1)), 1, 2, 0)
		done := make(chan struct{})
		var came uint64
		s.Go("impatient", func() {
			if x.put(2, 0, 0, done) != ring.Full {
				came = 2
			}
			x.end()
		})
		s.Go("consumer", x.consume)
		s.Go("patient", x.producer(1, 1, 1))
		s.Go("canceller", func() { s.Close(done) })
		s.Finally(func() error { return x.whole(came, 2, 1)() })
	}},
	{"ring: close against claim", 3, func(s *explore.S) {
		// Whatever was claimed before Close is consumed; whoever comes after is told so; nobody waits for ever.
		x := newRingRun(2, 2)
		var came [2]uint64
		for id := range came {
			s.Go(fmt.Sprint("producer", id), func() {
				for n := range uint64(2) {
					if x.put(1, id, n, nil) == ring.Closed {
						break
					}
					came[id]++
				}
			})
		}
		s.Go("closer", func() {
			if x.r.Close() {
				x.parker.Unpark()
			}
			explore.Assert(!x.r.Close() && x.r.Closed(), "closing again")
		})
		s.Go("consumer", x.consume)
		s.Finally(func() error { return x.whole(came[:]...)() })
	}},
	{"ring: close against producers in line", 3, func(s *explore.S) {
		x := newRingRun(2, 2)
		for i := range 2 {
			x.publish(first(x.r.TryClaim(1)), 1, 2, uint64(i))
		}
		var came [2]uint64
		for id := range came {
			s.Go(fmt.Sprint("producer", id), func() {
				if x.put(2, id, 0, nil) != ring.Closed {
					came[id] = 2
				}
			})
		}
		s.Go("closer", func() {
			if x.r.Close() {
				x.parker.Unpark()
			}
		})
		s.Go("consumer", x.consume)
		s.Finally(func() error { return x.whole(came[0], came[1], 2)() })
	}},
	{"ring: sleep against claim and TakeIdle", 5, func(s *explore.S) {
		// Other work for the consumer comes by a flag and TakeIdle. Neither may be missed.
		x := newRingRun(2, 2)
		var other atomicx.Bool
		var did bool
		s.Go("producer", x.producer(0, 1))
		s.Go("other", func() {
			other.Store(true)
			if x.r.TakeIdle() {
				x.parker.Unpark()
			}
			x.end()
		})
		s.Go("consumer", func() {
			for {
				if other.Load() && other.CompareAndSwap(true, false) {
					did = true
				}
				switch {
				case x.drain():
				case x.r.Claimed():
					atomicx.Relax(0)
				case x.r.Closed():
					if !x.r.Claimed() && !other.Load() {
						return
					}
				case x.r.Sleep():
					if other.Load() && x.r.TakeIdle() {
						continue // the second look: it came before the idle bit was there to be taken
					}
					x.parker.Park(nil)
				}
			}
		})
		s.Finally(func() error {
			if !did {
				return fmt.Errorf("the other work was not done")
			}
			return x.whole(1)()
		})
	}},
	{"ring: close, TakeIdle and claim against each other", explore.Exhaustive, func(s *explore.S) {
		// The consumer sleeps. Exactly one of those who come is told so, and has the role.
		x := newRingRun(2, 1)
		explore.Assert(x.r.Sleep(), "an empty ring")
		var roles atomicx.Uint32
		take := func(told bool) {
			if told {
				x.role.Set(x.role.Get() + 1)
				roles.Add(1)
			}
		}
		s.Go("claims", func() {
			pos, o := x.r.TryClaim(1)
			if o != ring.Closed {
				x.publish(pos, 1, 0, 0)
			}
			take(o == ring.ClaimedIdle)
		})
		s.Go("takes", func() { take(x.r.TakeIdle()); take(x.r.TakeIdle()) })
		s.Go("closes", func() { take(x.r.Close()); take(x.r.Close()) })
		s.Finally(func() error {
			if roles.Load() != 1 || x.r.TakeIdle() {
				return fmt.Errorf("%d have the role", roles.Load())
			}
			return nil
		})
	}},
	{"ring: the role goes to whoever claims first", 3, func(s *explore.S) {
		// There is no consumer: the producer that is told that the consumer is asleep is the consumer, until it can sleep.
		x := newRingRun(2, 2)
		explore.Assert(x.r.Sleep(), "an empty ring")
		for id := range 2 {
			s.Go(fmt.Sprint("producer", id), func() {
				for n := range uint64(2) {
					pos, o, _ := x.r.Claim(1, nil)
					x.publish(pos, 1, id, n)
					if o != ring.ClaimedIdle {
						continue
					}
					for x.drain() || !x.r.Sleep() {
						if x.r.Claimed() {
							atomicx.Relax(0)
						}
					}
				}
			})
		}
		s.Finally(x.whole(2, 2))
	}},
}

func first[O any](pos uint64, _ O) uint64 { return pos }

func TestRing(t *testing.T) { run(t, ringScenarios) }
