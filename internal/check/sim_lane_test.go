package check_test

import (
	"slices"

	"github.com/leatlog/leat/internal/check"
)

// simLane pushes a partition to one owner, one call at a time, or one for each key.
type simLane struct {
	s     *sim
	p     *simPart
	o     check.Owner
	cfg   check.ConsumerConfig
	log   *check.Log
	batch int
	pull  bool

	pos     int64
	seeks   int // how often the position was set
	stopped bool
	fenced  bool
	busy    int
	onStop  func()
	fails   map[int64]int

	// of manual and keyed ones
	done    map[int64]bool
	held    map[int64]int   // attempt
	again   []int64         // to be delivered again
	keys    map[uint64]bool // in progress
	next    int64           // first delivery
	counted *simCounts
}

// simCounts are what the engine would count.
type simCounts struct{ delivered, redelivered, failed, dropped int64 }

func (s *sim) lane(p *simPart, o check.Owner, cfg check.ConsumerConfig, start int64, n *simCounts) *simLane {
	l := &simLane{s: s, p: p, o: o, cfg: cfg, log: s.handlers, batch: 1, pos: start, next: start, counted: n,
		fails: map[int64]int{}, done: map[int64]bool{}, held: map[int64]int{}, keys: map[uint64]bool{}}
	if s.chance(3) && cfg.Mode != check.Manual && !cfg.ByKey {
		l.batch = 1 + s.IntN(8)
	}
	return l
}

func (l *simLane) start() {
	switch {
	case l.cfg.Mode == check.ByCommit:
		l.s.after(l.polls)
	case l.pull:
		l.s.after(l.pulls)
	case l.cfg.Mode == check.Manual || l.cfg.ByKey:
		for range either(l.cfg.ByKey, 1, 3) {
			l.s.after(l.pick)
		}
	default:
		l.s.after(l.step)
	}
}

// stop lets nothing begin any more and calls f when all is over.
func (l *simLane) stop(f func()) {
	l.stopped, l.onStop = true, f
	l.idle()
}

func (l *simLane) idle() {
	if l.stopped && l.busy == 0 && l.onStop != nil {
		f := l.onStop
		l.onStop = nil
		f()
	}
}

// fence takes all away at once.
func (l *simLane) fence() { l.stopped, l.fenced = true, true }

// gap passes over what was dropped.
func (l *simLane) gap() {
	if l.pos < l.p.low {
		l.log.Gap(l.o.Consumer, l.p.id, l.pos, l.p.low)
		l.pos = l.p.low
	}
}

// step delivers what comes next.
func (l *simLane) step() {
	if l.stopped || l.s.stopping() {
		return
	}
	l.gap()
	if l.pos == l.p.end() {
		l.s.after(l.step)
		return
	}
	first, values, seeks := l.pos, l.p.run(l.pos, l.batch), l.seeks
	end := first + int64(len(values))
	if l.cfg.Mode == check.AtMostOnce {
		l.pos = end
	}
	l.busy++
	jitter := func(f func()) { l.s.in(int64(l.s.IntN(3)), f) }
	jitter(func() {
		attempt := l.fails[first] + 1
		h := l.handle(first, attempt, values)
		l.s.after(func() {
			ok := !l.s.chance(5)
			if !ok {
				l.fails[first]++
				l.counted.failed += int64(len(values))
				h.Fail()
			} else {
				delete(l.fails, first)
				h.Ok()
			}
			jitter(func() {
				l.busy--
				if l.cfg.Mode != check.AtMostOnce && !l.fenced && l.seeks == seeks {
					if !ok && l.cfg.MaxDeliveries > 0 && l.fails[first] >= l.cfg.MaxDeliveries {
						for off := first; off < end; off++ {
							l.counted.dropped++
							l.log.Dropped(l.o.Consumer, l.p.id, off)
						}
						ok = true
					}
					if ok {
						delete(l.fails, first)
						l.pos = end
					}
				}
				l.idle()
				l.s.after(l.step)
			})
		})
	})
}

