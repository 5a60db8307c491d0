package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/check"
)

// chaosGroup is a group of a run.
type chaosGroup struct {
	*engine.Group
	*chaosConsumer
	topics []string
	keyed  bool // its members work by key
	polls  bool // its members poll, at least some of them
	commit bool // they all do, and commit by hand
	bare   bool // its members have no callbacks

	// Nobody loses anything but with a topic. Elsewhere that may happen while the revoked callback is on its way, so only here
	// it can be checked that nobody gets a partition before that.
	patient bool

	mu      sync.Mutex
	members []*chaosMember
	named   int
}

// groupAll makes groups of all kinds.
func (x *chaosRun) groupAll(rng *rand.Rand) {
	add := func(name string, kind check.ConsumerKind, mode engine.Mode, how func(g *chaosGroup)) {
		g := &chaosGroup{chaosConsumer: &chaosConsumer{name: name, kind: kind, mode: mode}}
		how(g)
		x.addGroup(rng, g)
	}
	plain := func(*chaosGroup) {}
	for _, mode := range []engine.Mode{engine.AtLeastOnce, engine.AtMostOnce, engine.Manual} {
		pulled := func(g *chaosGroup) {
			g.polls = mode == engine.Manual || rng.IntN(2) == 0
			// What was polled and lost counts as a delivery that failed, which the log cannot tell from one that did not.
			g.forever = g.polls && mode == engine.AtLeastOnce
		}
		add(fmt.Sprint("assigned-", mode), check.Assigned, mode, pulled)
		add(fmt.Sprint("shared-", mode), check.Shared, mode, func(g *chaosGroup) { g.polls = true })
	}
	add("keyed", check.Assigned, engine.AtLeastOnce, func(g *chaosGroup) { g.keyed = true })
	add("pushed", check.Assigned, engine.AtLeastOnce, plain)
	add("commit", check.Assigned, engine.Manual, func(g *chaosGroup) { g.polls, g.commit, g.forever = true, true, true })
	add("bare", check.Assigned, engine.AtLeastOnce, func(g *chaosGroup) { g.bare, g.polls, g.forever = true, true, true })
	for _, g := range x.groups {
		for range 2 {
			g.join(rng, false)
		}
	}
}

// addGroup makes a group.
func (x *chaosRun) addGroup(rng *rand.Rand, g *chaosGroup) {
	for _, ct := range x.topics {
		g.topics = append(g.topics, ct.Name())
	}
	if rng.IntN(3) == 0 {
		g.topics = g.topics[:1]
	}
	g.choose(rng)
	c := engine.GroupConfig{
		Topics: g.topics, Kind: engine.Assigned, Mode: g.mode, Start: engine.Earliest(), Backoff: g.backoff(), Grace: time.Duration(1+rng.IntN(10)) * time.Millisecond,
		OnGap: g.gap, RevokeTimeout: time.Duration(1+rng.IntN(20)) * time.Millisecond, Assignor: engine.Assignor(rng.IntN(3)),
		NonGating: rng.IntN(4) == 0,
	}
	if g.kind == check.Shared {
		c.Kind = engine.Shared
	}
	g.patient = g.kind == check.Assigned && rng.IntN(3) == 0
	switch {
	case g.patient:
		c.RevokeTimeout = time.Hour
	case g.kind == check.Assigned && rng.IntN(2) == 0:
		g.hangs = true
		c.ProgressTimeout = chaosProgress
	}
	cfg := check.ConsumerConfig{ByKey: g.keyed, Handlers: chaosHandlers, Held: g.polls, Impatient: !g.patient}
	kind := g.kind
	switch {
	case g.commit:
		g.hurried = false
	case g.bare: // nobody says when somebody has what, so that only what comes of it can be checked
		g.kind, g.hurried = check.Shared, true
	}
	g.register(x, cfg)
	if g.commit {
		cfg.Kind, cfg.Mode = check.Assigned, check.ByCommit
		g.consumer = x.rec.Consumer(g.name, cfg)
	}
	g.kind = kind
	g.windowed = g.windowed && !g.bare
	c.MaxDeliveries, c.DeadLetter, c.DeadLetterRejected = g.deliveries(), g.deadLetter(), g.rejected
	c.Settling = g.settling(rng)
	g.Group = newGroup(x.t, x.e, g.name, c, g.topics...)
	x.groups = append(x.groups, g)
}

