package retention

import (
	"fmt"
	"math"
	"time"
)

// Limits bound what one partition retains. Whichever is reached first counts. The zero value bounds nothing.
type Limits struct {
	// MaxBytes is the most bytes, as the log counts them. 0 means no bound.
	MaxBytes int64

	// MaxRecords is the most records. 0 means no bound.
	MaxRecords int64

	// MaxAge is how long a record is kept, if no other limit is reached before. 0 means for ever.
	MaxAge time.Duration
}

// Check returns what is wrong with l, or nil: no limit may be negative. The text begins with the field's name, for the
// caller to put before it whose limits they are.
func (l Limits) Check() error {
	switch {
	case l.MaxBytes < 0:
		return fmt.Errorf("MaxBytes is %d: must not be negative (0 means no bound)", l.MaxBytes)
	case l.MaxRecords < 0:
		return fmt.Errorf("MaxRecords is %d: must not be negative (0 means no bound)", l.MaxRecords)
	case l.MaxAge < 0:
		return fmt.Errorf("MaxAge is %v: must not be negative (0 means for ever)", l.MaxAge)
	}
	return nil
}

// RecordsLeft returns how many more records a log of that many may take: math.MaxInt64 if records are not limited, and less
// than nothing if it is beyond the limit, as it can be once the limit has been lowered.
func (l Limits) RecordsLeft(records int64) int64 { return left(l.MaxRecords, records) }

// BytesLeft returns the same of bytes.
func (l Limits) BytesLeft(bytes int64) int64 { return left(l.MaxBytes, bytes) }

// Fits reports whether a log of that many records and bytes may take one more record of add bytes and still be within its
// limits. A record that does not fit an empty log, Fits(0, 0, add), never will: it has to be refused, not waited for.
func (l Limits) Fits(records, bytes, add int64) bool {
	return l.RecordsLeft(records) >= 1 && l.BytesLeft(bytes) >= add // not a sum: that may be beyond int64
}

// Over reports whether a log of that many records and bytes is beyond a limit, so that its oldest segment has to go. A log
// that asks Fits before each append is over only once its limits have been lowered.
func (l Limits) Over(records, bytes int64) bool {
	return l.RecordsLeft(records) < 0 || l.BytesLeft(bytes) < 0
}

// Expired reports whether a segment whose newest record was appended at newestAppend is too old at now; both are in
// nanoseconds of one clock. A segment without a record has no newest append: do not ask about one.
func (l Limits) Expired(newestAppend, now int64) bool {
	return l.MaxAge > 0 && minus(now, newestAppend) >= int64(l.MaxAge)
}

// NextExpiry returns how long after now such a segment expires if nothing more is appended to it, and 0 if it has expired
// already; ok is false if age is not limited. A caller that sleeps for that long and looks again finds it Expired, and does
// not wake a moment too early for nothing.
func (l Limits) NextExpiry(newestAppend, now int64) (wait time.Duration, ok bool) {
	switch {
	case l.MaxAge <= 0:
		return 0, false
	case l.Expired(newestAppend, now):
		return 0, true
	case now >= newestAppend:
		return l.MaxAge - time.Duration(now-newestAppend), true // the age is below MaxAge: neither can overflow
	}
	// The append lies ahead of now. The wait may be longer than a Duration can say; then it is the longest there is, and
	// the look after it finds that there is more to wait for.
	return time.Duration(plus(int64(l.MaxAge), minus(newestAppend, now))), true
}

// left returns limit-have. Counts are never negative; should a caller's books be wrong, less than nothing counts as nothing.
func left(limit, have int64) int64 {
	if limit <= 0 {
		return math.MaxInt64
	}
	return limit - max(have, 0)
}

// plus returns a+b for b >= 0, or the largest number if that is beyond it.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// minus returns a-b, or the largest or smallest number if that is beyond it.
func minus(a, b int64) int64 {
	d := a - b
	switch {
	case b < 0 && d < a:
		return math.MaxInt64
	case b > 0 && d > a:
		return math.MinInt64
	}
	return d
}
