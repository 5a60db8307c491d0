package rivals

import (
	"context"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/bench/rivals/arena"
)

// ringBytes is the size of a ring: large enough for a reader to fall behind, small enough for the caches. Rings that are much
// smaller or larger are several times slower.
const ringBytes = 4 << 20

// rings stand for the Disruptors in Go, whose modules cannot be had here. They publish each message, or every so many, as
// those are measured; the last publishes what is due, up to 256.
func rings() (all []*arena.Rival) {
	for _, n := range []int{1, 10, 100, 256} {
		name, about := every("ring", n)
		all = append(all, &arena.Rival{
			Name:  name,
			About: "A ring of values in place, single writer, cached positions: the idea of the Disruptor and nothing else; " + about + ".",
			Waits: []arena.Wait{arena.Park, arena.Yield, arena.Spin},
			Can:   oneProducer,
			Sizes: arena.Sizes(), Open: bySize(openRing[[16]byte](n), openRing[[64]byte](n), openRing[[1024]byte](n)),
		})
	}
	return all
}

type ringLine[T value] struct {
	job   *arena.Job
	rings []*baseline.Ring[T] // for each partition
	most  int
}

func openRing[T value](most int) opener {
	return func(j *arena.Job) (arena.Line, error) {
		l := &ringLine[T]{job: j, most: most}
		for range j.Topology.Partitions {
			l.rings = append(l.rings, baseline.NewRing[T](ringBytes/j.Size, j.Topology.Copies, j.Wait))
		}
		return l, nil
	}
}

func (l *ringLine[T]) Produce(_ context.Context, _ int, f *arena.Feed) error {
	if len(l.rings) > 1 {
		return l.several(f)
	}
	r := l.rings[0]
	for n := f.Due(l.most); n > 0; n = f.Due(l.most) {
		for n > 0 {
			k := r.Room(n)
			if k == 0 {
				return nil
			}
			for i := range k {
				f.Fill(bytesOf(r.Slot(i)))
			}
			r.Publish(k)
			n -= k
		}
	}
	return nil
}

// several goes by turns.
func (l *ringLine[T]) several(f *arena.Feed) error {
	filled := make([]int, len(l.rings))
	for n := f.Due(l.most * len(l.rings)); n > 0; n = f.Due(l.most * len(l.rings)) {
		for range n {
			p := f.Partition()
			r := l.rings[p]
			for r.Room(filled[p]+1) <= filled[p] {
				if filled[p] == 0 {
					return nil // closed
				}
				r.Publish(filled[p]) // so that its reader can make room
				filled[p] = 0
			}
			f.Fill(bytesOf(r.Slot(filled[p])))
			filled[p]++
		}
		for p, k := range filled {
			if k > 0 {
				l.rings[p].Publish(k)
				filled[p] = 0
			}
		}
	}
	return nil
}

func (l *ringLine[T]) Consume(_ context.Context, i int) error {
	s, r := l.job.Sinks[i], l.rings[i%len(l.rings)].Reader(i/len(l.rings))
	for !s.Full() {
		// In runs, as a Disruptor's reader does; its place is told after each, so that the writer gets room in good time.
		n := r.Ready(256)
		if n == 0 {
			return nil
		}
		for j := range n {
			s.See(bytesOf(r.Slot(j)))
		}
		r.Done(n)
	}
	return nil
}

func (l *ringLine[T]) Close() error {
	for _, r := range l.rings {
		r.Close()
	}
	return nil
}
