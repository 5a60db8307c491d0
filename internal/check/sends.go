package check

import (
	"cmp"
	"slices"
)

// sends finds what is wrong among sends.
func (c *checker) sends() {
	for i := range c.parts {
		c.sendOrder(&c.parts[i])
	}
	c.producerOrder()
	c.batches()
	c.afterClose()
}

// offset returns where the value of a send is, which must be known.
func (c *checker) offset(i int) int64 {
	if o := &c.h.Ops[i]; o.Res == Ok {
		return o.Off
	}
	return c.values.peek(c.h.Ops[i].Val).off
}

// byRet returns the operations of list for which keep says so, in the order of their ends.
func (c *checker) byRet(list []int, keep func(o *Op) bool) []int {
	type end struct {
		ret int64
		i   int
	}
	ends := make([]end, 0, len(list))
	for _, i := range list {
		if o := &c.h.Ops[i]; keep(o) {
			ends = append(ends, end{o.Ret, i})
		}
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Or(cmp.Compare(a.ret, b.ret), cmp.Compare(a.i, b.i)) })
	sorted := make([]int, len(ends))
	for j, e := range ends {
		sorted[j] = e.i
	}
	return sorted
}

// sendOrder finds sends that were over before another was called and have the higher offset. It goes through the sends by
// their calls, and keeps the highest offset of those that were over.
func (c *checker) sendOrder(p *part) {
	over := c.byRet(p.sends, func(o *Op) bool { return o.Res == Ok })
	highest, which, layer := int64(0), -1, 0
	j := 0
	for _, i := range p.sends {
		o := &c.h.Ops[i]
		for j < len(over) && c.h.Ops[over[j]].Ret < o.Call {
			if off := c.offset(over[j]); which < 0 || off > highest {
				highest, which = off, over[j]
			}
			j++
		}
		for layer+1 < len(p.layers) && p.layers[layer+1].from <= o.Call {
			layer++
			highest = min(highest, p.layers[layer].end-1) // those above are gone
		}
		if off := c.offset(i); which >= 0 && off < highest {
			c.find(SendOrder, []int{which, i}, "%s was sent after %s had been, and has offset %d below %d", Val(o.Val),
				Val(c.h.Ops[which].Val), off, highest)
		}
	}
}

// producerOrder finds producers whose offsets in a partition fall.
func (c *checker) producerOrder() {
	type key struct {
		producer uint64
		part     Partition
	}
	latest := make(map[key]int)
	for i := range c.h.Ops {
		o := &c.h.Ops[i]
		if o.Kind != OpSend {
			continue
		}
		v := c.values.peek(o.Val)
		if !v.located() {
			continue
		}
		k := key{o.Val >> seqBits, v.part}
		j, ok := latest[k]
		latest[k] = i
		if !ok {
			continue
		}
		p := &c.parts[v.part]
		if a, b := c.offset(j), c.offset(i); a > b && p.layerAt(c.h.Ops[j].Call) == p.layerAt(o.Call) {
			c.find(NonmonotonicSend, []int{j, i}, "%s is at %d, above the one that its producer sent next, %s at %d",
				Val(c.h.Ops[j].Val), a, Val(o.Val), b)
		}
	}
}

// batches finds batches that were torn apart.
func (c *checker) batches() {
	byNumber := make(map[uint32][]int)
	for i := range c.h.Ops {
		if o := &c.h.Ops[i]; o.Kind == OpSend && o.Batch != 0 {
			byNumber[o.Batch] = append(byNumber[o.Batch], i)
		}
	}
	for _, batch := range byNumber {
		c.batch(batch)
	}
}

// run is what of a batch is in one partition.
type run struct {
	first, last int   // operations
	off         int64 // of the last one
	missing     int   // an operation whose record is not there, or -1
	hidden      int64 // how many such there were since the last one
	elsewhere   int   // of how many, up to the last one, it is not known in which partition they would be
}

// batch looks at one batch: those of its records that lie, or should lie, in one partition must be consecutive.
func (c *checker) batch(batch []int) {
	runs := make(map[Partition]*run)
	elsewhere := 0
	for _, i := range batch {
		o := &c.h.Ops[i]
		v := c.values.peek(o.Val)
		at := o.Part
		if v.located() {
			at = v.part
		}
		if at < 0 {
			elsewhere++
			continue
		}
		r := runs[at]
		if r == nil {
			r = &run{first: -1, missing: -1}
			runs[at] = r
		}
		if !v.located() {
			r.missing = i
			r.hidden++
			continue
		}
		off := c.offset(i)
		if r.first < 0 {
			r.first = i
		} else if d := off - r.off - 1; d < r.hidden || d > r.hidden+int64(elsewhere-r.elsewhere) {
			c.find(TornBatch, []int{r.last, i}, "batch %d: %s is at %d and %s at %d", o.Batch,
				Val(c.h.Ops[r.last].Val), r.off, Val(o.Val), off)
		}
		r.last, r.off, r.hidden, r.elsewhere = i, off, 0, elsewhere
	}
	for at, r := range runs {
		if r.first < 0 || r.missing < 0 {
			continue
		}
		if c.h.Ops[r.missing].Res == Fail || c.complete(&c.parts[at], r.off) {
			c.find(TornBatch, []int{r.first, r.missing}, "batch %d: %s is at %d, and %s is not there", c.h.Ops[r.first].Batch,
				Val(c.h.Ops[r.last].Val), r.off, Val(c.h.Ops[r.missing].Val))
		}
	}
}

// complete reports whether the final polls read all around an offset, so that what is not there is nowhere.
func (c *checker) complete(p *part, off int64) bool {
	if len(p.finals) == 0 {
		return false
	}
	at := p.peek(off, Never)
	return at != nil && at.final && len(p.layers) == 1
}

// afterClose finds records that were sent after Close had returned and got in.
func (c *checker) afterClose() {
	for _, i := range c.closes {
		end := &c.h.Ops[i]
		if end.Res != Ok {
			continue
		}
		open := int64(Never) // when it is open again
		for _, j := range c.reopens {
			if o := &c.h.Ops[j]; o.Call > end.Ret {
				open = o.Call
				break
			}
		}
		for j := i + 1; j < len(c.h.Ops); j++ {
			o := &c.h.Ops[j]
			if o.Kind == OpSend && o.Call > end.Ret && o.Call < open && (o.Res == Ok || c.values.peek(o.Val).read != 0) {
				c.find(PublishAfterClose, []int{i, j}, "%s was sent after Close had returned", Val(o.Val))
			}
		}
	}
}
