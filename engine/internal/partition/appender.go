package partition

import (
	"errors"
	"math"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// Everything in this file is called by the holder of the role.

const noEviction = math.MaxUint64

// entryBytes is what a record takes in the log beside its bytes.
const entryBytes = segment.EntryBytes

// cost is what n records of size bytes count against MaxBytes.
func (p *Partition) cost(size int64, n int) int64 { return size + int64(n)*entryBytes }

// verdict is what became of an attempt to stage records.
type verdict uint8

const (
	staged  verdict = iota
	noRoom          // the limits, or the engine's memory, and the policy says to wait
	refused         // it failed; the error says why
)

// appendHeld appends one record directly and publishes it. ok is false if it would have to wait for room; then nothing has
// happened.
func (p *Partition) appendHeld(r *segment.Record) (off int64, err error, ok bool) {
	atomicx.Writes(unsafe.Pointer(&p.a)) // the holder's own
	p.stamp()
	v, err := p.stage(r)
	switch v {
	case noRoom:
		return -1, nil, false
	case refused:
		return -1, err, true
	}
	off = int64(p.log.Staged()) - 1
	if err = p.publish(); err != nil {
		return -1, p.toldOf(1, err), true
	}
	return off, nil, true
}

// appendBatchHeld is appendHeld for a batch that fits all limits. ok is false also if it would need more care than a passer-by
// should take.
func (p *Partition) appendBatchHeld(batch []segment.Record, size int64) (off int64, err error, ok bool) {
	atomicx.Writes(unsafe.Pointer(&p.a))
	p.stamp()
	switch v, err := p.takeRoom(size, len(batch)); v {
	case noRoom:
		return -1, nil, false
	case refused:
		return -1, err, true
	}
	off = int64(p.log.Staged())
	if p.stageEach(batch) != nil {
		p.a.roomRecords = 0 // nothing has been staged; the next record counts afresh
		return -1, nil, false
	}
	if err := p.publish(); err != nil {
		return -1, p.toldOf(len(batch), err), true
	}
	return off, nil, true
}

// stamp reads the clock for the batch that begins. With MaxAge, which works in whole segments, it ends the active segment if
// that began a quarter of MaxAge ago: so the last record of a segment is never much younger than the first.
func (p *Partition) stamp() {
	p.a.now = p.a.watch.Now()
	if p.timer != nil && p.a.now >= p.a.rollAt {
		p.log.Roll()
		p.a.rollAt = p.a.now + max(1, int64(p.cfg.Limits.MaxAge/4))
	}
}

// stage copies one record into the log, not visible yet.
func (p *Partition) stage(r *segment.Record) (verdict, error) {
	size := stored(r)
	for {
		if v, err := p.takeRoom(size, 1); v != staged {
			return v, err
		}
		err := p.log.Append(r, p.a.now)
		if err == nil {
			return staged, nil
		}
		if v, err := p.settle(err); v != staged {
			return v, err
		}
	}
}

// drain takes up to limit entries that are ready off the ring, stages their records and publishes them. It returns how many
// it took, and whether it stopped at one for which there is no room.
func (p *Partition) drain(limit int) (n int, stuck bool) {
	atomicx.Writes(unsafe.Pointer(&p.a)) // the holder's own
	pos := p.ring.Head()
	if !p.ring.IsReady(pos) {
		return 0, false
	}
	if p.store != nil {
		if err := p.unwritable(); err != nil {
			p.failAll(err)
			return 1, false
		}
		p.gatherUp()
	}
	p.stamp()
	p.a.waited = true
	for n < limit && p.ring.IsReady(pos) {
		s := p.ring.Slot(pos, 0)
		atomicx.Writes(unsafe.Pointer(s)) // what it points to is let go
		if s.kind() == kindInline {
			p.a.waited = false
			stuck = !p.takeInline(s, pos)
		} else {
			stuck = !p.takeRequest(s)
		}
		if stuck {
			break
		}
		pos = p.ring.Advance(pos, s.slots())
		n++
	}
	switch {
	case n == 0:
	case p.store == nil:
		p.publish()
		p.ring.Release(pos) // by one store, behind what readers wait for
	default:
		p.ring.Release(pos) // it is staged: producers need not wait for the write
		p.publish()
		p.a.known = n + p.ring.Len() // in memory nobody asks, and a look at the tail takes it from producers
	}
	return n, stuck
}

// takeInline stages the record in the slots from pos on, and reports whether it is done with it.
func (p *Partition) takeInline(s *slot, pos uint64) bool {
	total := int(s.headers) + max(0, int(s.key)) + max(0, int(s.value))
	shape := segment.Shape{Key: int(s.key), Value: int(s.value), Headers: int(s.headers), Timestamp: s.timestamp}
	for {
		v, err := p.takeRoom(s.stored(), 1)
		if v == staged {
			var dst []byte
			if dst, err = p.log.Reserve(shape, p.a.now); err == nil {
				if total <= inlineBytes {
					copy(dst, s.data[:total])
				} else {
					p.gather(dst, pos)
				}
				if s.done != nil {
					p.a.results = append(p.a.results, result{done: s.done, off: int64(p.log.Staged()) - 1})
					s.done = nil
				}
				return true
			}
			if v, err = p.settle(err); v == staged {
				continue
			}
		}
		if v == noRoom {
			return false
		}
		p.publish() // what came before is told before
		p.tell(s.done, -1, err)
		s.done = nil
		return true
	}
}

// tell reports the result of a publish that nobody waits for.
func (p *Partition) tell(done Done, off int64, err error) {
	switch {
	case done != nil:
		p.calls.add(done, off, err)
	case err != nil:
		p.failed.Add(1)
	}
}

// takeRequest stages the records of a request, and reports whether it is done with it.
func (p *Partition) takeRequest(s *slot) bool {
	req := s.req
	if !req.barrier && req.wanted() {
		v, err := p.makeRoom(req.size, req.records)
		if v == noRoom {
			return false
		}
		if v == staged {
			p.a.roomRecords = 0 // counted here for all; the next record counts afresh
		}
		if !req.take() {
			s.req = nil
			return true
		}
		off := int64(p.log.Staged())
		if v == staged {
			v, err = p.stageAll(req)
		}
		if v == noRoom && req.owned {
			return false // an owned request stays taken: nobody can leave it
		}
		s.req = nil
		switch v {
		case staged:
			p.a.results = append(p.a.results, result{req: req, off: off})
		case noRoom:
			p.finish(result{req: req}, errNoMemory) // its publisher waits for memory and comes again
		default:
			p.publish() // what came before is told before
			p.finish(result{req: req}, err)
		}
		return true
	}
	s.req = nil
	if req.take() {
		p.a.results = append(p.a.results, result{req: req})
	}
	return true
}

// stageAll stages all records of a request, or none. It takes what memory comes with each segment; if that does not do for
// the last record it gives it all back, and from then on has a block for the whole batch or does not begin. So it fails again
// and again without taking or giving anything, which would wake others that wait for memory, and they in turn this one.
func (p *Partition) stageAll(req *request) (verdict, error) {
	switch {
	case len(req.batch) < 2:
	case p.store != nil && segment.MaxOffset-p.log.Staged() > uint64(len(req.batch)):
		req.tight = true // it fits as a whole or is not begun, so that it shares a sync with what is staged so far
	default:
		p.publish() // what is staged so far must not be dropped with a batch that does not fit
	}
	for {
		var err error
		if req.tight {
			err = p.log.Ensure(req.size, req.records, p.a.now)
		}
		if err == nil {
			err = p.stageEach(req.batch)
		}
		if err == nil {
			return staged, nil
		}
		if !req.tight && errors.Is(err, segment.ErrNoMemory) {
			req.tight = true
			continue
		}
		if v, err := p.settle(err); v != staged {
			return v, err
		}
	}
}

// stageEach stages the records, or none.
func (p *Partition) stageEach(batch []segment.Record) error {
	for i := range batch {
		if v := batch[i].Value; atomicx.Exploring && len(v) > 0 {
			atomicx.Reads(unsafe.Pointer(&v[0])) // the publisher's, who stands still
		}
	}
	n, err := p.log.AppendEach(batch, p.a.now)
	if n > 0 && err != nil {
		p.log.Unstage()
	}
	return err
}

// settle says what to do about an error of the log: staged means try again.
func (p *Partition) settle(err error) (verdict, error) {
	switch {
	case errors.Is(err, segment.ErrNoMemory):
		p.a.roomRecords = 0
		p.publish()
		if p.dropOldest() {
			return staged, nil
		}
		if p.cfg.OnFull == Block {
			return noRoom, nil
		}
		return refused, ErrFull
	case errors.Is(err, segment.ErrExhausted):
		return refused, ErrExhausted
	case errors.Is(err, segment.ErrTooLarge):
		return refused, ErrTooLarge // limits that were checked before make this impossible
	default:
		return refused, p.refusal()
	}
}

// publish makes visible what is staged, tells whoever waits for it, and wakes the readers. The error is what became of what
// was staged; all who wait for it have been told.
func (p *Partition) publish() error {
	p.a.batch = 0
	if p.log.Unpublished() > 0 {
		if p.store != nil {
			if err := p.commit(); err != nil {
				return err
			}
		}
		if err := p.log.Publish(); err != nil {
			err = p.refusal()
			for _, r := range p.a.results {
				p.finish(r, err)
			}
			p.clearResults()
			return err
		}
		p.committed.Broadcast() // Publish is the barrier before its look at who waits
		if p.timer != nil && p.a.age == ageUnset {
			p.armAge()
		}
		if p.log.Staged() >= p.evictAt.Load() {
			p.evict()
		}
	}
	if len(p.a.results) > 0 {
		for _, r := range p.a.results {
			p.finish(r, nil)
		}
		p.clearResults()
	}
	return nil
}

func (p *Partition) clearResults() {
	clear(p.a.results)
	p.a.results = p.a.results[:0]
}

// finish tells one publisher how it ended.
func (p *Partition) finish(r result, err error) {
	off := r.off
	if err != nil {
		off = -1
	}
	switch {
	case r.req == nil:
		p.tell(r.done, off, err)
	case r.req.owned:
		p.tell(r.req.done, off, err)
		p.free(r.req)
	default:
		r.req.finish(off, err)
	}
}

// failAll fails every entry of the ring: the partition is closing and there is no room, or an Appender has it.
func (p *Partition) failAll(err error) {
	for turn := uint32(0); ; {
		pos := p.ring.Head()
		if !p.ring.IsReady(pos) {
			if !p.ring.Claimed() {
				return
			}
			atomicx.Relax(turn)
			turn++
			continue
		}
		s := p.ring.Slot(pos, 0)
		switch req := s.req; {
		case s.kind() == kindInline:
			p.tell(s.done, -1, err)
		case req.barrier && req.take():
			p.finish(result{req: req}, nil) // what was before it has its result
		case req.take():
			p.finish(result{req: req}, err)
		}
		s.req, s.done = nil, nil
		p.ring.Release(p.ring.Advance(pos, s.slots()))
	}
}

// takeRoom makes room for n records of size bytes together.
func (p *Partition) takeRoom(size int64, n int) (verdict, error) {
	if need := p.cost(size, n); p.a.roomRecords >= int64(n) && p.a.roomBytes >= need {
		p.a.roomRecords -= int64(n)
		p.a.roomBytes -= need
		return staged, nil
	}
	return p.makeRoom(size, n)
}

// makeRoom makes room for n records of size bytes together, as the limits and the policy allow.
func (p *Partition) makeRoom(size int64, n int) (verdict, error) {
	need := p.cost(size, n)
	for {
		records, bytes, _ := p.log.Retained()
		if p.cfg.Limits.Fits(records+int64(n)-1, bytes, need) {
			p.a.roomRecords = p.cfg.Limits.RecordsLeft(records) - int64(n)
			p.a.roomBytes = p.cfg.Limits.BytesLeft(bytes) - need
			return staged, nil
		}
		p.publish() // only what is published can be dropped
		if p.dropOldest() {
			continue
		}
		p.a.roomRecords = 0
		if p.cfg.OnFull == Block {
			return noRoom, nil
		}
		return refused, ErrFull
	}
}

// dropOldest drops the oldest segment if the policy lets it go.
func (p *Partition) dropOldest() bool {
	p.gateMu.Lock()
	defer p.gateMu.Unlock()
	s, ok := p.log.Oldest()
	if !ok || p.held(s) {
		return false
	}
	return p.drop(s)
}

// held reports whether a gate keeps s, the oldest segment, from being dropped.
func (p *Partition) held(s segment.Info) bool {
	return p.holder(s) != nil
}

// drop drops the oldest segment, which is s. The caller holds gateMu.
func (p *Partition) drop(s segment.Info) bool {
	if !p.log.DropOldest() {
		return false
	}
	if p.store != nil {
		p.store.Dropped(p.log.First())
	}
	p.reclaimed.Add(int64(s.End - s.First))
	return true
}
