package segment

import (
	"encoding/binary"
	"math"
	"strconv"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

const (
	// DefaultSegmentBytes is the SegmentBytes of a Config that says 0.
	DefaultSegmentBytes = 1 << 20

	// MaxRecordBytes is the most that key, value and headers of one record can be together.
	MaxRecordBytes = maxBlockBytes - besideBytes

	// MaxOffset is the largest length of a log, and so one more than the largest offset.
	MaxOffset = math.MaxInt64

	sealedBit   = 1       // of committed
	claimSealed = 1 << 63 // of claimed

	intBits = strconv.IntSize
)

// Config says how a Log cuts its records into segments. The zero value works.
type Config struct {
	// SegmentBytes is how many bytes a segment may take, record bytes and 16 for each index entry. 0 means
	// DefaultSegmentBytes; the most is 1 GiB. Blocks come in powers of two from 4 KiB, so another size wastes memory. A
	// record that needs more by itself gets the smallest block that it fits into, and others may follow it there.
	SegmentBytes int
	// SegmentRecords is how many records a segment may have. 0 means as many as fit.
	SegmentRecords int
	// First is the offset of the first record, at most MaxOffset.
	First uint64
	// Partition is what readers put into Record.Partition.
	Partition int32
	// Pool is where blocks come from. Nil means one of the log's own, without a bound, that keeps up to four segments.
	Pool *Pool
}

// Log is the records of one partition: a list of segments that one goroutine at a time, the appender, extends and cuts at
// the front, while any number of others read what it has published.
//
// # Roles
//
//   - appender: calls AttachCold, Reserve, ReserveRun, StageRun, Forgo, Append, Ensure, Staged, Published, Unpublished,
//     Publish, Unstage, Roll, Retained, Oldest, DropOldest, TruncateBefore and Seal. One goroutine at a time; the role may move
//     if something orders the move.
//   - reader: any goroutine, through a Reader of its own or by ReadAt, OffsetAt, TimeOf, Snapshot and the like.
//
// # Shared state
//
//	committed  stored by the appender, loaded by all: committed length << 1 | sealed
//	claimed    the length again, and whether it is sealed, for whoever takes himself for the appender: CASed from the length
//	           published last to the next, behind the store of committed; readers do not look at it
//	first      stored by the appender, loaded by all: oldest offset that may be read
//	dir        stored by the appender, loaded by all: the segments in order, each beginning where the one before ends
//	end, pins  of each segment, see there
//	block      of each segment: entries and bytes of records below committed are immutable and read by all; the rest is
//	           the appender's alone
//
// # Proof
//
// Publication. Reserve writes an entry, the caller fills in the bytes, and then Publish moves the length over them by a release
// store of committed. A reader loads committed and touches only records below the length it saw. So it has observed that store,
// and everything written before it synchronizes before its reads. Nothing writes these entries and bytes again as long as the
// segment is not dead (segment, Recycle), so its reads do not race. One word covers all segments: records staged in several of
// them appear at once.
//
// Order. Only the appender raises the length, each time from the value it published last. So the lengths that one reader
// sees never go back, and all readers see prefixes of one sequence. Behind each store it moves claimed by a CAS from the length
// before. That fails if somebody else has published or sealed meanwhile, which is a bug of the caller's and panics. And it is a
// full barrier, which the store is not: what the appender loads after Publish is loaded after others can see the records.
//
// It does not load committed, nor move that by the CAS. When a reader looks at the word its line leaves the appender's
// processor, so to get it back takes as long as to get a message across, and the records would not be visible before. A store
// only waits in line. From an appender to a reader that spins on a processor far away it is 530 ns instead of 720.
//
// Seal. Only the appender sets the bit, and it publishes nothing afterwards, since claimed tells it. So a length seen together
// with the bit is final: whoever finds its position at that length has read everything there will ever be.
//
// Roll. When a segment ends the appender stores its end, and puts the next one into dir before it publishes any offset from
// that end on. A reader loads committed before end and before dir. If the length it saw is beyond the end, both stores
// precede the one it observed, so it sees them: it never takes an entry of a full segment for a record, and it finds the
// next segment. If not, the length bounds its window, and what it sees of end does not matter. That is why Unstage may move
// an end back to the published length.
//
// Trim. The appender first raises first, then takes the segments out of dir, then kills them. A reader that does not find
// its position in dir, or cannot pin the segment it found there, therefore sees a first above its position when it looks
// again, and reports the gap. It never concludes that it has reached the end, since that is decided by committed alone.
//
// Directory. dir points to a slice that is never edited. Roll appends to its backing array only where no slice that was
// ever published from that array reaches; Trim publishes a shorter slice of it. Unstage, which takes segments off the far
// end, copies.
//
// Snapshot. first never passes the published length, and neither goes back. A reader that loads first and then committed
// therefore gets first <= committed.
//
// Progress. Readers are wait-free but for a retry each time that the appender drops the segment they were about to enter,
// and then they see the gap and return; whoever enters a cold segment waits until it is loaded (chill). The appender never waits.
//
// Not promised. Two appenders at once, of which one may be who seals: the CAS detects them and panics, but before it does a
// record may be lost, and readers may have seen the length go back or the seal vanish.
type Log struct {
	// Immutable.
	pool           *Pool
	segmentBytes   int
	segmentRecords uint64
	partition      int32
	topClass       uint8 // class of the block for segmentBytes

	// first is stored by the appender before it drops what lies below, and loaded by readers.
	first atomicx.Uint64

	// dir is stored by the appender when it opens or drops segments, and loaded by readers. It publishes the segments.
	dir atomicx.Pointer[directory]

	_ atomicx.Pad

	// The appender's own, plain on purpose: the race detector checks the claim. Those that Reserve uses come first.

	// The active segment: its index entries go down from index[top-1], its record bytes up from data[pos]. Without an
	// active segment all are 0.
	index    []entry
	data     []byte
	top      int
	pos      int
	baseTime int64
	newest   int64  // greatest append time so far
	since    uint64 // newest as it is written into an entry: after baseTime, shifted
	next     uint64 // offset of the next staged record
	until    uint64 // where the active segment must end
	ahead    ahead  // what has been fetched of it

	published uint64         // length that Publish stored last
	claimed   atomicx.Uint64 // the same, CASed by Publish; Seal sets claimSealed. It publishes no memory
	low       uint64         // same as first
	active    *segment
	segs      []place // same as dir
	ended     int64   // bytes of the retained segments that have ended
	upTo      int64   // at least the greatest timestamp in them
	class     uint8   // class of the next block
	sealed    bool    // Publish has met the seal
	reserved  bool    // a Reservation is out

	// Of the active segment: how many records have a timestamp of their own, and the greatest of these.
	explicit       uint64
	newestExplicit int64

	// committed is stored by the appender (length << 1, and bit 0 once it is sealed), and loaded by all. Raising the length
	// publishes all entries and record bytes below it.
	committed atomicx.PaddedUint64
}

// NewLog returns an empty log. It takes no block before the first append. It panics if the config makes no sense.
func NewLog(c Config) *Log {
	switch {
	case c.SegmentBytes < 0 || c.SegmentBytes > maxBlockBytes:
		panic("segment: SegmentBytes out of range")
	case c.SegmentRecords < 0:
		panic("segment: SegmentRecords is negative")
	case c.First > MaxOffset:
		panic("segment: First out of range")
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	if c.Pool == nil {
		c.Pool = NewPool(0, 4<<classFor(uint64(c.SegmentBytes)))
	}
	l := &Log{
		pool:           c.Pool,
		segmentBytes:   max(c.SegmentBytes&^(EntryBytes-1), EntryBytes),
		segmentRecords: uint64(c.SegmentRecords),
		partition:      c.Partition,
		topClass:       classFor(uint64(c.SegmentBytes)),
		newest:         math.MinInt64,
		upTo:           math.MinInt64,
		next:           c.First,
		published:      c.First,
		low:            c.First,
		class:          minClass,
	}
	if l.segmentRecords == 0 {
		l.segmentRecords = math.MaxUint64
	}
	l.first.Store(c.First)
	l.dir.Store(&directory{})
	l.committed.Store(c.First << 1)
	l.claimed.Store(c.First)
	return l
}

// Append stages a copy of r: Reserve and CopyTo. Most records have neither headers nor a timestamp, and fit: these go without a Shape in
// between.
func (l *Log) Append(r *Record, now int64) error {
	k, v, room := len(r.Key), len(r.Value), l.room()
	if r.Timestamp != 0 || len(r.Headers.raw) > 0 || k > room || v > room-k || l.next == l.until || !l.at(now) {
		dst, err := l.Reserve(r.Shape(), now)
		if err == nil {
			r.CopyTo(dst)
		}
		return err
	}
	stamp := l.since
	if r.Key == nil {
		stamp |= flagNilKey
	}
	if r.Value == nil {
		stamp |= flagNilValue
	}
	dst := l.stage(k, k+v, stamp)
	l.fetchAhead()
	if k > 0 {
		dst = dst[copy(dst, r.Key):]
	}
	copy(dst, r.Value)
	return nil
}

// Reserve stages one record and returns the place for its headers, key and value, in that order, which the caller must fill
// before it calls Publish. The record gets offset Staged. now is the append time; one that is smaller than an earlier one
// counts as that one, so that append times never go back.
//
// If it fails nothing has changed: ErrNoMemory (can be tried again), ErrTooLarge, ErrExhausted, or ErrSealed once Publish
// has returned that.
func (l *Log) Reserve(s Shape, now int64) (dst []byte, err error) {
	// All ones if negative. Nil is flagged without a branch, since keys may be now nil and now not.
	nilKey, nilValue := s.Key>>(intBits-1), s.Value>>(intBits-1)
	k, v := s.Key&^nilKey, s.Value&^nilValue
	room := l.room()
	if int64(s.Headers)|s.Timestamp != 0 || v > room || k > room-v || now > l.newest || l.next == l.until {
		return l.reserve(s, now)
	}
	dst = l.stage(k, k+v, l.since|uint64(nilKey)&flagNilKey|uint64(nilValue)&flagNilValue)
	l.fetchAhead()
	return dst, nil
}

// at makes now the append time of the records that come next, unless that is a later one already. It changes nothing and returns false
// if the active segment cannot hold so late a time.
func (l *Log) at(now int64) bool {
	if now > l.newest {
		since := uint64(now - l.baseTime)
		if since > maxSince {
			return false
		}
		l.newest, l.since = now, since<<stampBits
	}
	return true
}

// room returns how many record bytes the active segment has room for, beside the entry; it may be negative.
func (l *Log) room() int { return l.top*EntryBytes - l.pos - EntryBytes }

// stage writes the index entry for a record of n bytes that is known to fit, and returns its bytes.
func (l *Log) stage(key, n int, stamp uint64) []byte {
	start := l.pos
	end := start + n
	top := l.top - 1
	e := &l.index[top]
	atomicx.Writes(unsafe.Pointer(e))
	e.span = uint64(end)<<32 | uint64(key)
	e.stamp = stamp
	l.top = top
	l.pos = end
	l.next++
	if atomicx.Exploring && n > 0 {
		atomicx.Writes(unsafe.Pointer(&l.data[start]))
	}
	return l.data[start:end:end]
}

// reserve is Reserve for records that have headers or a timestamp, come at a new time, or need a new segment.
func (l *Log) reserve(s Shape, now int64) (dst []byte, err error) {
	if l.sealed {
		return nil, ErrSealed
	}
	if l.next == MaxOffset {
		return nil, ErrExhausted
	}
	var flags uint64
	k, v, h, extra := s.Key, s.Value, max(s.Headers, 0), 0
	if k < 0 {
		k, flags = 0, flags|flagNilKey
	}
	if v < 0 {
		v, flags = 0, flags|flagNilValue
	}
	if s.Timestamp != 0 {
		extra, flags = timestampBytes, flags|flagHasTimestamp
	}
	if h > 0 {
		extra, flags = extra+headersLenBytes, flags|flagHasHeaders
	}
	// Each is checked by itself first, so that no sum can wrap, also where int has 32 bits.
	size := uint64(math.MaxUint64)
	if k <= MaxRecordBytes && v <= MaxRecordBytes && h <= MaxRecordBytes {
		size = uint64(k) + uint64(v) + uint64(h)
	}
	if limit := l.pool.maxRecord(); size > limit {
		return nil, &SizeError{Size: size, Limit: limit}
	}

	n := int(size) + extra
	full := n > l.room()
	now = max(now, l.newest)
	if full || uint64(now-l.baseTime) > maxSince || l.next == l.until {
		if !l.openSegment(n+EntryBytes, full, now) {
			return nil, ErrNoMemory
		}
	}
	l.newest = now
	l.since = uint64(now-l.baseTime) << stampBits
	dst = l.stage(k, n, l.since|flags)
	l.fetchAhead()
	if s.Timestamp != 0 {
		if l.explicit == 0 {
			l.active.mark(holdsTimes)
		}
		l.noteExplicit(s.Timestamp)
		binary.LittleEndian.PutUint64(dst, uint64(s.Timestamp))
		dst = dst[timestampBytes:]
	}
	if h > 0 {
		binary.LittleEndian.PutUint32(dst, uint32(h))
		dst = dst[headersLenBytes:]
	}
	return dst, nil
}

// Ensure sees to it that the next records, so many of up to n bytes together (headers, keys, values, 8 for each timestamp
// and 4 for each record with headers, but not the index entries), can be staged without memory from the pool if they come
// at time now or later: either the active segment has room for them all, or one is opened that has, whatever SegmentRecords
// says.
//
// If it fails nothing has changed: ErrNoMemory (can be tried again), ErrTooLarge if no block could hold them all,
// ErrExhausted if not even one more offset is left, or ErrSealed once Publish has returned that.
func (l *Log) Ensure(n int64, records int, now int64) error {
	switch {
	case l.sealed:
		return ErrSealed
	case l.next == MaxOffset:
		return ErrExhausted
	}
	limit := l.pool.largest()
	if n > limit || int64(records) > limit/EntryBytes || n+int64(records)*EntryBytes > limit {
		return &SizeError{Size: uint64(n), Limit: uint64(max(limit-int64(records)*EntryBytes, 0))}
	}
	need := int(n) + records*EntryBytes
	now = max(now, l.newest)
	full := need > l.room()+EntryBytes
	if !full && uint64(records) <= l.until-l.next && uint64(now-l.baseTime) <= maxSince/2 {
		return nil
	}
	if !l.openSegment(need, full, now) {
		return ErrNoMemory
	}
	l.until = max(l.until, l.next+min(uint64(records), MaxOffset-l.next))
	l.newest, l.since = now, 0 // what Reserve goes by is now relative to this segment
	return nil
}

// noteExplicit counts a record of the active segment that has a timestamp of its own.
func (l *Log) noteExplicit(t int64) {
	if l.explicit == 0 || t > l.newestExplicit {
		l.newestExplicit = t
	}
	l.explicit++
}

// openSegment ends the active segment and opens one that has room for a record of need bytes, entry included. It changes
// nothing if the pool refuses.
func (l *Log) openSegment(need int, grow bool, now int64) bool {
	want := l.class
	if grow && l.active != nil && want < l.topClass && l.active.block.class >= want {
		want++ // the last one was filled to the end: the log is busy
	}
	least := classFor(uint64(need))
	want = max(want, least)
	b, ok := l.pool.get(want, least)
	if !ok {
		return false
	}
	l.Roll()

	usable := int(b.size())
	if need <= l.segmentBytes {
		l.class = b.class
		usable = min(usable, l.segmentBytes)
	}
	b.index = b.index[:usable/EntryBytes] // the capacity stays, for the pool
	s := &segment{base: l.next, baseTime: now, block: b}
	s.end.Store(open)

	l.active = s
	l.index, l.data, l.top, l.pos = b.index, b.data, len(b.index), 0
	l.ahead = newAhead(len(b.index))
	l.baseTime = now
	l.until = MaxOffset
	if l.segmentRecords < MaxOffset-l.next {
		l.until = l.next + l.segmentRecords
	}
	l.explicit = 0
	l.extend(s)
	return true
}

// Staged returns the offset that the next record gets.
func (l *Log) Staged() uint64 { return l.next }

// Published returns what Committed does. It is the appender's, and does not look where readers do, which would cost both.
func (l *Log) Published() uint64 { return l.published }

// Unpublished returns how many records are staged and not yet published.
func (l *Log) Unpublished() int { return int(l.next - l.published) }

// Publish makes all staged records visible at once. It returns ErrSealed after Seal; then they are dropped and will never be
// visible. It panics if a second appender has published meanwhile.
//
// It is a full barrier: a load that the caller makes after it is not served before others see the records.
func (l *Log) Publish() error {
	if l.next == l.published {
		return nil
	}
	if l.claimed.Load() != l.published { // not committed: see Order
		return l.refused()
	}
	l.raise()
	return nil
}

// raise makes all that is staged visible, in a log that is not sealed.
func (l *Log) raise() {
	// Publishes everything below next. Pairs with the Loads of committed in Refill, ReadAt and the searches.
	atomicx.StoreRelease(&l.committed.Uint64, l.next<<1)
	if !l.claimed.CompareAndSwap(l.published, l.next) { // behind the store: see Order
		panic("segment: two appenders")
	}
	l.published = l.next
}

// refused ends the log for the appender after it has found something else in claimed than it left there.
func (l *Log) refused() error {
	if l.claimed.Load() != l.published|claimSealed {
		panic("segment: two appenders")
	}
	l.Unstage()
	l.Roll()
	l.sealed = true
	return ErrSealed
}
