package delivery

import (
	"context"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/mutant"
	"github.com/leatlog/leat/segment"
)

// Handler is what a lane calls. Either One or Batch is set.
type Handler struct {
	One   func(ctx context.Context, m *Message) error
	Batch func(ctx context.Context, ms []Message) error
}

// Message is one record on its way to a handler. It is valid until the handler returns; what a handler changes in it
// changes nothing for the next attempt.
type Message struct {
	segment.Record
	Topic string
	// Attempt counts deliveries of this record to this subscription since it started or was last moved: 1 the first time.
	Attempt int

	hold Token // what it is settled by, if it is
}

// Config is what the lanes of one subscription have in common. It is immutable.
type Config struct {
	Topic         string
	Handler       Handler
	AtMostOnce    bool
	Backoff       []time.Duration // at least one; the last repeats
	MaxDeliveries int             // 0 means no limit
	BatchSize     int             // for Handler.Batch
	Parallel      int             // for a Keyed: how many of its handlers may run at a time; 0 means 1
	MaxInFlight   int             // for a Keyed: how many records it may have read from its position on; 0 means 1000
	MaxKeys       int             // for a Keyed: how many keys these records may have; 0 means 256
	ErrorOnGap    bool            // a gap ends the lane with an OffsetError
	GateKept      bool            // the gate is the owner's, who has added it and removes it
	Tried         int             // for a Lane: how often the record where it starts has been delivered to others
	Clock         *atomicx.Clock

	// Rested is broadcast when a lane has nothing to do at the moment.
	Rested *atomicx.Event

	// Told of what happens, on the worker and under no lock. Each may be nil, but OnEnd.
	OnGap     func(partition int, from, to int64)
	OnFailure func(ctx context.Context, m *Message, err error) // once for a batch, with its first record
	OnDrop    func(ctx context.Context, m *Message, err error) // for each record that is given up and not buried

	// Bury is given what is given up, if it is not nil: once it returns nil the record is settled, and as long as it returns an
	// error the record stays and Bury is called again, after the last Backoff. The handler is not called again.
	Bury func(ctx context.Context, m *Message, err error) error

	OnEnd func(err error) // the lane has ended: it reads no more, and no handler of it runs

	// OnEvicted is told that the lane is stopped for its lag, maybe long before OnEnd. It is called under the role of the
	// partition's appender and must be quick. May be nil.
	OnEvicted func()
}

// Lane is one (subscription, partition), or one (group, partition) for as long as a member owns it. At most one worker runs
// it at any instant.
//
// # Shared state
//
//	door   what callers of Pause, Seek and Stop want, and whether the worker is in user code; see its own proof
//	pos    the offset of the next record to process, and the seal; CASed by the worker when a record is settled, stored by
//	       Seek, sealed by Fence
//	began  stored by the worker: when the present turn began, 0 between two; loaded by Drained
//
// # Proof
//
// No new delivery after Pause or Stop returned: see door. The same holds for the notice of a gap.
//
// A seek is never undone. Seek stores the target in pos and then sets its bit. The worker settles the record at offset o by
// a CAS of pos from o, so it moves nothing once another target is there; and if the target happens to be o itself, the bit,
// which the worker looks at before the next delivery, takes it back to o. The target is read under mu together with the
// clearing of the bit, so of two seeks the later one counts. No other delivery begins after Seek returned, as with Pause.
//
// A fence is final. Fence sets a bit of pos, under mu, after which every CAS from an offset fails; Seek and the worker's
// half of it look under mu whether the lane has been stopped before they store. So the position that Fence leaves is the
// last one, and whoever settles a record under AtMostOnce learns before the call that it was too late. At most one delivery is
// for nothing: the door is shut before pos is sealed, so what fails to move pos has been going on since before that, and
// nothing is delivered after it, which would also make Tried forget it. OnEnd is called when pos is sealed, since why waits
// for mu.
//
// Drained is true only if nothing is left to do. It loads the end of the log, then pos (or the pause bit), then began. The
// worker stores began before it moves pos over a record, and clears it when all user code of that turn is over and the
// counters are stored. So if pos is at the end and began is 0, the last record is over, whether it was settled before the
// handler or after it; and the same goes for the record that a paused or stopped lane was in. Whatever makes Drained true
// later happens in a turn, and that broadcasts Rested when it has cleared began.
//
// Nothing runs too early. A new lane has its hold bit set, with which a run does nothing at all; Start clears it. So a lane
// that is stopped or put out before that ends only after Start.
type Lane struct {
	// Immutable after New.
	cfg  *Config
	part *partition.Partition
	gate *partition.Gate
	task *dispatch.Task
	ctx  context.Context // for handlers; ends with the subscription
	rest *atomicx.Waiter // on the partition's event while there is nothing to read
	most int             // how many records to read at once

	// The worker's own.
	seg     segment.Reader
	turn    turn
	msg     Message
	batch   []Message
	at      uint64 // offset of the first record in msg or batch
	ready   int    // how many records of batch, or msg, are read and not settled
	attempt int    // how often these have been delivered
	due     int64  // when they may be delivered again; 0 means now
	dying   error  // with what the handler has failed, if they are to be buried
	buried  int    // how many of them are
	carried uint64 // the record that others have had before
	carry   int    // how often; 0 if it is not that any more
	gateAt  uint64 // what the gate was last told
	rested  int64  // when the last turn ended
	waited  int64  // how long the lane had rested before this one, until it has read something
	chase   partition.Chase
	n       counts
	over    bool // it has ended

	door // its wish publishes target, which is under mu as well, and with its hold bit what was done before Start

	// pos is CASed by the worker, stored by Seek and sealed by Fence; Position, Drained and Stats load it. It publishes no
	// memory.
	pos atomicx.Uint64
	// tried is which record has been delivered last, or which batch begins with it, and how often: stored by the worker before
	// each call, loaded by Tried. It publishes no memory.
	tried atomicx.Uint64
	_     atomicx.Pad

	mu     atomicx.Mutex
	target uint64 // under mu: where Seek wants the lane
	cause  error  // under mu: what ended it

	stats shared
}

