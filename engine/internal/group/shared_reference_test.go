package group_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leatlog/leat/engine/internal/group"
)

// sharedModel is what a Shared is meant to be: a map of records, and lists of offsets, all looked through from end to end.
type sharedModel struct {
	cfg         group.SharedConfig
	floor, next uint64
	dropped     uint64
	ids, reset  uint64
	seq         int
	newsTurn    bool
	records     map[uint64]*record // in the window
	again, dead []uint64
}

type record struct {
	state   string // held, again, delayed, dead, unburied, taken or settled
	id      uint64
	member  group.MemberID
	attempt int
	due     int64
	seq     int // of the last hold
	cause   group.Death

	returned bool
}

func (m *sharedModel) wait(list []time.Duration, attempt int, without time.Duration) int64 {
	if len(list) == 0 {
		return int64(without)
	}
	return int64(list[min(attempt, len(list))-1])
}

func (m *sharedModel) ackWait(attempt int) int64 {
	return m.wait(m.cfg.AckWait, attempt, group.DefaultAckWait)
}

func (m *sharedModel) backoff(attempt int) int64 { return m.wait(m.cfg.Backoff, attempt, 0) }

func (m *sharedModel) step(attempt int) int { return min(max(attempt, 1), max(1, len(m.cfg.AckWait))) }

func (m *sharedModel) count(states ...string) (n int) {
	for _, r := range m.records {
		if slices.Contains(states, r.state) {
			n++
		}
	}
	return n
}

func (m *sharedModel) hold(r *record, now int64) {
	m.seq++
	r.state, r.due, r.seq = "held", now+m.ackWait(r.attempt), m.seq
}

func (m *sharedModel) acquire(who group.MemberID, end uint64, now int64) (off uint64, outcome group.Outcome) {
	maxInFlight, maxWindow := cmp.Or(m.cfg.MaxInFlight, group.DefaultMaxInFlight), cmp.Or(m.cfg.MaxWindow, group.DefaultMaxWindow)
	isNew := m.next < end && m.next < m.floor+uint64(maxWindow)
	switch {
	case m.count("held") >= maxInFlight:
		return 0, group.InFlightFull
	case len(m.again) > 0 && (!isNew || !m.newsTurn || m.cfg.InOrder || m.records[m.again[0]].returned):
		off, m.again = m.again[0], m.again[1:]
		if !m.records[off].returned {
			m.newsTurn = true
		}
		m.records[off].returned = false
	case isNew:
		off = m.next
		m.next++
		m.records[off] = &record{}
		m.newsTurn = false
	case m.next < end:
		return 0, group.WindowFull
	default:
		return 0, group.Empty
	}
	r := m.records[off]
	m.ids++
	r.attempt++
	r.id, r.member = m.ids, who
	m.hold(r, now)
	return off, group.Acquired
}

func (m *sharedModel) settle() {
	for r := m.records[m.floor]; r != nil && r.state == "settled"; r = m.records[m.floor] {
		delete(m.records, m.floor)
		m.floor++
	}
}

func (m *sharedModel) die(off uint64, cause group.Death) group.Fate {
	r := m.records[off]
	bury := m.cfg.DeadLetter
	if cause == group.DeathRejected {
		bury = m.cfg.DeadLetterRejected
	}
	if !bury {
		r.state = "settled"
		m.settle()
		return group.FateDropped
	}
	r.state, r.cause = "dead", cause
	m.dead = append(m.dead, off)
	return group.FateDead
}

func (m *sharedModel) fail(off uint64, cause group.Death, due, now int64) group.Fate {
	r := m.records[off]
	if m.cfg.MaxDeliveries > 0 && r.attempt >= m.cfg.MaxDeliveries {
		return m.die(off, cause)
	}
	r.cause = cause
	if due > now {
		m.seq++
		r.state, r.due, r.seq = "delayed", due, m.seq
		return group.FateDelayed
	}
	r.state = "again"
	m.putAgain(len(m.again), off)
	return group.FateAgain
}

func (m *sharedModel) putAgain(i int, off uint64) {
	m.again = slices.Insert(m.again, i, off)
	if m.cfg.InOrder {
		slices.Sort(m.again)
	}
}

func (m *sharedModel) ackThrough(who group.MemberID, t group.Token) (n int) {
	for off := m.floor; off <= t.Offset; off++ {
		r := m.records[off]
		if r.state == "held" && r.member == who || (r.state == "again" || r.state == "delayed") && r.attempt > 0 {
			m.again = slices.DeleteFunc(m.again, func(o uint64) bool { return o == off })
			r.state = "settled"
			n++
		}
	}
	m.settle()
	return n
}

// sorted returns the offsets of records in a state, in the order of less.
func (m *sharedModel) sorted(state string, less func(a, b *record) int) (offs []uint64) {
	for off, r := range m.records {
		if r.state == state {
			offs = append(offs, off)
		}
	}
	slices.SortFunc(offs, func(a, b uint64) int { return less(m.records[a], m.records[b]) })
	return offs
}

