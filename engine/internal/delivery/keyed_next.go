package delivery

import (
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// What a runner does next.
type verdict uint8

const (
	goOn     verdict = iota // with what it has been given
	goBehind                // its turn is over
	goRest                  // there is nothing to do
	goThaw                  // it has to load from the files what is next, without mu
	goEnd                   // it is the last of a lane that has ended
)

// supply is where the window gets its records from.
type supply uint8

const (
	more      supply = iota // there may be more
	caughtUp                // there is nothing more at the moment
	blocked                 // what there is has to wait for what is in the window
	frozen                  // what there is has to be loaded first
	exhausted               // there is nothing more for ever
)

// A runner that is fast takes many records at once, so others of other keys may come to wait behind one that is slow all of a
// sudden; and it does not call others for a few records, since it is sooner back itself. After guardTime the alarm sees to both.
const (
	guardTime = int64(turnTime)
	backlog   = 64
)

// after is what is to be done when mu is released.
type after struct {
	wake    *dispatch.Task
	advance uint64 // to tell the gate, if it is not 0
	rested  bool
	leave   bool // to take the gate out
}

func (k *Keyed) unlock(a after) {
	k.mu.Unlock()
	if a.advance != 0 {
		k.gate.Advance(a.advance)
	}
	if a.wake != nil {
		a.wake.Wake()
	}
	if a.leave && !k.cfg.GateKept {
		k.part.RemoveGate(k.gate)
	}
	if a.rested {
		k.cfg.Rested.Broadcast()
	}
}

// next settles what the runner comes with and gives it something new.
func (k *Keyed) next(r *runner, now int64) (v verdict) {
	k.mu.Lock()
	k.comeBack(r, now)
	if r.thawed != nil {
		k.unread, k.unreadAt, r.thawed = r.thawed, r.frozen, nil
	}
	var a after
	switch {
	case k.ended || !k.started:
		v = goRest
	case k.cause != nil:
		v = k.stopped()
	case r.handled >= r.turn.look && r.turn.over(now, r.handled):
		v = goBehind
	default:
		v = k.give(r, now, &a)
	}
	if v != goOn {
		r.seg.Close() // before the gate lets the segment go: so it can be used again
		a.advance = k.advance()
	}
	switch v {
	case goOn:
		k.searching--
		r.state = runnerBusy
		k.busy++
		a.wake = k.provide(now, r.turn.step > 1)
	case goRest:
		if r.state != runnerIdle {
			k.setIdle(r)
		}
		a.rested = k.busy == 0
	case goEnd:
		k.end()
		a.rested = true
	}
	k.unlock(a)
	return v
}

// comeBack takes from a runner what it has, whatever it is.
func (k *Keyed) comeBack(r *runner, now int64) {
	switch r.state {
	case runnerIdle:
		k.take(r)
	case runnerBusy:
		n := int64(r.n)
		k.collect(r, 0)
		r.n = 0
		k.busy--
		k.searching++
		r.state = runnerSearching
		took := now - r.began
		k.n.busy += took
		if n > 0 && took > n*int64(lookTime) {
			r.turn.step, r.turn.look = 1, r.handled // no longer fast, if it was
		}
	}
	r.wish.Store(0)
}

// collect settles the records of a run that are over, and gives back those from begun on.
func (k *Keyed) collect(r *runner, begun int) {
	at := min(int(r.at.Load()), r.n)
	begun = min(max(begun, at), r.n)
	for ; r.settled < at; r.settled++ {
		it := &r.run[r.settled]
		k.win.settle(it)
		k.win.release(it)
		k.n.delivered++
		k.count(it)
	}
	k.win.giveBack(r.run[begun:r.n])
	r.n = begun
	k.show()
}

// count counts a delivery that is over.
func (k *Keyed) count(it *item) {
	if it.attempt > 1 {
		k.n.redelivered++
	}
}

// recall keeps a runner from beginning with anything before it has been at mu, and takes back what it has not begun with.
func (k *Keyed) recall(r *runner) {
	r.shut(wishLook)
	begun := 0
	if r.entered() { // before at; see the proof
		begun = 1
	}
	k.collect(r, begun+int(r.at.Load()))
}

// recallAll is recall for all that have something.
func (k *Keyed) recallAll() {
	for _, r := range k.runners {
		if r.state == runnerBusy {
			k.recall(r)
		}
	}
}

// stopped says what becomes of a runner of a lane that has been stopped.
func (k *Keyed) stopped() verdict {
	if k.busy > 0 {
		return goRest // the last of the others ends it
	}
	return goEnd
}

// end makes sure that nothing more happens.
func (k *Keyed) end() {
	k.ended = true
	if k.timer != nil {
		k.timer.Stop()
	}
	k.part.Committed().Cancel(k.rest)
	k.seg.Close()
	k.rec = segment.Record{} // these are views, which would keep memory
	for _, r := range k.runners {
		r.msg.Record = segment.Record{}
	}
}

// give gives a runner a run, or a gap to tell of.
func (k *Keyed) give(r *runner, now int64, a *after) verdict {
	if k.paused {
		return goRest
	}
	want := min(max(int(r.turn.look-r.handled), 1), maxStep)
	if k.cfg.AtMostOnce {
		want = 1 // since it settles what it takes
	}
	for {
		from := k.fill(want)
		r.began, r.settled = now, 0
		atomicx.StoreRelease(&r.at, 0)
		if len(k.gaps) > 0 {
			r.gap, k.gaps = k.gaps[0], k.gaps[1:]
			k.show()
			r.todo = 0
			atomicx.StoreRelease(&r.phase, inside)
			return goOn
		}
		if r.run == nil {
			r.run = make([]item, maxStep)
		}
		if r.n = k.win.take(r.run[:want]); r.n > 0 {
			if k.cfg.AtMostOnce {
				k.win.settle(&r.run[0])
				k.show()
			}
			if r.n > 1 {
				k.setAlarm(now+guardTime, now)
			}
			r.todo = r.n
			atomicx.StoreRelease(&r.phase, inside)
			return goOn
		}
		if from == frozen {
			r.frozen = k.win.read
			return goThaw
		}
		if from == exhausted && k.busy == 0 && k.win.floor() == k.win.read {
			k.cause = k.refused
			a.leave = true
			return k.stopped()
		}
		k.setIdle(r) // before register, as the proof says
		if from != caughtUp || k.register() {
			return goRest
		}
		k.take(r)
	}
}

// register has whoever publishes wake an idle runner, and returns false if somebody has published meanwhile.
func (k *Keyed) register() bool {
	k.part.Committed().Prepare(k.rest)
	if k.seg.RefillWarm() == segment.CaughtUp {
		return true
	}
	k.part.Committed().Cancel(k.rest)
	return false
}

// fill reads until that many records can be taken, if it can.
func (k *Keyed) fill(want int) supply {
	for k.win.avail < want {
		if k.win.full() {
			return blocked
		}
		if k.seg.Window() == 0 {
			switch state := k.seg.RefillWarm(); {
			case state == segment.Ready:
			case state == segment.Frozen && k.unread != nil && k.unreadAt == k.win.read:
				k.refused = k.part.Unreadable(k.unread)
				return exhausted
			case state == segment.Frozen:
				return frozen
			case state == segment.CaughtUp:
				return caughtUp
			case state == segment.Below && !k.part.Ended() && !k.cfg.ErrorOnGap:
				if !k.skip() {
					return blocked
				}
				continue
			default:
				k.refused = k.part.Refused(&k.seg, state)
				return exhausted
			}
		}
		k.seg.Next(&k.rec)
		if !k.win.add(k.rec.Key) {
			k.seg.Back(k.win.read)
			return blocked
		}
	}
	return more
}

// skip goes on behind what retention has dropped before it was read. It returns false if what is before that is not settled.
func (k *Keyed) skip() bool {
	first := k.part.Log().First()
	k.lose(first)
	if k.win.floor() != k.win.read {
		return false
	}
	k.note(k.win.pass(first))
	k.show()
	k.seg.Seek(first)
	return true
}

// lose takes what retention has dropped below first out of the window.
func (k *Keyed) lose(first uint64) {
	if first <= k.dropped {
		return
	}
	k.dropped = first
	for _, s := range k.win.lose(first) {
		k.note(s)
	}
	k.show()
}

// show shows the position: the floor, or where a gap begins that nobody has been told of, so that whoever goes on from there
// after this lane finds it as well.
func (k *Keyed) show() {
	p := k.win.floor()
	for _, g := range k.gaps {
		p = min(p, g.from)
	}
	if p > k.pos.Load() { // not if it has been settled before it was found to be gone
		k.pos.Store(p)
	}
}

// note notes a gap.
func (k *Keyed) note(s span) {
	if n := len(k.gaps); n > 0 && k.gaps[n-1].to == s.from {
		k.gaps[n-1].to = s.to
		return
	}
	k.gaps = append(k.gaps, s)
}

// advance returns what the gate is to be told, or 0.
func (k *Keyed) advance() uint64 {
	p := k.win.floor()
	if p <= k.gateAt || k.ended {
		return 0
	}
	k.gateAt = p
	if k.seg.Window() == 0 {
		k.seg.RefillWarm() // moves the pin; what else it finds the next one to fill finds, too
	}
	return p
}

// provide sees to it that what is left is not forgotten, and returns whom to wake. fast says that the runner that has just
// taken something is expected to be back soon.
func (k *Keyed) provide(now int64, fast bool) *dispatch.Task {
	switch {
	case len(k.idle) == 0 || k.searching > 0 || k.ended || !k.started:
		return nil
	case k.cause != nil && k.busy == 0:
		return k.callIdle() // to end it
	case k.cause != nil || k.paused:
		return nil
	}
	if fast && k.win.avail+k.seg.Window() < backlog {
		k.setAlarm(now+guardTime, now)
		return nil
	}
	from := k.fill(1)
	if k.win.avail > 0 || len(k.gaps) > 0 || from == frozen || from == caughtUp && !k.register() ||
		from == exhausted && k.busy == 0 {
		return k.callIdle()
	}
	return nil
}

// callIdle calls an idle runner back.
func (k *Keyed) callIdle() *dispatch.Task {
	r := k.idle[len(k.idle)-1]
	k.take(r)
	return r.task
}

// take takes a runner off the idle ones.
func (k *Keyed) take(r *runner) {
	for i := len(k.idle) - 1; i >= 0; i-- {
		if k.idle[i] == r {
			k.idle = append(k.idle[:i], k.idle[i+1:]...)
			break
		}
	}
	r.state = runnerSearching
	k.searching++
	k.setDuty()
}

// setIdle puts a runner to the idle ones.
func (k *Keyed) setIdle(r *runner) {
	r.state = runnerIdle
	k.searching--
	k.idle = append(k.idle, r)
	k.setDuty()
}

func (k *Keyed) setDuty() {
	if n := len(k.idle); n > 0 {
		k.duty.Store(k.idle[n-1].task)
	} else {
		k.duty.Store(nil)
	}
}

// setAlarm has the alarm ring at a time, or before.
func (k *Keyed) setAlarm(at, now int64) {
	if k.alarmAt != 0 && k.alarmAt <= at || k.ended {
		return
	}
	k.alarmAt = at
	d := time.Duration(max(at-now, 0))
	if k.timer == nil {
		k.timer = time.AfterFunc(d, k.alarm)
	} else {
		k.timer.Reset(d)
	}
}

// alarm makes ready what is due, and takes from slow runners what they have not begun with.
func (k *Keyed) alarm() {
	k.mu.Lock()
	var a after
	if !k.ended {
		now := k.cfg.Clock.Now()
		k.alarmAt = 0
		k.win.wake(now)
		for _, r := range k.runners {
			switch {
			case r.state != runnerBusy || r.n <= 1:
			case now-r.began >= guardTime:
				k.recall(r)
			default:
				k.setAlarm(r.began+guardTime, now)
			}
		}
		k.setAlarmForLate(now)
		a = after{wake: k.provide(now, false), advance: k.advance()}
	}
	k.unlock(a)
}

// setAlarmForLate has the alarm ring when the next failed record is due.
func (k *Keyed) setAlarmForLate(now int64) {
	if at, ok := k.win.late.Next(); ok {
		k.setAlarm(at, now)
	}
}
