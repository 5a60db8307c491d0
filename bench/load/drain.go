package load

import (
	"fmt"
	"runtime"
	"time"
)

// drain waits until everything that was sent has arrived, or nothing has come for as long as patience lasts, and returns
// when the last message came.
func (r *run) drain() int64 {
	const soon = 2 * time.Millisecond
	start := r.clock.Now()
	last, came := uint64(0), start
	for {
		now := r.clock.Now()
		if n := r.progress(); n != last {
			last, came = n, now
		}
		if r.arrived() {
			return came
		}
		if now-came >= int64(r.s.Patience) {
			return came
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
const closeLeast = 2 * time.Second

// stop closes the instance and waits for its readers. What is delivered twice at the very end still has a moment to come.
func (r *run) stop() error {
	time.Sleep(5 * time.Millisecond)
	if r.g != nil {
		r.g.close()
	}
	closed := make(chan error, 1)
	go func() { closed <- r.source.Close() }()
	go func() {
		r.reads.Wait()
		close(r.readsEnd)
	}()
	late := time.NewTimer(max(r.s.Patience, closeLeast))
	defer late.Stop()
	select {
	case err := <-closed:
		if err != nil {
			r.notes = append(r.notes, "closing the target: "+err.Error())
		}
	case <-late.C:
		return fmt.Errorf("%w: Close does not return", ErrStuck)
	}
	select {
	case <-r.readsEnd:
		return nil
	case <-late.C:
		return fmt.Errorf("%w: a Read does not return after Close", ErrStuck)
	}
}
