package partition

import (
	"sync"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/ring"
	"github.com/leatlog/leat/segment"
)

// OnFull says what becomes of a publish that finds the log full.
type OnFull uint8

const (
	Block      OnFull = iota // it waits for the slowest gating reader
	Reject                   // it fails with ErrFull
	DropOldest               // the oldest segment goes, read or not
)

// Config configures a Partition. The caller has checked it.
type Config struct {
	Index          int
	Limits         retention.Limits
	OnFull         OnFull
	MaxRecordBytes int64 // of key, value and headers
	HandoverSlots  int   // slots of the ring, a power of two
	Log            segment.Config
	Clock          *atomicx.Clock
	Workers        *dispatch.Pool            // runs the callbacks of PublishAsync
	Crowd          *Crowd                    // the engine's; may be nil
	Pace           *Pace                     // the topic's; nil: the partition's own
	OnWorker       func() bool               // whether a handler or callback is calling; slow is fine. Nil: if on Workers
	Panicked       func(v any, stack []byte) // told of a panic in such a callback; may be nil

	// Store keeps the records in files; nil if the partition is in memory only. Loaded is then the log that it has filled, and
	// goes before Log.
	Store  *storage.Log
	Loaded *segment.Log
}

// Partition is one partition of a topic. See the package comment for who does what.
type Partition struct {
	// Immutable after New.
	cfg   Config
	log   *segment.Log
	ring  *ring.MPSC[slot]
	store *storage.Log    // nil in memory; see durable.go
	timer *time.Timer     // fires when the oldest segment expires; nil without MaxAge
	late  *atomicx.Waiter // on room while an expired segment is held by a gate: fires the timer; nil without MaxAge
	ended chan struct{}   // closed when the partition's goroutine has gone

	inlineMax   int64 // bytes of a record that fits one slot
	streamAfter int   // see stream; a field for tests
	hotStreak   int   // see letGo; a field for tests
	batchMax    int   // entries that the goroutine makes visible by one publication
	directMost  int   // records that a producer makes visible by one, see direct
	lends       bool  // the role may be lent

	requests sync.Pool // of *request
	calls    calls

	// committed is broadcast after each publication: readers wait on it for the log to grow or end.
	committed atomicx.Event
	// room is broadcast after anything that may let somebody go on that waits for room; see waitForRoom.
	room atomicx.Event
	// wake leaves the role with the partition's goroutine: whoever holds the role and calls Unpark hands it over.
	wake atomicx.Parker

	_ atomicx.Pad
	// state is zero while anybody may publish. Its bits are set and cleared by Close, Drain and Appender, and read by
	// every publish. It publishes no memory.
	state atomicx.Uint32
	// full is 1 while a holder waits for room. It is stored by the holder, read by TryPublish and Stats. It publishes no
	// memory.
	full atomicx.Uint32
	// cause is set once, before the state's closing bit, by the first Close; it says what callers get from then on.
	cause atomicx.Pointer[error]
	// broken is why nothing can be written to the files: stored before the state's read-only bit is set, and cleared by Resume
	// after it has cleared that. It publishes the error.
	broken atomicx.Pointer[error]
	// exclusive is the open Appender: stored by Appender and its Close, read by whoever needs the role for something. It
	// publishes the Appender.
	exclusive atomicx.Pointer[Appender]
	// ctl is 1 while controls may be waiting: set by whoever adds one, cleared by the holder of the role before it takes
	// them. It publishes no memory (the list is under ctlMu).
	ctl atomicx.Uint32
	// evictAt is the committed length at which a gate may be over its lag limit: stored under gateMu, loaded by the holder
	// at each publication. It publishes no memory.
	evictAt atomicx.Uint64
	// stuckOn is the gate that a holder without room waits for, stored by the holder, read by publishers that publish
	// from inside a handler and by Stats. It publishes the gate.
	stuckOn atomicx.Pointer[Gate]
	_       atomicx.Pad

	ctlMu    atomicx.Mutex
	controls []*control // under ctlMu
	over     bool       // under ctlMu: no control will run any more

	// gateMu orders the adding of gates with the dropping of segments: see Gate.
	gateMu  atomicx.Mutex
	gates   gates   // under gateMu
	limited []*Gate // under gateMu: those with a MaxLag

	insideMu atomicx.Mutex
	inside   map[*insider]struct{} // under insideMu: publishers that publish from inside a handler and wait

	// blocked is how many publishers wait, for Stats; added to by each. It publishes no memory.
	blocked atomicx.Int64
	_       atomicx.Pad

	// For Stats; written by the holder of the role. They publish no memory.
	failed    atomicx.Int64 // records that were accepted and then failed without anybody to tell
	reclaimed atomicx.Int64 // records dropped by the limits or by TruncateBefore

	a     appender      // the holder's own
	vigil atomicx.Vigil // the goroutine's own

	// lent says whether the goroutine lends the role to publishers while it lets others run; see lend. CASed by both.
	// Offering it publishes the holder's own state, and so does giving it back.
	lent atomicx.PaddedUint64

	// alone says that one producer seems to have the partition for itself; see direct. Stored by who has the role on loan,
	// loaded by publishers. It publishes no memory.
	alone atomicx.Uint32
	// rival says that producers have met: stored by the one that came second, loaded and cleared by who has the role on loan.
	// It publishes no memory.
	rival atomicx.Uint32
	_     atomicx.Pad
}

