package partition

import (
	"context"
	"errors"
	"math"

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
	last := p.a.now
	p.a.now = p.cfg.Clock.Now()
	if p.a.now-last < hotGap {
		p.a.hot++
	} else {
		p.a.hot = 0
	}
	v, err := p.stage(r)
	switch v {
	case noRoom:
		return -1, nil, false
	case refused:
		return -1, err, true
	}
	off = int64(p.log.Staged()) - 1
	p.publish()
	return off, nil, true
}

// stage copies one record into the log, not visible yet.
func (p *Partition) stage(r *segment.Record) (verdict, error) {
	size := stored(r)
	for {
		if v, err := p.takeRoom(size); v != staged {
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
	pos := p.ring.Head()
	if !p.ring.IsReady(pos) {
		return 0, false
	}
	p.a.now = p.cfg.Clock.Now() // one stamp for the batch
	for n < limit && p.ring.IsReady(pos) {
		s := p.ring.Slot(pos, 0)
		if s.kind == kindInline {
			stuck = !p.takeInline(s, pos)
		} else {
			stuck = !p.takeRequest(s)
		}
		if stuck {
			break
		}
		pos = p.ring.Advance(pos, int(s.slots))
		n++
	}
	if n > 0 {
		p.publish()
		p.ring.Release(pos)
	}
	return n, stuck
}

// takeInline stages the record in the slots from pos on, and reports whether it is done with it.
func (p *Partition) takeInline(s *slot, pos uint64) bool {
	total := int(s.headers) + max(0, int(s.key)) + max(0, int(s.value))
	shape := segment.Shape{Key: int(s.key), Value: int(s.value), Headers: int(s.headers), Timestamp: s.timestamp}
	for {
		v, err := p.takeRoom(s.stored())
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

// stageAll stages all records of a request, or none.
func (p *Partition) stageAll(req *request) (verdict, error) {
again:
	if len(req.batch) > 1 {
		p.publish() // what is staged so far must not be dropped with a batch that does not fit
	}
	for i := range req.batch {
		err := p.log.Append(&req.batch[i], p.a.now)
		if err == nil {
			continue
		}
		if i > 0 {
			p.log.Unstage()
		}
		v, err := p.settle(err)
		if v == staged {
			goto again
		}
		return v, err
	}
	return staged, nil
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
		return refused, ErrTooLarge
	default:
		return refused, p.refusal()
	}
}

// publish makes visible what is staged, tells whoever waits for it, and wakes the readers.
func (p *Partition) publish() {
	if p.log.Unpublished() > 0 {
		if err := p.log.Publish(); err != nil {
			err = p.refusal()
			for _, r := range p.a.results {
				p.finish(r, err)
			}
			p.clearResults()
			return
		}
		p.committed.Broadcast() // the CAS in Publish is the barrier before its look at who waits
		p.note()
		if p.timer != nil {
			p.keepAge()
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
		r.req.free()
	default:
		r.req.finish(off, err)
	}
}

// failAll fails every entry of the ring that has no room: the partition is closing.
func (p *Partition) failAll() {
	err := p.refusal()
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
		switch {
		case s.kind == kindInline:
			p.tell(s.done, -1, err)
		case s.req.take():
			p.finish(result{req: s.req}, err)
		}
		s.req, s.done = nil, nil
		p.ring.Release(p.ring.Advance(pos, int(s.slots)))
	}
}

// takeRoom makes room for one record of size bytes.
func (p *Partition) takeRoom(size int64) (verdict, error) {
	if need := size + entryBytes; p.a.roomRecords >= 1 && p.a.roomBytes >= need {
		p.a.roomRecords--
		p.a.roomBytes -= need
		return staged, nil
	}
	return p.makeRoom(size, 1)
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
	if !ok || s.First == s.End {
		return false
	}
	if p.cfg.OnFull != DropOldest {
		if low, _, gated := p.gates.Min(); gated && low < s.End {
			return false
		}
	}
	return p.drop(s)
}

// drop drops the oldest segment, which is s. The caller holds gateMu.
func (p *Partition) drop(s segment.Info) bool {
	if !p.log.DropOldest() {
		return false
	}
	p.reclaimed.Add(int64(s.End - s.First))
	p.note()
	return true
}

// note shows Stats how many bytes the log has.
func (p *Partition) note() {
	_, bytes, _ := p.log.Retained()
	atomicx.StoreRelease(&p.held, uint64(bytes))
}

// waitForRoom waits until look says to try again (then it returns nil), or fails, or until done is closed.
func (p *Partition) waitForRoom(done <-chan struct{}, look func() (again bool, err error)) error {
	w := atomicx.NewWaiter()
	memory := atomicx.NewCallWaiter(p.room.Broadcast)
	freed := p.cfg.Log.Pool.Freed()
	p.full.Store(1)
	defer func() {
		p.full.Store(0)
		p.stuckOn.Store(nil)
	}()
	for {
		p.room.Prepare(w)
		freed.Prepare(memory)
		again, err := look()
		if again || err != nil {
			p.room.Cancel(w)
			freed.Cancel(memory)
			return err
		}
		p.room.Wait(w, done)
		freed.Cancel(memory)
	}
}

// lookForHead is the look of the partition's goroutine: at the entry at the head of the ring.
func (p *Partition) lookForHead() (again bool, err error) {
	if p.state.Load()&stateClosing != 0 {
		return false, p.refusal()
	}
	p.runControls()
	s := p.ring.Slot(p.ring.Head(), 0)
	if s.kind == kindInline {
		size := s.stored()
		return p.roomFor(size, 1, int(size)), nil
	}
	if !s.req.wanted() {
		return true, nil
	}
	if s.req.owned {
		return p.roomFor(s.req.size, 1, int(s.req.size)), nil
	}
	return p.roomFor(s.req.size, s.req.records, 0), nil
}

// roomFor is one look for room for n records of size bytes together, and for memory bytes of memory. It evicts who is over
// its lag limit, and ends publishers that wait for themselves. The caller holds the role.
func (p *Partition) roomFor(size int64, n, memory int) bool {
	p.evict()
	if v, _ := p.makeRoom(size, n); v == staged {
		p.a.roomRecords = 0 // only a look; the caller does it again
		if memory == 0 || p.log.Ensure(memory) == nil {
			return true
		}
		return p.dropOldest() // no memory in the engine, unless we give some of our own
	}
	g := p.holdup()
	p.stuckOn.Store(g)
	if g != nil {
		p.abortInside(g) // pairs with enterInside: it registers, then looks at stuckOn
	}
	return false
}

// waitForMemory waits until the engine may have memory for a request that had room but no memory.
func (p *Partition) waitForMemory(ctx context.Context, size int64, records int) error {
	pool := p.cfg.Log.Pool
	w := atomicx.NewWaiter()
	pool.Freed().Prepare(w)
	if p.state.Load()&stateClosing != 0 || pool.Fits(p.cost(size, records)) {
		pool.Freed().Cancel(w)
		return nil
	}
	p.blocked.Add(1)
	defer p.blocked.Add(-1)
	if !pool.Freed().Wait(w, ctx.Done()) {
		return context.Cause(ctx)
	}
	return nil
}

// expire drops what is older than MaxAge and sets the timer for the next.
func (p *Partition) expire() {
	p.a.ageArmed = false
	for p.expireOne() {
	}
	p.room.Broadcast()
	p.armAge()
}

// expireOne drops the oldest segment if it is older than MaxAge and no gate holds it.
func (p *Partition) expireOne() bool {
	p.gateMu.Lock()
	defer p.gateMu.Unlock()
	s, ok := p.log.Oldest()
	if !ok || s.First == s.End || !p.cfg.Limits.Expired(s.NewestAppend, p.cfg.Clock.Now()) {
		return false
	}
	if p.cfg.OnFull != DropOldest {
		if low, _, gated := p.gates.Min(); gated && low < s.End {
			// It goes when the gate lets it: whoever moves the gate broadcasts room, and that posts expire again.
			p.room.Prepare(p.late)
			if low, _, gated = p.gates.Min(); gated && low < s.End {
				return false
			}
			p.room.Cancel(p.late)
		}
	}
	return p.drop(s)
}

// keepAge ends the active segment when it spans a quarter of MaxAge, since age works in whole segments, and sees to it that
// the timer runs.
func (p *Partition) keepAge() {
	if p.a.now >= p.a.rollAt {
		p.log.Roll()
		p.a.rollAt = p.a.now + max(1, int64(p.cfg.Limits.MaxAge/4))
	}
	if !p.a.ageArmed {
		p.armAge()
	}
}

// armAge sets the timer to when the oldest segment expires.
func (p *Partition) armAge() {
	s, ok := p.log.Oldest()
	if !ok || s.First == s.End {
		return
	}
	// An expired one that is still here waits for a gate; see expireOne.
	if d, ok := p.cfg.Limits.NextExpiry(s.NewestAppend, p.cfg.Clock.Now()); ok && d > 0 {
		p.timer.Reset(d)
		p.a.ageArmed = true
	}
}
