// Package delivery pushes the records of one partition to one subscription.
//
// A [Lane] is one (subscription, partition). It is a task of the dispatch pool: a worker runs it for a turn, in which it
// reads records and calls the handler for each, and then puts it at the end of the run queue. A turn ends after 1024 records or
// a millisecond, or, with a handler that is slow all of a sudden, after 16 records; then the partition knows how far the lane
// is. A lane that has caught up rests on the partition's event and costs nothing; a lane whose handler has failed rests until
// the retry is due, without holding a worker.
//
// A [Keyed] is a Lane that is parallel by key: some tasks share one window of records that are read and not settled, in which
// each key has a strand, and each strand is with one task at a time. Its position is the end of the gap-free prefix.
//
// To whoever owns them both are a [Runner].
//
// What does not belong here: who owns a lane. A broadcast subscription owns one for each partition; a group will hand lanes
// to its members.
package delivery
