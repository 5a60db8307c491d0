package check

import (
	"cmp"
	"slices"
)

// again returns the deliveries of each record that was delivered more than once, by Call.
func (c *checker) again(t *timeline) map[int64][]int {
	n := makeOffsets[int32](t.part.base, t.part.top, t.part.noted)
	more := false
	for _, i := range t.handles {
		for _, r := range c.h.Ops[i].Recs {
			x := n.at(r.Off)
			*x++
			more = more || *x > 1
		}
	}
	if !more {
		return nil
	}
	again := make(map[int64][]int)
	for _, i := range t.handles {
		for _, r := range c.h.Ops[i].Recs {
			if *n.at(r.Off) > 1 {
				again[r.Off] = append(again[r.Off], i)
			}
		}
	}
	for _, list := range again { // what has equal times is in the order of its attempts
		slices.SortStableFunc(list, func(i, j int) int {
			a, b := &c.h.Ops[i], &c.h.Ops[j]
			return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Attempt, b.Attempt))
		})
	}
	return again
}

// deliveries finds records that were delivered more often than there are reasons for, A-23.
func (c *checker) deliveries(t *timeline) {
	again := c.again(t)
	if again == nil {
		return
	}
	nacks, said := make(map[int64]int), make(map[int64][]int)
	for _, i := range t.settles {
		o := &c.h.Ops[i]
		if o.Kind == OpNack {
			nacks[o.Off]++
		}
		if len(again[o.Off]) > 0 {
			said[o.Off] = append(said[o.Off], i)
		}
	}
	for off, list := range again {
		completed, reasons := 0, nacks[off]+len(c.crashed)
		for n, i := range list {
			o := &c.h.Ops[i]
			if o.Ret != Never || t.cfg.Mode == AtMostOnce {
				completed++
			}
			if o.Res == Fail && t.cfg.Mode != AtMostOnce {
				reasons++
			}
			if n > 0 && t.cfg.Mode == Manual && t.cfg.expires(&c.h.Ops[list[n-1]], o) {
				reasons++
			}
			if n > 0 && t.cfg.Mode == Manual {
				c.afterAck(t, off, list[n-1], i, said[off])
			}
		}
		for _, i := range t.seeks {
			if to := c.h.Ops[i].target(); to <= off {
				reasons++
			}
		}
		for k := 1; k < len(t.owners); k++ {
			before := &t.owners[k-1]
			loose := before.how != given || t.cfg.Mode == Manual || t.cfg.Mode == ByCommit || t.cfg.ByKey
			if w := &t.owners[k]; w.start <= off && loose && t.cfg.Mode != AtMostOnce {
				reasons++
			}
		}
		if completed-1 > reasons {
			c.find(OverDelivery, list, "record %d was delivered %d times, and there are reasons for %d", off, completed, reasons+1)
		}
	}
}

// afterAck finds a record that was delivered once more to an owner that had acknowledged it.
func (c *checker) afterAck(t *timeline, off int64, before, after int, said []int) {
	a, b := &c.h.Ops[before], &c.h.Ops[after]
	w := t.owner(c.genOf(t, b))
	if w == nil || w != t.owner(c.genOf(t, a)) || c.reset(t, a.Call, b.Call) {
		return
	}
	// It may have been on its way to the handler when all records up to it were acknowledged, but not if another handler was
	// running then.
	decided := int64(-1)
	if n, _ := slices.BinarySearch(w.reads, after); n > 0 {
		decided = c.h.Ops[w.reads[n-1]].Ret
	}
	acked := c.settled(t).certain(off)
	wrong := a.Call < acked && acked < min(decided, b.Call)
	for _, i := range said {
		o := &c.h.Ops[i]
		wrong = wrong || o.Res == Ok && (o.Kind == OpAck || o.Kind == OpReject) && a.Call <= o.Call && o.Ret < b.Call && o.of(a)
	}
	if wrong {
		c.find(OverDelivery, []int{before, after}, "record %d was delivered again after it had been acknowledged", off)
	}
}

// holds checks that each record of a shared group has one holder at a time.
func (c *checker) holds(t *timeline) {
	again := c.again(t)
	if again == nil {
		return
	}
	said := make(map[int64][]int) // acks and the like of each of these records
	for _, i := range t.settles {
		if o := &c.h.Ops[i]; len(again[o.Off]) > 0 {
			said[o.Off] = append(said[o.Off], i)
		}
	}
	gone := make(map[Member][]int)
	for _, i := range t.ops {
		switch o := &c.h.Ops[i]; o.Kind {
		case OpLeave, OpRevoke, OpLost, OpFence:
			gone[o.Member] = append(gone[o.Member], i)
		}
	}
	for off, list := range again {
		for n := 1; n < len(list); n++ {
			since := int64(0)
			if n > 1 {
				since = c.h.Ops[list[n-2]].Call
			}
			if !c.strays(t, list, list[n-1], list[n]) {
				c.hold(t, off, list[n-1], list[n], since, said[off], gone)
			}
		}
		for _, i := range said[off] {
			c.token(t, i, list)
		}
	}
}

