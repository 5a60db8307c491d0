package group_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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

func drawSharedConfig(t *rapid.T) group.SharedConfig {
	seconds := func(least int64, label string) (list []time.Duration) {
		for _, n := range rapid.SliceOfN(rapid.Int64Range(least, 8), 0, 3).Draw(t, label) {
			list = append(list, time.Duration(n)*time.Second)
		}
		return list
	}
	return group.SharedConfig{
		MaxInFlight:        rapid.SampledFrom([]int{0, 1, 2, 3, 50}).Draw(t, "MaxInFlight"),
		MaxWindow:          rapid.SampledFrom([]int{0, 1, 2, 5, 40}).Draw(t, "MaxWindow"),
		AckWait:            seconds(1, "AckWait"),
		Backoff:            seconds(0, "Backoff"),
		InOrder:            rapid.Bool().Draw(t, "InOrder"),
		MaxDeliveries:      rapid.IntRange(0, 4).Draw(t, "MaxDeliveries"),
		DeadLetter:         rapid.Bool().Draw(t, "DeadLetter"),
		DeadLetterRejected: rapid.Bool().Draw(t, "DeadLetterRejected"),
	}
}

// TestShared_Model lets members do everything they may and may not with the records of a window, in any order, and compares
// each answer and the whole state with a model.
func TestShared_Model(t *testing.T) { rapid.Check(t, checkShared) }

// FuzzShared is the same with choices that the fuzzer makes.
func FuzzShared(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkShared)) }

