package delivery

import (
	"context"
	"errors"
	"slices"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
)

// ErrRejected is the failure of a record that a handler, or who held its token, never wants to see again. A handler whose
// error wraps it has rejected its record.
var ErrRejected = errors.New("leat: record rejected")

// ShareConfig is how one partition is shared. It is immutable.
type ShareConfig struct {
	Topic     string
	Part      *partition.Partition
	Window    group.SharedConfig
	Pool      *dispatch.Pool
	Alarms    *due.Alarms
	Clock     *atomicx.Clock
	Context   context.Context // for Bury and OnDrop
	FailOnGap bool            // a gap ends the seat that finds it, with an OffsetError

	// Manual: records are settled by their tokens, and a handler that returns nil says nothing. AtMostOnce: they are settled
	// before the handler is called. Neither: when it has returned nil.
	Manual, AtMostOnce bool

	// Rested is broadcast when a seat has nothing to do at the moment.
	Rested *atomicx.Event

	// Told of what happens, on a worker and under no lock. Each may be nil.
	OnGap  func(partition int, from, to int64)
	OnDrop func(ctx context.Context, m *Message, err error) // for each record that is given up and not buried

	// Bury is as in Config. BuryRejected says that rejected records are buried as well, and not only given up.
	Bury         func(ctx context.Context, m *Message, err error) error
	BuryRejected bool
}

// Share is one partition whose records are settled one by one: of a shared group, whose members each have a seat or several;
// or of one owner that settles records by their tokens, who has one seat.
//
// # How a record gets to a seat
//
// The window (group.Shared) says what there is, the chooser whose turn it is, and feed, under mu, puts records into the
// queues of seats. A seat begins with the record at the head of its queue by a CAS; whoever holds mu may take back records
// at the tail that have not been begun, by a CAS of the same word. A seat says what became of a record by writing it into the
// queue and then storing finished. Whoever holds mu settles it: the seat when it has no more to do, when its turn on the
// worker is over or when a handler has failed, or somebody else who needs to know.
//
// # Proof
//
// Nothing begins after Pause, Stop, Fence, Seek or Release returned. They take back under mu what the seat has not begun, and
// the first three see to it that feed gives it nothing more. What is in the queue no longer no CAS of the seat begins. What
// had been begun before may be on its way to the handler: then began has been stored before the CAS, and Inside says so.
//
// What a seat begins, it holds. Holds of what lies in a queue are ended by nobody: Tick, AckThrough, AckHeld, Release,
// DropBefore and Reset come only after what they could concern has been taken back from the queues, under the same hold of mu.
// So Return of what has been taken back does not fail, and is no delivery.
//
// Nothing is left lying. Each change that can make a record available, or a seat ready, ends in feed: that of a hold, of a
// seat (start, resume, end of a run), of time (the alarm, which unlock keeps set to the first time that the window waits for),
// and the growth of the log, which wakes the feeder. Feed goes on until no seat is ready, or nothing is available, or too much
// is in flight. In the second case it has registered with the log and has looked once more. In the third, full says that
// whoever settles a record calls feed again; where that is not a seat that calls it anyway, see freed.
//
// Nothing is behind a handler. A seat that has nothing to do takes, in balance, what others have not begun; it rests only
// when there is none of that, and whatever is given to a seat later is balanced with those that rest. The one record that it
// leaves is that at the head of a seat that is not at work, and is about to be. A seat stores began before it begins; who
// finds began 0 has loaded the queue before, and therefore leaves nothing behind a record that has been begun. If no worker
// comes for the head either it is taken back when its time is up.
//
// What is finished is settled, even if the seat hangs in its next handler, as long as that can matter to anybody: while a seat
// rests hungry is not 0. Feed stores it and then looks at finished of each seat that is busy, which one is
// from when something is put into its queue until all that it finished is settled; and a seat that has finished a record begins
// the next by a CAS, or ends its turn by a store, and then loads hungry. In their one total order either feed sees what is
// finished or the seat sees that somebody rests, and hands it in before it calls the next handler. While nobody rests it is
// settled at the end of a turn, or by the next seat that has nothing to do, and in any case before its hold could expire: the
// alarm settles what is finished first.
//
// Drained is true only if nothing is left. It loads the end of the log, and then under mu finds that the floor is there, no gap
// is to be told, and nobody's began is set, of seats and burier. Under AtLeastOnce and Manual what is not settled is above
// the floor, or at it. Under AtMostOnce a record is settled under mu by a seat that has stored began, and which clears it when
// the handler is over. Whatever makes it true later is a turn, which broadcasts Rested when it has cleared began, or a hold of
// mu that moves the floor, of which unlock broadcasts it.
type Share struct {
	cfg    ShareConfig
	feeder *dispatch.Task
	burier *dispatch.Task
	rest   *atomicx.Waiter // on the partition's event while seats are ready and nothing is available
	alarm  due.Alarm

	// pos is the floor as of the last unlock: stored under mu, loaded by Position. It publishes no memory.
	pos atomicx.Uint64

	// hungry is 1 while a seat rests, and 0 while none does, as of the last feed: stored under mu, loaded by the workers of
	// seats. It publishes no memory; they go on under mu.
	hungry atomicx.Uint32

	mu      atomicx.Mutex
	w       *group.Shared
	chooser group.Chooser
	seats   seatSet         // all
	idle    seatSet         // that are idle
	busy    seatSet         // that have something in their queue, or have begun something, or finished something that is not settled
	gate    *partition.Gate // may be nil
	ids     group.MemberID
	taken   uint64 // no pull seat has taken a record from here on
	full    bool   // the last feed ended because too much is in flight
	closed  bool
	cause   error
	errs    map[uint64]error // the latest failure of records that are to be delivered again, or dead
	gaps    []gap            // to be told
	expired []group.Expired  // reused
	n       shareCounts

	dead grave // the burier's own
}

