//go:build explore

package explore_test

import (
	"fmt"
	"testing"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// miniLog is package segment in small: each segment holds one record, in a block that is used again when the segment was
// dropped and nobody pins it. fault names what is wrong with it; "" is nothing.
type miniLog struct {
	fault string

	committed atomicx.Uint64 // length<<1 | sealed
	claimed   atomicx.Uint64 // length, or miniSealed
	first     atomicx.Uint64
	dir       atomicx.Pointer[[]*miniSegment]

	// The appender's.
	next uint64
	low  uint64
	free []*atomicx.Cell[uint64]
}

type miniSegment struct {
	base  uint64
	block *atomicx.Cell[uint64]
	end   atomicx.Uint64
	pins  atomicx.Uint32
}

const (
	miniOpen = 1 << 62
	miniDead = 1 << 31

	miniSealed = 1 << 62
)

func newMiniLog(fault string) *miniLog {
	l := &miniLog{fault: fault}
	l.dir.Store(&[]*miniSegment{})
	return l
}

// append publishes the record base+100 at offset base, and reports whether it did: not if the log is sealed.
func (l *miniLog) append() bool {
	segs := *l.dir.Load()
	base := l.next
	block := &atomicx.Cell[uint64]{}
	if n := len(l.free); n > 0 {
		block, l.free = l.free[n-1], l.free[:n-1]
	}
	s := &miniSegment{base: base, block: block}
	s.end.Store(miniOpen)
	roll := func() {
		if len(segs) > 0 {
			segs[len(segs)-1].end.Store(base)
		}
		larger := append(segs[:len(segs):len(segs)], s)
		l.dir.Store(&larger)
	}
	if l.fault != "publishes before it rolls" {
		roll()
	}
	if l.fault != "commits before the copy" {
		s.block.Set(base + 100)
	}
	l.next++
	if !l.publish(base) {
		return false
	}
	if l.fault == "publishes before it rolls" {
		roll()
	}
	if l.fault == "commits before the copy" {
		s.block.Set(base + 100)
	}
	return true
}

// publish moves the length from base to next, and reports whether it did.
func (l *miniLog) publish(base uint64) bool {
	if l.fault != "publishes without a look at the claim" && l.claimed.Load() != base {
		return false
	}
	switch l.fault {
	case "claims nothing":
		atomicx.StoreRelease(&l.committed, l.next<<1)
		return true
	case "claims before it publishes":
		l.claimed.CompareAndSwap(base, l.next)
		atomicx.StoreRelease(&l.committed, l.next<<1)
		return true
	}
	atomicx.StoreRelease(&l.committed, l.next<<1)
	explore.Assert(l.claimed.CompareAndSwap(base, l.next), "two appenders")
	return true
}

func (l *miniLog) seal() uint64 {
	l.claimed.Store(miniSealed)
	return l.committed.Or(1) >> 1
}

// drop drops the oldest segment and takes its block back if nobody pins it.
func (l *miniLog) drop() {
	segs := *l.dir.Load()
	s, rest := segs[0], segs[1:]
	s.end.Store(s.base + 1) // it may be the active one
	l.low++
	if l.fault == "takes a segment out before it moves first" {
		l.dir.Store(&rest)
		l.first.Store(l.low)
	} else {
		l.first.Store(l.low)
		l.dir.Store(&rest)
	}
	dead := false
	switch l.fault {
	case "looks at the pins and then kills":
		if dead = s.pins.Load() == 0; dead {
			s.pins.Or(miniDead)
		}
	case "does not look at the pins":
		dead = true
	default:
		dead = s.pins.CompareAndSwap(0, miniDead)
	}
	if dead {
		l.free = append(l.free, s.block)
	}
}

// read returns the record at pos; ok is false if it is dropped, or if the log is sealed there. gone counts turns in which the
// log had neither the record nor an excuse.
func (l *miniLog) read(pos uint64) (v uint64, ok, sealed bool) {
	for gone := 0; ; {
		c := l.committed.Load()
		if pos < l.first.Load() {
			return 0, false, false
		}
		if pos >= c>>1 {
			if c&1 != 0 {
				return 0, false, true
			}
			atomicx.Relax(0)
			continue
		}
		var s *miniSegment
		for _, x := range *l.dir.Load() {
			if x.base <= pos {
				s = x
			}
		}
		if s == nil {
			gone++
			explore.Assert(gone < 2, "offset %d is committed, not dropped, and not there", pos)
			continue
		}
		if s.pins.Add(1)&miniDead != 0 && l.fault != "pins without a look at dead" {
			s.pins.Add(^uint32(0))
			continue
		}
		explore.Assert(pos < s.end.Load(), "offset %d is committed and lies in no segment", pos)
		explore.Assert(pos == s.base, "offset %d was found in the segment at %d", pos, s.base)
		v = s.block.Get()
		s.pins.Add(^uint32(0))
		return v, true, false
	}
}

// miniTrim is an appender that keeps one record of three and a reader.
func miniTrim(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		l := newMiniLog(fault)
		s.Go("reader", func() {
			for pos := uint64(0); ; pos++ {
				v, ok, sealed := l.read(pos)
				if sealed {
					return
				}
				explore.Assert(!ok || v == pos+100, "read %d at %d", v, pos)
			}
		})
		s.Go("appender", func() {
			l.append()
			l.append()
			l.drop()
			l.append()
			l.seal()
		})
	}
}

