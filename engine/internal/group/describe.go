package group

import (
	"cmp"
	"slices"
)

// Description is a copy of what an Assigned group knows at one moment, in the order of names and partitions.
type Description struct {
	Generation uint64
	Members    []MemberDescription
	Partitions []PartitionDescription
}

// MemberDescription is one member of a Description.
type MemberDescription struct {
	ID       MemberID // 0 if it is away
	Name     string
	Static   bool
	Topics   []string
	Leaving  bool  // it has left and still has partitions to give back
	Away     bool  // it has left and may come back
	Owned    int   // how many partitions it has
	Deadline int64 // the end of its grace time, or until when it has to make progress; 0 if there is none
}

// PartitionDescription is one partition of a Description.
type PartitionDescription struct {
	Partition
	Word
	Owner, Target MemberID // 0 if there is none
	Deadline      int64    // with Revoking: until when it has to be given back
}

// Describe returns what the group knows.
func (g *Assigned) Describe() Description {
	d := Description{Generation: g.generation}
	for _, s := range g.seats {
		m := MemberDescription{Name: s.name, Static: s.static, Topics: slices.Clone(s.topics), Away: s.session == nil}
		switch {
		case s.session != nil:
			m.ID, m.Owned, m.Deadline = s.session.id, s.session.owned, s.session.timer.deadline()
		default:
			m.Deadline = s.timer.deadline()
		}
		d.Members = append(d.Members, m)
	}
	for _, m := range g.sessions {
		if m.seat == nil {
			d.Members = append(d.Members, MemberDescription{ID: m.id, Name: m.name, Leaving: true, Owned: m.owned})
		}
	}
	slices.SortFunc(d.Members, func(a, b MemberDescription) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, p := range g.parts {
		x := PartitionDescription{Partition: p.Partition, Word: p.word, Deadline: p.timer.deadline()}
		if p.owner != nil {
			x.Owner = p.owner.id
		}
		if p.target != nil && p.target.session != nil {
			x.Target = p.target.session.id
		}
		d.Partitions = append(d.Partitions, x)
	}
	return d
}

func (t *timer) deadline() int64 {
	if t.place == 0 {
		return 0
	}
	return t.at
}
