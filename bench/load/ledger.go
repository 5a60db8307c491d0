package load

import (
	"fmt"
	"sync"

	"github.com/leatlog/leat/internal/atomicx"
)

// phase is what has become of a message.
type phase uint8

const (
	unseen  phase = iota
	open          // it has been delivered, and nobody has said what came of it
	again         // its delivery failed, or did not count: it is to come again
	settled       // it is processed, or was given up: it must not come again
)

// note is what is known of one message.
type note struct {
	phase      phase
	deliveries uint16
}

// book is one producer's messages in one ledger: notes of [floor, next), and below floor all are settled.
type book struct {
	floor, next uint64
	notes       []note // those before head are not needed any more; the one at head is of floor
	head        int
	lost        uint64 // messages that were never settled and whose notes were given up
}

// notesMost bounds how many notes a book keeps. If there are more, the oldest message is taken for lost.
const notesMost = 1 << 20

// at returns the note of a message in [floor, next).
func (b *book) at(seq uint64) *note { return &b.notes[b.head+int(seq-b.floor)] }

// grow makes notes up to and with seq.
func (b *book) grow(seq uint64) {
	for b.next <= seq {
		if b.next-b.floor == notesMost {
			if b.notes[b.head].phase != settled {
				b.lost++
			}
			b.drop()
		}
		b.notes = append(b.notes, note{})
		b.next++
	}
}

// drop forgets the oldest note.
func (b *book) drop() {
	b.head++
	b.floor++
	switch n := len(b.notes); {
	case b.head == n:
		b.notes, b.head = b.notes[:0], 0
	case b.head >= 64 && b.head >= n/2: // what is moved is less than what was dropped since the last time
		b.notes, b.head = b.notes[:copy(b.notes, b.notes[b.head:])], 0
	}
}

// settle forgets what is settled at the front.
func (b *book) settle() {
	for b.floor < b.next && b.notes[b.head].phase == settled {
		b.drop()
	}
}

// Redone counts what a group may do and a plain reader may not. None of it is a fault.
type Redone struct {
	// Redelivered is how many deliveries came after one that had failed or was not acknowledged.
	Redelivered uint64 `json:"redelivered"`
	// Repeated is how many came after one that had succeeded, or was still going on, since a member had been put out before
	// that counted, or had held the message for too long. AtMostOnce does not allow it, and the other modes only as many as what
	// was taken from members accounts for: one message for each partition, or what a poll returns. All others are duplicated.
	Repeated uint64 `json:"repeated"`
	// Fenced is how many handlers and acknowledgements came too late to count: another member had the message by then.
	Fenced uint64 `json:"fenced"`
	// Dead is how many messages came to the dead-letter topic.
	Dead uint64 `json:"dead_lettered"`
}

func (r *Redone) add(o Redone) {
	r.Redelivered += o.Redelivered
	r.Repeated += o.Repeated
	r.Fenced += o.Fenced
	r.Dead += o.Dead
}

// ledger checks and measures what one group, or one subscriber of a Broadcast, makes of one partition. Handlers of several
// members may be in it at once.
type ledger struct {
	g         *groupRun
	partition int
	first     int // the slot of by[0]

	_ atomicx.Pad
	// settled is how many different messages are settled. Written under mu with a release store, read by the collector and by
	// producers that keep to a backlog, publishes nothing else.
	settled atomicx.Uint64
	// dropped is how many messages were jumped over, where there is an order, and have not come since. Written under mu with a release
	// store, read by the collector, publishes nothing else.
	dropped atomicx.Uint64
	// by is how many deliveries each slot from first on has had. Written under mu, each read by the collector, publish nothing else.
	by []atomicx.Uint64
	_  atomicx.Pad

	mu         sync.Mutex
	books      []book
	result     Lane
	redone     Redone
	doubts     string
	good       uint64
	unsure     uint64 // deliveries whose acknowledgement may or may not have counted
	after      uint64 // deliveries after one that succeeded, or by somebody else during one
	unfinished uint64 // of a run that was cut: messages that were under way
	acked      uint64 // acknowledgements that were accepted of messages that were settled, which nothing allows
	ahead      uint64 // deliveries that were called a later attempt than they were
	inside     []uint32
	told       bool   // the present overlap has been counted
	both       uint64 // how often a delivery began while another one was going on
	losses     uint64 // how often a member has lost the partition
	tries      []uint64
	timing     timing
	rec        *recorder // until the first delivery began
	done       *recorder // until it was processed
}

// ticket is one delivery.
type ticket struct {
	ok       bool // it is to be settled
	producer int
	seq      uint64
	number   uint16 // which delivery of this message it is
	stamp    int64
}

