package segment

import (
	"sort"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// First returns the oldest offset that can be read.
func (l *Log) First() uint64 { return l.first.Load() }

// Committed returns the committed length: one more than the newest offset that can be read.
func (l *Log) Committed() uint64 { return l.committed.Load() >> 1 }

// Sealed reports whether Seal has been called.
func (l *Log) Sealed() bool { return l.committed.Load()&sealedBit != 0 }

// Segments returns how many segments there are, staged ones too.
func (l *Log) Segments() int { return len(l.dir.Load().segs) }

// Bytes returns how many bytes the segments hold of what is published, as Retained counts them, so that nobody has to note it for each
// batch. A place is never changed, and Unstage corrects the size of a segment only where it takes off all places behind it; so what a
// directory says lies between two of its segments is right for as long as somebody has it.
func (l *Log) Bytes() int64 {
	for {
		c := l.committed.Load() // before the directory; pairs with the store in raise
		next := c >> 1
		if next == 0 {
			return 0
		}
		d := l.dir.Load()
		i := d.index(next - 1)
		if i < 0 { // all that was published then has been dropped
			if l.committed.Load() == c {
				return 0
			}
			continue
		}
		atomicx.Reads(unsafe.Pointer(&d.segs[0]))
		atomicx.Reads(unsafe.Pointer(&d.segs[i]))
		if n, ok := d.segs[i].seg.bytesOf(int(next - d.segs[i].base)); ok {
			return d.segs[i].before - d.segs[0].before + n
		}
	}
}

// bytesOf returns how many bytes the first n records take, which are published; if it is cold n are all. It fails if s is dead.
func (s *segment) bytesOf(n int) (bytes int64, ok bool) {
	if s.cold.Load() != nil {
		return s.bytes, true // written before s was in the directory, and not again
	}
	if !s.pin() {
		return 0, false
	}
	bytes = int64(s.start(n)) + int64(n)*EntryBytes
	s.unpin()
	return bytes, true
}

// Snapshot returns First and Committed, with first <= next.
func (l *Log) Snapshot() (first, next uint64) {
	first = l.first.Load() // this one first: see Snapshot in the proof of Log
	return first, l.Committed()
}

// prefetch fetches the memory where the record at off begins if the segment is full and all its records have one size.
// Whoever reads at random waits for two lines of memory, the entry and the bytes that it leads to; if the guess is right,
// for both at once.
func (s *segment) prefetch(off uint64) {
	end := s.end.Load()
	if end == open {
		return
	}
	used := uint64(len(s.block.index)) * EntryBytes
	if at := (off - s.base) * (used/(end-s.base) - EntryBytes); at < uint64(len(s.block.data)) {
		atomicx.Prefetch(unsafe.Pointer(&s.block.data[at]))
	}
}

// ReadAt reads records from off on into dst and returns how many: as many as there are and dst has room for, but maybe
// fewer if the log is being cut just then; at least one if there is one and dst has room. It returns 0 without an error at
// the committed length, ErrBelow below First, and ErrBeyond above the committed length. A cold segment is loaded, which may wait
// for a disk; if the record at off cannot be, the error is the one that came of it, and to try again may help.
//
// What it returns stays valid as long as it is held. The price is that the blocks it points into are never reused: they are
// left to the collector once they are dropped.
func (l *Log) ReadAt(off uint64, dst []Record) (n int, err error) {
	r := Reader{log: l, partition: l.partition}
	for {
		c := l.committed.Load() >> 1 // before all else; pairs with the store in raise
		switch {
		case off < l.first.Load():
			if n == 0 {
				err = ErrBelow
			}
			return n, err
		case off > c:
			return n, ErrBeyond
		case off == c || n == len(dst):
			return n, nil
		}
		s := l.dir.Load().find(off)
		if s == nil || !s.keep() {
			continue // dropped since we looked at first: the next turn sees it there
		}
		if err := s.warm(); err != nil {
			switch {
			case n > 0:
				return n, nil
			case off >= l.first.Load():
				return 0, err
			}
			continue // it has been dropped, which may be why
		}
		s.prefetch(off)
		r.pos = off
		r.enter(s)
		r.limit = min(c, s.end.Load(), off+uint64(len(dst)-n)) // end after c: see Roll
		for r.Next(&dst[n]) {
			n++
			if n == len(dst) {
				return n, nil
			}
		}
		off = r.pos
	}
}

// TimeOf returns the append time of the record at off; ok is false if it is not there. If the record is in a cold segment it does
// not wait for that to be loaded, and returns a time that may be earlier: when the first record of the segment was appended, or
// before.
func (l *Log) TimeOf(off uint64) (appendTime int64, ok bool) {
	for {
		c := l.committed.Load() >> 1 // before all else; pairs with the store in raise
		if off < l.first.Load() || off >= c {
			return 0, false
		}
		if s := l.dir.Load().find(off); s != nil && s.pin() {
			appendTime = s.baseTime
			if s.cold.Load() == nil {
				appendTime = s.appendTime(int(off - s.base))
			}
			s.unpin()
			return appendTime, true
		}
	}
}

// OffsetAt returns the smallest retained offset whose timestamp (its own, or else its append time) is t or later, and the
// committed length if there is none. Timestamps may be in any order.
//
// Cold segments are loaded if they may have such a record; those that cannot, going by what was said when they were attached, are
// passed over. If one cannot be loaded the error is the one that came of it.
func (l *Log) OffsetAt(t int64) (uint64, error) {
	for {
		c := l.committed.Load() >> 1 // before all else; pairs with the store in raise
		off, err := l.search(t, l.first.Load(), c)
		if l.first.Load() <= off {
			return off, err
		}
		// What was found, or where it should have been, has been dropped meanwhile.
	}
}

// search is OffsetAt among [first, next), where the log may be cut meanwhile. With an error it returns what could not be loaded.
func (l *Log) search(t int64, first, next uint64) (uint64, error) {
	d := l.dir.Load()
	segs := d.segs[max(d.index(first), 0):]
	segs = segs[sort.Search(len(segs), func(i int) bool { return segs[i].seg.mayHaveUpTo(t) }):]
	for _, p := range segs {
		s := p.seg
		if s.base >= next {
			break
		}
		if s.end.Load() <= first || !s.mayHave(t) || !s.pin() {
			continue // nothing here, or not any more
		}
		if err := s.warm(); err != nil {
			s.unpin()
			return max(first, s.base), err
		}
		// The end after the committed length was loaded: see Roll. If first has moved beyond next, there is nothing
		// between.
		lo, hi := int(max(first, s.base)-s.base), int(min(s.end.Load(), next)-s.base)
		i := s.search(t, lo, hi)
		s.unpin()
		if i < hi {
			return s.base + uint64(i), nil
		}
	}
	return next, nil
}

// search returns the first of the records [lo, hi) whose timestamp is t or later, or hi. The segment is pinned.
func (s *segment) search(t int64, lo, hi int) int {
	if s.holds.Load()&holdsTimes == 0 { // before their Publish; see mark
		return lo + sort.Search(hi-lo, func(i int) bool { return s.appendTime(lo+i) >= t })
	}
	for lo < hi && s.timestamp(lo) < t {
		lo++
	}
	return lo
}
