package check

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Figures say how a run went.
type Figures struct {
	Sent, Acknowledged, Failed int

	// InDoubt is how many sends ended unknown, and Appeared how many of these were read.
	InDoubt, Appeared int

	Polled, Delivered int // records, each time it happened

	// Redeliveries is how many records of a consumer were delivered 1, 2, ... times; the last place stands for all above it.
	Redeliveries [8]int

	// Lag is the worst of each partition, by name: for how long what a read returned last had not been the newest when the read
	// was called.
	Lag map[string]time.Duration

	Kinds map[Kind]int
}

// String returns the figures in a few lines.
func (f Figures) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "sent %d, acknowledged %d, failed %d, in doubt %d of which %d appeared\n", f.Sent, f.Acknowledged, f.Failed,
		f.InDoubt, f.Appeared)
	fmt.Fprintf(&b, "polled %d, delivered %d; records delivered 1, 2, ... times: %v\n", f.Polled, f.Delivered, f.Redeliveries)
	b.WriteString("operations:")
	for k := OpSend; k < numKinds; k++ {
		if n := f.Kinds[k]; n > 0 {
			fmt.Fprintf(&b, " %s %d", k, n)
		}
	}
	b.WriteString("\nworst lag:")
	names := make([]string, 0, len(f.Lag))
	for name := range f.Lag {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, " %s %v", name, f.Lag[name])
	}
	return b.String()
}

// figures fills in the figures.
func (c *checker) figures() {
	f := &c.report.Figures
	f.Kinds, f.Lag = c.h.Counts(), make(map[string]time.Duration)
	for i := range c.h.Ops {
		o := &c.h.Ops[i]
		switch o.Kind {
		case OpSend:
			f.Sent++
			switch o.Res {
			case Ok:
				f.Acknowledged++
			case Fail:
				f.Failed++
			default:
				if f.InDoubt++; c.values.peek(o.Val).read != 0 {
					f.Appeared++
				}
			}
		case OpPoll:
			f.Polled += len(o.Recs)
		case OpHandle:
			f.Delivered += len(o.Recs)
		}
	}
	for _, s := range c.streams {
		n := makeOffsets[int32](s.part.base, s.part.top, s.part.noted)
		for _, i := range s.ops {
			if o := &c.h.Ops[i]; o.Kind == OpHandle {
				for _, r := range o.Recs {
					x := n.at(r.Off)
					*x++
					if at := min(int(*x), len(f.Redeliveries)) - 1; *x <= int32(len(f.Redeliveries)) {
						f.Redeliveries[at]++
						if at > 0 {
							f.Redeliveries[at-1]--
						}
					}
				}
			}
		}
	}
	for i := range c.parts {
		c.lag(&c.parts[i])
	}
}

// lag finds the worst lag of a partition: for each read, since when the record after what it returned had been there.
func (c *checker) lag(p *part) {
	var acked [][2]int64
	for _, i := range p.sends {
		if o := &c.h.Ops[i]; o.Res == Ok {
			acked = append(acked, [2]int64{o.Off, o.Ret})
		}
	}
	if len(acked) == 0 || len(p.polls) == 0 {
		return
	}
	slices.SortFunc(acked, func(a, b [2]int64) int { return int(min(max(a[0]-b[0], -1), 1)) })
	// since[i] is when the first of the records from i on had been acknowledged.
	since := make([]int64, len(acked))
	first := int64(Never)
	for i := len(acked) - 1; i >= 0; i-- {
		first = min(first, acked[i][1])
		since[i] = first
	}
	worst := int64(0)
	for _, i := range p.polls {
		o := &c.h.Ops[i]
		if len(o.Recs) == 0 {
			continue
		}
		n, _ := slices.BinarySearchFunc(acked, o.end(), func(a [2]int64, off int64) int { return int(min(max(a[0]-off, -1), 1)) })
		if n < len(acked) && since[n] < o.Call {
			worst = max(worst, o.Call-since[n])
		}
	}
	c.report.Figures.Lag[c.h.partName(p.id)] = time.Duration(worst)
}