// appender is what only the holder of the role touches.
type appender struct {
	roomRecords int64 // how many records may be appended before the limits are looked at again
	roomBytes   int64 // how many bytes

	watch   atomicx.Watch // the engine's clock, as the holder reads it
	now     int64         // the stamp of the present batch, by it
	waited  bool          // somebody waits for each entry of the last batch
	batch   int           // how many records an Appender has staged since it was given the role or last published; see Append
	crowd   int64         // how many waiting handlers it has counted in Config.Crowd
	hot     int           // direct appends in a row that came close together; less if the goroutine was of no use the last time
	cool    int           // how often in a row it was of no use: see rest
	keen    int           // how many appends that were looked at were followed by the next one at once: see pace
	from    uint64        // where the log ended when the goroutine was given the role
	quiet   int           // drains in a row by publishers that have met nobody
	lost    int           // how many records the last commit has counted as failed
	known   int           // how many entries the last drain took, and how many waited by then, of a partition with files
	direct  bool          // a publisher has appended with the role on loan since the goroutine had it
	results []result

	age    ageState
	rollAt int64 // when the active segment ends for its age
}

// result is the outcome of one entry of a batch that is not published yet.
type result struct {
	req  *request
	done Done
	off  int64
}

const (
	stateClosing   uint32 = 1 << iota // Close: everything ends now
	stateFinishing                    // Drain: what was accepted is appended, then it ends
	stateDraining                     // only handlers may publish
	stateExclusive                    // only the Appender may publish
	stateReadOnly                     // the files have failed: nobody may publish
)

// Limits of one turn of work.
const (
	batchMax  = 256 // entries that become visible by one publication
	quotaHold = 256 // entries that a publisher serves for others before it hands the role to the goroutine
	hotStreak = 64  // direct appends that come close together, and the goroutine takes over
	coolest   = 10  // that is doubled so often at the most,
	coolKeen  = 4   // and so often if publishers have nothing else to do
)

