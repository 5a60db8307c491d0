package partition

import (
	"context"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// Under saturation the goroutine lends its role. Were it to drain the ring as fast as records come in, it would take from
// each producer's processor the very cache lines that the producer is writing, one record at a time; where the processors
// are far apart that is the whole cost of a record. So once records come in a stream, the goroutine leaves them alone while
// more keep coming, and lets others run. A producer that finds half of the ring in use drains it by itself: what it copies
// is in its own cache. And one that has done so several times and met no other producer appends its records itself, without
// handing them over (direct), for as long as that is so.
//
// # Shared state
//
//	lent  kept, offered or out; stored and CASed by the goroutine (kept to offered and back), CASed and stored by a
//	      publisher (offered to out and back), and stored by one that hands the role over (kept to offered)
//
// # Proof
//
// One holder. The role is the goroutine's while lent is kept, and the publisher's from its CAS from offered to out until
// its store of offered; while it is offered nobody uses it. The goroutine goes on only after its CAS from offered to kept.
// Each of the two CAS expects offered, so they exclude each other. It cannot be taken by the ring's idle bit meanwhile:
// the goroutine sets that only while lent is kept.
//
// Handed over. A publisher that has taken the idle bit has the role alone, and lent is kept. It stores offered as the last thing that
// it does with the role, and wakes the goroutine. From then on it is as if the goroutine had lent it: the bit is clear, and the
// goroutine begins with its CAS. Whoever else wakes the goroutine leaves lent at kept, and nobody changes that but the goroutine; so
// it knows by one look which of the two it was.
//
// Nothing is left behind. The goroutine takes the role back by itself, without being asked, and looks at the ring then; it
// leaves what it finds only if records have come since its last look, and only so many times in a row.
//
// Order. A publisher's store of offered comes after all that it did as the holder, and the goroutine's or the next
// publisher's CAS observes it. A release store is enough: nobody parks for lent.
//
// Order of one producer. It appends directly only when the ring is empty, after having drained it with the role: so what it
// handed over before is in the log. What it hands over later comes behind what it has appended, also while that is not
// visible yet, since offsets are given out when a record is staged.
//
// Visible soon. What is appended directly is visible after directMost records of that producer, or at the next look of the
// goroutine that finds nothing new, or at its next look but leaveMax at the latest: it publishes before it does anything
// else with the role. It does not sleep or end while something is not visible, since it looks at direct, with the role,
// before it looks at the ring, and puts nothing on offer between that and its sleep or end. It is awake, or has its token, from before
// the role is on offer until then; so all that it may have to wait for is a processor.
//
// Nothing comes too late. The state is looked at with the role, and after the ring has been emptied. Close and Drain set it, and
// what they send through the ring then is taken with the role: an append that has not seen the state has had the role before, and
// has not taken that itself.
//
// Progress. The goroutine waits for a publisher that drains, which is bounded by the ring and waits for nobody; a publisher
// never waits. With files both may wait for a write: see durable.go, and mayAppend for who may not.
const (
	kept uint64 = iota
	offered
	lentOut
)

const (
	streamAfter = 4   // looks in a row that find something: then records come in a stream
	streamIdle  = 4   // turns without anything that end it
	lendPauses  = 100 // about 2.5 us on amd64: how long others have before the next look
	slowLends   = 64  // of so many times,
	slowWorth   = 4   // fewer than so many records each time are too slow for the goroutine
	leaveWorth  = 8   // records that make it worth it to leave them where they are
	leaveMax    = 16  // looks in a row that leave what they find
	aloneAfter  = 4   // drains in a row by publishers that meet nobody: then there is only one
	directBatch = 64  // records that a producer which is alone makes visible at a time
	directFiles = 512 // the same with files: each time is a write
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
	p.takeBack()
}

// again passes one turn of the goroutine without anything, and reports whether to look again. While it lets others run the role
// is on offer, in memory: they may be producers, and it may be long until it has a processor again.
func (p *Partition) again(idle *atomicx.Backoff) bool {
	turn := idle.Turns() - idle.Spins // wraps before they are over
	if p.store != nil || turn >= idle.Yields || atomicx.Exploring {
		return idle.Again() // nothing may be on offer when it is the last
	}
	p.lent.Store(offered)
	idle.Again()
	p.takeBack()
	return true
}

// takeBack takes the role back that is on loan. The caller is the goroutine.
func (p *Partition) takeBack() {
	for turn := uint32(0); !p.lent.CompareAndSwap(offered, kept); turn++ {
		atomicx.Relax(turn)
	}
}

// help drains the ring if the role is on offer, and reports whether it has made room.
func (p *Partition) help(ctx context.Context) bool {
	if p.lent.Load() != offered || !p.mayAppend(ctx) || !p.lent.CompareAndSwap(offered, lentOut) {
		return false
	}
	n, _ := p.drain(p.ring.Cap())
	if p.rival.Load() != 0 {
		p.met()
	} else if p.a.quiet++; p.a.quiet == aloneAfter {
		p.alone.Store(1)
	}
	atomicx.StoreRelease(&p.lent.Uint64, offered)
	return n > 0
}

// met notes that there are several producers. The caller has the role.
func (p *Partition) met() {
	p.rival.Store(0)
	p.alone.Store(0)
	p.a.quiet = 0
}

// direct appends r with the role on loan, if it is on offer, and reports whether it did: one producer that has a partition for
// itself need not hand its records over. It is for PublishAsync under saturation; what it appends becomes visible with the
// next records of the producer, or at the goroutine's next look.
func (p *Partition) direct(r *segment.Record, size int64) bool {
	if !p.lent.CompareAndSwap(offered, lentOut) {
		if p.lent.Load() == lentOut {
			p.rival.Store(1)
		}
		return false
	}
	atomicx.Writes(unsafe.Pointer(&p.a)) // the holder's own
	done := false
	switch a, need := &p.a, storedBytes(size, r.Timestamp != 0, r.Headers.Size() > 0)+entryBytes; {
	case p.rival.Load() != 0:
		p.met()
	case p.ring.Claimed() && !p.empty():
		p.met() // somebody is about to hand over a record
	case p.state.Load() != 0: // after the ring is empty: see "Nothing comes too late"
	case a.batch > 0 && a.batch < p.directMost-1 && a.roomRecords > 0 && a.roomBytes >= need && p.log.Append(r, a.now) == nil:
		// Nothing else is to be done for most of them.
		a.batch++
		a.roomRecords--
		a.roomBytes -= need
		done, a.direct = true, true
	default:
		done = p.appendDirect(r)
	}
	atomicx.StoreRelease(&p.lent.Uint64, offered)
	return done
}

// empty drains the ring, and reports whether it is empty then.
func (p *Partition) empty() bool {
	p.drain(p.ring.Cap())
	return !p.ring.Claimed()
}

// appendDirect stages one record that is the first or the last of those that become visible together, or for which room is to be looked
// for. The caller has the role.
func (p *Partition) appendDirect(r *segment.Record) bool {
	a := &p.a
	if a.batch == 0 {
		p.stamp()
	}
	if v, _ := p.stage(r); v != staged {
		return false // it is handed over, and waits or fails there
	}
	a.direct = true
	if a.batch++; a.batch >= p.directMost {
		p.publish()
	}
	return true
}

// stream tells the goroutine how fast records come.
type stream struct {
	finds int    // looks that found something
	found int    // of these so many in a row
	lent  bool   // the role has been lent since the last look
	left  int    // looks in a row that left what was there
	tail  uint64 // where claims stood at the last look,
	next  uint64 // and what was visible
	lends int    // how often it was lent, of the last slowLends times,
	came  uint64 // and how many records came meanwhile
	slow  bool   // so few that publishers are better off if each appends by itself,
	worth bool   // or enough
}

// more takes note of a look that has found something, and reports whether to lend the role until the next.
func (s *stream) more(p *Partition) bool {
	s.found++
	s.left = 0
	s.note(p)
	s.lent = s.found > p.streamAfter
	return s.lent
}

// note notes how far producers have come, and returns how many records came since the last time. The caller has the role.
func (s *stream) note(p *Partition) (came uint64) {
	tail, next := p.ring.Tail(), p.log.Published()
	if p.store != nil { // one write for many of them
		next = p.log.Staged()
	}
	came = p.ring.Slots(s.tail, tail) + next - s.next
	s.tail, s.next = tail, next
	return came
}

// leave reports whether to leave what is in the ring to those who put it there, and to lend the role once more.
func (s *stream) leave(p *Partition) bool {
	if !s.lent {
		return false
	}
	came := s.note(p)
	s.came += came
	if s.lends++; s.lends == slowLends {
		s.worth = s.came >= slowLends*slowWorth
		s.slow = !s.worth
		s.lends, s.came = 0, 0
	}
	s.lent = came >= few(leaveWorth) && s.left < leaveMax && p.ring.Len() < p.ring.Cap()/2
	s.left++
	return s.lent
}

// few returns how many records are enough. The explorer has only a few.
func few(n uint64) uint64 {
	if atomicx.Exploring {
		return 1
	}
	return n
}

// idle takes note of turns without anything.
func (s *stream) idle(turns uint32) {
	if turns > streamIdle {
		s.found = 0
	}
}