func checkShared(t *rapid.T) {
	type token struct {
		who group.MemberID
		t   group.Token
	}
	start := rapid.SampledFrom([]uint64{0, 7, 1<<31 - 2, 1<<32 - 2, 1<<63 - 100_000, 1<<63 - 2}).Draw(t, "start")
	m := &sharedModel{cfg: drawSharedConfig(t), floor: start, next: start, records: map[uint64]*record{}}
	s := group.NewShared(m.cfg, start)
	var (
		now    = int64(1000 * time.Second)
		end    = start
		tokens []token
		graves []group.Token
		lost   group.Loss
		taken  uint64 // deliveries less those taken back
		retook uint64 // and those of them that were not the first of their record
		before group.Counts
	)
	member := rapid.Map(rapid.IntRange(1, 3), func(n int) group.MemberID { return group.MemberID(n) })
	// anyToken is one that is held, most of the time, or another one that was given out or not.
	anyToken := func(t *rapid.T) token {
		if len(tokens) == 0 || rapid.IntRange(0, 15).Draw(t, "odd") == 0 {
			return token{member.Draw(t, "member"), group.Token{Offset: m.floor + rapid.Uint64Range(0, 9).Draw(t, "offset"),
				ID: rapid.Uint64Range(0, m.ids+1).Draw(t, "id")}}
		}
		live := slices.DeleteFunc(slices.Clone(tokens), func(x token) bool { return m.fault(x.who, x.t, "held") != 0 })
		if len(live) > 0 && rapid.IntRange(0, 5).Draw(t, "stale") > 0 {
			return rapid.SampledFrom(live).Draw(t, "token")
		}
		x := rapid.SampledFrom(tokens).Draw(t, "any token")
		if rapid.Bool().Draw(t, "foreign") {
			x.who = member.Draw(t, "member")
		}
		return x
	}
	refused := func(t *rapid.T, err error, fault group.TokenFault) bool {
		if fault == 0 {
			require.NoError(t, err)
			return false
		}
		var e *group.TokenError
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, group.ErrFenced)
		require.Equal(t, fault, e.Reason, "%v", err)
		return true
	}
	// settles is a call of a member that ends a hold.
	settles := func(call func(*rapid.T, token) error, model func(token, *record)) func(*rapid.T) {
		return func(t *rapid.T) {
			x := anyToken(t)
			fault := m.fault(x.who, x.t, "held")
			if !refused(t, call(t, x), fault) {
				model(x, m.records[x.t.Offset])
			}
		}
	}
	var fate group.Fate
	var delay time.Duration
	sameFate := func(t *rapid.T, want group.Fate) { require.Equal(t, want, fate) }

	actions := map[string]func(*rapid.T){
		"records": func(t *rapid.T) { end += rapid.Uint64Range(0, 20).Draw(t, "more") },
		"acquire": func(t *rapid.T) {
			for range rapid.IntRange(1, 4).Draw(t, "times") {
				who := member.Draw(t, "member")
				clock := now - rapid.Int64Range(0, 2).Draw(t, "seconds back")*int64(time.Second)
				off, want := m.acquire(who, end, clock)
				available := s.Available(end)
				d, got := s.Acquire(who, end, clock)
				require.Equal(t, want, got)
				require.Equal(t, got == group.Acquired, available)
				if got != group.Acquired {
					require.Zero(t, d)
					return
				}
				r := m.records[off]
				require.Equal(t, group.Delivery{Token: group.Token{Offset: off, ID: r.id}, Attempt: r.attempt, Deadline: r.due}, d)
				tokens = append(tokens, token{who, d.Token})
				taken++
				if r.attempt > 1 {
					retook++
				}
			}
		},
		"ack": settles(func(_ *rapid.T, x token) error { return s.Ack(x.who, x.t) }, func(x token, r *record) {
			r.state = "settled"
			m.settle()
		}),
		"ack through": func(t *rapid.T) {
			var n int
			acked := s.Counts().Acked
			settles(func(_ *rapid.T, x token) (err error) {
				n, err = s.AckThrough(x.who, x.t)
				return err
			}, func(x token, _ *record) { require.Equal(t, m.ackThrough(x.who, x.t), n) })(t)
			require.EqualValues(t, n, s.Counts().Acked-acked)
		},
		"nack": func(t *rapid.T) {
			settles(func(_ *rapid.T, x token) (err error) {
				fate, err = s.Nack(x.who, x.t, now)
				return err
			}, func(x token, r *record) {
				sameFate(t, m.fail(x.t.Offset, group.DeathFailed, now+m.backoff(r.attempt), now))
			})(t)
		},
		"nack after": func(t *rapid.T) {
			delay = time.Duration(rapid.Int64Range(-1, 5).Draw(t, "seconds")) * time.Second
			settles(func(_ *rapid.T, x token) (err error) {
				fate, err = s.NackAfter(x.who, x.t, delay, now)
				return err
			}, func(x token, r *record) {
				sameFate(t, m.fail(x.t.Offset, group.DeathFailed, now+int64(delay), now))
			})(t)
		},
		"reject": func(t *rapid.T) {
			settles(func(_ *rapid.T, x token) (err error) {
				fate, err = s.Reject(x.who, x.t)
				return err
			}, func(x token, r *record) { sameFate(t, m.die(x.t.Offset, group.DeathRejected)) })(t)
		},
		"extend": func(t *rapid.T) {
			var deadline int64
			settles(func(_ *rapid.T, x token) (err error) {
				deadline, err = s.Extend(x.who, x.t, now)
				return err
			}, func(x token, r *record) {
				m.hold(r, now)
				require.Equal(t, r.due, deadline)
			})(t)
		},
		"return": settles(func(_ *rapid.T, x token) error { return s.Return(x.who, x.t) }, func(x token, r *record) {
			r.state = "again"
			if m.undo(r) {
				retook--
			}
			r.returned = !m.cfg.InOrder
			m.putAgain(0, x.t.Offset)
			taken--
		}),
		"postpone": func(t *rapid.T) {
			delay = time.Duration(rapid.Int64Range(-1, 5).Draw(t, "seconds")) * time.Second
			settles(func(_ *rapid.T, x token) error { return s.Postpone(x.who, x.t, delay, now) }, func(x token, r *record) {
				if m.undo(r) {
					retook--
				}
				taken--
				m.seq++
				r.state, r.due, r.seq = "delayed", now+int64(delay), m.seq
				if delay <= 0 {
					r.state = "again"
					m.putAgain(len(m.again), x.t.Offset)
				}
			})(t)
		},
		"ack held": func(t *rapid.T) {
			who, below := member.Draw(t, "member"), m.floor+rapid.Uint64Range(0, 30).Draw(t, "below")
			if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
				below = 1<<63 - 1
			}
			acked := s.Counts().Acked
			n := s.AckHeld(who, below)
			require.Equal(t, m.ackHeld(who, below), n)
			require.EqualValues(t, n, s.Counts().Acked-acked)
		},
		"member leaves": func(t *rapid.T) {
			who := member.Draw(t, "member")
			require.Equal(t, m.release(who, func(uint64) bool { return false }, now), s.Release(who, now))
		},
		"member leaves but for": func(t *rapid.T) {
			who, one := member.Draw(t, "member"), rapid.Uint64Range(0, 3).Draw(t, "kept")
			keep := func(off uint64) bool { return off%4 == one }
			require.Equal(t, m.release(who, keep, now), s.ReleaseBut(who, keep, now))
		},
		"deadline": func(t *rapid.T) {
			x := anyToken(t)
			at, ok := s.Deadline(x.who, x.t)
			require.Equal(t, m.fault(x.who, x.t, "held") == 0, ok)
			if ok {
				require.Equal(t, m.records[x.t.Offset].due, at)
			} else {
				require.Zero(t, at)
			}
		},
		"time passes": func(t *rapid.T) {
			now += rapid.Int64Range(0, 6).Draw(t, "seconds") * int64(time.Second)
			require.Equal(t, m.tick(now), s.Tick(now, nil))
			if at, ok := s.NextDue(); ok {
				require.Greater(t, at, now)
			}
		},
		"take dead": func(t *rapid.T) {
			d, ok := s.TakeDead()
			require.Equal(t, len(m.dead) > 0, ok)
			if !ok {
				return
			}
			r := m.records[m.dead[0]]
			require.Equal(t, group.Dead{Token: group.Token{Offset: m.dead[0], ID: r.id}, Member: r.member, Attempt: r.attempt, Cause: r.cause}, d)
			r.state = "taken"
			m.dead = m.dead[1:]
			graves = append(graves, d.Token)
		},
		"bury": func(t *rapid.T) {
			if len(graves) == 0 {
				return
			}
			x := rapid.SampledFrom(graves).Draw(t, "token")
			if fault := m.fault(0, x, "taken"); rapid.Bool().Draw(t, "well") {
				if !refused(t, s.Buried(x), fault) {
					m.records[x.Offset].state = "settled"
					m.settle()
				}
			} else {
				delay := time.Duration(rapid.Int64Range(0, 5).Draw(t, "seconds")) * time.Second
				if !refused(t, s.Unburied(x, delay, now), fault) {
					m.seq++
					r := m.records[x.Offset]
					r.state, r.due, r.seq = "unburied", now+int64(delay), m.seq
					if delay == 0 {
						r.state = "dead"
						m.dead = append(m.dead, x.Offset)
					}
				}
			}
		},
		"retention": func(t *rapid.T) {
			first := m.floor - min(m.floor-start, 3) + rapid.Uint64Range(0, 12).Draw(t, "first")
			want := m.dropBefore(first)
			require.Equal(t, want, s.DropBefore(first))
			lost.Records += want.Records
			require.Zero(t, s.DropBefore(first), "once")
			end = max(end, first)
		},
		"reset": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "one in four") > 0 {
				return
			}
			to := start + rapid.Uint64Range(0, end-start).Draw(t, "to")
			s.Reset(to)
			*m = sharedModel{cfg: m.cfg, floor: to, next: to, ids: m.ids, reset: m.ids, seq: m.seq, newsTurn: m.newsTurn, records: map[uint64]*record{}}
		},
		"configure": func(t *rapid.T) {
			cfg := drawSharedConfig(t)
			s.Configure(cfg, now)
			m.configure(cfg, now)
		},
		"restore": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "one in four") > 0 {
				return
			}
			s = group.RestoreShared(m.cfg, s.Snapshot(), now)
			m.restore(now)
			taken, retook, lost = 0, 0, group.Loss{}
			before = group.Counts{}
		},
		"shrink": func(t *rapid.T) { s.Shrink() },
		"": func(t *rapid.T) {
			require.Equal(t, m.floor, s.Floor())
			require.Equal(t, m.next, s.Next())
			for off := m.floor - min(m.floor, 1); off <= m.next; off++ {
				r := m.records[off]
				require.Equal(t, off < m.floor || r != nil && r.state == "settled", s.Settled(off))
			}
			c := s.Counts()
			require.Equal(t, m.count("held"), c.InFlight)
			require.Equal(t, m.count("again"), c.Again)
			require.Equal(t, m.count("delayed"), c.Delayed)
			require.Equal(t, m.count("dead", "unburied", "taken"), c.Dead)
			require.Equal(t, m.count("dead"), s.ToBury())
			require.Equal(t, m.count("settled"), c.Ahead)
			require.Equal(t, int(m.next-m.floor), c.InFlight+c.Again+c.Delayed+c.Dead+c.Ahead, "every record is somewhere")
			require.Equal(t, taken, c.Deliveries)
			require.Equal(t, retook, c.Redeliveries)
			require.Equal(t, lost.Records, c.Lost)
			require.GreaterOrEqual(t, c.Acked+c.Failed+c.Expired+c.Released+c.Rejected, before.Acked+before.Failed+before.Expired+before.Released+before.Rejected)
			before = c

			var holdings []group.Holding
			for _, off := range slices.Sorted(maps.Keys(m.records)) {
				if r := m.records[off]; r.state == "held" {
					holdings = append(holdings, group.Holding{Token: group.Token{Offset: off, ID: r.id}, Member: r.member, Attempt: r.attempt, Deadline: r.due})
				}
			}
			require.Equal(t, holdings, s.InFlight(nil))

			due := int64(-1)
			for _, r := range m.records {
				if slices.Contains([]string{"held", "delayed", "unburied"}, r.state) && (due < 0 || r.due < due) {
					due = r.due
				}
			}
			at, ok := s.NextDue()
			require.Equal(t, due >= 0, ok)
			if ok {
				require.Equal(t, due, at)
			}
		},
	}
	for range 4 { // long enough for the ring to come round
		t.Repeat(actions)
	}
}
