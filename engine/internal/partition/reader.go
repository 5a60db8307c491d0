package partition

import (
	"context"
	"errors"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// Reader is a pull reader: a position of its own, a pin on the segment it stands in, and a gate if it is to be waited for.
// It is used by one goroutine; Close may come from any.
//
// # Shared state
//
//	guard  bits in use and closed; CASed by calls and by Close
//
// # Proof
//
// One owner. The position, the window and the pin are touched only between a CAS that sets in-use on a guard without any
// bit and the CAS or swap that clears it. Close sets the closed bit: if the reader was not in use, no call will ever be
// again, and Close itself unpins; if it was, the call in progress finds the bit when it leaves, and unpins then. So the
// pin is given back once, and nobody looks at memory that is no longer pinned.
//
// No lost wake-up at Close. Close sets the bit and then broadcasts; a waiting call registers and then looks at the bit.
type Reader struct {
	p    *Partition
	seg  segment.Reader
	gate *Gate // nil if nobody keeps count of this reader
	w    *atomicx.Waiter
	wait cursor.Wait

	chase Chase // how it stays away
	vigil atomicx.Vigil

	// guard is CASed by calls (in use) and by Close (closed). It orders one call before the next, and publishes no memory
	// beyond the reader's own plain fields.
	guard   atomicx.Uint32
	evicted atomicx.Bool // set by the holder of the role when the gate is put out, read by fill; publishes no memory
}

const (
	readerInUse  uint32 = 1
	readerClosed uint32 = 2
)

// ErrReaderBusy is a program's mistake: two goroutines in one reader.
var ErrReaderBusy = errors.New("leat: reader is used by two goroutines at once")

// NewReader returns a Reader at the offset that start chooses. With gate it is counted, and under Block waited for.
func (p *Partition) NewReader(gate *Gate, wait cursor.Wait, start func(first, next uint64) (uint64, error)) (*Reader, error) {
	if p.Ended() {
		return nil, p.Cause()
	}
	r := &Reader{p: p, gate: gate, w: atomicx.NewWaiter(), wait: wait}
	var pos uint64
	var err error
	if gate != nil {
		gate.Evicted = func() { r.evicted.Store(true); p.committed.Broadcast() }
		pos, err = p.AddGate(gate, start)
	} else {
		pos, err = start(p.log.Snapshot())
	}
	if err != nil {
		return nil, err
	}
	r.seg.Init(p.log)
	r.seg.Seek(pos)
	return r, nil
}

func (r *Reader) enter() error {
	if r.guard.CompareAndSwap(0, readerInUse) {
		return nil
	}
	if r.guard.Load()&readerClosed != 0 {
		return ErrReadClosed
	}
	return ErrReaderBusy
}

func (r *Reader) leave() {
	if !r.guard.CompareAndSwap(readerInUse, 0) {
		r.seg.Close() // Close came meanwhile and left this to us
	}
}

// Close ends the reader: its gate goes, its pin goes, and a call that waits returns ErrReadClosed. Closing twice is fine.
func (r *Reader) Close() {
	old := r.guard.Or(readerClosed)
	if old&readerClosed != 0 {
		return
	}
	if r.gate != nil {
		r.p.RemoveGate(r.gate)
	}
	if old == 0 {
		r.seg.Close()
	}
	r.p.committed.Broadcast()
}

// Next returns the next record; it waits for it. The record's memory is valid until the next call.
func (r *Reader) Next(ctx context.Context, rec *segment.Record) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	if r.counted() {
		r.advance()
	}
	if r.seg.Next(rec) {
		return nil
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	r.seg.Next(rec)
	return nil
}

// NextBatch fills dst with what is there, and waits only while nothing is. It returns how many it filled in: at least one,
// or none with an error. Their memory is valid until the next call.
func (r *Reader) NextBatch(ctx context.Context, dst []segment.Record) (n int, err error) {
	if len(dst) == 0 {
		return 0, nil
	}
	if err := r.begin(ctx); err != nil {
		return 0, err
	}
	defer r.leave()
	return r.seg.NextEach(dst), nil
}

// NextValues is NextBatch for values alone.
func (r *Reader) NextValues(ctx context.Context, dst [][]byte) (n int, err error) {
	if len(dst) == 0 {
		return 0, nil
	}
	if err := r.begin(ctx); err != nil {
		return 0, err
	}
	defer r.leave()
	return r.seg.NextValues(dst), nil
}

// NextRun is NextValues for at most so many values of one size, as they lie one behind the other. The rest of what the window has is for
// the next call.
func (r *Reader) NextRun(ctx context.Context, most int) (values []byte, n int, err error) {
	if most <= 0 {
		return nil, 0, nil
	}
	if err := r.begin(ctx); err != nil {
		return nil, 0, err
	}
	defer r.leave()
	values, n = r.seg.NextRun(most)
	return values, n, nil
}

// begin begins a call that takes what the window has, of which there is at least one record when it returns. After an error it has ended.
func (r *Reader) begin(ctx context.Context) error {
	if err := r.enter(); err != nil {
		return err
	}
	if r.counted() {
		r.advance()
	}
	if r.seg.Window() == 0 {
		if err := r.fill(ctx); err != nil {
			r.leave()
			return err
		}
	}
	return nil
}

// Position returns the offset of the next record. It is for the goroutine that uses the reader.
func (r *Reader) Position() uint64 { return r.seg.Position() }

// counted reports whether somebody keeps count of each record that the reader is done with. For others it does to do so once
// for each window: it lies in one segment, and that can only go as a whole.
func (r *Reader) counted() bool { return r.gate != nil && r.gate.MaxLag > 0 }

// advance says that the caller is done with all it got before.
func (r *Reader) advance() {
	if r.gate != nil {
		r.gate.Advance(r.seg.Position())
	}
}

// Seek moves the reader.
func (r *Reader) Seek(start func(first, next uint64) (uint64, error)) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	pos, err := start(r.p.log.Snapshot())
	if err != nil {
		return err
	}
	r.seg.Seek(pos)
	r.advance() // nobody has to wait for what it skips
	return nil
}

