package ring

import "github.com/leatlog/leat/internal/atomicx"

// line is where producers wait for room, in the order in which they came. Only the first in line looks for room; when it
// leaves, for whatever reason, it has the next one look. So one Release wakes at most one producer, and those who got
// room wake those behind them.
//
// # Roles
//
//   - waiter: a producer between join and leave, each with a place of its own.
//   - consumer: calls room after it has stored head.
//   - closer: calls room, too, after it has set the closed bit.
//
// # Shared state
//
//	waiting    how many are in line; written under mu, read without it
//	the list   under mu: the places in line, oldest first
//	held       per place, under mu: the waiter has set the held bit and not claimed yet
//	signalled  per place, under mu: there is a token in the parker that the waiter has not taken note of
//	held bit   in the ring's tail: set and cleared by the first in line only. While it is set nobody else can claim
//
// # Proof
//
// No lost wake-up. Only the first in line looks at tail and head, and it looks after it has become first. It waits for room
// or for Close: it raises waiting and then looks; Release stores head, Close sets the closed bit, and then they load
// waiting. These are sync/atomic operations and so in one total order: either the look sees what the other has done, or the
// other sees a waiter and goes on to the list. There it leaves a token for the first, unless room is held for that one and
// is known not to be enough: then its look would have failed as well, since nobody else can claim, and the Release that
// makes it enough is yet to come. Those behind the first wait to become first: whoever leaves, for whatever reason, leaves a
// token for the one that is first then. That one looks after the one ahead has left, so it sees what any Release or Close
// has done that found the other one first. And done is watched by the parker itself.
//
// Nothing is taken along. A waiter that leaves because of done may have been woken for room. The one behind it is woken
// when it leaves, and looks for that room; and if room was held, the bit is cleared first.
//
// One token each. A token is left only under mu and only if signalled is not set, and signalled is cleared only by the
// waiter, under mu, after it has taken the token. So there is at most one, and leave knows whether there is one and takes it.
// A place that is used again has none. A token that was left while its waiter was looking costs it one more look.
//
// Nobody starves. The first in line that was woken and finds too little room, because others have taken it or because it
// needs more than was released, sets the held bit. From there on the position of tail stands still, head moves on to it as
// the consumer releases, and a claim of any size fits in the end. So a waiter is passed over once, whatever its size; then
// it is served before any claim that is not yet made, and those behind it come after it in their order. The bit goes with
// the claim's CAS, or with unhold.
//
// Sleep does not mind the held bit. A consumer that finds all claims released goes to sleep while the first in line, which
// has its token by then, is on its way; that one's claim finds the idle bit as any other.
//
// Progress. A waiter waits for the consumer, or for the one ahead of it to be scheduled; after Close they all leave, one
// after the other. mu is held for a few instructions, nothing is called and nobody parks under it. While room is held and its
// waiter is woken but not yet running, others wait although there is room: the price of not starving, paid by waiters
// that were passed over.
//
// Not promised. Order between producers that have not parked yet, which may overtake those in line while no room is held.
type line struct {
	_ atomicx.Pad
	// waiting is written under mu by whoever joins or leaves, and loaded without mu by the consumer and by Close: how many
	// producers are in line. It publishes no memory.
	waiting atomicx.Uint32
	_       atomicx.Pad

	mu    atomicx.Mutex
	first *place
	last  *place
	spare *place // places to be used again, linked by next
}

// place is one producer's place in line.
type place struct {
	parker atomicx.Parker // immutable

	// Under the line's mu.
	need       uint64 // steps of room
	held       bool   // room is held for it
	signalled  bool   // a token was left in parker, and has not been taken note of
	prev, next *place
}

// join puts the caller at the end of the line, and reports whether that is also the beginning.
func (l *line) join(need uint64) (p *place, first bool) {
	l.mu.Lock()
	if p = l.spare; p != nil {
		l.spare = p.next
	} else {
		p = &place{parker: atomicx.NewParker()}
	}
	p.need, p.prev, p.next = need, l.last, nil
	if l.last != nil {
		l.last.next = p
	} else {
		l.first = p
	}
	l.last = p
	first = l.first == p
	l.waiting.Add(1) // the barrier before the caller's look; pairs with the loads in Release and Close
	l.mu.Unlock()
	return p, first
}

// woken takes note that p's token was taken, and reports whether p is first.
func (l *line) woken(p *place) bool {
	l.mu.Lock()
	p.signalled = false
	first := l.first == p
	l.mu.Unlock()
	return first
}

// hold takes note that room is held for p.
func (l *line) hold(p *place) {
	l.mu.Lock()
	p.held = true
	l.mu.Unlock()
}

// leave takes p out of the line and has the next one look.
func (l *line) leave(p *place) {
	l.mu.Lock()
	wasFirst := l.first == p
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		l.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		l.last = p.prev
	}
	l.waiting.Add(^uint32(0))
	if wasFirst && l.first != nil {
		l.first.signal()
	}
	if p.signalled {
		p.parker.Park(nil) // does not wait: the token was left under mu
	}
	p.held, p.signalled, p.prev = false, false, nil
	p.next, l.spare = l.spare, p
	l.mu.Unlock()
}

// signal leaves one token for p. The caller holds mu.
func (p *place) signal() {
	if !p.signalled {
		p.signalled = true
		p.parker.Unpark()
	}
}

// room has the first in line look, unless room is held for it and free steps, which may be said too high but never too low,
// are not enough.
func (l *line) room(free uint64) {
	l.mu.Lock()
	if p := l.first; p != nil && (!p.held || free >= p.need) {
		p.signal()
	}
	l.mu.Unlock()
}

// waitForRoom returns how a producer waits for room before it parks.
func waitForRoom() atomicx.Backoff { return atomicx.Backoff{Spins: 4, Yields: 16} }

// claimLater is the part of Claim that waits.
func (r *MPSC[T]) claimLater(n int, done <-chan struct{}) (pos uint64, o Outcome, ok bool) {
	for b := waitForRoom(); b.Again(); {
		if pos, o = r.claim(n, 0); o != Full {
			return pos, o, true
		}
	}
	return r.claimInLine(n, done)
}

// claimInLine is the part of Claim that parks.
func (r *MPSC[T]) claimInLine(n int, done <-chan struct{}) (pos uint64, o Outcome, ok bool) {
	p, first := r.line.join(uint64(n) << posShift)
	var (
		b          atomicx.Backoff // no turns: the caller has looked often enough
		held       uint64          // heldBit if this waiter has set it
		passedOver bool            // it was woken as the first in line
	)
	for {
		if first {
			if pos, o = r.claim(n, held); o != Full {
				break
			}
		}
		if passedOver && held == 0 {
			held = r.hold(p)
			continue
		}
		if b.Again() {
			continue
		}
		if !p.parker.Park(done) {
			break
		}
		passedOver = first
		first = r.line.woken(p)
		b = waitForRoom()
	}
	if o == Full || o == Closed {
		r.unhold(held)
	}
	r.line.leave(p)
	return pos, o, o != Full
}

// hold sets the held bit for p, which is first in line, and returns it.
func (r *MPSC[T]) hold(p *place) uint64 {
	for {
		if t := r.tail.Load(); r.tail.CompareAndSwap(t, t|heldBit) {
			r.line.hold(p)
			return heldBit
		}
	}
}

// unhold clears held, which is heldBit or 0.
func (r *MPSC[T]) unhold(held uint64) {
	for held != 0 {
		if t := r.tail.Load(); r.tail.CompareAndSwap(t, t&^held) {
			return
		}
	}
}