func (l *simLane) handle(first int64, attempt int, values [][]byte) check.Handling {
	l.counted.delivered += int64(len(values))
	if attempt > 1 {
		l.counted.redelivered += int64(len(values))
	}
	if len(values) == 1 {
		return l.log.Handle(l.o, first, attempt, values[0])
	}
	return l.log.HandleBatch(l.o, first, attempt, values...)
}

// pulls polls, which settles what the poll before returned, and does something with what it gets.
func (l *simLane) pulls() {
	if l.stopped || l.s.stopping() {
		return
	}
	l.gap()
	first, values := l.pos, l.p.run(l.pos, 1+l.s.IntN(6))
	if len(values) == 0 {
		l.s.after(l.pulls)
		return
	}
	at, done := l.log.Now(), int64(0)
	l.busy++
	var next func()
	next = func() {
		if n := int64(len(values)); done < n {
			run := 1 + l.s.Int64N(n-done)
			l.counted.delivered += run
			h := l.log.Pulled(at, l.o, first+done, 1, values[done:done+run]...)
			done += run
			l.s.after(func() { h.Ok(); l.s.after(next) })
			return
		}
		if l.busy--; !l.fenced {
			l.pos = first + done
		}
		l.idle()
		l.s.after(l.pulls)
	}
	l.s.after(next)
}

// polls pulls, and commits now and then.
func (l *simLane) polls() {
	if l.stopped || l.s.stopping() {
		return
	}
	l.busy++
	poll, at := l.log.Poll(l.o, l.next), l.next
	l.s.after(func() {
		from, low := max(at, l.p.low), l.p.low
		got := l.p.run(from, 1+l.s.IntN(8))
		l.next = from + int64(len(got))
		l.s.after(func() {
			if from > at {
				poll.Gap(low)
			}
			for i, v := range got {
				poll.Record(from+int64(i), v)
			}
			poll.Ok()
			then := func() { l.busy--; l.idle(); l.s.after(l.polls) }
			if l.s.chance(2) {
				then()
				return
			}
			commit, off := l.log.Commit(l.o, l.next), l.next
			l.s.after(func() {
				fenced := l.fenced
				if !fenced {
					l.pos = off
				}
				l.s.after(func() {
					switch {
					case fenced:
						commit.Fail()
					case l.s.chance(10):
						commit.Unknown()
					default:
						commit.Ok()
					}
					then()
				})
			})
		})
	})
}

// pick delivers the next record of a lane that is manual or by key.
func (l *simLane) pick() {
	if l.stopped || l.s.stopping() {
		return
	}
	if l.cfg.ByKey && l.next < l.p.low || l.next < l.p.low && len(l.held) == 0 && len(l.again) == 0 {
		if l.busy > 0 || len(l.again) > 0 {
			l.s.after(l.pick)
			return
		}
		l.log.Gap(l.o.Consumer, l.p.id, l.next, l.p.low)
		for off := l.next; off < l.p.low; off++ {
			l.done[off] = true
		}
		l.next = l.p.low
		l.floor()
	}
	off := l.next
	if len(l.again) > 0 {
		off = l.again[0]
		l.again = l.again[1:]
	} else if off < l.p.low || off >= l.p.end() {
		l.s.after(l.pick)
		return
	} else {
		_, key, _ := check.ParsePayload(l.p.at(off))
		if l.cfg.ByKey {
			if l.keys[key] {
				l.s.after(l.pick)
				return
			}
			l.keys[key] = true
		}
		l.next++
	}
	l.busy++
	l.fails[off]++
	attempt := l.fails[off]
	l.held[off] = attempt
	if l.cfg.AckWait > 0 {
		l.s.in(int64(l.cfg.AckWait)*l.s.coarse+l.s.coarse+20, func() { l.release(off, attempt) })
	}
	l.s.in(int64(l.s.IntN(3)), func() {
		h := l.handle(off, attempt, [][]byte{l.p.at(off)})
		l.s.after(func() {
			ok := !l.s.chance(5)
			if ok {
				h.Ok()
			} else {
				l.counted.failed++
				h.Fail()
			}
			l.s.in(int64(l.s.IntN(3)), func() {
				l.busy--
				if l.cfg.ByKey {
					l.keyed(off, ok)
				} else if ok {
					l.settle(off, attempt)
				} else {
					l.release(off, attempt)
				}
				l.idle()
				l.s.after(l.pick)
			})
		})
	})
}

