package partition

import (
	"context"
	"fmt"

	"github.com/leatlog/leat/segment"
)

// Reserve hands out room in the log for so many records of bytes together, keys and values, which the caller makes there; Commit makes
// them visible. It waits for room, as Append does. Until Commit or Discard nothing else can be appended.
//
// A reservation that is out does not hold up anybody: the guard is free, so that the role can be revoked and controls run. If one of
// these ends the segment that it is in, its bytes stay the caller's (segment.Reservation), and Commit moves the records.
//
// While it is out roomRecords is 0, so that Append and AppendBatch do not take the short way, and find out that they must not.
func (x *Appender) Reserve(ctx context.Context, r *segment.Reservation, records, bytes int) error {
	p, a := x.p, &x.p.a
	if x.guard.CompareAndSwap(guardFree, guardHeld) {
		if runPossible(records, bytes) && a.roomRecords >= int64(records) && a.roomBytes >= p.cost(int64(bytes), records) &&
			p.state.Load() == stateExclusive {
			p.stamp() // also within a batch: the records are to have the time of this call
			if p.log.ReserveRun(r, records, bytes, p.recordMost(), a.now) == nil {
				x.handOut(r)
				x.leave()
				return nil
			}
		}
		x.leave()
	}
	return x.reserve(ctx, r, records, bytes)
}

// recordMost is MaxRecordBytes as an int.
func (p *Partition) recordMost() int { return int(min(p.cfg.MaxRecordBytes, segment.MaxRecordBytes)) }

// runPossible reports whether there may be a reservation of this size, so that no sum of these numbers can wrap.
func runPossible(records, bytes int) bool {
	return records > 0 && bytes >= 0 && records <= segment.MaxRecordBytes/entryBytes && bytes <= segment.MaxRecordBytes
}

// runTooLarge says which limit a reservation is above that it will always be above: those of a batch, and, since all of it lies in one
// block, the largest one. It comes before anything is dropped to make room.
func (p *Partition) runTooLarge(records, bytes int) error {
	switch {
	case bytes > segment.MaxRecordBytes:
		return &TooLargeError{Records: records, Size: int64(bytes), Limit: segment.MaxRecordBytes}
	case !runPossible(records, bytes):
		return &TooLargeError{Records: records, Size: int64(bytes)}
	}
	if err := p.batchTooLarge(int64(bytes), int64(bytes), records); err != nil {
		return err
	}
	largest := p.cfg.Log.Pool.Largest()
	if largest == 0 {
		largest = segment.MaxRecordBytes + entryBytes
	}
	if beside := p.cost(0, records); int64(bytes) > largest-beside {
		return &TooLargeError{Records: records, Size: int64(bytes), Limit: max(1, largest-beside)}
	}
	return nil
}

// handOut notes that a reservation is out. The caller holds the guard, and has looked that there is room.
func (x *Appender) handOut(r *segment.Reservation) {
	a := &x.p.a
	x.out, x.roomRecords, x.roomBytes = r, a.roomRecords, a.roomBytes
	a.roomRecords = 0
}

// takeBack notes that no reservation is out any more, of which n records of size bytes have been staged. The caller holds the guard.
func (x *Appender) takeBack(size int64, n int) {
	a := &x.p.a
	a.roomRecords, a.roomBytes = x.roomRecords-int64(n), x.roomBytes-x.p.cost(size, n)
	x.out = nil
}

// reserve is Reserve when the short way is not open.
func (x *Appender) reserve(ctx context.Context, r *segment.Reservation, records, bytes int) error {
	p := x.p
	if records <= 0 || bytes < 0 {
		return fmt.Errorf("%w: %d records of %d bytes together", ErrReservation, records, bytes)
	}
	if err := p.runTooLarge(records, bytes); err != nil {
		return err
	}
	for {
		if !x.enter() {
			return p.revokedCause()
		}
		v, err := refused, x.admitAny(ctx)
		if err == nil {
			v, err = x.reserveHeld(r, records, bytes)
		}
		x.leave()
		switch v {
		case staged:
			return nil
		case refused:
			return err
		}
		if err := x.waitForRoom(ctx, int64(bytes), records); err != nil {
			return err
		}
	}
}

// reserveHeld makes room and hands it out; if it does not, nothing about which one is out has changed. The caller holds the guard.
func (x *Appender) reserveHeld(r *segment.Reservation, records, bytes int) (verdict, error) {
	p := x.p
	p.stamp()
	for {
		v, err := p.makeRoom(int64(bytes), records)
		if v == staged {
			if err = p.log.ReserveRun(r, records, bytes, p.recordMost(), p.a.now); err == nil {
				p.a.roomRecords += int64(records) // what is used is taken when it is committed
				p.a.roomBytes += p.cost(int64(bytes), records)
				x.handOut(r)
				return staged, nil
			}
			if v, err = p.settle(err); v == staged {
				continue
			}
		}
		p.publish() // as Append does before it waits
		return v, err
	}
}

