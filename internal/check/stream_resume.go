package check

import "slices"

// resumes checks that each owner begins where the group stood, A-17.
func (c *checker) resumes(t *timeline) {
	first := true
	for k := range t.owners {
		w := &t.owners[k]
		if w.assign < 0 {
			continue
		}
		if first || w.start < 0 || c.crashBetween(0, w.from) {
			first = false
			continue
		}
		var ok bool
		switch {
		case t.cfg.Mode == ByCommit:
			ok = c.resumesAtCommit(t, k)
		case t.cfg.Mode == Manual || t.cfg.ByKey:
			ok = c.resumesAtFloor(t, k)
		default:
			ok = c.resumesInTurn(t, k)
		}
		if !ok {
			c.find(ResumeOffset, ops(int32(t.ownerAt(k-1)+1), int32(w.assign+1)), "%s begins at %d, which is not where the group stood",
				c.h.memberName(w.member), w.start)
		}
	}
}

// ownerAt returns what shows where an owner stood last: its last read, or its assign.
func (t *timeline) ownerAt(k int) int {
	if k < 0 {
		return -1
	}
	if w := &t.owners[k]; len(w.reads) > 0 {
		return w.reads[len(w.reads)-1]
	}
	return t.owners[k].assign
}

// resumesInTurn is for owners whose records come one after the other: it begins where the one before it ended. If that one was
// fenced, what it was doing last may count or not.
func (c *checker) resumesInTurn(t *timeline, k int) bool {
	w := &t.owners[k]
	x := &t.owners[k-1]
	told := c.toldBy(t, k)
	for _, j := range x.pending {
		if to := c.h.Ops[j.op].target(); to < 0 || c.reach(t, to, w.start, told) {
			return true
		}
	}
	for _, i := range t.seeks {
		o := &c.h.Ops[i]
		if o.Call > w.from {
			break
		}
		if to := o.target(); o.Ret >= x.from && (to < 0 || c.reach(t, to, w.start, told)) {
			return true
		}
	}
	if x.place.n == 0 || c.anyReach(t, x.place.known(), w.start, told) {
		return true
	}
	for _, g := range t.gaps { // what was held was dropped, or some of it, and is to be told of
		if o := &c.h.Ops[g]; t.cfg.Held && o.Off == w.start && x.place.offs[0] > w.start &&
			(o.To >= x.place.offs[0] || c.reach(t, w.start, x.place.offs[0], max(told, o.Call))) {
			return true
		}
	}
	low, high := x.start, x.place.offs[0]
	for _, off := range x.place.known() {
		high = max(high, off)
	}
	for n := len(x.reads) - 1; n >= 0; n-- {
		o := &c.h.Ops[x.reads[n]]
		low = o.first()
		if n == 0 || !o.Pulled || c.h.Ops[x.reads[n-1]].Call < o.Call { // all of one poll counts together
			break
		}
	}
	if x.how == given {
		return t.cfg.Held && t.cfg.Mode == AtLeastOnce && low <= w.start && w.start < high && c.gone(t, k)
	}
	if t.cfg.Mode == AtMostOnce { // what was committed may not have been called
		return w.start >= high
	}
	return low <= w.start && w.start <= high
}

// gone reports whether the record where an owner begins may have been dropped before: it was at some time, and comes no more.
func (c *checker) gone(t *timeline, k int) bool {
	off := t.owners[k].start
	for n := k; n < len(t.owners); n++ {
		for _, i := range t.owners[n].reads {
			if o := &c.h.Ops[i]; o.first() <= off && off < o.end() {
				return false
			}
		}
	}
	return slices.ContainsFunc(t.part.lowOps, func(i int) bool {
		o := &c.h.Ops[i]
		return o.Kind == OpLow && o.Res == Ok && o.Off > off || o.Kind != OpLow && o.To > off
	})
}

// resumesAtCommit is for owners that commit: it begins at one of the commits that may be the last one. It was decided where it
// begins some time before its member is told, so a seek since the last owner began may have been made in between.
func (c *checker) resumesAtCommit(t *timeline, k int) bool {
	w, x := &t.owners[k], &t.owners[k-1]
	var last []int // each may be what stands
	since := c.ownerBefore(t, w)
	for _, i := range t.ops {
		o := &c.h.Ops[i]
		if o.Call > w.from {
			break
		}
		switch o.Kind {
		case OpAssign:
			if len(last) == 0 {
				last = append(last, i) // nothing is committed yet
			}
			continue
		case OpCommit, OpSeek, OpTruncated:
		default:
			continue
		}
		if !o.may() {
			continue
		}
		if o.Res == Ok && o.Ret < w.from && (o.Kind == OpCommit || o.Ret < since) {
			kept := last[:0]
			for _, j := range last {
				if before := &c.h.Ops[j]; !before.before(o) || o.Kind == OpCommit && before.target() > o.Off {
					kept = append(kept, j) // a commit does not go back
				}
			}
			last = kept
		}
		last = append(last, i)
	}
	told, before := c.toldBy(t, k), false
	for _, i := range last {
		if to := c.h.Ops[i].target(); to < 0 || c.reach(t, to, w.start, told) {
			return true
		}
		before = before || c.h.Ops[i].Call <= x.from
	}
	return before && c.reach(t, x.start, w.start, told) // no commit since the last owner began, which may have been further on
}

// toldBy returns until when the consumer must have been told of gaps below where an owner begins: before the next record is
// delivered to anybody. If the partition was taken from the owner before, that one may have been about to tell, and be seen to
// do so at any time.
func (c *checker) toldBy(t *timeline, k int) int64 {
	w, when := &t.owners[k], int64(Never)
	if k > 0 && t.owners[k-1].how == taken {
		return when
	}
	for k := range t.owners {
		if x := &t.owners[k]; x.from >= w.from && len(x.reads) > 0 {
			when = min(when, c.h.Ops[x.reads[0]].Call)
		}
	}
	return max(when, w.from)
}

// resumesAtFloor is for owners whose records are done with in any order: it begins at the first that is not.
func (c *checker) resumesAtFloor(t *timeline, k int) bool {
	w, x := &t.owners[k], &t.owners[k-1]
	s := c.settled(t)
	walk := func(off int64, done func(off int64) int64) int64 {
		if at, ok := t.walked[off]; ok {
			off = at
		}
		for off <= t.part.top && done(off) <= w.from {
			off++
		}
		return off
	}
	if t.walked == nil {
		t.walked = make(map[int64]int64)
	}
	begin := c.h.Ops[t.firstAssign()].Off
	high := walk(begin, s.first)
	t.walked[begin] = high
	sought := false
	for _, i := range t.seeks {
		o := &c.h.Ops[i]
		if o.Call > w.from {
			break
		}
		sought = true
		to := o.target()
		if to < 0 {
			return true
		}
		top := walk(to, s.first)
		t.walked[to] = top
		if to <= w.start && w.start <= top {
			return true
		}
	}
	if sought {
		return begin <= w.start && w.start <= high
	}
	// What the owners before the last one did above where that one began may have been forgotten.
	low := x.start
	for low <= t.part.top && s.certain(low) > x.from && s.certain(low) < w.from {
		low++
	}
	return low <= w.start && w.start <= high
}

func (t *timeline) firstAssign() int {
	for k := range t.owners {
		if t.owners[k].assign >= 0 {
			return t.owners[k].assign
		}
	}
	return -1
}
