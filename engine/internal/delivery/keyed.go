package delivery

import (
	"context"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// What a Keyed has where its Config says 0.
const (
	defaultMaxInFlight = 1000
	defaultMaxKeys     = 256
)

// Keyed is a Lane that is parallel by key: it calls up to Config.Parallel handlers at a time, those of one key one after the
// other in the order of their offsets. A record that fails holds back its own key only. Records without a key have no order
// among each other: each is a key of its own. (Keys go by a hash; two that share one share an order.)
//
// The position is the end of the gap-free prefix of what is settled. What has been settled above it is delivered again to
// whoever goes on from the position, after a hand-over or a crash. How far that can reach is bounded: at most MaxInFlight
// records from the position on are read, with at most MaxKeys keys. When the bound is reached, because one record takes long or
// fails again and again, the lane waits for it.
//
// What retention drops before it is delivered is a gap, as for a Lane. What is behind the gap is delivered when what is before
// it is settled.
//
// # Roles
//
//   - runner: a dispatch task, at most one worker at a time; there are Config.Parallel of them.
//   - caller: whoever pauses, moves or stops the lane.
//   - alarm: the lane's only timer. It makes ready what is due, and looks after runners that are slow all of a sudden.
//
// # Shared state
//
//	mu       guards the window (see there), the reader that fills it, and who does what; held for a few instructions, or
//	         to read some records, and no code of the user's runs under it
//	run      what a runner has taken: written under mu while the runner has no run, or is shut out of the part that changes
//	at       stored by the runner: how many records of its run are over, all of them with success
//	door     of each runner: shut by callers, by whom the runner is told to come to mu before it calls anything again
//	pos      the floor, stored under mu, loaded without it
//	duty     an idle runner, for publishers to wake
//
// # Proof
//
// Order of a key. A strand is with one runner at a time, which has its first records in order and calls one handler after
// the other; it gives back what is behind one that fails, before it gives back the strand.
//
// No new delivery after Pause or Stop returned, and none of before a seek. The first record of a run begins under mu, and so
// comes before what the caller changes there, or sees it. For the others the runner goes through its door, which the caller
// shuts under the same hold: see door. It then takes back what the runner has not begun with. So each delivery that begins
// later has been taken under mu after the change.
//
// What is taken back has not begun. The runner stores at before it leaves the door, and a caller loads the phase of a door
// that is shut, and then at. If it finds the runner inside it takes for begun the record at `at`, which is at least the one
// that the runner is in; else the runner is not inside and will not be, and at is final.
//
// The floor passes nothing unfinished: only settle moves it, for records that were taken and are over with success, given up,
// lost, or about to be delivered under AtMostOnce. Items of before a seek settle nothing (window.epoch), and after Fence
// nothing does (window.final): both are looked at under mu.
//
// Somebody comes. Whenever mu is free one of these holds: there is nothing to take and the lane is registered with the
// partition's event, having looked once more; or what there is to read has to wait for what runners have or for what is due,
// and who settles looks again; or a runner is on its way here and outside of user code (searching), maybe by way of the disk
// (goThaw); or no runner is idle; or the alarm is set, which makes one of the others true (provide). A Broadcast that takes the
// waiter off wakes a runner that was idle then. If that is not idle any more it has been here since it was stored in duty, and has
// provided for others.
//
// OnEnd is called once, when the lane has been stopped and no runner is busy; a runner is busy from when it takes something
// under mu until it is back there, and no user code runs but in between.
type Keyed struct {
	// Immutable after NewKeyed.
	cfg     *Config
	part    *partition.Partition
	gate    *partition.Gate
	ctx     context.Context // for handlers; ends with the subscription
	rest    *atomicx.Waiter // on the partition's event while there is nothing to read
	runners []*runner

	// duty is the task of an idle runner or nil: stored under mu, before the waiter is registered, and loaded by publishers. It
	// publishes the task, which is immutable.
	duty atomicx.Pointer[dispatch.Task]
	// pos is the window's floor: stored under mu, loaded by Position and Stats. It publishes no memory.
	pos atomicx.Uint64

	mu atomicx.Mutex
	// Under mu.
	win       window
	seg       segment.Reader // stands where the window ends
	rec       segment.Record // what it has just read
	refused   error          // why it cannot read on, when it has said that there is nothing more for ever
	unread    error          // what loading the record at unreadAt from the files has failed with
	unreadAt  uint64
	gaps      []span // that nobody has been told of
	dropped   uint64 // what retention has dropped below this is out of the window
	n         counts
	idle      []*runner // the last to come is the warmest and is called first
	searching int       // runners that are on their way to mu, outside of user code
	busy      int       // runners that have something
	started   bool
	paused    bool
	ended     bool
	cause     error // what stopped it
	gateAt    uint64
	timer     *time.Timer
	alarmAt   int64 // for when the timer is set; 0 if it is not
}

// runner is one of those that call handlers.
type runner struct {
	// Immutable.
	k    *Keyed
	task *dispatch.Task

	// The worker's own.
	seg     segment.Reader // pins what it delivers; closed but in a turn
	msg     Message
	turn    turn
	handled int64 // records given to the handler
	todo    int   // what n was when it took its run
	thawed  error // what the last thaw has failed with

	// Written under mu; see the proof for what the worker reads without it.
	state   runnerState
	run     []item
	n       int    // how many it has
	settled int    // how many of them are settled and released
	began   int64  // when it took them
	gap     span   // that it tells of, if it has none
	frozen  uint64 // the record that it is to load

	door
	// at is how many records of the run are over with success, or settled otherwise: stored by the worker, loaded by
	// whoever shuts the door. It publishes no memory.
	at atomicx.Uint64
	_  atomicx.Pad
}

type runnerState uint8

const (
	runnerIdle runnerState = iota
	runnerSearching
	runnerBusy
)

// wishLook in a runner's door says that it has to come to mu first.
const wishLook = wishPause

// NewKeyed returns a lane that stands where start says, and does nothing before Start.
func NewKeyed(ctx context.Context, cfg *Config, part *partition.Partition, gate *partition.Gate, pool *dispatch.Pool, opt dispatch.Options, start Start) (*Keyed, error) {
	k := &Keyed{cfg: cfg, part: part, gate: gate}
	k.ctx = partition.WithOrigin(ctx, gate, !opt.Dedicated)
	k.rest = atomicx.NewCallWaiter(k.published)
	k.seg.Init(part.Log())
	for range max(1, cfg.Parallel) {
		r := &runner{k: k}
		r.task = pool.NewTask(r.work, opt)
		r.seg.Init(part.Log())
		k.runners = append(k.runners, r)
		k.idle = append(k.idle, r)
	}
	k.setDuty()
	if err := k.addGate(start); err != nil {
		for _, r := range k.runners {
			r.task.Stop()
		}
		return nil, err
	}
	return k, nil
}

// addGate puts the lane where start says, and its gate with it.
func (k *Keyed) addGate(start Start) error {
	stand := func(first, next uint64) (uint64, error) {
		pos, err := start(first, next)
		k.win.init(orDefault(k.cfg.MaxInFlight, defaultMaxInFlight), orDefault(k.cfg.MaxKeys, defaultMaxKeys), pos)
		k.seg.Seek(pos)
		k.pos.Store(pos)
		k.gateAt = pos
		return pos, err // all that is before the gate can be put out
	}
	if k.cfg.GateKept {
		_, err := stand(k.part.Log().Snapshot())
		return err
	}
	k.gate.Evicted = k.evicted
	_, err := k.part.AddGate(k.gate, stand)
	return err
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// published is called by whoever publishes when the lane is registered.
func (k *Keyed) published() {
	if t := k.duty.Load(); t != nil {
		t.Wake()
	}
}

// work is one turn of a runner on a worker.
func (r *runner) work() dispatch.Again {
	k := r.k
	now := k.cfg.Clock.Now()
	r.turn.begin(now, r.handled)
	for {
		switch k.next(r, now) {
		case goOn:
			r.deliver()
			now = k.cfg.Clock.Now()
		case goThaw:
			r.thawed = k.part.Log().Warm(r.frozen)
			now = k.cfg.Clock.Now()
		case goBehind:
			return true
		case goRest:
			return false
		case goEnd:
			for _, r := range k.runners {
				r.task.Stop()
			}
			k.cfg.OnEnd(k.why())
			return false
		}
	}
}

// deliver does what the runner has been given.
func (r *runner) deliver() {
	if r.todo == 0 {
		r.tell()
		return
	}
	for i := range r.todo {
		if i > 0 && !r.enter() || !r.one(i) {
			return
		}
	}
}

// tell tells of a gap.
func (r *runner) tell() {
	defer r.leave()
	if f := r.k.cfg.OnGap; f != nil {
		f(r.k.part.Index(), int64(r.gap.from), int64(r.gap.to))
	}
}

// one delivers the record at i of the run, and reports whether that was a success.
func (r *runner) one(i int) bool {
	it := &r.run[i]
	if state := r.view(it.off); state != segment.Ready {
		r.miss(i, state)
		return false
	}
	if it.dying != nil {
		r.buryAgain(i)
		return false
	}
	r.handled++
	// A handler that ends its goroutine (runtime.Goexit) has failed; the pool brings a new worker.
	err := ErrGoexit
	defer func() {
		if err != nil {
			r.failed(i, err)
			return
		}
		atomicx.StoreRelease(&r.at, uint64(i)+1)
		r.leave()
	}()
	r.msg.Attempt = int(it.attempt)
	err = r.k.call(&r.msg)
	return err == nil
}

// view makes the message the record at off. If it does not return Ready that is gone, or cannot be read.
func (r *runner) view(off uint64) segment.State {
	if !r.seg.Jump(off) {
		r.seg.Refill() // often it is just behind the window
		if !r.seg.Jump(off) {
			r.seg.Seek(off)
			if state := r.seg.Refill(); state != segment.Ready {
				return state
			}
		}
	}
	r.seg.Next(&r.msg.Record)
	r.msg.Topic = r.k.cfg.Topic
	return segment.Ready
}
