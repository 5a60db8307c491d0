package delivery

import (
	"time"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
)

// counts are kept by the worker, plain, and shown at the end of each turn.
type counts struct {
	handled     int64 // records given to the handler, again and again if need be
	delivered   int64 // records whose handler returned nil
	failed      int64 // records whose handler failed, each time it did
	redelivered int64 // records given to the handler not for the first time
	dropped     int64 // records given up after MaxDeliveries
	buried      int64 // records given up that are in the dead-letter topic
	lost        int64 // records dropped by retention before the lane got to them
	busy        int64 // nanoseconds in turns
}

// shared is what Stats sees. All of it is stored by the worker at the end of a turn, and publishes no memory.
type shared struct {
	delivered, failed, redelivered, dropped, buried, lost, busy atomicx.Int64 // stored by the worker, loaded by Stats

	// began is when the present turn began, and 0 between two: stored by the worker at both ends, loaded by Stats and
	// Drained. Storing 0 comes after all else that the turn does, and is the barrier before its look at who waits for Rested.
	began atomicx.Int64
}

func (s *shared) set(n *counts) {
	s.delivered.Store(n.delivered)
	s.failed.Store(n.failed)
	s.redelivered.Store(n.redelivered)
	s.dropped.Store(n.dropped)
	s.buried.Store(n.buried)
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
	Buried        int64 // given up, and in the dead-letter topic
	Lost          int64
	HandlerTime   time.Duration
	InFlight      int // delivered, and not settled: of records that are settled one by one
	Paused        bool
	Running       bool          // a handler, or a hook on its behalf, is being called
	RunningFor    time.Duration // for how long the present turn has been going on
}

// Stats returns a snapshot; now is the engine's clock.
func (l *Lane) Stats(now int64) Stats {
	s := l.stats.read(l.part, l.Position, now)
	s.Paused = l.Paused()
	s.RunningFor, s.Running = l.Inside()
	return s
}

// StatsAt returns what can be said of a position at which nobody is.
func StatsAt(part *partition.Partition, position, now int64) Stats {
	return new(shared).read(part, func() int64 { return position }, now)
}

// read returns what has been shown so far, of whoever is at that position.
func (s *shared) read(part *partition.Partition, position func() int64, now int64) Stats {
	pos, at, next := place(part, position)
	r := Stats{
		Partition:   part.Index(),
		Position:    pos,
		Lag:         next - at,
		Delivered:   s.delivered.Load(),
		Failed:      s.failed.Load(),
		Redelivered: s.redelivered.Load(),
		Dropped:     s.dropped.Load(),
		Buried:      s.buried.Load(),
		Lost:        s.lost.Load(),
		HandlerTime: time.Duration(s.busy.Load()),
	}
	if t, ok := part.Log().TimeOf(uint64(at)); ok && r.Lag > 0 {
		r.LagTime = time.Duration(max(0, now-t))
	}
	return r
}
