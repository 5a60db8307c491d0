//go:build explore

package explore_test

import (
	"fmt"
	"testing"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// miniRing is the hand-over of package ring in small: one slot a claim, producers spin while it is full. fault names what is
// wrong with it; "" is nothing.
type miniRing struct {
	fault string

	tail, head atomicx.Uint64 // tail: position<<2 | closed<<1 | idle
	slots      [2]struct {
		seq   atomicx.Uint64
		value atomicx.Cell[uint64]
	}
	asleep  atomicx.Bool // takes the place of the idle bit in some faults
	barrier atomicx.Uint32
	parker  atomicx.Parker
	got     []uint64
	left    atomicx.Int64
	want    int // how many values the consumer waits for; 0 means until the ring is closed
}

const (
	miniIdle   = 1
	miniClosed = 2
	miniStep   = 4
)

// claim returns a position, and whether the consumer was asleep; closed means that there is none.
func (r *miniRing) claim() (pos uint64, idle, closed bool) {
	for turn := uint32(0); ; turn++ {
		t := r.tail.Load()
		pos = t &^ 3
		if t&miniClosed != 0 {
			return 0, false, true
		}
		if pos-r.head.Load() >= uint64(len(r.slots))*miniStep {
			atomicx.Relax(turn)
			continue
		}
		if r.fault == "claim without CAS" {
			r.tail.Store(pos + miniStep)
			return pos, t&miniIdle != 0, false
		}
		if r.tail.CompareAndSwap(t, pos+miniStep) {
			return pos, t&miniIdle != 0, false
		}
	}
}

func (r *miniRing) put(v uint64) bool {
	pos, idle, closed := r.claim()
	if closed {
		return false
	}
	s := &r.slots[pos/miniStep%2]
	if r.fault == "ready before the write" {
		atomicx.StoreRelease(&s.seq, pos|1)
		s.value.Set(v)
	} else {
		s.value.Set(v)
		atomicx.StoreRelease(&s.seq, pos|1)
	}
	switch r.fault {
	case "sleeps without a second look", "sleeps on a flag":
		r.barrier.Add(1)
		fallthrough
	case "asks without a barrier who sleeps":
		idle = r.asleep.Load() && r.asleep.CompareAndSwap(true, false)
	}
	if idle {
		r.parker.Unpark()
	}
	return true
}

func (r *miniRing) drain() bool {
	h := r.head.Load()
	s := &r.slots[h/miniStep%2]
	if s.seq.Load() != h|1 {
		return false
	}
	if r.fault == "frees a slot before the copy" {
		r.head.Store(h + miniStep)
	}
	r.got = append(r.got, s.value.Get())
	if r.fault != "frees a slot before the copy" {
		r.head.Store(h + miniStep)
	}
	return true
}

// sleep goes to sleep if there is nothing to do.
func (r *miniRing) sleep() {
	switch h := r.head.Load(); r.fault {
	case "sleeps without a second look":
		r.asleep.Store(true)
		r.parker.Park(nil)
	case "sleeps on a flag", "asks without a barrier who sleeps":
		r.asleep.Store(true)
		if r.slots[h/miniStep%2].seq.Load() != h|1 && r.tail.Load()&miniClosed == 0 || !r.asleep.CompareAndSwap(true, false) {
			r.parker.Park(nil)
		}
	case "sleeps although something is claimed":
		if t := r.tail.Load(); t&miniClosed == 0 && r.tail.CompareAndSwap(t, t|miniIdle) {
			r.parker.Park(nil)
		}
	default:
		if r.tail.CompareAndSwap(h, h|miniIdle) {
			r.parker.Park(nil)
		}
	}
}

func (r *miniRing) consume() {
	for turn := uint32(0); ; turn++ {
		if r.drain() {
			if len(r.got) == r.want {
				return
			}
			continue
		}
		claimed := r.tail.Load()&^3 != r.head.Load()
		closed := r.tail.Load()&miniClosed != 0
		if closed && r.fault != "looks for claims before it looks for close" {
			claimed = r.tail.Load()&^3 != r.head.Load()
		}
		switch {
		case !claimed && closed:
			return
		case claimed && r.fault != "sleeps although something is claimed":
			atomicx.Relax(turn)
		default:
			r.sleep()
		}
	}
}

func (r *miniRing) close() {
	for {
		t := r.tail.Load()
		if r.tail.CompareAndSwap(t, t&^miniIdle|miniClosed) {
			if r.fault == "closes without a wake-up" {
				return
			}
			if t&miniIdle != 0 || r.asleep.Load() && r.asleep.CompareAndSwap(true, false) {
				r.parker.Unpark()
			}
			return
		}
	}
}

// miniRingOf is two producers of two values each; the last one closes.
func miniRingOf(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		r := &miniRing{fault: fault, parker: atomicx.NewParker()}
		s.Name(at(&r.tail), "tail")
		s.Name(at(&r.head), "head")
		r.left.Store(2)
		for id := range uint64(2) {
			s.Go(fmt.Sprint("producer", id), func() {
				for n := range uint64(2) {
					r.put(id<<8 | n)
				}
				if r.left.Add(-1) == 0 {
					r.close()
				}
			})
		}
		s.Go("consumer", r.consume)
		s.Finally(func() error {
			var next [2]uint64
			for _, v := range r.got {
				if next[v>>8] != v&0xFF {
					return fmt.Errorf("got %x", r.got)
				}
				next[v>>8]++
			}
			if next != [2]uint64{2, 2} {
				return fmt.Errorf("got %x", r.got)
			}
			return nil
		})
	}
}

// miniRingClose is a producer and one who closes in between: what was claimed before must still be consumed.
func miniRingClose(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		r := &miniRing{fault: fault, parker: atomicx.NewParker()}
		put := false
		s.Go("producer", func() { put = r.put(1) })
		s.Go("closer", r.close)
		s.Go("consumer", r.consume)
		s.Finally(func() error {
			if put != (len(r.got) == 1) {
				return fmt.Errorf("put %v, got %x", put, r.got)
			}
			return nil
		})
	}
}

// miniRingSleep is a producer and a consumer that knows how many values there will be.
func miniRingSleep(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		r := &miniRing{fault: fault, parker: atomicx.NewParker(), want: 2}
		s.Go("producer", func() { r.put(1); r.put(2) })
		s.Go("consumer", r.consume)
	}
}

var ringMutants = []mutant{
	{"ready before the write", explore.Race, 0, miniRingOf, ""},
	{"claim without CAS", explore.Deadlock, 1, miniRingOf, ""}, // it wipes out the idle bit
	{"frees a slot before the copy", explore.Race, 1, miniRingOf, ""},
	{"sleeps without a second look", explore.Deadlock, 2, miniRingSleep, "sleeps on a flag"},
	{"asks without a barrier who sleeps", explore.Deadlock, 3, miniRingSleep, "sleeps on a flag"},
	{"sleeps although something is claimed", explore.Deadlock, 1, miniRingOf, ""},
	{"closes without a wake-up", explore.Deadlock, 2, miniRingClose, ""},
	{"looks for claims before it looks for close", explore.Wrong, 3, miniRingClose, ""},
}

func TestMutants_Ring(t *testing.T) { kill(t, ringMutants) }
