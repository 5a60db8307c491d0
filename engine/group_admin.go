package engine

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/due"
)

// ResetOptions says which positions ResetOffsets sets, and how.
type ResetOptions struct {
	// Partitions are those of the topic. Empty means all.
	Partitions []int

	// Force sets positions also while the group has members: what they are working on there is fenced, and they go on at the
	// new position under a new generation.
	Force bool

	_ struct{}
}

// ResetOffsets sets the positions of a group in a topic: to an offset (At), the oldest or newest record (Earliest, Latest,
// Last), a time (Since), or by so many records (Shift). If one of the partitions does not have that offset none is set. The
// errors are ErrUnknownGroup, ErrUnknownTopic, ErrUnknownPartition, ErrGroupActive and *OffsetError.
func (e *Engine) ResetOffsets(name, topic string, to Start, o ResetOptions) error {
	g, err := e.Group(name)
	if err != nil {
		return err
	}
	return g.reset(topic, to, o)
}

func (g *Group) reset(topic string, to Start, o ResetOptions) error {
	if err := to.readyOf(g.e, topic, -1); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause != nil {
		return g.cause
	}
	if g.present && !o.Force {
		return fmt.Errorf("%w: %s", ErrGroupActive, g.name)
	}
	if _, err := g.find(topic, 0); err != nil {
		return err
	}
	parts := slices.Clone(g.topics[topic].parts)
	if len(o.Partitions) > 0 {
		parts = parts[:0]
		for _, i := range o.Partitions {
			p, err := g.find(topic, i)
			if err != nil {
				return err
			}
			parts = append(parts, p)
		}
	}
	targets := make([]uint64, len(parts))
	for i, p := range parts {
		off, err := to.from(p.p.p, p.position())(p.p.p.Log().Snapshot())
		if err != nil {
			return fmt.Errorf("leat: partition %d: %w", p.at.Index, err)
		}
		targets[i] = off
	}
	for i, p := range parts {
		g.put(p, targets[i])
	}
	g.note(slog.LevelInfo, "leat: positions set", "group", g.name, "topic", topic, "partitions", len(parts), "forced", g.present)
	return nil
}

// put sets the position of a partition. The caller holds mu.
func (g *Group) put(p *groupPart, off uint64) {
	switch {
	case g.assigned == nil:
		g.shared++
		p.reset(off)
	case p.owner != nil:
		g.resets[p.at] = off
		actions, err := g.assigned.Reset(p.at, g.now())
		if err != nil {
			panic(err) // it knows the partition
		}
		g.apply(actions)
		delete(g.resets, p.at)
	default:
		p.reset(off)
	}
}

// reset sets the position of a partition without an owner: what was known of its records is forgotten, also if that is where it
// was, and tokens from before count no more. The caller holds g.mu.
func (p *groupPart) reset(off uint64) {
	p.floor, p.tried = off, 0
	if p.share != nil {
		p.seek(p.share.Seek)
	}
}

// DeleteGroup deletes a group that has no members, and its positions with it; otherwise the error is ErrGroupActive. Of a group of
// durable topics another error than that and ErrUnknownGroup says that this could not be made safe, so that the group may be
// there again after the next Open.
func (e *Engine) DeleteGroup(name string) error {
	g, err := e.Group(name)
	if err != nil {
		return e.deleteRefusedGroup(name, err)
	}
	g.mu.Lock()
	if g.present || len(g.members) > 0 {
		g.mu.Unlock()
		return fmt.Errorf("%w: %s", ErrGroupActive, name)
	}
	g.finish(ErrGroupDeleted)
	g.mu.Unlock()
	g.detach()
	e.log(slog.LevelInfo, "leat: group deleted", "group", name)
	return e.forgetGroup(g)
}

// expire deletes a group that has had no member for long.
func (e *Engine) expire(g *Group, now int64) {
	g.mu.Lock()
	if g.cause != nil || g.present || len(g.members) > 0 || g.expires > now {
		g.mu.Unlock()
		return
	}
	g.note(slog.LevelInfo, "leat: group expired", "group", g.name)
	g.finish(ErrGroupDeleted)
	g.mu.Unlock()
	g.detach()
	if g.entry != nil {
		e.spawn(func() {
			if err := e.forgetGroup(g); err != nil { // it expires again after the next Open
				e.log(slog.LevelError, "leat: an expired group cannot be removed", "group", g.name, "error", err)
			}
		})
	}
}

// end ends a group, with its members, and returns these. It waits for nobody.
func (g *Group) end(cause error) (members []*Member) {
	g.mu.Lock()
	for m := range g.members {
		members = append(members, m)
		g.dismiss(m, cause)
	}
	for m := range g.untold {
		if !slices.Contains(members, m) {
			members = append(members, m)
		}
	}
	g.finish(cause)
	g.mu.Unlock()
	g.detach()
	return members
}

// finish ends everything that a group has but its members. The caller holds mu.
func (g *Group) finish(cause error) {
	g.cause = cause
	g.expires = due.Never
	g.alarm.Clear()
	g.recount()
	for _, p := range g.parts() {
		p.close(cause)
	}
}

// detach makes a group unknown.
func (g *Group) detach() {
	e := g.e
	e.mu.Lock()
	if e.groups[g.name] == g {
		delete(e.groups, g.name)
	}
	e.mu.Unlock()
	g.mu.Lock()
	var topics []*Topic
	for _, gt := range g.topics {
		topics = append(topics, gt.t)
	}
	g.mu.Unlock()
	for _, t := range topics {
		t.mu.Lock()
		delete(t.groups, g)
		t.mu.Unlock()
	}
}

