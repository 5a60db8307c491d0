package segment

import (
	"errors"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// Cold describes a segment whose records are somewhere else, and are loaded when somebody reads them.
type Cold struct {
	// First and End are the offsets of the records: [First, End).
	First, End uint64
	// Bytes is exactly what they take, index entries included, as Retained counts it.
	Bytes int64
	// No record was appended before Oldest, the last one was at Newest, and no timestamp, of a record's own or of its append, is
	// greater than Latest.
	Oldest, Newest, Latest int64
	// Load stages the records in a log that stands at First, by Reserve, Append or a Reservation, all of them and no more, as they were when
	// they were appended. It must not publish, nor use the log after it has returned. It may wait, and is called by readers on
	// their goroutines, by one at a time and again after it has failed; until it has succeeded. It must not call anything of the
	// log that the segment was attached to.
	Load func(to *Log) error
}

// ErrCold says that what Load has staged is not what Cold had announced. To try again does not help unless the source changes.
var ErrCold = errors.New("segment: records are not what was announced")

// chill is what there is of a segment whose block has not been loaded yet.
//
// # Roles
//
//   - reader: any goroutine that has pinned the segment, or kept it. The first of them loads; others wait for it.
//   - appender: the log's appender. It reads newestAppend, and kills the segment.
//
// # Shared state
//
//	mu          held by the reader that loads
//	block       of the segment: empty while it is cold, written once under mu, and from then on as in any other
//	cold        of the segment: stored as nil once, under mu, after the block; loaded by readers after they have pinned
//	the rest    immutable
//
// # Proof
//
// Publication. The loader fills a block that nobody else has, puts it into the segment, marks it if need be, and then
// stores nil in cold. A reader touches the block only after it has loaded nil, so everything that was written before the store
// synchronizes before its reads. What the reader has to know beside the block (base, baseTime, end, newest, upTo) was there
// before the segment was in the directory, and does not change.
//
// Once. Block and cold are written under mu by a reader that has found cold not nil under the same hold. After the store of nil
// nobody finds that any more. So the block is written once, and not while somebody reads it.
//
// Kill. Whoever loads has a pin, or has kept the segment, from before it looks at cold until after the block is there or the
// load has failed. A kill before that makes the pin fail, and nothing is loaded. A kill while it loads fails, since pins is not 0,
// and never comes again: the appender leaves the segment, and does not look at the block, which may be written just then. A kill
// after it, with all pins given back, comes after the unpin, and so after the write of the block: then the appender clears what
// is there, an empty block or a loaded one. So a cold segment can be dropped at any time without anything being loaded for it, and
// never waits for who loads.
//
// Failure. If the load fails nothing has been written: the segment is cold as before, and the next reader tries again.
//
// Progress. Who finds the segment cold waits for the source: this is the one place where a reader of a Log waits. Who finds it
// warm has made one load more than in a log without cold segments. The appender never waits.
//
// Not promised. That a segment gets cold again: once loaded it keeps its block until it is dropped.
type chill struct {
	load         func(to *Log) error
	newestAppend int64

	mu atomicx.Mutex
}

// AttachCold adds a segment behind all that there is, and publishes its records. It is the appender's, and for a log in which
// nothing has been appended yet. The first one may begin before First, if it ends after it. The pool counts the block from now
// on, so that a reader never fails for lack of memory.
//
// If it fails nothing has changed: ErrNoMemory (as for Reserve), ErrTooLarge if the records cannot be in one segment, or
// ErrSealed.
func (l *Log) AttachCold(c Cold) error {
	if l.active != nil || l.next != l.published || c.End <= c.First || c.End > MaxOffset || c.Load == nil || c.Bytes <= 0 ||
		c.First > l.next || c.End <= l.next || c.First < l.next && len(l.segs) > 0 || c.Oldest > c.Newest {
		panic("segment: AttachCold out of order")
	}
	own := (c.Bytes + EntryBytes - 1) &^ (EntryBytes - 1)
	if c.Bytes > maxBlockBytes || uint64(c.Newest)-uint64(c.Oldest) > maxSince || c.End-c.First > uint64(own/EntryBytes) {
		return &SizeError{Size: uint64(c.Bytes), Limit: MaxRecordBytes}
	}
	if l.Sealed() {
		return ErrSealed
	}
	if !l.pool.reserve(own) {
		return ErrNoMemory
	}
	s := &segment{base: c.First, baseTime: c.Oldest, own: own, newest: c.Latest, upTo: max(l.upTo, c.Latest), bytes: c.Bytes}
	s.end.Store(c.End)
	s.cold.Store(&chill{load: c.Load, newestAppend: c.Newest})
	l.extend(s)
	l.next = c.End
	l.upTo, l.ended, l.newest = s.upTo, l.ended+c.Bytes, max(l.newest, c.Newest)
	l.raise()
	return nil
}

// Cold returns how many segments there are that have not been loaded. Any goroutine may call it.
func (l *Log) Cold() (n int) {
	for _, p := range l.dir.Load().segs {
		if p.seg.cold.Load() != nil {
			n++
		}
	}
	return n
}

// Warm loads the segment that has an offset, if it is cold and still there. The error is the one that came of it. Any goroutine may
// call it.
func (l *Log) Warm(off uint64) error {
	for {
		c := l.committed.Load() >> 1 // before all else; pairs with the store in raise
		if off < l.first.Load() || off >= c {
			return nil
		}
		s := l.dir.Load().find(off)
		if s == nil || !s.pin() {
			continue // dropped since we looked at first: the next turn sees it there
		}
		err := s.warm()
		s.unpin()
		if err == nil || off >= l.first.Load() {
			return err
		}
	}
}

// warm makes sure that the block is there. The caller has a pin, or has kept the segment, or is the appender.
func (s *segment) warm() error {
	if s.cold.Load() == nil { // pairs with the Store in thaw
		return nil
	}
	return s.thaw()
}

// thaw is warm for a segment that was found cold.
func (s *segment) thaw() error {
	c := s.cold.Load()
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.cold.Load() == nil {
		return nil // somebody else has
	}
	b, holds, err := s.fill(c.load)
	if err != nil {
		return err
	}
	atomicx.Writes(unsafe.Pointer(&s.block))
	s.block = b
	s.mark(holds)
	s.cold.Store(nil) // publishes the block; pairs with the Load in warm
	return nil
}

// full is a pool that has nothing.
var full = &Pool{max: maxBlockBytes, used: maxBlockBytes}

// fill returns the block for s, filled by load, and what it holds. It is the active segment of a log of its own, which has no memory beside it.
func (s *segment) fill(load func(to *Log) error) (b block, holds uint32, err error) {
	end := s.end.Load()
	b = blockOf(make([]entry, s.own/EntryBytes), 0)
	into := &segment{base: s.base, baseTime: s.baseTime, block: b}
	into.end.Store(open)
	l := NewLog(Config{First: s.base, Pool: full})
	l.active, l.index, l.data, l.top = into, b.index, b.data, len(b.index)
	l.baseTime, l.newest, l.since, l.until = s.baseTime, s.baseTime, 0, end
	l.extend(into)
	switch err := load(l); {
	case errors.Is(err, ErrNoMemory): // there is more than there should be
		return block{}, 0, errors.Join(ErrCold, err)
	case err != nil:
		return block{}, 0, err
	case l.active != into || l.published != s.base || l.next != end:
		return block{}, 0, ErrCold
	}
	return b, into.holds.Load(), nil
}
