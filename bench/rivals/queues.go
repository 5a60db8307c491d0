package rivals

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"

	"code.cloudfoundry.org/go-diodes"
	"github.com/Workiva/go-datastructures/queue"

	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/internal/atomicx"
)

// queues take an interface or a pointer, so each message is a fresh array: its consumer may hold on to it.
func queues() []*arena.Rival {
	return []*arena.Rival{
		{
			// Put and Get let others run until there is room or something to get; they know no other way to wait.
			Name: "workiva-ring", About: "Workiva RingBuffer of pointers for each consumer, capacity 1024.", Waits: []arena.Wait{arena.Yield},
			Open: openWorkiva,
		},
		{
			// A diode overwrites what its reader has not read, so in this comparison somebody has to hold the producers back: see
			// credits. Parking is its Waiter; its Poller would sleep for 10 ms. OneToOne for one producer, ManyToOne for more,
			// and larger then, as its documentation says.
			Name: "diodes", About: "go-diodes of pointers for each consumer, size 4096, behind credits, since it would drop otherwise.",
			Waits: []arena.Wait{arena.Park, arena.Yield, arena.Spin},
			Open:  openDiodes,
		},
	}
}

type workiva struct {
	job   *arena.Job
	rings []*queue.RingBuffer // for each consumer
}

func openWorkiva(j *arena.Job) (arena.Line, error) {
	l := &workiva{job: j}
	for range j.Sinks {
		l.rings = append(l.rings, queue.NewRingBuffer(capacity))
	}
	return l, nil
}

func (l *workiva) Produce(_ context.Context, _ int, f *arena.Feed) error {
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			to := f.Partition()
			m := fresh(f, l.job.Size)
			for ; to < len(l.rings); to += l.job.Topology.Partitions {
				if err := l.rings[to].Put(m); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (l *workiva) Consume(_ context.Context, i int) error {
	s, r := l.job.Sinks[i], l.rings[i]
	for !s.Full() {
		m, err := r.Get()
		if errors.Is(err, queue.ErrDisposed) {
			return nil
		}
		if err != nil {
			return err
		}
		s.See(unsafe.Slice(m.(*byte), l.job.Size))
	}
	return nil
}

func (l *workiva) Close() error {
	for _, r := range l.rings {
		r.Dispose()
	}
	return nil
}

// fresh returns the next message in memory of its own, by its first byte: a pointer goes into an interface as it is, where a
// slice would be allocated once more.
func fresh(f *arena.Feed, size int) *byte {
	m := make([]byte, size)
	f.Fill(m)
	return &m[0]
}

const diodeSize = 4096

type diodeLine struct {
	job     *arena.Job
	diodes  []diodes.Diode   // for each consumer
	waiters []*diodes.Waiter // if they park
	credits []*credits       // for each partition
	left    [][]int          // credits that each producer has, by partition
	end     context.CancelFunc
}

func openDiodes(j *arena.Job) (arena.Line, error) {
	ctx, end := context.WithCancel(context.Background())
	l := &diodeLine{job: j, end: end}
	for range j.Topology.Partitions {
		l.credits = append(l.credits, newCredits(j.Topology.Copies, diodeSize))
	}
	for range j.Topology.Producers {
		l.left = append(l.left, make([]int, j.Topology.Partitions))
	}
	for range j.Sinks {
		var d diodes.Diode
		if j.Topology.Producers == 1 {
			d = diodes.NewOneToOne(diodeSize, nil)
		} else {
			d = diodes.NewManyToOne(diodeSize, nil)
		}
		if j.Wait == arena.Park {
			w := diodes.NewWaiter(d, diodes.WithWaiterContext(ctx))
			l.waiters = append(l.waiters, w)
			d = w
		}
		l.diodes = append(l.diodes, d)
	}
	return l, nil
}

func (l *diodeLine) Produce(ctx context.Context, p int, f *arena.Feed) error {
	left := l.left[p]
	for n := f.Due(burst); n > 0; n = f.Due(burst) {
		for range n {
			to := f.Partition()
			if left[to] == 0 {
				if left[to] = l.credits[to].take(ctx); left[to] == 0 {
					return nil
				}
			}
			left[to]--
			m := fresh(f, l.job.Size)
			for ; to < len(l.diodes); to += l.job.Topology.Partitions {
				l.diodes[to].Set(diodes.GenericDataType(m))
			}
		}
	}
	return nil
}

func (l *diodeLine) Consume(ctx context.Context, i int) error {
	s, d := l.job.Sinks[i], l.diodes[i]
	w, done := look(ctx, l.job.Wait), &l.credits[i%len(l.credits)].done[i/len(l.credits)]
	defer done.flush()
	for !s.Full() {
		var m diodes.GenericDataType
		if l.waiters != nil {
			if m = l.waiters[i].Next(); m == nil {
				return nil
			}
		} else {
			var ok bool
			if m, ok = d.TryNext(); !ok {
				if !w.again() {
					return nil
				}
				continue
			}
			w.found()
		}
		s.See(unsafe.Slice((*byte)(m), l.job.Size))
		done.one()
	}
	return nil
}

func (l *diodeLine) Close() error {
	l.end()
	return nil
}

// creditsTaken is how many a producer takes at once, and consumers give back at once: so credits cost nearly nothing.
const creditsTaken = 64

// credits bound how many messages are under way in something that has no bound that would hold anybody back.
//
// A producer takes credits before it sends, and waits while more have been taken than the slowest consumer has given back, by
// the size. It never waits for good: what is missing is in the hands of consumers, but for creditsTaken of each producer and
// each consumer, which together are fewer than the size.
type credits struct {
	size uint64
	_    atomicx.Pad
	// taken is added to by producers. It publishes nothing.
	taken atomic.Uint64
	_     atomicx.Pad
	done  []doneCount // for each consumer
}

// doneCount is how many messages one consumer has seen.
type doneCount struct {
	_ atomicx.Pad
	// told is stored by the consumer and loaded by producers: what is below it is in nobody's way any more.
	told atomic.Uint64
	seen uint64 // the consumer's own
	_    atomicx.Pad
}

func newCredits(consumers int, size uint64) *credits {
	return &credits{size: size, done: make([]doneCount, consumers)}
}

// take returns how many messages may be sent; 0 if ctx has ended.
func (c *credits) take(ctx context.Context) int {
	taken := c.taken.Add(creditsTaken)
	w := look(ctx, arena.Yield)
	for taken > c.size+c.low() {
		if !w.again() {
			return 0
		}
	}
	return creditsTaken
}

// low is what the slowest consumer has seen.
func (c *credits) low() uint64 {
	low := c.done[0].told.Load()
	for i := 1; i < len(c.done); i++ {
		low = min(low, c.done[i].told.Load())
	}
	return low
}

func (d *doneCount) one() {
	if d.seen++; d.seen%creditsTaken == 0 {
		d.flush()
	}
}

func (d *doneCount) flush() { d.told.Store(d.seen) }
