package arena

import (
	"runtime"

	"github.com/leatlog/leat/bench/load"
	"github.com/leatlog/leat/internal/atomicx"
)

// Feed is what one producer has to send in one slice. One goroutine uses it.
type Feed struct {
	_    atomicx.Pad
	tmpl template
	own  []byte // what Next returns

	id         uint64 // of the next message
	left       uint64
	partition  int // of the next message
	partitions int

	// Of a slice with a rate. Times are of clock.
	clock *load.Clock
	start int64
	gap   float64 // ns between two messages of this producer; 0: there is no rate
	sent  uint64  // in this slice
	ready uint64  // how many of this slice were due when Due last looked

	// halt is set by the harness when the slice has failed, and loaded by Due. It publishes no memory.
	halt *atomicx.Bool
	late int64     // the longest time by which a message was handed out too late
	host *feedHost // nil, or who has the messages instead: see Target
	_    atomicx.Pad
}

func newFeed(producer int, s Spec, clock *load.Clock, halt *atomicx.Bool) *Feed {
	f := &Feed{
		tmpl: newTemplate(producer, s.Size), own: make([]byte, s.Size), id: idOf(uint64(producer), 0),
		partitions: s.Topology.Partitions, clock: clock, halt: halt,
	}
	copy(f.own, f.tmpl.bytes)
	return f
}

// begin prepares a slice of n messages. With a gap the first is due at start.
func (f *Feed) begin(n uint64, start int64, gap float64) {
	f.left, f.start, f.gap, f.sent, f.ready, f.late = n, start, gap, 0, 0, 0
}

// Due waits until a message is to be sent, and returns how many are, up to most; 0 means that the slice is over. That many have
// to be taken, by Fill or Next, and sent before Due is called again.
func (f *Feed) Due(most int) int {
	if f.host != nil {
		return f.host.due(most)
	}
	if f.left == 0 || f.halt.Load() {
		return 0
	}
	n := min(f.left, uint64(most))
	if f.gap == 0 {
		return int(n)
	}
	if f.ready <= f.sent {
		f.await()
		if f.ready <= f.sent {
			return 0 // the slice has failed
		}
	}
	return int(min(n, f.ready-f.sent))
}

// await waits until the next message is due. It does not sleep: the shortest sleep is longer than a hundred messages of a
// million a second.
func (f *Feed) await() {
	at := f.start + int64(float64(f.sent)*f.gap)
	var turn uint32
	if runtime.GOMAXPROCS(0) == 1 {
		turn = 1 << 16 // whom we send to needs the processor
	}
	now := f.clock.Now()
	for now < at {
		if f.halt.Load() {
			return
		}
		atomicx.Relax(turn)
		turn++
		now = f.clock.Now()
	}
	f.late = max(f.late, now-at)
	f.ready = max(uint64(float64(now-f.start)/f.gap)+1, f.sent+1)
}

// Partition returns the partition that the next message is for.
func (f *Feed) Partition() int { return f.partition }

// Fill makes p, which has the size of a message, the next message.
func (f *Feed) Fill(p []byte) {
	if f.host != nil {
		copy(p, f.host.take())
		return
	}
	f.tmpl.fill(p, f.id)
	f.taken()
}

// Next returns the next message in memory of the feed's, valid until Next is called again. It is for rivals that copy what
// they are given.
func (f *Feed) Next() []byte {
	if f.host != nil {
		return f.host.take()
	}
	f.tmpl.stamp(f.own, f.id)
	f.taken()
	return f.own
}

func (f *Feed) taken() {
	f.id++
	f.left--
	f.sent++
	if f.partition++; f.partition == f.partitions {
		f.partition = 0
	}
}
