package partition

import (
	"context"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/ring"
	"github.com/leatlog/leat/segment"
)

// Publish appends r and returns its offset once readers can see it. It waits for the appender, and under Block for room.
// If it returns an error the record will never appear, unless the error is ErrIndefinite.
func (p *Partition) Publish(ctx context.Context, r *segment.Record) (int64, error) {
	if err := p.admit(ctx, sizeOf(r)); err != nil {
		return -1, err
	}
	if err := ctx.Err(); err != nil {
		return -1, err // also if it would not have to wait, so that the answer does not depend on what others do
	}
	if p.mayAppend(ctx) && p.ring.TakeIdle() {
		if p.tooLate(ctx) {
			p.hold()
			return -1, ErrDraining
		}
		off, err, ok := p.appendHeld(r)
		if ok {
			p.hold()
			return off, err
		}
		// Full: queue up like everybody. The role goes to the goroutine, which may wait.
		p.wake.Unpark()
	}
	req := p.newRequest()
	req.setOne(*r, stored(r))
	return p.wait(ctx, req)
}

// PublishBatch appends the records one behind the other, visible all at once, and returns the offset of the first; on
// success it has set Offset and Partition of each. If it returns an error none of them will ever appear. An empty batch
// does nothing.
func (p *Partition) PublishBatch(ctx context.Context, batch []segment.Record) (int64, error) {
	if len(batch) == 0 {
		_, next := p.Snapshot()
		return next, nil
	}
	var size, beside int64
	for i := range batch {
		r := &batch[i]
		n := sizeOf(r)
		if n > p.cfg.MaxRecordBytes {
			return -1, p.tooLarge(n)
		}
		size += n
		if r.Timestamp != 0 || r.Headers.Size() > 0 {
			beside += stored(r) - n
		}
	}
	bytes := size + beside
	if err := p.admit(ctx, 0); err != nil {
		return -1, err
	}
	if err := p.batchTooLarge(size, bytes, len(batch)); err != nil {
		return -1, err
	}
	off, err := p.publishBatch(ctx, batch, bytes)
	if err == nil {
		index := int32(p.cfg.Index)
		for i := range batch {
			batch[i].Offset, batch[i].Partition = off+int64(i), index
		}
	}
	return off, err
}

// publishBatch appends a batch that fits all limits: by itself if it can have the role, else in the ring.
func (p *Partition) publishBatch(ctx context.Context, batch []segment.Record, bytes int64) (int64, error) {
	if err := ctx.Err(); err != nil {
		return -1, err
	}
	if p.mayAppend(ctx) && p.takeSoon() {
		if p.tooLate(ctx) {
			p.hold()
			return -1, ErrDraining
		}
		off, err, ok := p.appendBatchHeld(batch, bytes)
		if ok {
			p.hold()
			return off, err
		}
		p.wake.Unpark()
	}
	req := p.newRequest()
	req.set(batch, bytes)
	return p.wait(ctx, req)
}

// takeSoon takes the role if it is free, or becomes so while nobody queues for it: who has it appends a batch of his own and
// gives it back, which takes less than handing over another.
func (p *Partition) takeSoon() bool {
	for turn := uint32(0); ; turn++ {
		if p.ring.TakeIdle() {
			return true
		}
		if turn >= bounded(soonTurns) || p.ring.Claimed() || atomicx.OneProc() {
			return false
		}
		atomicx.Pause(soonPause)
	}
}

const (
	soonTurns = 16 // about 1.6 us in all: what it takes to append a hundred records
	soonPause = 4
)