// begin takes one delivery to a member.
func (l *ledger) begin(m *member, d *Delivery) ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.g.ordered {
		l.overlap(m.id)
	}
	return l.enter(m, d)
}

// overlap notes that a delivery begins in a partition that only one member has, and one message at a time.
func (l *ledger) overlap(id uint32) {
	if len(l.inside) == 0 {
		l.told = false
	} else if !l.told {
		l.told = true
		l.both++
	}
	l.inside = append(l.inside, id)
}

// parse takes a payload apart.
func (l *ledger) parse(p []byte) (stamp int64, producer int, seq uint64, ok bool) {
	s := &l.g.r.s
	return parse(p, s.Sizes.Least(), s.Sizes.Most(), l.partition)
}

// enter notes a delivery. The caller holds mu.
func (l *ledger) enter(m *member, d *Delivery) ticket {
	l.result.Received++
	stamp, producer, seq, ok := l.parse(d.Payload)
	if !ok || producer >= len(l.books) {
		l.result.Corrupt++
		l.fault("delivery %d (of %d bytes) is damaged or was not sent here", l.result.Received, len(d.Payload))
		return ticket{}
	}
	slot := &l.by[m.slot-l.first]
	atomicx.StoreRelease(slot, slot.Load()+1)
	t := ticket{ok: true, producer: producer, seq: seq, stamp: stamp}
	b := &l.books[producer]
	first := seq >= b.next
	switch {
	case first:
		if seq > b.next && l.g.ordered {
			l.result.Gap++
			l.fault("producer %d: %d came where %d was due", producer, seq, b.next)
			atomicx.StoreRelease(&l.dropped, l.dropped.Load()+seq-b.next)
		}
		b.grow(seq)
	case seq < b.floor:
		l.repeat(producer, seq)
		l.timing.see(l, m, false, 0)
		return ticket{}
	case b.at(seq).phase == unseen:
		first = true
		if l.g.ordered {
			l.result.Reordered++
			atomicx.StoreRelease(&l.dropped, l.dropped.Load()-1)
			l.fault("producer %d: %d came when %d was due", producer, seq, b.next)
		}
	case b.at(seq).phase == settled:
		l.repeat(producer, seq)
		l.timing.see(l, m, false, 0)
		return ticket{}
	case b.at(seq).phase == open:
		l.after++
		l.doubt("producer %d: %d came again while delivery %d was going on", producer, seq, b.at(seq).deliveries)
	default:
		l.redone.Redelivered++
	}
	n := b.at(seq)
	l.attempt(d, n, producer, seq)
	n.phase = open
	n.deliveries++
	t.number = n.deliveries
	l.timing.see(l, m, first, stamp)
	return t
}

// repeat notes a delivery of a message that was settled.
func (l *ledger) repeat(producer int, seq uint64) {
	l.after++
	l.doubt("producer %d: %d came again after it was processed", producer, seq)
}

// attempt checks what the target says of a message.
func (l *ledger) attempt(d *Delivery, n *note, producer int, seq uint64) {
	if d.Attempt == 0 {
		return
	}
	for len(l.tries) < d.Attempt && d.Attempt <= 1000 {
		l.tries = append(l.tries, 0)
	}
	if d.Attempt >= 1 && d.Attempt <= len(l.tries) {
		l.tries[d.Attempt-1]++
	}
	switch due := int(n.deliveries) + 1; {
	case l.g.once && d.Attempt == 1 || !l.g.once && d.Attempt == due:
	case d.Attempt > 1 && (l.g.once || d.Attempt > due):
		l.ahead++
		l.doubt("producer %d: delivery %d of %d says that it is attempt %d", producer, due, seq, d.Attempt)
	case l.g.counted || d.Attempt < 1:
		l.result.Miscounted++
		l.fault("producer %d: delivery %d of %d says that it is attempt %d", producer, due, seq, d.Attempt)
	}
}

// end notes what came of a delivery.
func (l *ledger) end(m *member, t ticket, p phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leave(m.id)
	l.exit(t, p, false)
}

// leave notes that a handler of the partition's is through.
func (l *ledger) leave(id uint32) {
	for i, other := range l.inside {
		if other == id {
			l.inside = append(l.inside[:i], l.inside[i+1:]...)
			return
		}
	}
}

// exit notes what came of a delivery, of which it may be unsure whether it counts. The caller holds mu.
func (l *ledger) exit(t ticket, p phase, unsure bool) {
	if !t.ok {
		return
	}
	b := &l.books[t.producer]
	accepted := l.g.manual && p == settled && !unsure // which settles it, whoever else has been given it meanwhile
	switch {
	case t.seq < b.floor || b.at(t.seq).phase == settled:
		if accepted {
			l.acked++
			l.fault("producer %d: an acknowledgement of %d was accepted, which was settled", t.producer, t.seq)
		}
		l.redone.Fenced++
		return
	case !accepted && (b.at(t.seq).phase != open || b.at(t.seq).deliveries != t.number):
		l.redone.Fenced++
		return
	}
	if unsure {
		l.unsure++
	}
	b.at(t.seq).phase = p
	if p == settled {
		l.settle(b)
		l.timing.processed(l, t.stamp)
	}
}

