package partition

import (
	"context"
	"errors"
	"fmt"

	"github.com/leatlog/leat/engine/internal/storage"
	"github.com/leatlog/leat/internal/atomicx"
)

// What is different in a partition that keeps its records in files. The holder of the role waits for them in publish, so what
// has to be avoided is that somebody holds it who must not wait:
//
//   - A publish that never waits (TryPublish, PublishAsync) hands over, and so does one that may be cancelled. Only a Publish
//     that waits whatever comes appends by itself, which saves a hand-over where the partition is idle.
//   - A passer-by who has got the role by accident leaves it to the partition's goroutine (hold).
//   - The role is lent only if a commit does not wait for a sync, and only to a PublishAsync that would wait for room in the
//     hand-over whatever comes: for it there is no difference.
//
// The slots of the ring are given back before the write: what was in them is staged, and if it fails those who wait for it are told.
//
// The goroutine for its part stays awake for a while when publishers that wait have handed over to it lately.
//
// A publisher that is cancelled while the holder waits for the files leaves with ErrIndefinite: its bytes have been copied.
//
// # When a file fails
//
// What was staged is dropped, and those who wait for it are told that it is indefinite. From then on the partition is read-only:
// the state has a bit for that, so a publish finds out where it looks at the state anyway, and what is in the ring fails when
// its turn comes. Readers go on. Resume makes it writable again.

// mayAppend reports whether a publish may append by itself.
func (p *Partition) mayAppend(ctx context.Context) bool { return p.store == nil || ctx.Done() == nil }

// Store returns what keeps the records in files, or nil.
func (p *Partition) Store() *storage.Log { return p.store }

// Durable returns the offset below which everything survives a power cut: of a partition in memory, 0.
func (p *Partition) Durable() int64 {
	if p.store == nil {
		return 0
	}
	return int64(p.store.Durable())
}

// unwritable returns why nothing can be written to the files, or nil.
func (p *Partition) unwritable() error {
	if e := p.broken.Load(); e != nil {
		return *e
	}
	return nil
}

// Unwritable returns why nothing can be written to the files, or nil.
func (p *Partition) Unwritable() error { return p.unwritable() }

// ReadOnly reports whether nothing can be written to the files.
func (p *Partition) ReadOnly() bool { return p.unwritable() != nil }

// Broken is told by the store that nothing can be written any more. It waits for nobody.
func (p *Partition) Broken(err error) {
	p.broken.CompareAndSwap(nil, &err)
	p.state.Or(stateReadOnly) // after broken: refuse finds it
	p.room.Broadcast()        // who waits for room need not any more
	p.calls.room.Broadcast()
}

// commit writes what is staged, and tells those who wait for it if that fails. The caller holds the role.
func (p *Partition) commit() error {
	for _, r := range p.a.results {
		if r.req != nil && !r.req.owned {
			r.req.copy()
		}
	}
	p.a.lost = 0
	err := p.store.Commit(p.log)
	if err == nil {
		return nil
	}
	if cause := p.store.Err(); cause != nil {
		p.Broken(cause)
	}
	lost := p.log.Unpublished()
	p.log.Unstage()
	p.a.roomRecords = 0 // there is more than we thought
	for _, r := range p.a.results {
		switch {
		case r.req == nil:
			lost--
		case r.req.barrier:
			p.finish(r, nil) // what was before it has its result
			continue
		default:
			lost -= r.req.records
		}
		p.finish(r, err)
	}
	p.clearResults()
	if p.exclusive.Load() == nil && lost > 0 {
		p.a.lost = lost
		p.failed.Add(int64(lost)) // nobody waits for them, but for one's own: see toldOf
	}
	return err
}

// toldOf takes n records off those that have failed without anybody to tell: who appended them gets the error. It returns the error.
func (p *Partition) toldOf(n int, err error) error {
	if p.a.lost >= n {
		p.failed.Add(-int64(n))
	}
	return err
}

// passBy is hold in a partition with files: it would wait for them on behalf of others.
func (p *Partition) passBy() {
	p.runControls()
	if !p.release() {
		p.wake.Unpark()
	}
}

// holdWhole is hold for a publisher that has put something into the ring of a partition with files, and may wait for them: it does
// not need to wake the goroutine for that.
func (p *Partition) holdWhole() {
	p.runControls()
	if _, stuck := p.drain(p.batchMax); stuck || p.ring.Closed() || !p.release() {
		p.wake.Unpark()
	}
}

// park parks the goroutine until somebody leaves the role to it. If that has taken less time than a sync it would have done better to
// stay awake.
func (p *Partition) park() {
	if p.store == nil {
		p.wake.Park(nil)
		return
	}
	since := p.cfg.Clock.Now()
	p.wake.Park(nil)
	p.vigil.Note(p.cfg.Clock.Now()-since <= int64(p.store.SyncTime()))
}

// stayAwake waits a while for something to do, if that has been worth it lately, and reports whether there is something.
func (p *Partition) stayAwake() bool {
	for turn := p.vigil.Begin(); p.vigil.Again(&turn); {
		if p.ring.Claimed() || p.ring.Closed() || p.ctl.Load() != 0 {
			p.vigil.End(true)
			return true
		}
	}
	return false
}

// patience returns how a publisher waits for its result. One that knows that it waits for a sync parks at once: with many of them
// each look around costs all others time, and the holder most of all, who waits for them to come again.
func (p *Partition) patience() atomicx.Backoff {
	if p.store != nil && p.store.SyncTime() > longSync {
		return atomicx.Backoff{}
	}
	return atomicx.Backoff{Spins: 4, Yields: 16}
}

// longSync is a sync that takes longer than to park and to be woken, in ns.
const longSync = 20_000

// indefinite returns err so that it is ErrIndefinite.
func indefinite(err error) error {
	if errors.Is(err, storage.ErrIndefinite) {
		return err
	}
	return fmt.Errorf("%w: %w", err, storage.ErrIndefinite)
}

// leftBehind is the error of a publisher that has given up while the holder waited for the files.
func (p *Partition) leftBehind(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ended(ctx), storage.ErrIndefinite)
}

// Resume makes a partition writable again after its files have failed, if what caused that has gone. Records that were told to be
// indefinite may become visible by it. On a partition that works, or has no files, it does nothing.
func (p *Partition) Resume(ctx context.Context) error {
	if p.store == nil || p.unwritable() == nil {
		return nil
	}
	var failed error
	err := p.do(ctx, func() {
		if p.unwritable() == nil {
			return // somebody else was quicker
		}
		came, err := p.store.Resume(p.log)
		if err != nil {
			failed = err
			return
		}
		if came > 0 {
			p.a.roomRecords = 0
			if err := p.log.Publish(); err != nil {
				failed = p.refusal()
				return
			}
			p.committed.Broadcast()
			if p.timer != nil && p.a.age == ageUnset {
				p.armAge()
			}
		}
		p.state.And(^stateReadOnly)
		p.broken.Store(nil)
		if cause := p.store.Err(); cause != nil {
			p.Broken(cause) // it has failed again, and Broken came before the line above
		}
		p.room.Broadcast()
	})
	if err != nil {
		return err
	}
	return failed
}
