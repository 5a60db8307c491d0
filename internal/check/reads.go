package check

// reads finds what is wrong with single answers.
func (c *checker) reads() {
	for i := range c.h.Ops {
		o := &c.h.Ops[i]
		if len(o.Recs) < 2 {
			continue
		}
		if cfg := c.h.config(o.Consumer); o.Kind == OpHandle && (cfg.Mode == Manual || cfg.Kind == Shared || cfg.ByKey) {
			continue // what is delivered again may be anything
		}
		for j := 1; j < len(o.Recs); j++ {
			if a, b := o.Recs[j-1].Off, o.Recs[j].Off; b != a+1 {
				c.find(IntPoll, []int{i}, "record %d follows record %d in one answer", b, a)
				if o.Part >= 0 {
					c.passed(&c.parts[o.Part], a+1, b, i, i)
				}
			}
		}
	}
	for i := range c.parts {
		p := &c.parts[i]
		c.stale(p, p.polls)
		c.stale(p, p.finals)
	}
}

// stale finds empty answers at a position below a record that had been acknowledged before.
func (c *checker) stale(p *part, polls []int) {
	over := c.byRet(p.sends, func(o *Op) bool { return o.Res == Ok })
	highest, which := int64(0), -1
	j := 0
	for _, i := range polls {
		o := &c.h.Ops[i]
		for j < len(over) && c.h.Ops[over[j]].Ret < o.Call {
			if off := c.offset(over[j]); which < 0 || off > highest {
				highest, which = off, over[j]
			}
			j++
		}
		at := max(o.Off, o.To) // To is where it goes on, after a gap
		if o.Res == Ok && len(o.Recs) == 0 && o.Off >= 0 && which >= 0 && at <= highest && o.To < 0 &&
			p.layerAt(c.h.Ops[which].Call) == p.layerAt(o.Call) {
			c.find(StaleRead, []int{which, i}, "a read at %d was empty though record %d had been acknowledged", o.Off, highest)
		}
	}
}

// lost finds records that are not there, among those that must be.
func (c *checker) lost(p *part) {
	if len(p.layers) > 1 {
		c.lostFinally(p, p.layers[len(p.layers)-1].from)
		p.finally = true // what was passed over may have been cut off
		return
	}
	p.finally = c.lostFinally(p, -1)
}

// lostFinally looks at what the final polls read, since a time, and reports whether there were any.
func (c *checker) lostFinally(p *part, since int64) bool {
	finals := p.finals
	for len(finals) > 0 && c.h.Ops[finals[0]].Call < since {
		finals = finals[1:]
	}
	if len(finals) == 0 {
		return false
	}
	low, known := c.finalLow(p, finals)
	if !known {
		return false
	}
	lastFinal := finals[len(finals)-1]
	called := c.h.Ops[finals[0]].Call
	top := p.maxRead
	if len(p.layers) > 1 { // some of it may have been cut off
		top = -1
		for _, i := range finals {
			if o := &c.h.Ops[i]; len(o.Recs) > 0 {
				top = max(top, o.end()-1)
			}
		}
	}
	for _, i := range p.sends {
		if o := &c.h.Ops[i]; o.Res == Ok && o.Ret < called && p.keeps(o.Off, o.Call) {
			top = max(top, o.Off)
		}
	}
	if low < p.base && p.base <= top {
		c.find(OffsetGap, []int{lastFinal}, "there is nothing at offsets %d to %d, which are retained", low, p.base-1)
		low = p.base
	}
	top = min(top, low+4*int64(p.noted)+denseSlack) // what is beyond is far away from all others
	for off := low; off <= top; off++ {
		at := p.peek(off, called)
		switch {
		case at == nil || at.op == 0:
			if at == nil || at.read == 0 {
				c.find(OffsetGap, []int{lastFinal}, "there is nothing at offset %d, though %d is retained and %d is there", off, low, top)
			}
		case at.final:
		case at.send != 0 && c.h.Ops[at.send-1].Ret >= called && at.read == 0:
		default:
			c.find(LostWrite, append(ops(at.send, at.read), lastFinal), "record %d, %s, is not there at the end", off, Val(at.val))
		}
	}
	return true
}

// keeps reports whether what was at an offset at a time has not been cut off by a crash since.
func (p *part) keeps(off, at int64) bool {
	for l := p.layerAt(at) + 1; l < len(p.layers); l++ {
		if off >= p.layers[l].end {
			return false
		}
	}
	return true
}

// finalLow returns the offset from which on the final polls must have read everything.
func (c *checker) finalLow(p *part, finals []int) (low int64, known bool) {
	first := &c.h.Ops[finals[0]]
	low, known = first.Off, first.Off >= 0
	if !known && len(first.Recs) > 0 {
		low, known = first.Recs[0].Off, true
	}
	if first.To > low {
		low = first.To
	}
	for _, i := range p.lowOps {
		if o := &c.h.Ops[i]; o.Kind == OpLow && o.Res == Ok && o.Call > first.Call {
			low, known = min(low, o.Off), true
		}
	}
	return low, known
}

// passed says which records a consumer passed over that nobody ever read, if no final polls tell: from from up to but not
// including to.
func (c *checker) passed(p *part, from, to int64, before, after int) {
	if p.finally {
		return
	}
	for off := max(from, p.base); off < to && off <= p.top; off++ {
		switch at := p.peek(off, Never); {
		case at == nil || at.op == 0 && at.read == 0:
			c.find(OffsetGap, ops(int32(before+1), int32(after+1)), "there is nothing at offset %d", off)
		case at.read == 0:
			c.find(LostWrite, ops(at.send, int32(before+1), int32(after+1)), "record %d, %s, was passed over and never read", off, Val(at.val))
		}
	}
}
