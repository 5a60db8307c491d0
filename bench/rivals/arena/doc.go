// Package arena runs two ways to move messages side by side and says which is faster, by how much, and at what cost.
//
// A [Rival] says how to open a [Line]: the thing that moves messages, set up for a [Spec] (who sends to whom, how large, how
// fast, how to wait). A [Traffic] sends slices of messages through a line, and checks that each consumer gets every message,
// in order, and unharmed; one that loses, reorders or changes a message fails. A [Match] lets the slices of two lines
// alternate and notes where the cores were before and after each.
//
// # A rival of your own
//
// A line has three methods. Produce and Consume are whole loops, so that nothing stands between what is measured and its user:
// they are called once for each producer and each consumer in each slice, on goroutines of their own.
//
//	type queue struct {
//		job *arena.Job
//		c   chan [64]byte
//	}
//
//	func (q *queue) Produce(_ context.Context, _ int, f *arena.Feed) error {
//		var m [64]byte
//		for n := f.Due(64); n > 0; n = f.Due(64) { // waits until something is to be sent
//			for range n {
//				f.Fill(m[:])
//				q.c <- m
//			}
//		}
//		return nil
//	}
//
//	func (q *queue) Consume(_ context.Context, i int) error {
//		s := q.job.Sinks[i]
//		for !s.Full() {
//			m, ok := <-q.c
//			if !ok {
//				return nil
//			}
//			s.See(m[:])
//		}
//		return nil
//	}
//
//	func (q *queue) Close() error { close(q.c); return nil }
//
// The example of [Rival] is the same, whole, and runs.
//
// Something that collects messages and sends them together sends what it has collected when it has sent as many as Due said:
// with a rate that is what is due by now, without one it is as many as were asked for.
//
// Something that calls its consumers, rather than being asked by them, subscribes when it is opened, gives each message to its
// Sink, and embeds [Pushes] instead of having a Consume.
//
// A rival is a target of the load harness as well: see [Target].
//
// # What is measured
//
// Without a rate, producers send as fast as they can, and a slice lasts from the moment that they may begin until the last
// consumer has seen the last message. With a rate the load is an open loop: message k is due at a moment that was fixed before
// the slice began, and its latency counts from there until its consumer has it, whoever was to blame for the delay.
//
// Processor time is the whole process's, so it includes who waits by spinning, and the harness: making a message of 64 bytes
// takes about 4 ns and checking it about 6, for every rival alike, which makes ratios smaller than they are.
package arena