// gap is records that were dropped: in [from, to) so many were not settled.
type gap struct{ from, to, records uint64 }

// shareCounts are under mu.
type shareCounts struct{ lost, dropped, buried, fenced, expired int64 }

// NewShare returns a share without seats whose position is at floor. It must be closed.
func NewShare(cfg ShareConfig, floor uint64) *Share {
	s := &Share{cfg: cfg, taken: floor}
	s.cfg.Window.DeadLetter, s.cfg.Window.DeadLetterRejected = true, true // all go through the burier
	s.seats.kind, s.idle.kind, s.busy.kind = allSeats, idleSeats, busySeats
	s.w = group.NewShared(s.cfg.Window, floor)
	s.pos.Store(floor)
	s.feeder = cfg.Pool.NewTask(s.feedTask, dispatch.Options{})
	s.burier = cfg.Pool.NewTask(s.bury, dispatch.Options{})
	s.rest = atomicx.NewCallWaiter(s.feeder.Wake)
	s.alarm.Init(cfg.Alarms, s.ring)
	s.dead.seg.Init(cfg.Part.Log())
	return s
}

// unlock ends a hold of mu: it shows how far everything is settled, sets the alarm, and has the dead buried.
func (s *Share) unlock() {
	if at, ok := s.w.NextDue(); ok && at != due.Never && !s.closed {
		s.alarm.SetEarlier(at)
	}
	if s.w.ToBury() > 0 {
		s.burier.Wake()
	}
	f := s.position()
	moved := f != s.pos.Load()
	if moved {
		s.pos.Store(f)
		if s.gate != nil {
			s.gate.Advance(f)
		}
	}
	s.mu.Unlock()
	if moved && f >= s.cfg.Part.Log().Committed() {
		s.cfg.Rested.Broadcast()
	}
}

// position returns the floor, or where a gap begins that nobody has been told of: the position passes it when somebody is, so that
// whoever goes on from there, which may be somebody without a seat, finds it as well. The caller holds mu.
func (s *Share) position() uint64 {
	if len(s.gaps) > 0 {
		return min(s.w.Floor(), s.gaps[0].from)
	}
	return s.w.Floor()
}