// reads reports whether the group reads a topic.
func (g *chaosGroup) reads(ct *chaosTopic) bool { return slices.Contains(g.topics, ct.Name()) }

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

// join lets another member in. A plain one reads everything and stays.
func (g *chaosGroup) join(rng *rand.Rand, plain bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(cm *chaosMember) bool { return cm.m.Err() != nil })
	if len(g.members) >= 4 {
		return
	}
	g.named++
	x := g.x
	cm := &chaosMember{g: g, gens: map[place][]*ownedAs{}}
	c := engine.MemberConfig{Name: fmt.Sprint("m", g.named)}
	if !plain {
		c.NoRejoin = rng.IntN(3) == 0
		c.Dedicated = rng.IntN(8) == 0
		c.MaxConcurrency = rng.IntN(4)
		if len(g.topics) > 1 && rng.IntN(5) == 0 {
			c.Topics = g.topics[rng.IntN(len(g.topics)):][:1]
		}
		if g.Config().Kind == engine.Assigned && !g.patient && rng.IntN(2) == 0 {
			c.Static, c.Name = true, fmt.Sprint("s", rng.IntN(3))
		}
	}
	cm.member = x.rec.Member(fmt.Sprintf("%s/%s.%d", g.name, c.Name, g.named))
	if !g.bare {
		cm.callbacks(&c)
	}
	var err error
	if g.commit || g.polls && rng.IntN(2) == 0 {
		if cm.pull, err = g.Consumer(c); err == nil {
			cm.m = cm.pull.Member
			x.pending.Go(cm.work)
		}
	} else {
		var h engine.Handler = engine.HandlerFunc(func(ctx context.Context, m *engine.Message) error { return g.handle(ctx, cm, m) })
		switch {
		case g.keyed && rng.IntN(4) > 0:
			c.ByKey = engine.Parallelism{Handlers: 1 + rng.IntN(chaosHandlers), MaxInFlight: rng.IntN(50)}
		case rng.IntN(4) == 0:
			c.BatchSize = 1 + rng.IntN(10)
			h = batchFunc(func(ctx context.Context, ms []engine.Message) error { return g.handleBatch(ctx, cm, ms) })
		}
		cm.m, err = g.Join(h, c)
	}
	switch {
	case err == nil:
	case errors.Is(err, engine.ErrClosed), errors.Is(err, engine.ErrMemberExists), errors.Is(err, engine.ErrTopicDeleted):
		return
	default:
		x.t.Errorf("join: %v", err)
		return
	}
	x.strike(faultJoin)
	cm.joined.Store(true)
	g.members = append(g.members, cm)
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

// take takes a member at random off the list.
func (g *chaosGroup) take(rng *rand.Rand) *chaosMember {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.members) == 0 {
		return nil
	}
	i := rng.IntN(len(g.members))
	cm := g.members[i]
	g.members = slices.Delete(g.members, i, i+1)
	return cm
}

// any returns a member at random.
func (g *chaosGroup) any(rng *rand.Rand) *chaosMember {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.members) == 0 {
		return nil
	}
	return g.members[rng.IntN(len(g.members))]
}

// leave lets a member leave.
func (g *chaosGroup) leave(rng *rand.Rand) {
	if cm := g.take(rng); cm != nil {
		g.x.strike(faultLeave)
		cm.leave()
	}
}

