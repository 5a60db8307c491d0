// Package segment keeps the records of one partition in memory: an append-only log of records as bytes, which one goroutine
// extends while any number of others read, without a lock on either side.
//
// There are four types to know. A [Log] is the records of a partition. It is a list of segments, each of which holds the
// records of a run of offsets in one block of memory. A [Pool] hands out blocks, takes them back and bounds how many there
// are. A [Reader] is a position that moves through a log; it pins the segment that it stands in. A [Record] is what goes in
// and comes out.
//
//	             first                                     committed    staged
//	               |                                           |          |
//	offsets    ....[ segment  )[ segment         )[ active segment        |
//	           dropped          immutable, read by all           appender's own
//
//	a block    [record bytes ->            free             <- index entries]
//
// An index entry says where a record ends, when it was appended and what it has, so a record is found by its offset without a search.
// Of a run, records that are made at once and are values of one size, one entry in 16 is written and read; see entry.
//
// # Appending
//
// One goroutine at a time has the appender's role. Reserve stages a record and gives the place for its bytes, Append copies
// a Record there, and Publish makes all that is staged visible at once, also if it is spread over several segments.
// DropOldest and TruncateBefore cut the log at its front; when to do that is the caller's policy. Seal ends the log.
//
// # Reading
//
// Reader is for going through a log in order: Refill looks at what has been published and Next walks over it, with no
// atomic operation for each record and no copy. ReadAt is for a record here and there. What both return are views of the
// log's own memory; Record.Clone makes a copy. OffsetAt finds a record by time.
//
// # Cold segments
//
// A log can begin with records that are somewhere else, such as in files: AttachCold gives it segments of which it knows all but
// the records. They are part of it like any other, are retained and dropped, and cost no memory until somebody reads them; then
// they are loaded. That is the only time that a reader waits, and it may fail: Refill then returns Unreadable.
//
// # Memory
//
// A block has no pointers, so the collector never looks into it, and a record costs 16 bytes beside its own. When a segment
// is dropped its block goes back to the pool and is used again, unless a Reader stands in it or a view from ReadAt points
// into it: then it is left to the collector. So nobody ever reads reused memory, and a reader that sleeps for long costs
// one block.
//
// # What it does not do
//
// It does not wait, wake, retain by policy, or write to disk; that is for the layers above. It knows nothing of topics. Two
// goroutines that append at the same time are an error, which it detects but cannot mend.
package segment
