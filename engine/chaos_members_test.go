package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/check"
)

// chaosMember is a member of a group.
type chaosMember struct {
	g      *chaosGroup
	m      *engine.Member
	pull   *engine.Consumer
	member check.Member
	left   atomic.Bool // somebody lets it leave
	joined atomic.Bool // m is set

	runners sync.Map // what tells one ownership from another, to an *ownedAs
	mu      sync.Mutex
	gens    map[place][]*ownedAs
}

// ownedAs is an ownership.
type ownedAs struct {
	generation uint64
	seen       bool         // something was delivered under it
	token      engine.Token // keeps what tells it from others from being used again
}

// generation returns under which generation the member got a record. The context is that of one ownership.
func (cm *chaosMember) generation(ctx context.Context, m *engine.Message) uint64 {
	var runner any = ctx
	known := uint64(0)
	if cm.pull != nil {
		known, runner = cm.pull.GenerationOf(m)
	}
	if gen, ok := cm.runners.Load(runner); ok {
		return gen.(*ownedAs).generation
	}
	cm.mu.Lock()
	defer cm.mu.Unlock()
	gens := cm.gens[place{m.Topic, int(m.Partition)}]
	if len(gens) == 0 {
		return 0 // it has no callbacks
	}
	at := len(gens) - 1
	var lost *engine.LostError
	switch {
	case known != 0:
		at = slices.IndexFunc(gens, func(o *ownedAs) bool { return o.generation == known })
	case cm.pull != nil || errors.As(context.Cause(ctx), &lost):
		// It is an earlier one perhaps, which was lost just now: the first of which nothing has come yet.
		for at > 0 && !gens[at-1].seen {
			at--
			cm.g.x.unclear.Store(true) // and perhaps it is not
		}
	}
	owned := gens[at]
	owned.seen, owned.token = true, m.Token()
	cm.runners.Store(runner, owned)
	return owned.generation
}

// callbacks lets the member write down what it is told.
func (cm *chaosMember) callbacks(c *engine.MemberConfig) {
	g, x := cm.g, cm.g.x
	owner := func(a engine.Assignment) check.Owner {
		return check.Owner{Consumer: g.consumer, Member: cm.member, Partition: x.topic(a.Topic).part(x, a.Partition), Gen: a.Generation}
	}
	trouble := func(a engine.Assignment) {
		d := newDice(x.seed, g.number, a.Generation)
		if !x.quiet.Load() && d.roll(8) == 0 {
			x.strike(faultCallbackSlow)
			d.pause(10 * time.Millisecond)
		}
	}
	c.OnAssigned = func(as []engine.Assignment) {
		cm.mu.Lock()
		for _, a := range as {
			x.notices.Assign(owner(a), a.Position)
			at := place{a.Topic, a.Partition}
			cm.gens[at] = append(cm.gens[at], &ownedAs{generation: a.Generation})
		}
		cm.mu.Unlock()
		trouble(as[0])
	}
	c.OnRevoked = func(as []engine.Assignment) {
		var open []check.Open
		for _, a := range as {
			open = append(open, x.notices.Revoke(owner(a)))
		}
		trouble(as[0])
		for _, o := range open {
			o.Ok()
		}
	}
	c.OnLost = func(as []engine.Assignment, cause error) {
		if !errors.Is(cause, engine.ErrFenced) {
			x.t.Errorf("lost: %v", cause)
		}
		for _, a := range as {
			x.strike(faultLost)
			x.notices.Lost(owner(a))
		}
		trouble(as[0])
	}
}

// leave lets the member leave, and writes down when it has. It does not wait.
func (cm *chaosMember) leave() {
	if cm.left.Swap(true) || cm.pull != nil { // one that polls sees it
		return
	}
	x := cm.g.x
	o := x.control.Leave(cm.g.consumer, cm.member)
	cm.m.Close()
	x.pending.Go(func() {
		<-cm.m.Done()
		o.Ok()
	})
}

// work polls, until the member has ended.
func (cm *chaosMember) work() {
	g := cm.g
	d := newDice(g.x.seed, g.number, uint64(cm.member))
	for {
		ctx, cancel := context.WithTimeout(background, time.Duration(1+d.roll(5))*time.Millisecond)
		ms, err := cm.pull.Poll(ctx, 1+d.roll(20))
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			cm.pull.Close()
			return
		}
		cm.process(g.x.handlers.Now(), ms, &d)
		if cm.left.Load() {
			o := g.x.control.Leave(g.consumer, cm.member)
			cm.pull.Close()
			<-cm.m.Done()
			o.Ok()
			return
		}
		if d.roll(10) == 0 && g.mode != engine.Manual {
			_ = cm.pull.Commit() // the error says what was lost, which OnLost does as well
		}
		if !g.x.quiet.Load() && g.hangs && d.roll(100) == 0 {
			g.x.strike(faultHang)
			time.Sleep(2 * chaosProgress)
		}
	}
}

// process does what a handler does with what was polled at a time: it takes records that follow each other for a batch, where
// that settles them, and otherwise each for itself.
func (cm *chaosMember) process(at int64, ms []engine.Message, d *dice) {
	for len(ms) > 0 {
		n := 1
		for n < len(ms) && ms[n].Partition == ms[0].Partition && ms[n].Topic == ms[0].Topic {
			n++
		}
		cm.partition(at, ms[:n], d)
		ms = ms[n:]
	}
}

// partition processes what was polled of one partition.
func (cm *chaosMember) partition(at int64, ms []engine.Message, d *dice) {
	g, x := cm.g, cm.g.x
	k := g.newCall(nil, cm, &ms[0])
	if g.windowed && !g.commit {
		for i := range ms {
			m := &ms[i]
			h := x.handlers.Pulled(at, k.owner, m.Offset, m.Attempt, m.Value)
			if g.mode == engine.Manual {
				k.acknowledge(m)
			}
			h.Ok()
		}
		return
	}
	for len(ms) > 0 {
		n := 1
		values := [][]byte{ms[0].Value}
		for ; n < len(ms) && ms[n].Offset == ms[0].Offset+int64(n); n++ {
			values = append(values, ms[n].Value)
		}
		h := x.handlers.Pulled(at, k.owner, ms[0].Offset, 0, values...)
		if !x.quiet.Load() && d.roll(50) == 0 {
			x.strike(faultSlow)
			d.pause(3 * time.Millisecond)
		}
		h.Ok()
		if g.commit && (d.roll(3) > 0 || x.quiet.Load()) {
			x.strike(faultCommit)
			next := ms[n-1].Offset + 1
			o := x.control.Commit(k.owner, next)
			err := cm.pull.CommitTo(ms[0].Topic, int(ms[0].Partition), next)
			switch {
			case errors.Is(err, engine.ErrFenced) && !errors.Is(err, engine.ErrNotAssigned): // some of them had been dropped, and the others are committed
				o.Unknown()
			case err != nil:
				o.Fail()
			default:
				o.Ok()
			}
			if err != nil {
				x.strike(faultFenced)
			}
		}
		ms = ms[n:]
	}
}
