package delivery

import (
	"errors"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/segment"
)

// crowdedWait is when a record comes again whose handler found all workers waiting.
const crowdedWait = 10 * time.Millisecond

// step is what a seat has to do next.
type step uint8

const (
	stepWork step = iota
	stepGap
	stepRest
	stepEnd
)

// run is one turn on a worker.
func (t *Seat) run() dispatch.Again {
	if t.over {
		return false
	}
	began := t.share.cfg.Clock.Now()
	t.turn.begin(began, t.n.handled)
	t.fedAt += began - t.left
	t.stats.began.Store(began) // before it begins with anything: see the share's proof
	again := t.work()
	t.left = t.share.cfg.Clock.Now()
	t.n.busy += t.left - began
	t.stats.set(&t.n)
	t.stats.began.Store(0)
	if again {
		t.hungry()
	} else {
		t.share.cfg.Rested.Broadcast()
	}
	if t.over {
		t.task.Stop()
		t.cfg.OnEnd(t.why())
	}
	return dispatch.Again(again)
}

// work delivers until the turn is over, and returns whether there may be more to do now.
func (t *Seat) work() (again bool) {
	for {
		if t.cut || t.queued() == 0 {
			t.cut = false
			switch t.refill() {
			case stepWork:
			case stepGap:
				if !t.gap() {
					continue
				}
			case stepRest:
				t.unload()
				return false
			case stepEnd:
				t.unload()
				t.over = true
				return false
			}
		}
		t.deliver()
		if t.n.handled >= t.turn.look && t.turn.over(t.share.cfg.Clock.Now(), t.n.handled) {
			t.cut = true
			return true
		}
	}
}

// unload lets go of what has been read: views would keep memory, and the pin a segment.
func (t *Seat) unload() {
	t.seg.Close()
	t.msg.Record = segment.Record{}
	clear(t.batch[:cap(t.batch)])
}

// refill hands in what has been finished, and gets more.
func (t *Seat) refill() step {
	s := t.share
	s.mu.Lock()
	defer s.unlock()
	now := s.cfg.Clock.Now()
	t.reap()
	switch {
	case t.held: // it has not even ended before Start
		s.review(now)
		return stepRest
	case t.cause != nil:
		t.leave(now)
		return stepEnd
	case t.paused:
		s.review(now)
		return stepRest
	}
	t.adapt(now)
	t.here = true
	t.setIdle(t.queued() == 0)
	defer func() { t.here = false }()
	s.feed(now)
	switch {
	case len(s.gaps) > 0:
		t.setIdle(false)
		t.tell = s.nextGap()
		s.feed(now)
		return stepGap
	case t.idle():
		return stepRest
	}
	return stepWork
}

// handIn settles what has been finished.
func (t *Seat) handIn() {
	s := t.share
	s.mu.Lock()
	defer s.unlock()
	t.reap()
	s.review(s.cfg.Clock.Now())
}

// hungry hands in what has been finished if somebody rests, and that settles it.
func (t *Seat) hungry() {
	if t.share.hungry.Load() != 0 && !t.share.cfg.Manual && !t.share.cfg.AtMostOnce {
		t.handIn()
	}
}

// adapt works out how many records the seat gets at a time: a fast handler many, a slow one only the one that it works on,
// so that others can have the rest, and what it has not begun does not use up its time. The caller holds share.mu.
func (t *Seat) adapt(now int64) {
	room := t.room
	if n := t.n.handled - t.fed; n > 0 {
		each := max((now-t.fedAt)/n, 1)
		room = int(min(max(int64(roomTime)/each, int64(t.least)), int64(2*t.room), int64(len(t.entries))))
	}
	t.fed, t.fedAt = t.n.handled, now
	if room != t.room {
		t.room = room
		t.open()
	}
	if t.queued() > room {
		t.recall()
	}
}

// leave takes the seat off the share. The caller holds share.mu.
func (t *Seat) leave(now int64) {
	s := t.share
	t.setIdle(false)
	s.chooser.Remove(&t.taker)
	if s.seats.has(t) {
		s.seats.remove(t)
	}
	if len(s.seats.list) == 0 {
		s.seats.list, s.idle.list, s.busy.list = nil, nil, nil
		s.w.Shrink()
	}
	s.review(now)
}

// gap tells of records that were dropped before they were delivered, and returns false if that is the end of the seat.
func (t *Seat) gap() bool {
	from, to := t.tell.from, t.tell.to
	if t.share.cfg.FailOnGap {
		t.Stop(t.share.cfg.Part.ReadError(from))
		return false
	}
	t.n.lost += int64(t.tell.records)
	if f := t.share.cfg.OnGap; f != nil {
		f(t.share.cfg.Part.Index(), int64(from), int64(to))
	}
	return true
}

