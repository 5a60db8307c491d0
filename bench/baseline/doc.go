// Package baseline holds what people write when they do not use a library: a buffered channel, a slice under a mutex, and a ring.
// Benchmarks and the load harness run them beside Leat, in the same process and the same minute, because on a machine whose
// cores move about only such a ratio means anything.
//
//   - [Fan] is a buffered channel, or for several readers one channel each, since a channel hands every message to exactly
//     one receiver. With [Slot] it carries 64-byte messages by value and allocates nothing; with byte slices of any size
//     every message is copied into fresh memory, since the sender may reuse its buffer.
//   - [Log] is the textbook log: a slice of messages, a mutex, a condition variable. It keeps messages, so that it can replay,
//     and everybody queues for its lock.
//   - [Ring] is the idea of the Disruptor: messages that are filled and looked at in place, one writer, positions that each side
//     caches of the other. It keeps nothing, and copies nothing: what a log costs is what it is faster than Leat by.
//
// They are rivals, kept simple on purpose but not slowed down on purpose.
package baseline