// New returns a partition. Nothing runs until Run is called, on a goroutine of its own.
func New(c Config) *Partition {
	p := &Partition{
		cfg:    c,
		log:    c.Loaded,
		ring:   ring.New[slot](c.HandoverSlots),
		store:  c.Store,
		wake:   atomicx.NewParker(),
		ended:  make(chan struct{}),
		inside: map[*insider]struct{}{},

		inlineMax:   min(inlineBytes, c.MaxRecordBytes),
		streamAfter: streamAfter,
		hotStreak:   hotStreak,
		batchMax:    batchMax,
		directMost:  directBatch,
		lends:       c.Store == nil || !c.Store.Syncs(),
	}
	if c.Store != nil {
		p.batchMax = max(batchMax, p.ring.Cap()) // all that wait share one sync
		p.directMost = directFiles
	}
	if p.log == nil {
		p.log = segment.NewLog(c.Log)
	}
	if c.Pace == nil {
		p.cfg.Pace = new(Pace)
	}
	if c.OnWorker == nil {
		p.cfg.OnWorker = c.Workers.OnWorker
	}
	p.a.watch = atomicx.NewWatch(c.Clock)
	p.evictAt.Store(noEviction)
	p.calls.init(p)
	if c.Limits.MaxAge > 0 {
		p.timer = time.AfterFunc(time.Hour, func() { _ = p.post(&control{run: p.expire}) }) // no matter if it has ended
		p.timer.Stop()
		// Not post itself: whoever broadcasts room may have the role or hold a lock.
		p.late = atomicx.NewCallWaiter(func() { p.timer.Reset(0) })
	}
	p.ring.Sleep() // nobody holds the role
	if c.Loaded != nil && p.timer != nil {
		_ = p.post(&control{run: p.armAge})
	}
	return p
}

// Run is the partition's goroutine. It returns after Close or Finish, once nothing is left to do.
func (p *Partition) Run() {
	defer close(p.ended)
	for {
		p.park() // whoever held the role leaves it here
		if p.lent.Load() != kept {
			p.takeBack() // on offer: see letGo
		} else {
			p.a.from = p.log.Published()
		}
		if p.serve() {
			return
		}
	}
}

// serve holds the role until there is nothing to do, and then gives it back. It returns true at the end of the partition.
func (p *Partition) serve() (over bool) {
	idle := busyIdle()
	for turn, s := uint32(0), (stream{}); ; {
		p.runControls()
		if s.leave(p) {
			p.lend()
			continue
		}
		direct := p.a.direct
		if direct {
			p.a.direct = false
			p.publish()
		}
		closed := p.ring.Closed() // before the look at what is there: if it is closed, nothing comes after that look
		n, stuck := p.drain(p.batchMax)
		switch {
		case stuck:
			err := p.waitForRoom(nil, p.lookForHead)
			p.dissolve()
			if err != nil {
				p.failAll(err) // closing: nothing waits any more
			}
			turn = 0
			idle = busyIdle()
		case n > 0:
			turn = 0
			s.finds++
			if p.a.waited {
				// Somebody stood still for these, and is better served by holding the role himself, which he can once it
				// is free. A publisher that does not wait for its results does not say so by being slow.
				idle = atomicx.Backoff{Yields: 1}
				break
			}
			idle = busyIdle()
			switch {
			case s.slow && p.store == nil:
				idle = atomicx.Backoff{} // gives the role back if nothing has come meanwhile
			case p.lends && s.more(p):
				p.lend()
			}
		case direct:
			turn = 0
			s.finds++
			idle = busyIdle()
			if s.more(p) {
				p.lend()
			}
		case p.ring.Claimed():
			// A producer is between its claim and Ready; nothing that can fail or wait happens there.
			atomicx.Relax(turn)
			turn++
		case closed:
			p.finalize()
			return true
		case p.state.Load()&stateExclusive == 0 && p.again(&idle):
			s.idle(idle.Turns())
		case p.store != nil && p.a.waited && p.stayAwake():
			turn = 0
		case p.rest(&s):
			return false
		}
	}
}

// busyIdle is how the goroutine waits before it gives the role back.
func busyIdle() atomicx.Backoff { return atomicx.Backoff{Spins: 4, Yields: 32} }

// release gives the role back if nothing is left to do, and reports whether it did. The caller must hold it; after a
// false it still does.
func (p *Partition) release() bool {
	if !p.ring.Sleep() {
		return false
	}
	// A control that was added before the idle bit was set found the role taken and relies on us. One that is added later
	// finds the bit. Pairs with post: it stores ctl, then tries for the bit.
	return p.ctl.Load() == 0 || !p.ring.TakeIdle()
}

