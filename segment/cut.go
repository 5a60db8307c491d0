package segment

import (
	"math"
	"slices"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// Info describes one segment.
type Info struct {
	// First and End are the offsets that can be read in it: [First, End).
	First, End uint64
	// Bytes is what it adds to Retained: record bytes and index entries of the whole segment, staged ones too.
	Bytes int64
	// NewestAppend is the append time of the record before End.
	NewestAppend int64
	// Active says that the next record may still go into it.
	Active bool
}

// Roll ends the active segment, if there is one: the next record opens another.
func (l *Log) Roll() {
	s := l.active
	if s == nil {
		return
	}
	if s.base == l.next {
		l.discard(s)
		return
	}
	s.bytes = l.activeBytes()
	atomicx.Writes(unsafe.Pointer(&s.newest))
	s.newest = l.newest
	switch l.explicit {
	case 0:
	case l.next - s.base:
		s.newest = l.newestExplicit
	default:
		s.newest = max(l.newest, l.newestExplicit)
	}
	l.upTo = max(l.upTo, s.newest)
	s.upTo = l.upTo
	l.ended += s.bytes
	s.end.Store(l.next) // before any offset from here on is published; pairs with the Load in Refill
	l.leave()
}

// discard takes an active segment off again that has no record, because Ensure opened it and nothing came. Were it to stay
// as the oldest, nothing behind it could ever be dropped. No reader has it, since none looks for an offset that is not
// published.
func (l *Log) discard(s *segment) {
	l.leave()
	l.setDir(slices.Clone(l.segs[:len(l.segs)-1])) // a copy: see Directory in the proof of Log
	l.reuse(s)
}

// leave makes the log have no active segment. Whatever ends one comes by here, before its block may go back to the pool.
func (l *Log) leave() {
	if l.reserved {
		l.active.keep() // the holder of the reservation goes on writing there: see Reservation
		l.reserved = false
	}
	l.active, l.index, l.data, l.top, l.pos = nil, nil, nil, 0, 0
}

// activeBytes returns what the active segment adds to Retained.
func (l *Log) activeBytes() int64 { return int64(l.pos) + int64(len(l.index)-l.top)*EntryBytes }

// Unstage drops all staged records. The next one gets the offset of the first of them.
func (l *Log) Unstage() {
	if l.next == l.published {
		return
	}
	l.next = l.published
	kept := len(l.segs)
	for kept > 0 && l.segs[kept-1].base >= l.published {
		kept--
	}
	if s := l.active; s != nil && kept == len(l.segs) {
		l.rewind(s, int(l.published-s.base))
	} else {
		l.unroll(kept)
	}
	if l.low == l.published {
		l.Roll()
		l.drop(len(l.segs), l.low) // staged records were all that kept the last segment
	}
}

// unroll is Unstage where the records are in several segments, or in one that has ended. The segments from kept on hold
// nothing else and go; the one before them ends where the published records do.
func (l *Log) unroll(kept int) {
	gone := l.segs[kept:]
	for _, p := range gone {
		if p.seg != l.active {
			l.ended -= p.seg.bytes
		}
	}
	l.leave()
	if s := l.last(kept); s != nil && s.end.Load() != l.published { // a cold one ends there
		n := int(l.published - s.base)
		bytes := int64(s.start(n)) + int64(n)*EntryBytes
		l.ended += bytes - s.bytes
		s.bytes = bytes
		s.end.Store(l.published)
	}
	l.setDir(slices.Clone(l.segs[:kept]))
	for _, p := range gone {
		l.reuse(p.seg)
	}
}

// last returns the last one of the first n segments, or nil if that is none.
func (l *Log) last(n int) *segment {
	if n == 0 {
		return nil
	}
	return l.segs[n-1].seg
}

// rewind takes all records of the active segment but the first n off it again.
func (l *Log) rewind(s *segment, n int) {
	l.pos, l.top = s.start(n), len(l.index)-n
	l.explicit = 0
	for i := 0; i < n; {
		e := s.block.entry(i)
		if e.stamp&flagHasTimestamp != 0 {
			l.noteExplicit(s.timestamp(i))
		}
		i += e.records()
	}
}

// Retained returns how many records there are from First on, how many bytes the segments hold (record bytes and index
// entries, whole segments, also what TruncateBefore has cut off inside the oldest), and how many segments there are. Staged
// records count.
func (l *Log) Retained() (records, bytes int64, segments int) {
	return int64(l.next - l.low), l.ended + l.activeBytes(), len(l.segs)
}

// Oldest describes the oldest segment; ok is false if no published record is in it.
func (l *Log) Oldest() (info Info, ok bool) {
	if len(l.segs) == 0 {
		return Info{}, false
	}
	s := l.segs[0].seg
	info = Info{First: max(s.base, l.low), End: min(s.end.Load(), l.published), Bytes: s.bytes, Active: s == l.active}
	if info.Active {
		info.Bytes = l.activeBytes()
	}
	if info.End <= info.First {
		return Info{}, false
	}
	if c := s.cold.Load(); c != nil {
		info.NewestAppend = c.newestAppend
	} else {
		info.NewestAppend = s.appendTime(int(info.End - s.base - 1))
	}
	return info, true
}

// DropOldest drops the oldest segment and reports whether it did. The active one can go too; it is rolled first. It drops
// no segment that has staged records.
func (l *Log) DropOldest() bool {
	if len(l.segs) == 0 {
		return false
	}
	s := l.segs[0].seg
	if s == l.active && l.next == l.published {
		if l.Roll(); len(l.segs) == 0 {
			return true // it had no record
		}
	}
	end := s.end.Load()
	if end > l.published {
		return false
	}
	l.drop(1, end)
	return true
}

// TruncateBefore drops all records below off, or all that are published if off is above. They cannot be read any more, at
// once; the memory comes back by whole segments.
func (l *Log) TruncateBefore(off uint64) {
	off = min(off, l.published)
	if off <= l.low {
		return
	}
	if off == l.next {
		l.Roll()
	}
	n := 0
	for n < len(l.segs) && l.segs[n].seg.end.Load() <= off {
		n++
	}
	l.drop(n, off)
}

// drop makes first the oldest offset and drops the oldest n segments, all of which end at or before first.
func (l *Log) drop(n int, first uint64) {
	// First this, so that a reader who misses a segment finds out why; pairs with the Loads of first in Refill and ReadAt.
	if first > l.low {
		l.low = first
		l.first.Store(first)
	}
	if n == 0 {
		return
	}
	gone := l.segs[:n]
	l.setDir(l.segs[n:])
	if len(l.segs) == 0 {
		l.upTo = math.MinInt64
	}
	all := true
	for _, p := range gone {
		l.ended -= p.seg.bytes
		all = l.reuse(p.seg) && all
	}
	if !all {
		// The backing array still points to a segment that must go when its last view does.
		l.setDir(slices.Clone(l.segs))
	}
}

// reuse gives the block of a segment that is in dir no longer back to the pool. If somebody may still read it, it is left
// to the collector, and reuse returns false.
func (l *Log) reuse(s *segment) bool {
	if !s.kill() {
		l.pool.forget(s.size())
		return false
	}
	if s.own > 0 {
		l.pool.drop(s.block, s.own)
	} else {
		l.pool.put(s.block)
	}
	atomicx.Writes(unsafe.Pointer(&s.block))
	s.block = block{} // nobody looks at it any more; and what the pool lets go is not kept alive here
	return true
}

// Seal ends the log: no later Publish succeeds, and what is staged is never visible. It returns the final committed length.
// Sealing twice is fine. It is the appender's: a Publish at the same time panics.
func (l *Log) Seal() uint64 {
	l.claimed.Or(claimSealed) // Publish looks there, and nowhere else
	l.committed.Or(sealedBit) // readers look here; a full barrier, as Publish is
	return l.Committed()
}