// SetGate sets who holds back publishers until records are settled; nil is nobody. The caller has added it and removes it.
func (s *Share) SetGate(g *partition.Gate) {
	s.mu.Lock()
	defer s.unlock()
	s.gate = g
	if g != nil {
		g.Advance(s.w.Floor())
	}
}

// feed gives records to seats. The caller holds mu.
func (s *Share) feed(now int64) {
	if s.closed {
		return
	}
	s.drop()
	if len(s.gaps) > 0 {
		s.tell() // before anything is given that lies behind it; whoever tells of it calls feed again
		return
	}
	for again := true; again; {
		s.full = s.give(now)
		again = s.full && s.reapAll()
		if !again {
			s.balance(now)
			again = s.glean()
		}
	}
}

// glean settles what has been finished if somebody rests, who may get what that makes available, and reports whether there was
// anything. Seats that finish something from now on know whether they have to do it. The caller holds mu.
func (s *Share) glean() bool {
	var hungry uint32
	if len(s.idle.list) > 0 {
		hungry = 1
	}
	if s.hungry.Load() != hungry {
		s.hungry.Store(hungry) // and then look: see the proof
	}
	return hungry != 0 && s.reapAll()
}

// give gives to those whose turn it is what is available, and reports whether it ended because too much is in flight. The
// caller holds mu.
func (s *Share) give(now int64) (full bool) {
	log, event := s.cfg.Part.Log(), s.cfg.Part.Committed()
	for {
		t := s.chooser.Peek()
		if t == nil {
			return false
		}
		seat := t.Owner.(*Seat)
		switch d, outcome := s.w.Acquire(seat.id, log.Committed(), now); outcome {
		case group.Acquired:
			s.chooser.Next()
			seat.push(d)
		case group.Empty:
			event.Prepare(s.rest)
			if !s.w.Available(log.Committed()) {
				return false
			}
			event.Cancel(s.rest)
		default:
			return true
		}
	}
}

// review is feed where something may have become available. The caller holds mu.
func (s *Share) review(now int64) {
	if s.chooser.Ready() > 0 {
		s.feed(now)
	}
}

// freed is feed where a record has been settled, which matters if too much was in flight. The caller holds mu.
func (s *Share) freed(now int64) {
	if s.full {
		s.feed(now)
	}
}

func (s *Share) feedTask() dispatch.Again {
	s.mu.Lock()
	s.feed(s.cfg.Clock.Now())
	s.unlock()
	return false
}

// balance gives to seats that have nothing what others have not begun. The caller holds mu.
func (s *Share) balance(now int64) {
	if len(s.busy.list) == 0 {
		return
	}
	for _, seat := range slices.Backward(s.idle.list) {
		if !seat.ready() || seat.queued() > 0 {
			continue
		}
		for {
			from := s.busiest()
			if from == nil {
				return // nor is there for the next one: what a seat is about to begin is left to it
			}
			if !from.giveBack() {
				continue // it has just begun that
			}
			if d, outcome := s.w.Acquire(seat.id, 0, now); outcome == group.Acquired {
				s.chooser.Take(&seat.taker)
				seat.push(d)
			}
			break
		}
	}
}

// busiest returns the seat with the most records that it has not begun, and will not begin next if it is not at work; or nil.
// The caller holds mu.
func (s *Share) busiest() (busiest *Seat) {
	most := 0
	for _, seat := range s.busy.list {
		n := seat.queued() // before began: see the proof
		if n > 0 && seat.stats.began.Load() == 0 {
			n--
		}
		if n > most {
			busiest, most = seat, n
		}
	}
	return busiest
}

// drop notes what retention has dropped. The caller holds mu, and calls review or feed if it returns true.
func (s *Share) drop() bool {
	first := s.cfg.Part.Log().First()
	if first <= s.w.Floor() {
		return false
	}
	for _, seat := range slices.Backward(s.busy.list) {
		seat.reap()   // what is finished is not lost
		seat.recall() // also what is behind it, which comes after the notice
	}
	loss := s.w.DropBefore(first)
	if loss.Records == 0 {
		return true
	}
	s.n.lost += int64(loss.Records)
	s.forget()
	if n := len(s.gaps); n > 0 && s.gaps[n-1].to == loss.From {
		s.gaps[n-1].to = loss.To
		s.gaps[n-1].records += loss.Records
	} else {
		s.gaps = append(s.gaps, gap{loss.From, loss.To, loss.Records})
	}
	return true
}

