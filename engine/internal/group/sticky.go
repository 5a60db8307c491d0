package group

import "slices"

// sticky keeps what can be kept, gives what nobody has to those with the fewest, and then evens out.
//
// # Proof
//
// Even. Members are nodes, and there is an edge from A to B if A has a partition of a topic that B wants. A path from A to
// a member with two partitions less or fewer is a way to even out: one partition moves along each edge, A has one less, the
// last one has one more, and those between keep their number. It ends, because each path lowers the sum of the squares of
// the loads. If no path is left the loads are the evenest that there are (that a worse assignment has such a path is the
// theorem on semi-matchings of Harvey, Ladner, Lovasz and Tamir). If all want the same topics, all edges are there, so none
// is left only when no two differ by two.
//
// Sticky. Where all want the same topics each path is one edge long, from a member with the most to one with the fewest, and
// it is taken only if they differ by two. Let each be due q or q+1. The highest load never rises and the lowest never falls,
// so while some member is above q+1 it is such a one that gives, and while some member is below q it is such a one that
// gets. Each move thus lowers both what is above q+1 and what is missing below q, as long as there is any, and the larger of
// the two is how many moves any even plan needs. What was given in this plan goes on first.
func (p *problem) sticky(previous Plan) {
	s := stickiness{
		problem: p,
		owned:   make([][]place, len(p.names)),
		from:    make([]int, len(p.names)),
		via:     make([]int, len(p.names)),
		level:   make([]int, len(p.names)),
		opened:  make([]bool, len(p.topics)),
	}
	s.keep(previous)
	s.fill()
	s.even()
}

type stickiness struct {
	*problem
	owned [][]place // by member: what it has

	// Of a search: by member whence it was reached, by a partition of which topic, and after how many steps (0: it was not);
	// by topic whether its members have been reached.
	from, via, level []int
	opened           []bool
	reached          []int
}

// place is a partition that a member has. A fresh one it did not have in the previous plan.
type place struct {
	topic, index int
	fresh        bool
}

// keep gives each partition to its previous owner, if that is there and wants it.
func (s *stickiness) keep(previous Plan) {
	for i := range s.topics {
		t := &s.topics[i]
		for index, name := range previous[t.name] {
			if index >= len(t.owner) {
				break
			}
			m, found := slices.BinarySearch(s.names, name)
			if !found {
				continue
			}
			if _, wants := slices.BinarySearch(t.wanted, m); wants {
				s.add(m, place{i, index, false})
			}
		}
	}
}

// fill gives each partition that nobody has to the member that wants it and has the fewest.
func (s *stickiness) fill() {
	for i := range s.topics {
		t := &s.topics[i]
		for index, owner := range t.owner {
			if owner != nobody || len(t.wanted) == 0 {
				continue
			}
			least := t.wanted[0]
			for _, m := range t.wanted[1:] {
				if s.load[m] < s.load[least] {
					least = m
				}
			}
			s.add(least, place{i, index, true})
		}
	}
}

// even moves partitions along paths until there is no path. The next one always starts at a member that has the most.
func (s *stickiness) even() {
	hopeless := make([]bool, len(s.names))
	for again := true; again; {
		again = false
		clear(hopeless)
		for {
			most := nobody
			for m, load := range s.load {
				if !hopeless[m] && (most == nobody || load > s.load[most]) {
					most = m
				}
			}
			// The other members have no more than it has, so if none has two less than this one, none has two less than any.
			if most == nobody || slices.Min(s.load) > s.load[most]-2 {
				break
			}
			if s.search(most) {
				again = true
				continue
			}
			// Whoever it reaches and has no more than it reaches no more than it does: no path starts there either, as
			// long as nothing moves. The last pass, in which nothing does, has looked at all.
			hopeless[most] = true
			for _, r := range s.reached {
				hopeless[r] = hopeless[r] || s.load[r] <= s.load[most]
			}
		}
	}
}

// search looks for a shortest path from member start to one that has at least two less, and moves partitions along it.
func (s *stickiness) search(start int) bool {
	clear(s.level)
	clear(s.opened)
	s.level[start] = 1
	s.reached = append(s.reached[:0], start)
	best := nobody
	for i := 0; i < len(s.reached); i++ {
		m := s.reached[i]
		if best != nobody && s.level[m] >= s.level[best] {
			break
		}
		for _, own := range s.owned[m] {
			if s.opened[own.topic] {
				continue
			}
			s.opened[own.topic] = true
			for _, r := range s.topics[own.topic].wanted {
				if s.level[r] != 0 {
					continue
				}
				s.level[r], s.from[r], s.via[r] = s.level[m]+1, m, own.topic
				s.reached = append(s.reached, r)
				if s.load[r] <= s.load[start]-2 && (best == nobody || s.load[r] < s.load[best]) {
					best = r
				}
			}
		}
	}
	if best == nobody {
		return false
	}
	for to := best; to != start; to = s.from[to] {
		s.move(s.from[to], to, s.via[to])
	}
	return true
}

// move hands a partition of topic t on: a fresh one if there is one, of several the one with the highest number.
func (s *stickiness) move(from, to, t int) {
	which := nobody
	for i, own := range s.owned[from] {
		if own.topic != t {
			continue
		}
		if which == nobody || own.before(s.owned[from][which]) {
			which = i
		}
	}
	own := s.owned[from][which]
	last := len(s.owned[from]) - 1
	s.owned[from][which] = s.owned[from][last]
	s.owned[from] = s.owned[from][:last]
	s.load[from]--
	s.add(to, place{t, own.index, true})
}

// before reports whether a is to be handed on rather than b.
func (a place) before(b place) bool {
	if a.fresh != b.fresh {
		return a.fresh
	}
	return a.index > b.index
}

func (s *stickiness) add(m int, own place) {
	s.owned[m] = append(s.owned[m], own)
	s.give(&s.topics[own.topic], own.index, m)
}
