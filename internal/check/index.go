package check

// offsets holds something for each of many offsets: in a slice where they lie close together, else in a map.
type offsets[T any] struct {
	base   int64
	dense  []T
	sparse map[int64]*T
}

// denseSlack is how many offsets may be without anything before a map is cheaper.
const denseSlack = 1 << 16

// makeOffsets is for offsets from base to top, of which about n are used.
func makeOffsets[T any](base, top int64, n int) offsets[T] {
	if span := uint64(top) - uint64(base); base <= top && span < 4*uint64(n)+denseSlack {
		return offsets[T]{base: base, dense: make([]T, span+1)}
	}
	return offsets[T]{sparse: make(map[int64]*T)}
}

// peek returns what there is for an offset, or nil.
func (o *offsets[T]) peek(off int64) *T {
	if i := uint64(off) - uint64(o.base); i < uint64(len(o.dense)) {
		return &o.dense[i]
	}
	return o.sparse[off]
}

// at returns what there is for an offset; there is something after it.
func (o *offsets[T]) at(off int64) *T {
	if x := o.peek(off); x != nil {
		return x
	}
	if o.sparse == nil {
		o.sparse = make(map[int64]*T)
	}
	x := new(T)
	o.sparse[off] = x
	return x
}

// values holds what is known of each value: those of a producer with small numbers in a slice.
type values struct {
	limit  uint64
	dense  [][]value
	sparse map[uint64]*value
}

const denseProducers = 1 << 12

func (v *values) peek(val uint64) *value {
	if p, seq := val>>seqBits, val&(1<<seqBits-1); p < uint64(len(v.dense)) && seq < uint64(len(v.dense[p])) {
		return &v.dense[p][seq]
	}
	return v.sparse[val]
}

func (v *values) at(val uint64) *value {
	if x := v.peek(val); x != nil {
		return x
	}
	if p, seq := val>>seqBits, val&(1<<seqBits-1); p < denseProducers && seq < v.limit && v.sparse[val] == nil {
		for uint64(len(v.dense)) <= p {
			v.dense = append(v.dense, nil)
		}
		if n := uint64(len(v.dense[p])); seq < 2*n+denseSlack {
			v.dense[p] = append(v.dense[p], make([]value, max(seq+1, min(2*n, v.limit))-n)...)
			return &v.dense[p][seq]
		}
	}
	if v.sparse == nil {
		v.sparse = make(map[uint64]*value)
	}
	x := new(value)
	v.sparse[val] = x
	return x
}

// stream is what happened to a consumer in a partition.
type stream struct {
	consumer Consumer
	part     *part
	cfg      ConsumerConfig
	ops      []int // all that concern it, by Call: also leaves, crashes and closes
}

// index gathers what belongs together, and finds what is wrong with single values and offsets.
func (c *checker) index() {
	c.layers()
	byStream := make(map[[2]int32]*stream)
	c.values.limit = uint64(len(c.h.Ops)) + denseSlack
	for i := range c.h.Ops {
		if o := &c.h.Ops[i]; o.Kind == OpSend {
			c.values.at(o.Val).send = int32(i + 1)
		}
	}
	for i := range c.h.Ops {
		o := &c.h.Ops[i]
		var p *part
		if o.Part >= 0 {
			p = &c.parts[o.Part]
		}
		switch o.Kind {
		case OpSend, OpLeave, OpClose, OpCrash, OpCounter:
		default:
			if p == nil {
				continue // it says nothing
			}
		}
		switch o.Kind {
		case OpSend:
			if o.Res == Ok && p != nil {
				c.see(p, i, o.Off, &Rec{Off: o.Off, Val: o.Val}, false)
			}
		case OpPoll, OpHandle:
			for j := range o.Recs {
				c.see(p, i, o.Recs[j].Off, &o.Recs[j], true)
			}
			if o.Final {
				p.finals = append(p.finals, i)
			} else if o.Kind == OpPoll {
				p.polls = append(p.polls, i)
			}
			if o.Kind == OpPoll && o.To >= 0 {
				p.lowOps = append(p.lowOps, i)
			}
		case OpLow, OpGap:
			p.lowOps = append(p.lowOps, i)
		case OpClose:
			c.closes = append(c.closes, i)
		case OpCrash:
			c.crashed = append(c.crashed, i)
		case OpCounter:
			c.counts = append(c.counts, i)
		}
		if o.Consumer == 0 && !o.Final || p == nil || o.Kind == OpCounter {
			continue
		}
		key := [2]int32{int32(o.Consumer), int32(o.Part)}
		s := byStream[key]
		if s == nil {
			s = &stream{consumer: o.Consumer, part: p, cfg: c.h.config(o.Consumer)}
			byStream[key] = s
			c.streams = append(c.streams, s)
		}
		s.ops = append(s.ops, i)
	}
	c.everywhere()
	for i := range c.h.Ops {
		if o := &c.h.Ops[i]; o.Kind == OpSend {
			if v := c.values.peek(o.Val); v.located() {
				p := &c.parts[v.part]
				p.sends = append(p.sends, i)
			}
		}
	}
}

