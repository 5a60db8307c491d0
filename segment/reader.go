package segment

import (
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// State is what Refill found.
type State uint8

const (
	// Ready says that there is at least one record in the window.
	Ready State = iota
	// CaughtUp says that the position is the committed length: there is nothing more yet.
	CaughtUp
	// Sealed says that the position is the committed length and the log is sealed: there will never be more.
	Sealed
	// Below says that the position has been dropped: it lies below First. The reader stays there until Seek.
	Below
	// Beyond says that the position lies above the committed length.
	Beyond
	// Unreadable says that the record at the position is there, in a segment that was attached cold, and could not be loaded: Err
	// says why. The reader stays there, and the next Refill tries again.
	Unreadable
	// Frozen says that the record at the position is in a cold segment: RefillWarm returns it where Refill would load that.
	Frozen
)

// String returns the name of s.
func (s State) String() string {
	switch s {
	case Ready:
		return "Ready"
	case CaughtUp:
		return "CaughtUp"
	case Sealed:
		return "Sealed"
	case Below:
		return "Below"
	case Beyond:
		return "Beyond"
	case Unreadable:
		return "Unreadable"
	case Frozen:
		return "Frozen"
	}
	return "State(?)"
}

// Reader is a position in a log, for one goroutine at a time. Refill looks at what has been published and gives a window of
// records, all in one segment; Next walks through it and touches nothing that is shared:
//
//	for r.Refill() == segment.Ready {
//		for r.Next(&rec) {
//			...
//		}
//	}
//
// While it has a window the Reader pins the segment, so that its block is not reused. What Next returns is valid until the
// next call of Refill, Seek or Close.
type Reader struct {
	log *Log

	pos   uint64 // offset of the next record
	limit uint64 // end of the window

	// The segment that pos stands in, pinned, and where in it; seg is nil if there is none.
	seg      *segment
	index    []entry
	data     []byte
	at       int // of the entry in index that the next record has
	start    int // of its bytes in data
	baseTime int64

	partition int32 // immutable after Init
	behind    int32 // how many records of its row are before the next record

	err error // what the last Unreadable was for
}

// NewReader returns a Reader that stands at First. It lies on cache lines of its own.
func (l *Log) NewReader() *Reader {
	var r struct {
		_ atomicx.Pad
		Reader
		_ atomicx.Pad
	}
	p := &r
	p.Init(l)
	return &p.Reader
}

// Init makes r a reader of l that stands at First. It is for readers that are part of something else; r must be new or
// closed.
func (r *Reader) Init(l *Log) {
	*r = Reader{log: l, pos: l.First(), limit: l.First(), partition: l.partition}
}

// Position returns the offset of the record that Next returns next.
func (r *Reader) Position() uint64 { return r.pos }

// Err returns why the last Refill that returned Unreadable did.
func (r *Reader) Err() error { return r.err }

// Window returns how many records Next will return before the next Refill.
func (r *Reader) Window() int { return int(r.limit - r.pos) }

// Seek moves the position to off and drops the window. Whether there is anything at off is for Refill to say.
func (r *Reader) Seek(off uint64) {
	if off != r.pos {
		r.Close()
		r.pos = off
	}
	r.limit = r.pos
}

// Close drops the window and the pin; the position stays. It is also for a reader that will not be used for long: the next
// Refill takes a pin again.
func (r *Reader) Close() {
	r.limit = r.pos
	if r.seg != nil {
		r.seg.unpin()
		r.leave()
	}
}

func (r *Reader) leave() { r.seg, r.index, r.data = nil, nil, nil }

// Back moves the position back to off, which must not be below the first record that Next has returned since the last
// Refill or Seek, and keeps the window: Next returns the same records again.
func (r *Reader) Back(off uint64) {
	if off != r.pos {
		r.pos = off
		r.enter(r.seg)
	}
}

// Jump moves the position to off and keeps the window, if off lies in what the window was made of: at or above the segment's
// first record and below the window's end. Otherwise it returns false and changes nothing; then Seek and Refill have to do it.
func (r *Reader) Jump(off uint64) bool {
	if r.seg == nil || off < r.seg.base || off >= r.limit {
		return false
	}
	r.Back(off)
	return true
}

// Refill drops the window and makes a new one of what is published at and after the position, up to the end of a segment. If
// that is cold it is loaded, which may wait for a disk; otherwise Refill never waits.
func (r *Reader) Refill() State { return r.refill(true) }

// RefillWarm is Refill that never waits: it loads nothing, and returns Frozen instead. It is for those who hold a lock; they call
// Warm without it.
func (r *Reader) RefillWarm() State { return r.refill(false) }

func (r *Reader) refill(load bool) State {
	l := r.log
	for {
		c := l.committed.Load() // before all else; pairs with the stores in raise and Seal
		next := c >> 1
		if r.pos < l.first.Load() {
			r.Close()
			return Below
		}
		if r.pos >= next {
			return r.tail(next, c&sealedBit != 0)
		}
		if s := r.seg; s != nil {
			if end := s.end.Load(); r.pos < end { // after c: see Roll
				r.limit = min(next, end)
				return Ready
			}
			r.Close()
		}
		// A segment that is not there any more, or dead, was dropped since we looked at first: then the next turn finds
		// first above the position.
		if s := l.dir.Load().find(r.pos); s != nil && s.pin() {
			if !load && s.cold.Load() != nil {
				s.unpin()
				r.limit = r.pos
				return Frozen
			}
			if err := s.warm(); err != nil {
				s.unpin()
				if r.pos < l.first.Load() {
					continue // it has been dropped, which may be why
				}
				r.limit, r.err = r.pos, err
				return Unreadable
			}
			r.enter(s)
		}
	}
}

// tail is Refill at or beyond the committed length.
func (r *Reader) tail(next uint64, sealed bool) State {
	r.limit = r.pos
	if r.pos > next {
		r.Close()
		return Beyond
	}
	if r.seg != nil && r.seg.end.Load() == r.pos {
		r.Close() // nothing more comes here
	}
	// The bit and the length are one word, so next is final if the log is sealed.
	if sealed {
		return Sealed
	}
	return CaughtUp
}

// enter makes s, which is pinned or kept and has the position, the segment to read.
func (r *Reader) enter(s *segment) {
	i := int(r.pos - s.base)
	b := s.memory()
	r.seg, r.index, r.data, r.baseTime = s, b.index, b.data, s.baseTime
	r.at, r.behind = len(r.index)-1-i, 0
	r.start = s.start(i)
	if s.holds.Load()&holdsRows != 0 {
		_, first := s.covering(i)
		r.behind = int32(i - first)
		r.at += i - first
	}
}

// step moves behind n more records of the entry at r.at, which is for so many and whose bytes of these end at start.
func (r *Reader) step(n, records, start int) {
	r.pos += uint64(n)
	r.start = start
	if r.behind += int32(n); int(r.behind) == records {
		r.at, r.behind = r.at-records, 0
	}
}

// Prefetch has the processor fetch the next record's entry and bytes, both at once: where another processor has just
// written them, that is most of what it takes to read the first record of a window. The window must not be empty.
func (r *Reader) Prefetch() {
	if atomicx.Exploring {
		return
	}
	atomicx.Prefetch(unsafe.Pointer(&r.index[r.at]))
	if r.start < len(r.data) {
		atomicx.Prefetch(unsafe.Pointer(&r.data[r.start]))
	}
}
