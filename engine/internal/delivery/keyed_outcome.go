package delivery

import (
	"errors"
	"math"
	"time"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// call calls the handler and turns a panic into an error.
func (k *Keyed) call(m *Message) (err error) {
	defer recovered(&err)
	return k.cfg.Handler.One(k.ctx, m)
}

// failed decides what becomes of the record at i of the run, whose handler has failed: it is tried again after a while, or
// given up. It is all decided before anybody is told, since who is told may end the goroutine; and the record's key is with
// this runner until all have been told.
func (r *runner) failed(i int, err error) {
	k, it := r.k, &r.run[i]
	defer r.through(i)
	attempt := int(it.attempt)
	r.view(it.off) // as it was before the handler had it
	r.msg.Attempt = attempt
	// When all workers wait the record has to wait, too. That is no fault of its own and does not count.
	crowded := errors.Is(err, partition.ErrWorkersBlocked)
	up := !k.cfg.AtMostOnce && k.ctx.Err() == nil && k.cfg.MaxDeliveries > 0 && attempt >= k.cfg.MaxDeliveries && !crowded

	k.mu.Lock()
	k.cut(r, i)
	k.n.failed++
	k.count(it)
	switch {
	case k.cfg.AtMostOnce: // settled before the call, whatever came of it
	case up && k.cfg.Bury != nil:
		k.keep(it, attempt, k.lastBackoff(), err)
	case up:
		k.n.dropped++
		k.settle(it)
	default:
		if crowded {
			attempt--
		}
		k.keep(it, attempt, k.cfg.Backoff[max(min(attempt, len(k.cfg.Backoff))-1, 0)], nil)
	}
	k.mu.Unlock()

	if k.cfg.OnFailure != nil {
		k.cfg.OnFailure(k.ctx, &r.msg, err)
	}
	switch {
	case up && k.cfg.Bury != nil:
		r.bury(it, err)
	case up && k.cfg.OnDrop != nil:
		k.cfg.OnDrop(k.ctx, &r.msg, err)
	}
}

// buryAgain tries to give away the record at i of the run, which could not be buried before.
func (r *runner) buryAgain(i int) {
	k, it := r.k, &r.run[i]
	defer r.through(i)
	k.mu.Lock()
	k.cut(r, i)
	k.keep(it, int(it.attempt)-1, k.lastBackoff(), it.dying)
	k.mu.Unlock()
	r.msg.Attempt = int(it.attempt) - 1
	r.bury(it, it.dying)
}

// bury gives away a record that has been given up; if that fails the record comes again, for the same purpose.
func (r *runner) bury(it *item, cause error) {
	k := r.k
	attempt := r.msg.Attempt
	err := k.cfg.callBury(k.ctx, &r.msg, cause)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.keep(it, attempt, k.lastBackoff(), cause)
		return
	}
	k.n.buried++
	k.settle(it)
}

// miss is told that the record at i of the run has been dropped by retention, or cannot be read, as state says.
func (r *runner) miss(i int, state segment.State) {
	k, it := r.k, &r.run[i]
	defer r.leave()
	k.mu.Lock()
	k.cut(r, i)
	k.release(r, i)
	if k.cause != nil || k.win.stale(it) { // whoever comes here next finds it
		k.mu.Unlock()
		return
	}
	if state == segment.Unreadable || k.cfg.ErrorOnGap || k.part.Ended() {
		k.mu.Unlock()
		k.Stop(k.part.Refused(&r.seg, state))
		return
	}
	if it.settled { // under AtMostOnce, before the call
		k.win.lost++
		k.note(span{it.off, it.off + 1})
	}
	k.dropped = 0 // it was with this runner when others were looked for
	k.lose(k.part.Log().First())
	k.mu.Unlock()
}

// through says that the runner is through with the record at i of its run, which was not a plain success.
func (r *runner) through(i int) {
	k := r.k
	k.mu.Lock()
	k.release(r, i)
	k.setAlarmForLate(k.cfg.Clock.Now())
	k.mu.Unlock()
	r.leave()
}

// The following are for holders of mu.

// cut settles what comes before the record at i of a run, and gives back what comes behind it.
func (k *Keyed) cut(r *runner, i int) { k.collect(r, i+1) }

// release ends a run with the record at i.
func (k *Keyed) release(r *runner, i int) {
	k.win.release(&r.run[i])
	r.settled = i + 1
	atomicx.StoreRelease(&r.at, uint64(i)+1)
}

func (k *Keyed) settle(it *item) {
	k.win.settle(it)
	k.show()
}

// keep keeps a record for a while.
func (k *Keyed) keep(it *item, attempt int, wait time.Duration, dying error) {
	now := k.cfg.Clock.Now()
	k.win.delay(it, int32(attempt), now+min(int64(wait), math.MaxInt64-now), dying)
}

func (k *Keyed) lastBackoff() time.Duration { return k.cfg.Backoff[len(k.cfg.Backoff)-1] }

// why returns what ended the lane.
func (k *Keyed) why() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cause
}
