package load

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"
)

// drain waits until everything that was sent has arrived, or nothing has come for as long as patience lasts, and returns
// when the last message came. It cuts the run when ctx has ended, and when it is handlers that would take too long.
func (r *run) drain(ctx context.Context) int64 {
	const soon = 2 * time.Millisecond
	start := r.clock.Now()
	last, came, still := uint64(0), start, quietFrom(start)
	limit := int64(math.MaxInt64)
	if c := &r.s.Group; c.Handler > 0 || c.Fail > 0 || r.g != nil && r.g.slows() { // it is not the target that takes its time
		limit = start + int64(r.s.drainMost())
	}
	for ended := false; ; {
		now := r.clock.Now()
		n := r.progress()
		nothing := still.look(now, n != last)
		if n != last {
			last, came = n, now
		}
		if r.arrived() {
			return came
		}
		if !ended && ctx.Err() != nil {
			ended, limit = true, min(limit, now+int64(afterInterrupt))
		}
		if nothing >= r.patience() && (r.g == nil || r.g.asleep.Load() == 0) {
			return came
		}
		// When all handlers that are left seem to wait for something, it is patience that says whether that comes.
		if now >= limit && (ended || r.g.asleep.Load() > 0 || nothing < r.patience()/2) {
			r.cut(now)
			return now
		}
		r.phase(now)
		if now-start < int64(soon) && !r.clock.exact {
			runtime.Gosched()
		} else {
			time.Sleep(soon / 4)
		}
	}
}

func (r *run) arrived() bool {
	if r.g != nil {
		return r.g.arrived()
	}
	for p := range r.s.Partitions {
		want := r.sentTo(p)
		for c := range r.s.Consumers() {
			if r.consumer(c)[p].accepted.Load() < want {
				return false
			}
		}
	}
	return true
}

// closeLeast is how long a target may take to close, however little patience there is with its messages.
const closeLeast = 10 * time.Second

// stop closes the instance and waits for its readers. What is delivered twice at the very end still has a moment to come. Where members
// go one after the other, each is progress.
func (r *run) stop(interrupt <-chan struct{}) error {
	time.Sleep(5 * time.Millisecond)
	if r.g != nil {
		r.g.close(interrupt)
	}
	closed := make(chan error, 1)
	go func() { closed <- r.source.Close() }()
	go func() {
		r.reads.Wait()
		close(r.readsEnd)
	}()
	const tick = 100 * time.Millisecond
	look := time.NewTicker(tick)
	defer look.Stop()
	interrupted, gone, still := false, 0, quietFrom(r.clock.Now())
	for what := "Close does not return"; ; {
		select {
		case err := <-closed:
			if err != nil {
				r.notes = append(r.notes, "closing the target: "+err.Error())
			}
			what, closed = "a Read does not return after Close", nil
		case <-r.readsDone(closed == nil):
			return nil
		case <-interrupt:
			interrupt, interrupted = nil, true
		case <-look.C:
		}
		n := gone
		if r.g != nil {
			n = r.g.gone()
		}
		nothing := still.look(r.clock.Now(), n != gone)
		if gone = n; nothing >= int64(r.closeTime(interrupted)) {
			return fmt.Errorf("%w: %s", ErrStuck, what)
		}
	}
}

// readsDone is closed when the readers have returned; nil until they may.
func (r *run) readsDone(closed bool) <-chan struct{} {
	if closed {
		return r.readsEnd
	}
	return nil
}
