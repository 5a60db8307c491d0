package partition

import (
	"context"
	"runtime/debug"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/internal/atomicx"
)

// calls runs the callbacks of PublishAsync: in offset order, one at a time, on the worker pool and never under the role,
// since they are user code. How many may be outstanding is bounded, so that slow callbacks slow their publishers down and
// nothing else.
type calls struct {
	p    *Partition
	task *dispatch.Task

	mu    atomicx.Mutex
	queue []call // under mu: results in order, appended by the holder of the role

	// Touched only inside the task's run.
	running []call
	next    int

	// pending counts callbacks from their admission until they are about to run. Added to by publishers and by the task;
	// read by publishers that wait. It publishes no memory.
	pending atomicx.Int64
	// room is broadcast when pending has gone down.
	room atomicx.Event
}

type call struct {
	done Done
	off  int64
	err  error
}

// maxPending is how many callbacks may be outstanding.
const maxPending = 4096

func (c *calls) init(p *Partition) {
	c.p = p
	c.task = p.cfg.Workers.NewTask(c.run, dispatch.Options{})
}

// enter admits one callback, and waits while too many are outstanding. A callback that publishes is let in at once: it
// would wait for itself.
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
		if c.here() {
			c.pending.Add(1)
			return nil
		}
		if w == nil {
			w = atomicx.NewWaiter()
		}
		c.room.Prepare(w)
		if c.pending.Load() < maxPending {
			c.room.Cancel(w)
			continue
		}
		if !c.room.Wait(w, ctx.Done()) {
			return context.Cause(ctx)
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
	c.queue = append(c.queue, call{done, off, err})
	c.mu.Unlock()
	c.task.Wake()
}

// flush returns once every callback that was queued before has run.
func (c *calls) flush(ctx context.Context) error {
	ran := make(chan struct{})
	c.pending.Add(1)
	c.add(func(int64, error) { close(ran) }, 0, nil)
	select {
	case <-ran:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run is the task. If a callback ends its goroutine (runtime.Goexit), the next run goes on behind it.
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
	defer c.mu.Unlock()
	return len(c.queue) > 0
}

func (c *calls) call(do call) {
	defer func() {
		if v := recover(); v != nil && c.p.cfg.Panicked != nil {
			c.p.cfg.Panicked(v, debug.Stack())
		}
	}()
	do.done(do.off, do.err)
}

// FlushCallbacks returns when every callback that was queued before it has run.
func (p *Partition) FlushCallbacks() { _ = p.calls.flush(context.Background()) }

// End takes the partition's callbacks off the workers. Call it after FlushCallbacks.
func (p *Partition) End() { p.calls.task.Stop() }
