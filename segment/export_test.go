package segment

import "unsafe"

// SetPublished makes the appender believe that it published up to next last, as a second appender would.
func (l *Log) SetPublished(next uint64) { l.published = next }

// Bases returns the bases of the segments, for a recount.
func (l *Log) Bases() []uint64 {
	var bases []uint64
	for _, p := range l.dir.Load().segs {
		bases = append(bases, p.base)
	}
	return bases
}

// OldestBase returns the base of the oldest segment or, if there is none, an offset below which none begins from now on.
func (l *Log) OldestBase() uint64 {
	next := l.Committed() // before the directory
	if segs := l.dir.Load().segs; len(segs) > 0 {
		return segs[0].base
	}
	return next
}

// Ahead returns how many bytes and entries behind what is staged have been fetched, and how many of each there are.
func (l *Log) Ahead() (bytes, entries, ofBytes, ofEntries int) {
	return l.ahead.pos - l.pos, l.top - l.ahead.top, len(l.data) - l.pos, l.top
}

// How much of them there is: see ahead.
const (
	BytesAhead   = bytesAhead
	EntriesAhead = entriesAhead
	FetchEach    = fetchEach
)

// Active returns something that tells one active segment from the next.
func (l *Log) Active() any { return l.active }

// Poison makes the pool overwrite every block that comes back, so that a view that outlived its block shows.
func (p *Pool) Poison() *Pool {
	p.poison = true
	return p
}

// Pins returns how many pins the segment that has off holds, and whether it is kept.
func (l *Log) Pins(off uint64) (pins int, kept bool) {
	v := l.dir.Load().find(off).pins.Load()
	return int(v &^ (pinsDead | pinsKept)), v&pinsKept != 0
}

// Since is OffsetAt of a log without cold segments, where it does not fail.
func (l *Log) Since(t int64) uint64 {
	off, err := l.OffsetAt(t)
	if err != nil {
		panic(err)
	}
	return off
}

// Newest returns the greatest timestamp that segment i of the directory says it has.
func (l *Log) Newest(i int) int64 { return l.dir.Load().segs[i].seg.newest }

// Inflate adds n to the byte counters of the log, as if its ended segments were that much larger.
func (l *Log) Inflate(n int64) {
	l.segs[0].seg.bytes += n
	l.ended += n
}

// InflatePool adds n to the pool's count of used bytes.
func (p *Pool) InflatePool(n int64) {
	p.mu.Lock()
	p.used += n
	p.mu.Unlock()
}

// Layout is where the words of a Log that must not share a cache line lie, and the sizes that the memory bound rests on.
var Layout = struct {
	EntrySize, PlaceSize, ReaderSize, SegmentSize uintptr
	FirstEnd, AppenderStart, AppenderEnd          uintptr
	CommittedStart, LogEnd                        uintptr
}{
	EntrySize:      unsafe.Sizeof(entry{}),
	PlaceSize:      unsafe.Sizeof(place{}),
	ReaderSize:     unsafe.Sizeof(Reader{}),
	SegmentSize:    unsafe.Sizeof(segment{}),
	FirstEnd:       unsafe.Offsetof(Log{}.dir) + unsafe.Sizeof(Log{}.dir),
	AppenderStart:  unsafe.Offsetof(Log{}.index),
	AppenderEnd:    unsafe.Offsetof(Log{}.newestExplicit) + 8,
	CommittedStart: unsafe.Offsetof(Log{}.committed) + unsafe.Offsetof(Log{}.committed.Uint64),
	LogEnd:         unsafe.Sizeof(Log{}),
}

// Stale is a segment that was found in the directory at some time, as a reader holds it between finding and pinning.
type Stale struct{ s *segment }

// Find returns the segment that has off.
func (l *Log) Find(off uint64) Stale { return Stale{l.dir.Load().find(off)} }

func (s Stale) Pin() bool  { return s.s.pin() }
func (s Stale) Unpin()     { s.s.unpin() }
func (s Stale) Keep() bool { return s.s.keep() }

// Entries returns how many entries the active segment has: fewer than records where there are rows.
func (l *Log) Entries() (n int) {
	for i := 0; i < len(l.index)-l.top; n++ {
		i += l.active.block.entry(i).records()
	}
	return n
}
