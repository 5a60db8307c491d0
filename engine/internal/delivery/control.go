package delivery

import (
	"time"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/mutant"
)

// Pause stops deliveries: none begins after it returned. One that is going on may still end.
func (l *Lane) Pause() { l.interrupt(wishPause) }

// Resume lets deliveries go on at the next record.
func (l *Lane) Resume() {
	l.wish.And(^wishPause)
	l.task.Wake()
}

// Paused reports whether the lane is paused.
func (l *Lane) Paused() bool { return l.wish.Load()&wishPause != 0 }

// Stop ends the lane for a reason, of which the first counts: no delivery begins after it returned, and the gate is gone. One
// that is going on may still end, and commits; OnEnd is called after it.
func (l *Lane) Stop(cause error) { l.stop(cause, false) }

// Fence is Stop that makes the position final: what is still going on commits no more.
func (l *Lane) Fence(cause error) { l.stop(cause, true) }

func (l *Lane) stop(cause error, seal bool) {
	l.mu.Lock()
	if l.cause == nil {
		l.cause = cause
	}
	l.wish.Or(wishStop) // before the seal: see the proof
	for seal && !(mutant.Enabled && mutant.Is(mutant.CommitAfterFence)) {
		p := l.pos.Load()
		seal = !l.pos.CompareAndSwap(p, p|sealed) // fails if the worker has just moved it
	}
	l.mu.Unlock()
	l.settle()
	l.task.Wake()
	if !l.cfg.GateKept {
		l.part.RemoveGate(l.gate)
	}
}

// evicted is told by the gate that the lane lags too far behind.
func (l *Lane) evicted() {
	l.Stop(partition.ErrEvicted)
	if l.cfg.OnEvicted != nil {
		l.cfg.OnEvicted()
	}
}

// why returns what ended the lane.
func (l *Lane) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// interrupt sets a wish and returns when no delivery can begin that does not know it.
func (l *Lane) interrupt(wish uint32) {
	l.shut(wish)
	l.task.Wake()
}

// Seek makes the record at the offset that start chooses the next one that is delivered. It does not wait: a delivery that
// is going on may still end, and does not move the position.
func (l *Lane) Seek(start Start) error {
	l.mu.Lock()
	if l.cause != nil {
		defer l.mu.Unlock()
		return l.cause
	}
	off, err := start(l.part.Log().Snapshot())
	if err != nil {
		l.mu.Unlock()
		return err
	}
	l.target = off
	l.pos.Store(off)
	if !(mutant.Enabled && mutant.Is(mutant.SeekUndone)) {
		l.wish.Or(wishSeek)
	}
	l.mu.Unlock()
	l.settle()
	l.task.Wake()
	return nil
}

// Partition returns the number of the lane's partition.
func (l *Lane) Partition() int { return l.part.Index() }

// Position returns the offset of the next record to process.
func (l *Lane) Position() int64 { return int64(l.pos.Load() &^ sealed) }

// Tried returns how often the record at the position has been delivered. It is for when the lane has been stopped or fenced.
func (l *Lane) Tried() int {
	tried := l.tried.Load()
	if tried>>triedBits != uint64(l.Position())<<triedBits>>triedBits {
		return 0
	}
	return int(tried & (1<<triedBits - 1))
}

// Lag returns how many retained records the lane has not processed.
func (l *Lane) Lag() int64 {
	_, at, next := place(l.part, l.Position)
	return next - at
}

// place returns a position, the oldest retained record that is not processed, and the end of the log, as they were at one
// moment.
func place(part *partition.Partition, position func() int64) (pos, at, next int64) {
	pos = position() // before next, so that it is not beyond it
	for {
		first, next := part.Snapshot()
		if int64(part.Log().First()) == first { // and so it was when next was loaded
			return pos, min(max(pos, first), next), next
		}
	}
}

// Drained reports whether there is nothing left for the lane to do: it has processed all, or is paused or ended, and is not
// at work. See the proof.
func (l *Lane) Drained() bool {
	next := l.part.Log().Committed()
	if uint64(l.Position()) < next && l.wish.Load()&(wishPause|wishStop) == 0 {
		return false
	}
	return l.stats.began.Load() == 0
}

// Inside reports whether the handler, or another function of the user's, is being called, and for how long the present turn
// has been going on.
func (l *Lane) Inside() (since time.Duration, yes bool) {
	began := l.stats.began.Load()
	if began == 0 || !l.entered() {
		return 0, false
	}
	return time.Duration(max(0, l.cfg.Clock.Now()-began)), true
}
