package partition

import (
	"context"
	"errors"

	"github.com/leatlog/leat/ring"
	"github.com/leatlog/leat/segment"
)

// Publish appends r and returns its offset once readers can see it. It waits for the appender, and under Block for room.
// If it returns an error the record will never appear.
func (p *Partition) Publish(ctx context.Context, r *segment.Record) (int64, error) {
	size := int64(r.Size())
	if err := p.admit(ctx, size, 1); err != nil {
		return -1, err
	}
	if p.ring.TakeIdle() {
		off, err, ok := p.appendHeld(r)
		if ok {
			p.hold()
			return off, err
		}
		// Full: queue up like everybody. The role goes to the goroutine, which may wait.
		p.wake.Unpark()
	}
	req := newRequest()
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
	var size int64
	for i := range batch {
		n := int64(batch[i].Size())
		if n > p.cfg.MaxRecordBytes {
			return -1, &TooLargeError{Size: n, Limit: p.cfg.MaxRecordBytes}
		}
		size += stored(&batch[i])
	}
	if err := p.admit(ctx, 0, len(batch)); err != nil {
		return -1, err
	}
	if !p.cfg.Limits.Fits(int64(len(batch))-1, 0, p.cost(size, len(batch))) {
		return -1, &TooLargeError{Size: size, Limit: p.cfg.Limits.MaxBytes}
	}
	req := newRequest()
	req.set(batch, size)
	off, err := p.wait(ctx, req)
	if err == nil {
		for i := range batch {
			batch[i].Offset = off + int64(i)
			batch[i].Partition = int32(p.cfg.Index)
		}
	}
	return off, err
}

