package check

import "slices"

// positions checks that each owner gets the records one after the other, A-13. What exactly that means depends on the mode.
func (c *checker) positions(t *timeline) {
	for k := range t.owners {
		w := &t.owners[k]
		switch {
		case t.cfg.ByKey:
			c.byKey(t, w)
		case t.cfg.Mode == Manual && len(t.handles) > 0:
			c.firsts(t, w)
		default:
			c.serial(t, w)
		}
	}
}

// place is where a consumer may stand: the record that comes next is at one of the offsets. There are none if nothing is known.
type place struct {
	offs [2]int64
	n    int
}

func at(offs ...int64) (p place) {
	p.n = copy(p.offs[:], offs)
	return p
}

// known returns the offsets.
func (p *place) known() []int64 { return p.offs[:p.n] }

// jump is a seek that may or must be obeyed by what comes.
type jump struct {
	op       int
	optional bool // it failed in a way that leaves it open, or may have been obeyed already
}

// tracker follows one owner whose records come one after the other.
type tracker struct {
	c       *checker
	t       *timeline
	place   place
	prev    int // the operation before, or -1
	next    int // index into t.seeks of the first that has not been looked at
	pending []jump
}

// serial checks one owner whose records come one after the other.
func (c *checker) serial(t *timeline, w *ownership) {
	k := tracker{c: c, t: t, prev: -1}
	if w.start >= 0 {
		k.place = at(w.start)
		since := c.ownerBefore(t, w)
		for k.next < len(t.seeks) && c.h.Ops[t.seeks[k.next]].Call <= w.from {
			// One that was made since the last owner began may be in this one's start, or not.
			if o := &c.h.Ops[t.seeks[k.next]]; o.Ret >= since {
				k.pending = append(k.pending, jump{t.seeks[k.next], true})
			}
			k.next++
		}
	}
	for _, i := range w.reads {
		k.read(i)
	}
	for ; k.next < len(t.seeks) && c.h.Ops[t.seeks[k.next]].Call <= w.over; k.next++ {
		k.pending = append(k.pending, jump{t.seeks[k.next], true})
	}
	w.place, w.pending = k.place, k.pending
}

// ownerBefore returns when the owner before one began.
func (c *checker) ownerBefore(t *timeline, w *ownership) (from int64) {
	for k := range t.owners {
		if x := &t.owners[k]; x.from < w.from {
			from = x.from
		}
	}
	return from
}

// read checks that a read is where it may be, and moves on.
func (k *tracker) read(i int) {
	c, t, o := k.c, k.t, &k.c.h.Ops[i]
	for k.next < len(t.seeks) && c.h.Ops[t.seeks[k.next]].Call <= o.Call {
		seek := &c.h.Ops[t.seeks[k.next]]
		for n, j := range k.pending { // those before it need not be obeyed any more
			k.pending[n].optional = j.optional || seek.Res == Ok && c.h.Ops[j.op].before(seek)
		}
		k.pending = append(k.pending, jump{t.seeks[k.next], seek.Res != Ok || seek.Call == o.Call})
		k.next++
	}
	first := o.Off
	if len(o.Recs) > 0 && (o.Kind == OpHandle || o.Off < 0) {
		first = o.Recs[0].Off
	}
	onPlace := first < 0 || k.place.n == 0 || c.anyReach(t, k.place.known(), first, o.Call)
	if onPlace && k.place.n > 0 {
		onPlace = !k.mustJump(o)
	}
	var jumped []int
	for n, j := range k.pending {
		if to := c.h.Ops[j.op].target(); to < 0 || c.reach(t, to, first, o.Call) {
			jumped = append(jumped, n)
		}
	}
	switch {
	case onPlace && len(jumped) == 0:
	case !onPlace && len(jumped) == 1:
		k.obey(jumped[0])
	case len(jumped) > 0: // one of several was obeyed, or none
		last := &c.h.Ops[k.pending[jumped[len(jumped)-1]].op]
		for n, j := range k.pending {
			k.pending[n].optional = j.optional || slices.Contains(jumped, n) || c.h.Ops[j.op].Call <= last.Ret
		}
	default:
		k.complain(i, first)
		k.pending = k.pending[:0]
	}
	if o.Kind == OpPoll {
		k.poll(i, o, first)
	} else {
		k.place = c.after(t, o)
	}
	if k.prev >= 0 {
		kept := k.pending[:0]
		for _, j := range k.pending {
			if !j.optional || c.h.Ops[j.op].Ret >= c.h.Ops[k.prev].Ret {
				kept = append(kept, j)
			}
		}
		k.pending = kept
	}
	k.prev = i
}