// read reads the record at an offset. If it does not return Ready that is gone, or cannot be read.
func (t *Seat) read(off uint64, r *segment.Record) segment.State {
	if !t.seg.Jump(off) {
		t.seg.Seek(off)
		if state := t.seg.Refill(); state != segment.Ready {
			return state
		}
	}
	t.seg.Next(r)
	return segment.Ready
}

// readWarm is read that loads nothing: it returns Frozen.
func (t *Seat) readWarm(off uint64, r *segment.Record) segment.State {
	if !t.seg.Jump(off) {
		t.seg.Seek(off)
		if state := t.seg.RefillWarm(); state != segment.Ready {
			return state
		}
	}
	t.seg.Next(r)
	return segment.Ready
}

// claim settles a record before its handler is called.
func (t *Seat) claim(e *entry) bool {
	s := t.share
	s.mu.Lock()
	defer s.unlock()
	if err := s.w.Ack(t.id, e.d.Token); err != nil {
		s.n.fenced++
		return false
	}
	s.freed(s.cfg.Clock.Now())
	return true
}

// missed sees to it that the notice of what has just been found to be dropped comes before the next record.
func (t *Seat) missed() {
	t.share.mu.Lock()
	defer t.share.unlock()
	t.share.drop()
}

// deliver calls the handler with the next record of the queue, or with some.
func (t *Seat) deliver() {
	e := t.begin()
	if e == nil {
		return // somebody else has it
	}
	t.hungry() // after the CAS in begin: see the share's proof
	switch state := t.read(e.d.Token.Offset, &t.msg.Record); state {
	case segment.Ready:
	case segment.Unreadable:
		t.Stop(t.share.cfg.Part.Refused(&t.seg, state)) // before the record is given back: it is not for this seat again
		t.finish(unread, nil)
		return
	default:
		t.finish(skipped, nil)
		t.missed()
		return
	}
	if t.share.cfg.AtMostOnce && !t.claim(e) {
		t.finish(skipped, nil)
		return
	}
	t.msg.Attempt, t.msg.hold = e.d.Attempt, Token{t, e.d.Token}
	if t.batch != nil {
		t.gather()
	}
	n := int64(t.begun)
	t.n.handled += n
	if e.d.Attempt > 1 {
		t.n.redelivered++
	}
	err := ErrGoexit
	defer func() {
		switch {
		case err == nil:
			t.n.delivered += n
			t.finish(processed, nil)
		case errors.Is(err, partition.ErrWorkersBlocked):
			t.fail(e, crowded, err)
		case errors.Is(err, ErrRejected):
			t.fail(e, rejected, err)
		default:
			t.fail(e, failed, err)
		}
	}()
	err = t.call()
}

// gather begins more records for a batch, as far as they are in the same segment as the first.
func (t *Seat) gather() {
	t.batch = t.batch[:1]
	t.batch[0] = t.msg
	s := t.share
	s.mu.Lock() // so that what is next stays so
	defer s.unlock()
	for len(t.batch) < cap(t.batch) {
		next := t.peek()
		if next == nil || !t.seg.Jump(next.d.Token.Offset) {
			break
		}
		if s.cfg.AtMostOnce && s.w.Ack(t.id, next.d.Token) != nil {
			break // it begins the next batch, and is skipped there
		}
		t.begin()
		t.batch = t.batch[:len(t.batch)+1]
		m := &t.batch[len(t.batch)-1]
		t.seg.Next(&m.Record)
		m.Topic, m.Attempt, m.hold = t.msg.Topic, next.d.Attempt, Token{t, next.d.Token}
		if next.d.Attempt > 1 {
			t.n.redelivered++
		}
	}
	if s.cfg.AtMostOnce {
		s.freed(s.cfg.Clock.Now())
	}
}

// call calls the handler and turns a panic into an error.
func (t *Seat) call() (err error) {
	defer recovered(&err)
	if t.batch != nil {
		return t.cfg.Handler.Batch(t.ctx, t.batch[:len(t.batch):len(t.batch)])
	}
	return t.cfg.Handler.One(t.ctx, &t.msg)
}

// fail finishes records whose handler has failed, settles them, and tells about it: when somebody is told, who may end the
// goroutine or never return, all is decided, and a token comes too late.
func (t *Seat) fail(e *entry, o outcome, err error) {
	d := e.d
	t.n.failed += int64(t.begun)
	t.finish(o, err)
	t.handIn()
	if t.cfg.OnFailure != nil && t.read(d.Token.Offset, &t.msg.Record) == segment.Ready {
		t.msg.Topic, t.msg.Attempt, t.msg.hold = t.share.cfg.Topic, d.Attempt, Token{t, d.Token}
		t.cfg.OnFailure(t.ctx, &t.msg, err)
	}
}

