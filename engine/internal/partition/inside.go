package partition

import "context"

// insider is a publish from inside a handler that waits.
type insider struct {
	gate   *Gate
	claims bool // it is on a worker of the pool, and waits for room in the ring
	abort  context.CancelCauseFunc
}

type originKey struct{}

// WithOrigin returns a context for a handler of the lane that owns g; a publish with it that would wait for g fails with
// ErrSelfBlock instead. g may be nil: then the context only says that it is a handler's. pooled says that the handler runs on a
// worker of the engine's pool; see Crowd.
func WithOrigin(ctx context.Context, g *Gate, pooled bool) context.Context {
	return context.WithValue(ctx, originKey{}, &origin{g, pooled})
}

type origin struct {
	gate   *Gate
	pooled bool
}

// pooled reports whether ctx is that of a handler on a worker of the pool.
func pooled(ctx context.Context) bool {
	o := originOf(ctx)
	return o != nil && o.pooled
}

func originOf(ctx context.Context) *origin {
	o, _ := ctx.Value(originKey{}).(*origin)
	return o
}

// enterInside registers a waiting publish that comes from a handler of this partition's own gating lane. The context it
// returns ends with ErrSelfBlock when the holder waits for that lane: the two would wait for each other for ever.
func (p *Partition) enterInside(ctx context.Context, claims bool) (context.Context, func()) {
	o := originOf(ctx)
	if o == nil || (o.gate == nil || o.gate.p != p) && !(claims && o.pooled) {
		return ctx, func() {}
	}
	inner, cancel := context.WithCancelCause(ctx)
	in := &insider{gate: o.gate, claims: claims && o.pooled, abort: cancel}
	p.insideMu.Lock()
	p.inside[in] = struct{}{}
	p.insideMu.Unlock()
	if in.claims {
		p.crowdIn()
	}
	if o.gate != nil && p.stuckOn.Load() == o.gate { // pairs with roomFor: it stores stuckOn, then looks at inside
		cancel(ErrSelfBlock)
	}
	return inner, func() {
		p.insideMu.Lock()
		delete(p.inside, in)
		p.insideMu.Unlock()
		cancel(nil)
	}
}

// abortInside ends the waiting publishes that come from a handler of g.
func (p *Partition) abortInside(g *Gate) {
	p.insideMu.Lock()
	defer p.insideMu.Unlock()
	for in := range p.inside {
		if in.gate == g {
			in.abort(ErrSelfBlock)
		}
	}
}
