package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/names"
	"github.com/leatlog/leat/internal/mutant"
)

// Group is a consumer group: members that share the records of some topics. A position belongs to the group, for each
// partition, and outlives its members. All its methods may be called from any goroutine, handlers included.
//
// # Who does what
//
// The coordinator (group.Assigned) decides who has which partition; it, and everything here, is under mu. What it decides is
// carried out by apply, at once as far as it takes no code of the user's: a claim is one member's time with one partition,
// with a runner of its own that starts at the position and ends with it. Callbacks run on a goroutine that the member has
// while there are any, under no lock, one at a time; when one has returned the claim goes on from there.
//
// Under mu there are taken: the locks of runners and shares, of gates, and those that are innermost. Nobody who holds one of
// these takes mu: the end of a runner is told under no lock, the alarm rings under none. Topic.mu comes before mu.
type Group struct {
	// Immutable after CreateGroup.
	e    *Engine
	name string
	cfg  GroupConfig
	bury func(ctx context.Context, m *Message, err error) error

	entry *groupEntry // in the catalog; nil if the topics are in memory
	alarm due.Alarm
	ready bool // under e.mu: it has all its topics, and may be found

	mu       sync.Mutex
	assigned *group.Assigned // nil of a shared group
	topics   map[string]*groupTopic
	members  map[*Member]struct{} // those that are not done
	byID     map[group.MemberID]*Member
	names    map[string]*Member         // of a shared group: those that are not gone
	limiter  *dispatch.Limiter          // nil until a member needs it
	sitting  int                        // of a shared group: how many members have seats
	present  bool                       // there are members, and gates
	todo     []group.Action             // what the coordinator has decided and is not carried out
	applying bool                       // somebody carries out what is in todo
	resets   map[group.Partition]uint64 // where partitions are to be when their owners have lost them
	shared   uint64                     // generation of a shared group, and the numbers of its members
	expires  int64                      // when the group is deleted if it has no member, or due.Never
	closing  bool                       // its topics end because the engine does
	untold   map[*Member]struct{}       // members that have ended, and whose hook has not been told yet
	notes    []func()                   // code of the user's that is to be told of something
	telling  bool                       // there is a goroutine that tells it
	cause    error                      // what ended the group
	final    map[string][]Offset        // where it was in topics that have ended with the engine, by ID
	cut      []*TruncatedError          // where it was cut back at Open, and nobody has been told
}

// CreateGroup creates a consumer group. Its positions are where c.Start says from now on. The name must be new: 1 to 249 of
// a-z, A-Z, 0-9, dot, dash and underscore.
func (e *Engine) CreateGroup(name string, c GroupConfig) (*Group, error) {
	if err := names.Check(name); err != nil {
		return nil, fmt.Errorf("%w: group %w", ErrName, err)
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	g, err := e.newGroup(name, c)
	if err != nil {
		return nil, err
	}
	topics := make([]*Topic, len(c.Topics))
	for i, name := range c.Topics {
		if topics[i], err = e.Topic(name); err != nil {
			return nil, err
		}
	}
	for _, t := range topics {
		if err := c.Start.ready(t.made.load()...); err != nil {
			return nil, err
		}
	}
	if durable, err := e.durableTopics(&g.cfg, topics); err != nil {
		return nil, err
	} else if durable {
		g.entry = e.catalog.newGroupEntry(name, &g.cfg)
	}
	if err := e.addGroup(g); err != nil {
		return nil, err
	}
	for _, t := range topics {
		if err := g.attach(t, nil); err != nil {
			g.end(err)
			return nil, err
		}
	}
	if g.entry != nil {
		if err := e.writeGroup(g); err != nil {
			g.end(err)
			return nil, err
		}
	}
	g.mu.Lock()
	g.emptied()
	g.mu.Unlock()
	e.mu.Lock()
	g.ready = true
	e.mu.Unlock()
	e.log(slog.LevelInfo, "leat: group created", "group", name, "kind", c.Kind.String(), "topics", c.Topics)
	return g, nil
}

// newGroup returns a group that nobody knows.
func (e *Engine) newGroup(name string, c GroupConfig) (*Group, error) {
	c = c.clone()
	var err error
	g := &Group{e: e, name: name, cfg: c, expires: due.Never,
		topics: make(map[string]*groupTopic, len(c.Topics)), members: map[*Member]struct{}{}, byID: map[group.MemberID]*Member{},
		resets: map[group.Partition]uint64{}}
	if g.bury, err = e.burier(c.DeadLetter, name); err != nil {
		return nil, err
	}
	if c.Kind == Assigned {
		g.assigned = group.NewAssigned(group.AssignedConfig{
			Assignor:        c.Assignor,
			RevokeTimeout:   c.RevokeTimeout,
			ProgressTimeout: c.ProgressTimeout,
			Grace:           c.Grace,
		}, 0)
	}
	g.alarm.Init(e.alarms, g.ring)
	return g, nil
}

// addGroup makes a group known, if it may be.
func (e *Engine) addGroup(g *Group) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.topics == nil:
		return ErrClosed
	case e.refusedGroups[g.name] != nil:
		return fmt.Errorf("%w: %w", ErrGroupExists, e.refusedGroups[g.name])
	case e.groups[g.name] != nil:
		return fmt.Errorf("%w: %s", ErrGroupExists, g.name)
	}
	e.groups[g.name] = g
	return nil
}

