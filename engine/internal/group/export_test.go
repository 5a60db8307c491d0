package group

import (
	"fmt"
	"reflect"
	"slices"
)

// Plans returns how many plans have been made.
func (g *Assigned) Plans() int { return g.plans }

// Plan returns the plan in force, and what it is made of.
func (g *Assigned) Plan() (members []Subscriber, sizes map[string]int, plan Plan) {
	sizes, plan = map[string]int{}, Plan{}
	for _, s := range g.seats {
		members = append(members, Subscriber{s.name, s.topics})
	}
	for name, parts := range g.topics {
		owners := make([]string, len(parts))
		for i, p := range parts {
			if p.target != nil {
				owners[i] = p.target.name
			}
		}
		sizes[name], plan[name] = len(parts), owners
	}
	return members, sizes, plan
}

// CheckPlan says what is wrong with the plan in force: it must be the one that the assignor makes of all there is.
func (g *Assigned) CheckPlan() error {
	members, sizes, plan := g.Plan()
	each, most := map[string]int{}, 0
	for _, p := range g.parts {
		if p.target == nil {
			continue
		}
		if g.seats[p.target.name] != p.target {
			return fmt.Errorf("%v: planned for %s, who has gone", p.Partition, p.target.name)
		}
		each[p.target.name]++
		most = max(most, each[p.target.name])
	}
	if len(g.parts) > 0 {
		if want := g.cfg.Assignor.Assign(members, sizes, plan); !reflect.DeepEqual(want, plan) {
			return fmt.Errorf("the plan is %v, and should be %v", plan, want)
		}
	}
	for _, s := range g.seats {
		if len(s.planned) != each[s.name] || slices.ContainsFunc(s.planned, func(p *part) bool { return p.target != s }) {
			return fmt.Errorf("%s is to have %d, and thinks %d", s.name, each[s.name], len(s.planned))
		}
		if g.alike && !slices.Equal(s.topics, g.order[0].topics) {
			return fmt.Errorf("%s wants other topics", s.name)
		}
	}
	for _, r := range []*ranking{&g.fullest, &g.emptiest} {
		if r.list != nil && len(r.list) != len(g.seats) {
			return fmt.Errorf("%d of %d are ranked", len(r.list), len(g.seats))
		}
		for i, s := range r.list {
			if g.seats[s.name] != s || *r.place(s) != i || i > 0 && !r.before(r.list[(i-1)/2], s) {
				return fmt.Errorf("%s is in a wrong place", s.name)
			}
		}
	}
	if most > g.most {
		return fmt.Errorf("somebody is to have %d, of %d", most, g.most)
	}
	return nil
}
