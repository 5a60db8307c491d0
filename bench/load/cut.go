package load

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A run is cut when it waits no longer for messages that are under way: since it was interrupted, or since handlers would take too
// long. What has not arrived, or not been processed, is unfinished then, and not lost: nobody knows what would have become of it.

const (
	// afterInterrupt is how long an interrupted run waits for what was sent to arrive.
	afterInterrupt = 2 * time.Second
	// stuckInterrupted is for how long nothing may move, before that and once the run is interrupted, until a producer's Publish is
	// cancelled.
	stuckInterrupted = time.Second
)

// cut cuts the run: what happens from now on counts no more, and handlers sleep no more.
func (r *run) cut(now int64) {
	if r.isCut {
		return
	}
	r.isCut = true
	r.atCut = r.mark()
	r.atCut.at = now
	if r.g != nil {
		r.g.cut(now)
	}
}

// patience is for how long nothing may move before what has not come is lost. A message of a group may come again only after a
// while.
func (r *run) patience() int64 {
	c := &r.s.Group
	return int64(r.s.Patience + c.Backoff + c.Timeout)
}

// drainMost is how long handlers may take for the rest, however much they get done: as long as the run, but not less than patience.
func (s *Scenario) drainMost() time.Duration {
	return max(s.Patience, defaultPatience, s.Warmup+s.Duration)
}

// closeTime is for how long a Close, or an opening, may show no progress.
func (r *run) closeTime(interrupted bool) time.Duration {
	d := max(r.s.Patience, closeLeast)
	if interrupted {
		d = min(d, defaultPatience)
	}
	return d
}

// canceledByUs reports whether a producer was ended by the interruption: its last message is given up, and that is no failure.
func (r *run) canceledByUs(err error) bool {
	return r.pulled && errors.Is(err, context.Canceled)
}

// cutNote says what was cut.
func (r *run) cutNote(res *Result) {
	if res.Unfinished == 0 {
		return
	}
	why := "handlers were still at work, or would have been for too long"
	if res.Interrupted {
		why = "the run was ended"
	}
	res.Notes = append(res.Notes, fmt.Sprintf("%s when %s: latencies are those of the others", res.unfinished(), why))
}

// waitFor calls f, which waits for something that should come soon, and reports whether it has returned in time. There is less of that
// once the run is interrupted.
func (r *run) waitFor(ctx context.Context, f func()) bool {
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	late := time.NewTimer(r.closeTime(false))
	defer late.Stop()
	for interrupt := ctx.Done(); ; {
		select {
		case <-done:
			return true
		case <-late.C:
			return false
		case <-interrupt:
			interrupt = nil
			late.Reset(r.closeTime(true))
		}
	}
}

// unfinished says what is unfinished.
func (r *Result) unfinished() string {
	if r.Group != nil && r.Group.Kind != Broadcast {
		return count(int(r.Unfinished), "message") + " sent and not processed"
	}
	if r.Unfinished == 1 {
		return "1 delivery still to come"
	}
	return fmt.Sprintf("%d deliveries still to come", r.Unfinished)
}
