package check_test

import (
	"container/heap"
	"math/rand/v2"

	"github.com/leatlog/leat/internal/check"
)

// sim plays an engine that does everything right, with all its participants, on a clock of its own: what happens is chosen by a
// seed. It writes down what those who use the engine would see. The histories that come out must be found good.
type sim struct {
	*rand.Rand
	rec   *check.Recorder
	now   int64
	queue events
	added int
	life  int // goes up with each crash: what belongs to an earlier life does not happen any more

	coarse int64 // the clock's step: many events have the same time if it is large
	parts  []*simPart
	until  int64 // no new work from then on
	log    *check.Log

	handlers *check.Log
	lanes    []*simLane
	groups   []*simGroup
	shares   []*simShare
}

// event is something that happens at a time.
type event struct {
	at    int64
	order int
	life  int
	do    func()
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	x := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return x
}

func newSim(seed uint64, coarse int64) *sim {
	s := &sim{Rand: rand.New(rand.NewPCG(seed, 1)), coarse: coarse}
	s.rec = check.NewRecorderWithClock(seed, func() int64 { return s.now / s.coarse })
	s.log, s.handlers = s.rec.Log("nemesis"), s.rec.SharedLog("handlers")
	return s
}

// after lets something happen in a while: most often soon, at times at once, rarely late.
func (s *sim) after(do func()) {
	d := int64(s.IntN(20))
	switch s.IntN(20) {
	case 0:
		d = 0
	case 1:
		d += int64(s.IntN(1000))
	}
	s.in(d, do)
}

func (s *sim) in(d int64, do func()) {
	s.added++
	heap.Push(&s.queue, event{s.now + d, s.added, s.life, do})
}

// run lets all happen, to the end.
func (s *sim) run() {
	for len(s.queue) > 0 {
		e := heap.Pop(&s.queue).(event)
		if e.life != s.life {
			continue
		}
		s.now = e.at
		e.do()
	}
}

// name names a consumer by what it is.
func (s *sim) name(kind string, cfg check.ConsumerConfig) string {
	mode := [...]string{"at-least-once", "at-most-once", "manual", "by-commit"}[cfg.Mode]
	if cfg.ByKey {
		mode += " by-key"
	}
	return kind + " " + mode
}

func (s *sim) stopping() bool { return s.now >= s.until }

// chance reports true once in n.
func (s *sim) chance(n int) bool { return s.IntN(n) == 0 }

// simPart is a partition.
type simPart struct {
	id     check.Partition
	base   int64 // the offset of the first value
	values [][]byte
	low    int64
	acked  int64          // the end of what was acknowledged
	gates  []func() int64 // positions that retention must not pass
}

func (s *sim) partition(name string) *simPart {
	p := &simPart{}
	if s.chance(4) {
		p.base = 1<<62 + 5
	}
	p.id, p.low = s.rec.PartitionFrom(name, p.base), p.base
	s.parts = append(s.parts, p)
	return p
}

func (p *simPart) end() int64 { return p.base + int64(len(p.values)) }

func (p *simPart) at(off int64) []byte { return p.values[off-p.base] }

// run returns the records from an offset on, n at the most.
func (p *simPart) run(off int64, n int) [][]byte {
	return p.values[off-p.base:][:min(int64(n), p.end()-off)]
}

// producer publishes to any partition, one call after the other.
func (s *sim) producer(parts []*simPart) {
	values, log := s.rec.Producer(), s.rec.Log("producer")
	var loop func()
	loop = func() {
		if s.stopping() {
			return
		}
		p := parts[s.IntN(len(parts))]
		next := func() []byte { return values.NextKey(uint64(s.IntN(5)), check.MinPayload+s.IntN(20)) }
		if !s.chance(4) {
			v := next()
			send := log.SendTo(p.id, v)
			s.publish(p, [][]byte{v}, func(off int64) { send.Ok(p.id, off) }, send.Fail, send.Unknown, loop)
			return
		}
		var batch [][]byte
		for range 2 + s.IntN(5) {
			batch = append(batch, next())
		}
		at := p.id
		if s.chance(2) {
			at = check.AnyPartition
		}
		b := log.SendBatch(at, batch...)
		s.publish(p, batch, func(off int64) { b.Ok(p.id, off) }, b.Fail, b.Unknown, loop)
	}
	s.after(loop)
}

