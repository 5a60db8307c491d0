package group

import (
	"slices"
	"strings"
)

// A plan is made anew by the assignor, which takes as many steps as there are members and partitions. With many members most of those
// that come and go have nothing, and leave the plan as it is; and where all want the same topics a sticky plan changes by what they get
// or had. Both are seen without making it anew, so that ten thousand may come one after the other.
//
// # Proof
//
// The plan in force is the one that the assignor makes of the present members and partitions, and, if it is Sticky, of the plan that was
// in force before. Each plan that is made anew is, and then Sticky has nothing left to do. It stays so where none is made:
//
// Sticky, one that comes and gets nothing. Nobody has two, and the partitions of all that it wants are somebody's. What was planned is
// kept, nothing is to be filled, and no member can have two more than another one, so no path begins anywhere.
//
// Sticky, one that goes and has nothing. What was planned is kept, and nothing is to be filled: what it wanted somebody else has, or it
// would have it. Without it there are no more paths than with it.
//
// Sticky, where all want the same topics, so that no two differ by two. One that comes is the only one that others have two more than,
// until they have not: so each path is from a member that has the most, of several the first by name, to the new one. What one that
// goes had is filled: each goes to the member with the fewest, of several to the first by name; after it no two differ by two.
//
// Range and RoundRobin, where all want the same topics, and these have no more partitions than there are members. Both give one to each
// of the first, by name, and nothing to the others. (Of Range the runs of a topic are one long or empty, and those of one go to members
// that have nothing so far, of which there are enough.) So nothing changes with one that comes behind these, nor without one that has
// nothing.

// replan makes a plan for the members and partitions that there are.
func (g *Assigned) replan() {
	g.generation = g.number()
	g.forget()
	g.most = 0
	if len(g.parts) == 0 {
		return // as when many members leave whose topics are gone
	}
	g.plans++
	members := make([]Subscriber, len(g.order))
	g.alike = true
	for i, s := range g.order {
		members[i] = Subscriber{s.name, s.topics}
		g.alike = g.alike && slices.Equal(s.topics, g.order[0].topics)
	}
	sizes, previous := make(map[string]int, len(g.topics)), make(Plan, len(g.topics))
	all := make([]string, len(g.parts))
	for name, parts := range g.topics {
		owners := all[:len(parts):len(parts)]
		all = all[len(parts):]
		for i, p := range parts {
			if p.target != nil {
				owners[i] = p.target.name
			}
		}
		sizes[name], previous[name] = len(parts), owners
	}
	for name, owners := range g.cfg.Assignor.Assign(members, sizes, previous) {
		for i, owner := range owners {
			g.topics[name][i].aim(g.seats[owner])
		}
	}
	for _, s := range g.order {
		g.most = max(g.most, len(s.planned))
		g.rank(s)
	}
}

// aim changes who is to have a partition.
func (p *part) aim(s *seat) {
	if p.target == s {
		return
	}
	if from := p.target; from != nil {
		last := len(from.planned) - 1
		moved := from.planned[last]
		from.planned[p.slot], moved.slot = moved, p.slot
		from.planned[last] = nil
		from.planned = from.planned[:last]
	}
	p.target = s
	if s != nil {
		p.slot = len(s.planned)
		s.planned = append(s.planned, p)
	}
}

// come makes a plan with a seat that is new, and returns the partitions that may be others', in order.
func (g *Assigned) come(s *seat) []*part {
	if g.alike && !(slices.Equal(s.topics, g.order[0].topics) && slices.Equal(s.topics, g.order[len(g.order)-1].topics)) {
		g.forget()
	}
	switch {
	case !g.gets(s):
		g.generation = g.number()
		g.rank(s)
		return nil
	case g.evens() && s.wanted(g):
		g.generation = g.number()
		g.rank(s)
		return g.fetch(s)
	}
	g.replan()
	return g.parts
}

// evens reports whether the plan is sticky and all want the same topics, so that the seats are ranked.
func (g *Assigned) evens() bool { return g.alike && g.cfg.Assignor == Sticky }

// wanted reports whether all partitions that the seat wants are somebody's already.
func (s *seat) wanted(g *Assigned) bool {
	return !slices.ContainsFunc(s.topics, func(name string) bool {
		parts := g.topics[name]
		return len(parts) > 0 && parts[0].target == nil // then none of them is anybody's
	})
}

// gets reports whether a seat that is new may get something, or change the plan otherwise. See the proof.
func (g *Assigned) gets(s *seat) bool {
	switch {
	case len(g.parts) == 0 || !s.wanted(g):
		return true
	case g.cfg.Assignor == Sticky:
		return g.most > 1
	}
	n := 0
	for _, name := range s.topics {
		n += len(g.topics[name])
	}
	place, _ := g.placeOf(s.name)
	return !g.alike || place < n
}

