package segment

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

const (
	// open is the end of a segment that still grows.
	open = math.MaxUint64

	pinsDead = 1 << 31 // no pin succeeds any more; the block is gone
	pinsKept = 1 << 30 // a view without a pin is out: the block must never be reused

	holdsTimes = 1 << 0 // records with a timestamp of their own
	holdsRows  = 1 << 1 // rows
)

// segment is the records of the offsets [base, end) in one block: record bytes grow from the bottom up, index entries from
// the top down, and the block is full when they would meet. The log's appender fills it; how its contents are published is
// told at Log. What is told here is when its block may be reused.
//
// # Roles
//
//   - appender: the log's appender. It ends the segment (end) and kills it.
//   - reader: any goroutine that found the segment in the log's directory, maybe in one that has been replaced since.
//
// # Shared state
//
//	end   stored by the appender, loaded by readers: open, then where the segment ends
//	pins  count of pins (Add by readers), pinsKept (CAS by readers, and by the appender for a Reservation), pinsDead (CAS by the
//	      appender from 0)
//	holds bits set (Or) by the appender, by the holder of its Reservation and by the reader who has loaded the block, loaded by
//	      readers: whether searching and finding take longer
//	block immutable until the segment is dead; a reader touches it only between pin and unpin, or after keep
//	cold  nil, or that the block is not there yet; stored as nil by the reader who has loaded it: see chill
//
// # Proof
//
// Recycle. A block goes back to the pool only after kill has moved pins from 0 to pinsDead. pin raises the count and looks
// at what it got; keep sets its bit by a CAS from a value that is not dead. All of these are read-modify-write operations
// on one word, so they happen in one order. A pin that comes before the kill and has not been taken back makes the count
// more than 0, so kill fails, for good. A pin that comes after it sees pinsDead, is taken back, and its reader never
// touches the block. The same holds for keep, whose bit is never cleared. So nobody reads a block after it has gone back;
// and what a reader read before unpin happens before the kill, and so before the next owner's writes.
//
// Rows. A row is the records i to i+n-1 of a segment, of which no number but i can be divided by rowRecords. Entry i, which is that of
// all of them, is written before any of them is published; and they are published, or taken back, together, since they are staged by one
// call. So entry j of a published record is written if rowRecords divides j, and from there on each entry says where the next one is, up to
// the one that a record has: covering comes by nothing but entries that are written, of records at or before the one it looks for. A
// reader that does not see holdsRows has seen a length from before the first row was published, or the bit would have been set
// before; so the entry of each record that it may read is written. What is staged, or is in a Reservation, is found in the same way by those
// who have written it.
//
// Dead is for good. Nothing clears pinsDead: the segment itself is never reused, only its block. A pin that comes and goes
// on a dead segment changes the count and nothing else, since kill is called once.
//
// A segment that kill could not take is left to the collector, with its block: whoever holds a pin or a view keeps the
// memory alive through it, and nobody writes to it again, but the holder of a Reservation, where no record is.
//
// Progress. pin, unpin, and kill are wait-free. keep is lock-free: its CAS fails only because another reader or the kill
// moved the word.
//
// Not promised. That a pinned segment is still part of the log: it may be dropped at any time, and only its bytes stay.
type segment struct {
	// Immutable.
	base     uint64
	baseTime int64

	// block is immutable until the segment is dead; then the appender clears it. See Recycle. While the segment is cold it is
	// the loader's; see chill.
	block block

	// own is how many bytes the pool counts for a block that is not one of the pool's, because the segment was attached cold; 0
	// for all others. Immutable.
	own int64

	// newest is at least the greatest timestamp in the segment, and upTo at least the greatest in it and all before it. The
	// appender writes them once, before it stores end for the first time, and readers read them only after they have loaded
	// an end that is not open.
	newest, upTo int64

	// bytes is the appender's own: record bytes and entries, set when the segment ends. In a segment that is attached cold it is
	// immutable, and read by all.
	bytes int64

	// end is open while the segment grows. The appender stores where it ends before it publishes any offset from there on,
	// and readers load it after the committed word. It publishes newest and upTo.
	end atomicx.Uint64

	// cold is set before the segment is in the directory, and stored as nil once by a reader, under the chill's mu; loaded by
	// readers that have pinned the segment, and by the appender. Storing nil publishes the block.
	cold atomicx.Pointer[chill]

	// holds has a bit for what there may be in the segment. The appender sets it before it publishes the first such record, and who
	// fills a Reservation when he makes it; readers load it after the committed word. In a segment that was cold the reader who has
	// loaded it sets it, before cold is nil.
	holds atomicx.Uint32

	// pins is moved by readers (count, pinsKept) and by the appender (from 0 to pinsDead). See Recycle.
	pins atomicx.Uint32
}

// pin makes sure that the block stays what it is until unpin. It fails if the segment is dead.
func (s *segment) pin() bool {
	if s.pins.Add(1)&pinsDead != 0 {
		s.unpin()
		return false
	}
	return true
}

// unpin takes one pin back.
func (s *segment) unpin() { s.pins.Add(^uint32(0)) }

// keep makes sure that the block stays what it is for ever. It fails if the segment is dead.
func (s *segment) keep() bool {
	for {
		old := s.pins.Load()
		if old&pinsDead != 0 {
			return false
		}
		if old&pinsKept != 0 || s.pins.CompareAndSwap(old, old|pinsKept) {
			return true
		}
	}
}

// kill ends all use of the block and reports whether there was none. Only the appender calls it, once.
func (s *segment) kill() bool { return s.pins.CompareAndSwap(0, pinsDead) }

// mayHave reports whether there may be a timestamp of t or later in s, and mayHaveUpTo whether in s or before it.
func (s *segment) mayHave(t int64) bool {
	if s.end.Load() == open {
		return true
	}
	atomicx.Reads(unsafe.Pointer(&s.newest))
	return s.newest >= t
}

func (s *segment) mayHaveUpTo(t int64) bool {
	if s.end.Load() == open {
		return true
	}
	atomicx.Reads(unsafe.Pointer(&s.newest))
	return s.upTo >= t
}

// memory returns the block. The caller has a pin, or has kept the segment, or is the appender.
func (s *segment) memory() *block {
	atomicx.Reads(unsafe.Pointer(&s.block))
	return &s.block
}

// size returns how many bytes the pool counts for the block. Unlike the block's own it can be asked at any time.
func (s *segment) size() int64 {
	if s.own > 0 {
		return s.own
	}
	return s.block.size()
}

// mark notes what the segment holds, before any of it is published.
func (s *segment) mark(what uint32) {
	if what&^s.holds.Load() != 0 { // to look costs less
		s.holds.Or(what) // pairs with the Loads in search and covering
	}
}

// appendTime returns the append time of record i.
func (s *segment) appendTime(i int) int64 {
	e, _ := s.covering(i)
	return s.baseTime + int64(e.stamp>>stampBits)
}

// timestamp returns the timestamp of record i: its own, or else its append time.
func (s *segment) timestamp(i int) int64 {
	e, _ := s.covering(i)
	if e.stamp&flagHasTimestamp == 0 {
		return s.baseTime + int64(e.stamp>>stampBits)
	}
	b := s.block.data[s.start(i):]
	atomicx.Reads(unsafe.Pointer(&b[0]))
	return int64(binary.LittleEndian.Uint64(b))
}
