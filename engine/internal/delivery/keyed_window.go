package delivery

import (
	"hash/maphash"
	"slices"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/internal/mutant"
)

// window is what a Keyed has read and not settled: the records, each in the strand of its key, and the floor. It knows no
// goroutines and no clock; everything happens under its owner's lock.
//
//	          add           take                 settle, release
//	(reading) ----> ready --------> taken by a runner ---------> ready, or free if it has no more records
//	                  ^               |    |
//	                  +---------------+    | delay, release
//	                  |   giveBack         v
//	                  +---- wake ------- late
//
// # Invariants
//
// Order. A strand has its records in the order of their offsets, and only its first ones are taken, by one runner at a time.
// A record that failed stays the first.
//
// Floor. A record is acknowledged by settle and by lose only. So the floor, which is the end of the gap-free prefix, passes
// nothing that is not settled, dropped by retention, or left behind by reset.
//
// Bound. No more than the records from the floor up to acks.MaxAhead above it are read, in at most maxKeys strands.
//
// Epoch. After reset the items that were taken before settle nothing. Their strands stay until they are released, so that a
// key is with one runner at a time across a reset, too.
type window struct {
	maxKeys int // immutable
	seed    maphash.Seed

	acks  cursor.Acks
	read  uint64 // offset of the next record to read
	epoch uint32 // how often it has been reset
	final bool   // the floor moves no more

	strands []strand
	free    int32 // list of strands that are in no use
	used    int   // strands that are in use
	buckets []int32
	late    *due.Heap[int32]

	nodes     []node
	freeNodes int32

	ready   list  // strands that can be taken, the next first
	avail   int   // records in these strands
	pending int   // records that are read and not settled
	lost    int64 // how many records lose has passed
}

// none is no strand, or no node.
const none int32 = -1

// node is a record that is read and not settled, on the list of its strand.
type node struct {
	off  uint64
	next int32
}

// strand is the records of one key that are read and not settled, or one record without a key.
type strand struct {
	hash  uint64
	chain int32 // next of its bucket
	next  int32 // next in ready or free
	first int32 // of its nodes
	last  int32
	n     int32 // how many nodes
	held  int32 // how many of them, from the first on, belong to items that are out
	taken int32 // items that are out: held, and those that are settled or stale
	place int32 // in late
	state strandState

	// Of the first record.
	attempt int32 // how often it has been delivered
	due     int64 // when it may be delivered again; 0 means now
	dying   error // with what its handler has failed, if it is to be buried
}

type strandState uint8

const (
	strandFree strandState = iota
	strandReady
	strandTaken
	strandLate
)

// list is a list of strands.
type list struct{ first, last int32 }

// item is a record that a runner has taken.
type item struct {
	off     uint64
	strand  int32
	epoch   uint32
	attempt int32 // 1 is the first
	settled bool
	dying   error // with what its handler has failed: it is to be buried
}

// span is a range of offsets, without to.
type span struct{ from, to uint64 }

func (w *window) init(maxRecords, maxKeys int, at uint64) {
	w.maxKeys = min(maxKeys, maxRecords)
	w.seed = maphash.MakeSeed()
	w.acks.MaxAhead = maxRecords
	w.late = due.New(func(s int32, place int) { w.strands[s].place = int32(place) })
	w.free, w.freeNodes = none, none
	w.ready = list{none, none}
	w.acks.Reset(at)
	w.read = at
}

// floor returns the end of the gap-free prefix of what is settled.
func (w *window) floor() uint64 { return w.acks.Floor() }

// full reports whether the next record would be too far above the floor.
func (w *window) full() bool { return w.read >= w.acks.Limit() }

// add adds the record at read, and returns false if it has a new key and there are as many as there may be.
func (w *window) add(key []byte) bool {
	hash := w.read * 0x9E3779B97F4A7C15 // a record without a key is a key of its own
	if key != nil && !(mutant.Enabled && mutant.Is(mutant.KeyOutOfOrder)) {
		hash = maphash.Bytes(w.seed, key)
	}
	s := w.find(hash)
	if s == none {
		if w.used == w.maxKeys {
			return false
		}
		s = w.open()
		w.enter(s, hash)
	}
	n := w.freeNodes
	if n == none {
		n = int32(len(w.nodes))
		w.nodes = append(w.nodes, node{})
	} else {
		w.freeNodes = w.nodes[n].next
	}
	w.nodes[n] = node{off: w.read, next: none}
	w.read++
	w.pending++
	st := &w.strands[s]
	if st.n == 0 {
		st.first = n
	} else {
		w.nodes[st.last].next = n
	}
	st.last = n
	st.n++
	switch st.state {
	case strandFree: // just opened
		w.makeReady(s, false)
	case strandReady:
		w.avail++
	}
	return true
}