// Group returns the group of that name.
func (e *Engine) Group(name string) (*Group, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.topics == nil {
		return nil, ErrClosed
	}
	if g := e.groups[name]; g != nil && g.ready {
		return g, nil
	}
	if err := e.refusedGroups[name]; err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownGroup, name)
}

// Groups returns the names of all groups, sorted. After Close there are none.
func (e *Engine) Groups() []string {
	var all []string
	for _, g := range e.allGroups() {
		all = append(all, g.name)
	}
	return all
}

// allGroups returns the groups by name.
func (e *Engine) allGroups() []*Group {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*Group, 0, len(e.groups))
	for _, g := range e.groups {
		if g.ready {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(a, b *Group) int { return strings.Compare(a.name, b.name) })
	return all
}

// commonLimiter returns what the members of an assigned group have in common that ask for no limit of their own: so that a
// group whose handlers hang does not take all workers.
func (g *Group) commonLimiter() *dispatch.Limiter {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limiter == nil {
		g.limiter = g.e.work.NewLimiter(max(1, g.e.cfg.Workers-1))
	}
	return g.limiter
}

// Name returns the group's name.
func (g *Group) Name() string { return g.name }

// Config returns the configuration, with every default filled in.
func (g *Group) Config() GroupConfig { return g.cfg.clone().asGiven() }

// attach makes a topic one of the group's. floors are the positions in the first partitions, where the group has some.
func (g *Group) attach(t *Topic, floors []Offset) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return t.cause
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause != nil { // the engine has been closed
		return g.cause
	}
	gt := &groupTopic{t: t}
	for i, p := range t.made.load() {
		if floors != nil {
			off := t.cfg.first // it came when the group was there
			if i < len(floors) {
				off = uint64(floors[i])
			}
			g.addPart(gt, p, off)
			continue
		}
		off, err := g.cfg.Start.in(p.p, startLatest)(p.p.Log().Snapshot())
		if err != nil {
			return err
		}
		g.addPart(gt, p, off)
	}
	g.topics[t.name] = gt
	if t.groups == nil {
		t.groups = map[*Group]struct{}{}
	}
	t.groups[g] = struct{}{}
	g.setPartitions(gt)
	return nil
}

// addPart makes a partition one of the group's, with its position. The caller holds mu.
func (g *Group) addPart(gt *groupTopic, p *Partition, floor uint64) {
	part := &groupPart{g: g, at: group.Partition{Topic: gt.t.name, Index: p.Index()}, p: p, floor: floor}
	gt.parts = append(gt.parts, part)
	if g.present {
		part.addGate()
	}
	if g.cfg.Kind == Shared {
		for m := range g.members {
			m.takeSeats(part)
		}
	}
}

// setPartitions tells the coordinator. The caller holds mu.
func (g *Group) setPartitions(gt *groupTopic) {
	if g.assigned == nil {
		return
	}
	actions, err := g.assigned.SetPartitions(gt.t.name, len(gt.parts), g.now())
	if err != nil {
		panic(err) // topics only grow
	}
	g.apply(actions)
}

// topicGrown is told that a topic has more partitions. Those begin with their first record, so that nothing is missed.
func (g *Group) topicGrown(t *Topic) {
	if mutant.Enabled && mutant.Is(mutant.GrownUnnoticed) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	gt := g.topics[t.name]
	if gt == nil || gt.t != t {
		return // it is being created, or has ended
	}
	for _, p := range t.made.load()[len(gt.parts):] {
		g.addPart(gt, p, t.cfg.first)
	}
	g.setPartitions(gt)
}

// without returns err, which says that a topic is not there, or ErrClosed if that is because the engine is being closed. The
// caller holds g.mu.
func (g *Group) without(err error) error {
	if g.closing {
		return ErrClosed
	}
	return err
}

