package check

import "slices"

// owners finds ownerships that overlap, A-15, and generations that do not rise, A-16.
func (c *checker) owners(t *timeline) {
	if t.cfg.Kind != Assigned {
		return
	}
	longest := -1 // of those so far, the one that ended last
	for k := range t.owners {
		w := &t.owners[k]
		if w.assign < 0 {
			continue
		}
		told := c.h.Ops[w.assign].Ret
		if longest >= 0 {
			if before := &t.owners[longest]; before.until > told {
				c.find(TwoOwners, append(ops(int32(before.end+1)), before.assign, w.assign),
					"%s owns it under generation %d while %s still does under generation %d",
					c.h.memberName(w.member), w.gen, c.h.memberName(before.member), before.gen)
			}
		}
		for n := k - 1; n >= 0; n-- { // most often one step
			before := &t.owners[n]
			if before.assign < 0 || !c.h.Ops[before.assign].before(&c.h.Ops[w.assign]) {
				continue
			}
			if w.gen <= before.gen && !c.crashBetween(before.from, w.from) {
				c.find(GenerationRegression, []int{before.assign, w.assign}, "generation %d comes after %d", w.gen, before.gen)
			}
			break
		}
		if longest < 0 || w.until > t.owners[longest].until {
			longest = k
		}
	}
}

func (c *checker) crashBetween(from, to int64) bool {
	for _, i := range c.crashed {
		if at := c.h.Ops[i].Call; from <= at && at <= to {
			return true
		}
	}
	return false
}

// zombies finds commits and acknowledgements that were accepted though they came from a former owner, A-18, and tokens that
// were used twice.
func (c *checker) zombies(t *timeline) {
	type token struct {
		off     int64
		attempt int32
		gen     uint64
		member  Member
	}
	used := make(map[token]int)
	for j, i := range t.ops {
		o := &c.h.Ops[i]
		switch o.Kind {
		case OpAck, OpNack, OpReject:
			if o.Res == Ok && o.Attempt > 0 {
				k := token{o.Off, o.Attempt, t.gens[j], o.Member}
				if before, ok := used[k]; ok && c.h.Ops[before].Kind != o.Kind && !c.reset(t, c.h.Ops[before].Call, o.Ret) {
					c.find(ZombieCommit, []int{before, i}, "%s of record %d was accepted, and so was %s of the same delivery",
						o.Kind, o.Off, c.h.Ops[before].Kind)
				}
				used[k] = i
			}
		case OpCommit, OpAckThrough, OpExtend:
		default:
			continue
		}
		if o.Res != Ok || t.cfg.Kind != Assigned || t.gens[j] == 0 {
			continue
		}
		if o.Kind == OpCommit && c.setBeyond(t, o) {
			continue // it changed nothing
		}
		if w := t.owner(t.gens[j]); w != nil && w.how == taken && w.over < o.Call {
			c.find(ZombieCommit, []int{w.end, i}, "%s was accepted under generation %d, which had been fenced", o.Kind, w.gen)
			continue
		}
		if w := t.ownerAfter(t.gens[j]); w != nil && w.from < o.Call {
			c.find(ZombieCommit, []int{w.assign, i}, "%s was accepted under generation %d though %s owns it under %d",
				o.Kind, t.gens[j], c.h.memberName(w.member), w.gen)
		}
	}
}

// setBeyond reports whether the position may have been at or beyond what is committed anyway, since somebody had set it.
func (c *checker) setBeyond(t *timeline, o *Op) bool {
	for _, i := range t.seeks {
		if seek := &c.h.Ops[i]; seek.Call <= o.Ret && (seek.target() < 0 || seek.target() >= o.Off) {
			return true
		}
	}
	return false
}

// ownerAfter returns the first that began to own the partition after one, or nil.
func (t *timeline) ownerAfter(gen uint64) *ownership {
	k, known := t.byGen[gen]
	if !known {
		k = -1
	}
	for k++; k < len(t.owners); k++ {
		if w := &t.owners[k]; w.assign >= 0 && w.gen > gen {
			return w
		}
	}
	return nil
}

