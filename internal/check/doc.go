// Package check finds out from a history of operations whether a log kept its promises. It knows nothing of the engine: a test
// writes down what it called and what it was told, and Check looks for contradictions. Only tests import it.
//
// # How to use it
//
// A run has one Recorder. Each goroutine of the test has a Log of it, in which it begins an operation just before it calls the
// engine and ends it just after:
//
//	rec := check.NewRecorder(seed)
//	orders := rec.Partition("orders/0")
//	printer := rec.Consumer("printer", check.ConsumerConfig{})
//
//	log, values := rec.Log("producer 1"), rec.Producer()
//	value := values.Next(64)             // says by itself which record it is, and whether it is whole
//	send := log.SendTo(orders, value)
//	off, err := topic.Publish(ctx, engine.Record{Value: value})
//	switch {
//	case err == nil:
//		send.Ok(orders, off)
//	case indefinite(err):
//		send.Unknown()                     // the record may appear or not
//	default:
//		send.Fail()                        // it must never appear
//	}
//
//	log := rec.SharedLog("handlers")     // handlers run on any worker
//	func(ctx context.Context, m *engine.Message) error {
//		h := log.Handle(owner, m.Offset, m.Attempt, m.Value)
//		...
//		return h.Done(err)
//	}
//
// When all is quiet the test reads each partition once more from its oldest record to its end (Log.FinalPoll), writes down
// the engine's counters (Log.Counter), and asks:
//
//	rec.History().Check(check.Options{}).Require(t)
//
// # What it looks for
//
// Anomalies: see the constants. Each finding names one, tells what contradicts what, and the Report prints the
// operations around and the seed of the run.
//
// # What a history is
//
// A list of operations, each with the time at which it was called and the time at which it returned, on one clock. Operation
// a is before b if a returned before b was called; otherwise they are concurrent, also if the times are equal. An operation
// that never returned may have taken effect or not, at any time after its call. The checker says that something is wrong only
// if no order of the concurrent operations explains what was seen. So it is never wrong to begin an operation too early or to
// end it too late, but it hides things.
//
// A handler is called from inside the engine: what is written down begins a little after the engine decided to call it, and
// ends a little before the engine knows that it has returned. So a delivery that was decided before a Seek may be seen to
// begin after Seek has returned, and the checker lets one pass. Likewise after a Fence, or after it was said that a partition
// is Lost; not after a Revoke or a Leave that is Ok, which say that no handler runs any more. The same holds for the notice of
// a gap. And what a handler returned just before a Fence may not count.
//
// Times can be those of a logical clock (Ticks), which gives each event its own number. In a synctest bubble, where real time
// stands still, that is the one to take. It hides races, though: all goroutines touch one word.
//
// # Who is who
//
// A Partition is a partition of a topic. A Consumer is whoever has positions: a reader, a subscription or a group; its
// ConsumerConfig says what it is allowed to do. A Member is one of a group's members, or 0. An Owner puts them together with
// the generation under which the member owns the partition.
//
// # What to write down
//
// The more of these, the more is found; without some of them there are also false alarms, and these are marked by *.
//
//   - Sends, all of them*, by the goroutine that sends. Each goroutine has a Producer of its own*.
//   - Handlers, in their first and last line*; with FailIfOpen if they may panic*. All handlers of one consumer write to one
//     SharedLog, so that even on a coarse clock it is known which came first. What a poll of a group's member returns is not a
//     handler but Pulled*; a reader of its own has Poll.
//   - Acknowledgements and commits, with their results*, also of those that come late.
//   - Assign, and what ends it: Revoke, Lost or Fence*. Members that leave, subscriptions that end.
//   - Seeks and resets*, begun before and ended after the call.
//   - Gaps*, records that are given up* (or MaxDeliveries in the configuration), and truncations after a crash*.
//   - Look-ups of positions, of low marks and, at the end, of counters. After the end of all work: Idle, unless the consumer is
//     paused, and the final polls.
//   - Dead letters are copies: the topic's partitions are made by CopyPartition*, and what is sent there by the engine
//     needs no Send.
//   - What else the configuration must say: which consumers go by key*, after which time a record that is held may be given to
//     somebody else*, and the first offset of a partition that does not begin at 0*.
//
// # What it does not do
//
// Read the engine, wait, or decide when all is quiet. It takes the configuration at its word: a consumer that is said to be
// AtMostOnce may lose what a fence takes away.
package check
