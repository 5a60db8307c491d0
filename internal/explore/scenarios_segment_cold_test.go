//go:build explore

package explore_test

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
	"github.com/leatlog/leat/segment"
)

// thaw has two readers meet in cold segments of one record each, while the appender drops them or does not, and appends another.
// Each segment is loaded once at the most, and never for who comes after it was dropped; the first load of each fails if fail
// says so.
func thaw(segments int, drop, fail bool) func(s *explore.S) {
	return func(s *explore.S) {
		p := segment.NewPool(0, 4096)
		l := segment.NewLog(segment.Config{SegmentRecords: 1, Pool: p})
		failed, loaded := make([]bool, segments), make([]bool, segments)
		for i := range segments {
			c := cold(uint64(i), 0, nil)
			c.Load = func(to *segment.Log) error {
				atomicx.Writes(unsafe.Pointer(&loaded[i])) // one at a time
				explore.Assert(!loaded[i], "segment %d is loaded twice", i)
				if fail && !failed[i] {
					failed[i] = true
					return errCold
				}
				stage(to)
				loaded[i] = true
				return nil
			}
			if err := l.AttachCold(c); err != nil {
				panic(err)
			}
		}
		s.Go("appender", func() {
			if drop {
				for i := range segments {
					info, ok := l.Oldest()
					explore.Assert(ok && info.NewestAppend == int64(i+1000) && info.End == uint64(i+1), "oldest: %+v", info)
					explore.Assert(l.DropOldest(), "nothing to drop")
				}
			}
			appendAll(l, 1)
			l.Seal()
		})
		s.Go("reader", func() {
			n := readAll(l, l.NewReader())
			explore.Assert(drop && n >= 1 || n == segments+1, "%d records", n)
		})
		s.Go("looker", func() {
			recs := make([]segment.Record, 1)
			n, err := l.ReadAt(0, recs)
			switch {
			case err == nil:
				explore.Assert(n == 1, "nothing at 0")
				checkRecord(&recs[0], 0)
			default:
				explore.Assert(drop && errors.Is(err, segment.ErrBelow) || fail && errors.Is(err, errCold), "%v", err)
			}
		})
		s.Finally(func() error {
			if p.Used() != 4096+map[bool]int64{false: int64(segments) * 32}[drop] {
				return fmt.Errorf("%d bytes used", p.Used())
			}
			return nil
		})
	}
}

var errCold = errors.New("the load fails")

// cold describes a cold segment of the record that stage stages at off, and extra bytes more. load fills it.
func cold(off uint64, extra int64, load func(to *segment.Log)) segment.Cold {
	now := int64(off + 1000)
	return segment.Cold{
		First: off, End: off + 1, Bytes: 4 + segment.EntryBytes + extra, Oldest: now, Newest: now, Latest: now,
		Load: func(to *segment.Log) error { load(to); return nil },
	}
}

// thawSearch has two look for the same record by its time, of which a cold segment knows only from when to when it has any: the
// first of two records has a timestamp that is greater than the second's.
func thawSearch(drop bool) func(s *explore.S) {
	return func(s *explore.S) {
		l := segment.NewLog(segment.Config{SegmentBytes: blockBytes})
		err := l.AttachCold(segment.Cold{
			First: 0, End: 2, Bytes: 2 * (8 + segment.EntryBytes), Oldest: 1000, Newest: 1001, Latest: 3000,
			Load: func(to *segment.Log) error {
				for i, own := range []int64{3000, 2000} {
					if _, err := to.Reserve(segment.Shape{Key: -1, Value: -1, Timestamp: own}, int64(1000+i)); err != nil {
						return err
					}
				}
				return nil
			},
		})
		explore.Assert(err == nil, "attach: %v", err)
		s.Go("appender", func() {
			if drop {
				explore.Assert(l.DropOldest(), "nothing to drop")
			}
		})
		for i := range 2 {
			s.Go(fmt.Sprint("search", i), func() {
				off, err := l.OffsetAt(2500)
				explore.Assert(err == nil && (off == 0 || drop && off == 2), "found at %d: %v", off, err)
				at, ok := l.TimeOf(1)
				explore.Assert(ok && (at == 1000 || at == 1001) || drop && !ok, "time of 1: %d, %v", at, ok)
			})
		}
	}
}

// thawGone has loads fail since what they would load has been dropped and its file removed. Nobody is told of that: they find that
// it was dropped.
func thawGone(s *explore.S) {
	l := segment.NewLog(segment.Config{SegmentBytes: blockBytes})
	var removed atomicx.Uint32
	c := cold(0, 0, stage)
	c.Load = func(to *segment.Log) error {
		if removed.Load() != 0 {
			return errCold
		}
		stage(to)
		return nil
	}
	explore.Assert(l.AttachCold(c) == nil, "attach")
	s.Go("appender", func() {
		explore.Assert(l.DropOldest(), "nothing to drop")
		removed.Store(1)
		l.Seal()
	})
	r := l.NewReader()
	s.Go("reader", func() {
		for range 2 {
			st := r.Refill()
			explore.Assert(st == segment.Ready || st == segment.Below, "%v: %v, first is %d", st, r.Err(), l.First())
			r.Close()
		}
	})
	s.Go("looker", func() {
		var err error
		switch s.Choose(3) {
		case 0:
			err = l.Warm(0)
		case 1:
			_, err = l.OffsetAt(1000)
		default:
			_, err = l.ReadAt(0, make([]segment.Record, 1))
		}
		explore.Assert(err == nil || errors.Is(err, segment.ErrBelow), "told of %v", err)
	})
}

// thawWarm has one who never loads by itself beside one who does.
func thawWarm(s *explore.S) {
	l := segment.NewLog(segment.Config{SegmentBytes: blockBytes})
	var locked atomicx.Uint32
	explore.Assert(l.AttachCold(cold(0, 0, func(to *segment.Log) {
		stage(to)
		explore.Assert(locked.Load() == 0, "the one who loads is one who may not")
	})) == nil, "attach")
	s.Go("appender", func() { explore.Assert(l.DropOldest(), "nothing to drop"); l.Seal() })
	r := l.NewReader()
	s.Go("reader", func() {
		var rec segment.Record
		for {
			locked.Store(1)
			st := r.RefillWarm()
			locked.Store(0)
			switch st {
			case segment.Frozen:
				explore.Assert(l.Warm(r.Position()) == nil, "warm")
				continue
			case segment.Ready:
				explore.Assert(r.Next(&rec), "ready without a record")
				checkRecord(&rec, 0)
			case segment.Below:
				explore.Assert(l.First() == 1, "below %d", l.First())
			default:
				explore.Assert(false, "state %v", st)
			}
			r.Close()
			return
		}
	})
	s.Go("looker", func() {
		if at, ok := l.TimeOf(0); ok {
			explore.Assert(at == 1000, "time of 0: %d", at)
		}
	})
}