// topicEnded is told that a topic is gone.
func (g *Group) topicEnded(t *Topic, cause error) {
	g.mu.Lock()
	gt := g.topics[t.name]
	if gt == nil || gt.t != t {
		g.mu.Unlock()
		return
	}
	delete(g.topics, t.name)
	g.closing = !errors.Is(cause, ErrTopicDeleted)
	if g.assigned != nil {
		g.apply(g.assigned.RemoveTopic(t.name, g.now()))
	}
	if g.entry != nil && g.closing {
		if g.final == nil {
			g.final = map[string][]Offset{}
		}
		g.final[t.id.String()] = gt.positions()
	}
	for _, p := range gt.parts {
		p.close(cause)
	}
	for m := range g.members { // only now: what one gives back the others do not get
		m.leaveSeats(t, cause)
	}
	for m := range g.members {
		if !m.hasTopic() {
			g.dismiss(m, cause)
		}
	}
	g.mu.Unlock()
}

func (g *Group) now() int64 { return g.e.clock.Now() }

// Committed returns the group's position in a partition: the offset of the next record to process.
func (g *Group) Committed(topic string, partition int) (Offset, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, err := g.find(topic, partition)
	if err != nil {
		return 0, err
	}
	return p.position(), nil
}

// recount lets publishers wait for the group while it has members, and no longer: those that have not left, and static ones
// that are away. The caller holds mu.
func (g *Group) recount() {
	present := g.cause == nil
	if g.assigned != nil {
		present = present && !g.assigned.Idle()
	} else {
		present = present && g.sitting > 0
	}
	if present == g.present {
		return
	}
	g.present = present
	for _, p := range g.parts() {
		if present {
			p.addGate()
		} else {
			p.removeGate()
		}
	}
	g.expires = due.Never
	if !present {
		g.emptied()
	}
}

// emptied lets the time begin after which a group without members is deleted. The caller holds mu.
func (g *Group) emptied() {
	if g.cfg.ExpireAfter != forEver && g.cause == nil {
		now := g.now()
		g.expires = now + min(int64(g.cfg.ExpireAfter), due.Never-1-now)
		g.setAlarm()
	}
}

// setAlarm sets the alarm for what comes first. The caller holds mu.
func (g *Group) setAlarm() {
	at := g.expires
	if g.assigned != nil {
		if next, ok := g.assigned.NextDeadline(); ok {
			at = min(at, next)
		}
	}
	g.alarm.Set(at)
}

// ring is told by the alarm that a time has come.
func (g *Group) ring(now int64) {
	g.mu.Lock()
	if g.cause != nil {
		g.mu.Unlock()
		return
	}
	if !g.present && g.expires <= now {
		g.mu.Unlock()
		g.e.expire(g, now)
		return
	}
	defer g.mu.Unlock()
	if g.assigned != nil {
		g.excuse(now)
		g.apply(g.assigned.Tick(now))
		g.recount()
	}
	g.setAlarm()
}

// onGap tells of records that were dropped before they were delivered.
func (g *Group) onGap(at group.Partition, from, to int64) {
	e, gap := g.e, GapError{Partition: at.Index, From: from, To: to}
	e.log(slog.LevelWarn, "leat: records dropped before they were delivered", "topic", at.Topic, "group", g.name,
		"partition", at.Index, "from", from, "to", to)
	if g.cfg.OnGap != nil {
		e.guard(func() { g.cfg.OnGap(at.Topic, gap) })
	}
	if f := e.cfg.Hooks.Gap; f != nil {
		e.guard(func() { f(at.Topic, g.name, gap) })
	}
}

func (g *Group) onFailure(ctx context.Context, m *Message, err error) {
	g.e.handlerFailed(ctx, m, err, g.name)
}

func (g *Group) onDrop(ctx context.Context, m *Message, err error) {
	g.e.recordDropped(ctx, m, err, g.name)
}

// note logs something, soon: the logger is code of the user's, also where it is asked whether it wants to. The caller holds mu.
func (g *Group) note(level slog.Level, msg string, args ...any) {
	if g.e.cfg.Logger.Handler() != slog.DiscardHandler {
		g.tell(func() { g.e.log(level, msg, args...) })
	}
}

// tell calls a function of the user's, soon, after those that were told before. The caller holds mu.
func (g *Group) tell(f func()) {
	g.notes = append(g.notes, f)
	if !g.telling {
		g.telling = true
		g.e.spawn(g.tellAll)
	}
}

// tellAll tells all there is to tell.
func (g *Group) tellAll() {
	g.mu.Lock()
	defer func() { // also if a hook ends the goroutine
		if g.telling = len(g.notes) > 0; g.telling {
			g.e.spawn(g.tellAll)
		}
		g.mu.Unlock()
	}()
	for len(g.notes) > 0 {
		f := g.notes[0]
		g.notes = g.notes[1:]
		func() {
			g.mu.Unlock()
			defer g.mu.Lock()
			g.e.guard(f)
		}()
	}
}
