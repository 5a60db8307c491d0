package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/names"
)

// Member is one member of a group, whose handler gets the records that fall to it. All its methods may be called from any
// goroutine, its handler included.
type Member struct {
	// Immutable after Join.
	g       *Group
	name    string
	cfg     MemberConfig
	handler delivery.Handler // nothing in it of a Consumer
	pull    *Consumer        // nil unless it is one
	ctx     context.Context  // the parent of what the handler gets
	stop    context.CancelCauseFunc
	opt     dispatch.Options // of its runners' tasks
	done    chan struct{}    // closed when no handler and no callback runs and none will

	// Under g.mu.
	id      group.MemberID // 0 while it is out
	claims  ordered[group.Partition, *claim]
	seats   ordered[*sharedSeat, *sharedSeat] // of a shared group
	running int                               // runners that have not ended
	late    ordered[*claim, *claim]           // lost, with runners that have not ended
	calls   ordered[*claim, call]             // callbacks to be made
	calling bool                              // there is a goroutine that makes them
	called  int64                             // when the callback that runs was called
	leaving bool                              // it has been closed, or put out for good
	gone    bool                              // it is not in the group any more
	out     bool                              // it was put out for lack of progress
	err     error                             // what ended it
}

// Join makes h a member of the group.
func (g *Group) Join(h Handler, c MemberConfig) (*Member, error) {
	if h == nil {
		return nil, configError("Handler is nil")
	}
	if f, ok := h.(HandlerFunc); ok && f == nil {
		return nil, configError("Handler is nil")
	}
	handler := delivery.Handler{One: h.OnMessage}
	if b, ok := h.(BatchHandler); ok {
		handler = delivery.Handler{Batch: b.OnBatch}
		if c.ByKey.Handlers > 0 {
			return nil, configError("ByKey is not for a BatchHandler")
		}
	}
	m, err := g.newMember(c, handler, nil)
	if err != nil {
		return nil, err
	}
	if err := g.join(m); err != nil {
		return nil, err
	}
	return m, nil
}

// newMember returns a member that has not joined yet.
func (g *Group) newMember(c MemberConfig, h delivery.Handler, pull *Consumer) (*Member, error) {
	limited := c.MaxConcurrency > 0
	c, err := c.withDefaults(g, pull == nil)
	if err != nil {
		return nil, err
	}
	if err := g.truncated(); err != nil {
		return nil, err
	}
	if c.Name == "" {
		c.Name = fmt.Sprintf("#%d", g.e.subs.Add(1)) // no user can give that name
	} else if err := names.Check(c.Name); err != nil {
		return nil, fmt.Errorf("%w: member %w", ErrName, err)
	}
	m := &Member{g: g, name: c.Name, cfg: c, handler: h, pull: pull, done: make(chan struct{})}
	m.ctx, m.stop = context.WithCancelCause(g.e.ctx)
	m.opt.Dedicated = c.Dedicated
	switch {
	case c.Dedicated || pull != nil:
	case limited || g.cfg.Kind == Shared:
		m.opt.Limiter = g.e.work.NewLimiter(c.MaxConcurrency)
	default:
		m.opt.Limiter = g.commonLimiter()
	}
	return m, nil
}

// join lets a member in.
func (g *Group) join(m *Member) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause != nil {
		m.stop(g.cause)
		return g.cause
	}
	if !m.hasTopic() {
		err := g.without(ErrTopicDeleted)
		m.stop(err)
		return err
	}
	if err := g.enter(m); err != nil {
		m.stop(err)
		return err
	}
	g.members[m] = struct{}{}
	g.note(slog.LevelInfo, "leat: member joined", "group", g.name, "member", m.name)
	return nil
}

