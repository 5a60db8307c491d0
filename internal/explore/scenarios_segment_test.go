//go:build explore

package explore_test

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
	"github.com/leatlog/leat/segment"
)

// blockBytes is the size of a block: the smallest, since each schedule has its own.
const blockBytes = 4 << 10

// The value of the record at offset i is four times the byte i+1, so that anybody can tell a record by itself.
func value(off uint64) []byte {
	b := byte(off + 1)
	return []byte{b, b, b, b}
}

func stage(l *segment.Log) {
	if err := l.Append(&segment.Record{Value: value(l.Staged())}, int64(l.Staged())+1000); err != nil {
		panic(err)
	}
}

// stageRow stages n records as a row.
func stageRow(l *segment.Log, n int) {
	var r segment.Reservation
	if err := l.ReserveRun(&r, n, 4*n, 4, int64(l.Staged())+1000); err != nil {
		panic(err)
	}
	row := r.NextRun(n, 4)
	for i := range n {
		copy(row[4*i:], value(l.Staged()+uint64(i)))
	}
	explore.Assert(l.StageRun(&r), "stage")
}

// lookInRow looks for a record in the middle of the row [1, end), which becomes visible at once.
func lookInRow(l *segment.Log, end uint64) func() {
	return func() {
		if at, ok := l.TimeOf(2); ok {
			explore.Assert(at == 1001 || at == 1000, "time %d", at) // the latter while it is cold
		}
		recs := make([]segment.Record, end)
		n, err := l.ReadAt(2, recs)
		if errors.Is(err, segment.ErrBeyond) {
			return // it came before the appender
		}
		explore.Assert(err == nil && n == int(end)-2, "%d records: %v", n, err)
		for i := range n {
			checkRecord(&recs[i], uint64(2+i))
		}
	}
}

func checkRecord(rec *segment.Record, off uint64) {
	explore.Assert(rec.Offset == int64(off) && string(rec.Value) == string(value(off)), "record at %d: %+v", off, rec)
}

// appendAll appends and publishes n records, one by one.
func appendAll(l *segment.Log, n int) {
	for range n {
		stage(l)
		explore.Assert(l.Publish() == nil, "publish")
	}
}

// readAll reads from r until the log is sealed and returns how many records it read; those that were dropped before it came
// to them are skipped. A state that cannot be is a panic.
func readAll(l *segment.Log, r *segment.Reader) (n int) {
	var rec segment.Record
	for {
		switch st := r.Refill(); st {
		case segment.Ready:
			explore.Assert(r.Window() > 0, "ready without a record")
			for pos := r.Position(); r.Next(&rec); pos++ {
				checkRecord(&rec, pos)
				n++
			}
		case segment.CaughtUp:
			atomicx.Relax(0)
		case segment.Below:
			low := l.First()
			explore.Assert(low > r.Position(), "below %d at %d", low, r.Position())
			r.Seek(low)
		case segment.Sealed:
			r.Close()
			explore.Assert(l.Sealed() && r.Position() == l.Committed(), "sealed at %d, not %d", r.Position(), l.Committed())
			return n
		case segment.Unreadable:
			explore.Assert(errors.Is(r.Err(), errCold), "unreadable for %v", r.Err())
		default:
			explore.Assert(false, "state %v at %d", st, r.Position())
		}
	}
}

// exact returns a check that the pool counts what the log has.
func exact(p *segment.Pool, l *segment.Log) func() error {
	return func() error {
		_, _, segments := l.Retained()
		if p.Used() != int64(segments)*4096 {
			return fmt.Errorf("%d bytes used in %d segments", p.Used(), segments)
		}
		return nil
	}
}