// keyed ends the delivery of a lane by key.
func (l *simLane) keyed(off int64, ok bool) {
	if l.fenced {
		return
	}
	if !ok {
		l.again = append(l.again, off)
		return
	}
	_, key, _ := check.ParsePayload(l.p.at(off))
	delete(l.keys, key)
	delete(l.held, off)
	l.done[off] = true
	l.floor()
}

// floor moves the position over what is done with.
func (l *simLane) floor() {
	for l.done[l.pos] {
		l.pos++
	}
}

// release gives a record back, if it is still held by that delivery.
func (l *simLane) release(off int64, attempt int) bool {
	if l.fenced || l.held[off] != attempt {
		return false
	}
	delete(l.held, off)
	l.again = append(l.again, off)
	return true
}

// settle says something about a record, a little later.
func (l *simLane) settle(off int64, attempt int) {
	l.s.after(func() {
		var op check.Open
		kind := l.s.IntN(10)
		switch kind {
		case 0:
			op = l.log.Nack(l.o, off, attempt)
		case 1:
			op = l.log.Reject(l.o, off, attempt)
		case 2:
			op = l.log.AckThrough(l.o, off)
		default:
			op = l.log.Ack(l.o, off, attempt)
		}
		l.s.after(func() {
			ok := false
			switch {
			case kind == 0:
				ok = l.release(off, attempt)
			case kind == 2:
				if ok = !l.fenced; ok {
					for o := l.pos; o <= off; o++ {
						l.done[o] = true
						delete(l.held, o)
						l.again = slices.DeleteFunc(l.again, func(x int64) bool { return x == o })
					}
				}
			case !l.fenced && l.held[off] == attempt:
				delete(l.held, off)
				l.done[off], ok = true, true
			}
			l.floor()
			l.s.after(func() {
				switch {
				case !ok:
					op.Fail()
				case l.s.chance(20):
					op.Unknown()
				default:
					op.Ok()
				}
			})
		})
	})
}

// subscription is a broadcast that pushes, with seeks from outside.
func (s *sim) subscription(p *simPart, cfg check.ConsumerConfig) {
	c := s.rec.Consumer(s.name("subscription", cfg), cfg)
	n := &simCounts{}
	l := s.lane(p, check.Owner{Consumer: c, Partition: p.id}, cfg, p.low, n)
	s.lanes = append(s.lanes, l)
	if cfg.Protected {
		p.gates = append(p.gates, func() int64 { return l.pos })
	}
	if s.chance(2) {
		l.log.Assign(l.o, p.low)
	}
	l.start()
	s.observe(c, p, func() int64 { return l.pos })
	if cfg.Protected || cfg.Mode == check.Manual || cfg.ByKey {
		return
	}
	s.seeks(c, p, func(to int64) { l.pos = to; l.seeks++ })
}

// seeks sets a position now and then.
func (s *sim) seeks(c check.Consumer, p *simPart, set func(to int64)) {
	log := s.rec.Log("seeker")
	var loop func()
	loop = func() {
		if s.stopping() {
			return
		}
		to := p.base + s.Int64N(p.end()-p.base+1)
		seek := log.Seek(c, p.id, either(s.chance(10), to, -1))
		s.after(func() {
			set(to)
			s.after(func() { seek.Ok(); s.in(int64(s.IntN(2000)), loop) })
		})
	}
	s.in(int64(s.IntN(2000)), loop)
}
