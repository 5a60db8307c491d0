package partition

import (
	"github.com/leatlog/leat/internal/atomicx"
)

// Under saturation the goroutine lends its role. Were it to drain the ring as fast as records come in, it would take from
// each producer's processor the very cache lines that the producer is writing, one record at a time; where the processors
// are far apart that is the whole cost of a record. So once records come in a stream, the goroutine leaves them alone while
// more keep coming, and lets others run. A producer that finds half of the ring in use drains it by itself: what it copies
// is in its own cache.
//
// # Shared state
//
//	lent  kept, offered or out; stored and CASed by the goroutine (kept to offered and back), CASed and stored by a
//	      publisher (offered to out and back)
//
// # Proof
//
// One holder. The role is the goroutine's while lent is kept, and the publisher's from its CAS from offered to out until
// its store of offered; while it is offered nobody uses it. The goroutine goes on only after its CAS from offered to kept.
// Each of the two CAS expects offered, so they exclude each other. It cannot be taken by the ring's idle bit meanwhile:
// the goroutine sets that only while lent is kept.
//
// Nothing is left behind. The goroutine takes the role back by itself, without being asked, and looks at the ring then; it
// leaves what it finds only if claims have been made since its last look, and only so many times in a row.
//
// Order. A publisher's store of offered comes after all that it did as the holder, and the goroutine's or the next
// publisher's CAS observes it. A release store is enough: nobody parks for lent.
//
// Progress. The goroutine waits for a publisher that drains, which is bounded by the ring and waits for nobody; a publisher
// never waits.
const (
	kept uint64 = iota
	offered
	lentOut
)

const (
	streamAfter = 4   // looks in a row that find something: then records come in a stream
	streamIdle  = 4   // turns without anything that end it
	leaveMax    = 16  // looks in a row that leave what they find
	lendPauses  = 100 // about 2.5 us on amd64: how long others have before the next look
)

// lend lets others run, and has publishers use the role meanwhile.
func (p *Partition) lend() {
	p.lent.Store(offered)
	if !atomicx.Exploring {
		atomicx.Yield()
		if !atomicx.OneProc() {
			atomicx.Pause(lendPauses)
		}
	}
	for turn := uint32(0); !p.lent.CompareAndSwap(offered, kept); turn++ {
		atomicx.Relax(turn)
	}
}

// help drains the ring if the role is on offer, and reports whether it has made room.
func (p *Partition) help() bool {
	if p.lent.Load() != offered || !p.lent.CompareAndSwap(offered, lentOut) {
		return false
	}
	n, _ := p.drain(p.ring.Cap())
	atomicx.StoreRelease(&p.lent.Uint64, offered)
	return n > 0
}

// stream tells the goroutine how fast records come.
type stream struct {
	found int    // looks in a row that found something
	tail  uint64 // where claims stood at the last look
	left  int    // looks in a row that left what was there
}

// more takes note of a look that has found something, and reports whether records come in a stream.
func (s *stream) more(p *Partition) bool {
	s.found++
	s.tail, s.left = p.ring.Tail(), 0
	return s.found > p.streamAfter
}

// leave reports whether to leave what is in the ring to those who put it there.
func (s *stream) leave(p *Partition) bool {
	if s.found <= p.streamAfter || s.left >= leaveMax {
		return false
	}
	t := p.ring.Tail()
	if t == s.tail || p.ring.Len() >= p.ring.Cap()/2 {
		return false
	}
	s.tail = t
	s.left++
	return true
}

// idle takes note of turns without anything.
func (s *stream) idle(turns uint32) {
	if turns > streamIdle {
		s.found = 0
	}
}
