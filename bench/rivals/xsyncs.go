package rivals

import (
	"context"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/leatlog/leat/bench/rivals/arena"
)

// xsyncs are the queues of github.com/puzpuzpuz/xsync, each of its own kind; for several consumers there is one for each. The
// bounded ones have nothing that waits, so their users look again; Dequeue of the unbounded one parks by itself.
func xsyncs() []*arena.Rival {
	looking := []arena.Wait{arena.Yield, arena.Spin}
	return []*arena.Rival{
		{
			Name: "xsync-spsc", About: "xsync SPSCQueue of values for each consumer, capacity 1024.", Waits: looking, Can: oneProducer,
			Sizes: arena.Sizes(), Open: bySize(openSPSC[[16]byte], openSPSC[[64]byte], openSPSC[[1024]byte]),
		},
		{
			Name: "xsync-mpmc", About: "xsync MPMCQueue of values for each consumer, capacity 1024.", Waits: looking,
			Sizes: arena.Sizes(), Open: bySize(openMPMC[[16]byte], openMPMC[[64]byte], openMPMC[[1024]byte]),
		},
		{
			// It never makes a producer wait. Left to itself it grows by what the consumer lags behind, which its users have to
			// live with, and so does the figure.
			Name: "xsync-umpsc", About: "xsync UMPSCQueue of values for each consumer, unbounded.",
			Sizes: arena.Sizes(), Open: bySize(openUMPSC[[16]byte], openUMPSC[[64]byte], openUMPSC[[1024]byte]),
		},
	}
}

// The three lines differ in the type of their queues only. One generic line would call through a dictionary, which costs each
// message about as much as the fastest queue does.

type spscLine[T value] struct {
	job    *arena.Job
	queues []*xsync.SPSCQueue[T] // for each consumer
}

func openSPSC[T value](j *arena.Job) (arena.Line, error) {
	l := &spscLine[T]{job: j}
	for range j.Sinks {
		l.queues = append(l.queues, xsync.NewSPSCQueue[T](capacity))
	}
	return l, nil
}

func (l *spscLine[T]) Produce(ctx context.Context, _ int, f *arena.Feed) error {
	var m T
	p := bytesOf(&m)
	w := look(ctx, l.job.Wait)
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			to := f.Partition()
			f.Fill(p)
			for ; to < len(l.queues); to += l.job.Topology.Partitions {
				q := l.queues[to]
				for !q.TryEnqueue(m) {
					if !w.again() {
						return nil
					}
				}
				w.found()
			}
		}
	}
	return nil
}

func (l *spscLine[T]) Consume(ctx context.Context, i int) error {
	s, q := l.job.Sinks[i], l.queues[i]
	var m T
	p := bytesOf(&m)
	w := look(ctx, l.job.Wait)
	for !s.Full() {
		var ok bool
		if m, ok = q.TryDequeue(); ok {
			s.See(p)
			w.found()
		} else if !w.again() {
			return nil
		}
	}
	return nil
}

func (*spscLine[T]) Close() error { return nil }

type mpmcLine[T value] struct {
	job    *arena.Job
	queues []*xsync.MPMCQueue[T] // for each consumer
}

func openMPMC[T value](j *arena.Job) (arena.Line, error) {
	l := &mpmcLine[T]{job: j}
	for range j.Sinks {
		l.queues = append(l.queues, xsync.NewMPMCQueue[T](capacity))
	}
	return l, nil
}

func (l *mpmcLine[T]) Produce(ctx context.Context, _ int, f *arena.Feed) error {
	var m T
	p := bytesOf(&m)
	w := look(ctx, l.job.Wait)
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			to := f.Partition()
			f.Fill(p)
			for ; to < len(l.queues); to += l.job.Topology.Partitions {
				q := l.queues[to]
				for !q.TryEnqueue(m) {
					if !w.again() {
						return nil
					}
				}
				w.found()
			}
		}
	}
	return nil
}

func (l *mpmcLine[T]) Consume(ctx context.Context, i int) error {
	s, q := l.job.Sinks[i], l.queues[i]
	var m T
	p := bytesOf(&m)
	w := look(ctx, l.job.Wait)
	for !s.Full() {
		var ok bool
		if m, ok = q.TryDequeue(); ok {
			s.See(p)
			w.found()
		} else if !w.again() {
			return nil
		}
	}
	return nil
}

func (*mpmcLine[T]) Close() error { return nil }

type umpscLine[T value] struct {
	job    *arena.Job
	queues []*xsync.UMPSCQueue[T] // for each consumer
	// closed is stored by Close before it enqueues one more value, and loaded by who dequeues that.
	closed atomic.Bool
}

func openUMPSC[T value](j *arena.Job) (arena.Line, error) {
	l := &umpscLine[T]{job: j}
	for range j.Sinks {
		l.queues = append(l.queues, xsync.NewUMPSCQueue[T]())
	}
	return l, nil
}

func (l *umpscLine[T]) Produce(_ context.Context, _ int, f *arena.Feed) error {
	var m T
	p := bytesOf(&m)
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			to := f.Partition()
			f.Fill(p)
			for ; to < len(l.queues); to += l.job.Topology.Partitions {
				l.queues[to].Enqueue(m)
			}
		}
	}
	return nil
}

func (l *umpscLine[T]) Consume(_ context.Context, i int) error {
	s, q := l.job.Sinks[i], l.queues[i]
	var m T
	p := bytesOf(&m)
	for !s.Full() {
		if m = q.Dequeue(); l.closed.Load() {
			return nil
		}
		s.See(p)
	}
	return nil
}

func (l *umpscLine[T]) Close() error {
	l.closed.Store(true)
	for _, q := range l.queues {
		var none T
		q.Enqueue(none) // wakes who waits
	}
	return nil
}
