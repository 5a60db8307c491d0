package disk

import (
	"math"
	"sort"

	"github.com/leatlog/leat/segment/frame"
)

// indexEvery is how many bytes lie between two entries of an index at the least.
const indexEvery = 4 << 10

// index is a sparse list of the frames of a file. It never has more entries than a seal may have: when it is full every other
// one is dropped, and from then on they are twice as far apart.
type index struct {
	list  []frame.Entry
	every int64
}

// add counts the frame that lies at pos, after frames up to the append time newest, with records of that sum.
func (x *index) add(first uint64, pos, newest int64, sum frame.Sum) {
	n := len(x.list)
	if n == 0 {
		x.list, x.every = append(x.list, frame.Entry{Offset: first, Pos: pos, Before: math.MinInt64, Sum: sum}), indexEvery
		return
	}
	if pos-x.list[n-1].Pos < x.every {
		return
	}
	if n == frame.MaxEntries {
		for i := range n / 2 {
			x.list[i] = x.list[2*i]
		}
		x.list = x.list[:n/2]
		x.every *= 2
	}
	x.list = append(x.list, frame.Entry{Offset: first, Pos: pos, Before: newest, Sum: sum})
}

// at returns the entry from which to look for an offset. There must be one.
func (x *index) at(off uint64) frame.Entry {
	i := sort.Search(len(x.list), func(i int) bool { return x.list[i].Offset > off })
	return x.list[max(i-1, 0)]
}

// when returns the entry from which to look for the first frame with a record of time t or later. There must be one.
func (x *index) when(t int64) frame.Entry {
	i := sort.Search(len(x.list), func(i int) bool { return x.list[i].Before >= t })
	return x.list[max(i-1, 0)]
}
