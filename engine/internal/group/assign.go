package group

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// Partition names one partition of one topic.
type Partition struct {
	Topic string
	Index int
}

// String returns topic/index.
func (p Partition) String() string { return fmt.Sprintf("%s/%d", p.Topic, p.Index) }

// Compare orders partitions by topic and then by index.
func (p Partition) Compare(q Partition) int {
	return cmp.Or(cmp.Compare(p.Topic, q.Topic), cmp.Compare(p.Index, q.Index))
}

// Subscriber is a member as the assignors see it: its name, which no other one has, and the topics that it wants.
type Subscriber struct {
	Name   string
	Topics []string
}

// Plan says who is to have which partition: for each topic and each of its partitions the name of a member, or "" where no
// member wants the topic.
type Plan map[string][]string

// Assignor makes plans. The zero value is Sticky.
//
// # Invariants
//
// Each is held by all three, for any input:
//
// Complete. Each partition of a topic that somebody wants has exactly one owner, who wants that topic; the others have none.
//
// Even. If all members want the same topics, no member has two partitions more than another, over all topics together.
//
// Deterministic. A plan depends on the arguments as sets: not on the order of members or topics, on maps or on clocks.
type Assignor uint8

const (
	// Sticky changes as little as it can. A partition whose owner is still there and still wants it moves only where the
	// plan would be uneven otherwise, and with members that want the same topics no plan that is even moves fewer. With
	// members that want different topics the plan is as even as the topics allow: no chain of moves can bring two members
	// that differ by two or more closer to each other.
	Sticky Assignor = iota

	// Range cuts each topic into runs of consecutive partitions, in the order of the members' names. Where a topic does not
	// divide evenly, the longer runs go to members that have fewer partitions so far. So topics with the same number of
	// partitions are cut alike if that number is a multiple of that of the members, and not always otherwise.
	Range

	// RoundRobin deals the partitions of all topics like cards, in the order of topics and members' names, and leaves out a
	// member that does not want the topic.
	RoundRobin
)

var assignorNames = [...]string{Sticky: "sticky", Range: "range", RoundRobin: "round-robin"}

// String returns sticky, range or round-robin.
func (a Assignor) String() string { return textOf(a, assignorNames[:], "Assignor") }

// Valid reports whether a is one of the three.
func (a Assignor) Valid() bool { return int(a) < len(assignorNames) }

// Assign plans who is to have which of the given topics' partitions. Previous is the plan that was carried out last; it may
// be nil, and may name members, topics and partitions that are gone. Only Sticky looks at it. Nothing that is passed in is
// changed or kept. It panics if a is not one of the three.
func (a Assignor) Assign(members []Subscriber, partitions map[string]int, previous Plan) Plan {
	p := newProblem(members, partitions)
	switch a {
	case Sticky:
		p.sticky(previous)
	case Range:
		p.ranges()
	case RoundRobin:
		p.roundRobin()
	default:
		panic("group: no such assignor: " + a.String())
	}
	return p.plan()
}

// problem is what an assignor works on: members and topics by number, in the order of their names.
type problem struct {
	names  []string
	topics []topic
	size   int   // how many partitions there are
	load   []int // by member: how many partitions it has so far
}

type topic struct {
	name   string
	wanted []int // the members that want it, in order; not to be changed
	owner  []int // by partition: a member, or nobody
}

const nobody = -1

func newProblem(members []Subscriber, partitions map[string]int) *problem {
	byName := func(a, b Subscriber) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(members, byName) {
		members = slices.Clone(members)
		slices.SortFunc(members, byName)
	}
	p := &problem{names: make([]string, len(members)), load: make([]int, len(members))}
	for m, member := range members {
		p.names[m] = member.Name
	}
	names := make([]string, 0, len(partitions))
	for name, n := range partitions {
		names = append(names, name)
		p.size += max(0, n)
	}
	slices.Sort(names)
	index := make(map[string]int, len(names))
	p.topics = make([]topic, len(names))
	owners := slices.Repeat([]int{nobody}, p.size)
	for i, name := range names {
		index[name] = i
		n := max(0, partitions[name])
		p.topics[i] = topic{name: name, owner: owners[:n:n]}
		owners = owners[n:]
	}
	p.want(members, index)
	return p
}

// want notes for each topic who wants it. Most of the time all members want the same: then the topics share one list.
func (p *problem) want(members []Subscriber, index map[string]int) {
	if len(members) == 0 {
		return
	}
	first := members[0].Topics
	if !slices.ContainsFunc(members[1:], func(m Subscriber) bool { return !slices.Equal(m.Topics, first) }) {
		all := make([]int, len(members))
		for m := range members {
			all[m] = m
		}
		for _, name := range first {
			if i, ok := index[name]; ok {
				p.topics[i].wanted = all
			}
		}
		return
	}
	for m, member := range members {
		for _, name := range member.Topics {
			i, ok := index[name]
			if !ok {
				continue
			}
			// Members come in order, so a topic that one of them names twice already has it as the last.
			if t := &p.topics[i]; len(t.wanted) == 0 || t.wanted[len(t.wanted)-1] != m {
				t.wanted = append(t.wanted, m)
			}
		}
	}
}

func (p *problem) give(t *topic, index, member int) {
	t.owner[index] = member
	p.load[member]++
}

func (p *problem) plan() Plan {
	plan := make(Plan, len(p.topics))
	all := make([]string, p.size)
	for i := range p.topics {
		t := &p.topics[i]
		n := len(t.owner)
		for j, m := range t.owner {
			if m != nobody {
				all[j] = p.names[m]
			}
		}
		plan[t.name] = all[:n:n]
		all = all[n:]
	}
	return plan
}

// ranges: why it is even. Let all members want all topics, and their loads differ by at most one before a topic. Each gets
// n/members of it, and as many as remain one more, those with the lower load first. If the lower ones are enough, they rise
// to the level of the others at most; if not, all are at one level after them, and some rise by one from there.
func (p *problem) ranges() {
	loads := make([]int, 0, len(p.names))
	for i := range p.topics {
		t := &p.topics[i]
		if len(t.wanted) == 0 {
			continue
		}
		each, more := len(t.owner)/len(t.wanted), len(t.owner)%len(t.wanted)
		// The longer runs go to all with a load below the limit, and to the first so many of those that are at it.
		limit, atLimit := 0, 0
		if more > 0 {
			loads = loads[:0]
			for _, m := range t.wanted {
				loads = append(loads, p.load[m])
			}
			slices.Sort(loads)
			limit = loads[more-1]
			below, _ := slices.BinarySearch(loads, limit)
			atLimit = more - below
		}
		index := 0
		for _, m := range t.wanted {
			n := each
			switch load := p.load[m]; {
			case more == 0 || load > limit:
			case load < limit:
				n++
			case atLimit > 0:
				n++
				atLimit--
			}
			for range n {
				p.give(t, index, m)
				index++
			}
		}
	}
}

func (p *problem) roundRobin() {
	next := 0
	for i := range p.topics {
		t := &p.topics[i]
		if len(t.wanted) == 0 {
			continue
		}
		for index := range t.owner {
			// The first at or after next that wants the topic, round the table.
			at := sort.SearchInts(t.wanted, next) % len(t.wanted)
			p.give(t, index, t.wanted[at])
			next = t.wanted[at] + 1
		}
	}
}
