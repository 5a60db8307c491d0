package baseline

import (
	"math/bits"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/internal/atomicx"
)

// Ring is the idea of the Disruptor and nothing else: an array of messages that one writer fills in place and any number of
// readers look at in place, each of which sees all of them. Nothing is kept once the slowest reader is done with it.
//
// The writer asks for room, fills slots, and publishes them, one or many at a time:
//
//	n := r.Room(most)           // waits for the slowest reader
//	for i := range n {
//		*r.Slot(i) = ...
//	}
//	r.Publish(n)
//
// A reader asks what is there, looks at it, and gives it back:
//
//	n := x.Ready(most)          // waits for the writer
//	for i := range n {
//		use(x.Slot(i))
//	}
//	x.Done(n)
//
// # Roles
//
//   - writer: the one goroutine that calls Room, Slot and Publish.
//   - reader: the one goroutine for each RingReader that calls its methods.
//   - anybody: Close.
//
// # Shared state
//
//	published  stored by the writer, read by readers: how many messages there have ever been
//	done       one for each reader, stored by it, read by the writer: how many of them it is done with
//	slots      [done of the slowest reader, published) are the readers', to look at; all others the writer's
//	closed     set by anybody, read by who waits
//
// # Proof
//
// Publication. The writer fills a slot and then stores published beyond it; a reader touches only slots below what it has
// loaded from published, so it sees them filled. It stores done beyond a slot when it has looked at it for the last time, and
// the writer fills a slot again only when it has loaded from every reader a done beyond its former use. Both words are stored
// by one goroutine each and only grow.
//
// Cached positions. The writer keeps the lowest done that it has seen, and looks again only when that leaves no room; a reader
// keeps the published it has seen, and looks again only when it has read up to there. An old value is lower than the true
// one, so it never allows what the true one does not.
//
// No lost wake-up. With WaitPark both words are stored by sync/atomic, which is a full barrier, and Broadcast comes after; who
// waits registers and looks again before it parks (atomicx.Event). With the other two nobody parks, and the words are stored
// by release stores, since a barrier for each message would be the largest cost of all.
//
// Progress. The writer waits for the slowest reader, a reader for the writer; both wait as the ring's Wait says.
//
// Not promised. Several writers: they would have to order themselves, which is another data structure.
type Ring[T any] struct {
	// Immutable after NewRing.
	slots   []T
	mask    uint64
	wait    cursor.Wait
	readers []*RingReader[T]

	_ atomicx.Pad
	// published is stored by the writer and loaded by readers: it publishes the slots below it.
	published atomicx.Uint64
	_         atomicx.Pad

	// The writer's own.
	next   uint64 // what published is
	gate   uint64 // the lowest done that it has seen
	parked *atomicx.Waiter
	_      atomicx.Pad

	// closed is set once by Close and loaded by whoever waits. It publishes no memory.
	closed  atomicx.Bool
	grown   atomicx.Event // published has moved
	drained atomicx.Event // a done has moved
}

// NewRing returns a ring of that many slots (rounded up to a power of two) with that many readers, who wait like that.
func NewRing[T any](slots, readers int, wait cursor.Wait) *Ring[T] {
	n := uint64(1) << bits.Len64(uint64(max(slots, 1)-1))
	r := &Ring[T]{slots: make([]T, n), mask: n - 1, wait: wait, parked: atomicx.NewWaiter()}
	for range readers {
		r.readers = append(r.readers, &RingReader[T]{ring: r, parked: atomicx.NewWaiter()})
	}
	return r
}

// Reader returns reader i.
func (r *Ring[T]) Reader(i int) *RingReader[T] { return r.readers[i] }

// Room returns how many slots may be filled, up to most, and waits while there is none. After Close it may return 0.
func (r *Ring[T]) Room(most int) int {
	if free := uint64(len(r.slots)) - (r.next - r.gate); free != 0 {
		return int(min(free, uint64(most)))
	}
	return r.waitRoom(most)
}

func (r *Ring[T]) waitRoom(most int) int {
	look := func() int {
		r.gate = r.next
		for _, x := range r.readers {
			r.gate = min(r.gate, x.done.Load()) // pairs with the store in Done
		}
		return int(min(uint64(len(r.slots))-(r.next-r.gate), uint64(most)))
	}
	return r.until(look, &r.drained, r.parked)
}

// Slot returns the i-th free slot, to be filled. i is less than what Room has returned.
func (r *Ring[T]) Slot(i int) *T { return &r.slots[(r.next+uint64(i))&r.mask] }

// Publish shows the next n slots to the readers.
func (r *Ring[T]) Publish(n int) {
	r.next += uint64(n)
	if r.wait != cursor.WaitPark {
		atomicx.StoreRelease(&r.published, r.next)
		return
	}
	r.published.Store(r.next)
	r.grown.Broadcast()
}

// Close makes everybody who waits, or is about to, return. It may be called at any time, again as well.
func (r *Ring[T]) Close() {
	r.closed.Store(true)
	r.grown.Broadcast()
	r.drained.Broadcast()
}

// until waits until look finds something, or the ring is closed, and returns what it found.
func (r *Ring[T]) until(look func() int, event *atomicx.Event, w *atomicx.Waiter) int {
	b := r.wait.Backoff()
	for {
		if n := look(); n > 0 || r.closed.Load() {
			return n
		}
		if b.Again() {
			continue
		}
		event.Prepare(w)
		if n := look(); n > 0 || r.closed.Load() {
			event.Cancel(w)
			return n
		}
		event.Wait(w, nil)
		b.Reset()
	}
}

// RingReader is one reader's place in a Ring.
type RingReader[T any] struct {
	_ atomicx.Pad
	// done is stored by the reader and loaded by the writer: it gives back the slots below it.
	done atomicx.Uint64
	_    atomicx.Pad

	// The reader's own.
	next   uint64 // what done is
	seen   uint64 // the published that it has seen
	ring   *Ring[T]
	parked *atomicx.Waiter
	_      atomicx.Pad
}

// Ready returns how many messages are there to be looked at, up to most, and waits while there is none. After Close it
// returns 0 when there is nothing left.
func (x *RingReader[T]) Ready(most int) int {
	if x.seen == x.next {
		x.ring.until(func() int {
			x.seen = x.ring.published.Load() // pairs with the store in Publish
			return int(x.seen - x.next)
		}, &x.ring.grown, x.parked)
	}
	return int(min(x.seen-x.next, uint64(most)))
}

// Slot returns the i-th of them. It must not be changed, and is valid until Done.
func (x *RingReader[T]) Slot(i int) *T { return &x.ring.slots[(x.next+uint64(i))&x.ring.mask] }

// Done gives the first n of them back to the writer.
func (x *RingReader[T]) Done(n int) {
	x.next += uint64(n)
	if x.ring.wait != cursor.WaitPark {
		atomicx.StoreRelease(&x.done, x.next)
		return
	}
	x.done.Store(x.next)
	x.ring.drained.Broadcast()
}