// take takes up to len(dst) records for one runner, and returns how many it took. Those of one strand follow each other.
func (w *window) take(dst []item) (n int) {
	for n < len(dst) && w.ready.first != none {
		s := w.ready.first
		st := &w.strands[s]
		w.ready.first = st.next
		if st.next == none {
			w.ready.last = none
		}
		w.avail -= int(st.n)
		k := min(int32(len(dst)-n), st.n)
		st.state, st.taken, st.held = strandTaken, k, k
		attempt, dying := st.attempt+1, st.dying
		for i, at := int32(0), st.first; i < k; i++ {
			nd := &w.nodes[at]
			dst[n] = item{off: nd.off, strand: s, epoch: w.epoch, attempt: attempt, dying: dying}
			n++
			at, attempt, dying = nd.next, 1, nil
		}
	}
	return n
}

// stale reports whether the window has been reset since it was taken.
func (w *window) stale(it *item) bool { return it.epoch != w.epoch }

// settle acknowledges a record, which must be the first of its strand, and reports whether it did: not if it is settled or
// stale, or the floor is final.
func (w *window) settle(it *item) bool {
	if it.settled || w.stale(it) || w.final {
		return false
	}
	it.settled = true
	w.strands[it.strand].held--
	w.pop(it.strand)
	_, _ = w.acks.Ack(it.off) // not too far ahead: full
	if mutant.Enabled && mutant.Is(mutant.HighestSettled) {
		w.acks.Raise(it.off + 1)
	}
	return true
}

// delay keeps a record, which must be the first of its strand: it comes again at a time, as the attempt after this one, or to
// be buried if dying is not nil.
func (w *window) delay(it *item, attempt int32, at int64, dying error) {
	if w.stale(it) || it.settled {
		return
	}
	st := &w.strands[it.strand]
	st.attempt, st.due, st.dying = attempt, at, dying
}

// release says that the runner is through with an item, whatever has become of it.
func (w *window) release(it *item) {
	st := &w.strands[it.strand]
	st.taken--
	if !it.settled && !w.stale(it) {
		st.held--
	}
	if st.taken == 0 {
		w.park(it.strand, false)
	}
}

// giveBack takes back what a runner has not begun with: items as they were taken, from one of them on to the last.
func (w *window) giveBack(items []item) {
	for i := len(items) - 1; i >= 0; i-- {
		it := &items[i]
		st := &w.strands[it.strand]
		st.taken--
		if !w.stale(it) {
			st.held--
		}
		if st.taken > 0 {
			continue
		}
		w.park(it.strand, true) // it was among the first
	}
}

// park puts a strand that nobody has any more where it belongs.
func (w *window) park(s int32, front bool) {
	st := &w.strands[s]
	switch {
	case st.n == 0:
		w.close(s)
	case st.due != 0:
		st.state = strandLate
		w.late.Push(s, st.due)
	default:
		w.makeReady(s, front)
	}
}

// wake makes ready what is due at now.
func (w *window) wake(now int64) {
	for {
		s, ok := w.late.Pop(now)
		if !ok {
			return
		}
		w.strands[s].due = 0
		w.makeReady(s, false)
	}
}

// lose gives up all records below first that nobody has taken. It returns them in ranges.
func (w *window) lose(first uint64) []span {
	var gone []uint64
	for i := range w.strands {
		if st := &w.strands[i]; st.state != strandFree && st.n > st.held {
			gone = w.loseOf(int32(i), first, gone)
		}
	}
	slices.Sort(gone)
	var spans []span
	for _, off := range gone {
		_, _ = w.acks.Ack(off)
		if n := len(spans); n > 0 && spans[n-1].to == off {
			spans[n-1].to++
			continue
		}
		spans = append(spans, span{off, off + 1})
	}
	w.lost += int64(len(gone))
	return spans
}