// Flush returns once every publish that was accepted before it has its result, callbacks included.
func (p *Partition) Flush(ctx context.Context) error {
	if p.calls.here() {
		return ErrSelfBlock // a callback of this partition waits for itself
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.exclusive.Load() == nil && !p.ring.Closed() {
		req := p.newRequest()
		req.barrier = true
		if _, err := p.wait(ctx, req); err != nil {
			return err
		}
	}
	if err := p.calls.flush(ctx); err != nil || p.store == nil {
		return err
	}
	return p.store.Sync(ctx, p.log.Committed())
}

// TryPublish hands r over without waiting, or returns ErrFull. Once accepted the record will be in the log, behind
// everything the caller has published before, unless the partition is closed first.
func (p *Partition) TryPublish(r *segment.Record) error {
	size := sizeOf(r)
	if err := p.admit(nil, size); err != nil {
		return err
	}
	if p.full.Load() != 0 {
		return ErrFull
	}
	if p.store == nil && p.ring.TakeIdle() {
		if p.tooLate(nil) {
			p.hold()
			return ErrDraining
		}
		_, err, ok := p.appendHeld(r)
		if !ok {
			p.hold()
			return ErrFull
		}
		p.letGo()
		return err
	}
	n, big := p.claimSize(size)
	var req *request
	if big {
		if p.ring.Cap()-p.ring.Len() < n {
			return ErrFull // before the copy is made
		}
		req = p.copied(r, nil)
	}
	pos, o := p.ring.TryClaim(n)
	switch o {
	case ring.Full:
		return ErrFull
	case ring.Closed:
		return p.refusal()
	}
	if p.tooLate(nil) {
		p.void(pos, n, o)
		return ErrDraining
	}
	p.handOver(pos, n, r, req, nil, o)
	return nil
}

// PublishAsync copies r into the hand-over and returns; done, if not nil, is called with the result, on a worker, in offset
// order. It waits for room in the hand-over, until ctx ends; ctx is not looked at if there is some. After an error done is
// never called and the record will never appear.
func (p *Partition) PublishAsync(ctx context.Context, r *segment.Record, done Done) error {
	size := sizeOf(r)
	if done == nil && size <= p.cfg.MaxRecordBytes && p.alone.Load() != 0 && p.lent.Load() == offered && p.mayAppend(ctx) &&
		p.direct(r, size) {
		return nil
	}
	if done == nil && size <= p.inlineMax && p.state.Load() == 0 {
		if pos, crowded, ok := p.ring.TryClaimOne(); ok {
			if p.tooLate(ctx) {
				p.void(pos, 1, ring.Claimed)
				return ErrDraining
			}
			p.fillOne(pos, r)
			p.ring.Ready(pos)
			if crowded {
				p.help(ctx)
			}
			p.lookForAppender()
			return nil
		}
	}
	return p.publishAsync(ctx, r, size, done)
}

// publishAsync is PublishAsync when the short way is not open: the partition is idle, or the ring full, or another producer
// was quicker, or there is more to do.
func (p *Partition) publishAsync(ctx context.Context, r *segment.Record, size int64, done Done) error {
	if err := p.admit(ctx, size); err != nil {
		return err
	}
	if done != nil {
		if err := p.calls.enter(ctx); err != nil {
			return err
		}
	}
	if p.store == nil && p.ring.TakeIdle() {
		if p.tooLate(ctx) {
			if done != nil {
				p.calls.leave()
			}
			p.hold()
			return ErrDraining
		}
		off, err, ok := p.appendHeld(r)
		if ok {
			if done != nil {
				p.calls.add(done, off, err)
			}
			p.letGo()
			if done == nil {
				return err
			}
			return nil
		}
		p.wake.Unpark()
	}
	n, big := p.claimSize(size)
	var req *request
	if big {
		req = p.copied(r, done)
	}
	pos, o := p.ring.TryClaim(n)
	full := o == ring.Full
	if full && p.help(ctx) {
		pos, o = p.ring.TryClaim(n)
	}
	var err error
	if o == ring.Full {
		pos, o, err = p.claim(ctx, n)
	}
	if o == ring.Closed {
		err = p.refusal()
	}
	if err != nil {
		if done != nil {
			p.calls.leave()
		}
		return err
	}
	if p.tooLate(ctx) {
		if done != nil {
			p.calls.leave()
		}
		p.void(pos, n, o)
		return ErrDraining
	}
	p.handOver(pos, n, r, req, done, o)
	if !atomicx.Exploring && done == nil && size <= p.inlineMax && !full && o == ring.Claimed {
		// Most likely a producer on another processor came first.
		p.rival.Store(1)
		// Both would go on taking the claim word from each other for
		// every record; while one lets others run, the other goes at full speed.
		atomicx.Yield()
	}
	return nil
}

// claimSize returns how many slots a record of size bytes takes, and whether it is handed over as a copy of its own instead
// of inside the slots. Such a copy takes a quarter of the ring, so that the memory of what is in flight stays bounded.
func (p *Partition) claimSize(size int64) (n int, big bool) {
	quarter := max(1, p.ring.Cap()/4)
	if size > int64(quarter)*inlineBytes {
		return quarter, true
	}
	return slotsFor(size), false
}

// copied returns a request that owns a copy of r. It is made before the claim: others would have to wait for it.
func (p *Partition) copied(r *segment.Record, done Done) *request {
	req := p.newRequest()
	req.setOne(r.Clone(), stored(r))
	req.owned, req.done = true, done
	return req
}

// handOver fills a claim, with req if there is one, and publishes it to the holder of the role, which the caller may have
// become by the claim.
func (p *Partition) handOver(pos uint64, n int, r *segment.Record, req *request, done Done, o ring.Outcome) {
	if req != nil {
		p.fillRequest(pos, n, req)
	} else {
		p.fill(pos, n, r, done)
	}
	p.ring.Ready(pos)
	if o == ring.ClaimedIdle {
		p.hold()
	} else {
		p.lookForAppender()
	}
}

func (p *Partition) fillRequest(pos uint64, n int, req *request) {
	s := p.ring.Slot(pos, 0)
	atomicx.Writes(unsafe.Pointer(s))
	s.begin(kindRequest, n)
	s.req, s.done = req, nil
}

// lookForAppender is called after a claim. An Appender that came between the caller's look at the state and its claim serves
// no ring, so the entry is turned away. Pairs with Partition.Appender: it sets the state's bit and then takes the idle bit,
// which it can only if nothing is claimed; a claim after that looks here after the claim, and sees the bit.
func (p *Partition) lookForAppender() {
	if p.state.Load()&stateExclusive != 0 {
		_ = p.post(&control{run: p.turnAway}) // if the partition has ended there is nothing left in the ring
	}
}

// turnAway fails what is in the ring while an Appender has the role. If none has it yet, or any more, the ring is served.
func (p *Partition) turnAway() {
	if p.exclusive.Load() != nil && p.state.Load()&(stateClosing|stateFinishing) == 0 {
		p.failAll(ErrExclusive)
	}
}

// wait queues req and waits for its result. It uses req up.
func (p *Partition) wait(ctx context.Context, req *request) (int64, error) {
	if err := ctx.Err(); err != nil {
		p.free(req)
		return -1, err
	}
	ctx, leave := p.enterInside(ctx, false)
	defer leave()
	batch, size, one := req.batch, req.size, req.one[0]
	inside := len(batch) > 0 && &batch[0] == &req.one[0]
	off, err := p.waitOnce(ctx, req)
	if err != errNoMemory {
		return off, err
	}
	if inside {
		batch = []segment.Record{one} // the request, which has it, is somebody else's by now
	}
	return p.waitForMemory(ctx, batch, size)
}

// waitOnce is one attempt of wait.
func (p *Partition) waitOnce(ctx context.Context, req *request) (int64, error) {
	pos, o := p.ring.TryClaim(1)
	if o == ring.Full {
		var err error
		if pos, o, err = p.claim(ctx, 1); err != nil {
			p.free(req)
			return -1, err
		}
	}
	if o == ring.Closed {
		p.free(req)
		return -1, p.refusal()
	}
	if !req.barrier && p.tooLate(ctx) {
		p.free(req)
		p.void(pos, 1, o)
		return -1, ErrDraining
	}
	handler := pooled(ctx)
	req.handler, req.slow = handler, p.store != nil
	p.fillRequest(pos, 1, req)
	p.ring.Ready(pos)
	switch {
	case o != ring.ClaimedIdle:
		p.lookForAppender()
	case p.store != nil && p.mayAppend(ctx):
		p.holdWhole()
	default:
		p.hold()
	}
	p.blocked.Add(1) // a full barrier
	if handler {
		p.crowdIn()
	}
	in, late := req.await(ctx.Done(), p.patience())
	p.blocked.Add(-1)
	if late {
		return -1, p.leftBehind(ctx)
	}
	if !in {
		// The holder finds it given up, and drops the last reference. If it waits for room for just this one, it may go on.
		p.room.Broadcast()
		return -1, ended(ctx)
	}
	off, err := req.off, req.err
	p.free(req)
	return off, err
}

// waitForMemory tries again and again to publish a batch that had room in the log while the engine had no memory. The one who
// has the records waits for it, so that the holder of the role is free for others.
//
// No wake-up is lost: it registers, tries, and then waits. A try that fails for lack of memory takes none and gives none
// back (the request is tight), so it wakes nobody, itself included.
func (p *Partition) waitForMemory(ctx context.Context, batch []segment.Record, size int64) (int64, error) {
	w := p.newRoomWaiter()
	for {
		w.prepare()
		req := p.newRequest()
		req.set(batch, size)
		req.tight = true
		off, err := p.waitOnce(ctx, req)
		if err != errNoMemory {
			w.cancel()
			return off, err
		}
		// It may be our own handler's gate that keeps the log from giving memory back.
		if o := originOf(ctx); o != nil && o.gate != nil && p.holdup() == o.gate {
			w.cancel()
			return -1, ErrSelfBlock
		}
		p.blocked.Add(1)
		woken := w.wait(ctx.Done())
		p.blocked.Add(-1)
		if !woken {
			return -1, ended(ctx)
		}
	}
}

// claim waits for n slots of the ring.
func (p *Partition) claim(ctx context.Context, n int) (uint64, ring.Outcome, error) {
	ctx, leave := p.enterInside(ctx, true)
	defer leave()
	p.blocked.Add(1)
	defer p.blocked.Add(-1)
	pos, o, ok := p.ring.Claim(n, ctx.Done())
	if !ok {
		return 0, ring.Full, ended(ctx)
	}
	return pos, o, nil
}

// ended returns why ctx has ended: what its owner knows it by, unless it was ended by the partition.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause == ErrSelfBlock || cause == ErrWorkersBlocked {
		return cause
	}
	return ctx.Err()
}
