package delivery

import (
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// counts are kept by the worker, plain, and shown at the end of each turn.
type counts struct {
	handled     int64 // records given to the handler, again and again if need be
	delivered   int64 // records whose handler returned nil
	failed      int64 // records whose handler failed, each time it did
	redelivered int64 // records given to the handler not for the first time
	dropped     int64 // records given up after MaxDeliveries
	lost        int64 // records dropped by retention before the lane got to them
	busy        int64 // nanoseconds in turns
}

// shared is what Stats sees. All of it is stored by the worker at the end of a turn, and publishes no memory.
type shared struct {
	delivered, failed, redelivered, dropped, lost, busy atomicx.Int64 // stored by the worker, loaded by Stats

	// began is when the present turn began, and 0 between two: stored by the worker at both ends, loaded by Stats and
	// Drained. Storing 0 comes after all else that the turn does, and is the barrier before its look at who waits for Rested.
	began atomicx.Int64
}

func (s *shared) set(n *counts) {
	s.delivered.Store(n.delivered)
	s.failed.Store(n.failed)
	s.redelivered.Store(n.redelivered)
	s.dropped.Store(n.dropped)
	s.lost.Store(n.lost)
	s.busy.Store(n.busy)
}

// Stats is what a lane has done.
type Stats struct {
	Partition     int
	Position, Lag int64
	LagTime       time.Duration // age of the oldest record that is not processed
	Delivered     int64
	Failed        int64
	Redelivered   int64
	Dropped       int64
	Lost          int64
	HandlerTime   time.Duration
	Paused        bool
	Running       bool          // a handler, or a hook on its behalf, is being called
	RunningFor    time.Duration // for how long the present turn has been going on
}

// Stats returns a snapshot; now is the engine's clock.
func (l *Lane) Stats(now int64) Stats {
	pos, at, next := l.where()
	s := Stats{
		Partition:   l.part.Index(),
		Position:    pos,
		Lag:         next - at,
		Delivered:   l.stats.delivered.Load(),
		Failed:      l.stats.failed.Load(),
		Redelivered: l.stats.redelivered.Load(),
		Dropped:     l.stats.dropped.Load(),
		Lost:        l.stats.lost.Load(),
		HandlerTime: time.Duration(l.stats.busy.Load()),
		Paused:      l.Paused(),
	}
	if t, ok := l.part.Log().TimeOf(uint64(at)); ok && s.Lag > 0 {
		s.LagTime = time.Duration(max(0, now-t))
	}
	s.RunningFor, s.Running = l.Inside()
	return s
}
