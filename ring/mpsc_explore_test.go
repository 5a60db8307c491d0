//go:build explore

package ring

import (
	"fmt"
	"testing"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// The scenarios of package explore run whole rings with producers and consumer. Those here are single operations, let loose
// on a ring in a state that a whole run reaches seldom.

// held returns a ring of two slots that are claimed and ready, with a place in line for which room is held.
func held() (*MPSC[int], *place) {
	r := New[int](2)
	for range 2 {
		pos, _ := r.TryClaim(1)
		r.Ready(pos)
	}
	p, _ := r.line.join(2 * posStep)
	r.hold(p)
	return r, p
}

func releaseAll(r *MPSC[int]) { r.Release(r.Advance(r.Head(), 2)) }

// tell counts those that are told that they have taken the idle bit, and the claims that succeed.
type tell struct{ told, claims int }

func (x *tell) claim(r *MPSC[int]) func() {
	return func() {
		switch _, o := r.TryClaim(1); o {
		case ClaimedIdle:
			x.told++
			x.claims++
		case Claimed:
			x.claims++
		}
	}
}

func (x *tell) count(told bool) {
	if told {
		x.told++
	}
}

var scenarios = []struct {
	name  string
	setup func(s *explore.S)
}{
	{"asleep: claims, take idle and close", func(s *explore.S) {
		r := New[int](2)
		r.Sleep()
		var x tell
		s.Go("producer 1", x.claim(r))
		s.Go("producer 2", x.claim(r))
		s.Go("other", func() { x.count(r.TakeIdle()) })
		s.Go("closer", func() { x.count(r.Close()) })
		s.Finally(func() error {
			s.Outcome("%d claims", x.claims)
			return ends(r, uint64(x.claims)*posStep|closedBit, x.told == 1)
		})
	}},
	{"awake: claims and take idle against sleep", func(s *explore.S) {
		r := New[int](2)
		var x tell
		var slept bool
		s.Go("producer 1", x.claim(r))
		s.Go("producer 2", x.claim(r))
		s.Go("other", func() { x.count(r.TakeIdle()) })
		s.Go("consumer", func() { slept = r.Sleep() })
		s.Finally(func() error {
			s.Outcome("slept %v", slept)
			return ends(r, 2*posStep, slept == (x.told == 1))
		})
	}},
	{"one waits for room, another takes some", func(s *explore.S) {
		r := New[int](2)
		var x tell
		x.claim(r)()
		x.claim(r)()
		s.Go("waiter", func() { r.claimInLine(1, nil) })
		s.Go("producer", x.claim(r))
		s.Go("consumer", func() {
			r.Release(r.Advance(r.Head(), 1))
			r.Release(r.Advance(r.Head(), 1))
		})
		s.Finally(func() error {
			s.Outcome("%d claims beside", x.claims-2)
			return ends(r, uint64(x.claims-1)*posStep, r.Waiting() == 0)
		})
	}},
	{"giving up held room against sleep and close", func(s *explore.S) {
		r, p := held()
		releaseAll(r)
		var slept, wasIdle bool
		s.Go("first", func() { r.unhold(heldBit); r.line.leave(p) })
		s.Go("consumer", func() { slept = r.Sleep() })
		s.Go("closer", func() { wasIdle = r.Close() })
		s.Finally(func() error {
			s.Outcome("slept %v, was idle %v", slept, wasIdle)
			return ends(r, closedBit, slept == wasIdle)
		})
	}},
	{"giving up held room against sleep and take idle", func(s *explore.S) {
		r, p := held()
		releaseAll(r)
		var slept, took bool
		s.Go("first", func() { r.unhold(heldBit); r.line.leave(p) })
		s.Go("consumer", func() { slept = r.Sleep() })
		s.Go("other", func() { took = r.TakeIdle() })
		s.Finally(func() error {
			s.Outcome("slept %v, took %v", slept, took)
			if slept && !took {
				return ends(r, idleBit, true)
			}
			return ends(r, 0, slept == took)
		})
	}},
	{"holding against a claim, sleep and close", func(s *explore.S) {
		r := New[int](2)
		p, _ := r.line.join(2 * posStep)
		var claimed, slept, wasIdle bool
		s.Go("first", func() { r.hold(p) })
		s.Go("producer", func() {
			_, o := r.TryClaim(1)
			claimed = o == Claimed || o == ClaimedIdle
			if o == ClaimedIdle {
				wasIdle = true
			}
		})
		s.Go("consumer", func() { slept = r.Sleep() })
		s.Go("closer", func() {
			if r.Close() {
				explore.Assert(!wasIdle, "told twice")
				wasIdle = true
			}
		})
		s.Finally(func() error {
			s.Outcome("claimed %v, slept %v", claimed, slept)
			want := uint64(closedBit | heldBit)
			if claimed {
				want += posStep
			}
			return ends(r, want, slept == wasIdle)
		})
	}},
	{"a waiter takes held room, the consumer goes to sleep", func(s *explore.S) {
		// It is told that the consumer sleeps, or the consumer does not.
		r := New[int](2)
		pos, _ := r.TryClaim(2)
		r.Ready(pos)
		parker := atomicx.NewParker()
		s.Go("waiter", func() {
			pos, o, _ := r.claimInLine(2, nil)
			r.Ready(pos)
			if o == ClaimedIdle {
				parker.Unpark()
			}
		})
		s.Go("consumer", func() {
			r.Release(r.Advance(r.Head(), 1)) // not enough for the waiter
			r.Release(r.Advance(r.Head(), 1))
			for !r.IsReady(r.Head()) {
				if r.Claimed() {
					atomicx.Relax(0)
				} else if r.Sleep() {
					parker.Park(nil)
				}
			}
			releaseAll(r)
		})
		s.Finally(func() error { return ends(r, 0, true) })
	}},
}

// ends says what is wrong with the end state, if anything is: word is what the claim word must be, less head.
func ends(r *MPSC[int], word uint64, ok bool) error {
	if got := r.tail.Load() - r.head.Load(); got != word || !ok {
		return fmt.Errorf("the claim word is %#x, head %#x, ok %v", r.tail.Load(), r.head.Load(), ok)
	}
	return nil
}

func TestExplored(t *testing.T) {
	for _, x := range scenarios {
		t.Run(x.name, func(t *testing.T) {
			bound := 6
			if testing.Short() {
				bound = 4
			}
			res := explore.Run(t, explore.Options{Bound: bound}, explore.Scenario{Name: x.name, Setup: x.setup})
			t.Log(res.OutcomeSet())
		})
	}
}
