package load

import "time"

// quiet tells for how long nothing has moved. Time in which nobody looked does not count: a process that stands still, because the machine is
// suspended or somebody else has its processors, says nothing about its target.
type quiet struct {
	since, looked int64 // on the clock of who looks
}

// standstill is how far apart two looks may be at the most that somebody takes as fast as he can.
const standstill = int64(500 * time.Millisecond)

func quietFrom(now int64) quiet { return quiet{now, now} }

// look notes that somebody looked, and whether something had moved, and returns for how long nothing has.
func (q *quiet) look(now int64, moved bool) int64 {
	if stood := now - q.looked - standstill; stood > 0 {
		q.since += stood
	}
	q.looked = now
	if moved {
		q.since = now
	}
	return now - q.since
}
