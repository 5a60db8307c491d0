package delivery

import "time"

// A lane's turn on a worker ends after so much time, or so many records: then others come, the gate is told how far the
// lane is, and Stats sees what it has done.
const (
	turnTime    = time.Millisecond
	turnRecords = 1024
)

// Looking at the clock costs as much as a fast handler, so it is done every few records: so many that it is about every
// lookTime at the speed of those before. A handler that becomes slow all of a sudden is noticed after maxStep records.
const (
	lookTime = turnTime / 16
	maxStep  = 16
)

// turn is the worker's own.
type turn struct {
	look  int64 // how many records must have been handled at the next look at the clock
	limit int64 // at how many the turn is over in any case
	step  int64 // records from one look to the next
	last  int64 // time of the last look
	end   int64 // when the turn is over
}

// begin begins a turn at a time; handled is how many records there were before.
func (t *turn) begin(now, handled int64) {
	t.step = min(max(t.step, 1), maxStep)
	t.look, t.limit = handled+t.step, handled+turnRecords
	t.last, t.end = now, now+int64(turnTime)
}

// over is a look at the clock: it reports whether the turn is over, and if not says when to look again.
func (t *turn) over(now, handled int64) bool {
	took := max(now-t.last, 1)
	t.step = max(1, min(2*t.step, t.step*int64(lookTime)/took, maxStep))
	t.look, t.last = min(handled+t.step, t.limit), now
	return now >= t.end || handled >= t.limit
}