// settle notes that one more message is settled.
func (l *ledger) settle(b *book) {
	l.good++
	atomicx.StoreRelease(&l.settled, l.good)
	b.settle()
}

// plain is begin and end in one, for a handler that does nothing else.
func (l *ledger) plain(m *member, d *Delivery) {
	if !l.mu.TryLock() { // two handlers at once
		l.mu.Lock()
		if l.g.ordered {
			l.both++
		}
	}
	l.exit(l.enter(m, d), settled, false)
	l.mu.Unlock()
}

// dead takes a message from the dead-letter topic.
func (l *ledger) dead(payload []byte, attempts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, producer, seq, ok := l.parse(payload)
	if !ok || producer >= len(l.books) {
		l.result.Corrupt++
		l.fault("a dead letter (of %d bytes) is damaged or was not sent here", len(payload))
		return
	}
	b := &l.books[producer]
	l.redone.Dead++
	switch {
	case seq < b.floor || seq < b.next && b.at(seq).phase == settled:
		l.repeat(producer, seq)
		return
	case seq >= b.next:
		b.grow(seq)
	}
	n := b.at(seq)
	if int(n.deliveries) != attempts && l.g.counted || attempts < l.g.c.Deliveries {
		l.result.Miscounted++
		l.fault("producer %d: dead letter %d after %d deliveries says that there were %d", producer, seq, n.deliveries, attempts)
	}
	n.phase = settled
	l.settle(b)
}

// close settles what was lost, and what of the rest the mode allows. Of the messages that came again after they were processed,
// or during that, so many are accounted for by members that were put out, and as many more as the target has taken away
// because time was up: it takes those off expired. With cut, what is under way is unfinished.
func (l *ledger) close(sent func(producer int) uint64, expired *allowance, cut bool) Lane {
	g := l.g
	for p := range l.books {
		b := &l.books[p]
		lost := b.lost
		for seq := b.floor; seq < b.next; seq++ {
			n := b.at(seq)
			switch {
			case n.phase == settled:
				continue
			case cut && (n.phase != unseen || !g.ordered):
				l.unfinished++
				continue
			case g.once && n.phase == open:
				continue
			}
			lost++
			if n.phase == unseen {
				l.fault("producer %d: %d never came", p, seq)
			} else {
				l.fault("producer %d: %d was delivered %d times and never processed", p, seq, n.deliveries)
			}
		}
		switch n := sent(p); {
		case n <= b.next:
		case cut:
			l.unfinished += n - b.next
		default:
			lost += n - b.next
			l.fault("producer %d: nothing came from %d on, of %d", p, b.next, n)
		}
		l.result.Lost += lost
	}
	l.result.Overlapped += l.both - min(l.both, l.losses)
	allowed := uint64(0)
	if !g.once {
		allowed = l.losses*g.atOnce() + l.unsure
	}
	excess := l.after - min(l.after, allowed)
	if !g.once {
		excess = take(excess, &expired.after)
	}
	ahead := l.ahead - min(l.ahead, l.losses*g.atOnce()) // what the others were ahead of was lost on its way to a handler
	l.result.Miscounted += take(ahead, &expired.ahead)
	l.redone.Repeated = l.after - excess
	l.result.Duplicated += excess + l.acked
	if l.result.Faults.Any() && l.doubts != "" {
		l.fault("%s", l.doubts)
	}
	if l.result.Overlapped > 0 {
		l.fault("two members were delivered messages of the partition at once, or one was delivered two")
	}
	return l.result
}

// allowance is how many messages the target has taken away because time was up, less what ledgers have made use of.
type allowance struct{ after, ahead uint64 }

// take returns what is left of n when as much as there is has been taken off from.
func take(n uint64, from *uint64) uint64 {
	k := min(n, *from)
	*from -= k
	return n - k
}

// lost notes that a member has lost the partition by force.
func (l *ledger) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.losses++
}

// doubt keeps the story of the first thing that may be a fault.
func (l *ledger) doubt(format string, args ...any) {
	if l.doubts == "" {
		l.doubts = fmt.Sprintf(format, args...)
	}
}

// fault keeps the first fault's story.
func (l *ledger) fault(format string, args ...any) {
	if l.result.FirstFault == "" {
		l.result.FirstFault = fmt.Sprintf(format, args...)
	}
}
