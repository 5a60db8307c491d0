package check_test

import (
	"math/rand/v2"

	"github.com/leatlog/leat/internal/check"
)

// editor makes a good history bad.
type editor struct {
	*rand.Rand
	h *check.History
}

// pick returns a random operation of those for which ok says so, or nil.
func (e *editor) pick(ok func(o *check.Op) bool) *check.Op {
	for range 50 { // most often there are many
		if o := &e.h.Ops[e.IntN(len(e.h.Ops))]; ok(o) {
			return o
		}
	}
	var fit []int
	for i := range e.h.Ops {
		if ok(&e.h.Ops[i]) {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return &e.h.Ops[fit[e.IntN(len(fit))]]
}

// any reports whether there is an operation for which ok says so.
func (e *editor) any(ok func(o *check.Op) bool) bool {
	for i := range e.h.Ops {
		if ok(&e.h.Ops[i]) {
			return true
		}
	}
	return false
}

// pair returns a random two operations for which ok says so: one, and the first later one that is of the same stream and kind.
func (e *editor) pair(is func(o *check.Op) bool, ok func(a, b *check.Op) bool) (a, b *check.Op) {
	type stream struct {
		c check.Consumer
		p check.Partition
	}
	latest := make(map[stream]int)
	var fit [][2]int
	for i := range e.h.Ops {
		o := &e.h.Ops[i]
		if !is(o) {
			continue
		}
		s := stream{o.Consumer, o.Part}
		if j, found := latest[s]; found && ok(&e.h.Ops[j], o) {
			fit = append(fit, [2]int{j, i})
		}
		latest[s] = i
	}
	if len(fit) == 0 {
		return nil, nil
	}
	x := fit[e.IntN(len(fit))]
	return &e.h.Ops[x[0]], &e.h.Ops[x[1]]
}

// drop removes the operations for which which says so.
func (e *editor) drop(which func(o *check.Op) bool) {
	kept := e.h.Ops[:0]
	for i := range e.h.Ops {
		if !which(&e.h.Ops[i]) {
			kept = append(kept, e.h.Ops[i])
		}
	}
	e.h.Ops = kept
}

// dropRecord removes a record from all answers.
func (e *editor) dropRecord(p check.Partition, off int64) {
	for i := range e.h.Ops {
		o := &e.h.Ops[i]
		if o.Part != p {
			continue
		}
		var kept []check.Rec
		for _, r := range o.Recs {
			if r.Off != off {
				kept = append(kept, r)
			}
		}
		o.Recs = kept
	}
	e.drop(func(o *check.Op) bool { return o.Kind == check.OpHandle && len(o.Recs) == 0 })
}

// low returns what the last look at the low mark of a partition told.
func (e *editor) low(p check.Partition) (low int64) {
	for i := range e.h.Ops {
		if o := &e.h.Ops[i]; o.Kind == check.OpLow && o.Part == p && o.Res == check.Ok {
			low = max(low, o.Off)
		}
	}
	return low
}

func (e *editor) config(o *check.Op) check.ConsumerConfig {
	if o.Consumer == 0 {
		return check.ConsumerConfig{}
	}
	return e.h.Consumers[o.Consumer-1].Config
}

// steady reports whether an operation is of a consumer that never seeks.
func (e *editor) steady(o *check.Op) bool {
	if o.Consumer == 0 {
		return false
	}
	cfg := e.config(o)
	return cfg.Protected || cfg.Mode == check.Manual || cfg.Mode == check.ByCommit || cfg.ByKey || cfg.Kind == check.Shared
}

// inTurn reports whether it is the call of a handler of a consumer that has one at a time and never seeks.
func (e *editor) inTurn(o *check.Op) bool {
	cfg := e.config(o)
	return o.Kind == check.OpHandle && cfg.Protected && cfg.Mode == check.AtLeastOnce && cfg.Kind != check.Shared && !cfg.ByKey
}

func ok(k check.Kind) func(o *check.Op) bool {
	return func(o *check.Op) bool { return o.Kind == k && o.Res == check.Ok }
}

// send returns the send of a value.
func (e *editor) send(val uint64) *check.Op {
	for i := range e.h.Ops {
		if o := &e.h.Ops[i]; o.Kind == check.OpSend && o.Val == val {
			return o
		}
	}
	return nil
}

// read reports whether somebody read the value.
func (e *editor) read(val uint64) bool {
	return e.any(func(o *check.Op) bool {
		for _, r := range o.Recs {
			if r.Val == val {
				return true
			}
		}
		return false
	})
}
