package check

// crashes checks what came after a crash: A-27, as far as it is not about single values, which index looks at.
func (c *checker) crashes() {
	for i := range c.parts {
		p := &c.parts[i]
		for l := 1; l < len(p.layers); l++ {
			c.cutOff(p, l)
		}
	}
	for _, s := range c.streams {
		c.beyondLog(s)
	}
}

// crashBefore returns the last crash before an opening, or -1.
func (c *checker) crashBefore(reopen int) int {
	crash := -1
	for _, i := range c.crashed {
		if i < reopen {
			crash = i
		}
	}
	return crash
}

// durable reports whether a send that was acknowledged must have survived a crash.
func (c *checker) durable(o *Op, crash int) bool {
	if crash < 0 { // it was closed
		return true
	}
	at := c.h.Ops[crash].Call
	switch c.opt.Durability {
	case Durable:
		return o.Ret < at
	case Interval:
		return o.Ret+int64(c.opt.Interval) < at
	}
	return false
}

// cutOff finds durable records that were not there when the partition was opened again.
func (c *checker) cutOff(p *part, l int) {
	layer := &p.layers[l]
	crash := c.crashBefore(layer.op)
	if crash >= 0 && p.layers[l-1].op > crash { // it was opened after that crash already, and closed
		crash = -1
	}
	if crash < 0 && c.opt.Durability == Memory {
		return
	}
	for _, i := range p.sends {
		o := &c.h.Ops[i]
		if o.Call > layer.from {
			break
		}
		if o.Res == Ok && o.Ret < layer.from && o.Off >= layer.end && o.Call >= p.layers[l-1].from && c.durable(o, crash) {
			c.find(Crash, []int{i, layer.op}, "record %d, %s, was durable, and the log ends at %d", o.Off, Val(o.Val), layer.end)
		}
	}
}

// beyondLog finds consumers that stand beyond the log after a crash and were not told.
func (c *checker) beyondLog(s *stream) {
	p := s.part
	if len(p.layers) == 1 {
		return
	}
	var told []int
	var grown [][2]int64
	for _, i := range s.ops {
		if c.h.Ops[i].Kind == OpTruncated {
			told = append(told, i)
		}
	}
	for l := range p.layers {
		if l > 0 {
			layer := &p.layers[l]
			grown = append(grown[:0], [2]int64{layer.from, layer.end})
			until := int64(Never)
			if l+1 < len(p.layers) {
				until = p.layers[l+1].from
			}
			for _, i := range p.sends {
				if o := &c.h.Ops[i]; o.Call >= layer.from && o.Call < until {
					grown = append(grown, [2]int64{o.Call, c.offset(i) + 1})
				}
			}
			c.beyond(s, layer, until, levels(grown), told)
		}
	}
}

func (c *checker) beyond(s *stream, layer *layer, until int64, end level, told []int) {
	for _, i := range s.ops {
		o := &c.h.Ops[i]
		if o.Call < layer.from || o.Call >= until || o.Kind != OpAssign && o.Kind != OpCommitted || o.Res != Ok {
			continue
		}
		if n := end.upTo(o.Ret); o.Off > n {
			known := false
			for _, j := range told {
				known = known || c.h.Ops[j].Call >= layer.from && c.h.Ops[j].Call <= o.Ret
			}
			if !known {
				c.find(Crash, []int{layer.op, i}, "%s stands at %d, beyond the log, which ends at %d", c.h.consumerName(s.consumer), o.Off, n)
			}
		}
	}
}
