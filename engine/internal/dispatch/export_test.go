package dispatch

import "github.com/leatlog/leat/internal/atomicx"

// Inside is what tests may know of a pool's bookkeeping. Dedicated tasks count in Known only.
type Inside struct {
	Parked    int // workers on the parked stack
	Searching int
	Known     int // goroutines that OnWorker knows
}

// Inside returns a pool's bookkeeping.
func (p *Pool) Inside() Inside {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := Inside{Searching: p.shared.searching, Known: len(p.byID)}
	for w := p.shared.parked; w != nil; w = w.below {
		in.Parked++
	}
	return in
}

// StopBeforeLink stops a task at rest in the middle of a Wake: after the waker has made it queued, before it has put it on
// a list. It returns when both are through.
func (t *Task) StopBeforeLink() {
	woken := make(chan struct{})
	t.pool.mu.Lock()
	go func() {
		t.Wake()
		close(woken)
	}()
	for turn := uint32(0); t.state.Load() != queued; turn++ {
		atomicx.Relax(turn)
	}
	wake, own := t.stop()
	t.pool.mu.Unlock()
	wake.unpark()
	own.unpark()
	<-woken
}
