package delivery

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// SeatConfig is what a seat does with the records that it gets. It is immutable.
type SeatConfig struct {
	Context   context.Context // for the handler
	Handler   Handler         // of a push seat
	BatchSize int             // for Handler.Batch
	Options   dispatch.Options

	// Slots is how many records the seat may have at a time. 0 means seatSlots; it is rounded up to a power of two.
	Slots int

	// Notify makes it a pull seat, whose records wait for Take: it is called, under the share's lock, when there is one.
	Notify func()

	OnFailure func(ctx context.Context, m *Message, err error) // once for a batch, with its first record
	OnEnd     func(err error)                                  // the seat has ended: no handler of it runs
}

// seatSlots is how long a seat's queue is, if nothing else is said: how many records it may have begun or be about to, and the
// largest batch.
const seatSlots = 64

// roomTime is what a seat takes records for at a time: as many as it is likely to do in so long.
const roomTime = 50 * time.Microsecond

// Seat is one place at a share, where records are worked on one at a time.
//
// # Shared state
//
//	span      the numbers of the next entry to begin, above, and of the end of the queue, below: CASed by the worker, which
//	          begins at the head, and by whoever holds the share's mu, who adds and takes back at the tail
//	finished  how many entries have been worked on: stored by the worker, loaded under mu, and by Finished
//	entries   an entry is written under mu before it is added; its outcome by the worker before it is finished; it is used
//	          again after it has been reaped, under mu, or taken back
//
// # Proof: an entry has one user at a time
//
// The CAS that adds an entry publishes it. It is the worker's from the CAS that begins it, and the reaper's from the store of
// finished, which publishes the outcome. Meanwhile others only read the delivery in it, which nobody writes. Between the
// worker's load of span and its CAS the entry at the head may be taken back and another one put in its place: then the CAS
// begins the other one, which it has not looked at before. There is room for one more whenever feed gives one: the chooser
// counts what was added and neither taken back nor reaped, and the seat's room is not larger than the queue.
//
// The worker of a pull seat is the caller of Take, who begins and finishes under mu.
type Seat struct {
	share *Share
	cfg   SeatConfig
	id    group.MemberID
	mask  uint32         // len(entries)-1
	task  *dispatch.Task // nil of a pull seat
	ctx   context.Context

	// The worker's own.
	seg  segment.Reader
	turn turn

	frozen uint64 // of a pull seat: what Thaw is to load
	msg    Message
	batch  []Message
	n      counts
	tell   gap
	over   bool
	cut    bool  // its turn ended while there was something in its queue
	left   int64 // when that was
	fed    int64 // n.handled when it got records last
	fedAt  int64 // and the time, moved by how long it has not been at work since
	begun  int   // how many entries it has begun and not finished

	_ atomicx.Pad
	// span is CASed by the worker, who takes what is at the head, and under share.mu by who adds and takes back at the tail. A
	// CAS that adds publishes the entry; so does one that begins, to nobody but itself.
	span atomicx.Uint64
	// finished is stored by the worker, which publishes the outcomes of the entries, and loaded under share.mu, and by Finished.
	finished atomicx.Uint64
	_        atomicx.Pad

	entries []entry // a power of two of them

	// Under share.mu.
	taker  group.Taker
	reaped uint64
	room   int
	least  int  // of room
	held   bool // not started
	paused bool
	places [seatKinds]int32 // in the share's sets, counted from 1; 0: not there
	here   bool             // its worker is just looking what there is, and need not be roused
	cause  error
	acked  int64 // deliveries that were settled as processed by hand
	nacked int64 // deliveries that were settled as failed: by tokens, or because the handler had failed

	stats shared
}

// entry is a record in a seat's queue.
type entry struct {
	d       group.Delivery
	outcome outcome
	err     error
}

type outcome uint8

const (
	processed outcome = iota
	failed
	rejected
	crowded // the handler could not do it, and is not to blame
	skipped // it was not delivered: it is not there any more, or not the seat's
	unread  // it was not delivered: it could not be read
)

