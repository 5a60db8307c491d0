package group_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine/internal/group"
)

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
