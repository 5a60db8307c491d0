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
	end        uint64 // id behind the last message of this slice
	partition  int    // of the next message
	partitions int
	alone      bool // there is no other producer, and who waits for the messages has a processor of its own and keeps it

	// Of a slice with a rate. Times are of clock.
	clock *load.Clock
	start int64
	gap   float64 // ns between two messages of this producer; 0: there is no rate
	begun uint64  // id of the first message of this slice
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
		alone: s.Topology.Producers == 1 && s.Wait == Spin && runtime.GOMAXPROCS(0) > 1,
	}
	copy(f.own, f.tmpl.bytes)
	return f
}

// begin prepares a slice of n messages. With a gap the first is due at start.
func (f *Feed) begin(n uint64, start int64, gap float64) {
	f.begun, f.end, f.start, f.gap, f.ready, f.late = f.id, f.id+n, start, gap, 0, 0
}

// Due waits until a message is to be sent, and returns how many are, up to most; 0 means that the slice is over. That many have
// to be taken, by Fill or Next, and sent before Due is called again.
func (f *Feed) Due(most int) int {
	if f.host != nil {
		return f.host.due(most)
	}
	if f.id == f.end || f.halt.Load() {
		return 0
	}
	n := min(f.end-f.id, uint64(most))
	if f.gap == 0 {
		return int(n)
	}
	sent := f.id - f.begun
	if f.ready <= sent {
		f.await(sent)
		if f.ready <= sent {
			return 0 // the slice has failed
		}
	}
	return int(min(n, f.ready-sent))
}

// await waits until message sent of the slice is due. It does not sleep: the shortest sleep is longer than a hundred messages of a
// million a second. One that is alone keeps its processor, as the one in the Java program does: to let others run takes longer than to look
// at the clock, and what is sent late by that counts as the rival's. Otherwise it lets others run, since a goroutine that is woken first waits
// for the processor of who has woken it.
func (f *Feed) await(sent uint64) {
	at := f.start + int64(float64(sent)*f.gap)
	var turn uint32
	if runtime.GOMAXPROCS(0) == 1 {
		turn = 1 << 16 // whom we send to needs the processor
	}
	now := f.clock.Now()
	for now < at {
		if f.halt.Load() {
			return
		}
		if f.alone {
			atomicx.Pause(1)
		} else {
			atomicx.Relax(turn)
			turn++
		}
		now = f.clock.Now()
	}
	f.late = max(f.late, now-at)
	f.ready = max(uint64(float64(now-f.start)/f.gap)+1, sent+1)
}

// Partition returns the partition that the next message is for.
func (f *Feed) Partition() int { return f.partition }

// Fill makes p, which has the size of a message, the next message. One of 64 bytes is made here, by eight stores, since that is most of
// what is done in a slice.
func (f *Feed) Fill(p []byte) {
	if len(p) != lineSize || f.host != nil {
		f.fill(p)
		return
	}
	putLE(p, f.id)
	putLE(p[8:], seal(f.tmpl.sum^f.id))
	putLE(p[16:], f.tmpl.line[0])
	putLE(p[24:], f.tmpl.line[1])
	putLE(p[32:], f.tmpl.line[2])
	putLE(p[40:], f.tmpl.line[3])
	putLE(p[48:], f.tmpl.line[4])
	putLE(p[56:], f.tmpl.line[5])
	f.taken()
}

// fill is Fill for other sizes, and for messages that somebody else has.
func (f *Feed) fill(p []byte) {
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
	if p := f.own; len(p) == lineSize {
		putLE(p, f.id)
		putLE(p[8:], seal(f.tmpl.sum^f.id))
	} else {
		f.tmpl.stamp(p, f.id)
	}
	f.taken()
	return f.own
}

func (f *Feed) taken() {
	f.id++
	if f.partition++; f.partition == f.partitions {
		f.partition = 0
	}
}