var segmentScenarios = []scenario{
	{"segment: append and roll against readers", 3, func(s *explore.S) {
		// Each segment has one record, so that each append rolls.
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes, SegmentRecords: 1})
		s.Go("appender", func() { appendAll(l, 3); l.Seal() })
		for i := range 2 {
			s.Go(fmt.Sprint("reader", i), func() {
				explore.Assert(readAll(l, l.NewReader()) == 3, "records are missing")
			})
		}
	}},
	{"segment: a batch across a roll", 3, func(s *explore.S) {
		// Three records in two segments become visible at once.
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes, SegmentRecords: 2})
		s.Go("appender", func() {
			for range 3 {
				stage(l)
			}
			explore.Assert(l.Publish() == nil, "publish")
			l.Seal()
		})
		s.Go("reader", func() { explore.Assert(readAll(l, l.NewReader()) == 3, "records are missing") })
		s.Go("watcher", func() {
			for range 2 {
				first, next := l.Snapshot()
				explore.Assert(first == 0 && (next == 0 || next == 3), "[%d, %d)", first, next)
				recs := make([]segment.Record, 4)
				n, err := l.ReadAt(0, recs)
				explore.Assert(err == nil && (n == 0 && next == 0 || n == 3), "%d records, %v, after %d", n, err, next)
				for i := range n {
					checkRecord(&recs[i], uint64(i))
				}
			}
		})
	}},
	{"segment: seal against publish", 4, func(s *explore.S) {
		// Two take turns at being the appender, and one of them seals. A record is in the sealed length or is refused, and the reader
		// reads exactly the sealed length.
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes, SegmentRecords: 2})
		var role atomicx.Mutex
		accepted, sealed, read := 0, uint64(0), 0
		s.Go("appender", func() {
			for range 3 {
				role.Lock()
				stage(l)
				err := l.Publish()
				explore.Assert(l.Published() == l.Committed() && l.Unpublished() == 0, "published %d of %d", l.Published(), l.Committed())
				if err == nil {
					accepted++
				}
				role.Unlock()
				if err != nil {
					explore.Assert(errors.Is(err, segment.ErrSealed) && l.Sealed(), "publish: %v", err)
					return
				}
			}
		})
		s.Go("sealer", func() {
			role.Lock()
			sealed = l.Seal()
			role.Unlock()
		})
		s.Go("reader", func() { read = readAll(l, l.NewReader()) })
		s.Finally(func() error {
			if accepted != int(sealed) || read != accepted || l.Committed() != sealed {
				return fmt.Errorf("accepted %d, sealed %d, read %d", accepted, sealed, read)
			}
			return nil
		})
	}},
	{"segment: trim against a reader that pins", 4, trimAgainst(2, func(l *segment.Log) { readAll(l, l.NewReader()) })},
	{"segment: trim against two readers that pin", 3, func(s *explore.S) {
		read := func(l *segment.Log) { readAll(l, l.NewReader()) }
		trimAgainst(1, read, read)(s)
	}},
	{"segment: trim against views that are kept", 4, trimAgainst(2, func(l *segment.Log) {
		var recs [2]segment.Record
		for off := uint64(0); off < 3; {
			n, err := l.ReadAt(off, recs[:])
			if errors.Is(err, segment.ErrBelow) {
				off = l.First()
				continue
			}
			explore.Assert(err == nil, "read at %d: %v", off, err)
			if n == 0 {
				return // it came before the appender
			}
			l.Committed() // lets the others run while the views are held
			for i := range n {
				atomicx.Reads(unsafe.Pointer(&recs[i].Value[0]))
				checkRecord(&recs[i], off+uint64(i))
			}
			off += uint64(n)
		}
	})},
	{"segment: trim against searches", 5, trimAgainst(2, func(l *segment.Log) {
		next := l.Committed()
		off, _ := l.OffsetAt(1001) // the append time of offset 1
		explore.Assert(off >= 1 || off == 0 && next == 0, "offset %d at a length of %d", off, next)
		if at, ok := l.TimeOf(1); ok {
			explore.Assert(at == 1001, "time %d", at)
		}
	})},
	{"segment: two readers of cold segments", 3, thaw(2, false, false)},
	{"segment: a load that fails", 3, thaw(1, false, true)},
	{"segment: cold segments are dropped", 3, thaw(1, true, false)},
	{"segment: cold segments are dropped while a load fails", 3, thaw(1, true, true)},
	{"segment: searches in cold segments", 3, thawSearch(false)},
	{"segment: searches in cold segments that are dropped", 3, thawSearch(true)},
	{"segment: loads without a file", 3, thawGone},
	{"segment: one who may not load", 4, thawWarm},
	{"segment: cold segments are attached", 3, func(s *explore.S) {
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes})
		s.Go("appender", func() {
			for i := range uint64(3) {
				explore.Assert(l.AttachCold(cold(i, 0, stage)) == nil, "attach")
			}
			l.Seal()
		})
		s.Go("reader", func() { explore.Assert(readAll(l, l.NewReader()) == 3, "records are missing") })
	}},
	{"segment: truncate against a snapshot", 5, func(s *explore.S) {
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes, SegmentRecords: 2})
		s.Go("appender", func() {
			appendAll(l, 2)
			l.TruncateBefore(1)
			appendAll(l, 1)
			l.TruncateBefore(3)
		})
		for i := range 2 {
			s.Go(fmt.Sprint("watcher", i), func() {
				var low, high uint64
				for range 2 {
					first, next := l.Snapshot()
					explore.Assert(first <= next && first >= low && next >= high, "[%d, %d) after [%d, %d)", first, next, low, high)
					low, high = first, next
				}
			})
		}
	}},
	{"segment: unstage against a reader", 4, func(s *explore.S) {
		// What is dropped before Publish is never seen, and its offsets are used again, also across a roll.
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes, SegmentRecords: 2})
		s.Go("appender", func() {
			appendAll(l, 1)
			for range 2 {
				dst, err := l.Reserve(segment.Shape{Key: -1, Value: 4}, 5000)
				explore.Assert(err == nil && copy(dst, "wrong") == 4, "reserve: %v", err)
			}
			l.Unstage()
			appendAll(l, 2)
			l.Seal()
		})
		s.Go("reader", func() { explore.Assert(readAll(l, l.NewReader()) == 3, "records are missing") })
		s.Finally(func() error {
			if records, _, segments := l.Retained(); records != 3 || segments != 2 {
				return fmt.Errorf("%d records in %d segments", records, segments)
			}
			return nil
		})
	}},
	{"segment: rows against readers", 3, func(s *explore.S) {
		// Who finds a record of a row knows that there are rows, and comes by no entry that is not there.
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes})
		s.Go("appender", func() {
			appendAll(l, 1)
			stageRow(l, 5)
			l.Unstage()
			stageRow(l, 3)
			explore.Assert(l.Publish() == nil, "publish")
			l.Seal()
		})
		s.Go("reader", func() { explore.Assert(readAll(l, l.NewReader()) == 4, "records are missing") })
		s.Go("looker", lookInRow(l, 4))
	}},
	{"segment: rows in a cold segment", 3, func(s *explore.S) {
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes})
		err := l.AttachCold(segment.Cold{
			First: 0, End: 4, Bytes: 4 * (4 + segment.EntryBytes), Oldest: 1000, Newest: 1001, Latest: 1001,
			Load: func(to *segment.Log) error { stage(to); stageRow(to, 3); return nil },
		})
		explore.Assert(err == nil, "attach: %v", err)
		l.Seal()
		s.Go("reader", func() { explore.Assert(readAll(l, l.NewReader()) == 4, "records are missing") })
		for i := range 2 {
			s.Go(fmt.Sprint("looker", i), lookInRow(l, 4))
		}
	}},
	{"segment: waiting for memory", 5, func(s *explore.S) {
		// Two logs share a pool of one block. The second appends when the first has dropped its segment.
		p := segment.NewPool(4096, 4096)
		full := segment.NewLog(segment.Config{Pool: p})
		stage(full)
		explore.Assert(full.Publish() == nil, "publish")
		next := segment.NewLog(segment.Config{Pool: p})
		s.Go("waits", func() {
			w := atomicx.NewWaiter()
			try := func() bool {
				_, err := next.Reserve(segment.Shape{Key: -1, Value: -1}, 1)
				explore.Assert(err == nil || errors.Is(err, segment.ErrNoMemory), "reserve: %v", err)
				return err == nil
			}
			explore.Assert(await(p.Freed(), w, try, nil), "no memory")
			explore.Assert(next.Publish() == nil, "publish")
		})
		s.Go("drops", func() { explore.Assert(full.DropOldest(), "nothing to drop") })
		s.Go("reads", func() {
			r := full.NewReader()
			if r.Refill() == segment.Ready {
				var rec segment.Record
				r.Next(&rec)
				checkRecord(&rec, 0)
			}
			r.Close()
		})
		s.Finally(exact(p, next))
	}},
	{"segment: publish against park", 3, func(s *explore.S) {
		// The log and an event together, as the partition uses them.
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes, SegmentRecords: 1})
		var more atomicx.Event
		s.Go("appender", func() {
			for range 2 {
				appendAll(l, 1)
				more.Broadcast()
			}
			l.Seal()
			more.Broadcast()
		})
		for i := range 2 {
			s.Go(fmt.Sprint("reader", i), func() {
				r, w := l.NewReader(), atomicx.NewWaiter()
				var rec segment.Record
				n, st := 0, segment.Ready
				for st != segment.Sealed {
					await(&more, w, func() bool { st = r.Refill(); return st != segment.CaughtUp }, nil)
					for r.Next(&rec) {
						checkRecord(&rec, uint64(n))
						n++
					}
				}
				explore.Assert(n == 2, "%d records", n)
			})
		}
		s.Finally(idle(&more))
	}},
	{"segment: the last publish against park", 6, func(s *explore.S) {
		// Nothing comes behind it that would wake the reader. All schedules are 9.9 million, which takes two minutes: nothing was found.
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes})
		var more atomicx.Event
		s.Go("appender", func() { appendAll(l, 1); more.Broadcast() })
		s.Go("reader", func() {
			r := l.NewReader()
			await(&more, atomicx.NewWaiter(), func() bool { return r.Refill() == segment.Ready }, nil)
			var rec segment.Record
			explore.Assert(r.Next(&rec), "ready without a record")
			checkRecord(&rec, 0)
			r.Close()
		})
		s.Finally(idle(&more))
	}},
}

// trimAgainst is an appender that keeps at most so many records, one in each segment, while others read: blocks are used
// again as soon as that seems possible.
func trimAgainst(keep int64, readers ...func(l *segment.Log)) func(s *explore.S) {
	return func(s *explore.S) {
		p := segment.NewPool(0, 4096)
		l := segment.NewLog(segment.Config{SegmentRecords: 1, Pool: p})
		s.Go("appender", func() {
			for range 3 {
				if records, _, _ := l.Retained(); records == keep {
					explore.Assert(l.DropOldest(), "nothing to drop")
				}
				appendAll(l, 1)
			}
			l.Seal()
		})
		for i, read := range readers {
			s.Go(fmt.Sprint("reader", i), func() { read(l) })
		}
		s.Finally(exact(p, l))
	}
}

func TestSegment(t *testing.T) { run(t, segmentScenarios) }
