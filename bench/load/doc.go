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
// With a rate, [Scenario.Arrival] says how the messages are spread in time; Sizes and Keys say what they are like (package stream). The
// k-th message of a producer comes at the same time, and has the same size, key and bytes, in every run with the same seed. With
// keys, the key of a message chooses its partition.
//
// # Latencies
//
//   - publish: how long the call to publish took. What that includes is the target's affair: handing over, or being committed.
//   - delay: how much later than scheduled the call began. Nothing without a rate.
//   - e2e: from the scheduled time (without a rate, from the call) until a reader or subscriber had the message. With a group:
//     until it was delivered for the first time; and done says when it was processed.
//
// # Windows, and the floor
//
// A run is cut into windows of about a quarter of a second, each with its own rate, lag and percentiles ([Result].Windows): compare
// tells noise from difference by them, and report draws them. Before a run, a tenth of its time (at most 300 ms) goes to the same load
// on a target that does nothing, [Null]: [Floor] is what the generator does and shows by itself on this machine at this moment.
//
// RESULT.md says what each field of a result's JSON form is. [Result.Figure] looks figures up for package slo.
//
// # More that readers do
//
// With [Scenario.Stop] all readers stand still for a while and then catch up; with Replays more readers read all that is kept from the
// beginning, again and again, as others read what is new; with Stages a message goes through several topics, and readers are at the
// end. Targets say which of these they know.
//
// A scenario with Sync has the target keep messages in files. In the end they are opened again, and what is not there is lost.
//
// # Groups
//
// With a [Group], the receivers are the members of a consumer group and the target is a [GroupTarget]. Then each message is to be
// processed, once by the group as a whole, and may be delivered more often: after a failure, after its time was up, after
// a member was put out. The harness keeps a ledger for each partition, in which each message is unseen, open, to come again, or
// settled, and knows from it which of these deliveries had a reason; what has none is a fault ([Faults]), all others are counted
// apart ([Redone]). A run ends when everything is settled, and then the target's positions must say the same.
//
// A deliberate failure depends on the seed and the message alone, so that runs are comparable. Failures, slowness, members that
// hang, come, go or are put out can all be had at once, as far as that makes sense; [Scenario.Validate] says what does not.
//
// # How a run ends
//
// When everything has been sent, a run waits until it has arrived. What does not come for as long as [Scenario.Patience] is lost. A run
// whose context ends, in whatever phase, ends within seconds: before it has begun with a result that says so; later with what there
// was until then. What was still under way is [Result].Unfinished then, and not lost. So is what handlers do not get through in the
// time that the run itself took (or Patience, or five seconds, if that is longer): they are told to end.
//
// # What is thrown away
//
// What is sent during the warm-up is checked, but its publish latency and delay are not measured, and neither is the end-to-end
// latency of what arrives during it. A backlog from the warm-up does count when it arrives later.
package load
