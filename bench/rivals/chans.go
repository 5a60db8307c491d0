package rivals

import (
	"context"
	"sync/atomic"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/bench/rivals/arena"
)

// chans are what most people write.
func chans() []*arena.Rival {
	return []*arena.Rival{
		{
			// The reference: a message is a value, so that nothing is allocated. Broadcast is a channel for each consumer, and a
			// partition a channel, since a channel hands every message to exactly one receiver.
			Name: "chan", About: "A buffered channel of values for each consumer, capacity 1024.",
			Sizes: arena.Sizes(), Open: bySize(openChan[[16]byte], openChan[[64]byte], openChan[[1024]byte]),
		},
		{
			// What is written where messages have no fixed size. The sender may use its buffer again, so each message is copied.
			Name: "chan-bytes", About: "A buffered channel of byte slices for each consumer, each message a fresh copy, capacity 1024.",
			Open: openChanBytes,
		},
		{
			// The usual answer to a channel that is too slow. Batches come back to be used again, so that nothing is allocated;
			// consumers that share one count down who is done with it.
			Name: "chan-batch", About: "A channel of batches of up to 64 values for each consumer, which are used again.",
			Sizes: arena.Sizes(), Open: bySize(openBatches[[16]byte], openBatches[[64]byte], openBatches[[1024]byte]),
		},
	}
}

// chanLine is a channel for each consumer.
type chanLine[T value] struct {
	job *arena.Job
	out []*baseline.Fan[T] // for each partition, with a channel for each copy
}

func openChan[T value](j *arena.Job) (arena.Line, error) {
	l := &chanLine[T]{job: j}
	for range j.Topology.Partitions {
		l.out = append(l.out, baseline.NewFan[T](j.Topology.Copies, baseline.Capacity))
	}
	return l, nil
}

func (l *chanLine[T]) Produce(_ context.Context, _ int, f *arena.Feed) error {
	var m T
	p := bytesOf(&m)
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			to := l.out[f.Partition()]
			f.Fill(p)
			to.Send(m)
		}
	}
	return nil
}

func (l *chanLine[T]) Consume(_ context.Context, i int) error {
	return receive(l.job.Sinks[i], l.out[i%len(l.out)].Reader(i/len(l.out)))
}

func (l *chanLine[T]) Close() error {
	for _, f := range l.out {
		f.Close()
	}
	return nil
}

// chanBytes is the same with byte slices.
type chanBytes struct {
	job *arena.Job
	out []*baseline.Fan[[]byte]
}

func openChanBytes(j *arena.Job) (arena.Line, error) {
	l := &chanBytes{job: j}
	for range j.Topology.Partitions {
		l.out = append(l.out, baseline.NewFan[[]byte](j.Topology.Copies, baseline.Capacity))
	}
	return l, nil
}

func (l *chanBytes) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			to := l.out[f.Partition()]
			m := make([]byte, l.job.Size) // made where it is needed: a copy of a buffer would be one copy more
			f.Fill(m)
			to.Send(m)
		}
	}
	return nil
}

func (l *chanBytes) Consume(_ context.Context, i int) error {
	s, in := l.job.Sinks[i], l.out[i%len(l.out)].Reader(i/len(l.out))
	for !s.Full() {
		m, ok := <-in
		if !ok {
			return nil
		}
		s.See(m)
	}
	return nil
}

func (l *chanBytes) Close() error {
	for _, f := range l.out {
		f.Close()
	}
	return nil
}

const (
	batchMost  = 64
	batchChans = 16 // batches in a channel: as many messages as in one of single messages
)

// batch is some messages. Who took it from the free list owns it, then those who got it through channels, who may only look.
type batch[T value] struct {
	n      int
	values [batchMost]T
	// users is stored by the producer before it sends the batch, and counted down by each consumer; who counts to 0 gives the
	// batch back. It publishes that nobody looks any more.
	users atomic.Int32
}

// batches is a channel of batches for each consumer, and one for those that come back for each producer.
type batches[T value] struct {
	job  *arena.Job
	out  []*baseline.Fan[*batch[T]]
	free chan *batch[T]
}

func openBatches[T value](j *arena.Job) (arena.Line, error) {
	l := &batches[T]{job: j}
	for range j.Topology.Partitions {
		l.out = append(l.out, baseline.NewFan[*batch[T]](j.Topology.Copies, batchChans))
	}
	// As many as can be under way at once: in the channels, in the producers' hands for each partition, and in the consumers'.
	most := (batchChans+j.Topology.Producers)*j.Topology.Partitions + j.Topology.Consumers()
	l.free = make(chan *batch[T], most)
	for range most {
		l.free <- new(batch[T])
	}
	return l, nil
}

func (l *batches[T]) Produce(ctx context.Context, _ int, f *arena.Feed) error {
	parts := len(l.out)
	mine := make([]*batch[T], parts)
	for n := f.Due(batchMost * parts); n > 0; n = f.Due(batchMost * parts) {
		for range n { // by turns, so that no batch gets more than fit
			p := f.Partition()
			b := mine[p]
			if b == nil {
				select {
				case b = <-l.free:
				default:
					select {
					case b = <-l.free:
					case <-ctx.Done():
						return nil
					}
				}
				b.n = 0
				mine[p] = b
			}
			f.Fill(bytesOf(&b.values[b.n]))
			b.n++
		}
		for p, b := range mine {
			if b != nil {
				b.users.Store(int32(l.job.Topology.Copies))
				l.out[p].Send(b)
				mine[p] = nil
			}
		}
	}
	return nil
}

func (l *batches[T]) Consume(_ context.Context, i int) error {
	s, in := l.job.Sinks[i], l.out[i%len(l.out)].Reader(i/len(l.out))
	for !s.Full() {
		b, ok := <-in
		if !ok {
			return nil
		}
		for j := range b.values[:b.n] {
			s.See(bytesOf(&b.values[j]))
		}
		if b.users.Add(-1) == 0 {
			l.free <- b
		}
	}
	return nil
}

func (l *batches[T]) Close() error {
	for _, f := range l.out {
		f.Close()
	}
	return nil
}