// NewSeat returns a seat that gets nothing before Start.
func (s *Share) NewSeat(cfg SeatConfig) *Seat {
	t := &Seat{share: s, cfg: cfg, ctx: cfg.Context, held: true}
	if t.cfg.Slots == 0 {
		t.cfg.Slots = seatSlots
	}
	t.entries = make([]entry, 1<<bits.Len(uint(t.cfg.Slots-1)))
	t.mask = uint32(len(t.entries) - 1)
	t.seg.Init(s.cfg.Part.Log())
	t.msg.Topic = s.cfg.Topic
	t.taker.Owner = t
	if !t.pull() {
		t.least = 1
		if cfg.Handler.Batch != nil {
			t.batch = make([]Message, min(cfg.BatchSize, len(t.entries)))
			t.least = len(t.batch)
		}
		t.room = t.least
		t.task = s.cfg.Pool.NewTask(t.run, cfg.Options)
	}
	s.mu.Lock()
	s.ids++
	t.id = s.ids
	s.seats.add(t)
	if s.cfg.Window.InOrder {
		s.taken = s.w.Floor() // what those before it have taken is not this owner's to commit
	}
	s.unlock()
	return t
}

func (t *Seat) pull() bool { return t.cfg.Notify != nil }

// begin takes the next record of the queue, or returns nil if there is none.
func (t *Seat) begin() *entry {
	for {
		span := t.span.Load()
		head := uint32(span >> 32)
		if head == uint32(span) {
			return nil
		}
		if t.span.CompareAndSwap(span, span+1<<32) {
			t.begun++
			return &t.entries[head&t.mask]
		}
	}
}

// peek returns the record that begin would take, if nobody takes it back.
func (t *Seat) peek() *entry {
	span := t.span.Load()
	if uint32(span>>32) == uint32(span) {
		return nil
	}
	return &t.entries[uint32(span>>32)&t.mask]
}

// finish says what became of the records that have been begun.
func (t *Seat) finish(o outcome, err error) {
	done := t.finished.Load()
	for i := range uint64(t.begun) {
		e := &t.entries[uint32(done+i)&t.mask]
		e.outcome, e.err = o, err
	}
	atomicx.StoreRelease(&t.finished, done+uint64(t.begun))
	t.begun = 0
}

// queued returns how many records the seat has not begun.
func (t *Seat) queued() int {
	span := t.span.Load()
	return int(uint32(span) - uint32(span>>32))
}

// The following are for who holds share.mu.

// push adds a record to the queue.
func (t *Seat) push(d group.Delivery) {
	if !t.share.busy.has(t) {
		t.share.busy.add(t)
	}
	for {
		span := t.span.Load()
		tail := uint32(span)
		t.entries[tail&t.mask] = entry{d: d}
		if t.span.CompareAndSwap(span, span&^(1<<32-1)|uint64(tail+1)) {
			if !t.pull() || uint32(span>>32) == tail { // else somebody has been notified, and has not looked yet
				t.rouse()
			}
			return
		}
	}
}

// rouse makes the seat look what there is, if it rests.
func (t *Seat) rouse() {
	switch {
	case !t.idle():
	case t.pull():
		if !t.here {
			t.cfg.Notify()
		}
	default:
		t.setIdle(false)
		if !t.here {
			t.task.Wake()
		}
	}
}

// idle reports whether the seat rests with nothing to do, and is to be roused; of a pull seat, whether somebody waits for its records.
func (t *Seat) idle() bool { return t.share.idle.has(t) }

func (t *Seat) setIdle(idle bool) {
	switch {
	case idle == t.idle():
	case idle:
		t.share.idle.add(t)
	default:
		t.share.idle.remove(t)
	}
}

// quit takes the seat out of those that are busy, if it is through with all that it got. It follows each Done of the chooser.
func (t *Seat) quit() {
	if t.taker.Taken() == 0 {
		t.share.busy.remove(t)
	}
}

