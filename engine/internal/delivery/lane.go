package delivery

import (
	"context"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// Handler is what a lane calls. Either One or Batch is set.
type Handler struct {
	One   func(ctx context.Context, m *Message) error
	Batch func(ctx context.Context, ms []Message) error
}

// Message is one record on its way to a handler. It is valid until the handler returns.
type Message struct {
	segment.Record
	Topic string
	// Attempt counts deliveries of this record to this subscription since it started or was last moved: 1 the first time.
	Attempt int
}

// Config is what the lanes of one subscription have in common. It is immutable.
type Config struct {
	Topic         string
	Handler       Handler
	AtMostOnce    bool
	Backoff       []time.Duration // at least one; the last repeats
	MaxDeliveries int             // 0 means no limit
	BatchSize     int             // for Handler.Batch
	ErrorOnGap    bool            // a gap ends the lane with an OffsetError

	// Rested is broadcast when a lane has nothing to do at the moment.
	Rested *atomicx.Event

	// Told of what happens, on the worker and under no lock. Each may be nil, but OnEnd.
	OnGap     func(partition int, from, to int64)
	OnFailure func(m *Message, err error)
	OnDrop    func(m *Message, err error)
	OnEnd     func(err error) // the lane has ended: it reads no more, and no handler of it runs
}

// Lane is one (subscription, partition). At most one worker runs it at any instant.
//
// # Shared state
//
//	wish   bits set by callers of Pause, Seek and Stop, looked at by the worker before each delivery
//	phase  stored by the worker: resting, about to deliver, in the handler; loaded by Pause and Stop
//	pos    the offset of the next record to process; CASed by the worker when one is settled, stored by Seek
//
// # Proof
//
// No new delivery after Pause or Stop returned. The worker stores about-to-deliver in phase and then loads wish. Pause sets
// its bit in wish and then loads phase. In their one total order either the worker sees the bit, and does not deliver, or
// Pause sees about-to-deliver, and waits for the few instructions until the worker has either seen the bit or entered the
// handler: a delivery that thus began before Pause returned.
//
// A seek is never undone. Seek stores the target in pos and then sets its bit. The worker settles the record at offset o by
// a CAS of pos from o, so it moves nothing once another target is there; and if the target happens to be o itself, the bit,
// which the worker looks at before the next delivery, takes it back to o. The target is read under mu together with the
// clearing of the bit, so of two seeks the later one counts. No other delivery begins after Seek returned, as with Pause.
type Lane struct {
	// Immutable after New.
	cfg  *Config
	part *partition.Partition
	gate *partition.Gate
	task *dispatch.Task
	ctx  context.Context // for handlers; ends with the subscription
	rest *atomicx.Waiter // on the partition's event while there is nothing to read

	// The worker's own.
	seg     segment.Reader
	quantum int
	msg     Message
	batch   []Message
	ready   int       // how many records of batch, or msg, are read and not settled
	attempt int       // how often these have been delivered
	due     time.Time // when they may be delivered again; zero means now
	gateAt  uint64    // what the gate was last told
	n       counts
	over    bool // end has run

	_ atomicx.Pad
	// wish is set by callers and cleared by the worker and Resume; see the proof. It publishes no memory but target,
	// which is under mu as well.
	wish atomicx.Uint32
	// pos is CASed by the worker and stored by Seek; Position and Stats load it. It publishes no memory.
	pos atomicx.Uint64
	// phase is stored by the worker and loaded by Pause and Stop. It publishes no memory.
	phase atomicx.Uint64
	_     atomicx.Pad

	mu     atomicx.Mutex
	target uint64 // under mu: where Seek wants the lane
	cause  error  // under mu: what ended it

	stats shared
}

const (
	wishPause uint32 = 1 << iota
	wishSeek
	wishStop
)

const (
	resting uint64 = iota
	aboutTo
	inHandler
)

// Bounds of the number of records in a quantum, and the time that it is steered to.
const (
	quantumFirst = 64
	quantumMax   = 1024
	quantumTime  = time.Millisecond
)

// Start chooses an offset between the oldest retained and the one past the newest.
type Start = func(first, next uint64) (uint64, error)

// New returns a lane that starts where start says. Nothing is delivered before the first Wake.
func New(ctx context.Context, cfg *Config, part *partition.Partition, gate *partition.Gate, pool *dispatch.Pool, opt dispatch.Options, start Start) (*Lane, error) {
	l := &Lane{cfg: cfg, part: part, gate: gate, quantum: quantumFirst}
	l.task = pool.NewTask(l.run, opt)
	l.rest = atomicx.NewCallWaiter(l.task.Wake)
	l.ctx = partition.WithOrigin(ctx, gate)
	l.msg.Topic = cfg.Topic
	gate.Evicted = func() { l.Stop(partition.ErrEvicted) }
	pos, err := part.AddGate(gate, start)
	if err != nil {
		l.task.Stop()
		return nil, err
	}
	l.pos.Store(pos)
	l.gateAt = pos
	l.seg.Init(part.Log())
	l.seg.Seek(pos)
	return l, nil
}

// Wake lets the lane look at what there is to do.
func (l *Lane) Wake() { l.task.Wake() }

// run is one quantum.
func (l *Lane) run() dispatch.Again {
	if l.over {
		return false
	}
	began := time.Now()
	l.stats.began.Store(began.UnixNano())
	before := l.n.handled
	again := l.work(before + int64(l.quantum))
	took := time.Since(began)
	l.n.busy += int64(took)
	l.advance()
	l.stats.set(&l.n)
	l.stats.began.Store(0)
	switch {
	case took > quantumTime:
		l.quantum = max(1, l.quantum/2)
	case again && took < quantumTime/4:
		l.quantum = min(quantumMax, l.quantum*2)
	}
	if !again {
		l.cfg.Rested.Broadcast()
	}
	return dispatch.Again(again)
}

// work delivers until so many records have been handled, and returns whether there may be more to do now.
func (l *Lane) work(until int64) (again bool) {
	for l.n.handled < until {
		if w := l.wish.Load(); w != 0 && !l.obey(w) {
			return false
		}
		if l.ready == 0 && !l.read() {
			return false
		}
		if !l.due.IsZero() {
			if d := time.Until(l.due); d > 0 {
				l.task.WakeAfter(d)
				return false
			}
			l.due = time.Time{}
		}
		l.deliver()
	}
	return true
}

// obey does what others want from the lane, and reports whether it may go on.
func (l *Lane) obey(w uint32) bool {
	if w&wishStop != 0 {
		l.end()
		return false
	}
	if w&wishSeek != 0 {
		l.mu.Lock()
		l.wish.And(^wishSeek)
		off := l.target
		l.pos.Store(off)
		l.mu.Unlock()
		l.seg.Seek(off)
		l.ready, l.due = 0, time.Time{}
	}
	if w&wishPause != 0 {
		l.part.Committed().Cancel(l.rest) // a paused lane costs its publishers nothing
		return false
	}
	return true
}

// advance tells the gate where the lane is.
func (l *Lane) advance() {
	if p := l.pos.Load(); p > l.gateAt {
		l.gateAt = p
		l.gate.Advance(p)
	}
}

// read reads the next record or batch. If there is none the lane has registered for it, or has ended, and read returns
// false.
func (l *Lane) read() bool {
	for !l.fetch() {
		l.advance() // before the pin moves on: who waits for this segment to go may have it
		switch state := l.seg.Refill(); {
		case state == segment.Ready:
		case state == segment.CaughtUp:
			l.part.Committed().Prepare(l.rest)
			if l.seg.Refill() == segment.CaughtUp {
				return false
			}
			l.part.Committed().Cancel(l.rest)
		case state == segment.Below && !l.part.Ended() && !l.cfg.ErrorOnGap:
			l.gap()
		default:
			l.Stop(l.part.ReadError(l.seg.Position()))
			l.end()
			return false
		}
	}
	return true
}

// fetch takes the next record or batch out of the window.
func (l *Lane) fetch() bool {
	l.attempt = 0
	if l.cfg.Handler.Batch == nil {
		if !l.seg.Next(&l.msg.Record) {
			return false
		}
		l.ready = 1
		return true
	}
	n := min(l.seg.Window(), l.cfg.BatchSize)
	if l.batch == nil && n > 0 {
		l.batch = make([]Message, l.cfg.BatchSize)
	}
	for i := range n {
		l.seg.Next(&l.batch[i].Record)
		l.batch[i].Topic = l.cfg.Topic
	}
	l.ready = n
	return n > 0
}

// gap moves over records that were dropped before the lane got to them.
func (l *Lane) gap() {
	from := l.seg.Position()
	to := l.part.Log().First()
	if to <= from {
		return
	}
	l.n.lost += int64(to - from)
	l.pos.CompareAndSwap(from, to)
	l.seg.Seek(to)
	if l.cfg.OnGap != nil {
		l.cfg.OnGap(l.part.Index(), int64(from), int64(to))
	}
}

// deliver calls the handler with what has been read.
func (l *Lane) deliver() {
	l.phase.Store(aboutTo)
	if l.wish.Load() != 0 { // pairs with interrupt; work looks what it is
		atomicx.StoreRelease(&l.phase, resting)
		return
	}
	atomicx.StoreRelease(&l.phase, inHandler)
	l.attempt++
	l.n.handled += int64(l.ready)
	if l.attempt > 1 {
		l.n.redelivered += int64(l.ready)
	}
	if l.cfg.AtMostOnce {
		l.commit()
	}
	// A handler that ends its goroutine (runtime.Goexit) has failed; the pool brings a new worker.
	err := ErrGoexit
	defer func() {
		atomicx.StoreRelease(&l.phase, resting)
		if err != nil {
			l.failed(err)
			return
		}
		l.n.delivered += int64(l.ready)
		if !l.cfg.AtMostOnce {
			l.commit()
		}
		l.ready = 0
	}()
	err = l.call()
}

// messages returns what is to be delivered.
func (l *Lane) messages() []Message { return l.batch[:l.ready] }

// commit moves the position over what has been read, unless a seek has moved it meanwhile.
func (l *Lane) commit() {
	first := l.msg.Offset
	if l.cfg.Handler.Batch != nil {
		first = l.batch[0].Offset
	}
	l.pos.CompareAndSwap(uint64(first), uint64(first)+uint64(l.ready))
}
