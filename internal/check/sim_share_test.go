package check_test

import (
	"slices"
	"time"

	"github.com/leatlog/leat/internal/check"
)

// simShare is a shared group in one partition.
type simShare struct {
	s     *sim
	p     *simPart
	c     check.Consumer
	cfg   check.ConsumerConfig
	log   *check.Log
	floor int64
	next  int64
	tries map[int64]int
	held  map[int64]simHold
	again []int64
	done  map[int64]bool
	n     simCounts
}

type simHold struct {
	member  check.Member
	attempt int
}

func (s *sim) share(p *simPart, mode check.Mode, members int) {
	cfg := check.ConsumerConfig{Kind: check.Shared, Mode: mode, AckWait: time.Duration(300 / s.coarse)}
	h := &simShare{s: s, p: p, c: s.rec.Consumer(s.name("share", cfg), cfg), cfg: cfg, log: s.handlers, floor: p.low, next: p.low,
		tries: map[int64]int{}, held: map[int64]simHold{}, done: map[int64]bool{}}
	s.shares = append(s.shares, h)
	s.observe(h.c, p, func() int64 { return h.floor })
	p.gates = append(p.gates, func() int64 { return h.floor })
	for range members {
		h.join()
	}
}

// join lets a member take part, for a while.
func (h *simShare) join() {
	m := h.s.rec.Member("sharer")
	gone := false
	for range 2 {
		h.seat(m, &gone)
	}
	h.s.in(int64(h.s.IntN(4000)), func() {
		if h.s.stopping() {
			return
		}
		leave := h.log.Leave(h.c, m)
		h.s.after(func() {
			gone = true
			for off, hold := range h.held {
				if hold.member == m {
					delete(h.held, off)
					h.again = append(h.again, off)
				}
			}
			slices.Sort(h.again) // the order of a map is not the seed's
			h.s.in(50, func() { leave.Ok(); h.join() })
		})
	})
}

// seat is one of the places at which a member handles records.
func (h *simShare) seat(m check.Member, gone *bool) {
	o := check.Owner{Consumer: h.c, Member: m, Partition: h.p.id}
	var loop func()
	loop = func() {
		if *gone || h.s.stopping() {
			return
		}
		off := h.next
		if len(h.again) > 0 {
			off = h.again[0]
			h.again = h.again[1:]
		} else if off == h.p.end() {
			h.s.after(loop)
			return
		} else {
			h.next++
		}
		h.tries[off]++
		hold := simHold{m, h.tries[off]}
		h.held[off] = hold
		h.s.in(int64(h.cfg.AckWait)*h.s.coarse+h.s.coarse+20, func() { h.release(off, hold) })
		h.s.in(int64(h.s.IntN(3)), func() {
			h.n.delivered++
			call := h.log.Handle(o, off, hold.attempt, h.p.at(off))
			h.s.after(func() {
				ok := !h.s.chance(5)
				if ok {
					call.Ok()
				} else {
					call.Fail()
				}
				h.s.in(int64(h.s.IntN(3)), func() {
					switch {
					case !ok:
						h.release(off, hold)
					case h.cfg.Mode == check.Manual:
						h.settle(o, off, hold)
					default:
						h.ack(off, hold)
					}
					h.s.after(loop)
				})
			})
		})
	}
	h.s.after(loop)
}

func (h *simShare) release(off int64, hold simHold) bool {
	if h.held[off] != hold {
		return false
	}
	delete(h.held, off)
	h.again = append(h.again, off)
	return true
}

func (h *simShare) ack(off int64, hold simHold) bool {
	if h.held[off] != hold {
		return false
	}
	delete(h.held, off)
	h.done[off] = true
	for h.done[h.floor] {
		h.floor++
	}
	return true
}

// settle says something about a record, a little later.
func (h *simShare) settle(o check.Owner, off int64, hold simHold) {
	h.s.after(func() {
		nack := h.s.chance(6)
		var op check.Open
		if nack {
			op = h.log.Nack(o, off, hold.attempt)
		} else {
			op = h.log.Ack(o, off, hold.attempt)
		}
		h.s.after(func() {
			ok := false
			if nack {
				ok = h.release(off, hold)
			} else {
				ok = h.ack(off, hold)
			}
			h.s.after(func() {
				if ok {
					op.Ok()
				} else {
					op.Fail()
				}
			})
		})
	})
}