// target returns where a seek goes, or -1 if that is not known.
func (o *Op) target() int64 {
	if o.Kind == OpTruncated {
		return o.To
	}
	return o.Off
}

// mustJump reports whether a seek was over so early that the read must obey it. A handler that is called may have been on its
// way when the seek was made, but not if another one was running then.
func (k *tracker) mustJump(o *Op) bool {
	for _, j := range k.pending {
		ret := k.c.h.Ops[j.op].Ret
		switch {
		case j.optional:
		case o.Kind == OpPoll && ret < o.Call:
			return true
		case k.prev >= 0 && ret < k.c.h.Ops[k.prev].Ret:
			return true
		}
	}
	return false
}

// obey takes the seek that was obeyed, and those before it, from those that are to come. Others at the same time may have
// come before it or not.
func (k *tracker) obey(n int) {
	obeyed := &k.c.h.Ops[k.pending[n].op]
	kept := k.pending[:0]
	for m, j := range k.pending {
		if o := &k.c.h.Ops[j.op]; m != n && o.Ret >= obeyed.Call {
			kept = append(kept, jump{j.op, true})
		}
	}
	k.pending = kept
}

// complain says that a read is not where it may be.
func (k *tracker) complain(i int, first int64) {
	c, t, o := k.c, k.t, &k.c.h.Ops[i]
	involved := ops(int32(k.prev+1), int32(i+1))
	for _, g := range t.gaps {
		if gap := &c.h.Ops[g]; gap.To == first && k.place.n > 0 && gap.Call <= o.Ret && gap.Off != k.place.offs[0] && o.Kind == OpHandle {
			c.find(Retention, append(ops(int32(g+1)), involved...), "records from %d up to %d were reported as dropped, at position %d",
				gap.Off, first, k.place.offs[0])
			return
		}
	}
	if len(k.pending) > 0 {
		j := k.pending[len(k.pending)-1].op
		c.find(PollSkip, append(ops(int32(j+1)), involved...), "record %d came, at position %v, after a seek to %d", first,
			k.place.known(), c.h.Ops[j].target())
		return
	}
	c.find(PollSkip, involved, "record %d came, at position %v", first, k.place.known())
	if k.place.n > 0 && t.cfg.Mode != AtMostOnce {
		c.passed(t.part, k.place.offs[0], first, k.prev, i)
	}
}

// poll moves on after a poll, and looks at the gap that it reports.
func (k *tracker) poll(i int, o *Op, first int64) {
	start := first
	if o.To >= 0 {
		if o.Off >= 0 && o.To <= o.Off {
			k.c.find(Retention, []int{i}, "a gap up to %d was reported at position %d", o.To, o.Off)
		}
		start = o.To
	}
	k.place = at(start)
	if len(o.Recs) > 0 {
		if got := o.Recs[0].Off; got != start {
			a := PollSkip
			if o.To >= 0 {
				a = Retention
			}
			k.c.find(a, []int{i}, "record %d came where %d was to come", got, start)
		}
		k.place = at(o.end())
		if o.Res == Fail {
			k.place = at(o.end(), start)
		}
	}
}

// after returns where a consumer stands after the call of a handler.
func (c *checker) after(t *timeline, o *Op) place {
	first, end := o.Recs[0].Off, o.end()
	switch {
	case t.cfg.Mode == AtMostOnce, t.cfg.Mode == ByCommit, o.Pulled, o.Res == Ok:
		return at(end)
	case o.Res == Fail:
		return at(first)
	}
	return at(end, first)
}

