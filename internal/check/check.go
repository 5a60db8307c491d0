package check

import (
	"cmp"
	"fmt"
	"slices"
)

// Check looks for contradictions in the history. It takes O(n log n) time for n operations and records.
func (h *History) Check(opt Options) *Report {
	if opt.Limit == 0 {
		opt.Limit = 10
	}
	h.Sort()
	c := &checker{h: h, opt: opt, report: &Report{Counts: make(map[Anomaly]int), history: h}}
	c.index()
	c.sends()
	for i := range c.parts {
		c.lost(&c.parts[i])
		c.lows(&c.parts[i])
	}
	c.reads()
	for _, s := range c.streams {
		c.stream(s)
	}
	c.crashes()
	c.counters()
	c.figures()
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int { return cmp.Compare(last(a.Ops), last(b.Ops)) })
	return c.report
}

func last(ops []int) int {
	if len(ops) == 0 {
		return -1
	}
	return ops[len(ops)-1]
}

// checker is one run of Check.
type checker struct {
	h      *History
	opt    Options
	report *Report

	parts   []part // of Partition p at p
	values  values
	streams []*stream
	closes  []int // operations, by Call, as all lists of indexes here
	crashed []int
	reopens []int
	counts  []int
}

// part is what is known of a partition.
type part struct {
	id      Partition
	layers  []layer // the first one, and one for each time that it was opened again
	sends   []int   // all that may be in it, and are located
	polls   []int
	finals  []int
	lowOps  []int // operations that tell the low mark
	first   int64 // where it began
	base    int64 // the least and the highest offset to look at
	top     int64
	noted   int // how many are
	maxRead int64

	finally   bool            // whether the final polls say what is there
	prevOfKey *offsets[int64] // made by keys
}

// layer is a partition from one opening on: offsets from end on are new, those below it are of the layers before.
type layer struct {
	from  int64 // time
	end   int64
	op    int // the reopen, or -1
	cells offsets[cell]
}

// cell is what is known of an offset.
type cell struct {
	val   uint64
	op    int32 // the first operation that says so, plus 1; 0 if none does
	send  int32 // the send that was told this offset, plus 1
	read  int32 // the first read, plus 1
	final bool  // whether one of the final polls read it
}

// value is what is known of a value.
type value struct {
	send int32 // plus 1; 0 if nobody sent it
	op   int32 // the first operation that says where it is, plus 1
	read int32 // the first read, plus 1
	part Partition
	off  int64
}

// located reports whether it is known where the value is.
func (v *value) located() bool { return v.op != 0 }

// find notes a finding.
func (c *checker) find(a Anomaly, ops []int, format string, args ...any) {
	c.report.Counts[a]++
	if c.report.Counts[a] > c.opt.Limit {
		return
	}
	c.report.Findings = append(c.report.Findings, Finding{a, slices.Clone(ops), fmt.Sprintf(format, args...)})
}

// ops is a short way to write indexes that are kept plus 1.
func ops(plus ...int32) []int {
	list := make([]int, 0, len(plus))
	for _, i := range plus {
		if i > 0 && !slices.Contains(list, int(i-1)) {
			list = append(list, int(i-1))
		}
	}
	return list
}

// layerAt returns which layer of the partition is open at a time.
func (p *part) layerAt(t int64) int {
	at := 0
	for at+1 < len(p.layers) && p.layers[at+1].from <= t {
		at++
	}
	return at
}

// home returns the layer that an offset seen in a layer belongs to.
func (p *part) home(off int64, layer int) int {
	for layer > 0 && off < p.layers[layer].end {
		layer--
	}
	return layer
}

// cell returns what is known of an offset, as seen at a time.
func (p *part) cell(off int64, t int64) *cell {
	return p.layers[p.home(off, p.layerAt(t))].cells.at(off)
}

// peek is cell, or nil if nothing is known.
func (p *part) peek(off int64, t int64) *cell {
	return p.layers[p.home(off, p.layerAt(t))].cells.peek(off)
}

// eachSeen calls f for each record that an operation says is somewhere.
func (o *Op) eachSeen(f func(off int64)) {
	switch o.Kind {
	case OpSend:
		if o.Res == Ok {
			f(o.Off)
		}
	case OpPoll, OpHandle:
		for i := range o.Recs {
			f(o.Recs[i].Off)
		}
	}
}
