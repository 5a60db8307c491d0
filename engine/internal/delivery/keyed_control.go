package delivery

import (
	"time"

	"github.com/leatlog/leat/engine/internal/partition"
)

// Start lets the lane deliver. Starting again does nothing.
func (k *Keyed) Start() {
	k.mu.Lock()
	k.started = true
	k.changed()
}

// changed is the end of a change after which there may be something to do, or nothing any more. It releases mu.
func (k *Keyed) changed() {
	k.unlock(after{
		wake:    k.provide(k.cfg.Clock.Now(), false),
		advance: k.advance(),
		leave:   k.cause != nil,
		rested:  k.busy == 0,
	})
}

// Pause stops deliveries: none begins after it returned. Those that are going on may still end.
func (k *Keyed) Pause() {
	k.mu.Lock()
	k.paused = true
	k.recallAll()
	k.part.Committed().Cancel(k.rest) // a paused lane costs its publishers nothing
	k.changed()
}

// Resume lets deliveries go on.
func (k *Keyed) Resume() {
	k.mu.Lock()
	k.paused = false
	k.changed()
}

// Paused reports whether the lane is paused.
func (k *Keyed) Paused() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.paused
}

// Stop ends the lane for a reason, of which the first counts: no delivery begins after it returned, and the gate is gone. Those
// that are going on may still end, and commit; OnEnd is called after the last of them.
func (k *Keyed) Stop(cause error) { k.stop(cause, false) }

// Fence is Stop that makes the position final: what is still going on commits no more.
func (k *Keyed) Fence(cause error) { k.stop(cause, true) }

func (k *Keyed) stop(cause error, final bool) {
	k.mu.Lock()
	if k.cause == nil {
		k.cause = cause
	}
	k.recallAll() // what is over commits
	k.win.final = k.win.final || final
	k.changed()
}

// evicted is told by the gate that the lane lags too far behind.
func (k *Keyed) evicted() {
	k.Stop(partition.ErrEvicted)
	if k.cfg.OnEvicted != nil {
		k.cfg.OnEvicted()
	}
}

// Seek makes the record at the offset that start chooses the next one to process. It does not wait: handlers that are at work
// may still end, and settle nothing. Records of their keys wait for them.
func (k *Keyed) Seek(start Start) error {
	k.mu.Lock()
	if k.cause != nil {
		defer k.mu.Unlock()
		return k.cause
	}
	off, err := start(k.part.Log().Snapshot())
	if err != nil {
		k.mu.Unlock()
		return err
	}
	k.recallAll()
	k.win.reset(off)
	k.unread = nil
	k.dropped = 0
	k.seg.Seek(off)
	k.pos.Store(off)
	k.changed()
	return nil
}

// Partition returns the number of the lane's partition.
func (k *Keyed) Partition() int { return k.part.Index() }

// Position returns the offset of the next record to process: all below it is settled. It is told of a record that a fast
// handler has had with the next few, or after a millisecond.
func (k *Keyed) Position() int64 { return int64(k.pos.Load()) }

// Lag returns how many retained records there are from the position on.
func (k *Keyed) Lag() int64 {
	_, at, next := k.where()
	return next - at
}

// where is Lane.where.
func (k *Keyed) where() (pos, at, next int64) {
	pos = k.Position() // before next, so that it is not beyond it
	for {
		first, next := k.part.Snapshot()
		if int64(k.part.Log().First()) == first { // and so it was when next was loaded
			return pos, min(max(pos, first), next), next
		}
	}
}

// Drained reports whether there is nothing left for the lane to do: it has processed all, or is paused or ended, and is not
// at work. Whatever makes it true later broadcasts Rested.
func (k *Keyed) Drained() bool {
	next := k.part.Log().Committed()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy > 0 {
		return false
	}
	return k.paused || k.cause != nil || k.win.floor() >= next && len(k.gaps) == 0
}

// Inside reports whether a handler, or another function of the user's, is being called, and for how long that, or the run of
// records that it belongs to, has been going on, at most.
func (k *Keyed) Inside() (since time.Duration, yes bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.inside(k.cfg.Clock.Now())
}

func (k *Keyed) inside(now int64) (since time.Duration, yes bool) {
	for _, r := range k.runners {
		if r.state == runnerBusy && r.entered() {
			since, yes = max(since, time.Duration(now-r.began)), true
		}
	}
	return since, yes
}

// inFlight returns how many records have been delivered and are not settled.
func (k *Keyed) inFlight() (n int) {
	for i := range k.win.strands {
		if st := &k.win.strands[i]; st.state != strandFree && st.taken == 0 && st.attempt > 0 {
			n++
		}
	}
	for _, r := range k.runners {
		if r.state == runnerBusy && r.n > 0 && r.entered() {
			n++
		}
	}
	return n
}

// Stats returns a snapshot; now is the engine's clock.
func (k *Keyed) Stats(now int64) Stats {
	pos, at, next := k.where()
	s := Stats{Partition: k.part.Index(), Position: pos, Lag: next - at}
	if t, ok := k.part.Log().TimeOf(uint64(at)); ok && s.Lag > 0 {
		s.LagTime = time.Duration(max(0, now-t))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Delivered, s.Failed, s.Redelivered = k.n.delivered, k.n.failed, k.n.redelivered
	s.Dropped, s.Buried, s.Lost = k.n.dropped, k.n.buried, k.win.lost
	s.HandlerTime, s.Paused = time.Duration(k.n.busy), k.paused
	s.InFlight = k.inFlight()
	s.RunningFor, s.Running = k.inside(now)
	return s
}
