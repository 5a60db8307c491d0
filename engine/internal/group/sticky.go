package group

import (
	"container/heap"
	"slices"
)

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
		owned:   make([][]holding, len(p.names)),
		at:      make([]map[int]int, len(p.names)),
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
	owned [][]holding   // by member: what it has, by topic; none of them is empty
	at    []map[int]int // by member: where in that a topic is

	// Of a search: by member whence it was reached, by a partition of which topic, and after how many steps (0: it was not);
	// by topic whether its members have been reached.
	from, via, level []int
	opened           []bool
	reached          []int
}

// holding is what a member has of a topic: what it had in the previous plan, in order, and what it has got in this one.
type holding struct {
	topic int
	kept  []int
	fresh descending
}

// descending is a heap of numbers with the greatest first.
type descending []int

func (d descending) Len() int           { return len(d) }
func (d descending) Less(i, j int) bool { return d[i] > d[j] }
func (d descending) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *descending) Push(x any)        { *d = append(*d, x.(int)) }

func (d *descending) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	*d = (*d)[:last]
	return x
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
				h := s.add(m, i, index)
				h.kept = append(h.kept, index)
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
			heap.Push(&s.add(least, i, index).fresh, index)
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
			if len(s.reached) == len(s.names) {
				break // there is nobody else
			}
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
	var index int
	at := s.at[from][t]
	if h := &s.owned[from][at]; len(h.fresh) > 0 {
		index = heap.Pop(&h.fresh).(int)
	} else {
		last := len(h.kept) - 1
		index, h.kept = h.kept[last], h.kept[:last]
	}
	if h := s.owned[from][at]; len(h.kept)+len(h.fresh) == 0 {
		last := len(s.owned[from]) - 1
		s.owned[from][at] = s.owned[from][last]
		s.at[from][s.owned[from][at].topic] = at
		s.owned[from] = s.owned[from][:last]
		delete(s.at[from], t)
	}
	s.load[from]--
	heap.Push(&s.add(to, t, index).fresh, index)
}

// add gives a partition to a member, and returns where it is to be noted.
func (s *stickiness) add(m, t, index int) *holding {
	s.give(&s.topics[t], index, m)
	at, there := s.at[m][t]
	if !there {
		if s.at[m] == nil {
			s.at[m] = map[int]int{}
		}
		at = len(s.owned[m])
		s.at[m][t] = at
		s.owned[m] = append(s.owned[m], holding{topic: t})
	}
	return &s.owned[m][at]
}