// loseOf is lose for one strand.
func (w *window) loseOf(s int32, first uint64, gone []uint64) []uint64 {
	st := &w.strands[s]
	prev := none // the node before what is cut out
	for range st.held {
		if prev == none {
			prev = st.first
		} else {
			prev = w.nodes[prev].next
		}
	}
	at := st.first
	if prev != none {
		at = w.nodes[prev].next
	}
	if at == none || w.nodes[at].off >= first {
		return gone
	}
	if st.state == strandReady { // it counts as it is
		w.unlink(s)
	}
	for at != none && w.nodes[at].off < first {
		gone = append(gone, w.nodes[at].off)
		next := w.nodes[at].next
		w.freeNode(at)
		at = next
		st.n--
	}
	if prev == none {
		st.first = at
		st.attempt, st.due, st.dying = 0, 0, nil
	} else {
		w.nodes[prev].next = at
	}
	if at == none {
		st.last = prev
	}
	if st.state == strandLate {
		w.late.Remove(int(st.place))
	}
	if st.taken == 0 {
		w.park(s, false)
	}
	return gone
}

// pass lifts the floor to where reading goes on, over records that were never read, and returns what it has passed. Nothing may
// be pending.
func (w *window) pass(to uint64) span {
	gap := span{w.read, to}
	w.acks.Raise(to)
	w.read = to
	w.lost += int64(to - gap.from)
	return gap
}

// reset puts the floor and the reading at an offset, and forgets all that was read. Items that nobody has begun with must have
// been given back.
func (w *window) reset(at uint64) {
	w.epoch++
	w.late.Clear()
	w.ready, w.avail = list{none, none}, 0
	for i := range w.strands {
		st := &w.strands[i]
		if st.state == strandFree {
			continue
		}
		for st.n > 0 {
			w.pop(int32(i))
		}
		st.held, st.attempt, st.due, st.dying = 0, 0, 0, nil
		if st.state != strandTaken {
			w.close(int32(i))
		}
	}
	w.acks.Reset(at)
	w.read = at
}

// pop takes the first node off a strand.
func (w *window) pop(s int32) {
	st := &w.strands[s]
	n := st.first
	st.first = w.nodes[n].next
	st.n--
	st.attempt, st.due, st.dying = 0, 0, nil
	w.freeNode(n)
}

func (w *window) freeNode(n int32) {
	w.nodes[n].next = w.freeNodes
	w.freeNodes = n
	w.pending--
}

// open returns a strand without records.
func (w *window) open() int32 {
	w.used++
	s := w.free
	if s == none {
		s = int32(len(w.strands))
		w.strands = append(w.strands, strand{})
	} else {
		w.free = w.strands[s].next
	}
	w.strands[s] = strand{first: none, last: none, next: none, chain: none}
	return s
}

// close gives a strand without records back.
func (w *window) close(s int32) {
	w.leave(s)
	st := &w.strands[s]
	st.state, st.next = strandFree, w.free
	w.free = s
	w.used--
}

// makeReady puts a strand on the list of those that can be taken, at the end or the front.
func (w *window) makeReady(s int32, front bool) {
	st, l := &w.strands[s], &w.ready
	st.state, st.next = strandReady, none
	w.avail += int(st.n)
	switch {
	case l.first == none:
		l.first, l.last = s, s
	case front:
		st.next = l.first
		l.first = s
	default:
		w.strands[l.last].next = s
		l.last = s
	}
}

// unlink takes a strand off that list, which it walks through.
func (w *window) unlink(s int32) {
	l := &w.ready
	w.avail -= int(w.strands[s].n)
	prev := none
	for at := l.first; at != s; at = w.strands[at].next {
		prev = at
	}
	next := w.strands[s].next
	if prev == none {
		l.first = next
	} else {
		w.strands[prev].next = next
	}
	if next == none {
		l.last = prev
	}
}

// find returns the strand of a hash, or none.
func (w *window) find(hash uint64) int32 {
	if w.buckets == nil {
		return none
	}
	s := w.buckets[hash&uint64(len(w.buckets)-1)]
	for s != none && w.strands[s].hash != hash {
		s = w.strands[s].chain
	}
	return s
}

// enter makes a strand that of a hash.
func (w *window) enter(s int32, hash uint64) {
	if w.buckets == nil { // not before they are needed: an idle lane is small
		n := 1
		for n < w.maxKeys {
			n *= 2
		}
		w.buckets = make([]int32, n)
		for i := range w.buckets {
			w.buckets[i] = none
		}
	}
	b := &w.buckets[hash&uint64(len(w.buckets)-1)]
	st := &w.strands[s]
	st.hash, st.chain = hash, *b
	*b = s
}

// leave undoes enter.
func (w *window) leave(s int32) {
	st := &w.strands[s]
	at := &w.buckets[st.hash&uint64(len(w.buckets)-1)]
	for *at != s {
		at = &w.strands[*at].chain
	}
	*at = st.chain
}