// takeBack takes the record at the tail of the queue, if it has not been begun.
func (t *Seat) takeBack() (d group.Delivery, ok bool) {
	for {
		span := t.span.Load()
		tail := uint32(span)
		if uint32(span>>32) == tail {
			return d, false
		}
		if t.span.CompareAndSwap(span, span&^(1<<32-1)|uint64(tail-1)) {
			return t.entries[(tail-1)&t.mask].d, true
		}
	}
}

// giveBack gives back to the window what is at the tail of the queue, if it has not been begun.
func (t *Seat) giveBack() bool {
	d, ok := t.takeBack()
	if ok {
		t.share.chooser.Done(&t.taker)
		t.quit()
		if err := t.share.w.Return(t.id, d.Token); err != nil {
			panic(err) // see the share's proof: it is held
		}
	}
	return ok
}

// recall gives back to the window all that has not been begun.
func (t *Seat) recall() {
	for t.giveBack() {
	}
}

// recallIf is recall if it concerns something that has not been begun, and reports whether it does.
func (t *Seat) recallIf(concerns func(d group.Delivery) bool) bool {
	span := t.span.Load()
	for i := uint32(span >> 32); i != uint32(span); i++ {
		if concerns(t.entries[i&t.mask].d) {
			t.recall()
			return true
		}
	}
	return false
}

// reap settles what has been finished, and reports whether there was anything.
func (t *Seat) reap() bool {
	from, n := t.reaped, t.finished.Load()
	for ; t.reaped != n; t.reaped++ {
		e := &t.entries[uint32(t.reaped)&t.mask]
		t.share.chooser.Done(&t.taker)
		t.settle(e)
		e.err = nil
	}
	if n == from {
		return false
	}
	t.quit()
	return true
}

// settle settles one record.
func (t *Seat) settle(e *entry) {
	s, off := t.share, e.d.Token.Offset
	var err error
	switch {
	case e.outcome == unread:
		err = s.w.Return(t.id, e.d.Token)
	case s.cfg.AtMostOnce || e.outcome == skipped:
		return
	case e.outcome == processed && s.cfg.Manual:
		return
	case e.outcome == processed:
		if err = s.w.Ack(t.id, e.d.Token); err == nil {
			s.settled(off)
		}
	case e.outcome == crowded:
		err = s.w.Postpone(t.id, e.d.Token, crowdedWait, s.cfg.Clock.Now())
	case e.outcome == rejected:
		if _, err = s.w.Reject(t.id, e.d.Token); err == nil {
			s.fate(off, e.err)
		}
	default:
		if _, err = s.w.Nack(t.id, e.d.Token, s.cfg.Clock.Now()); err == nil {
			t.nacked++
			s.fate(off, e.err)
		}
	}
	if err != nil && t.tooLate(err) {
		s.n.fenced++
	}
}

// tooLate reports whether an outcome was refused because the record is not the seat's any more. With tokens it may have been
// settled before the handler returned, and what a pull seat has taken by CommitBelow.
func (t *Seat) tooLate(err error) bool {
	var refused *group.TokenError
	return errors.As(err, &refused) && !t.share.cfg.Manual && !(t.pull() && refused.Reason == group.TokenSettled)
}

// able reports whether the seat may be given something to do.
func (t *Seat) able() bool { return t.cause == nil && !t.held && !t.paused }

// ready reports whether the seat can be given more.
func (t *Seat) ready() bool { return t.able() && t.taker.Taken() < t.room }

// open lets the seat have a part, or not, as it should.
func (t *Seat) open() {
	c := &t.share.chooser
	if t.able() && t.room > 0 {
		if t.taker.In(c) {
			c.SetRoom(&t.taker, t.room)
		} else {
			c.Add(&t.taker, t.room)
		}
	} else {
		c.Remove(&t.taker)
	}
}
