// Package load puts a queue or a log under load and tells the truth about what happened: how many messages a second, what
// each cost, how long they took, and whether every one of them arrived once, in order and unharmed.
//
// Three things matter here:
//
//   - a [Scenario] says how many producers, partitions, readers and subscribers there are, how large the messages are, how fast
//     they come and for how long;
//   - a [Target] is the system under load, behind a few short methods; write your own to measure your own queue;
//   - [Run] does it and returns a [Result], which prints itself and turns into JSON.
//
// # The paths of a message
//
// A producer publishes to partitions in turn. Each pull reader and each push subscriber sees every message of every partition.
// Every message carries its producer, its number within that producer's stream to that partition, the time it should have been
// sent, and a checksum over all its bytes. So each reader can tell by itself, for each partition, what was lost, duplicated,
// reordered, or damaged on the way.
//
// # Two ways to load
//
// With a rate, the load is an open loop: a schedule fixed in advance says when each message should be sent, and all latencies
// count from there. If the target stalls, the messages that should have been sent meanwhile are late, and are counted as late
// (measuring from the actual send instead would leave the stall out of the percentiles: coordinated omission). A run that
// cannot hold its rate says so.
//
// Without a rate (0), producers publish as fast as they can. Here a clock read for each message would cost as much as the
// message, so only one message in [Scenario.SampleEvery] carries a time and is measured; the counters still check all of them.
// Latencies of a saturated system mostly show how much it buffers.
//
// # Three latencies
//
//   - publish: how long the call to publish took. What that includes is the target's affair: handing over, or being committed.
//   - delay: how much later than scheduled the call began. Nothing without a rate.
//   - e2e: from the scheduled time (without a rate, from the call) until a reader or subscriber had the message.
//
// # What is thrown away
//
// What is sent during the warm-up is checked, but its publish latency and delay are not measured, and neither is the end-to-end
// latency of what arrives during it. A backlog from the warm-up does count when it arrives later.
package load
