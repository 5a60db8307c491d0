package group

import (
	"math"
	"slices"
	"strings"
	"time"
)

func (g *Assigned) settleAll(now int64) {
	for _, p := range g.parts {
		g.settle(p, now)
	}
}

// settle takes the next step of a partition towards the one who is to have it.
func (g *Assigned) settle(p *part, now int64) {
	var next *session
	if p.target != nil {
		next = p.target.session
	}
	switch {
	case p.owner == next || p.word.Revoking():
	case p.owner == nil:
		p.word, p.owner = ownedWord(g.number()), next
		next.owned++
		g.out = append(g.out, Action{Kind: Assign, Partition: p.Partition, Member: next.id, Name: next.name,
			Generation: p.word.Generation(), Grown: p.grown})
	case g.cfg.RevokeTimeout <= 0:
		g.lose(p, CauseDeadline)
		g.settle(p, now)
	default:
		p.word |= wordRevoking
		deadline := after(now, g.cfg.RevokeTimeout)
		g.set(&p.timer, deadline)
		g.out = append(g.out, Action{Kind: Revoke, Partition: p.Partition, Member: p.owner.id, Name: p.owner.name,
			Generation: p.word.Generation(), Deadline: deadline})
	}
}

// lose ends an ownership against the owner's will.
func (g *Assigned) lose(p *part, cause Cause) {
	g.out = append(g.out, Action{Kind: Lost, Partition: p.Partition, Member: p.owner.id, Name: p.owner.name,
		Generation: p.word.Generation(), Cause: cause})
	g.free(p)
}

// free ends an ownership.
func (g *Assigned) free(p *part) {
	m := p.owner
	p.word, p.owner = freeWord(g.number()), nil
	g.stop(&p.timer)
	m.owned--
	g.leftIfDone(m)
}

// leftIfDone says that a member has left, if it was leaving and has nothing any more.
func (g *Assigned) leftIfDone(m *session) {
	if m.seat == nil && m.owned == 0 && g.sessions[m.id] == m {
		delete(g.sessions, m.id)
		g.out = append(g.out, Action{Kind: Left, Member: m.id, Name: m.name})
	}
}

// sit gives a seat a new session.
func (g *Assigned) sit(s *seat) {
	m := &session{id: MemberID(g.number()), seat: s, name: s.name}
	m.timer.session = m
	s.session = m
	g.sessions[m.id] = m
}

// evict puts a member out, and its name with it.
func (g *Assigned) evict(m *session, cause Cause) {
	if m.seat != nil {
		g.remove(m.seat)
	}
	g.putOut(m, cause)
}

// putOut ends a session and everything it owns.
func (g *Assigned) putOut(m *session, cause Cause) {
	delete(g.sessions, m.id) // first, so that it is not said to have left as well
	g.stop(&m.timer)
	for _, p := range g.parts {
		if p.owner == m {
			g.lose(p, cause)
		}
	}
	if m.seat != nil {
		m.seat.session = nil
	}
	g.out = append(g.out, Action{Kind: Evict, Member: m.id, Name: m.name, Cause: cause})
}

// add brings a seat into the group.
func (g *Assigned) add(s *seat) {
	g.seats[s.name] = s
	i, _ := g.placeOf(s.name)
	g.order = slices.Insert(g.order, i, s)
}

// remove takes a seat out of the group.
func (g *Assigned) remove(s *seat) {
	g.stop(&s.timer)
	delete(g.seats, s.name)
	if i, there := g.placeOf(s.name); there {
		g.order = slices.Delete(g.order, i, i+1)
	}
}

// placeOf returns where a name is in the order of names, or would be.
func (g *Assigned) placeOf(name string) (int, bool) {
	return slices.BinarySearchFunc(g.order, name, func(s *seat, name string) int { return strings.Compare(s.name, name) })
}

func (g *Assigned) part(at Partition) *part {
	if parts := g.topics[at.Topic]; at.Index >= 0 && at.Index < len(parts) {
		return parts[at.Index]
	}
	return nil
}

func (g *Assigned) number() uint64 {
	g.last++
	return g.last
}

func (g *Assigned) noMember(id MemberID) error { return &FencedError{Reason: FenceMember, Member: id} }

func (g *Assigned) actions() []Action {
	out := g.out
	g.out = nil
	return out
}

func (g *Assigned) set(t *timer, at int64) {
	t.at = at
	if t.place == 0 {
		g.timers.Push(t, at)
	} else {
		g.timers.Move(t.place, at)
	}
}

func (g *Assigned) stop(t *timer) {
	if t.place != 0 {
		g.timers.Remove(t.place)
	}
}

// after returns now+d, or the last time there is if that is beyond it. Less than nothing counts as nothing.
func after(now int64, d time.Duration) int64 {
	if d <= 0 {
		return now
	}
	if now > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return now + int64(d)
}

// sorted returns a sorted copy without repetitions.
func sorted(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}
