package check

import (
	"cmp"
	"slices"
	"sort"
)

// settlement says when each record of a partition was done with, for one consumer.
type settlement struct {
	// Never less the time, so that 0 is Never: the first time at which it may have been, and the time at which it certainly had.
	may, must offsets[int64]
	given     offsets[int64] // likewise the first time at which it was delivered
}

// first returns the first time at which a record may have been done with, or Never.
func (s *settlement) first(off int64) int64 {
	if x := s.may.peek(off); x != nil {
		return Never - *x
	}
	return Never
}

// delivered returns when a record was delivered first, or Never.
func (s *settlement) delivered(off int64) int64 {
	if x := s.given.peek(off); x != nil {
		return Never - *x
	}
	return Never
}

// certain returns the time at which a record was done with for certain, or Never.
func (s *settlement) certain(off int64) int64 {
	if x := s.must.peek(off); x != nil {
		return Never - *x
	}
	return Never
}

func note(o *offsets[int64], off, when int64) {
	x := o.at(off)
	*x = max(*x, Never-when)
}

// settled finds out when each record was done with.
func (c *checker) settled(t *timeline) *settlement {
	if t.settlement != nil {
		return t.settlement
	}
	p := t.part
	s := &settlement{
		may:   makeOffsets[int64](p.base, p.top, p.noted),
		must:  makeOffsets[int64](p.base, p.top, p.noted),
		given: makeOffsets[int64](p.base, p.top, p.noted),
	}
	t.settlement = s
	for _, i := range t.handles {
		o := &c.h.Ops[i]
		for _, r := range o.Recs {
			note(&s.given, r.Off, o.Call)
			switch {
			case t.cfg.Mode == AtMostOnce:
				note(&s.may, r.Off, 0) // was committed before the call, and may have been seen to be
				note(&s.must, r.Off, o.Call)
			case t.cfg.Mode == ByCommit, t.cfg.Mode == AtLeastOnce && o.Pulled:
				note(&s.may, r.Off, o.Call)
			case t.cfg.Mode == AtLeastOnce && o.Res == Ok:
				note(&s.may, r.Off, o.Ret)
				if w := t.owner(c.genOf(t, o)); w == nil || w.how != taken {
					note(&s.must, r.Off, o.Ret)
				}
			}
		}
	}
	for _, i := range t.polls {
		o := &c.h.Ops[i]
		for _, r := range o.Recs {
			note(&s.may, r.Off, o.Call)
		}
	}
	through := make(map[uint64]int64)
	dying := make(map[int64]bool) // rejected: it is a record's dead letter that ends it, not what is said of those around it
	for _, i := range t.settles {
		if o := &c.h.Ops[i]; o.Kind == OpReject {
			dying[o.Off] = true
		}
	}
	for off := range t.gaveUp {
		dying[off] = true
	}
	for _, i := range t.settles {
		o := &c.h.Ops[i]
		from, gen, ret := o.Off, c.genOf(t, o), o.Ret
		w := t.owner(gen)
		if w != nil { // it was accepted while the owner was one
			ret = min(ret, w.over)
		}
		switch o.Kind {
		case OpNack, OpExtend:
			continue
		case OpAckThrough:
			if at, ok := through[gen]; ok {
				from = at
			} else if w != nil && w.start >= 0 {
				from = w.start
			} else {
				from = p.base
			}
			through[gen] = max(from, o.Off+1)
		}
		for off := max(from, p.base); off <= o.Off && off <= p.top; off++ {
			note(&s.may, off, o.Call)
			if o.Res == Ok && (o.Kind == OpAck || o.Kind == OpAckThrough && !dying[off]) {
				note(&s.must, off, ret)
			}
		}
	}
	for off, when := range t.gaveUp {
		note(&s.may, off, when)
	}
	for off := range t.dropped { // may have been seen to be done with before anybody was told
		note(&s.may, off, 0)
	}
	for _, g := range t.gaps {
		for off := max(c.h.Ops[g].Off, p.base); off < c.h.Ops[g].To && off <= p.top; off++ {
			note(&s.may, off, 0)
		}
	}
	return s
}

// level is the highest of some numbers up to each time.
type level struct {
	at   []int64
	high []int64
}

