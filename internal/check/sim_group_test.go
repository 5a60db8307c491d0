package check_test

import "github.com/leatlog/leat/internal/check"

// simGroup is an assigned group over some partitions.
type simGroup struct {
	s       *sim
	c       check.Consumer
	cfg     check.ConsumerConfig
	log     *check.Log
	members []check.Member
	owned   []*simOwned
	gen     uint64
	pull    bool
	counts  simCounts
	fenced  int64
}

// simOwned is one partition of a group.
type simOwned struct {
	p         *simPart
	committed int64
	lane      *simLane
	moving    bool
}

func (s *sim) group(parts []*simPart, cfg check.ConsumerConfig, members int, pull bool) {
	cfg.Kind = check.Assigned
	g := &simGroup{s: s, pull: pull, c: s.rec.Consumer(s.name("group", cfg), cfg), cfg: cfg, log: s.log}
	s.groups = append(s.groups, g)
	for range members {
		g.members = append(g.members, s.rec.Member("member"))
	}
	for _, p := range parts {
		o := &simOwned{p: p, committed: p.low}
		g.owned = append(g.owned, o)
		g.assign(o)
		s.observe(g.c, p, o.position)
		if cfg.Protected {
			p.gates = append(p.gates, o.position)
		} else if cfg.Mode == check.AtLeastOnce && !cfg.ByKey && !pull {
			s.seeks(g.c, p, func(to int64) {
				o.committed = to
				if o.lane != nil {
					o.lane.pos = to
					o.lane.seeks++
				}
			})
		}
	}
	var loop func()
	loop = func() {
		if s.stopping() {
			return
		}
		g.move(g.owned[s.IntN(len(g.owned))])
		s.in(int64(s.IntN(1000)), loop)
	}
	s.in(int64(s.IntN(1000)), loop)
}

func (o *simOwned) position() int64 {
	if o.lane != nil {
		return o.lane.pos
	}
	return o.committed
}

// assign gives the partition to somebody.
func (g *simGroup) assign(o *simOwned) {
	g.gen++
	owner := check.Owner{Consumer: g.c, Member: g.members[g.s.IntN(len(g.members))], Partition: o.p.id, Gen: g.gen}
	lane := g.s.lane(o.p, owner, g.cfg, o.committed, &g.counts)
	o.lane, lane.pull = lane, g.pull
	g.s.after(func() {
		if lane.fenced {
			return
		}
		g.log.Assign(owner, lane.pos)
		lane.next = lane.pos
		g.s.after(func() {
			lane.start()
			o.moving = false
		})
	})
	o.moving = true
}

// move takes the partition from its owner in one of three ways.
func (g *simGroup) move(o *simOwned) {
	if o.moving {
		return
	}
	o.moving = true
	lane := o.lane
	switch g.s.IntN(4) {
	case 0: // the coordinator says when
		fence := g.log.Fence(lane.o)
		g.s.after(func() {
			lane.fence()
			o.committed = lane.pos
			o.lane = nil
			g.fenced++
			g.s.after(func() { fence.Ok(); g.assign(o) })
		})
	case 1: // the member is told later
		lane.fence()
		o.committed = lane.pos
		g.fenced++
		g.s.in(int64(g.s.IntN(200)), func() { g.log.Lost(lane.o) })
		g.assign(o)
	default:
		lane.stop(func() {
			revoke := g.log.Revoke(lane.o)
			g.s.after(func() {
				revoke.Ok()
				lane.fence()
				o.committed = lane.pos
				o.lane = nil
				g.s.after(func() { g.assign(o) })
			})
		})
	}
}
