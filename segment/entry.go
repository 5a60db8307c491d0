package segment

import (
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// entry is a record's place in the index of its block. Entry i is the one at index n-1-i of n.
//
// The record's bytes begin where the record before ends, and are
//
//	[timestamp 8] [length of headers 4] [headers] [key] [value]
//
// with the first only if flagHasTimestamp and the next two only if flagHasHeaders; integers are little endian.
//
// Records that are made at once and are nothing but values of one size can be a row: up to rowRecords of them, whose entry is that of
// the first. The entries of the others are not written, and nobody looks at what is there; see Rows in the proof of segment. So a run of
// records costs one entry in 16 to write and to read, while any record is still found in a few steps.
type entry struct {
	span  uint64 // end of the bytes in the block, of a row all of them << 32 | length of the key or, in a row, of each value
	stamp uint64 // append time, in ns after the segment's base time << stampBits | how many more records the row has << flagBits | flags
}

const (
	flagNilKey = 1 << iota
	flagNilValue
	flagHasHeaders
	flagHasTimestamp

	flagBits  = 4
	stampBits = 8

	// Masks of a stamp: its flags, whether it is the stamp of a row, and both.
	flagMask = 1<<flagBits - 1
	rowMask  = kindMask &^ flagMask
	kindMask = 1<<stampBits - 1

	// rowRecords is the most that a row can have: as many as a stamp can count. It is a power of two.
	rowRecords = 1 << (stampBits - flagBits)

	// rowsAhead is how many entries ahead memory is fetched where rows are written. They leave most lines of it out, and the processor then
	// does not fetch it by itself: batches of 16 by three producers took 1.2 times as long without.
	rowsAhead = 4 * rowRecords

	// EntryBytes is what each record takes in a segment beside its own bytes: the size of an index entry.
	EntryBytes = 16

	timestampBytes  = 8
	headersLenBytes = 4

	// besideBytes is the most that is stored beside a record's key, value and headers.
	besideBytes = EntryBytes + timestampBytes + headersLenBytes

	// maxSince is the longest time after its segment's base time that an entry can hold: 2.28 years.
	maxSince = 1<<(64-stampBits) - 1
)

// records returns how many records the entry is for.
func (e *entry) records() int { return int(e.stamp&rowMask)>>flagBits + 1 }

// enterRows writes the entries for so many values of each bytes, whose bytes begin at pos, below top in the index of a segment, and returns
// where the next entry and the next bytes go. Rows end where a record's number can be divided by rowRecords.
func enterRows(index []entry, top, pos, records, each int, since uint64) (nextTop, nextPos int) {
	for records > 0 {
		n := min(records, rowRecords-(len(index)-top)%rowRecords)
		pos += n * each
		e := &index[top-1]
		atomicx.Writes(unsafe.Pointer(e))
		if n == 1 {
			e.span, e.stamp = uint64(pos)<<32, since|flagNilKey
		} else {
			e.span, e.stamp = uint64(pos)<<32|uint64(each), since|uint64(n-1)<<flagBits|flagNilKey
		}
		top -= n
		records -= n
		if top >= rowsAhead {
			atomicx.Prefetch(unsafe.Pointer(&index[top-rowsAhead]))
		}
	}
	return top, pos
}

// entry returns entry i, which must not be one of those that a row leaves out.
func (b *block) entry(i int) *entry {
	e := &b.index[len(b.index)-1-i]
	atomicx.Reads(unsafe.Pointer(e))
	return e
}

// covering returns the entry that record i has, and the number of the first record that it is for. The caller has a pin, or has kept the
// segment, or is the appender, or has a Reservation in it.
func (s *segment) covering(i int) (e *entry, first int) {
	b := s.memory()
	if s.holds.Load()&holdsRows == 0 { // before their Publish; see mark
		return b.entry(i), i
	}
	for first = i - i%rowRecords; ; first += e.records() {
		if e = b.entry(first); first+e.records() > i {
			return e, first
		}
	}
}

// start returns where the bytes of record i begin, and so where those of the one before it end.
func (s *segment) start(i int) int {
	if i == 0 {
		return 0
	}
	e, first := s.covering(i - 1)
	end := int(e.span >> 32)
	if behind := first + e.records() - i; behind > 0 {
		end -= behind * int(uint32(e.span))
	}
	return end
}
