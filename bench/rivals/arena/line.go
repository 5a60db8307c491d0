package arena

import "context"

// Job is what a rival's Open is given.
type Job struct {
	Spec

	// Sinks are what the messages are for: Sinks[i] is consumer i's, which gets the messages of partition i % Partitions. One
	// goroutine at a time gives to a Sink.
	Sinks []*Sink
}

// Line is a rival that has been opened. Its methods are called in slices: Produce for each producer and Consume for each
// consumer, all at once, each on a goroutine of its own; and so again for the next slice, when all of them have returned. In
// the end comes Close.
type Line interface {
	// Produce sends all that f has, as producer p. If ctx ends the slice has failed: it may return at once.
	Produce(ctx context.Context, p int, f *Feed) error

	// Consume gives consumer i's Sink every message until that is Full. Where it is not known beforehand whose messages come,
	// it gives them to any of the Sinks that no other goroutine gives to, until ctx ends: all Sinks are Full then, or the
	// slice has failed. When it has returned the line must not use a processor until the next slice.
	Consume(ctx context.Context, i int) error

	// Close ends the line, and makes every Consume return that is still waiting, as happens when messages were lost. Every
	// Produce has returned, unless it is stuck.
	Close() error
}

// Pushes is embedded by lines that call their consumers: there is nothing to do for a goroutine of the harness.
type Pushes struct{}

// Consume implements Line.
func (Pushes) Consume(context.Context, int) error { return nil }
