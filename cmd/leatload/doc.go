// Leatload puts Leat, or a rival, under load and shows what came of it: messages a second, cost of each, latency
// percentiles, and whether every message arrived once, in order and unharmed.
//
// With no arguments it runs the main job for about 10 seconds: three producers, two partitions, one pull reader and one push
// subscriber that each see every message, as fast as they can.
//
//	leatload                                   the main job, saturating
//	leatload -rate 1e6                         the same at a million messages a second: latencies from the schedule
//	leatload -scenario fan-out -engine chan    one producer, three readers, on buffered channels
//	leatload -scenario churn -evict 0.25       a consumer group whose members come and go, a quarter of them by force
//	leatload -json result.json                 the result for programs as well
//
// The scenarios group, shared, churn, slow-consumer and redelivery have a consumer group in place of readers: each message must
// be processed as often as the group's mode says, whatever becomes of its members. At the end everything is let through and
// the group's positions must say so.
//
// leatload -h lists all flags and scenarios, and says what is checked.
//
// # Exit code
//
//   - 0: all messages arrived as they should.
//   - 1: the run failed (the target reported an error, or a file could not be written).
//   - 2: messages were lost, duplicated, reordered or damaged, or a group did what its mode does not allow; or the arguments
//     make no sense.
//   - 3: all messages arrived as they should, but the rate that was asked for was not reached.
//
// After Ctrl-C the run drains, and shows and judges what there was until then.
package main