// enter makes m a member. The caller holds mu.
func (g *Group) enter(m *Member) error {
	if g.assigned == nil {
		if g.names[m.name] != nil {
			return fmt.Errorf("%w: %q", ErrMemberExists, m.name)
		}
		if g.names == nil {
			g.names = map[string]*Member{}
		}
		g.names[m.name] = m
		g.shared++
		m.id = group.MemberID(g.shared)
		g.byID[m.id] = m
		g.sitting++
		g.recount()
		for _, p := range g.parts() {
			m.takeSeats(p)
		}
		return nil
	}
	now := g.now()
	id, actions, err := g.assigned.Join(group.Member{Name: m.name, Static: m.cfg.Static, Topics: m.cfg.Topics}, now)
	if err != nil {
		return err
	}
	m.id, m.out = id, false
	g.byID[id] = m
	_ = g.assigned.Progress(id, now) // it is a member: that was just now
	g.recount()
	g.apply(actions)
	return nil
}

// Name returns the member's name.
func (m *Member) Name() string { return m.name }

// Group returns the group.
func (m *Member) Group() *Group { return m.g }

// Done is closed when the member has ended, its last handler and callback have returned, and Hooks.MemberEnded has been told.
func (m *Member) Done() <-chan struct{} { return m.done }

// Err returns nil while the member is alive, and then what ended it: ErrMemberClosed, ErrReplaced, ErrRemoved, ErrClosed,
// ErrNoProgress, ErrTopicDeleted if the last of its topics is gone, ErrGroupDeleted, an *OffsetError under FailOnGap, or a *LoadError if records cannot be read from the files. A member that was
// put out for lack of progress and will join again is alive.
func (m *Member) Err() error {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	return m.err
}

// Assignment returns the partitions that the member owns, in order; none in a shared group.
func (m *Member) Assignment() []Assignment {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	var all []Assignment
	for c := range m.claims.all() {
		if c.owns() {
			all = append(all, c.assignment())
		}
	}
	slices.SortFunc(all, compareAssignments)
	return all
}

// Close makes the member leave: no delivery begins after it returned. What its handlers are doing may still end, and counts;
// then its partitions are others'. What it holds in a shared group is given back at once, but for what its handlers are
// working on. Closing again does nothing. It does not wait; Done tells.
func (m *Member) Close() { m.g.leave(m, ErrMemberClosed) }

// leave lets a member go for a reason.
func (g *Group) leave(m *Member, cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dismiss(m, cause)
}

// dismiss is leave for a caller that holds mu.
func (g *Group) dismiss(m *Member, cause error) {
	if m.leaving {
		return
	}
	m.leaving = true
	m.err = cause
	m.stop(cause) // handlers that wait for their context need not
	switch {
	case g.assigned == nil:
		m.leaveSeats(nil, cause)
		g.sitting--
		if delete(g.names, m.name); g.sitting == 0 {
			g.names = nil // a map does not shrink
		}
		m.gone = true
	case m.out:
		m.gone = true
	default:
		actions, err := g.assigned.Leave(m.id, g.now())
		if err == nil {
			g.apply(actions)
		}
	}
	if m.pull != nil {
		m.pull.news.Broadcast()
	}
	g.recount()
	g.settle(m)
}

// settle ends a member that has nothing more to do. The caller holds mu.
func (g *Group) settle(m *Member) {
	if !m.leaving || m.running > 0 || m.calling || m.calls.size() > 0 || m.claims.size() > 0 {
		return
	}
	if !m.gone && g.assigned != nil {
		return // it has yet to be told that it has left
	}
	if _, there := g.members[m]; !there {
		return
	}
	delete(g.members, m)
	delete(g.byID, m.id)
	m.stop(m.err)
	if !g.present && len(g.members) == 0 {
		g.emptied()
	}
	g.e.rested.Broadcast()
	g.note(slog.LevelInfo, "leat: member ended", "group", g.name, "member", m.name, "cause", m.err)
	f := g.e.cfg.Hooks.MemberEnded
	if f == nil {
		close(m.done)
		return
	}
	if g.untold == nil {
		g.untold = map[*Member]struct{}{}
	}
	g.untold[m] = struct{}{}
	name, cause := m.name, m.err
	g.tell(func() {
		defer func() { // also if the hook ends the goroutine
			g.mu.Lock()
			defer g.mu.Unlock()
			delete(g.untold, m)
			close(m.done)
		}()
		f(g.name, name, cause)
	})
}

