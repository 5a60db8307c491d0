package engine

import (
	"slices"
)

// call is a callback to be made.
type call struct {
	kind  callKind
	c     *claim
	at    Assignment
	cause error
}

type callKind uint8

const (
	callAssigned callKind = iota
	callRevoked
	callLost
)

// call lets a callback be made. The caller holds g.mu.
func (m *Member) call(kind callKind, c *claim, cause error) {
	m.calls.add(c, call{kind, c, c.assignment(), cause})
	m.startCalls()
}

// startCalls sees to it that callbacks are made. The caller holds g.mu.
func (m *Member) startCalls() {
	if !m.calling && m.calls.size() > 0 {
		m.calling, m.called = true, m.g.now()
		m.g.e.spawn(m.makeCalls)
	}
}

// uncall takes back the callback that a claim waits for, and reports whether it had not begun. The caller holds g.mu.
func (m *Member) uncall(c *claim) bool { return m.calls.remove(c) }

// makeCalls makes one callback, for all partitions of which the same is to be told, on a goroutine that has it alone. The
// next one has another.
func (m *Member) makeCalls() {
	g := m.g
	var now []call
	g.mu.Lock()
	defer func() { // also if the callback ends the goroutine
		for _, x := range now {
			x.c.called(x.kind)
		}
		m.calling = false
		m.startCalls()
		if m.pull != nil {
			m.pull.news.Broadcast()
		}
		g.rejoin(m)
		g.settle(m)
		g.mu.Unlock()
	}()
	for x := range m.calls.all() {
		if len(now) > 0 && (x.kind != now[0].kind || x.kind == callLost && x.cause.Error() != now[0].cause.Error()) {
			break
		}
		now = append(now, x)
	}
	if len(now) == 0 {
		return // taken back
	}
	first := now[0]
	for _, x := range now {
		m.calls.remove(x.c)
	}
	at := make([]Assignment, len(now))
	for i, x := range now {
		at[i] = x.at
		if x.kind == callAssigned {
			at[i] = x.c.assignment() // somebody may have set the position since
		}
		x.c.told = true
		x.c.gave = x.c.gave || x.kind == callRevoked
	}
	slices.SortFunc(at, compareAssignments)
	m.called = g.now()
	g.mu.Unlock()
	defer g.mu.Lock()
	g.e.guard(func() {
		switch first.kind {
		case callAssigned:
			m.cfg.OnAssigned(at)
		case callRevoked:
			m.cfg.OnRevoked(at)
		case callLost:
			m.cfg.OnLost(at, first.cause)
		}
	})
}

// called goes on with a claim after its callback. The caller holds g.mu.
func (c *claim) called(kind callKind) {
	switch {
	case c.lost || kind == callLost:
	case kind == callRevoked:
		c.release()
	case c.revoking:
		c.give()
	default:
		c.begin()
	}
}
