package segment

import "slices"

// EntryBytes is what each record takes in a segment beside its own bytes.
const EntryBytes = entryBytes

// Encoded returns the encoded list, which must not be changed. Its length is what Shape.Headers asks for.
func (h Headers) Encoded() []byte { return h.raw }

// Ensure sees to it that the next records, so many of up to n bytes together (headers, keys, values and what goes with them,
// without the index entries), can be staged without memory from the pool if they come at time now or later: either the active
// segment has room for them all, or one is opened that has, whatever SegmentRecords says. It fails with ErrNoMemory if the
// pool refuses, and with ErrTooLarge if it could never help. Then nothing has changed.
func (l *Log) Ensure(n int64, records int, now int64) error {
	need := n + int64(records)*entryBytes
	if limit := l.pool.largest(); need > limit {
		return &SizeError{Size: uint64(need), Limit: uint64(limit)}
	}
	now = max(now, l.newest)
	full := need > int64(l.room()+entryBytes)
	if !full && uint64(records) <= l.until-l.next && uint64(now-l.baseTime) <= maxSince/2 {
		return nil
	}
	if !l.openSegment(int(need), full, now) {
		return ErrNoMemory
	}
	l.until = max(l.until, l.next+min(uint64(records), MaxOffset-l.next))
	l.newest, l.since = now, 0 // what Reserve goes by is now relative to this segment
	return nil
}

// discard takes an active segment off again that has no record: Ensure has opened it in vain. Were it to stay as the oldest,
// nothing behind it could ever be dropped. No reader has it, since none looks for an offset that is not published.
func (l *Log) discard(s *segment) {
	l.leave()
	l.setDir(slices.Clone(l.segs[:len(l.segs)-1])) // a copy: see Directory in the proof of Log
	l.reuse(s)
}

// Largest returns the size of the largest block that the pool could ever hand out, or 0 if it has no budget. Records that
// take more together, with their index entries, need not fit.
func (p *Pool) Largest() int64 {
	if p.max == 0 {
		return 0
	}
	return p.largest()
}

func (p *Pool) largest() int64 { return int64(p.maxRecord() + besideBytes) }

// Segments returns how many segments there are. Any goroutine may call it.
func (l *Log) Segments() int { return len(l.dir.Load().segs) }