// hold is called by a goroutine that has the role for a short while: it serves what came in meanwhile and gives the role
// back, or hands it to the partition's goroutine if there is more to do than a passer-by should. It never waits.
func (p *Partition) hold() {
	if p.store != nil {
		p.passBy()
		return
	}
	if p.release() {
		return // most of the time nothing has come in
	}
	for served, turn := 0, uint32(0); ; {
		p.runControls()
		n, stuck := p.drain(batchMax)
		served += n
		if stuck || served >= quotaHold || p.ring.Closed() {
			break
		}
		if n > 0 {
			continue
		}
		if p.release() {
			return
		}
		if turn++; turn > bounded(8) {
			break // claimed, but its producer has been descheduled
		}
		atomicx.Relax(turn)
	}
	p.wake.Unpark()
}

// bounded returns how many turns to wait for something that need not come. The explorer tries what happens when it does not.
func bounded(turns uint32) uint32 {
	if atomicx.Exploring {
		return 1
	}
	return turns
}

// Index returns the partition's number in its topic.
func (p *Partition) Index() int { return p.cfg.Index }

// Log returns the log, for reading.
func (p *Partition) Log() *segment.Log { return p.log }

// Snapshot returns the oldest retained offset and the one past the newest.
func (p *Partition) Snapshot() (first, next int64) {
	f, n := p.log.Snapshot()
	return int64(f), int64(n)
}

// Cause returns what ended the partition, or nil.
func (p *Partition) Cause() error {
	if e := p.cause.Load(); e != nil {
		return *e
	}
	return nil
}

// Drain lets only handlers publish from now on. What others have published is in the log after the next Flush.
func (p *Partition) Drain() {
	p.state.Or(stateDraining) // pairs with tooLate
	// An Append that has not seen the bit is over once the guard has been ours, and what was appended is then visible.
	if x := p.exclusive.Load(); x != nil && x.enter() {
		p.publish()
		x.leave()
	}
}

// Finish ends the partition after everything that was accepted is in the log: no publish is accepted any more; readers
// read to the end and get cause.
func (p *Partition) Finish(cause error) { p.end(cause, stateFinishing) }

// Close ends the partition at once: no publish is accepted any more, and those that wait for room fail with cause. It does
// not wait; Done tells.
func (p *Partition) Close(cause error) { p.end(cause, stateClosing) }

func (p *Partition) end(cause error, bit uint32) {
	p.cause.CompareAndSwap(nil, &cause)
	p.state.Or(bit)
	revoked := false
	if x := p.exclusive.Load(); x != nil {
		if revoked = x.revoke(); revoked { // then the role is ours to hand on
			p.exclusive.Store(nil)
		}
	}
	if wasIdle := p.ring.Close(); wasIdle || revoked {
		p.wake.Unpark()
	}
	p.room.Broadcast()
	p.calls.room.Broadcast()
}

// Done is closed when the partition's goroutine has gone: everything accepted has its result, and the log is sealed.
func (p *Partition) Done() <-chan struct{} { return p.ended }

// finalize ends the partition: the ring is closed and empty, the role is ours for good.
func (p *Partition) finalize() {
	if p.timer != nil {
		p.room.Cancel(p.late) // it would set the timer again
		p.timer.Stop()
	}
	p.calls.end()
	p.log.Seal()
	p.ctlMu.Lock()
	p.over = true
	left := p.controls
	p.controls = nil
	p.ctlMu.Unlock()
	for _, c := range left {
		c.end(p.Cause())
	}
	p.committed.Broadcast()
}

// Free gives the log's memory back. Call it after Done, when no reader is to see more of it: readers that still hold a
// view keep it.
func (p *Partition) Free() {
	for p.log.DropOldest() { // the files keep what they have
	}
	p.committed.Broadcast()
}