// miniSeal is two who take turns at being the appender, one of whom seals, and the length that both must agree on.
func miniSeal(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		l := newMiniLog(fault)
		var role atomicx.Mutex
		var sealed, accepted uint64
		s.Go("appender", func() {
			for range 2 {
				role.Lock()
				if l.append() {
					accepted++
				}
				role.Unlock()
			}
		})
		s.Go("sealer", func() {
			if fault != "seals without the role" {
				role.Lock()
				defer role.Unlock()
			}
			sealed = l.seal()
		})
		s.Finally(func() error {
			if sealed != accepted {
				return fmt.Errorf("accepted %d, sealed at %d", accepted, sealed)
			}
			return nil
		})
	}
}

// miniFollow is an appender that publishes and then broadcasts, and one who parks until there is something.
func miniFollow(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		l := newMiniLog(fault)
		var more atomicx.Event
		s.Go("appender", func() {
			if fault == "broadcasts before it publishes" {
				more.Broadcast()
			}
			l.append()
			if fault != "broadcasts before it publishes" {
				more.Broadcast()
			}
		})
		s.Go("reader", func() {
			await(&more, atomicx.NewWaiter(), func() bool { return l.committed.Load() != 0 }, nil)
			v, ok, _ := l.read(0)
			explore.Assert(ok && v == 100, "read %d", v)
		})
	}
}

// miniSnapshot is one who looks at both ends of a log that is being cut.
func miniSnapshot(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		l := newMiniLog("")
		s.Go("watcher", func() {
			var first, next uint64
			if fault == "looks at the end before the beginning" {
				next = l.committed.Load() >> 1
				first = l.first.Load()
			} else {
				first = l.first.Load()
				next = l.committed.Load() >> 1
			}
			explore.Assert(first <= next, "[%d, %d)", first, next)
		})
		s.Go("appender", func() { l.append(); l.drop(); l.append(); l.drop() })
	}
}

// miniRole is two who take the appender's role in turn: a word says who has it.
func miniRole(fault string) func(s *explore.S) {
	return func(s *explore.S) {
		var role atomicx.Uint32
		var length atomicx.Cell[int]
		for _, name := range []string{"one", "two"} {
			s.Go(name, func() {
				for {
					if fault == "takes the role by a look and a store" {
						if role.Load() == 0 {
							role.Store(1)
							break
						}
					} else if role.CompareAndSwap(0, 1) {
						break
					}
					atomicx.Relax(0)
				}
				length.Set(length.Get() + 1)
				role.Store(0)
				if fault == "uses the role after it was given back" {
					length.Get()
				}
			})
		}
		s.Finally(func() error {
			if n := length.Get(); n != 2 {
				return fmt.Errorf("length %d", n)
			}
			return nil
		})
	}
}

var segmentMutants = []mutant{
	{"commits before the copy", explore.Race, 1, miniTrim, ""},
	{"publishes before it rolls", explore.Panic, 1, miniTrim, ""},
	{"takes a segment out before it moves first", explore.Panic, 1, miniTrim, ""},
	{"pins without a look at dead", explore.Race, 2, miniTrim, ""},
	{"looks at the pins and then kills", explore.Race, 4, miniTrim, ""},
	{"does not look at the pins", explore.Race, 1, miniTrim, ""},
	{"publishes without a look at the claim", explore.Panic, 1, miniSeal, ""},
	{"seals without the role", explore.Panic, 1, miniSeal, ""},
	{"claims nothing", explore.Deadlock, 0, miniFollow, ""},
	{"claims before it publishes", explore.Deadlock, 0, miniFollow, ""},
	{"broadcasts before it publishes", explore.Deadlock, 1, miniFollow, ""},
	{"looks at the end before the beginning", explore.Panic, 1, miniSnapshot, ""},
	{"takes the role by a look and a store", explore.Race, 1, miniRole, ""},
	{"uses the role after it was given back", explore.Race, 0, miniRole, ""},
}

func TestMutants_Segment(t *testing.T) { kill(t, segmentMutants) }
