package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
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