// layers makes the partitions, and room for what is in them.
func (c *checker) layers() {
	n := len(c.h.Partitions)
	for i := range c.h.Ops {
		n = max(n, int(c.h.Ops[i].Part)+1)
	}
	c.parts = make([]part, n)
	for i := range c.parts {
		p := &c.parts[i]
		p.id, p.maxRead = Partition(i), -1
		p.layers = []layer{{op: -1}}
	}
	for i := range c.h.Ops {
		o := &c.h.Ops[i]
		if o.Part < 0 {
			continue
		}
		p := &c.parts[o.Part]
		o.eachSeen(func(off int64) {
			if p.noted == 0 {
				p.base, p.top = off, off
			}
			p.noted++
			p.base, p.top = min(p.base, off), max(p.top, off)
		})
		if o.Kind == OpReopen {
			c.reopens = append(c.reopens, i)
			p.layers = append(p.layers, layer{from: o.Call, end: o.Off, op: i})
		}
	}
	for i := range c.parts {
		p := &c.parts[i]
		p.first = p.base
		if i < len(c.h.Partitions) && p.noted > 0 {
			p.first = min(p.base, c.h.Partitions[i].First)
		}
		p.top = min(p.top, Never-1)                      // what comes after the last one must be an offset, too
		if uint64(p.base)-uint64(p.first) < denseSlack { // there may be records that nobody has seen
			p.base = p.first
		}
		if most := 4*uint64(p.noted) + denseSlack; uint64(p.top)-uint64(p.base) >= most { // some are far away from the others
			p.top = p.base + int64(most) - 1
		}
		for j := range p.layers {
			if j > 0 && p.noted > denseSlack {
				p.layers[j].cells = makeOffsets[cell](max(p.base, p.layers[j].end), p.top, p.noted)
			} else {
				p.layers[j].cells = makeOffsets[cell](p.base, p.top, p.noted)
			}
		}
	}
}

// everywhere adds what concerns all partitions to the streams: a member that leaves, a crash, a close.
func (c *checker) everywhere() {
	var leaves []int
	for i := range c.h.Ops {
		switch o := &c.h.Ops[i]; o.Kind {
		case OpLeave, OpCrash, OpClose:
			leaves = append(leaves, i)
		}
	}
	if len(leaves) == 0 {
		return
	}
	for _, s := range c.streams {
		merged := make([]int, 0, len(s.ops)+len(leaves))
		j := 0
		for _, i := range leaves {
			if o := &c.h.Ops[i]; o.Kind == OpLeave && (o.Consumer != s.consumer || o.Part >= 0) {
				continue
			}
			for j < len(s.ops) && s.ops[j] < i {
				merged = append(merged, s.ops[j])
				j++
			}
			merged = append(merged, i)
		}
		s.ops = append(merged, s.ops[j:]...)
	}
}

// see notes that an operation says that a record is at an offset.
func (c *checker) see(p *part, i int, off int64, r *Rec, read bool) {
	o := &c.h.Ops[i]
	at := p.cell(off, o.Call)
	if read {
		if at.read == 0 {
			at.read = int32(i + 1)
		}
		at.final = at.final || o.Final
		p.maxRead = max(p.maxRead, off)
		if r.Bad&Mutated != 0 {
			c.find(MutatedView, []int{i}, "the bytes of record %d changed while the handler ran", off)
		}
		if r.Bad&Torn != 0 {
			c.find(TornValue, []int{i}, "record %d is not whole", off)
			return
		}
	}
	if at.op != 0 && at.val != r.Val {
		a, text := InconsistentOffset, ""
		if p.layerAt(c.h.Ops[at.op-1].Call) != p.layerAt(o.Call) {
			a, text = Crash, ", which was below the end of the log after the crash"
		}
		c.find(a, []int{int(at.op - 1), i}, "offset %d had %s and has %s%s", off, Val(at.val), Val(r.Val), text)
	}
	if at.op == 0 {
		at.op, at.val = int32(i+1), r.Val
	}
	if !read {
		at.send = int32(i + 1)
	}
	c.seeValue(p, i, off, r, read)
}

// seeValue notes that an operation says where a value is.
func (c *checker) seeValue(p *part, i int, off int64, r *Rec, read bool) {
	o := &c.h.Ops[i]
	v := c.values.peek(r.Val)
	if v == nil || v.send == 0 {
		c.find(Invented, []int{i}, "%s was read at %d and nobody sent it", Val(r.Val), off)
		return
	}
	send := &c.h.Ops[v.send-1]
	if read {
		seen := o.Ret
		if o.Kind == OpHandle {
			seen = o.Call
		}
		switch {
		case send.Res == Fail:
			c.find(AbortedRead, []int{int(v.send - 1), i}, "%s was read at %d though its send failed", Val(r.Val), off)
			if p.layerAt(send.Call) != p.layerAt(o.Call) {
				c.find(Crash, []int{int(v.send - 1), i}, "%s was read at %d after a crash though its send had failed", Val(r.Val), off)
			}
		case seen < send.Call:
			c.find(FutureRead, []int{i, int(v.send - 1)}, "%s was read at %d before it was sent", Val(r.Val), off)
		}
		if send.Sum != 0 && r.Sum != 0 && send.Sum != r.Sum {
			c.find(TornValue, []int{int(v.send - 1), i}, "record %d is whole and not what was sent as %s", off, Val(r.Val))
		}
	}
	if c.copies(p) {
		return
	}
	if v.located() && (v.part != p.id || v.off != off) {
		c.find(Duplicate, []int{int(v.op - 1), i}, "%s is at %s %d and at %s %d", Val(r.Val),
			c.h.partName(v.part), v.off, c.h.partName(p.id), off)
		return
	}
	if send.Part >= 0 && send.Part != p.id {
		c.find(Invented, []int{int(v.send - 1), i}, "%s was read in %s at %d and was sent to %s", Val(r.Val),
			c.h.partName(p.id), off, c.h.partName(send.Part))
	}
	if !v.located() {
		v.op, v.part, v.off = int32(i+1), p.id, off
	}
	if read && v.read == 0 {
		v.read = int32(i + 1)
	}
}

func (c *checker) copies(p *part) bool {
	return int(p.id) < len(c.h.Partitions) && c.h.Partitions[p.id].Copies
}
