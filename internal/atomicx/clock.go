package atomicx

import "time"

// Clock tells the time in nanoseconds since the Unix epoch and never goes back: the wall clock as it stood at NewClock,
// moved on by the monotonic clock. Setting the wall clock later does not move it.
type Clock struct {
	wall int64     // immutable
	from time.Time // immutable
}

// NewClock returns a clock that starts at the wall clock's present time.
func NewClock() Clock {
	now := time.Now()
	return Clock{wall: now.UnixNano(), from: now}
}
