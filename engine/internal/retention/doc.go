// Package retention decides how much of a partition is kept: a few pure functions over numbers, without a clock, a lock or a
// log of their own.
//
// The caller holds the log. It knows how many records and bytes the log retains and when its oldest segment was last
// appended to, and it drops one whole segment at a time, the active one included:
//
//	for oldest, ok := log.Oldest(); ok; oldest, ok = log.Oldest() {
//		records, bytes, _ := log.Retained()
//		if !limits.Expired(oldest.NewestAppend, now) && !limits.Over(records, bytes) {
//			break
//		}
//		log.DropOldest()
//	}
//
// and before each append:
//
//	for !limits.Fits(records, bytes, size) {
//		// Drop the oldest segment, wait or refuse: the topic's policy, which is not decided here.
//	}
//
// # Whole segments
//
// Retention works in whole segments, so a limit is exact from above and coarse from below: the log never holds more than the
// limit, and after making room it holds less by up to one segment. A caller that wants less of that makes its segments
// small against the limits. For age it is the other way round: no record goes before its time, and one that shares a segment
// with younger ones goes with the youngest. So a caller with MaxAge also ends the active segment when it spans a good part
// of MaxAge; otherwise a trickle of records into one large segment would keep all of them for as long as it lasts.
//
// # Which time
//
// Age is the time since a segment's newest append, by the clock of the engine, which does not go back and which a set wall
// clock does not move. The timestamp that a producer puts on a record is data and a search key; it plays no part here. So a
// record from the future cannot hold its segment for years, and a segment goes once all its records are too old, never
// earlier.
//
// # No overflow
//
// All limits may be the largest number there is and all times may be any number there is: sums and differences stop at the
// ends of int64 instead of wrapping. Numbers are 64 bits wide on every platform.
package retention