// Commit makes the records of a reservation visible, and what was appended before, and returns the offset of the first. The reservation
// is over, also if there is an error: then none of them will ever appear, unless it wraps ErrIndefinite. It waits, until ctx ends, only
// if the records have to be moved. Until it returns nothing else can be appended.
func (x *Appender) Commit(ctx context.Context, r *segment.Reservation) (first int64, err error) {
	if x.guard.CompareAndSwap(guardFree, guardHeld) {
		p := x.p
		if n := r.Records(); x.out == r && n > 0 && r.Fault() == nil && p.state.Load() == stateExclusive {
			if size := int64(r.Bytes()); p.log.StageRun(r) {
				first, err = x.publishRun(size, n)
				x.leave()
				return first, err
			}
		}
		x.leave()
	}
	return x.commit(ctx, r)
}

// publishRun makes visible what was staged last, n records of size bytes together that were made in place, and returns the offset of the
// first. The caller holds the guard.
func (x *Appender) publishRun(size int64, n int) (first int64, err error) {
	x.takeBack(size, n)
	first = int64(x.p.log.Staged()) - int64(n)
	if err := x.p.publish(); err != nil {
		return -1, err
	}
	return first, nil
}

// commit is Commit when the short way is not open.
func (x *Appender) commit(ctx context.Context, r *segment.Reservation) (first int64, err error) {
	for {
		if !x.enter() {
			r.End()
			return -1, x.p.revokedCause()
		}
		first, v, err := x.commitHeld(ctx, r)
		x.leave()
		if v != noRoom {
			return first, err
		}
		if err := x.waitForRoom(ctx, int64(r.Bytes()), r.Records()); err != nil {
			x.Discard(r)
			return -1, err
		}
	}
}

// commitHeld is one attempt of Commit. After noRoom the reservation is still out. The caller holds the guard.
func (x *Appender) commitHeld(ctx context.Context, r *segment.Reservation) (first int64, v verdict, err error) {
	p := x.p
	if err := x.committable(ctx, r); err != nil {
		x.discard(r)
		return -1, refused, err
	}
	size, n := int64(r.Bytes()), r.Records()
	switch {
	case n == 0:
		p.log.Forgo()
		r.End()
	case !p.log.StageRun(r):
		if v, err := x.move(r); v == noRoom {
			return -1, v, nil
		} else if v == refused {
			x.discard(r)
			return -1, v, err
		}
	}
	if first, err = x.publishRun(size, n); err != nil {
		return -1, refused, err
	}
	return first, staged, nil
}

// committable says what is in the way of a commit. The caller holds the guard.
func (x *Appender) committable(ctx context.Context, r *segment.Reservation) error {
	if x.out != r || r.Over() {
		return fmt.Errorf("%w: it is not the one that is out", ErrReservation)
	}
	if f := r.Fault(); f != nil {
		if f.Run > 0 && int64(f.Size) > x.p.cfg.MaxRecordBytes {
			return x.p.tooLarge(int64(f.Size))
		}
		return fmt.Errorf("%w: %w", ErrReservation, f)
	}
	if r.Records() == 0 {
		return x.p.unwritable() // it is a Flush
	}
	return x.barred(ctx)
}

// move stages the records of a reservation whose segment has ended. Unless it returns staged, r is still the one that is out. The caller
// holds the guard.
func (x *Appender) move(r *segment.Reservation) (verdict, error) {
	to := new(segment.Reservation)
	v, err := x.reserveHeld(to, r.Records(), r.Bytes())
	if v != staged {
		return v, err
	}
	r.MoveTo(to)
	if !x.p.log.StageRun(to) {
		panic("partition: a reservation that ends at once") // nobody else can have touched the log
	}
	return staged, nil
}

// Discard gives a reservation up. None of its records will ever appear.
func (x *Appender) Discard(r *segment.Reservation) {
	if !x.enter() {
		r.End()
		return
	}
	x.discard(r)
	x.leave()
}

// discard is Discard for who holds the guard.
func (x *Appender) discard(r *segment.Reservation) {
	if x.out == r {
		x.takeBack(0, 0)
		x.p.log.Forgo()
	}
	r.End()
}

// abandon ends the segment of a reservation that is out, so that whoever has the role next does not write where its holder may still
// do. The caller holds the guard, and gives the role away.
func (x *Appender) abandon() {
	if x.out != nil {
		x.p.log.Roll()
		x.out = nil
	}
}
