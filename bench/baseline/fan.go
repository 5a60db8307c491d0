package baseline

import "bytes"

// Capacity is the buffer of a rival channel in our benchmarks: large enough that a larger one is no faster, small enough to
// stay in the first-level cache's neighbourhood.
const Capacity = 1024

// Slot is a 64-byte message that travels by value.
type Slot [64]byte

// Fan hands every message to each of its readers through a buffered channel per reader.
type Fan[T any] struct {
	chans []chan T
}

// NewFan returns a Fan for that many readers, whose channels hold capacity messages each.
func NewFan[T any](readers, capacity int) *Fan[T] {
	f := &Fan[T]{chans: make([]chan T, readers)}
	for i := range f.chans {
		f.chans[i] = make(chan T, capacity)
	}
	return f
}

// Send hands v to every reader, in the order of their numbers, and waits while the channel of one is full. Several goroutines
// may send; two readers then may see their messages interleaved differently.
func (f *Fan[T]) Send(v T) {
	for _, c := range f.chans {
		c <- v
	}
}

// Reader returns the channel of reader i. It ends after Close, once it is empty.
func (f *Fan[T]) Reader(i int) <-chan T { return f.chans[i] }

// Close ends the readers' channels. Nobody may be sending, or send afterwards.
func (f *Fan[T]) Close() {
	for _, c := range f.chans {
		close(c)
	}
}

// SendBytes hands a fresh copy of p to every reader; they share that copy.
func SendBytes(f *Fan[[]byte], p []byte) { f.Send(bytes.Clone(p)) }
