package delivery

import (
	"context"
	"errors"
	"time"

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
// at the tail that have not been begun, by a CAS of the same word. So when Pause, Stop or Seek has returned, having taken
// back all there was under mu, nothing begins any more: what was begun had been so before.
//
// A seat says what became of a record by writing it into the queue and then storing finished. Whoever holds mu settles it:
// the seat when it has no more to do, or somebody else whom the time that a record is held concerns. So a handler that hangs
// keeps back one record, and what its seat has finished or not begun is others'.
//
// # Nothing is left lying
//
// Each change that can make a record available, or a seat ready, ends in feed: that of a hold (settle, release, expiry), of
// a seat (start, resume, end of a run), of time (the alarm), and the growth of the log, which wakes the feeder. Feed goes on
// until no seat is ready or nothing is available. In the latter case it has registered with the log and has looked once more,
// and the alarm is set. Then it gives to seats that have nothing what others have not begun.
type Share struct {
	cfg    ShareConfig
	feeder *dispatch.Task
	burier *dispatch.Task
	rest   *atomicx.Waiter // on the partition's event while seats are ready and nothing is available
	alarm  due.Alarm

	// pos is the floor as of the last unlock: stored under mu, loaded by Position. It publishes no memory.
	pos atomicx.Uint64

	mu      atomicx.Mutex
	w       *group.Shared
	chooser group.Chooser
	seats   []*Seat
	gate    *partition.Gate // may be nil
	ids     group.MemberID
	idle    int  // how many seats are idle
	full    bool // the last feed ended because too much is in flight
	closed  bool
	cause   error
	errs    map[uint64]error // the latest failure of records that are to be delivered again, or dead
	gaps    []gap            // to be told
	expired []group.Expired  // reused
	n       shareCounts

	dead grave // the burier's own
}

type gap struct{ from, to uint64 }

// shareCounts are under mu.
type shareCounts struct{ lost, dropped, buried, fenced, expired int64 }

// NewShare returns a share without seats whose position is at floor. It must be closed.
func NewShare(cfg ShareConfig, floor uint64) *Share {
	s := &Share{cfg: cfg}
	s.cfg.Window.DeadLetter, s.cfg.Window.DeadLetterRejected = true, true // all go through the burier
	s.w = group.NewShared(s.cfg.Window, floor)
	s.pos.Store(floor)
	s.feeder = cfg.Pool.NewTask(s.feedTask, dispatch.Options{})
	s.burier = cfg.Pool.NewTask(s.bury, dispatch.Options{})
	s.rest = atomicx.NewCallWaiter(s.feeder.Wake)
	s.alarm.Init(cfg.Alarms, s.ring)
	s.dead.seg.Init(cfg.Part.Log())
	return s
}

// unlock ends a hold of mu: it shows how far everything is settled, and sets the alarm.
func (s *Share) unlock() {
	if at, ok := s.w.NextDue(); ok && at != due.Never && !s.closed {
		s.alarm.SetEarlier(at)
	}
	if f := s.w.Floor(); f != s.pos.Load() {
		s.pos.Store(f)
		if s.gate != nil {
			s.gate.Advance(f)
		}
	}
	s.mu.Unlock()
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
	log, part := s.cfg.Part.Log(), s.cfg.Part
	s.drop()
	s.full = false
	for reaped := false; ; {
		t := s.chooser.Peek()
		if t == nil {
			break
		}
		seat := t.Owner.(*Seat)
		d, outcome := s.w.Acquire(seat.id, log.Committed(), now)
		if outcome == group.Acquired {
			s.chooser.Next()
			seat.push(d)
			continue
		}
		if outcome != group.Empty {
			if !reaped {
				s.reapAll()
				reaped = true
				continue
			}
			s.full = true
			break
		}
		part.Committed().Prepare(s.rest)
		if s.w.Available(log.Committed()) {
			part.Committed().Cancel(s.rest)
			continue
		}
		break
	}
	s.balance(now)
}

// review is feed where something may have become available. The caller holds mu.
func (s *Share) review(now int64) {
	if s.chooser.Ready() > 0 {
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
	if s.idle == 0 || len(s.seats) < 2 {
		return
	}
	for _, seat := range s.seats {
		if !seat.idle || !seat.ready() {
			continue
		}
		from := s.busiest()
		if from == nil {
			return
		}
		d, ok := from.takeBack()
		if !ok || s.w.Return(from.id, d.Token) != nil {
			continue
		}
		s.chooser.Done(&from.taker)
		if d, outcome := s.w.Acquire(seat.id, 0, now); outcome == group.Acquired {
			s.chooser.Take(&seat.taker)
			seat.push(d)
		}
	}
}

// busiest returns the seat with the most records that it has not begun and will not begin next. The caller holds mu.
func (s *Share) busiest() (busiest *Seat) {
	most := 0
	for _, seat := range s.seats {
		n := seat.queued()
		if n > 0 && !seat.inside() {
			n--
		}
		if n > most {
			busiest, most = seat, n
		}
	}
	return busiest
}

// drop notes what retention has dropped. The caller holds mu.
func (s *Share) drop() {
	first := s.cfg.Part.Log().First()
	if first <= s.w.Floor() {
		return
	}
	loss := s.w.DropBefore(first)
	if loss.Records == 0 {
		return
	}
	s.n.lost += int64(loss.Records)
	for off := range s.errs {
		if off < first {
			delete(s.errs, off)
		}
	}
	if n := len(s.gaps); n > 0 && s.gaps[n-1].to == loss.From {
		s.gaps[n-1].to = loss.To
	} else {
		s.gaps = append(s.gaps, gap{loss.From, loss.To})
	}
	for _, seat := range s.seats {
		if !seat.pull() {
			seat.rouse() // somebody has to tell it
			break
		}
	}
}

// ring is told by the alarm that a time has come.
func (s *Share) ring(now int64) {
	s.mu.Lock()
	defer s.unlock()
	if s.closed {
		return
	}
	s.reapAll()
	for _, seat := range s.seats {
		seat.recallDue(now)
	}
	s.expired = s.w.Tick(now, s.expired[:0])
	s.n.expired += int64(len(s.expired))
	if s.w.Counts().Dead > 0 {
		s.burier.Wake()
	}
	s.feed(now)
}

// reapAll settles what all seats have finished. The caller holds mu.
func (s *Share) reapAll() {
	for _, seat := range s.seats {
		seat.reap()
	}
}

// fate notes what becomes of a record that has failed. The caller holds mu.
func (s *Share) fate(off uint64, f group.Fate, err error) {
	if f == group.FateDead {
		s.burier.Wake()
	}
	if err != nil && f != group.FateDropped {
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
	for _, seat := range s.seats {
		seat.recall()
	}
	s.w.Reset(off)
	s.errs, s.gaps = nil, nil
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

// Lag returns how many retained records are not settled.
func (s *Share) Lag() int64 {
	_, at, next := place(s.cfg.Part, s.Position)
	return max(0, next-at)
}

// Drained reports whether everything that is in the log is settled, and nobody is at work on it.
func (s *Share) Drained() bool {
	next := s.cfg.Part.Log().Committed()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.w.Floor() < next {
		return false
	}
	for _, seat := range s.seats {
		if seat.stats.began.Load() != 0 {
			return false
		}
	}
	return true
}

// ShareStats is what a share knows of its records.
type ShareStats struct {
	InFlight  int // held by seats, or by those who have their tokens
	Delayed   int // waiting to be delivered again
	Dead      int // given up, and not yet in the dead-letter topic
	Lost      int64
	Dropped   int64 // given up
	Buried    int64 // in the dead-letter topic
	Expired   int64 // not settled in time
	Fenced    int64 // outcomes and tokens that came too late
	Delivered int64 // settled as processed
}

// LaneStats returns a snapshot of what all seats together have done; now is the engine's clock.
func (s *Share) LaneStats(now int64) Stats {
	r := new(shared).read(s.cfg.Part, s.Position, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.w.Counts()
	r.Delivered, r.Failed, r.Redelivered = int64(c.Acked), int64(c.Failed), int64(c.Redeliveries)
	r.Dropped, r.Buried, r.Lost, r.InFlight = s.n.dropped, s.n.buried, s.n.lost, c.InFlight
	for _, seat := range s.seats {
		r.HandlerTime += time.Duration(seat.stats.busy.Load())
		if since, yes := seat.Inside(); yes {
			r.Running, r.RunningFor = true, max(r.RunningFor, since)
		}
	}
	return r
}

// Stats returns a snapshot.
func (s *Share) Stats() ShareStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.w.Counts()
	return ShareStats{
		InFlight:  c.InFlight,
		Delayed:   c.Delayed + c.Again,
		Dead:      c.Dead,
		Lost:      s.n.lost,
		Dropped:   s.n.dropped,
		Buried:    s.n.buried,
		Expired:   s.n.expired,
		Fenced:    s.n.fenced,
		Delivered: int64(c.Acked),
	}
}