func (m *sharedModel) tick(now int64) (expired []group.Expired) {
	for _, off := range m.sorted("held", func(a, b *record) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(m.step(a.attempt), m.step(b.attempt)), cmp.Compare(a.seq, b.seq))
	}) {
		if r := m.records[off]; r.due <= now {
			e := group.Expired{Member: r.member, Token: group.Token{Offset: off, ID: r.id}, Attempt: r.attempt}
			e.Fate = m.fail(off, group.DeathExpired, r.due+max(0, m.backoff(r.attempt)-m.ackWait(r.attempt)), now)
			expired = append(expired, e)
		}
	}
	byTime := func(a, b *record) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.seq, b.seq)) }
	for _, off := range m.sorted("delayed", byTime) {
		if r := m.records[off]; r.due <= now {
			m.fail(off, r.cause, now, now)
		}
	}
	for _, off := range m.sorted("unburied", byTime) {
		if r := m.records[off]; r.due <= now {
			r.state = "dead"
			m.dead = append(m.dead, off)
		}
	}
	return expired
}

func (m *sharedModel) release(who group.MemberID, keep func(off uint64) bool, now int64) (n int) {
	for _, off := range m.sorted("held", func(a, b *record) int {
		return cmp.Or(cmp.Compare(m.step(a.attempt), m.step(b.attempt)), cmp.Compare(a.due, b.due), cmp.Compare(a.seq, b.seq))
	}) {
		if m.records[off].member == who && !keep(off) {
			m.fail(off, group.DeathReleased, now, now)
			n++
		}
	}
	return n
}

func (m *sharedModel) ackHeld(who group.MemberID, below uint64) (n int) {
	for off, r := range m.records {
		if r.state == "held" && r.member == who && off < below {
			r.state = "settled"
			n++
		}
	}
	m.settle()
	return n
}

// undo takes back a delivery.
func (m *sharedModel) undo(r *record) (again bool) {
	r.attempt--
	return r.attempt > 0
}

func (m *sharedModel) forget(off uint64) {
	m.again = slices.DeleteFunc(m.again, func(o uint64) bool { return o == off })
	m.dead = slices.DeleteFunc(m.dead, func(o uint64) bool { return o == off })
	delete(m.records, off)
}

func (m *sharedModel) dropBefore(first uint64) group.Loss {
	if first <= m.floor {
		return group.Loss{}
	}
	loss := group.Loss{From: first, To: first}
	for ; m.floor < first; m.floor++ {
		r := m.records[m.floor]
		if r != nil && r.state == "held" {
			loss.Held++
		}
		if r == nil || r.state != "settled" {
			loss.From = min(loss.From, m.floor)
			loss.Records++
		}
		m.forget(m.floor)
	}
	m.next = max(m.next, first)
	m.dropped = first
	m.settle()
	if loss.Records == 0 {
		return group.Loss{}
	}
	return loss
}

func (m *sharedModel) configure(cfg group.SharedConfig, now int64) {
	held := m.sorted("held", func(a, b *record) int {
		return cmp.Or(cmp.Compare(m.step(a.attempt), m.step(b.attempt)), cmp.Compare(a.due, b.due), cmp.Compare(a.seq, b.seq))
	})
	m.cfg = cfg
	for _, off := range held {
		r := m.records[off]
		r.due = min(r.due, now+m.ackWait(r.attempt))
	}
	slices.SortStableFunc(held, func(a, b uint64) int { return cmp.Compare(m.records[a].due, m.records[b].due) })
	for _, off := range held {
		m.seq++
		m.records[off].seq = m.seq
	}
	again := m.again
	m.again = nil
	for _, off := range again {
		m.records[off].returned = false
		m.fail(off, m.records[off].cause, now, now)
	}
}

// restore is what is left after a snapshot.
func (m *sharedModel) restore(now int64) {
	m.again, m.dead = nil, nil
	m.reset = m.ids
	m.newsTurn = false
	m.dropped = 0
	offs := slices.Sorted(maps.Keys(m.records))
	for _, off := range offs {
		m.ids++
		m.records[off].id, m.records[off].member, m.records[off].returned = m.ids, 0, false
	}
	for _, off := range offs {
		r := m.records[off]
		if r == nil {
			continue // settled, and the floor has passed it
		}
		switch r.state {
		case "settled":
		case "dead", "unburied", "taken":
			m.die(off, r.cause)
		case "held":
			m.fail(off, group.DeathReleased, now, now)
		default:
			m.fail(off, r.cause, now, now)
		}
	}
	m.settle()
}

// fault says why a member may not use a token for a record in the wanted state, or 0.
func (m *sharedModel) fault(who group.MemberID, t group.Token, wanted string) group.TokenFault {
	r := m.records[t.Offset]
	switch {
	case r != nil && r.id == t.ID && r.state == wanted && (r.member == who || wanted == "taken") && t.ID > 0:
		return 0
	case t.ID == 0 || t.ID > m.ids:
		return group.TokenUnknown
	case t.ID <= m.reset:
		return group.TokenReset
	case t.Offset >= m.next:
		return group.TokenUnknown
	case r == nil && t.Offset < m.dropped:
		return group.TokenLost
	case r == nil || r.state == "settled":
		return group.TokenSettled
	case r.id == t.ID && r.state == wanted:
		return group.TokenForeign
	}
	return group.TokenExpired
}
