package partition

import (
	"context"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// Appender is the exclusive way into a partition: it has the role for as long as it is open, so there is no hand-over and
// no batch to wait for. Records are staged by Append and become visible at Flush, or by themselves when flushAfter are
// staged. It is made for one goroutine; calls from several wait for each other.
//
// # Shared state
//
//	guard  free, held or revoked; CASed by whoever makes a call, by Close of the partition, and by a control (see
//	       Partition.post); only a free guard can be taken
//
// # Proof
//
// One holder. The role is the Appender's from its creation until its guard is revoked. Everything that uses the role is
// done while the guard is held: by a call of Append or Flush, or by a control that runs between two calls. Each of them
// takes it by a CAS from free, so they exclude each other, and the release store in leave orders one before the next.
// Whoever revokes it, by a CAS from free, has the role from then on and hands it to the partition's goroutine; there is
// only one such CAS.
//
// Nothing is left waiting for the Appender to close. A control that was posted while the role was on its way to the Appender
// is run by Appender itself: it stores exclusive and then loads ctl, post stores ctl and then loads exclusive. An entry that
// was claimed after the idle bit was taken is turned away: see lookForAppender.
//
// Nothing is lost. Every record whose Append returned an offset is published, at the latest by the one who revokes the role.
//
// Made in place. The holder of a reservation writes to the log without the guard. It writes where nobody else does (segment.Reservation)
// as long as nothing is staged behind it: no call of the Appender's stages anything while out is not nil, but the Commit of what is out,
// and whoever gives the role away with a reservation out ends its segment first (abandon). Resume, which runs as a control, stages at the
// most what was staged before the reservation and has been taken back: it ends where the reservation begins, or in another segment.
//
// Progress. A holder of the guard runs a bounded piece of work and never waits under it: an Append that needs room gives
// the guard back first.
type Appender struct {
	p *Partition
	// guard is CASed by calls, controls and Close, and release-stored by its holder. Free publishes the role's plain state.
	guard atomicx.PaddedUint64

	// Of the holder of the guard: the reservation that is out, or nil, and what roomRecords and roomBytes were when it was handed out.
	out                    *segment.Reservation
	roomRecords, roomBytes int64
}

const (
	guardFree uint64 = iota
	guardHeld
	guardRevoked
)

// flushAfter is how many records are staged at the most.
const flushAfter = 256

// Appender takes the partition for exclusive use. It waits until what was accepted before is in the log; from its call on
// every other publish fails with ErrExclusive.
func (p *Partition) Appender(ctx context.Context) (*Appender, error) {
	for {
		s := p.state.Load()
		if err := p.refuse(ctx); err != nil {
			return nil, err
		}
		if s&stateExclusive == 0 && p.state.CompareAndSwap(s, s|stateExclusive) {
			break
		}
	}
	for !p.takeWhenIdle() {
		req := p.newRequest()
		req.barrier = true
		if _, err := p.wait(ctx, req); err != nil {
			p.state.And(^stateExclusive)
			return nil, err
		}
	}
	x := &Appender{p: p}
	p.exclusive.Store(x)
	// Pairs with end, which sets the state and then loads exclusive: one of the two sees the other.
	if p.state.Load()&(stateClosing|stateFinishing) != 0 {
		if x.revoke() {
			p.wake.Unpark()
		}
		return nil, p.refusal()
	}
	if p.ctl.Load() != 0 {
		p.runByAppender()
	}
	return x, nil
}

// takeWhenIdle takes the role if it becomes free within a short while.
func (p *Partition) takeWhenIdle() bool {
	for turn := range bounded(256) {
		if p.ring.TakeIdle() {
			return true
		}
		atomicx.Relax(turn)
	}
	return false
}

// enter takes the guard. It returns false once the Appender has been revoked.
func (x *Appender) enter() bool {
	for turn := uint32(0); ; turn++ {
		if x.guard.CompareAndSwap(guardFree, guardHeld) {
			return true
		}
		if x.guard.Load() == guardRevoked {
			return false
		}
		atomicx.Relax(turn)
	}
}

// leave gives the guard back. A release store is enough: nobody parks for the guard.
func (x *Appender) leave() { atomicx.StoreRelease(&x.guard.Uint64, guardFree) }

// revoke takes the role away for good and reports whether this call did.
func (x *Appender) revoke() bool {
	if !x.enter() {
		return false
	}
	x.p.publish()
	x.abandon()
	x.guard.Store(guardRevoked)
	return true
}

// admit says whether r may be appended.
func (x *Appender) admit(ctx context.Context, r *segment.Record) error {
	if err := x.admitAny(ctx); err != nil {
		return err
	}
	if size := sizeOf(r); size > x.p.cfg.MaxRecordBytes {
		return x.p.tooLarge(size)
	}
	return nil
}

// admitAny says whether anything may be appended now.
func (x *Appender) admitAny(ctx context.Context) error {
	if x.out != nil {
		return ErrReserved
	}
	return x.barred(ctx)
}

// barred says why the partition takes nothing now.
func (x *Appender) barred(ctx context.Context) error {
	if x.p.tooLate(ctx) {
		return ErrDraining
	}
	return x.p.unwritable()
}

// Append stages r and returns the offset that it will have. It waits for room, until ctx ends; ctx is not looked at if
// there is some.
func (x *Appender) Append(ctx context.Context, r *segment.Record) (int64, error) {
	if x.guard.CompareAndSwap(guardFree, guardHeld) {
		p := x.p
		if p.a.batch < flushAfter-1 && p.stageShort(r) {
			off := int64(p.log.Staged()) - 1
			x.leave()
			return off, nil
		}
		x.leave()
	}
	return x.append(ctx, r)
}

// Publish is Append and Flush, for who wants each record visible at once. An error means that the record will never appear, or
// it wraps ErrIndefinite.
func (x *Appender) Publish(ctx context.Context, r *segment.Record) (int64, error) {
	if x.guard.CompareAndSwap(guardFree, guardHeld) {
		p := x.p
		if p.stageShort(r) {
			off := int64(p.log.Staged()) - 1
			err := p.publish()
			x.leave()
			if err != nil {
				return -1, err
			}
			return off, nil
		}
		x.leave()
	}
	off, err := x.append(ctx, r)
	if err != nil {
		return -1, err
	}
	if err := x.Flush(); err != nil && x.p.store != nil {
		return -1, indefinite(err) // or who has revoked the role has published the record, and what became of that is not known here
	}
	return off, nil
}

// stageShort stages r if there is nothing in the way: most of the time. The caller holds the guard.
func (p *Partition) stageShort(r *segment.Record) bool {
	a, size := &p.a, sizeOf(r)
	need := storedBytes(size, r.Timestamp != 0, r.Headers.Size() > 0) + entryBytes
	if a.roomRecords <= 0 || a.roomBytes < need || size > p.cfg.MaxRecordBytes || p.state.Load() != stateExclusive {
		return false
	}
	if a.batch == 0 {
		p.stamp() // once for all up to the next publication
	}
	if p.log.Append(r, a.now) != nil {
		return false
	}
	a.batch++
	a.roomRecords--
	a.roomBytes -= need
	return true
}

// append is Append when the short way is not open.
func (x *Appender) append(ctx context.Context, r *segment.Record) (int64, error) {
	for {
		if !x.enter() {
			return -1, x.p.revokedCause()
		}
		if err := x.admit(ctx, r); err != nil { // under the guard: see Drain
			x.leave()
			return -1, err
		}
		off, v, err := x.stage(r)
		x.leave()
		switch v {
		case staged:
			return off, nil
		case refused:
			return -1, err
		}
		if err := x.waitForRoom(ctx, stored(r), 1); err != nil {
			return -1, err
		}
	}
}

// AppendBatch stages the records in order and sets Offset and Partition of each. It returns how many it staged: all, or
// those before the one with the error.
func (x *Appender) AppendBatch(ctx context.Context, batch []segment.Record) (int, error) {
	for i := 0; i < len(batch); {
		if !x.enter() {
			return i, x.p.revokedCause()
		}
		v, err := staged, error(nil)
		for i < len(batch) && v == staged {
			if i += x.p.stageRun(batch[i:]); i == len(batch) {
				break
			}
			r := &batch[i]
			if err = x.admit(ctx, r); err != nil {
				v = refused
				break
			}
			var off int64
			if off, v, err = x.stage(r); v == staged {
				r.Offset, r.Partition = off, int32(x.p.cfg.Index)
				i++
			}
		}
		x.leave()
		switch v {
		case refused:
			return i, err
		case noRoom:
			if err := x.waitForRoom(ctx, stored(&batch[i]), 1); err != nil {
				return i, err
			}
		}
	}
	return len(batch), nil
}

// stageRun stages records from the first on as far as it goes without anything new: a batch has been begun, there is room for
// them, and they are not the last of it. It sets Offset and Partition of each and returns how many. The caller holds the
// guard.
func (p *Partition) stageRun(rs []segment.Record) (n int) {
	a := &p.a
	if a.batch == 0 || p.state.Load() != stateExclusive {
		return 0
	}
	room, most := a.roomBytes, min(int64(len(rs)), int64(flushAfter-1-a.batch), a.roomRecords)
	for int64(n) < most {
		r := &rs[n]
		size := sizeOf(r)
		need := storedBytes(size, r.Timestamp != 0, r.Headers.Size() > 0) + entryBytes
		if need > room || size > p.cfg.MaxRecordBytes {
			break
		}
		room -= need
		n++
	}
	first := p.log.Staged()
	all := n
	n, _ = p.log.AppendEach(rs[:all], a.now) // one that fails is tried once more by itself
	for i := n; i < all; i++ {
		room += stored(&rs[i]) + entryBytes
	}
	for i := range rs[:n] {
		rs[i].Offset, rs[i].Partition = int64(first)+int64(i), int32(p.cfg.Index)
	}
	a.batch += n
	a.roomRecords -= int64(n)
	a.roomBytes = room
	return n
}

// stage stages one record. The caller holds the guard.
func (x *Appender) stage(r *segment.Record) (off int64, v verdict, err error) {
	p := x.p
	if p.log.Unpublished() == 0 {
		p.stamp() // once for all up to the next publication
	}
	if v, err = p.stage(r); v != staged {
		p.publish()
		return -1, v, err
	}
	off = int64(p.log.Staged()) - 1
	p.a.batch = p.log.Unpublished()
	if p.a.batch >= flushAfter {
		if err := p.publish(); err != nil {
			return -1, refused, err
		}
	}
	return off, staged, nil
}

// Flush makes visible what is staged, and wakes who waits for it.
func (x *Appender) Flush() error {
	if !x.enter() {
		return x.p.revokedCause()
	}
	err := x.p.publish()
	if err == nil {
		err = x.p.unwritable() // what was staged before may have been lost by somebody else's look
	}
	x.leave()
	return err
}

// Close flushes and gives the partition back. Closing twice is fine.
func (x *Appender) Close() error {
	if !x.enter() {
		return nil
	}
	p := x.p
	err := p.publish()
	if err == nil {
		err = p.unwritable()
	}
	x.abandon()
	x.guard.Store(guardRevoked)
	p.exclusive.Store(nil)
	p.state.And(^stateExclusive)
	p.hold()
	p.room.Broadcast() // an Append on another goroutine may be waiting
	return err
}

// revokedCause says why an Appender no longer works.
func (p *Partition) revokedCause() error {
	if err := p.Cause(); err != nil {
		return err
	}
	return ErrClosed
}

// waitForRoom waits until there may be room for n records of size bytes together.
func (x *Appender) waitForRoom(ctx context.Context, size int64, n int) error {
	p := x.p
	ctx, leave := p.enterInside(ctx, false)
	defer leave()
	p.blocked.Add(1)
	defer p.blocked.Add(-1)
	return p.waitForRoom(ctx.Done(), func() (again bool, err error) {
		if !x.enter() {
			return false, p.revokedCause()
		}
		again = p.roomFor(size, n, true)
		x.leave()
		if again {
			return true, nil
		}
		if err := p.unwritable(); err != nil {
			return false, err
		}
		return false, ended(ctx)
	})
}
