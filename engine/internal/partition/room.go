package partition

import (
	"errors"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// waitForRoom waits until look says to try again (then it returns nil), or fails; it is also called when done is closed. The
// caller holds the role, or can take it inside look.
//
// No wake-up is lost. Whoever changes something that look goes by does so first and then broadcasts room, or gives memory
// back and broadcasts that; and here the registration comes before the look. What look goes by: the gates (Gate.Advance,
// RemoveGate, evict), the log (drop gives memory back; TruncateBefore), the engine's memory, the request at the head of the
// ring (waitOnce, when it gives up), controls (post), the state (end), the Appender's guard (end, Appender.Close).
func (p *Partition) waitForRoom(done <-chan struct{}, look func() (again bool, err error)) error {
	w := p.newRoomWaiter()
	p.full.Store(1)
	defer func() {
		p.full.Store(0)
		p.stuckOn.Store(nil)
	}()
	for {
		w.prepare()
		again, err := look()
		if again || err != nil {
			w.cancel()
			return err
		}
		w.wait(done)
	}
}

// lookForHead is the look of the partition's goroutine: at the entry at the head of the ring.
func (p *Partition) lookForHead() (again bool, err error) {
	if p.state.Load()&stateClosing != 0 {
		return false, p.refusal()
	}
	if err := p.unwritable(); err != nil {
		return false, err
	}
	p.runControls()
	s := p.ring.Slot(p.ring.Head(), 0)
	switch {
	case s.kind() == kindInline:
		again = p.roomFor(s.stored(), 1, true)
	case !s.req.wanted():
		return true, nil
	default:
		again = p.roomFor(s.req.size, s.req.records, s.req.owned)
	}
	return again || p.relieve(), nil
}

// roomFor is one look for room for n records of size bytes together, and for the memory if that is to be waited for as well.
// It evicts who is over its lag limit, and ends publishers that wait for themselves. The caller holds the role.
func (p *Partition) roomFor(size int64, n int, memory bool) bool {
	p.evict()
	if v, _ := p.makeRoom(size, n); v == staged {
		p.a.roomRecords = 0 // only a look; the caller does it again
		if !memory || !errors.Is(p.log.Ensure(size, n, p.cfg.Clock.Now()), segment.ErrNoMemory) {
			return true // or it fails for another reason, which is for the caller to find
		}
		if p.dropOldest() { // no memory in the engine, unless we give some of our own
			return true
		}
	}
	g := p.holdup()
	p.stuckOn.Store(g)
	if g != nil {
		p.abortInside(g) // pairs with enterInside: it registers, then looks at stuckOn
	}
	return false
}

// roomWaiter waits for anything that may make room: in the log, or in the engine's memory.
type roomWaiter struct {
	p      *Partition
	w      *atomicx.Waiter // on room
	memory *atomicx.Waiter // on the pool's event; broadcasts room, so that there is one thing to wait for
}

func (p *Partition) newRoomWaiter() roomWaiter {
	return roomWaiter{p, atomicx.NewWaiter(), atomicx.NewCallWaiter(p.room.Broadcast)}
}

// prepare registers it. After that the caller looks, and then calls wait or cancel.
func (w *roomWaiter) prepare() {
	w.p.room.Prepare(w.w)
	w.p.cfg.Log.Pool.Freed().Prepare(w.memory)
}

func (w *roomWaiter) cancel() {
	w.p.room.Cancel(w.w)
	w.p.cfg.Log.Pool.Freed().Cancel(w.memory)
}

// wait waits until something has happened, and returns true, or until done is closed.
func (w *roomWaiter) wait(done <-chan struct{}) bool {
	woken := w.p.room.Wait(w.w, done)
	w.p.cfg.Log.Pool.Freed().Cancel(w.memory)
	return woken
}
