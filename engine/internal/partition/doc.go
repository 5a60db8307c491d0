// Package partition is one partition: a log, the hand-over in front of it, the role of its appender, and the readers behind
// it.
//
//	producers --claim, fill, ready--> ring --drain, stamp, copy--> log --one store a batch--> readers
//	                                        \______ the role ______/
//
// # The role
//
// At any instant at most one goroutine extends the log. That right is a token, called the role. Who holds it:
//
//   - nobody, while the ring's idle bit is set: nothing is queued and nothing is being appended;
//   - a publisher that found the partition idle and took the bit: it appends its own record straight from the caller's
//     memory, without a hand-over and without waking anybody, serves what came in meanwhile, and sets the bit again;
//   - the partition's own goroutine, under load: it drains the ring in batches, and waits for room where publishers would
//     have to; or a publisher to whom it lends the role while records come in a stream, or while it waits for a processor (see
//     lend);
//   - an Appender, for as long as it is open.
//
// The role moves by the ring's idle bit (a CAS, see package ring), by a token to the parked goroutine, through the word lent,
// or through the Appender's guard word. Each of the four orders the old holder's writes before the new holder's reads, so everything
// that only the holder touches is plain memory, and the race detector checks it.
//
// # What a publisher's record goes through
//
// A waiting Publish hands over a request that points at the caller's record. The holder settles, by one CAS on the
// request's state, whether it takes the record or the publisher has given up; so a publisher whose context ends knows for
// certain that its record will never appear. PublishAsync and TryPublish return before the record is in the log, so their
// bytes are copied into slots of the ring, as many as they need.
package partition
