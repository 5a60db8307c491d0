package check

// counters compares the engine's counters with what the history says, A-29. What an operation that never returned has done is
// left open, so there is a least and a greatest number.
func (c *checker) counters() {
	for _, i := range c.counts {
		o := &c.h.Ops[i]
		if o.Res != Ok {
			continue
		}
		least, most := c.count(Counter(o.Val), o.Consumer, o.Part)
		switch {
		case o.Off >= least && o.Off <= most:
		case least == most:
			c.find(StatsDrift, []int{i}, "the engine counts %d %s, and the history %d", o.Off, Counter(o.Val), least)
		default:
			c.find(StatsDrift, []int{i}, "the engine counts %d %s, and the history %d to %d", o.Off, Counter(o.Val), least, most)
		}
	}
}

// count returns what a counter must be at least and at most.
func (c *checker) count(n Counter, consumer Consumer, at Partition) (least, most int64) {
	switch n {
	case Appended:
		return c.countAppended(at)
	case Reclaimed:
		return c.countReclaimed(at)
	}
	seen := make(map[[2]int64]bool) // of Dropped and Redelivered
	for i := range c.h.Ops {
		o := &c.h.Ops[i]
		if o.Consumer != consumer || at != AnyPartition && o.Part != at {
			continue
		}
		switch {
		case o.Kind == OpHandle && (n == Delivered || n == Redelivered && o.Attempt > 1):
			most += int64(len(o.Recs))
			least += int64(len(o.Recs))
		case o.Kind == OpHandle && n == Failed:
			if o.Res != Ok {
				most += int64(len(o.Recs))
			}
			if o.Res == Fail {
				least += int64(len(o.Recs))
			}
		case o.Kind == OpDropped && n == Dropped && !seen[[2]int64{int64(o.Part), o.Off}]:
			seen[[2]int64{int64(o.Part), o.Off}] = true
			most++
			least++
		case o.Kind == OpAck && n == Acked:
			if o.may() {
				most++
			}
			if o.Res == Ok {
				least++
			}
		case (o.Kind == OpLost || o.Kind == OpFence) && n == Fenced:
			k := [2]int64{int64(o.Part), int64(o.Gen)}
			if o.Gen == 0 || !seen[k] {
				most++
				least++
			}
			seen[k] = true
		}
	}
	return least, most
}

// countAppended counts the records of a partition, or of all: those acknowledged or read, and perhaps those in doubt.
func (c *checker) countAppended(at Partition) (least, most int64) {
	for i := range c.h.Ops {
		o := &c.h.Ops[i]
		if o.Kind != OpSend || !o.may() {
			continue
		}
		v := c.values.peek(o.Val)
		where := o.Part
		if v.located() {
			where = v.part
		}
		switch {
		case at != AnyPartition && where != AnyPartition && where != at:
		case v.located():
			if c.parts[where].keeps(v.off, o.Call) {
				least++
				most++
			}
		default:
			most++
		}
	}
	return least, most
}

// countReclaimed returns how many records of a partition the low marks say were dropped: no fewer than the highest of them says
// and no more than are below the first that was read at the end.
func (c *checker) countReclaimed(at Partition) (least, most int64) {
	for i := range c.parts {
		p := &c.parts[i]
		if at != AnyPartition && p.id != at {
			continue
		}
		low, high := p.first, int64(Never)
		for _, j := range p.lowOps {
			switch o := &c.h.Ops[j]; o.Kind {
			case OpLow:
				low = max(low, o.Off)
			default:
				low = max(low, o.To)
			}
		}
		if len(p.finals) > 0 {
			if from, known := c.finalLow(p, p.finals); known {
				high = from
			}
		}
		least += low - p.first
		if most = most + high - p.first; high == Never || most < 0 {
			most = Never
		}
	}
	return least, most
}
