package ring

import (
	"fmt"
	"math/bits"

	"github.com/leatlog/leat/internal/atomicx"
)

// The flags in the low bits of the claim word. A position is counted in steps of posStep, above them, so that positions
// wrap at 2^64 by themselves and word and position are told apart by a mask.
const (
	idleBit   = 1 << iota // the consumer has gone to sleep
	closedBit             // no claim succeeds any more
	heldBit               // room is held for the producer that is first in line
	posShift  = iota
	posStep   = 1 << posShift
	flags     = posStep - 1
)

// readyBit marks a slot's seq as ready. It keeps the zero value of a slot that was never used from looking like position 0.
const readyBit = 1

// MPSC is a bounded hand-over from many producers to one consumer.
//
// # Roles
//
//   - producer: any goroutine. It claims slots, fills them, and calls Ready; nothing that can fail or wait comes between.
//   - consumer: the one goroutine that has the role. It calls Head, IsReady, Release, Claimed and Sleep, and reads slots from
//     IsReady to Release.
//   - anybody: TakeIdle, Close, and the questions (Closed, Len, Waiting).
//
// The consumer gives its role away by a Sleep that returns true. Whoever then clears the idle bit has it: the one claim
// whose outcome is ClaimedIdle, or the one TakeIdle or Close that returns true. It may use it, or pass it on by waking the
// goroutine that slept. Before that the role may move between goroutines by anything that orders them.
//
// # Shared state
//
//	tail  position of the next claim, and three flags. A claim CASes it on by n positions, which also clears the idle bit;
//	      Sleep CASes the idle bit on, TakeIdle off; Close CASes closed on and idle off; the first in line CASes held on
//	      and off. Loaded by all.
//	head  position of the oldest slot that is not free. Stored by the consumer, loaded by producers. Never goes back.
//	seq   one per slot: position|readyBit of the last claim that began in this slot and became ready; 0 if there was none.
//	      Stored by that claim's producer, loaded by the consumer.
//	val   one per slot, plain: the producer's from claim to Ready, then the consumer's from IsReady to Release.
//
// Positions are counted in steps of posStep in a uint64 and wrap at 2^64. Only their differences and their equality mean
// anything; a position's slot is the same before and after the wrap, since the capacity is a power of two.
//
// # Proof
//
// Each position once. A claim is a CAS on tail from a word with position p to one with position p+n, and nothing else moves
// the position. So the claims are in one order, that of tail's CASes, and each begins where the one before ended.
//
// Room. A claim loads tail, then head, and CASes tail only if p+n is at most cap slots beyond that head. Head never goes back.
// So at every instant the positions that were claimed and not released are at most cap consecutive ones, and no two of them
// have the same slot. If tail moved between the two loads, head may have passed p; then the CAS fails, since tail never
// comes back to p (short of a full wrap, see "Marks"). Full is true, too: at the moment tail was loaded head was not beyond
// the head that was loaded later, so there was no room then.
//
// Publication. A producer writes the values of all slots of its claim and then stores the first one's seq (a release store;
// nothing that the producer loads later needs to come after it, see "Sleep"). A consumer that loads pos|readyBit from it
// has observed that store, so the writes synchronize before its reads.
//
// Reuse. A producer that writes a slot has loaded a head beyond the slot's previous position. The consumer stored that head
// (or a later one) after its last read of the slot. So those reads come before the write.
//
// Marks. The consumer asks IsReady only at the start of a claim: it begins at head and goes on by the length of each claim,
// which it finds in the claim's first value. The seq there holds pos|readyBit if that claim is ready. Else it holds 0, which
// has no readyBit, or the mark of an earlier claim that began in the slot. That may be many laps old: a slot in the middle
// of a claim gets no mark and keeps what it has. But an earlier mark is of an earlier position, and two positions have
// equal words only if they are a multiple of 2^61 slots apart; for an old mark to be taken for a new one, 2^61 slots must
// have been handed over without a claim that began in this slot. At 10^9 a second that takes 73 years. The wrap at 2^64 is no
// case of its own: marks are only compared for equality.
//
// Order. The consumer takes claims in the order of their positions and stops at the first that is not ready. A producer
// that makes one claim after another gets rising positions. So the consumer sees each producer's values in the order in
// which the producer claimed, and values of claims that were made one after the other in that order, too.
//
// Sleep. Whether the consumer sleeps is decided on the word that claims are made on, so there is no moment between a look
// for work and going to sleep. Sleep's CAS expects the position of tail to be head: a claim that came before it makes it
// fail. A claim that comes after it finds the idle bit in the very word that its CAS replaces. So of the operations that
// follow a Sleep that returned true, the first claim, TakeIdle or Close that succeeds clears the bit and is told so, and no
// other is. This is also why Ready needs no full barrier: a producer never asks "is the consumer asleep?" after it; its
// claim has told it, and once it has claimed, the consumer cannot go to sleep before it has released that claim.
// The CAS that clears the bit observes Sleep's, so what the consumer did before it slept comes before what the next one does.
//
// Close. A claim's CAS expects the closed bit clear, and nothing clears it. So after Close no claim succeeds, and the position
// is final: a consumer that has seen Closed and then finds nothing Claimed has consumed everything, for ever. A claim that
// came before Close is not affected; its producer fills it and calls Ready as always. Sleep expects the closed bit clear, so
// a consumer never sleeps through it.
//
// Waiting for room, and the held bit: see the type line.
//
// Progress. A claim's CAS fails only because another operation on tail succeeded; so TryClaim, TakeIdle, Sleep and Close are
// lock-free. Ready and IsReady are wait-free. Release is wait-free while nobody is in line, and else holds a mutex for a few
// instructions. The whole is not lock-free: a producer that stops between its claim and Ready stops the consumer there.
//
// Not promised. That TryClaim finds room which it could have had, while room is held for a producer in line. That a producer
// may wait for a second claim before its first is ready; if the ring is full it waits for ever. Any order between
// claims that overlap in time, except that they do not mix.
type MPSC[T any] struct {
	_ atomicx.Pad

	// Immutable after New.
	slots []slot[T]
	mask  uint64
	limit uint64 // capacity in steps

	// tail is CASed by producers (claims, held bit), by the consumer (idle bit) and by anybody (TakeIdle, Close), and
	// loaded by all. A CAS on it publishes no slot; one that clears the idle bit takes over from the consumer that set it.
	tail atomicx.PaddedUint64

	// head is stored by the consumer and loaded by producers. Storing it gives the slots before it back: what the consumer
	// read there it has read.
	head atomicx.PaddedUint64

	line line
}