// triedBits is how many bits of tried are the number of deliveries; above them is the record's offset, without its highest bits.
const triedBits = 16

// sealed in pos says that the position is final.
const sealed uint64 = 1 << 63

// Start chooses an offset between the oldest retained and the one past the newest.
type Start = func(first, next uint64) (uint64, error)

// New returns a lane that stands where start says, and does nothing before Start.
func New(ctx context.Context, cfg *Config, part *partition.Partition, gate *partition.Gate, pool *dispatch.Pool, opt dispatch.Options, start Start) (*Lane, error) {
	l := &Lane{cfg: cfg, part: part, gate: gate, most: 1}
	if cfg.Handler.Batch != nil {
		l.most = cfg.BatchSize
	}
	l.wish.Store(wishHold)
	l.task = pool.NewTask(l.run, opt)
	l.rest = atomicx.NewCallWaiter(l.task.Wake)
	l.ctx = partition.WithOrigin(ctx, gate, !opt.Dedicated)
	l.msg.Topic = cfg.Topic
	l.seg.Init(part.Log())
	pos, err := l.addGate(start)
	if err != nil {
		l.task.Stop()
		return nil, err
	}
	l.gateAt = pos
	l.seg.Seek(pos)
	l.carried, l.carry = pos, cfg.Tried
	l.tried.Store(pos<<triedBits | uint64(min(cfg.Tried, 1<<triedBits-1)))
	return l, nil
}

// addGate puts the lane where start says, and its gate with it.
func (l *Lane) addGate(start Start) (pos uint64, err error) {
	stand := func(first, next uint64) (uint64, error) {
		pos, err := start(first, next)
		l.pos.Store(pos) // before the gate can be put out
		return pos, err
	}
	if l.cfg.GateKept {
		return stand(l.part.Log().Snapshot())
	}
	l.gate.Evicted = l.evicted
	return l.part.AddGate(l.gate, stand)
}

// Start lets the lane deliver.
func (l *Lane) Start() {
	l.wish.And(^wishHold)
	l.task.Wake()
}

// run is one turn on a worker.
func (l *Lane) run() dispatch.Again {
	if l.over || l.wish.Load()&wishHold != 0 {
		return false
	}
	began := l.cfg.Clock.Now()
	l.turn.begin(began, l.n.handled)
	l.waited = began - l.rested
	l.stats.began.Store(began)
	again := l.work()
	if again && l.ready == 0 && l.seg.Window() == 0 {
		l.seg.Refill() // to move the pin, as in read; what else it finds read will find, too
	}
	l.advance()
	l.rested = l.cfg.Clock.Now()
	l.n.busy += l.rested - began
	l.stats.set(&l.n)
	l.stats.began.Store(0)
	if !again {
		l.cfg.Rested.Broadcast()
	}
	if l.over {
		l.task.Stop()
		l.cfg.OnEnd(l.why())
	}
	return dispatch.Again(again)
}

// work delivers until the turn is over, and returns whether there may be more to do now.
func (l *Lane) work() (again bool) {
	for {
		if w := l.wish.Load(); w != 0 && !l.obey(w) {
			return false
		}
		if l.ready == 0 && !l.read() {
			return false
		}
		if l.due != 0 {
			if d := l.due - l.cfg.Clock.Now(); d > 0 {
				l.task.WakeAfter(time.Duration(d))
				return false
			}
			l.due = 0
		}
		l.deliver()
		if l.gate.MaxLag > 0 && l.seg.Window() > 0 { // read does it behind the last of a window, after the pin has moved on
			l.advance() // somebody counts each record; for others a turn, or a window, is soon enough
		}
		if l.n.handled >= l.turn.look && l.turn.over(l.cfg.Clock.Now(), l.n.handled) {
			return true
		}
	}
}

