package partition

import "context"

// control is something to be done by the holder of the role.
type control struct {
	run  func()
	err  error
	over chan struct{} // closed when it has run, or err says why not; may be nil
}

func (c *control) end(err error) {
	c.err = err
	if c.over != nil {
		close(c.over)
	}
}

// do runs f under the role and returns when it has run. It fails if the partition ends first, or with ctx.
func (p *Partition) do(ctx context.Context, f func()) error {
	c := &control{run: f, over: make(chan struct{})}
	if err := p.post(c); err != nil {
		return err
	}
	select {
	case <-c.over:
		return c.err
	case <-ctx.Done():
		return ctx.Err() // f may still run
	}
}

// post has c run under the role, by the caller if nobody holds it.
func (p *Partition) post(c *control) error {
	p.ctlMu.Lock()
	if p.over {
		p.ctlMu.Unlock()
		return p.Cause()
	}
	p.controls = append(p.controls, c)
	p.ctl.Store(1)
	p.ctlMu.Unlock()
	switch {
	case p.ring.TakeIdle(): // pairs with release: either it saw ctl, or we get the bit
		p.hold()
	case p.runByAppender():
	default:
		p.room.Broadcast() // a holder that waits for room runs controls; a busy one comes by
	}
	return nil
}

// runByAppender runs the waiting controls under the role of an open Appender, between two of its calls.
func (p *Partition) runByAppender() bool {
	x := p.exclusive.Load()
	if x == nil || !x.enter() {
		return false
	}
	p.runControls()
	x.leave()
	return true
}

// runControls runs what was posted. The caller holds the role.
func (p *Partition) runControls() {
	if p.ctl.Load() == 0 {
		return
	}
	p.ctlMu.Lock()
	p.ctl.Store(0)
	todo := p.controls
	p.controls = nil
	p.ctlMu.Unlock()
	for _, c := range todo {
		c.run()
		c.end(nil)
	}
}
