package arena

import (
	"errors"
	"fmt"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/internal/atomicx"
)

// ErrFault is wrapped by the error of a rival that lost, repeated, reordered or changed a message.
var ErrFault = errors.New("arena: messages were lost, reordered or damaged")

// mostProducers is how many producers a Sink can tell apart.
const mostProducers = 8

// plan is one slice, as the sinks see it. It is immutable.
type plan struct {
	goal uint64 // how many messages a sink has seen at the end of the slice, those of all slices before included

	// left is how many sinks are not full. Each sink lowers it once, when it is full; who lowers it to 0 sends to ended, which
	// publishes to the harness what all of them have noted.
	left  *atomicx.Uint32
	ended chan<- struct{}

	// With a rate.
	gap      float64               // ns between two messages of one producer; 0: there is no rate
	start    [mostProducers]int64  // when each producer's first message was due
	first    [mostProducers]uint64 // and which that was
	measured uint64                // messages of each producer that come before this one of the slice are not timed
}

// Sink checks what one consumer gets. One goroutine at a time calls See, and something orders them.
type Sink struct {
	_ atomicx.Pad
	// plan is stored by the harness before a slice begins, and loaded for each message: it publishes the plan.
	plan atomicx.Pointer[plan]
	// progress is stored by the consumer now and then, and loaded by the harness to see whether anything moves. It publishes
	// nothing.
	progress atomicx.Uint64
	// fault is stored once, by the consumer, and loaded by the harness: the first thing that was wrong.
	fault atomicx.Pointer[error]
	_     atomicx.Pad

	// The consumer's own; the harness reads fullAt and late when the slice has ended.
	next   [mostProducers]uint64 // for each producer, the number of the message that is next
	seen   uint64
	step   uint64 // numbers of one producer in this partition lie so far apart
	size   int
	fullAt int64
	late   *load.Histogram
	clock  *load.Clock
	name   string
	host   *sinkHost // nil, or who checks the messages instead: see Target
	_      atomicx.Pad
}

func newSink(consumer int, s Spec, clock *load.Clock) *Sink {
	k := &Sink{
		step: uint64(s.Topology.Partitions), size: s.Size, clock: clock, late: load.NewHistogram(),
		name: fmt.Sprintf("consumer %d", consumer),
	}
	for p := range k.next {
		k.next[p] = uint64(consumer % s.Topology.Partitions)
	}
	k.plan.Store(&plan{})
	return k
}

// See takes the next message. It does not keep p.
func (s *Sink) See(p []byte) {
	if s.host != nil {
		s.seeHosted(p)
		return
	}
	pl := s.plan.Load()
	var producer, seq uint64
	var ok bool
	if len(p) == lineSize && s.size == lineSize { // most of what is done in a slice
		id := le(p)
		producer, seq, ok = id>>seqBits, id&seqMask, lineRight(p)
	} else {
		producer, seq, ok = parse(p, s.size)
	}
	switch {
	case !ok || producer >= mostProducers:
		s.wrong("a message of %d bytes is damaged", len(p))
	case seq == s.next[producer]:
		s.next[producer] = seq + s.step
		if pl.gap != 0 {
			s.time(pl, producer, seq)
		}
	default:
		s.wrong("producer %d: %d came where %d was due", producer, seq, s.next[producer])
	}
	s.seen++
	if s.seen >= pl.goal {
		s.atGoal(pl)
	} else if s.seen&1023 == 0 {
		s.progress.Store(s.seen)
	}
}

// Full reports whether everything of this slice has been seen.
func (s *Sink) Full() bool { return s.seen >= s.plan.Load().goal }

// Left returns how many messages of this slice are still to be seen.
func (s *Sink) Left() int {
	if g := s.plan.Load().goal; g > s.seen {
		return int(g - s.seen)
	}
	return 0
}

func (s *Sink) time(pl *plan, producer, seq uint64) {
	if k := seq - pl.first[producer]; k >= pl.measured {
		s.late.Record(s.clock.After() - pl.start[producer] - int64(float64(k)*pl.gap))
	}
}

//go:noinline
func (s *Sink) atGoal(pl *plan) {
	s.progress.Store(s.seen)
	if s.seen > pl.goal {
		s.wrong("a message came after the last one")
		return
	}
	s.fullAt = s.clock.After()
	if pl.left.Add(^uint32(0)) == 0 {
		pl.ended <- struct{}{}
	}
}

// wrong notes the first fault. What comes after it is counted, so that everybody gets to an end.
//
//go:noinline
func (s *Sink) wrong(format string, args ...any) {
	if s.fault.Load() != nil {
		return
	}
	err := fmt.Errorf("%w: %s, message %d: %s", ErrFault, s.name, s.seen, fmt.Sprintf(format, args...))
	s.fault.Store(&err)
}

func (s *Sink) err() error {
	if e := s.fault.Load(); e != nil {
		return *e
	}
	return nil
}
