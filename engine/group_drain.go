package engine

import (
	"fmt"
	"time"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
)

// behind names what the group's handlers have to do. What a Consumer has is its caller's to ask for.
func (g *Group) behind() (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.parts() {
		if p.behind() {
			names = append(names, fmt.Sprintf("%v/%s", p.at, g.name))
		}
	}
	for m := range g.members {
		for c := range m.late.all() { // their handlers may publish
			if _, yes := c.runner.Inside(); yes {
				names = append(names, m.at(c.part.at))
			}
		}
	}
	return names
}

// behind reports whether there is something to do for a handler. The caller holds g.mu.
func (p *groupPart) behind() bool {
	g := p.g
	if c := p.owner; c != nil {
		if c.owns() {
			return c.m.pull == nil && (c.runner == nil && p.unread() || c.runner != nil && !c.runner.Drained())
		}
		if c.runner != nil { // it is stopped, and what it has not done is another's soon
			if _, yes := c.runner.Inside(); yes {
				return true
			}
		}
	}
	handlers, paused := false, true
	for m := range g.members {
		if m.pull != nil || !m.wants(p.at.Topic) {
			continue
		}
		handlers = handlers || !m.gone && !m.leaving
		for s := range m.seats.all() {
			if s.part == p && !s.ended {
				paused = paused && s.seat.Paused()
				if _, yes := s.seat.Inside(); yes {
					return true
				}
			}
		}
	}
	switch {
	case !handlers:
		return false
	case g.assigned != nil:
		return p.unread() // somebody is about to get it
	}
	return !paused && !p.share.Drained()
}

// unread reports whether there is something beyond the position. The caller holds g.mu.
func (p *groupPart) unread() bool { return p.position() < p.p.Next() }

// at names the member's part in a partition.
func (m *Member) at(p group.Partition) string { return fmt.Sprintf("%v/%s/%s", p, m.g.name, m.name) }

// hung names what keeps the member from ending.
func (m *Member) hung() (names []string) {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	add := func(r delivery.Runner, at group.Partition) {
		if since, yes := r.Inside(); yes {
			names = append(names, fmt.Sprintf("%s for %v", m.at(at), since.Round(time.Millisecond)))
		}
	}
	for c := range m.claims.all() {
		if c.runner != nil {
			add(c.runner, c.part.at)
		}
	}
	for c := range m.late.all() {
		add(c.runner, c.part.at)
	}
	for s := range m.seats.all() {
		add(s.seat, s.part.at)
	}
	if m.calling {
		names = append(names, m.g.name+"/"+m.name+"/callback")
	}
	if _, yes := m.g.untold[m]; yes {
		names = append(names, m.g.name+"/"+m.name+"/Hooks.MemberEnded")
	}
	return names
}