// hasTopic reports whether one of the topics that the member wants is there. The caller holds g.mu.
func (m *Member) hasTopic() bool {
	for _, t := range m.cfg.Topics {
		if m.g.topics[t] != nil {
			return true
		}
	}
	return false
}

// Evict puts a member out at once: it loses what it has.
func (g *Group) Evict(member string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause != nil {
		return g.cause
	}
	found := false
	for m := range g.members { // one that leaves may have the name as well
		if m.name == member && !m.gone {
			found = true
			g.remove(m)
		}
	}
	if found {
		return nil
	}
	if g.assigned != nil {
		if actions, err := g.assigned.Forget(member, g.now()); err == nil { // static, and away
			g.apply(actions)
			g.recount()
			return nil
		}
	}
	return fmt.Errorf("%w: %q of group %s", ErrUnknownMember, member, g.name)
}

// remove puts a member out. The caller holds mu.
func (g *Group) remove(m *Member) {
	if g.assigned == nil || m.out {
		for s := range m.seats.all() {
			s.seat.Fence(&LostError{"removed"})
		}
		g.dismiss(m, ErrRemoved)
		return
	}
	if actions, err := g.assigned.Evict(m.id, g.now()); err == nil {
		g.apply(actions)
	}
}

// Pause stops deliveries from the given partitions of a topic, or from all of them: none begins after it returned. It is
// forgotten for a partition that the member gives back or loses. In a shared group others get the records.
func (m *Member) Pause(topic string, partitions ...int) error {
	return m.pause(topic, partitions, true)
}

// Resume lets them go on with the record that was next.
func (m *Member) Resume(topic string, partitions ...int) error {
	return m.pause(topic, partitions, false)
}

func (m *Member) pause(topic string, partitions []int, on bool) error {
	g := m.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if _, err := g.find(topic, 0); err != nil {
		return err
	}
	for _, i := range partitions {
		if _, err := g.find(topic, i); err != nil {
			return err
		}
	}
	set := func(r delivery.Runner, at group.Partition) bool {
		if at.Topic != topic || len(partitions) > 0 && !slices.Contains(partitions, at.Index) {
			return false
		}
		switch {
		case r == nil:
		case on:
			r.Pause()
		default:
			r.Resume()
		}
		return true
	}
	for c := range m.claims.all() {
		if c.owns() && set(c.runner, c.part.at) {
			c.paused = on // also for what has not begun
		}
	}
	for s := range m.seats.all() {
		if !s.ended {
			set(s.seat, s.part.at)
		}
	}
	if m.pull != nil {
		m.pull.news.Broadcast()
	}
	return nil
}

// runners goes through all that deliver to the member, or have done so and not ended. The caller holds g.mu.
func (m *Member) runners() func(yield func(delivery.Runner, group.Partition) bool) {
	return func(yield func(delivery.Runner, group.Partition) bool) {
		for c := range m.claims.all() {
			if c.runner != nil && !yield(c.runner, c.part.at) {
				return
			}
		}
		for c := range m.late.all() {
			if !yield(c.runner, c.part.at) {
				return
			}
		}
		for s := range m.seats.all() {
			if !s.ended && !yield(s.seat, s.part.at) {
				return
			}
		}
	}
}

// Seek puts the group's position in a partition that the member owns: to says the record that is delivered next. It takes
// effect at once, and what a handler is working on does not undo it. In a shared group any member may do it.
func (m *Member) Seek(topic string, partition int, to Start) error {
	g := m.g
	if err := to.readyOf(g.e, topic, max(partition, 0)); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	p, err := g.find(topic, partition)
	if err != nil {
		return err
	}
	start := to.from(p.p.p, p.position())
	if g.assigned == nil {
		return p.sharing().Seek(start)
	}
	if p.owner == nil || p.owner.m != m || !p.owner.owns() {
		return fmt.Errorf("%w: %v", ErrNotAssigned, p.at)
	}
	if p.owner.runner != nil {
		return p.owner.runner.Seek(start)
	}
	off, err := start(p.p.p.Log().Snapshot())
	if err == nil {
		p.reset(off)
	}
	return err
}