// excuse tells the coordinator of members that seem to make no progress when they did. The caller holds mu.
func (g *Group) excuse(now int64) {
	for _, id := range g.assigned.Overdue(now, nil) {
		if m := g.byID[id]; m != nil {
			_ = g.assigned.Progress(id, m.progressed(now)) // it is a member
		}
	}
}

// progressed returns when the member was last seen to make progress: now if it has nothing to do. The caller holds g.mu.
func (m *Member) progressed(now int64) int64 {
	at := now
	if m.calling {
		at = min(at, m.called)
	}
	for c := range m.claims.all() {
		switch {
		case c.runner == nil:
		case m.pull != nil:
			if polled := m.pull.polled.Load(); polled != 0 {
				at = min(at, polled)
			}
		default:
			// A turn of a handler that is slow all of a sudden may have several calls. The position tells them apart, or how many
			// records the seat is through with.
			done := c.done()
			if since, yes := c.runner.Inside(); yes && done == c.seen {
				at = min(at, now-int64(since))
			}
			c.seen = done
		}
	}
	return at
}

// GroupStats is a snapshot of a group. It is a copy.
type GroupStats struct {
	Name       string
	Kind       GroupKind
	Mode       Mode
	Generation uint64 // changes when members or partitions do
	Members    []MemberStats
	Partitions []GroupPartitionStats // in the order of GroupConfig.Topics
}

// Lag returns how many records of all partitions wait to be processed.
func (s *GroupStats) Lag() (n int64) {
	for i := range s.Partitions {
		n += s.Partitions[i].Lag
	}
	return n
}

// MemberStats is a snapshot of a member.
type MemberStats struct {
	Name       string
	Static     bool
	Pull       bool          // it polls
	Away       bool          // it has closed, and its partitions are kept for it
	Leaving    bool          // it has closed, or was put out, and its last handlers or callbacks are running
	Out        bool          // it was put out for lack of progress, and joins again when its handlers have returned or it polls
	Assignment []Assignment  // of an assigned group
	Running    int           // how many handlers run
	RunningFor time.Duration // for how long the one that has been running longest has been; who is stuck shows here
	Calling    bool          // a callback is to be made, or runs
}

// GroupPartitionStats is what a group has done in one partition.
type GroupPartitionStats struct {
	Topic       string
	Owner       string // of an assigned group: the member that has it, or ""
	Generation  uint64 // of the ownership
	Revoking    bool   // the owner has been asked to give it back
	First, Next Offset
	LaneStats         // of an assigned group: since the present owner has it
	Delayed     int   // records that wait to be delivered again, of those that are settled one by one
	Dead        int   // records that are given up, and not in the dead-letter topic yet
	Expired     int64 // records that were not settled in time
	Fenced      int64 // outcomes and acknowledgements that came too late
}

// DescribeGroup returns the snapshot of one group.
func (e *Engine) DescribeGroup(name string) (GroupStats, error) {
	g, err := e.Group(name)
	if err != nil {
		return GroupStats{}, err
	}
	return g.Stats(), nil
}

// Stats returns a snapshot of the group.
func (g *Group) Stats() GroupStats {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := GroupStats{Name: g.name, Kind: g.cfg.Kind, Mode: g.cfg.Mode, Generation: g.shared}
	if g.assigned != nil {
		s.Generation = g.assigned.Generation()
		for _, m := range g.assigned.Describe().Members {
			if m.Away {
				s.Members = append(s.Members, MemberStats{Name: m.Name, Static: true, Away: true})
			}
		}
	}
	for m := range g.members {
		s.Members = append(s.Members, m.stats())
	}
	slices.SortFunc(s.Members, func(a, b MemberStats) int { return strings.Compare(a.Name, b.Name) })
	now := g.now()
	for _, p := range g.parts() {
		s.Partitions = append(s.Partitions, p.stats(now))
	}
	return s
}

// stats returns a snapshot of a member. The caller holds g.mu.
func (m *Member) stats() MemberStats {
	s := MemberStats{
		Name:    m.name,
		Static:  m.cfg.Static,
		Pull:    m.pull != nil,
		Leaving: m.leaving,
		Out:     m.out,
		Calling: m.calling || m.calls.size() > 0,
	}
	for r := range m.runners() {
		if since, yes := r.Inside(); yes {
			s.Running++
			s.RunningFor = max(s.RunningFor, since)
		}
	}
	for c := range m.claims.all() {
		if c.owns() {
			s.Assignment = append(s.Assignment, c.assignment())
		}
	}
	slices.SortFunc(s.Assignment, compareAssignments)
	return s
}

// stats returns a snapshot of a partition. The caller holds g.mu.
func (p *groupPart) stats(now int64) GroupPartitionStats {
	s := GroupPartitionStats{Topic: p.at.Topic}
	c := p.owner
	switch {
	case c != nil && c.runner != nil:
		s.LaneStats = c.runner.Stats(now)
	case p.share != nil && p.g.assigned == nil:
		s.LaneStats = p.share.LaneStats(now)
	default:
		s.LaneStats = delivery.StatsAt(p.p.p, p.position(), now)
	}
	s.First, s.Next = p.p.p.Snapshot()
	if p.share != nil {
		x := p.share.Stats()
		s.Delayed, s.Dead, s.Expired, s.Fenced = x.Delayed, x.Dead, x.Expired, x.Fenced
	}
	if c != nil {
		s.Owner, s.Generation, s.Revoking = c.m.name, c.generation, c.revoking
	}
	return s
}