// fill waits until the window holds at least one record.
func (r *Reader) fill(ctx context.Context) error {
	r.advance()
	if r.evicted.Load() {
		return ErrEvicted
	}
	b := r.wait.Backoff()
	for {
		switch r.seg.Refill() {
		case segment.Ready:
			if r.chase.Stay(&r.seg, r.gate, int64(b.Waited())*pauseNs, chaseTarget); r.seg.Window() > 0 {
				r.seg.Prefetch()
				return nil
			}
			continue // what was there has been dropped meanwhile
		case segment.CaughtUp:
		case segment.Unreadable:
			if err := r.ended(); err != nil {
				return err
			}
			return r.p.Unreadable(r.seg.Err())
		default:
			return r.stop()
		}
		if err := r.ended(); err != nil {
			return err
		}
		if b.Again() {
			if b.Turns()%64 != 0 || ctx.Err() == nil {
				continue
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if r.watch(ctx) {
			continue
		}
		r.p.committed.Prepare(r.w)
		if r.seg.Refill() != segment.CaughtUp || r.ended() != nil {
			r.p.committed.Cancel(r.w)
			b.Reset()
			continue
		}
		r.vigil.Park(r.p.cfg.Clock.Now())
		woken := r.p.committed.Wait(r.w, ctx.Done())
		r.vigil.Unpark(r.p.cfg.Clock.Now())
		if !woken && r.seg.Refill() != segment.Ready {
			return ctx.Err()
		}
		b.Reset()
	}
}

// watch waits a little longer without parking, if that has been worth it lately. It reports whether there may be something.
func (r *Reader) watch(ctx context.Context) bool {
	for turn := r.vigil.Begin(); r.vigil.Again(&turn); {
		if r.seg.Refill() != segment.CaughtUp || r.ended() != nil || turn%64 == 0 && ctx.Err() != nil {
			r.vigil.End(true)
			return true
		}
	}
	return false
}

// ended says why a reader that has nothing to read should stop.
func (r *Reader) ended() error {
	switch {
	case r.guard.Load()&readerClosed != 0:
		return ErrReadClosed
	case r.evicted.Load():
		return ErrEvicted
	}
	return nil
}

// stop says why the position cannot be read.
func (r *Reader) stop() error {
	if err := r.ended(); err != nil {
		return err
	}
	return r.p.ReadError(r.seg.Position())
}

// OffsetError describes an offset that the partition does not hold.
func (p *Partition) OffsetError(asked uint64) *OffsetError {
	first, next := p.Snapshot()
	return &OffsetError{Asked: int64(asked), First: first, Next: next}
}

// Committed is broadcast when the log has grown or ended.
func (p *Partition) Committed() *atomicx.Event { return &p.committed }

// Ended reports whether the partition has been closed and its log is sealed: readers get its cause instead of a gap.
func (p *Partition) Ended() bool { return p.cause.Load() != nil && p.log.Sealed() }

// Refused says why a reader cannot go on, whose Refill has returned neither Ready nor CaughtUp.
func (p *Partition) Refused(r *segment.Reader, state segment.State) error {
	if state == segment.Unreadable {
		return p.Unreadable(r.Err())
	}
	return p.ReadError(r.Position())
}

// Unreadable is the error of who has found that records cannot be loaded from the files. It is the partition's cause if that has
// ended: then its files are closed.
func (p *Partition) Unreadable(err error) error {
	if p.Ended() {
		return p.Cause()
	}
	return err
}

// ReadError says why a reader cannot go on at pos.
func (p *Partition) ReadError(pos uint64) error {
	if p.Ended() {
		return p.Cause()
	}
	return p.OffsetError(pos)
}