// Flush returns once every publish that was accepted before it has its result, callbacks included.
func (p *Partition) Flush(ctx context.Context) error {
	if p.calls.here() {
		return ErrSelfBlock // a callback of this partition waits for itself
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.exclusive.Load() == nil && !p.ring.Closed() {
		req := newRequest()
		req.barrier = true
		if _, err := p.wait(ctx, req); err != nil {
			return err
		}
	}
	return p.calls.flush(ctx)
}

// TryPublish hands r over without waiting, or returns ErrFull. Once accepted the record will be in the log, behind
// everything the caller has published before, unless the partition is closed first.
func (p *Partition) TryPublish(r *segment.Record) error {
	size := int64(r.Size())
	if err := p.admit(nil, size, 1); err != nil {
		return err
	}
	if p.full.Load() != 0 {
		return ErrFull
	}
	if p.ring.TakeIdle() {
		_, err, ok := p.appendHeld(r)
		if !ok {
			err = ErrFull
		}
		p.letGo()
		return err
	}
	n, big := p.claimSize(size)
	pos, o := p.ring.TryClaim(n)
	switch o {
	case ring.Full:
		return ErrFull
	case ring.Closed:
		return p.refusal()
	}
	p.handOver(pos, n, big, r, nil, o)
	return nil
}

// PublishAsync copies r into the hand-over and returns; done, if not nil, is called with the result, by a worker, in offset
// order. It waits for room in the hand-over. After an error done is never called and the record will never appear.
func (p *Partition) PublishAsync(ctx context.Context, r *segment.Record, done Done) error {
	size := int64(r.Size())
	if err := p.admit(ctx, size, 1); err != nil {
		return err
	}
	if done != nil {
		if err := p.calls.enter(ctx); err != nil {
			return err
		}
	}
	if p.ring.TakeIdle() {
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
	pos, o := p.ring.TryClaim(n)
	if o == ring.Full {
		var err error
		if pos, o, err = p.claim(ctx, n); err != nil {
			if done != nil {
				p.calls.leave()
			}
			return err
		}
	}
	if o == ring.Closed {
		if done != nil {
			p.calls.leave()
		}
		return p.refusal()
	}
	p.handOver(pos, n, big, r, done, o)
	return nil
}

// admit says whether a publish of records of so many bytes may go on.
func (p *Partition) admit(ctx context.Context, size int64, records int) error {
	if p.state.Load() != 0 {
		if err := p.refuse(ctx); err != nil {
			return err
		}
	}
	if size > p.cfg.MaxRecordBytes {
		return &TooLargeError{Size: size, Limit: p.cfg.MaxRecordBytes}
	}
	if p.cfg.OnFull == Reject && p.full.Load() != 0 {
		return ErrFull
	}
	return nil
}

// refuse says why the partition takes no publish, if it does not.
func (p *Partition) refuse(ctx context.Context) error {
	s := p.state.Load()
	switch {
	case s&(stateClosing|stateFinishing) != 0:
		return p.refusal()
	case s&stateExclusive != 0:
		return ErrExclusive
	case s&stateDraining != 0 && (ctx == nil || originOf(ctx) == nil):
		return ErrDraining
	}
	return nil
}

// refusal is what a publisher gets that found the ring closed.
func (p *Partition) refusal() error {
	if err := p.Cause(); err != nil {
		return err
	}
	return ErrClosed
}

// claimSize returns how many slots a record of size bytes takes, and whether it is handed over as a copy of its own instead
// of inside the slots. Such a copy takes a quarter of the ring, so that the memory of what is in flight stays bounded.
func (p *Partition) claimSize(size int64) (n int, big bool) {
	quarter := max(1, p.ring.Cap()/4)
	if size > int64(quarter)*inlineBytes {
		return quarter, true
	}
	return slotsFor(int(size)), false
}

// handOver fills a claim and publishes it to the holder of the role, which the caller may have become by the claim.
func (p *Partition) handOver(pos uint64, n int, big bool, r *segment.Record, done Done, o ring.Outcome) {
	if big {
		req := newRequest()
		req.setOne(r.Clone(), stored(r))
		req.owned, req.done = true, done
		p.fillRequest(pos, n, req)
	} else {
		p.fill(pos, n, r, done)
	}
	p.ring.Ready(pos)
	if o == ring.ClaimedIdle {
		p.letGo()
	}
}

func (p *Partition) fillRequest(pos uint64, n int, req *request) {
	s := p.ring.Slot(pos, 0)
	s.kind, s.slots = kindRequest, uint16(n)
	s.req, s.done = req, nil
}

// letGo is hold for publishers that do not wait for their result: when they come in a stream the goroutine takes over,
// since it appends many records with one publication where they would pay for one each.
func (p *Partition) letGo() {
	if p.a.hot >= hotStreak {
		p.a.hot = 0
		p.wake.Unpark()
		return
	}
	p.hold()
}

// wait queues req and waits for its result. It uses req up.
func (p *Partition) wait(ctx context.Context, req *request) (int64, error) {
	if err := ctx.Err(); err != nil {
		req.free()
		return -1, err
	}
	ctx, leave := p.enterInside(ctx)
	defer leave()
	for {
		batch, size, one := req.batch, req.size, req.one[0]
		off, err := p.waitOnce(ctx, req)
		if !errors.Is(err, errNoMemory) {
			return off, err
		}
		// There was room in the log but no memory in the engine. Whoever has the record waits for it here, so that the
		// holder of the role is free for others.
		if err := p.waitForMemory(ctx, size, len(batch)); err != nil {
			return -1, err
		}
		req = newRequest()
		if len(batch) == 1 {
			req.setOne(one, size)
		} else {
			req.set(batch, size)
		}
	}
}

// waitOnce is one attempt of wait.
func (p *Partition) waitOnce(ctx context.Context, req *request) (int64, error) {
	pos, o := p.ring.TryClaim(1)
	if o == ring.Full {
		var err error
		if pos, o, err = p.claim(ctx, 1); err != nil {
			req.free()
			return -1, err
		}
	}
	if o == ring.Closed {
		req.free()
		return -1, p.refusal()
	}
	p.fillRequest(pos, 1, req)
	p.ring.Ready(pos)
	if o == ring.ClaimedIdle {
		p.hold()
	}
	p.blocked.Add(1)
	in := req.await(ctx.Done())
	p.blocked.Add(-1)
	if !in {
		// The holder finds it given up, and drops the last reference. If it waits for room for just this one, it may go on.
		p.room.Broadcast()
		return -1, context.Cause(ctx)
	}
	off, err := req.off, req.err
	req.free()
	return off, err
}

// claim waits for n slots of the ring.
func (p *Partition) claim(ctx context.Context, n int) (uint64, ring.Outcome, error) {
	if p.cfg.OnFull == Reject && p.full.Load() != 0 {
		return 0, ring.Full, ErrFull
	}
	ctx, leave := p.enterInside(ctx)
	defer leave()
	p.blocked.Add(1)
	defer p.blocked.Add(-1)
	pos, o, ok := p.ring.Claim(n, ctx.Done())
	if !ok {
		return 0, ring.Full, context.Cause(ctx)
	}
	return pos, o, nil
}

// insider is a publish from inside a handler that waits.
type insider struct {
	gate  *Gate
	abort context.CancelCauseFunc
}

type originKey struct{}

// WithOrigin returns a context for a handler of the lane that owns g; a publish with it that would wait for g fails with
// ErrSelfBlock instead. g may be nil: then the context only says that it is a handler's.
func WithOrigin(ctx context.Context, g *Gate) context.Context {
	return context.WithValue(ctx, originKey{}, &origin{g})
}

type origin struct{ gate *Gate }

func originOf(ctx context.Context) *origin {
	o, _ := ctx.Value(originKey{}).(*origin)
	return o
}

// enterInside registers a waiting publish that comes from a handler of this partition's own gating lane. The context it
// returns ends with ErrSelfBlock when the holder waits for that lane: the two would wait for each other for ever.
func (p *Partition) enterInside(ctx context.Context) (context.Context, func()) {
	o := originOf(ctx)
	if o == nil || o.gate == nil || o.gate.p != p {
		return ctx, func() {}
	}
	inner, cancel := context.WithCancelCause(ctx)
	in := &insider{gate: o.gate, abort: cancel}
	p.insideMu.Lock()
	p.inside[in] = struct{}{}
	p.insideMu.Unlock()
	if p.stuckOn.Load() == o.gate { // pairs with waitForRoom: it stores stuckOn, then looks at inside
		cancel(ErrSelfBlock)
	}
	return inner, func() {
		p.insideMu.Lock()
		delete(p.inside, in)
		p.insideMu.Unlock()
		cancel(nil)
	}
}

// abortInside ends the waiting publishes that come from a handler of g.
func (p *Partition) abortInside(g *Gate) {
	p.insideMu.Lock()
	defer p.insideMu.Unlock()
	for in := range p.inside {
		if in.gate == g {
			in.abort(ErrSelfBlock)
		}
	}
}
