package load

import (
	"fmt"
	"slices"

	"github.com/leatlog/leat/internal/atomicx"
)

// Faults counts what went wrong between publish and delivery. All zero is right.
type Faults struct {
	// Lost is how many messages never arrived.
	Lost uint64 `json:"lost"`
	// Duplicated is how many arrived again.
	Duplicated uint64 `json:"duplicated"`
	// Reordered is how many arrived after a later one of the same producer.
	Reordered uint64 `json:"reordered"`
	// Gap is how many times a reader saw a producer's numbers jump forward. What was jumped over is also lost, or reordered
	// if it came later.
	Gap uint64 `json:"gap"`
	// Corrupt is how many arrived with wrong bytes. They are also lost, since nobody knows which they were.
	Corrupt uint64 `json:"corrupt"`

	// The rest is of scenarios with a group, where Lost also counts what was delivered and not processed, Duplicated only what the
	// mode does not allow, and Reordered and Gap only first deliveries (none in a group of kind Shared, which has no order).

	// Overlapped is how many times a delivery of a partition began during another one, when its owner had not lost it.
	Overlapped uint64 `json:"overlapped"`
	// Miscounted is how many deliveries or dead letters gave a wrong number of attempts.
	Miscounted uint64 `json:"miscounted"`
	// Uncommitted is by how many messages the positions were behind at the end, when everything was processed.
	Uncommitted uint64 `json:"uncommitted"`
}

// Any reports whether anything went wrong.
func (f Faults) Any() bool { return f != Faults{} }

func (f *Faults) add(o Faults) {
	f.Lost += o.Lost
	f.Duplicated += o.Duplicated
	f.Reordered += o.Reordered
	f.Gap += o.Gap
	f.Corrupt += o.Corrupt
	f.Overlapped += o.Overlapped
	f.Miscounted += o.Miscounted
	f.Uncommitted += o.Uncommitted
}

// String tells all counters, those of groups only if one of them is not 0.
func (f Faults) String() string {
	s := fmt.Sprintf("lost %d, duplicated %d, reordered %d, gap %d, corrupt %d", f.Lost, f.Duplicated, f.Reordered, f.Gap, f.Corrupt)
	if f.Overlapped+f.Miscounted+f.Uncommitted > 0 {
		s += fmt.Sprintf(", overlapped %d, miscounted %d, uncommitted %d", f.Overlapped, f.Miscounted, f.Uncommitted)
	}
	return s
}

// Lane is what one reader or subscriber got from one partition.
type Lane struct {
	// Consumer is "reader 0" or "subscriber 2"; "replay 1" is one that read all partitions again and again, whose Partition is where
	// the first fault was, or -1.
	Consumer  string `json:"consumer"`
	Partition int    `json:"partition"`
	// Received counts every delivery, wrong ones included.
	Received uint64 `json:"received"`
	Faults
	// FirstFault tells the first thing that went wrong, if any.
	FirstFault string `json:"first_fault,omitempty"`
}

// holesMost bounds how many separate ranges of missing messages a lane keeps for each producer. Beyond that the oldest are
// taken for lost; should they come after all, they count as duplicated.
const holesMost = 4096

// series is one producer's messages as one lane has seen them.
type series struct {
	next  uint64 // one past the highest number seen
	holes []span // what is missing below next, ascending
	given uint64 // messages in holes that were dropped from the list
}

type span struct{ from, to uint64 }

// lane checks and measures what one consumer gets from one partition. One goroutine at a time calls deliver; the collector
// reads accepted at any time, and all the rest after the deliveries have ended.
type lane struct {
	_ atomicx.Pad
	// accepted is how many different, undamaged messages have arrived. Written by deliver with a release store, read by the
	// collector, publishes nothing else.
	accepted atomicx.Uint64
	// dropped is how many messages were jumped over and have not come since. Written by deliver with a release store, read by the
	// collector, publishes nothing else.
	dropped atomicx.Uint64
	_       atomicx.Pad

	good      uint64
	streams   []series
	result    Lane
	rec       *recorder
	clock     *Clock
	measured  int64 // what arrives earlier belongs to the warm-up
	least     int   // bytes of the smallest message, and of the largest one
	most      int
	partition int
	gate      *gate // nil, or what may stop the consumer
	_         atomicx.Pad
}

// deliver takes one message.
func (l *lane) deliver(p []byte) {
	if l.gate != nil {
		l.gate.pass()
	}
	l.result.Received++
	stamp, producer, seq, ok := parse(p, l.least, l.most, l.partition)
	if !ok || producer >= len(l.streams) {
		l.result.Corrupt++
		l.fault("delivery %d (of %d bytes) is damaged or was not sent here", l.result.Received, len(p))
		return
	}
	if s := &l.streams[producer]; seq == s.next {
		s.next++
	} else if !l.odd(s, producer, seq) {
		return
	}
	l.good++
	atomicx.StoreRelease(&l.accepted, l.good)
	if stamp != 0 {
		if now := l.clock.After(); now >= l.measured {
			l.rec.record(now - stamp)
		}
	}
}

// odd takes a message that is not the next one, and reports whether it is a new one.
func (l *lane) odd(s *series, producer int, seq uint64) bool {
	if seq > s.next {
		l.result.Gap++
		l.fault("producer %d: %d came where %d was due", producer, seq, s.next)
		atomicx.StoreRelease(&l.dropped, l.dropped.Load()+seq-s.next)
		s.holes = append(s.holes, span{s.next, seq})
		if len(s.holes) > holesMost {
			s.given += s.holes[0].to - s.holes[0].from
			s.holes = slices.Delete(s.holes, 0, 1)
		}
		s.next = seq + 1
		return true
	}
	i, found := slices.BinarySearchFunc(s.holes, seq, func(h span, seq uint64) int {
		switch {
		case h.to <= seq:
			return -1
		case h.from > seq:
			return 1
		default:
			return 0
		}
	})
	if !found {
		l.result.Duplicated++
		l.fault("producer %d: %d came again (next is %d)", producer, seq, s.next)
		return false
	}
	l.result.Reordered++
	atomicx.StoreRelease(&l.dropped, l.dropped.Load()-1)
	switch h := &s.holes[i]; {
	case h.to-h.from == 1:
		s.holes = slices.Delete(s.holes, i, i+1)
	case h.from == seq:
		h.from++
	case h.to == seq+1:
		h.to--
	default:
		rest := span{seq + 1, h.to}
		h.to = seq
		s.holes = slices.Insert(s.holes, i+1, rest)
	}
	return true
}

// fault keeps the first fault's story.
func (l *lane) fault(format string, args ...any) {
	if l.result.FirstFault == "" {
		l.result.FirstFault = fmt.Sprintf(format, args...)
	}
}

// close settles what was lost, given how many messages each producer has sent to the partition. With cut, the last ones may have been
// under way: so many are unfinished.
func (l *lane) close(sent func(producer int) uint64, cut bool) (_ Lane, unfinished uint64) {
	for p := range l.streams {
		s := &l.streams[p]
		lost := s.given
		for _, h := range s.holes {
			lost += h.to - h.from
		}
		switch n := sent(p); {
		case n <= s.next:
		case cut:
			unfinished += n - s.next
		default:
			lost += n - s.next
			l.fault("producer %d: nothing came from %d on, of %d", p, s.next, n)
		}
		l.result.Lost += lost
	}
	return l.result, unfinished
}