type slot[T any] struct {
	// seq is stored by the producer whose claim begins here, and loaded by the consumer. Storing position|readyBit publishes
	// val in every slot of that claim.
	seq atomicx.Uint64
	val T
}

// New returns an empty ring for capacity slots, with the consumer awake. It panics if capacity is not a power of two, 2 or
// more.
func New[T any](capacity int) *MPSC[T] {
	if capacity < 2 || bits.OnesCount(uint(capacity)) != 1 {
		panic(fmt.Sprintf("ring: the capacity must be a power of two, 2 or more, not %d", capacity))
	}
	return &MPSC[T]{
		slots: make([]slot[T], capacity),
		mask:  uint64(capacity) - 1,
		limit: uint64(capacity) << posShift,
	}
}

// TryClaim claims n consecutive slots, 1 <= n <= Cap, if there is room. It never waits. It panics if n can never fit.
func (r *MPSC[T]) TryClaim(n int) (pos uint64, o Outcome) { return r.claim(n, 0) }

// TryClaimOne is TryClaim(1) for the common case, in a few instructions. ok is false, and TryClaim says why, if the ring is full,
// closed or held, if the consumer is asleep, or if another producer came first. crowded says that half of the ring is in use.
func (r *MPSC[T]) TryClaimOne() (pos uint64, crowded, ok bool) {
	t := r.tail.Load()
	used := t - r.head.Load() // too large if t is out of date, and then the CAS fails as well
	if t&flags != 0 || used >= r.limit || !r.tail.CompareAndSwap(t, t+1<<posShift) {
		return 0, false, false
	}
	return t, used >= r.limit/2, true
}

// Claim is TryClaim that waits while the outcome would be Full. It returns false once done is closed, and then nothing was
// claimed; a nil done never ends the wait. Close ends it with the outcome Closed, and true.
//
// Producers that wait long enough to park do so in line, and are served in the order in which they came, whatever the size
// of their claims.
func (r *MPSC[T]) Claim(n int, done <-chan struct{}) (pos uint64, o Outcome, ok bool) {
	if pos, o = r.claim(n, 0); o != Full {
		return pos, o, true
	}
	return r.claimLater(n, done)
}

// claim is a try. The caller for whom room is held passes heldBit, all others 0.
func (r *MPSC[T]) claim(n int, held uint64) (pos uint64, o Outcome) {
	if n < 1 || n > len(r.slots) {
		r.badClaim(n)
	}
	need := uint64(n) << posShift
	for {
		t := r.tail.Load()
		if t&(closedBit|heldBit) != held {
			if t&closedBit != 0 {
				return 0, Closed
			}
			return 0, Full
		}
		pos = t &^ flags
		// If t is out of date, head may have passed it. Then the difference wraps, there seems to be more room than there
		// are slots, and the CAS fails.
		if r.limit-(pos-r.head.Load()) < need {
			return 0, Full
		}
		if r.tail.CompareAndSwap(t, pos+need) { // takes idleBit and heldBit away with the slots
			if t&idleBit != 0 {
				return pos, ClaimedIdle
			}
			return pos, Claimed
		}
	}
}