// tell sees to it that somebody tells of gaps: a seat that rests, or else one that comes by anyway. The caller holds mu.
func (s *Share) tell() {
	for _, seat := range slices.Backward(s.idle.list) {
		if seat.able() {
			seat.rouse()
		}
	}
}

// nextGap takes what is to be told next. The caller holds mu, and calls feed.
func (s *Share) nextGap() gap {
	g := s.gaps[0]
	if s.gaps = s.gaps[1:]; len(s.gaps) == 0 {
		s.gaps = nil
	}
	return g
}

// ring is told by the alarm that a time has come.
func (s *Share) ring(now int64) {
	s.mu.Lock()
	defer s.unlock()
	if s.closed {
		return
	}
	s.reapAll()
	for _, seat := range slices.Backward(s.busy.list) { // to have waited in a queue for too long is no failure
		if seat.recallIf(func(d group.Delivery) bool { return d.Deadline <= now }) && !seat.pull() {
			seat.room = seat.least // it has become slow all of a sudden
			seat.open()
		}
	}
	s.expired = s.w.Tick(now, s.expired[:0])
	s.n.expired += int64(len(s.expired))
	s.feed(now)
}

// reapAll settles what all seats have finished, and reports whether there was anything. The caller holds mu.
func (s *Share) reapAll() (any bool) {
	for _, seat := range slices.Backward(s.busy.list) {
		any = seat.reap() || any
	}
	return any
}

// fate notes what becomes of a record that has failed. The caller holds mu.
func (s *Share) fate(off uint64, err error) {
	if err != nil {
		if s.errs == nil {
			s.errs = map[uint64]error{}
		}
		s.errs[off] = err
	}
}

// settled forgets the failures of a record. The caller holds mu.
func (s *Share) settled(off uint64) {
	if len(s.errs) > 0 {
		delete(s.errs, off)
	}
}

// forget does so for all that are settled. The caller holds mu.
func (s *Share) forget() {
	for off := range s.errs {
		if s.w.Settled(off) {
			delete(s.errs, off)
		}
	}
}

// Position returns the offset of the next record to be settled: everything below is.
func (s *Share) Position() int64 { return int64(s.pos.Load()) }

// Seek puts the position where start says, at once: what was known of records is forgotten, and all tokens are refused from
// now on. A handler that is running may still end, and settles nothing.
func (s *Share) Seek(start Start) error {
	s.mu.Lock()
	defer s.unlock()
	off, err := start(s.cfg.Part.Log().Snapshot())
	if err != nil {
		return err
	}
	s.reapAll()
	for _, seat := range slices.Backward(s.busy.list) {
		seat.recall()
	}
	s.w.Reset(off)
	s.errs, s.gaps, s.taken = nil, nil, off
	s.feed(s.cfg.Clock.Now())
	return nil
}

// Close ends the share, for a reason that all tokens get from now on: nothing is given to seats any more. They have been
// stopped before.
func (s *Share) Close(cause error) {
	s.mu.Lock()
	s.closed, s.cause = true, cause
	s.unlock()
	s.alarm.Clear()
	s.cfg.Part.Committed().Cancel(s.rest)
	s.feeder.Stop()
	s.burier.Stop()
}

// Lag returns how many retained records there are from the position on.
func (s *Share) Lag() int64 {
	_, at, next := place(s.cfg.Part, s.Position)
	return max(0, next-at)
}

// Drained reports whether everything that is in the log is settled, what was dropped of it is told, and nobody is at work.
func (s *Share) Drained() bool {
	next := s.cfg.Part.Log().Committed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w.Floor() < next || len(s.gaps) > 0 || s.dead.began.Load() != 0 {
		return false
	}
	for _, seat := range s.seats.list {
		if seat.stats.began.Load() != 0 {
			return false
		}
	}
	return true
}