// expires reports whether one delivery of a record may have expired when another one began.
func (cfg *ConsumerConfig) expires(a, b *Op) bool {
	return cfg.AckWait == 1 || cfg.AckWait > 0 && b.Call-a.Call >= int64(cfg.AckWait)
}

// of reports whether what was said of a record can be about a delivery of it.
func (o *Op) of(delivery *Op) bool {
	return o.Member == delivery.Member && (o.Attempt == 0 || delivery.Attempt == 0 || o.Attempt == delivery.Attempt)
}

// hold checks that a record was free when it was delivered again. Since is when the delivery before both began.
func (c *checker) hold(t *timeline, off int64, before, after int, since int64, said []int, gone map[Member][]int) {
	a, b := &c.h.Ops[before], &c.h.Ops[after]
	if c.reset(t, a.Call, b.Call) || b.Attempt > 0 && b.Attempt < a.Attempt { // the later one was decided earlier
		return
	}
	if b.Attempt > 1 && c.reset(t, since, b.Call) || a.Attempt == b.Attempt && a.Attempt > 0 && c.reset(t, 0, b.Call) {
		return // b may have been decided before a seek and a after it: attempts are counted anew then
	}
	free := a.Res == Fail && a.Ret <= b.Call && t.cfg.Mode != AtMostOnce ||
		t.cfg.expires(a, b)
	done := t.cfg.Mode != Manual && a.Ret <= b.Call
	for _, i := range said {
		o := &c.h.Ops[i]
		if o.Ret < a.Call || o.Call > b.Call || !o.of(a) {
			continue
		}
		switch o.Kind {
		case OpNack:
			free = true
		case OpAck, OpReject:
			if done = true; o.Res == Ok && o.Ret < b.Call && o.Call >= a.Call {
				c.find(OverDelivery, []int{before, i, after}, "record %d was delivered again after %s had been accepted", off, o.Kind)
				return
			}
		}
	}
	for _, i := range gone[a.Member] {
		if c.h.Ops[i].Call <= b.Call { // maybe before a was seen to begin, which had been decided by then
			free = true
		}
	}
	switch {
	case free:
	case done:
		c.find(OverDelivery, []int{before, after}, "record %d was delivered again after it had been processed", off)
	default:
		c.find(TwoOwners, []int{before, after}, "record %d was given to %s while %s held it", off,
			c.h.memberName(b.Member), c.h.memberName(a.Member))
	}
}

// strays reports whether one delivery, though it has a later attempt than another one and is seen after it, may have been decided
// before: the attempts began anew with a seek between them. Then there was yet another one of which it is the next attempt.
func (c *checker) strays(t *timeline, list []int, other, stray int) bool {
	s := &c.h.Ops[stray]
	if other < 0 || s.Attempt < 2 || !c.reset(t, 0, c.h.Ops[other].Call) {
		return false
	}
	return slices.ContainsFunc(list, func(i int) bool {
		return i != other && i != stray && c.h.Ops[i].Attempt == s.Attempt-1
	})
}

// token checks that what was accepted came from the last one who was given the record.
func (c *checker) token(t *timeline, i int, list []int) {
	o := &c.h.Ops[i]
	if o.Res != Ok {
		return
	}
	mine, which := int64(-1), -1 // when it was given last to the one who speaks
	for _, j := range list {
		if h := &c.h.Ops[j]; h.Member == o.Member && h.Call <= o.Call {
			mine = h.Call
			if o.of(h) {
				which = j
			}
		}
	}
	decided := int64(0) // since when a delivery may have been decided that is seen to begin later: since the one before it began
	for _, j := range list {
		h := &c.h.Ops[j]
		since, from := h.Member != o.Member && h.Call > mine, h.Call
		if o.Attempt > 0 && h.Attempt > 0 {
			since, from = h.Attempt > o.Attempt, decided // a seek may have been made in between, and attempts begin anew
		}
		decided = h.Call
		if since && h.Call < o.Call && !c.reset(t, from, o.Ret) && !(o.Attempt > 0 && c.strays(t, list, which, j)) {
			c.find(ZombieCommit, []int{j, i}, "%s of record %d by %s was accepted, attempt %d, though %s had it since, attempt %d",
				o.Kind, o.Off, c.h.memberName(o.Member), o.Attempt, c.h.memberName(h.Member), h.Attempt)
			return
		}
	}
}