// anyReach reports whether reach holds from any of some offsets.
func (c *checker) anyReach(t *timeline, from []int64, to, when int64) bool {
	for _, off := range from {
		if c.reach(t, off, to, when) {
			return true
		}
	}
	return false
}

// reach reports whether all records from from up to but not including to are out of the way at a time: dropped by retention, given
// up, or behind a gap and done with.
func (c *checker) reach(t *timeline, from, to, when int64) bool {
	for behind := false; from < to; {
		if past := c.pastGap(t, from, to, when); past > from {
			from, behind = past, true
			continue
		}
		if !c.givenUp(t, from, when) && !(behind && c.doneBehindGap(t, from, when)) {
			return false
		}
		from++
	}
	return from == to
}

// doneBehindGap reports whether a record may have been committed together with others below it that had been dropped while they
// were held: then the position stays where that gap begins until somebody is told of it, who may be another owner, and after
// it come only those that were not committed. With ByCommit such a commit is Unknown.
func (c *checker) doneBehindGap(t *timeline, off, when int64) bool {
	if !t.cfg.Held || t.cfg.Mode != AtLeastOnce && t.cfg.Mode != ByCommit || c.settled(t).delivered(off) >= when {
		return false
	}
	for _, g := range t.gaps {
		gap := &c.h.Ops[g]
		if gap.To > off || gap.Call > when {
			continue
		}
		for _, i := range c.pulls(t)[off] {
			if o := &c.h.Ops[i]; o.Call <= gap.Call && c.partly(t, o, off, gap.Call) && !c.soughtBetween(t, o.Call, gap.Call) {
				return true
			}
		}
	}
	return false
}

// pulls returns what was polled, by offset.
func (c *checker) pulls(t *timeline) map[int64][]int {
	if t.pulled == nil {
		t.pulled = make(map[int64][]int)
		for _, i := range t.handles {
			if o := &c.h.Ops[i]; o.Pulled {
				for _, r := range o.Recs {
					t.pulled[r.Off] = append(t.pulled[r.Off], i)
				}
			}
		}
	}
	return t.pulled
}

// partly reports whether what was polled at and above an offset may have been committed before a time, and what is below not.
func (c *checker) partly(t *timeline, polled *Op, off, when int64) bool {
	if t.cfg.Mode == AtLeastOnce {
		return true
	}
	for _, i := range t.ops {
		o := &c.h.Ops[i]
		if o.Call > when {
			break
		}
		if o.Kind == OpCommit && o.Res == Unknown && o.Off > off && o.Member == polled.Member && o.Call >= polled.Call {
			return true
		}
	}
	return false
}

// soughtBetween reports whether the position was set for certain between two times.
func (c *checker) soughtBetween(t *timeline, from, to int64) bool {
	for _, i := range t.seeks {
		if o := &c.h.Ops[i]; o.Res == Ok && from < o.Call && o.Ret < to {
			return true
		}
	}
	return false
}

// givenUp reports whether a record had been given up at a time.
func (c *checker) givenUp(t *timeline, off, when int64) bool {
	if d, ok := t.dropped[off]; ok && c.h.Ops[d].Call <= when {
		return true
	}
	at, ok := t.gaveUp[off]
	return ok && at <= when
}

