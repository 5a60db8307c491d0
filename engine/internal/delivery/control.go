package delivery

import (
	"time"

	"github.com/leatlog/leat/internal/atomicx"
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
// that is going on may still end; OnEnd is called after it.
func (l *Lane) Stop(cause error) {
	l.mu.Lock()
	if l.cause == nil {
		l.cause = cause
	}
	l.mu.Unlock()
	l.interrupt(wishStop)
	l.part.RemoveGate(l.gate)
}

// interrupt sets a wish and returns when no delivery can begin that does not know it; see the proof.
func (l *Lane) interrupt(wish uint32) {
	l.wish.Or(wish)
	l.settle()
}

// settle is the second half of interrupt, after the wish has been set.
func (l *Lane) settle() {
	for turn := uint32(0); l.phase.Load() == aboutTo; turn++ {
		atomicx.Relax(turn)
	}
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
	l.wish.Or(wishSeek)
	l.mu.Unlock()
	l.settle()
	return nil
}

// end is the lane's end, on its worker: it reads no more.
func (l *Lane) end() {
	if l.over {
		return
	}
	l.over = true
	l.part.Committed().Cancel(l.rest)
	l.seg.Close()
	l.stats.set(&l.n)
	l.task.StopTimer()
	l.mu.Lock()
	cause := l.cause
	l.mu.Unlock()
	l.cfg.OnEnd(cause)
}

// Partition returns the number of the lane's partition.
func (l *Lane) Partition() int { return l.part.Index() }

// Position returns the offset of the next record to process.
func (l *Lane) Position() int64 { return int64(l.pos.Load()) }

// Lag returns how many retained records the lane has not processed.
func (l *Lane) Lag() int64 {
	first, next := l.part.Snapshot()
	return next - min(max(l.Position(), first), next)
}

// Drained reports whether there is nothing left for the lane to do: it has processed all, or is paused or ended.
func (l *Lane) Drained() bool {
	return l.wish.Load()&(wishPause|wishStop) != 0 || l.Lag() == 0
}

// Task is used to ask whether a handler of this lane runs on the calling goroutine.
func (l *Lane) RunningHere() bool { return l.task.RunningHere() }

// InHandler returns since when the lane's present quantum has been running, and whether a handler is being called now.
func (l *Lane) InHandler() (since time.Time, running bool) {
	began := l.stats.began.Load()
	return time.Unix(0, began), began != 0 && l.phase.Load() == inHandler
}
