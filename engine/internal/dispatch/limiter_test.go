package dispatch_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine/internal/dispatch"
)

func TestNewLimiter_Refuses(t *testing.T) {
	assert.Panics(t, func() { newPool(t, 1).NewLimiter(0) })
}

func TestLimiter_MaxRunOthersWait(t *testing.T) {
	p := newPool(t, 4)
	l := p.NewLimiter(2)
	assert.Equal(t, 2, l.Max())
	var gates []*gate
	for range 4 {
		g := newGate(p, dispatch.Options{Limiter: l})
		gates = append(gates, g)
		g.Wake()
	}
	receive(t, gates[0].begun)
	receive(t, gates[1].begun)
	assert.Equal(t, dispatch.Waiting, gates[2].State())
	assert.Equal(t, dispatch.Waiting, gates[3].State())
	assert.Equal(t, 2, l.Held())
	assert.Equal(t, 2, l.Waiting())
	assert.Equal(t, 2, p.Running(), "those that wait hold no worker")
	assert.Equal(t, 0, p.Queued())

	free := newGate(p, dispatch.Options{})
	free.Wake()
	receive(t, free.begun)
	free.result <- false

	// A permit that comes free goes to the one that waits longest; the one that ran and wants more goes behind the rest.
	gates[1].result <- true
	receive(t, gates[2].begun)
	assert.Equal(t, dispatch.Waiting, gates[1].State())
	gates[0].result <- false
	receive(t, gates[3].begun)
	gates[2].result <- false
	assert.Equal(t, 2, receive(t, gates[1].begun))
	gates[1].result <- false
	gates[3].result <- false
	for _, g := range gates {
		await(t, "rest", g.Idle)
		assert.Equal(t, dispatch.Resting, g.State())
	}
	assert.Equal(t, 0, l.Held())
	assert.Equal(t, 0, l.Waiting())
}

func TestLimiter_WokenDuringRunGoesBehind(t *testing.T) {
	p := newPool(t, 2)
	l := p.NewLimiter(1)
	a, b := newGate(p, dispatch.Options{Limiter: l}), newGate(p, dispatch.Options{Limiter: l})
	a.Wake()
	receive(t, a.begun)
	b.Wake()
	a.Wake()
	a.result <- false
	assert.Equal(t, 1, receive(t, b.begun))
	assert.Equal(t, dispatch.Waiting, a.State())
	b.result <- false
	assert.Equal(t, 2, receive(t, a.begun))
	a.result <- false
}

func TestLimiter_StopHandsThePermitOn(t *testing.T) {
	p, release := blockedPool(t, 1)
	l := p.NewLimiter(1)
	var gates []*gate
	for range 4 {
		g := newGate(p, dispatch.Options{Limiter: l})
		gates = append(gates, g)
		g.Wake()
	}
	assert.Equal(t, dispatch.Queued, gates[0].State())
	gates[1].Stop() // it waits: it has no permit to hand on
	receive(t, gates[1].Done())
	assert.Equal(t, 2, l.Waiting())
	gates[0].Stop() // it is on the run queue, with the permit
	receive(t, gates[0].Done())
	assert.Equal(t, dispatch.Queued, gates[2].State())
	assert.Equal(t, dispatch.Waiting, gates[3].State())
	assert.Equal(t, 1, p.Queued())
	release()
	receive(t, gates[2].begun)
	gates[2].Stop() // it runs, and hands the permit on when it ends
	gates[2].result <- true
	receive(t, gates[3].begun)
	gates[3].result <- false
	await(t, "rest", gates[3].Idle)
	assert.Equal(t, 0, l.Held())
}

func TestLimiter_SharedWithDedicated(t *testing.T) {
	p := newPool(t, 1)
	l := p.NewLimiter(1)
	pooled := newGate(p, dispatch.Options{Limiter: l})
	own := newGate(p, dispatch.Options{Limiter: l, Dedicated: true})
	pooled.Wake()
	receive(t, pooled.begun)
	own.Wake()
	assert.Equal(t, dispatch.Waiting, own.State())
	for n := 1; n <= 3; n++ { // they take turns
		pooled.result <- true
		assert.Equal(t, n, receive(t, own.begun))
		own.result <- true
		assert.Equal(t, n+1, receive(t, pooled.begun))
	}
	own.Stop()
	receive(t, own.Done())
	pooled.result <- false
	await(t, "rest", pooled.Idle)
	assert.Equal(t, 0, l.Held())
}

// TestLimiter_NeverMore lets many tasks turn under a limit and counts how many are inside a run at a time.
func TestLimiter_NeverMore(t *testing.T) {
	const max, tasks, turns = 3, 50, 200
	p := newPool(t, 8)
	l := p.NewLimiter(max)
	var inside, most atomic.Int64
	var all sync.WaitGroup
	all.Add(tasks)
	for i := range tasks {
		left := turns
		p.NewTask(func() dispatch.Again {
			n := inside.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			defer inside.Add(-1)
			left--
			if left == 0 {
				all.Done()
			}
			return left > 0
		}, dispatch.Options{Limiter: l, Dedicated: i%10 == 0}).Wake()
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	receive(t, ended)
	assert.LessOrEqual(t, most.Load(), int64(max))
}