// levels makes a level of pairs of a time and a number.
func levels(pairs [][2]int64) (l level) {
	slices.SortFunc(pairs, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	high := int64(-1)
	for _, p := range pairs {
		if p[1] > high {
			high = p[1]
			l.at, l.high = append(l.at, p[0]), append(l.high, high)
		}
	}
	return l
}

// before returns the highest number of the times before t, or -1.
func (l *level) before(t int64) int64 {
	if n := sort.Search(len(l.at), func(i int) bool { return l.at[i] >= t }); n > 0 {
		return l.high[n-1]
	}
	return -1
}

// upTo returns the highest number of the times up to and including t, or -1.
func (l *level) upTo(t int64) int64 {
	if n := sort.Search(len(l.at), func(i int) bool { return l.at[i] > t }); n > 0 {
		return l.high[n-1]
	}
	return -1
}

// commits checks what was said about the committed offset; and that nothing was left when the consumer was said to
// be idle, which is A-6; and that retention did not pass it, which is A-14.
func (c *checker) commits(t *timeline) {
	slices.SortStableFunc(t.tells, func(a, b int) int { return cmp.Compare(c.h.Ops[a].Call, c.h.Ops[b].Call) })
	ends := make([][2]int64, 0, len(t.seeks)+len(c.crashed))
	for _, i := range t.seeks {
		ends = append(ends, [2]int64{c.h.Ops[i].Call, c.h.Ops[i].Ret})
	}
	for _, i := range c.crashed {
		ends = append(ends, [2]int64{c.h.Ops[i].Call, c.h.Ops[i].Ret})
	}
	resets := levels(ends)
	c.falls(t, &resets)
	ahead := c.ahead(t)
	if ahead != nil {
		c.tooFar(t, ahead)
	}
	c.unprocessed(t)
}

// falls finds commits that fall.
func (c *checker) falls(t *timeline, resets *level) {
	over := c.byRet(t.tells, func(*Op) bool { return true })
	highest, which, since := int64(-1), -1, int64(-1)
	j := 0
	for _, i := range t.tells {
		o := &c.h.Ops[i]
		if r := resets.upTo(o.Ret); r > since {
			since, highest, which = r, -1, -1
		}
		for j < len(over) && c.h.Ops[over[j]].Ret < o.Call {
			if x := &c.h.Ops[over[j]]; x.Call > since && x.Off > highest && !c.outdated(t, x) {
				highest, which = x.Off, over[j]
			}
			j++
		}
		if which >= 0 && o.Off < highest && o.Call > since {
			if o.Kind == OpAssign || o.Kind == OpCommit {
				continue // is for resumes to say; a commit of what is committed changes nothing
			}
			c.find(CommitRegression, []int{which, i}, "the committed offset was %d and is %d", highest, o.Off)
		}
	}
}

// outdated reports whether the position that a member was told with an assign may have been set since: that the callback is called
// was decided before.
func (c *checker) outdated(t *timeline, o *Op) bool {
	if o.Kind != OpAssign {
		return false
	}
	w := t.owner(o.Gen)
	return w != nil && c.reset(t, c.ownerBefore(t, w), o.Ret)
}

// ahead returns how far the consumer may have got by each time, or nil if that is not known.
func (c *checker) ahead(t *timeline) *level {
	var far [][2]int64
	add := func(when, off int64) { far = append(far, [2]int64{when, off}) }
	if off, known := c.begins(t); known {
		add(0, off)
	}
	for _, i := range t.ops {
		o := &c.h.Ops[i]
		switch o.Kind {
		case OpAssign:
			add(o.Call, o.Off)
		case OpSeek, OpTruncated:
			if to := o.target(); o.may() && to >= 0 {
				add(o.Call, to)
			} else if o.may() {
				add(o.Call, Never)
			}
		case OpGap:
			add(0, o.To)
		case OpPoll:
			if len(o.Recs) > 0 {
				add(o.Call, o.end())
			}
			if o.To >= 0 {
				add(o.Call, o.To)
			}
		case OpHandle:
			switch {
			case len(o.Recs) == 0:
			case t.cfg.Mode == AtMostOnce:
				add(0, o.end()) // is committed before the call
			case t.cfg.Mode == ByCommit, t.cfg.Mode == AtLeastOnce && o.Pulled:
				add(o.Call, o.end())
			case t.cfg.Mode == AtLeastOnce && o.Res == Ok:
				add(o.Ret, o.end())
			case t.cfg.MaxDeliveries > 0:
				for _, r := range o.Recs {
					if when, ok := t.gaveUp[r.Off]; ok {
						add(when, r.Off+1)
					}
				}
			}
		case OpAck, OpAckThrough, OpReject:
			if o.may() {
				add(o.Call, o.Off+1)
			}
		case OpDropped:
			add(0, o.Off+1)
		}
	}
	if t.cfg.Mode == AtMostOnce {
		for k := range t.owners {
			if w := &t.owners[k]; w.how == taken {
				return nil // what was committed may not have been called
			}
		}
	}
	l := levels(far)
	return &l
}

// tooFar finds commits, and low marks of what the consumer protects, that are above what was processed.
func (c *checker) tooFar(t *timeline, ahead *level) {
	for _, i := range t.tells {
		o := &c.h.Ops[i]
		if far := ahead.upTo(o.Ret); o.Kind != OpAssign && o.Off > far && far >= 0 {
			c.find(CommitAhead, []int{i}, "%d is committed, and nothing from %d on has been processed", o.Off, far)
		}
	}
	if !t.cfg.Protected {
		return
	}
	for _, i := range t.part.lowOps {
		o := &c.h.Ops[i]
		if o.Kind != OpLow || o.Res != Ok || len(c.closes) > 0 && c.h.Ops[c.closes[0]].Call <= o.Ret {
			continue // after Close nobody is protected any more
		}
		if far := ahead.upTo(o.Ret); far >= 0 && o.Off > far {
			c.find(Retention, []int{i}, "records up to %d were dropped, and %s has processed those up to %d", o.Off, c.h.consumerName(t.consumer), far)
		}
	}
}

// unprocessed finds records below the committed offset that were not processed, and those that were not processed when the
// consumer was said to be idle.
func (c *checker) unprocessed(t *timeline) {
	start, known := c.begins(t)
	if !known {
		return
	}
	type tell struct {
		ret, off int64
		i        int
		a        Anomaly
	}
	var tells []tell
	for _, i := range t.tells {
		o := &c.h.Ops[i]
		tells = append(tells, tell{o.Ret, o.Off, i, UnprocessedBelow})
	}
	if len(t.idles) > 0 {
		acked := make([][2]int64, 0, len(t.part.sends))
		for _, i := range t.part.sends {
			if o := &c.h.Ops[i]; o.Res == Ok {
				acked = append(acked, [2]int64{o.Ret, o.Off + 1})
			}
		}
		l := levels(acked)
		for _, i := range t.idles {
			o := &c.h.Ops[i]
			tells = append(tells, tell{o.Ret, l.before(o.Call), i, LostWrite})
		}
	}
	slices.SortStableFunc(tells, func(a, b tell) int { return cmp.Compare(a.ret, b.ret) })
	var skips [][2]int64
	for _, i := range t.seeks {
		to := c.h.Ops[i].target()
		if to < 0 {
			to = Never
		}
		skips = append(skips, [2]int64{c.h.Ops[i].Call, to})
	}
	skipped := levels(skips)
	lost := c.lostAtMostOnce(t)
	settled := c.settled(t)
	done := max(start, t.part.base)
	for _, x := range tells {
		done = max(done, min(skipped.upTo(x.ret), x.off))
		for ; done < x.off; done++ {
			if done > t.part.top {
				done = x.off
				break
			}
			if settled.first(done) <= x.ret || lost[done] {
				continue
			}
			at := t.part.peek(done, Never)
			if at == nil || at.op == 0 {
				continue // there is none
			}
			if x.a == LostWrite {
				c.find(x.a, append(ops(at.send), x.i), "%s is said to be idle and has not processed record %d", c.h.consumerName(t.consumer), done)
			} else {
				c.find(x.a, append(ops(at.op), x.i), "%d is committed and record %d has not been processed", x.off, done)
			}
		}
	}
}

// begins returns where the consumer began, as far as is known.
func (c *checker) begins(t *timeline) (off int64, known bool) {
	for _, i := range t.ops {
		o := &c.h.Ops[i]
		switch {
		case o.Kind == OpAssign:
			return o.Off, true
		case o.Kind == OpCommitted && o.Res == Ok:
			return o.Off, true
		case o.Kind == OpHandle && len(o.Recs) > 0:
			off := o.Recs[0].Off
			if t.cfg.Kind == Shared || t.cfg.ByKey { // others may have got lower ones at the same time
				for _, j := range t.handles {
					off = min(off, c.h.Ops[j].Recs[0].Off)
				}
			}
			return off, true
		case o.Kind == OpPoll && o.Off >= 0:
			return o.Off, true
		}
	}
	return 0, false
}

// lostAtMostOnce returns the records that may have been committed and never called: those that were next when an owner that is
// AtMostOnce was fenced.
func (c *checker) lostAtMostOnce(t *timeline) map[int64]bool {
	if t.cfg.Mode != AtMostOnce {
		return nil
	}
	lost := make(map[int64]bool)
	for k := range t.owners {
		w := &t.owners[k]
		if w.how != taken {
			continue
		}
		at := w.start
		if n := len(w.reads); n > 0 {
			at = c.h.Ops[w.reads[n-1]].end()
		}
		end := t.part.top + 1
		if k+1 < len(t.owners) {
			end = max(at+1, t.owners[k+1].start)
		}
		for at = max(at, t.part.base); at < end && at <= t.part.top; at++ {
			lost[at] = true
		}
	}
	return lost
}