// Start lets the seat have records. Nothing at all happens before, not even its end.
func (t *Seat) Start() { t.change(func() { t.held = false }) }

// Pause gives it no more: none begins after Pause returned. What it has not begun others get.
func (t *Seat) Pause() { t.change(func() { t.paused = true }) }

// Resume lets it go on.
func (t *Seat) Resume() { t.change(func() { t.paused = false }) }

// Paused reports whether the seat is paused.
func (t *Seat) Paused() bool {
	t.share.mu.Lock()
	defer t.share.mu.Unlock()
	return t.paused
}

// Stop ends the seat for a reason, of which the first counts: no delivery begins after it returned. One that is going on may
// still end, and is settled; OnEnd is called after it. Tokens stay good until Release.
func (t *Seat) Stop(cause error) {
	t.change(func() {
		if t.cause == nil {
			t.cause = cause
		}
	})
}

// Fence is Stop after which nothing that the seat has is settled any more: it is all given back, and its tokens are refused.
func (t *Seat) Fence(cause error) {
	t.change(func() {
		if t.cause == nil {
			t.cause = cause
		}
		t.recall() // is no delivery; the rest was one
		t.reap()
		t.share.w.Release(t.id, t.share.cfg.Clock.Now())
	})
}

// Release gives back what the seat holds, but for what its handler is working on: the tokens are refused from now on.
func (t *Seat) Release() {
	t.change(func() {
		t.recall()
		t.reap()
		begun := uint32(t.span.Load() >> 32)
		t.share.w.ReleaseBut(t.id, func(off uint64) bool {
			for i := uint32(t.reaped); i != begun; i++ {
				if t.entries[i&t.mask].d.Token.Offset == off {
					return true
				}
			}
			return false
		}, t.share.cfg.Clock.Now())
	})
}

// change changes what the seat should do, and sees to it that it does.
func (t *Seat) change(how func()) {
	s := t.share
	s.mu.Lock()
	how()
	t.open()
	if !t.able() {
		t.recall()
	}
	s.feed(s.cfg.Clock.Now())
	if !t.pull() {
		t.setIdle(false)
	} else if t.idle() {
		t.cfg.Notify()
	}
	s.unlock()
	if t.task != nil {
		t.task.Wake()
	}
}

// why returns what ended the seat.
func (t *Seat) why() error {
	t.share.mu.Lock()
	defer t.share.mu.Unlock()
	return t.cause
}

// The share's, which is the seat's own if it has the only one.

// Seek is Share.Seek.
func (t *Seat) Seek(start Start) error { return t.share.Seek(start) }

// Partition returns the number of the seat's partition.
func (t *Seat) Partition() int { return t.share.cfg.Part.Index() }

// Position is Share.Position.
func (t *Seat) Position() int64 { return t.share.Position() }

// Lag is Share.Lag.
func (t *Seat) Lag() int64 { return t.share.Lag() }

// Drained reports whether there is nothing left for the seat to do: all is settled, or it is paused or has ended, and it is
// not at work.
func (t *Seat) Drained() bool {
	next := t.share.cfg.Part.Log().Committed()
	t.share.mu.Lock()
	idle := t.cause != nil || t.paused || t.share.w.Floor() >= next && len(t.share.gaps) == 0
	t.share.mu.Unlock()
	return idle && t.stats.began.Load() == 0
}

// Inside reports whether the seat is at work, which is in user code but for some moments, and for how long the present turn
// has been going on. Once it has been paused or stopped and this is false no handler is called.
func (t *Seat) Inside() (since time.Duration, yes bool) {
	began := t.stats.began.Load()
	if began == 0 {
		return 0, false
	}
	return time.Duration(max(0, t.share.cfg.Clock.Now()-began)), true
}

// Finished returns how many deliveries are over.
func (t *Seat) Finished() int64 { return int64(t.finished.Load()) }

// Stats returns a snapshot; now is the engine's clock.
func (t *Seat) Stats(now int64) Stats {
	s := t.stats.read(t.share.cfg.Part, t.Position, now)
	s.Paused = t.Paused()
	share := t.share.Stats()
	s.InFlight, s.Dropped, s.Buried = share.InFlight, share.Dropped, share.Buried
	if t.share.cfg.Manual { // a handler's error says nothing if its record is settled
		t.share.mu.Lock()
		s.Delivered, s.Failed = t.acked, t.nacked
		t.share.mu.Unlock()
	}
	s.RunningFor, s.Running = t.Inside()
	return s
}
