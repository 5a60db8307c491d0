package rivals

import (
	"context"

	"github.com/leatlog/leat/bench/rivals/arena"
	"github.com/leatlog/leat/internal/atomicx"
)

// looking is how to wait for something that can only be asked again and again. It waits as Leat's readers and package
// baseline's ring do, so that no rival without a wait of its own is worse off for ours.
type looking struct {
	ctx   context.Context
	back  atomicx.Backoff
	turns uint32
}

func look(ctx context.Context, w arena.Wait) looking { return looking{ctx: ctx, back: w.Backoff()} }

// again passes one turn, and reports false if the slice has failed.
func (l *looking) again() bool {
	l.back.Again()
	l.turns++
	return l.turns&1023 != 0 || l.ctx.Err() == nil
}

// found starts over.
func (l *looking) found() { l.back.Reset() }
