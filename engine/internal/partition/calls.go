package partition

import (
	"context"
	"runtime/debug"
	"slices"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/internal/atomicx"
)

// calls runs the callbacks of PublishAsync: in offset order, one at a time, on the worker pool and never under the role,
// since they are user code. How many may be outstanding is bounded, so that slow callbacks slow their publishers down and
// nothing else.
//
// # Proof
//
// Once each, in order. A callback is queued by the holder of the role when its record is published or has failed, so the
// queue is in the order of the log. Only the task takes from it, one run after the other (see package dispatch), and it
// moves on before it calls: one that panics or ends its goroutine is behind it, and the next run begins with the next.
//
// None is forgotten. Each is queued, under mu, before a Wake. A run that finds the queue empty, under mu, and what it took
// from it done, has run all that were queued before; a later one is queued before a Wake that brings another run.
//
// The end. After the partition's end nobody queues a callback: that takes the role. If a run is due or in progress by then,
// the one that finds the queue empty sets over, under the same hold of mu, and stops the task; if none is, all have run, and
// end does so itself. Whoever comes to flush later finds over and has nothing to wait for. If the workers go first, the
// task's Done ends the wait, and what is left in the queue says whether a callback has been cut off.
type calls struct {
	p    *Partition
	task *dispatch.Task

	mu     atomicx.Mutex
	queue  []call // under mu: results in order, appended by the holder of the role
	due    bool   // under mu: something was queued, and no run has found the queue empty since
	ending bool   // under mu: the partition has ended
	over   bool   // under mu: and all callbacks have run

	// Touched only inside the task's run.
	running []call
	next    int

	// pending counts callbacks from their admission until they are about to run. Added to by publishers and by the task;
	// read by publishers that wait. It publishes no memory.
	pending atomicx.Int64
	// room is broadcast when pending has gone down, and when the partition closes.
	room atomicx.Event
}

type call struct {
	done Done
	off  int64
	err  error
	ran  chan struct{} // of a flush, which has no done: to be closed
}

// maxPending is how many callbacks may be outstanding.
const maxPending = 4096

func (c *calls) init(p *Partition) {
	c.p = p
	c.task = p.cfg.Workers.NewTask(c.run, dispatch.Options{})
}

// enter admits one callback, and waits while too many are outstanding. Who publishes from a callback is let in at once: it
// keeps a worker, and that may be the one they need.
func (c *calls) enter(ctx context.Context) error {
	var w *atomicx.Waiter
	for {
		n := c.pending.Load()
		if n < maxPending {
			if c.pending.CompareAndSwap(n, n+1) {
				return nil
			}
			continue
		}
		if c.p.cfg.Workers.OnWorker() {
			c.pending.Add(1)
			return nil
		}
		if w == nil {
			w = atomicx.NewWaiter()
		}
		c.room.Prepare(w)
		if err := c.p.refuse(ctx); err != nil { // pairs with end: it sets the state, then broadcasts
			c.room.Cancel(w)
			return err
		}
		if c.pending.Load() < maxPending {
			c.room.Cancel(w)
			continue
		}
		if !c.room.Wait(w, ctx.Done()) {
			return ctx.Err()
		}
	}
}

// leave takes back an enter whose publish was refused.
func (c *calls) leave() {
	c.pending.Add(-1)
	c.room.Broadcast()
}

// here reports whether the calling goroutine is running a callback of this partition.
func (c *calls) here() bool { return c.task.RunningHere() }

// add queues a callback that was admitted.
func (c *calls) add(done Done, off int64, err error) {
	c.mu.Lock()
	c.queue = append(c.queue, call{done: done, off: off, err: err})
	c.due = true
	c.mu.Unlock()
	c.task.Wake()
}

// flush returns once every callback that was queued before has run.
func (c *calls) flush(ctx context.Context) error {
	ran := make(chan struct{})
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return nil
	}
	c.pending.Add(1)
	c.queue = append(c.queue, call{ran: ran})
	c.due = true
	c.mu.Unlock()
	c.task.Wake()
	select {
	case <-ran:
		return nil
	case <-c.task.Done(): // no callback runs any more
		if c.cutShort() {
			return c.p.refusal()
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cutShort reports whether the task was stopped before all callbacks had run. It is called after the task's Done.
func (c *calls) cutShort() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	isCallback := func(do call) bool { return do.done != nil }
	return slices.ContainsFunc(c.running[c.next:], isCallback) || slices.ContainsFunc(c.queue, isCallback)
}

// end says that the holder of the role queues no more.
func (c *calls) end() {
	c.mu.Lock()
	c.ending = true
	c.over = !c.due
	over := c.over
	c.mu.Unlock()
	if over {
		c.task.Stop()
	}
}

// run is the task.
func (c *calls) run() dispatch.Again {
	if c.next == len(c.running) {
		c.mu.Lock()
		clear(c.running)
		c.running, c.queue = c.queue, c.running[:0]
		c.mu.Unlock()
		c.next = 0
	}
	for c.next < len(c.running) {
		do := c.running[c.next]
		c.next++
		c.pending.Add(-1)
		c.room.Broadcast()
		c.call(do)
	}
	c.mu.Lock()
	more := len(c.queue) > 0
	c.due = more
	c.over = c.ending && !more
	over := c.over
	c.mu.Unlock()
	if over {
		c.task.Stop()
	}
	return dispatch.Again(more)
}

func (c *calls) call(do call) {
	defer func() {
		if v := recover(); v != nil && c.p.cfg.Panicked != nil {
			c.p.cfg.Panicked(v, debug.Stack())
		}
	}()
	switch {
	case do.ran != nil:
		close(do.ran)
		return
	case do.err != nil:
		do.done(Published{}, do.err)
		return
	}
	do.done(Published{Partition: c.p.cfg.Index, Offset: do.off}, nil)
}

// End takes the partition's callbacks off the workers, those that have not run, too. A partition that has ended does so by
// itself once they have.
func (p *Partition) End() { p.calls.task.Stop() }

// FlushCallbacks returns when every callback that was queued before it has run, or the workers have gone.
func (p *Partition) FlushCallbacks() { _ = p.calls.flush(context.Background()) }

// InCallback reports whether a callback is running.
func (p *Partition) InCallback() bool { return p.calls.task.State() == dispatch.Running }