// late finds handlers that began after their owner had given the partition back, or after Close, A-24.
func (c *checker) late(t *timeline) {
	for k := range t.owners {
		w := &t.owners[k]
		var begun []*Op // by a ByKey owner, after its end
		for n, i := range w.reads {
			o := &c.h.Ops[i]
			if o.Kind != OpHandle || o.Pulled || w.how == notEnded || o.Call <= w.over {
				continue
			}
			end := &c.h.Ops[w.end]
			// What was decided before a fence may be seen to begin after it, so only a second one is wrong: by key, the second of
			// a key, or one more than there are handlers.
			decided := false
			if t.cfg.ByKey {
				decided = t.cfg.Handlers > 0 && len(begun) >= t.cfg.Handlers ||
					slices.ContainsFunc(begun, func(b *Op) bool { return b.Recs[0].Key != 0 && b.Recs[0].Key == o.Recs[0].Key })
				begun = append(begun, o)
			} else if n > 0 {
				before := &c.h.Ops[w.reads[n-1]]
				decided = before.Ret > w.over && before.Ret <= o.Call
			}
			if end.Kind == OpRevoke && end.Res == Ok || decided && (end.Kind == OpFence || end.Kind == OpLost) && t.cfg.Kind == Assigned {
				c.find(LateHandler, []int{w.end, i}, "a handler began for %s after %s", c.h.memberName(w.member), end.Kind)
			}
		}
	}
	final := make(map[Member]int) // each member's last handler
	for _, i := range t.handles {
		if o := &c.h.Ops[i]; !o.Pulled {
			final[o.Member] = i
		}
	}
	for _, i := range t.leaves {
		end := &c.h.Ops[i]
		if end.Res != Ok {
			continue
		}
		if n, ok := final[end.Member]; ok {
			o := &c.h.Ops[n]
			if o.Call > end.Ret && (o.Member != 0 || !c.assignedSince(t, end.Ret, o.Call)) {
				c.find(LateHandler, []int{i, n}, "a handler began after its %s had ended", leaver(o.Member))
			}
		}
	}
	for _, i := range c.closes {
		end := &c.h.Ops[i]
		if end.Res != Ok {
			continue
		}
		for k := len(t.handles) - 1; k >= 0; k-- {
			o := &c.h.Ops[t.handles[k]]
			if o.Call <= end.Ret {
				break
			}
			if !o.Pulled && !c.reopened(end.Ret, o.Call) {
				c.find(LateHandler, []int{i, t.handles[k]}, "a handler began after Close had returned")
			}
		}
	}
}

func leaver(m Member) string {
	if m == 0 {
		return "subscription"
	}
	return "member's part"
}

// assignedSince reports whether there was an assign between two times: a subscription of that name began again.
func (c *checker) assignedSince(t *timeline, from, to int64) bool {
	for k := range t.owners {
		if w := &t.owners[k]; w.assign >= 0 && w.from >= from && w.from <= to {
			return true
		}
	}
	return false
}

func (c *checker) reopened(from, to int64) bool {
	for _, i := range c.reopens {
		if at := c.h.Ops[i].Call; from <= at && at <= to {
			return true
		}
	}
	return false
}

// overlaps finds handlers that run at the same time and must not, A-22.
func (c *checker) overlaps(t *timeline) {
	var active []int
	for _, i := range t.handles {
		o := &c.h.Ops[i]
		if o.Pulled {
			continue
		}
		kept := active[:0]
		for _, j := range active {
			a := &c.h.Ops[j]
			if a.Ret <= o.Call {
				continue
			}
			kept = append(kept, j)
			if a.Call >= o.Call || t.cfg.ByKey && (a.Recs[0].Key != o.Recs[0].Key || o.Recs[0].Key == 0) {
				continue
			}
			if !c.fencedBefore(t, j, o) {
				c.find(HandlerOverlap, []int{j, i}, "the handler of record %d began while that of record %d was running", o.Recs[0].Off, a.Recs[0].Off)
			}
		}
		active = append(kept, i)
	}
}

// fencedBefore reports whether the owner of a handler, or of another one, may have been fenced before the other one is seen to
// begin, so that they may overlap. That nothing more comes of one that was fenced is for late to say.
func (c *checker) fencedBefore(t *timeline, older int, younger *Op) bool {
	a := &c.h.Ops[older]
	if c.crashBetween(a.Call, younger.Call) {
		return true
	}
	w, x := t.owner(c.genOf(t, a)), t.owner(c.genOf(t, younger))
	if w == x {
		return false
	}
	fenced := func(w *ownership) bool { return w != nil && w.how == taken && w.until <= younger.Call }
	return fenced(w) || fenced(x) // or the one that began later was decided before its owner was fenced, and is seen late
}

// genOf returns the generation of an operation that says it, or that of its member at that time.
func (c *checker) genOf(t *timeline, o *Op) uint64 {
	if o.Gen != 0 || o.Member == 0 || t.cfg.Kind != Assigned {
		return o.Gen
	}
	gen := uint64(0)
	for k := range t.owners {
		if w := &t.owners[k]; w.assign >= 0 && w.member == o.Member && w.from <= o.Call {
			gen = w.gen
		}
	}
	return gen
}