func (s *sim) publish(p *simPart, values [][]byte, ok func(off int64), fail, unknown, then func()) {
	s.after(func() {
		off, fate := p.end(), s.IntN(20)
		if fate > 1 { // 0 failed, 1 in doubt and not in the log, 2 in doubt and there
			p.values = append(p.values, values...)
		}
		s.after(func() {
			switch {
			case fate == 0:
				fail()
			case fate <= 2:
				if !s.chance(4) { // or it never returns
					unknown()
				}
			default:
				p.acked = max(p.acked, off+int64(len(values)))
				ok(off)
			}
			s.after(then)
		})
	})
}

// retention drops records now and then, and looks at the low mark.
func (s *sim) retention(p *simPart) {
	log := s.rec.Log("retention")
	var loop func()
	loop = func() {
		if s.stopping() {
			return
		}
		if s.chance(2) {
			to := p.low + int64(s.IntN(20))
			for _, gate := range p.gates {
				to = min(to, gate())
			}
			p.low = max(p.low, min(to, p.end()))
		}
		look := log.Low(p.id)
		s.after(func() {
			low := p.low
			s.after(func() { look.Is(low); s.in(int64(s.IntN(300)), loop) })
		})
	}
	s.after(loop)
}

// observe looks at a consumer's position now and then.
func (s *sim) observe(c check.Consumer, p *simPart, position func() int64) {
	log := s.rec.Log("observer")
	var loop func()
	loop = func() {
		look := log.Committed(c, p.id)
		s.after(func() {
			at := position()
			s.after(func() {
				look.Is(at)
				if !s.stopping() {
					s.in(int64(s.IntN(200)), loop)
				}
			})
		})
	}
	s.after(loop)
}

// reader pulls from a partition and seeks now and then.
func (s *sim) reader(p *simPart) {
	o := check.Owner{Consumer: s.rec.Consumer("reader", check.ConsumerConfig{}), Partition: p.id}
	log, pos := s.rec.Log("reader"), p.low
	var loop func()
	loop = func() {
		switch {
		case s.stopping():
			return
		case s.chance(10):
			to := p.base + s.Int64N(p.end()-p.base+1)
			seek := log.Seek(o.Consumer, p.id, either(s.chance(4), to, -1))
			s.after(func() {
				pos = to
				s.after(func() { seek.Ok(); s.after(loop) })
			})
			return
		}
		poll := log.Poll(o, pos)
		s.after(func() {
			gap := pos < p.low
			if gap {
				pos = p.low
			}
			low, from := p.low, pos
			var got [][]byte
			if !gap || s.chance(2) {
				got = p.run(pos, 1+s.IntN(10))
			}
			pos += int64(len(got))
			s.after(func() {
				if gap {
					poll.Gap(low)
				}
				for i, v := range got {
					poll.Record(from+int64(i), v)
				}
				poll.Ok()
				s.after(loop)
			})
		})
	}
	s.after(loop)
}

// finish closes the engine, reads each partition once more, and looks at the counters.
func (s *sim) finish() *check.History {
	s.run()
	end := s.log.Close()
	s.now += s.coarse * 2
	end.Ok()
	for _, p := range s.parts {
		at := p.low
		for {
			s.now += s.coarse * 2
			poll := s.log.FinalPoll(p.id, at)
			got := p.run(at, 1+s.IntN(50))
			for i, v := range got {
				poll.Record(at+int64(i), v)
			}
			at += int64(len(got))
			poll.Ok()
			if len(got) == 0 {
				break
			}
		}
		s.now += s.coarse * 2
		s.log.Low(p.id).Is(p.low)
		s.log.Counter(check.Appended, check.AnyConsumer, p.id).Is(int64(len(p.values)))
		s.log.Counter(check.Reclaimed, check.AnyConsumer, p.id).Is(p.low - p.base)
	}
	return s.rec.History()
}

// crash ends all that is going on, cuts off what was not durable, and lets the groups go on with what is left.
func (s *sim) crash() {
	s.now += s.coarse * 2
	s.log.Crash()
	s.life++
	s.now += s.coarse * 2
	for _, p := range s.parts {
		keep := max(p.acked, p.low)
		if end := p.end(); keep < end {
			keep += s.Int64N(end - keep + 1)
		}
		p.values = p.values[:keep-p.base]
		p.gates = nil
		s.log.Reopen(p.id, uint64(s.life), keep)
	}
	s.now += s.coarse * 2
	for _, g := range s.groups {
		for _, o := range g.owned {
			if o.committed = o.position(); o.committed > o.p.end() {
				s.log.Truncated(g.c, o.p.id, o.committed, o.p.end())
				o.committed = o.p.end()
			}
			g.assign(o)
		}
	}
}
