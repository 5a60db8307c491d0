// Package ring hands values from many producers to one consumer through a bounded ring, in place: a value is written once,
// into the slot in which the consumer reads it.
//
// There is one type here, [MPSC].
//
//	           head                           tail
//	            |                              |
//	  . . . . [ A: ready ][ B: claimed ][ C: ready ] . . . .
//	free        |           |                    free
//	            |           a producer is writing B; the consumer stops here
//	            the consumer reads A
//
// A producer claims one or more consecutive slots by one compare-and-swap of the claim word (tail), writes its values into
// them, and marks the claim ready. The consumer takes ready claims in the order in which they were made, as many as there
// are, and gives their slots back by one store (head).
//
// What is special is the claim word. Besides the position it holds three flags, so that everything a producer must know is
// decided by the very compare-and-swap that makes its claim:
//
//   - idle: the consumer has gone to sleep. It can do so only while nothing is claimed, and the first claim after that is told
//     to wake it (or to do its work: see the second example). So a wake-up is never lost, never done twice, and a producer
//     pays no barrier to find out that none is needed.
//   - closed: no claim succeeds after Close, and all that were made before are consumed.
//   - held: room is held for a producer that has waited in line, so that a claim of many slots is not starved by small ones.
//
// A producer:
//
//	pos, outcome, ok := r.Claim(1, ctx.Done())
//	if !ok || outcome == ring.Closed {
//		return ...
//	}
//	*r.Slot(pos, 0) = v // nothing that can fail or wait between Claim and Ready
//	r.Ready(pos)
//	if outcome == ring.ClaimedIdle {
//		wake()
//	}
//
// The consumer:
//
//	pos := r.Head()
//	for r.IsReady(pos) {
//		v := r.Slot(pos, 0)
//		...
//		pos = r.Advance(pos, 1)
//	}
//	r.Release(pos)
//
// and when it has found nothing for a while: if something is Claimed, it will be ready shortly (let others run); else if the
// ring is Closed, that was all; else Sleep, and park if that returns true.
//
// Two things make a consumer fast. It asks IsReady several times before it asks Claimed or tries to Sleep: those touch the
// claim word, which is the producers'. And it releases many claims at a time: each Release takes a line of memory from every
// producer, so a consumer that falls a little behind is faster than one that chases.
//
// # When to take it
//
// When many goroutines feed one and a channel's 30 to 60 ns for each value matter, when values are large (a channel copies
// them twice), or when several values must stay together. Handing over one value at a time takes about 0.4 times the work of
// a channel on one processor, and 0.7 to 1 times across two, where moving the memory is what costs; claims of 16 take a fifth
// (BenchmarkMPSC_HandOver). When in doubt, use a channel: it selects.
//
// # What it does not do
//
// It does not park the consumer; that is the caller's, since a caller often has more to wait for than the ring. It does not
// clear slots: what a value points to stays reachable until the slot is written again, unless the consumer clears it before
// Release. And it is not lock-free as a whole: a producer that stops between its claim and Ready stops the consumer there.
package ring
