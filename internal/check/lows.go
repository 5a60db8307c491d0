package check

// lows checks the low marks of a partition, A-14: what was dropped stays dropped.
func (c *checker) lows(p *part) {
	// Told is when an operation says that the low mark had reached at least so much.
	reached := func(o *Op) int64 {
		if o.Kind == OpLow {
			return o.Off
		}
		return o.To
	}
	over := c.byRet(p.lowOps, func(o *Op) bool { return o.Res == Ok || o.Kind != OpLow })
	highest, which := int64(-1), -1
	j := 0
	advance := func(to int64) {
		for j < len(over) && c.h.Ops[over[j]].Ret < to {
			if o := &c.h.Ops[over[j]]; reached(o) > highest {
				highest, which = reached(o), over[j]
			}
			j++
		}
	}
	same := func(o *Op) bool {
		return which >= 0 && p.layerAt(c.h.Ops[which].Call) == p.layerAt(o.Call)
	}
	n := 0
	final := func(until int64) { // final polls are fresh reads: none of them finds what had been dropped
		for ; n < len(p.finals) && c.h.Ops[p.finals[n]].Call < until; n++ {
			o := &c.h.Ops[p.finals[n]]
			advance(o.Call)
			if len(o.Recs) > 0 && o.Recs[0].Off < highest && same(o) {
				c.find(Retention, []int{which, p.finals[n]}, "record %d is there at the end, and those up to %d had been dropped",
					o.Recs[0].Off, highest)
			}
		}
	}
	for _, i := range p.lowOps {
		o := &c.h.Ops[i]
		final(o.Call)
		if o.Kind == OpGap {
			if o.To <= o.Off {
				c.find(Retention, []int{i}, "a gap from %d to %d was reported", o.Off, o.To)
			}
			continue // that it was told now does not say that it was looked up now
		}
		advance(o.Call)
		if o.Res == Ok && reached(o) < highest && same(o) {
			c.find(Retention, []int{which, i}, "the low mark was %d and is %d", highest, reached(o))
		}
	}
	final(Never)
}
