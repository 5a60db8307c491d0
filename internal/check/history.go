package check

import (
	"cmp"
	"fmt"
	"slices"
)

// History is what happened in a run. A Recorder makes one; tests of the checker make theirs by hand.
type History struct {
	Seed       uint64
	Ops        []Op // sorted by Call
	Partitions []PartitionInfo
	Consumers  []ConsumerInfo // of Consumer c at c-1
	Members    []string       // of Member m at m-1
	Logs       []string
}

// Sort sorts the operations by Call. Of equal times, handlers that returned earlier come first, and of a log those that it
// was told of earlier; for the checker they are concurrent in any case, but where one must come after the other, as the
// handlers of a partition, this is the order that is tried.
func (h *History) Sort() {
	compare := func(a, b *Op) int {
		if c := cmp.Compare(a.Call, b.Call); c != 0 {
			return c
		}
		var x, y int64
		if a.Kind == OpHandle {
			x = a.Ret
		}
		if b.Kind == OpHandle {
			y = b.Ret
		}
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.Log, b.Log), cmp.Compare(a.turn, b.turn))
	}
	sorted := true
	for i := 1; sorted && i < len(h.Ops); i++ {
		sorted = compare(&h.Ops[i-1], &h.Ops[i]) <= 0
	}
	if sorted {
		return
	}
	order := make([]int32, len(h.Ops))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(compare(&h.Ops[a], &h.Ops[b]), cmp.Compare(a, b)) })
	ops := make([]Op, len(h.Ops))
	for to, from := range order {
		ops[to] = h.Ops[from]
	}
	h.Ops = ops
}

// Clone returns a copy that shares nothing with h.
func (h *History) Clone() *History {
	c := *h
	c.Ops = slices.Clone(h.Ops)
	for i := range c.Ops {
		c.Ops[i].Recs = slices.Clone(c.Ops[i].Recs)
	}
	c.Partitions = slices.Clone(h.Partitions)
	c.Consumers = slices.Clone(h.Consumers)
	c.Members = slices.Clone(h.Members)
	c.Logs = slices.Clone(h.Logs)
	return &c
}

// Counts returns how many operations of each kind there are: a run that never did what it is to be tested for has failed.
func (h *History) Counts() map[Kind]int {
	var n [numKinds]int
	for i := range h.Ops {
		n[h.Ops[i].Kind]++
	}
	counts := make(map[Kind]int)
	for k, n := range n {
		if n != 0 {
			counts[Kind(k)] = n
		}
	}
	return counts
}

// config returns the configuration of a consumer.
func (h *History) config(c Consumer) ConsumerConfig {
	if i := int(c) - 1; i >= 0 && i < len(h.Consumers) {
		return h.Consumers[i].Config
	}
	return ConsumerConfig{}
}

func (h *History) partName(p Partition) string {
	switch {
	case p == AnyPartition:
		return "some partition"
	case int(p) < len(h.Partitions):
		return h.Partitions[p].Name
	}
	return fmt.Sprintf("partition %d", p)
}

func (h *History) consumerName(c Consumer) string {
	if i := int(c) - 1; i >= 0 && i < len(h.Consumers) {
		return h.Consumers[i].Name
	}
	return fmt.Sprintf("consumer %d", c)
}

func (h *History) memberName(m Member) string {
	if i := int(m) - 1; i >= 0 && i < len(h.Members) {
		return h.Members[i]
	}
	return fmt.Sprintf("member %d", m)
}

func (h *History) logName(l int32) string {
	if int(l) < len(h.Logs) {
		return h.Logs[l]
	}
	return fmt.Sprintf("log %d", l)
}