//go:noinline
func (r *MPSC[T]) badClaim(n int) {
	panic(fmt.Sprintf("ring: a claim of %d slots in a ring of %d", n, len(r.slots)))
}

// Slot returns the i-th slot of the claim at pos. It is the producer's from the claim to Ready, and the consumer's from
// IsReady to Release.
func (r *MPSC[T]) Slot(pos uint64, i int) *T {
	return &r.slots[(pos>>posShift+uint64(i))&r.mask].val
}

// Ready publishes the claim at pos, all of its slots.
func (r *MPSC[T]) Ready(pos uint64) {
	atomicx.StoreRelease(&r.slots[pos>>posShift&r.mask].seq, pos|readyBit)
}

// TakeIdle clears the idle bit and reports whether it was set: then the caller must now wake the consumer, or be the
// consumer itself. It is for whoever wants the consumer to look at something else than the ring.
func (r *MPSC[T]) TakeIdle() bool {
	for {
		t := r.tail.Load()
		if t&idleBit == 0 {
			return false
		}
		if r.tail.CompareAndSwap(t, t&^idleBit) {
			return true
		}
	}
}

// Head returns the position of the oldest slot that was not released: where the next claim starts that the consumer has to
// look for.
func (r *MPSC[T]) Head() uint64 { return r.head.Load() }

// Tail returns the position that the next claim gets. By the time it returns another may have been made.
func (r *MPSC[T]) Tail() uint64 { return r.tail.Load() &^ flags }

// Advance returns the position n slots after pos.
func (r *MPSC[T]) Advance(pos uint64, n int) uint64 { return pos + uint64(n)<<posShift }

// Slots returns how many slots lie between two positions.
func (r *MPSC[T]) Slots(from, to uint64) uint64 { return (to - from) >> posShift }

// IsReady reports whether the claim that starts at pos is ready. A consumer that finds that it is not, but that something
// is Claimed, waits for a producer that is between its claim and Ready: it looks again after letting others run.
func (r *MPSC[T]) IsReady(pos uint64) bool {
	return r.slots[pos>>posShift&r.mask].seq.Load() == pos|readyBit
}

// Release gives back all slots before pos, and wakes a producer that waits for room. The consumer calls it once for as many
// claims as it has done with.
//
// It is a full barrier. It does not clear the slots: what they point to stays reachable until they are written again.
func (r *MPSC[T]) Release(pos uint64) {
	r.head.Store(pos) // the barrier before the look for waiting producers; pairs with the Add in join
	if r.line.waiting.Load() != 0 {
		r.line.room(r.limit - (r.tail.Load()&^flags - pos))
	}
}

// Claimed reports whether anything is claimed and not released; it may not be ready yet.
func (r *MPSC[T]) Claimed() bool { return r.tail.Load()&^flags != r.head.Load() }

// Sleep sets the idle bit, if nothing is claimed and the ring is not closed, and reports whether it is set. Then the
// consumer has given its role away: to the one claim that gets ClaimedIdle, or to the one TakeIdle or Close that returns
// true. If it returns false the consumer looks again: something is claimed, or the ring is closed.
func (r *MPSC[T]) Sleep() bool {
	h := r.head.Load()
	for {
		t := r.tail.Load()
		if t&^flags != h || t&closedBit != 0 {
			return false
		}
		if t&idleBit != 0 || r.tail.CompareAndSwap(t, t|idleBit) {
			return true
		}
	}
}

// Close ends claiming: from now on every claim's outcome is Closed, and producers that wait for room leave. What was
// claimed before will be ready and is still to be consumed. wasIdle reports that the consumer was asleep, and then the
// caller must wake it. Closing again changes nothing.
func (r *MPSC[T]) Close() (wasIdle bool) {
	for {
		t := r.tail.Load()
		if t&closedBit != 0 {
			return false
		}
		if r.tail.CompareAndSwap(t, t&^idleBit|closedBit) { // the barrier before the look for waiting producers
			if r.line.waiting.Load() != 0 {
				r.line.room(r.limit) // as if there were room for whatever it wants
			}
			return t&idleBit != 0
		}
	}
}

// Closed reports whether Close has been called. Once the consumer has seen that, Claimed tells it whether anything is left.
func (r *MPSC[T]) Closed() bool { return r.tail.Load()&closedBit != 0 }

// Cap returns the number of slots.
func (r *MPSC[T]) Cap() int { return len(r.slots) }

// Len returns how many slots are claimed and not released. It is meant for statistics: by the time it returns, it may no
// longer be so.
func (r *MPSC[T]) Len() int {
	h := r.head.Load()
	return int(min(r.tail.Load()&^flags-h, r.limit) >> posShift)
}

// Waiting returns how many producers are parked for room, for statistics.
func (r *MPSC[T]) Waiting() int { return int(r.line.waiting.Load()) }
