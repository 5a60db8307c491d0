package target

import (
	"context"
	"sync"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/bench/load"
)

// Chan is a buffered channel of capacity 1024 for each partition and consumer, less where they would hold more than 2 GiB all together. Messages of up to 64 bytes travel by value
// as 64-byte structs; larger ones as fresh copies on the heap.
//
// Publish waits while a channel is full, and does not look at its context: a plain send is what people write, and a select
// would cost about as much again.
type Chan struct{}

// Name implements load.Target.
func (Chan) Name() string { return "chan" }

// Check implements load.Checker.
func (Chan) Check(s load.Scenario) error {
	if err := onlySync("chan", s); err != nil {
		return err
	}
	return fits(&s, func(size int64) int64 { return heldLeast * places(&s) * size })
}

// Open implements load.Target.
func (Chan) Open(s load.Scenario) (load.Instance, error) {
	if err := (Chan{}).Check(s); err != nil {
		return nil, err
	}
	return chained(s, openChans)
}

func openChans(s load.Scenario) (load.Instance, error) {
	consumers := int64(s.Consumers())
	if s.Size <= len(baseline.Slot{}) && s.Sizes.Least() == s.Sizes.Most() {
		capacity := holds(places(&s), consumers*int64(len(baseline.Slot{})), baseline.Capacity, heldLeast)
		return openFans(s, capacity, slotSender, slotBytes(s.Size)), nil
	}
	capacity := holds(places(&s), mean(&s)+consumers*sliceBytes, baseline.Capacity, heldLeast) // all consumers have one copy
	return openFans(s, capacity, bytesSender, func(p *[]byte) []byte { return *p }), nil
}

// fans is one Fan for each partition; its readers are the pull readers and then the subscribers.
type fans[T any] struct {
	s       load.Scenario
	parts   []*baseline.Fan[T]
	sender  func([]*baseline.Fan[T]) load.Producer
	bytes   func(*T) []byte
	pushers sync.WaitGroup
}

func openFans[T any](s load.Scenario, capacity int, sender func([]*baseline.Fan[T]) load.Producer, bytes func(*T) []byte) *fans[T] {
	f := &fans[T]{s: s, sender: sender, bytes: bytes}
	for range s.Partitions {
		f.parts = append(f.parts, baseline.NewFan[T](s.Consumers(), capacity))
	}
	return f
}

func (f *fans[T]) Producer(int) (load.Producer, error) { return f.sender(f.parts), nil }

func (f *fans[T]) Read(reader, partition int, deliver func([]byte)) error {
	f.drain(f.parts[partition].Reader(reader), deliver)
	return nil
}

// drain delivers until c ends. There is one variable for all messages, since its address goes to the consumer: one for each
// would be one allocation for each.
func (f *fans[T]) drain(c <-chan T, deliver func([]byte)) {
	var v T
	var ok bool
	for {
		if v, ok = <-c; !ok {
			return
		}
		deliver(f.bytes(&v))
	}
}

func (f *fans[T]) Subscribe(subscriber int, deliver func(int, []byte)) error {
	for i, part := range f.parts {
		c := part.Reader(f.s.Readers + subscriber)
		f.pushers.Go(func() { f.drain(c, func(p []byte) { deliver(i, p) }) })
	}
	return nil
}

func (f *fans[T]) Close() error {
	for _, part := range f.parts {
		part.Close()
	}
	f.pushers.Wait()
	return nil
}

type slotProducer []*baseline.Fan[baseline.Slot]

func slotSender(parts []*baseline.Fan[baseline.Slot]) load.Producer { return slotProducer(parts) }

func (p slotProducer) Publish(_ context.Context, partition int, payload []byte) error {
	var v baseline.Slot
	copy(v[:], payload)
	p[partition].Send(v)
	return nil
}

func (slotProducer) Flush(context.Context) error { return nil }

func slotBytes(size int) func(*baseline.Slot) []byte {
	return func(v *baseline.Slot) []byte { return v[:size] }
}

type bytesProducer []*baseline.Fan[[]byte]

func bytesSender(parts []*baseline.Fan[[]byte]) load.Producer { return bytesProducer(parts) }

func (p bytesProducer) Publish(_ context.Context, partition int, payload []byte) error {
	baseline.SendBytes(p[partition], payload)
	return nil
}

func (bytesProducer) Flush(context.Context) error { return nil }