// evict puts a member out.
func (g *chaosGroup) evict(rng *rand.Rand) {
	if g.patient {
		g.leave(rng)
		return
	}
	cm := g.take(rng)
	if cm == nil {
		return
	}
	g.x.strike(faultEvict)
	var open []check.Open
	if g.Config().Kind == engine.Shared || g.bare { // nobody tells the others
		for _, t := range g.topics {
			for i := range chaosPartitions {
				open = append(open, g.x.control.Fence(check.Owner{Consumer: g.consumer, Member: cm.member, Partition: g.x.topic(t).part(g.x, i)}))
			}
		}
	}
	err := g.Evict(cm.m.Name())
	for _, o := range open {
		o.Ok()
	}
	if err != nil && !errors.Is(err, engine.ErrUnknownMember) && !errors.Is(err, engine.ErrClosed) {
		g.x.t.Errorf("evict: %v", err)
	}
	<-cm.m.Done()
}

// where chooses a partition, and an offset in it.
func (g *chaosGroup) where(rng *rand.Rand) (ct *chaosTopic, i int, to engine.Offset, ok bool) {
	ct = g.x.topic(g.topics[rng.IntN(len(g.topics))])
	i = rng.IntN(ct.Partitions())
	p, err := ct.Partition(i)
	if err != nil {
		return nil, 0, 0, false
	}
	first, next := p.First(), p.Next()
	return ct, i, first + rng.Int64N(next-first+1), true
}

// reset sets a position by force.
func (g *chaosGroup) reset(rng *rand.Rand) {
	if g.patient {
		g.seek(rng)
		return
	}
	ct, i, to, ok := g.where(rng)
	if !ok {
		return
	}
	g.x.strike(faultReset)
	g.excuse(ct.Name(), i)
	o := g.x.control.Seek(g.consumer, ct.part(g.x, i), to)
	_ = o.Done(g.x.e.ResetOffsets(g.Name(), ct.Name(), engine.At(to), engine.ResetOptions{Partitions: []int{i}, Force: true}))
}

// seek lets a member set a position.
func (g *chaosGroup) seek(rng *rand.Rand) {
	ct, i, to, ok := g.where(rng)
	cm := g.any(rng)
	if !ok || cm == nil {
		return
	}
	g.excuse(ct.Name(), i)
	o := g.x.control.Seek(g.consumer, ct.part(g.x, i), to)
	if o.Done(cm.m.Seek(ct.Name(), i, engine.At(to))) == nil {
		g.x.strike(faultMemberSeek)
	}
}

// pause lets a member pause a topic for a while.
func (g *chaosGroup) pause(rng *rand.Rand) {
	cm := g.any(rng)
	if cm == nil {
		return
	}
	g.x.strike(faultMemberPause)
	topic := g.topics[rng.IntN(len(g.topics))]
	_ = cm.m.Pause(topic)
	time.AfterFunc(time.Duration(rng.IntN(4))*time.Millisecond, func() { _ = cm.m.Resume(topic) })
}

// putOut and ended are the hooks.
func (x *chaosRun) putOut(string, string) { x.strike(faultPutOut) }

func (x *chaosRun) ended(_, _ string, cause error) {
	if errors.Is(cause, engine.ErrReplaced) {
		x.strike(faultReplaced)
	}
}

// ensure sees to it that the group has members that read everything.
func (g *chaosGroup) ensure() {
	rng := rand.New(rand.NewPCG(g.x.seed, g.number))
	for cm := g.take(rng); cm != nil; cm = g.take(rng) {
		cm.leave()
		<-cm.m.Done()
	}
	for range 2 {
		g.join(rng, true)
	}
}

// settled checks where the group is in the end.
func (g *chaosGroup) settled(log *check.Log, topic string, i int, cp check.Partition, end engine.Offset) {
	c := log.Committed(g.consumer, cp)
	at, err := g.Committed(topic, i)
	require.NoError(g.x.t, err)
	c.Is(at)
	require.Equal(g.x.t, end, at, "seed %d: group %s, %s/%d", g.x.seed, g.name, topic, i)
}
