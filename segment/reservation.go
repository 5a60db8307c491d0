package segment

import (
	"fmt"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// Reservation is room in the active segment for records that are made where they stay. The appender gets it from ReserveRun, fills it
// with Next, NextRun and NextKey, and stages the records with StageRun; until then the log knows nothing of them. It belongs to one goroutine.
//
// # Proof
//
// Whose bytes. ReserveRun hands out the entries and bytes behind what is staged. They are the appender's alone (Log, shared state), and
// it stages nothing else before it has called StageRun or Forgo: its duty. So nobody else writes or reads them, with one exception: the
// segment may end meanwhile, by a Roll, a drop or an Unstage that the appender does for another reason. Then its block could go back to
// the pool, and to another log. Whatever ends the active segment sees that a reservation is out and keeps the segment (leave; segment,
// Recycle): the block is left to the collector, and what is written to it is seen by nobody, since a segment's end bounds what readers
// take for records. StageRun finds that the active segment is another one, or that the place where the next record goes has moved
// (Unstage), and refuses; the records can then be moved to a new reservation, also to one that overlaps.
type Reservation struct {
	seg   *segment // what it is in; nil if it is over
	index []entry
	data  []byte
	since uint64 // the append time as it is written into entries

	top, pos  int // where the next entry and the next bytes go: as those of Log
	last, end int // how far they may go
	most      int // the most bytes of one record

	fromTop, fromPos int // where they began
	value            int // where the value of the newest record begins
	runTop           int // top where the newest record may be in a row

	fault *OverrunError // the first Next that was refused
}

// OverrunError says that a reservation had no room for a record.
type OverrunError struct {
	Size    int // bytes of key and value, or negative if the length was
	Left    int // how many bytes the reservation had left, or, for one record, those of the largest if that is less
	Records int // how many records it had left
	Run     int // how many such records there should have been, one behind the other
}

func (e *OverrunError) Error() string {
	if e.Run != 1 {
		return fmt.Sprintf("segment: %d records of %d bytes each where %d bytes and %d records were left", e.Run, e.Size, e.Left, e.Records)
	}
	return fmt.Sprintf("segment: a record of %d bytes where %d bytes and %d records were left", e.Size, e.Left, e.Records)
}

// Next adds a record without a key and returns the place for its value of n bytes, which the caller must fill: what is there is
// whatever was there before. It returns nil if there is no room for it; then StageRun must not be called, see Fault.
func (r *Reservation) Next(n int) []byte {
	start, top := r.pos, r.top-1
	if uint(n) > uint(min(r.end-start, r.most)) || top < r.last {
		return r.refuse(1, n)
	}
	end := start + n
	e := &r.index[top]
	atomicx.Writes(unsafe.Pointer(e))
	e.span, e.stamp = uint64(end)<<32, r.since|flagNilKey
	if atomicx.Exploring && n > 0 {
		atomicx.Writes(unsafe.Pointer(&r.data[start]))
	}
	r.top, r.pos, r.value = top, end, start
	return r.data[start:end:end]
}

// NextRun is Next for so many records at once, at least one, that have n bytes each. Their values lie one behind the other in what it
// returns. If there is no room for all of them it adds none. Their entries are those of rows, which is the least that there is to do.
func (r *Reservation) NextRun(records, n int) []byte {
	start, top := r.pos, r.top
	// Both are below 2^31 when they are multiplied, since most is not above the bytes there were; a division would take 4 ns.
	if records < 1 || records > top-r.last || uint(n) > uint(r.most) || uint64(records)*uint64(n) > uint64(r.end-start) {
		return r.refuse(records, n)
	}
	if records > 1 {
		r.seg.mark(holdsRows)
	}
	r.top, r.pos = enterRows(r.index, top, start, records, n, r.since)
	r.runTop, r.value = r.top, r.pos-n
	if atomicx.Exploring && n > 0 {
		for at := start; at < r.pos; at += n {
			atomicx.Writes(unsafe.Pointer(&r.data[at]))
		}
	}
	return r.data[start:r.pos:r.pos]
}

// NextKey is Next for a record with a key, which is copied. Nil and empty differ.
func (r *Reservation) NextKey(key []byte, n int) []byte {
	if key == nil {
		return r.Next(n)
	}
	if uint(n) > MaxRecordBytes {
		return r.refuse(1, n)
	}
	k := len(key)
	if r.Next(k+n) == nil {
		return nil
	}
	e := &r.index[r.top]
	e.span |= uint64(k)
	e.stamp &^= flagNilKey
	copy(r.data[r.value:], key)
	r.value += k
	return r.data[r.value:r.pos:r.pos]
}

// Shrink makes the value of the newest record n bytes long, its first ones. The rest is room again.
func (r *Reservation) Shrink(n int) {
	if r.top == r.fromTop || uint(n) > uint(r.pos-r.value) {
		r.refuse(1, n)
		return
	}
	if n == r.pos-r.value {
		return
	}
	if r.top == r.runTop {
		r.single()
	}
	r.pos = r.value + n
	e := &r.index[r.top]
	atomicx.Writes(unsafe.Pointer(e))
	e.span = uint64(r.pos)<<32 | uint64(uint32(e.span))
}

// single takes the newest record out of its row, if it is in one, and gives it an entry of its own.
func (r *Reservation) single() {
	row, _ := r.seg.covering(len(r.index) - 1 - r.top)
	own := &r.index[r.top]
	if row == own {
		return
	}
	each := uint64(uint32(row.span))
	if row.records() == 2 {
		each = 0 // the one that is left has no key
	}
	atomicx.Writes(unsafe.Pointer(row))
	row.span, row.stamp = uint64(r.value)<<32|each, row.stamp-1<<flagBits
	atomicx.Writes(unsafe.Pointer(own))
	own.span, own.stamp = uint64(r.pos)<<32, r.since|flagNilKey
}

// refuse notes the first record, or run of them, for which there was no room.
func (r *Reservation) refuse(run, n int) []byte {
	if r.fault == nil {
		left := r.end - r.pos
		if run == 1 {
			left = min(left, r.most)
		}
		r.fault = &OverrunError{Size: n, Left: left, Records: r.top - r.last, Run: run}
	}
	return nil
}

// Fault returns what was asked of it that it had no room for, or nil.
func (r *Reservation) Fault() *OverrunError { return r.fault }

// Records returns how many records it has so far, and Bytes how many bytes their keys and values are.
func (r *Reservation) Records() int { return r.fromTop - r.top }

// Bytes is told at Records.
func (r *Reservation) Bytes() int { return r.pos - r.fromPos }

// Over reports whether it has been staged or given up, or never was one.
func (r *Reservation) Over() bool { return r.seg == nil }

// End gives it up: it has room for nothing more.
func (r *Reservation) End() { *r = Reservation{} }

// MoveTo copies the records to a reservation that has room for them, and ends r.
func (r *Reservation) MoveTo(to *Reservation) {
	shift := to.pos - r.fromPos
	copy(to.data[to.pos:to.end], r.data[r.fromPos:r.pos])
	for n, top := 0, r.fromTop; top > r.top; top -= n {
		e := &r.index[top-1]
		if n = e.records(); n > 1 {
			to.seg.mark(holdsRows)
			to.top, to.pos = enterRows(to.index, to.top, to.pos, n, int(uint32(e.span)), to.since)
			continue
		}
		to.top--
		to.pos = int(e.span>>32) + shift
		moved := &to.index[to.top]
		atomicx.Writes(unsafe.Pointer(moved))
		moved.span, moved.stamp = uint64(to.pos)<<32|uint64(uint32(e.span)), to.since|e.stamp&flagMask
	}
	to.value, to.runTop = to.pos-(r.pos-r.value), to.top
	r.End()
}

// ReserveRun hands out room for so many records of bytes together, keys and values, each of at most most; now is their append time.
// Until StageRun or Forgo the appender must stage nothing else.
//
// If it fails nothing has changed; the errors are those of Ensure.
func (l *Log) ReserveRun(r *Reservation, records, bytes, most int, now int64) error {
	if uint(records) > uint(l.top) || bytes > (l.top-records)*EntryBytes-l.pos || uint64(records) > l.until-l.next || !l.at(now) {
		if err := l.ensureRun(records, bytes, now); err != nil {
			return err
		}
	}
	l.reserved = true
	r.seg, r.index, r.data, r.since = l.active, l.index, l.data, l.since
	r.top, r.pos, r.last, r.end, r.most = l.top, l.pos, l.top-records, l.pos+bytes, min(most, bytes) // see NextRun
	r.fromTop, r.fromPos, r.value, r.runTop, r.fault = l.top, l.pos, l.pos, l.top, nil
	return nil
}

// ensureRun makes room for a reservation where the active segment has none.
func (l *Log) ensureRun(records, bytes int, now int64) error {
	if uint64(records) > MaxOffset-l.next && !l.sealed {
		return ErrExhausted
	}
	now = max(now, l.newest)
	if err := l.Ensure(int64(bytes), records, now); err != nil {
		return err
	}
	l.at(now) // Ensure has seen to it that the segment can hold it
	return nil
}

// StageRun stages the records of a reservation, and ends it. If it returns false the segment has ended meanwhile and nothing has
// changed: the records can be moved to another reservation.
func (l *Log) StageRun(r *Reservation) bool {
	if r.seg != l.active || r.fromTop != l.top || r.fromPos != l.pos || r.seg == nil {
		return false
	}
	l.top, l.pos = r.top, r.pos
	l.next += uint64(r.Records())
	l.reserved = false
	r.End()
	return true
}

// Forgo takes back what ReserveRun has handed out. Its holder must not write there any more.
func (l *Log) Forgo() { l.reserved = false }