// fetch moves to a new seat what is to be its own, of those that have the most.
func (g *Assigned) fetch(s *seat) (moved []*part) {
	stocks := map[*seat]*stock{}
	for {
		from := g.fullest.list[0]
		if len(from.planned) < len(s.planned)+2 {
			g.most = len(from.planned)
			slices.SortFunc(moved, func(a, b *part) int { return a.Compare(b.Partition) })
			return moved
		}
		if stocks[from] == nil {
			stocks[from] = newStock(from)
		}
		p := stocks[from].next()
		p.aim(s)
		moved = append(moved, p)
		g.review(from)
		g.review(s)
	}
}

// stock is what a seat has, in the order in which Sticky takes it away: by topic, of each the last one first.
type stock struct{ topics [][]*part }

func newStock(s *seat) *stock {
	all := slices.Clone(s.planned)
	slices.SortFunc(all, func(a, b *part) int { return a.Compare(b.Partition) })
	k := &stock{}
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Topic == all[0].Topic {
			n++
		}
		k.topics = append(k.topics, all[:n])
		all = all[n:]
	}
	return k
}

func (k *stock) next() *part {
	last := len(k.topics[0]) - 1
	p := k.topics[0][last]
	if k.topics[0] = k.topics[0][:last]; last == 0 { // as move does it
		end := len(k.topics) - 1
		k.topics[0] = k.topics[end]
		k.topics = k.topics[:end]
	}
	return p
}

// gone makes a plan without a seat that has been removed, and returns the partitions that may be others', in order.
func (g *Assigned) gone(s *seat) []*part {
	g.unrank(s)
	switch {
	case len(g.parts) > 0 && len(s.planned) == 0 && (g.cfg.Assignor == Sticky || g.alike):
		g.generation = g.number()
		return nil
	case len(g.parts) > 0 && len(g.order) > 0 && g.evens():
		g.generation = g.number()
		left := slices.Clone(s.planned)
		slices.SortFunc(left, func(a, b *part) int { return a.Compare(b.Partition) })
		for _, p := range left {
			least := g.emptiest.list[0]
			p.aim(least)
			g.review(least)
		}
		g.most = len(g.fullest.list[0].planned)
		return left
	}
	g.replan()
	return g.parts
}

// forget ends that all are known to want the same topics.
func (g *Assigned) forget() {
	g.alike, g.fullest.list, g.emptiest.list = false, nil, nil
}

// rank, unrank and review keep the ranks of seats, if there are any.
func (g *Assigned) rank(s *seat) {
	if g.evens() {
		g.fullest.add(s)
		g.emptiest.add(s)
	}
}

func (g *Assigned) unrank(s *seat) {
	if len(g.fullest.list) > 0 {
		g.fullest.remove(s)
		g.emptiest.remove(s)
	}
}

func (g *Assigned) review(s *seat) {
	g.fullest.settle(s)
	g.emptiest.settle(s)
}

// ranking is a heap of seats: with those first that are to have the most, or the fewest, and of these by name.
type ranking struct {
	least bool
	list  []*seat
}

func (r *ranking) before(a, b *seat) bool {
	if x, y := len(a.planned), len(b.planned); x != y {
		return (x < y) == r.least
	}
	return strings.Compare(a.name, b.name) < 0
}

// place returns where a seat keeps its place.
func (r *ranking) place(s *seat) *int {
	if r.least {
		return &s.ranks[0]
	}
	return &s.ranks[1]
}

func (r *ranking) put(i int, s *seat) {
	r.list[i] = s
	*r.place(s) = i
}

func (r *ranking) add(s *seat) {
	r.list = append(r.list, s)
	r.put(len(r.list)-1, s)
	r.settle(s)
}

func (r *ranking) remove(s *seat) {
	i, last := *r.place(s), len(r.list)-1
	moved := r.list[last]
	r.list[last] = nil
	r.list = r.list[:last]
	if i < last {
		r.put(i, moved)
		r.settle(moved)
	}
}

// settle moves a seat to where it should be.
func (r *ranking) settle(s *seat) {
	i := *r.place(s)
	for i > 0 && r.before(s, r.list[(i-1)/2]) {
		r.put(i, r.list[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(r.list) && r.before(r.list[child+1], r.list[child]) {
			child++
		}
		if child >= len(r.list) || !r.before(r.list[child], s) {
			break
		}
		r.put(i, r.list[child])
		i = child
	}
	r.put(i, s)
}