// firsts checks one owner that acknowledges by itself: first deliveries come one after the other, others at any time. A seek may
// have been made before the owner's first handler is seen to begin, and be obeyed by what comes after that.
func (c *checker) firsts(t *timeline, w *ownership) {
	next, prev, seek, since := w.start, -1, 0, c.ownerBefore(t, w)
	for _, i := range w.reads {
		o := &c.h.Ops[i]
		for _, r := range o.Recs {
			for seek < len(t.seeks) && c.h.Ops[t.seeks[seek]].Ret < since {
				seek++
			}
			sought := false
			for n := seek; n < len(t.seeks) && c.h.Ops[t.seeks[n]].Call <= o.Call; n++ {
				to := c.h.Ops[t.seeks[n]].target()
				sought = sought || to < 0 || to == r.Off
				if r.Off > next && to < r.Off {
					sought = sought || c.reachSettled(t, to, r.Off, o.Call)
				}
			}
			if next >= 0 && r.Off > next && !sought && !c.reachSettled(t, next, r.Off, o.Call) {
				c.find(PollSkip, ops(int32(prev+1), int32(i+1)), "record %d came first, before record %d", r.Off, next)
				c.passed(t.part, next, r.Off, prev, i)
			}
			if next < 0 || r.Off >= next || sought {
				next = r.Off + 1
			}
		}
		prev = i
	}
}

// reachSettled is reach for those who also pass over what has been acknowledged, or was delivered before: to a former owner,
// and waits to be delivered again.
func (c *checker) reachSettled(t *timeline, from, to, when int64) bool {
	for from < to {
		if past := c.pastGap(t, from, to, when); past > from {
			from = past
			continue
		}
		if !c.givenUp(t, from, when) && c.settled(t).first(from) > when && c.settled(t).delivered(from) >= when {
			return false
		}
		from++
	}
	return from == to
}

// byKey checks one owner of several handlers at once: before a record the one before it of the same key was done.
func (c *checker) byKey(t *timeline, w *ownership) {
	start := w.start
	if start < 0 && len(w.reads) > 0 {
		start = c.h.Ops[w.reads[0]].first()
		for _, i := range w.reads {
			start = min(start, c.h.Ops[i].first())
		}
	}
	prev := c.keys(t.part)
	settled := c.settled(t)
	for _, i := range w.reads {
		o := &c.h.Ops[i]
		for _, r := range o.Recs {
			before := prev.peek(r.Off)
			if !t.part.keeps(r.Off, o.Call) {
				continue
			}
			if before == nil || *before == 0 || *before-1 < start || *before-1 >= o.first() {
				continue // there is none, or it is in the same batch
			}
			if off := *before - 1; settled.first(off) > o.Call && !c.soughtPast(t, off, r.Off, o.Call) && !c.inGap(t, off, o.Call) {
				c.find(PollSkip, []int{i}, "record %d of key %d came before record %d of the same key was done", r.Off, r.Key, off)
			}
		}
	}
}

// soughtPast reports whether a seek may have gone between two offsets before a time.
func (c *checker) soughtPast(t *timeline, before, off, when int64) bool {
	for _, i := range t.seeks {
		o := &c.h.Ops[i]
		if o.Call > when {
			return false
		}
		if to := o.target(); to < 0 || before < to && to <= off {
			return true
		}
	}
	return false
}

// inGap reports whether the consumer had been told at a time that the record was dropped.
func (c *checker) inGap(t *timeline, off, when int64) bool {
	for _, g := range t.gaps {
		if o := &c.h.Ops[g]; o.Off <= off && off < o.To && o.Call <= when {
			return true
		}
	}
	return false
}

// keys returns for each offset of a partition, as it is at the end, the one before it of the same key, plus 1, or 0 if there is none.
func (c *checker) keys(p *part) *offsets[int64] {
	if p.prevOfKey != nil {
		return p.prevOfKey
	}
	prev := makeOffsets[int64](p.base, p.top, p.noted)
	latest := make(map[uint64]int64)
	for off := p.base; off <= p.top && p.noted > 0; off++ {
		at := p.peek(off, Never)
		if at == nil || at.op == 0 {
			continue
		}
		v := c.values.peek(at.val)
		if v == nil || v.send == 0 {
			continue
		}
		key := c.h.Ops[v.send-1].Key
		if key == 0 {
			continue
		}
		if before, ok := latest[key]; ok {
			*prev.at(off) = before + 1
		}
		latest[key] = off
	}
	p.prevOfKey = &prev
	return p.prevOfKey
}