// obey does what others want from the lane, and reports whether it may go on.
func (l *Lane) obey(w uint32) bool {
	if w&wishStop != 0 {
		l.end()
		return false
	}
	if w&wishSeek != 0 {
		l.mu.Lock()
		if l.cause != nil { // stopped meanwhile, and maybe sealed
			l.mu.Unlock()
			l.end()
			return false
		}
		l.wish.And(^wishSeek)
		off := l.target
		l.pos.Store(off)
		l.mu.Unlock()
		l.seg.Seek(off)
		l.ready, l.due, l.dying, l.buried, l.carry = 0, 0, nil, 0, 0
	}
	if w&wishPause != 0 {
		l.part.Committed().Cancel(l.rest) // a paused lane costs its publishers nothing
		return false
	}
	return true
}

// end makes this the lane's last run: it reads no more.
func (l *Lane) end() {
	l.over = true
	l.part.Committed().Cancel(l.rest)
	l.seg.Close()
	l.msg.Record, l.batch = segment.Record{}, nil // views, which would keep memory
}

// advance tells the gate where the lane is.
func (l *Lane) advance() {
	if p := uint64(l.Position()); p > l.gateAt {
		l.gateAt = p
		l.gate.Advance(p)
	}
}

// laneAway is up to how many records a lane stays away. Others may want its worker.
const laneAway = 512

// read reads the next record or batch. If it returns false the lane has registered for it, or has ended, or somebody wants
// something of it and is going to wake it.
func (l *Lane) read() bool {
	for !l.fetch() {
		state := l.seg.Refill()
		l.advance() // after the pin has moved on, so that who drops the segment behind can use it again
		switch {
		case state == segment.Ready:
			l.chase.Stay(&l.seg, l.gate, l.waited, laneAway)
			l.waited = 0
		case state == segment.CaughtUp:
			l.part.Committed().Prepare(l.rest)
			if l.seg.Refill() == segment.CaughtUp {
				return false
			}
			l.part.Committed().Cancel(l.rest)
		case state == segment.Below && !l.part.Ended() && !l.cfg.ErrorOnGap:
			if !l.gap() {
				return false
			}
		default:
			l.Stop(l.part.Refused(&l.seg, state))
			l.end()
			return false
		}
	}
	return true
}

// fetch takes the next record or batch out of the window.
func (l *Lane) fetch() bool {
	n := min(l.seg.Window(), l.most)
	l.attempt, l.at = 0, l.seg.Position()
	if l.carry > 0 && n > 0 {
		if l.at == l.carried {
			l.attempt, n = l.carry, 1 // by itself: what may have been in one batch with it is counted anew
		} else {
			l.carry = 0
		}
	}
	l.take(n)
	return n > 0
}

// take takes n records out of the window.
func (l *Lane) take(n int) {
	l.ready = n
	if l.cfg.Handler.Batch == nil {
		l.seg.Next(&l.msg.Record)
		return
	}
	if l.batch == nil && n > 0 {
		l.batch = make([]Message, l.most)
	}
	for i := range n {
		l.seg.Next(&l.batch[i].Record)
		l.batch[i].Topic = l.cfg.Topic
	}
}

// gap moves over records that were dropped before the lane got to them. It returns false if somebody wants something of the
// lane that comes first.
func (l *Lane) gap() bool {
	from, to := l.seg.Position(), l.part.Log().First()
	if !l.enter() {
		return false
	}
	defer l.leave()
	l.n.lost += int64(to - from)
	l.pos.CompareAndSwap(from, to)
	l.seg.Seek(to)
	if l.cfg.OnGap != nil && !(mutant.Enabled && mutant.Is(mutant.SilentGap)) {
		l.cfg.OnGap(l.part.Index(), int64(from), int64(to))
	}
	return true
}

// deliver calls the handler with what has been read.
func (l *Lane) deliver() {
	if !l.enter() {
		return
	}
	if l.dying != nil {
		defer l.leave()
		l.bury()
		return
	}
	if l.carry > 0 && l.spent() {
		defer l.leave()
		l.giveUp(&DeathError{group.DeathReleased})
		return
	}
	if l.cfg.AtMostOnce && !l.commit() && !(mutant.Enabled && mutant.Is(mutant.CommitAfterCall)) { // fenced, or moved by a seek
		l.leave()
		return
	}
	l.attempt++
	atomicx.StoreRelease(&l.tried, l.at<<triedBits|uint64(min(l.attempt, 1<<triedBits-1)))
	l.n.handled += int64(l.ready)
	if l.attempt > 1 {
		l.n.redelivered += int64(l.ready)
	}
	// A handler that ends its goroutine (runtime.Goexit) has failed; the pool brings a new worker.
	err := ErrGoexit
	defer func() {
		if err != nil {
			defer l.leave() // hooks may end the goroutine, too
			l.failed(err)
			return
		}
		l.n.delivered += int64(l.ready)
		if !l.cfg.AtMostOnce {
			l.commit()
		}
		l.ready = 0
		l.leave()
	}()
	err = l.call()
}

// commit moves the position over what has been read, and returns false if a seek has moved it meanwhile, or a fence has sealed
// it.
func (l *Lane) commit() bool { return l.pos.CompareAndSwap(l.at, l.at+uint64(l.ready)) }
