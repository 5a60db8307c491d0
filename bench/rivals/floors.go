package rivals

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leatlog/leat/bench/baseline"
	"github.com/leatlog/leat/bench/rivals/arena"
)

// floors are no rivals but the least that has to be done: what Leat misses a target by is measured against them.
//
//   - nothing: making a message and checking it, by one goroutine, with nothing between. It is what the harness costs everybody.
//   - kept*: what a log has to do beside what a ring does: it keeps 64 MiB of messages, as a topic does by default, and writes
//     and reads the 16 bytes of an index entry for each. It is the ring of package baseline, of that size and with such slots: no
//     records of different sizes, no times, no segments, no retention by age, nobody who closes, cancels or looks at another offset.
//     Several producers go by a mutex, which they take for so many messages.
//   - replay/indexed: reading records by their index entries, without a log.
func floors() []*arena.Rival {
	all := []*arena.Rival{{
		Name: "nothing", About: "Making and checking messages, by one goroutine, and nothing between: what the harness costs.",
		Can: onePartition(1), Sizes: arena.Sizes(),
		Open: func(j *arena.Job) (arena.Line, error) { return &nothing{sink: j.Sinks[0]}, nil },
	}}
	for _, n := range []int{1, 10, 16, 100, 256} {
		name, when := every("kept", n)
		all = append(all, &arena.Rival{
			Name:  name,
			About: "The least that a log does: a ring of 64 MiB with an index entry for each message; " + when + ".",
			Waits: []arena.Wait{arena.Park, arena.Yield, arena.Spin},
			Can:   onePartition(0), Sizes: arena.Sizes(), Warm: time.Second, // as for Leat
			Open: bySize(openKept[[16]byte](n), openKept[[64]byte](n), openKept[[1024]byte](n)),
		})
	}
	return all
}

// onePartition refuses several partitions, and more copies than so many if that is not 0.
func onePartition(copies int) func(arena.Spec) error {
	return func(s arena.Spec) error {
		if s.Topology.Partitions > 1 || copies > 0 && s.Topology.Copies > copies {
			return errors.New("it has one partition and one consumer")
		}
		return nil
	}
}

// nothing gives each message to the sink at once.
type nothing struct {
	arena.Pushes
	mu   sync.Mutex // orders the producers
	sink *arena.Sink
}

func (l *nothing) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		l.mu.Lock()
		for range n {
			l.sink.See(f.Next())
		}
		l.mu.Unlock()
	}
	return nil
}

func (*nothing) Close() error { return nil }

// kept is a message and its index entry.
type kept[T value] struct {
	span, stamp uint64
	body        T
}

type keptLine[T value] struct {
	job  *arena.Job
	ring *baseline.Ring[kept[T]]
	most int

	mu   sync.Mutex // of several producers: orders their use of the ring
	next uint64     // under mu: the offset of the next message
}

func openKept[T value](most int) opener {
	return func(j *arena.Job) (arena.Line, error) {
		return &keptLine[T]{
			job: j, most: most, ring: baseline.NewRing[kept[T]](retained/(j.Size+16), j.Topology.Copies, j.Wait),
		}, nil
	}
}

func (l *keptLine[T]) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for n := f.Due(l.most); n > 0; n = f.Due(l.most) {
		if !l.send(f, n) {
			return nil
		}
	}
	return nil
}

// send reports false if the ring has been closed.
func (l *keptLine[T]) send(f *arena.Feed, n int) bool {
	if l.job.Topology.Producers > 1 {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	for n > 0 {
		k := l.ring.Room(n)
		if k == 0 {
			return false
		}
		for i := range k {
			s := l.ring.Slot(i)
			s.span, s.stamp = uint64(l.job.Size), l.next+uint64(i)
			f.Fill(bytesOf(&s.body))
		}
		l.ring.Publish(k)
		l.next += uint64(k)
		n -= k
	}
	return true
}

func (l *keptLine[T]) Consume(_ context.Context, i int) error {
	s, r := l.job.Sinks[i], l.ring.Reader(i)
	for at := uint64(0); !s.Full(); {
		n := r.Ready(64) // as many as Leat's readers take
		if n == 0 {
			return nil
		}
		for j := range n {
			m := r.Slot(j)
			if m.stamp < at {
				return errors.New("kept: an offset went back")
			}
			at = m.stamp
			s.See(bytesOf(&m.body)[:m.span])
		}
		r.Done(n)
	}
	return nil
}

func (l *keptLine[T]) Close() error { l.ring.Close(); return nil }

// startIndexed is startSum with each record found by its index entry, as a log of records of any size has to.
func startIndexed(s arena.Spec) (l loop, err error) {
	const block = 1 << 20 // as large as Leat's segments: bytes from the bottom up, entries from the top down
	each := block / (s.Size + 16)
	count := uint64(replayBytes / s.Size)
	blocks := make([][]byte, (count+uint64(each)-1)/uint64(each))
	for i := range blocks {
		blocks[i] = make([]byte, block)
	}
	var want uint64
	for k := range count {
		b, i := blocks[k/uint64(each)], int(k%uint64(each))
		m := b[i*s.Size : (i+1)*s.Size]
		replayed(m, k)
		want += sumWords(m)
		binary.LittleEndian.PutUint64(b[block-16*(i+1):], uint64((i+1)*s.Size)<<32)
	}
	at, sum := uint64(0), uint64(0)
	l.run = func(_ context.Context, n uint64, _ *loopRunner) error {
		for n > 0 {
			i := int(at % uint64(each))
			b := blocks[at/uint64(each)]
			k := int(min(n, count-at, uint64(each-i)))
			start := i * s.Size
			for e := block - 16*(i+1); e > block-16*(i+k+1); e -= 16 {
				end := int(binary.LittleEndian.Uint64(b[e:]) >> 32)
				sum += sumWords(b[start:end])
				start = end
			}
			n -= uint64(k)
			if at += uint64(k); at == count {
				if sum != want {
					return fmt.Errorf("%w: the sum of the records is wrong", arena.ErrFault)
				}
				at, sum = 0, 0
			}
		}
		return nil
	}
	return l, nil
}
