package check_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leatlog/leat/internal/check"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// corruption makes a history bad in one way, and reports whether it found where.
type corruption struct {
	name    string
	anomaly check.Anomaly
	edit    func(e *editor) bool
}

var corruptions = []corruption{
	{"drop a record everywhere", check.LostWrite, func(e *editor) bool {
		s := e.pick(func(o *check.Op) bool { return ok(check.OpSend)(o) && o.Off >= e.low(o.Part) })
		if s != nil {
			e.dropRecord(s.Part, s.Off)
		}
		return s != nil
	}},
	{"drop a record and its send", check.OffsetGap, func(e *editor) bool {
		s := e.pick(func(o *check.Op) bool { return ok(check.OpSend)(o) && o.Off >= e.low(o.Part) })
		if s == nil {
			return false
		}
		p, off, val := s.Part, s.Off, s.Val
		last := e.pick(func(o *check.Op) bool { return ok(check.OpSend)(o) && o.Part == p && o.Off > off })
		e.dropRecord(p, off)
		e.drop(func(o *check.Op) bool { return o.Kind == check.OpSend && o.Val == val })
		return last != nil
	}},
	{"swap two in a poll", check.IntPoll, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return o.Kind == check.OpPoll && len(o.Recs) > 1 })
		if o != nil {
			i := e.IntN(len(o.Recs) - 1)
			o.Recs[i], o.Recs[i+1] = o.Recs[i+1], o.Recs[i]
		}
		return o != nil
	}},
	{"repeat an answer", check.PollSkip, func(e *editor) bool {
		full := func(o *check.Op) bool { return o.Kind == check.OpPoll && len(o.Recs) > 0 }
		a, b := e.pair(full, func(a, b *check.Op) bool { return a.Gen == b.Gen && b.Off == a.Off+int64(len(a.Recs)) })
		if a != nil {
			b.Off, b.To, b.Recs = a.Off, a.To, a.Recs
		}
		return a != nil
	}},
	{"skip a delivery", check.PollSkip, func(e *editor) bool {
		a, b := e.pair(e.inTurn, func(a, b *check.Op) bool {
			return a.Gen == b.Gen && a.Res == check.Ok && a.Attempt == 1 && b.Recs[0].Off == a.Recs[0].Off+int64(len(a.Recs))
		})
		if a == nil {
			return false
		}
		// There must be one before it, or the generation just begins later.
		before := e.pick(func(o *check.Op) bool {
			return o.Kind == check.OpHandle && o.Consumer == a.Consumer && o.Part == a.Part && o.Gen == a.Gen && o.Call < a.Call
		})
		gone := *a
		_ = b
		e.drop(func(o *check.Op) bool {
			return o.Kind == check.OpHandle && o.Consumer == gone.Consumer && o.Part == gone.Part && o.Recs[0].Off == gone.Recs[0].Off
		})
		return before != nil
	}},
	{"other value", check.InconsistentOffset, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return len(o.Recs) > 0 })
		other := e.pick(ok(check.OpSend))
		i := e.IntN(len(o.Recs))
		if o.Recs[i].Val == other.Val {
			return false
		}
		o.Recs[i].Val, o.Recs[i].Sum = other.Val, other.Sum
		return true
	}},
	{"value of another offset", check.Duplicate, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return len(o.Recs) > 0 })
		other := e.pick(ok(check.OpSend))
		i := e.IntN(len(o.Recs))
		if o.Recs[i].Val == other.Val {
			return false
		}
		o.Recs[i].Val, o.Recs[i].Sum = other.Val, other.Sum
		return true
	}},
	{"unknown value", check.Invented, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return len(o.Recs) > 0 })
		o.Recs[e.IntN(len(o.Recs))].Val = 77<<40 | e.Uint64N(1000)
		return true
	}},
	{"send that failed", check.AbortedRead, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return ok(check.OpSend)(o) && e.read(o.Val) })
		o.Res = check.Fail
		return true
	}},
	{"send that came later", check.FutureRead, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return len(o.Recs) > 0 && o.Ret != check.Never })
		s := e.send(o.Recs[0].Val)
		s.Call = o.Ret + 1
		s.Ret = max(s.Ret, s.Call)
		return true
	}},
	{"swap two acknowledged offsets", check.SendOrder, func(e *editor) bool {
		a := e.pick(ok(check.OpSend))
		b := e.pick(func(o *check.Op) bool { return ok(check.OpSend)(o) && o.Part == a.Part && a.Ret < o.Call })
		if b != nil {
			a.Off, b.Off = b.Off, a.Off
		}
		return b != nil
	}},
	{"swap two of one producer", check.NonmonotonicSend, func(e *editor) bool {
		a := e.pick(ok(check.OpSend))
		b := e.pick(func(o *check.Op) bool {
			return ok(check.OpSend)(o) && o.Part == a.Part && o.Val>>40 == a.Val>>40 && a.Ret < o.Call
		})
		if b != nil {
			a.Off, b.Off = b.Off, a.Off
		}
		return b != nil
	}},
	{"swap two of a batch", check.TornBatch, func(e *editor) bool {
		a := e.pick(func(o *check.Op) bool { return ok(check.OpSend)(o) && o.Batch != 0 })
		if a == nil {
			return false
		}
		b := e.pick(func(o *check.Op) bool { return ok(check.OpSend)(o) && o.Batch == a.Batch && o.Val != a.Val })
		a.Off, b.Off = b.Off, a.Off
		return true
	}},
	{"empty answer", check.StaleRead, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool {
			if o.Kind != check.OpPoll || len(o.Recs) == 0 || o.To >= 0 {
				return false
			}
			s := e.send(o.Recs[0].Val)
			return s.Res == check.Ok && s.Ret < o.Call
		})
		if o != nil {
			o.Recs = nil
		}
		return o != nil
	}},
	{"low mark back", check.Retention, func(e *editor) bool {
		a, b := e.pair(ok(check.OpLow), func(a, b *check.Op) bool { return a.Ret < b.Call && a.Off > 0 })
		if a != nil {
			b.Off = a.Off - 1
		}
		return a != nil
	}},
	{"gap too short", check.Retention, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return o.Kind == check.OpPoll && o.To > 0 })
		if o != nil {
			o.To = o.Off
		}
		return o != nil
	}},
	{"assign without revoke", check.TwoOwners, func(e *editor) bool {
		end := e.pick(func(o *check.Op) bool {
			if o.Kind != check.OpRevoke && o.Kind != check.OpFence && o.Kind != check.OpLost {
				return false
			}
			return e.any(func(n *check.Op) bool {
				return n.Kind == check.OpAssign && n.Consumer == o.Consumer && n.Part == o.Part && n.Gen > o.Gen
			})
		})
		if end == nil {
			return false
		}
		gone := *end
		e.drop(func(o *check.Op) bool {
			return o.Kind == gone.Kind && o.Consumer == gone.Consumer && o.Part == gone.Part && o.Gen == gone.Gen
		})
		return true
	}},
	{"a second holder", check.TwoOwners, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool {
			return o.Kind == check.OpHandle && e.config(o).Kind == check.Shared && o.Ret-o.Call > 2 && o.Ret != check.Never &&
				int64(e.config(o).AckWait) > o.Ret-o.Call && !e.any(func(l *check.Op) bool {
				return l.Kind == check.OpLeave && l.Member == o.Member && l.Call <= o.Call+1
			})
		})
		if o == nil {
			return false
		}
		other := *o
		other.Member++
		other.Attempt++
		other.Call++
		e.h.Ops = append(e.h.Ops, other)
		return true
	}},
	{"generation of the one before", check.GenerationRegression, func(e *editor) bool {
		a, b := e.pair(ok(check.OpAssign), func(a, b *check.Op) bool { return a.Ret < b.Call && a.Gen != 0 })
		if a != nil {
			b.Gen = a.Gen - e.Uint64N(2)
		}
		return a != nil
	}},
	{"resume one later", check.ResumeOffset, func(e *editor) bool {
		a, b := e.pair(func(o *check.Op) bool {
			return e.steady(o) && (o.Kind == check.OpRevoke && o.Res == check.Ok || o.Kind == check.OpAssign)
		}, func(a, b *check.Op) bool { return a.Kind == check.OpRevoke && b.Kind == check.OpAssign })
		if a != nil && e.pick(func(o *check.Op) bool { // where there is a gap it may begin behind it
			return len(o.Recs) > 0 && o.Consumer == b.Consumer && o.Part == b.Part && o.Gen == b.Gen && o.Recs[0].Off == b.Off
		}) == nil {
			return false
		}
		if a != nil {
			b.Off++
		}
		return a != nil
	}},
	{"resume far back", check.ResumeOffset, func(e *editor) bool {
		a, b := e.pair(func(o *check.Op) bool { return e.steady(o) && ok(check.OpAssign)(o) }, func(a, b *check.Op) bool { return a.Off > 0 && b.Off > a.Off+8 })
		if a != nil {
			b.Off = a.Off - 1
		}
		return a != nil
	}},
	{"commit by the former owner", check.ZombieCommit, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool {
			if o.Res != check.Fail || o.Kind != check.OpCommit && o.Kind != check.OpAck || e.config(o).Kind != check.Assigned {
				return false
			}
			return e.any(func(f *check.Op) bool {
				return f.Consumer == o.Consumer && f.Part == o.Part && (f.Kind == check.OpFence && f.Gen == o.Gen && f.Ret < o.Call ||
					f.Kind == check.OpAssign && f.Gen > o.Gen && f.Ret < o.Call)
			})
		})
		if o != nil {
			o.Res = check.Ok
		}
		return o != nil
	}},
	{"commit back", check.CommitRegression, func(e *editor) bool {
		a, b := e.pair(func(o *check.Op) bool { return ok(check.OpCommitted)(o) && e.steady(o) }, func(a, b *check.Op) bool {
			return a.Ret < b.Call && a.Off > 0
		})
		if a != nil {
			b.Off = a.Off - 1
		}
		return a != nil
	}},
	{"commit ahead", check.CommitAhead, func(e *editor) bool {
		first := make(map[[2]int32]int) // the first look tells where the consumer begins
		for i := range e.h.Ops {
			o := &e.h.Ops[i]
			k := [2]int32{int32(o.Consumer), int32(o.Part)}
			if _, known := first[k]; !known {
				first[k] = i
			}
		}
		o := e.pick(func(o *check.Op) bool {
			return ok(check.OpCommitted)(o) && e.steady(o) && o != &e.h.Ops[first[[2]int32{int32(o.Consumer), int32(o.Part)}]]
		})
		if o == nil {
			return false
		}
		top := int64(0)
		for i := range e.h.Ops {
			if s := &e.h.Ops[i]; ok(check.OpSend)(s) && s.Part == o.Part {
				top = max(top, s.Off)
			}
		}
		o.Off = top + 1 + int64(e.IntN(3))
		return e.pick(func(l *check.Op) bool { // unless all had been processed by then
			return ok(check.OpSend)(l) && l.Part == o.Part && l.Off == top && l.Call > o.Ret
		}) != nil
	}},
	{"acknowledgement that was refused", check.UnprocessedBelow, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool {
			if !ok(check.OpAck)(o) || e.config(o).Kind != check.Shared {
				return false
			}
			return e.any(func(x *check.Op) bool {
				return ok(check.OpCommitted)(x) && x.Consumer == o.Consumer && x.Part == o.Part && x.Off > o.Off
			})
		})
		if o != nil {
			o.Res = check.Fail
		}
		return o != nil
	}},
	{"handlers overlap", check.HandlerOverlap, func(e *editor) bool {
		a, b := e.pair(e.inTurn, func(a, b *check.Op) bool { return a.Gen == b.Gen && a.Call < b.Call && b.Ret != check.Never })
		if a != nil {
			a.Ret = b.Ret + 1
		}
		return a != nil
	}},
	{"deliver once more", check.OverDelivery, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool {
			return e.inTurn(o) && o.Res == check.Ok && e.config(o).Kind == check.Broadcast
		})
		if o == nil {
			return false
		}
		again := *o
		again.Call = o.Ret + 1
		again.Ret = again.Call
		e.h.Ops = append(e.h.Ops, again)
		return true
	}},
	{"handler after revoke", check.LateHandler, func(e *editor) bool {
		r := e.pick(func(o *check.Op) bool {
			return ok(check.OpRevoke)(o) && e.any(func(h *check.Op) bool {
				return h.Kind == check.OpHandle && !h.Pulled && h.Consumer == o.Consumer && h.Part == o.Part && h.Gen == o.Gen
			})
		})
		if r == nil {
			return false
		}
		h := e.pick(func(h *check.Op) bool {
			return h.Kind == check.OpHandle && !h.Pulled && h.Consumer == r.Consumer && h.Part == r.Part && h.Gen == r.Gen
		})
		h.Call, h.Ret = r.Ret+1, r.Ret+2
		return true
	}},
	{"handler after close", check.LateHandler, func(e *editor) bool {
		end := e.pick(ok(check.OpClose))
		h := e.pick(func(h *check.Op) bool { return h.Kind == check.OpHandle && !h.Pulled })
		h.Call, h.Ret = end.Ret+1, end.Ret+2
		return true
	}},
	{"torn value", check.TornValue, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return len(o.Recs) > 0 })
		o.Recs[e.IntN(len(o.Recs))].Bad = check.Torn
		return true
	}},
	{"other bytes", check.TornValue, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return len(o.Recs) > 0 })
		o.Recs[e.IntN(len(o.Recs))].Sum++
		return true
	}},
	{"mutated view", check.MutatedView, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return o.Kind == check.OpHandle })
		o.Recs[e.IntN(len(o.Recs))].Bad = check.Mutated
		return true
	}},
	{"send after close", check.PublishAfterClose, func(e *editor) bool {
		end := e.pick(ok(check.OpClose))
		s := e.pick(ok(check.OpSend))
		s.Call, s.Ret = end.Ret+1, end.Ret+2
		return true
	}},
	{"counter off by one", check.StatsDrift, func(e *editor) bool {
		o := e.pick(func(o *check.Op) bool { return ok(check.OpCounter)(o) && check.Counter(o.Val) == check.Reclaimed })
		o.Off += int64(2*e.IntN(2) - 1)
		return true
	}},
}

var crashCorruptions = []corruption{
	{"log cut below what was durable", check.Crash, func(e *editor) bool {
		re := e.pick(func(o *check.Op) bool {
			return o.Kind == check.OpReopen && e.any(func(s *check.Op) bool {
				return ok(check.OpSend)(s) && s.Part == o.Part && s.Ret < o.Call && s.Off < o.Off
			})
		})
		if re == nil {
			return false
		}
		s := e.pick(func(s *check.Op) bool {
			return ok(check.OpSend)(s) && s.Part == re.Part && s.Ret < re.Call && s.Off < re.Off
		})
		re.Off = s.Off
		return true
	}},
	{"offset used again after the crash", check.Crash, func(e *editor) bool {
		crash := e.pick(func(o *check.Op) bool { return o.Kind == check.OpCrash })
		final := e.pick(func(o *check.Op) bool {
			if !o.Final || len(o.Recs) == 0 {
				return false
			}
			s := e.send(o.Recs[0].Val)
			return s.Res == check.Ok && s.Ret < crash.Call
		})
		later := e.pick(func(o *check.Op) bool { return ok(check.OpSend)(o) && o.Call > crash.Ret })
		if final == nil || later == nil {
			return false
		}
		final.Recs[0].Val, final.Recs[0].Sum = later.Val, later.Sum
		return true
	}},
	{"failed record readable after the crash", check.Crash, func(e *editor) bool {
		crash := e.pick(func(o *check.Op) bool { return o.Kind == check.OpCrash })
		final := e.pick(func(o *check.Op) bool {
			return o.Final && len(o.Recs) > 0 && e.send(o.Recs[0].Val).Call < crash.Call
		})
		if final == nil {
			return false
		}
		e.send(final.Recs[0].Val).Res = check.Fail
		return true
	}},
	{"commit beyond the log", check.Crash, func(e *editor) bool {
		t := e.pick(func(o *check.Op) bool { return o.Kind == check.OpTruncated })
		if t == nil {
			return false
		}
		gone := *t
		a := e.pick(func(o *check.Op) bool {
			return o.Kind == check.OpAssign && o.Consumer == gone.Consumer && o.Part == gone.Part && o.Call >= gone.Call
		})
		if a == nil {
			return false
		}
		for i := range e.h.Ops { // the first one since
			if o := &e.h.Ops[i]; o.Kind == check.OpAssign && o.Consumer == gone.Consumer && o.Part == gone.Part && o.Call >= gone.Call {
				o.Off = gone.Off + 1000
				break
			}
		}
		e.drop(func(o *check.Op) bool { return o.Kind == check.OpTruncated })
		return true
	}},
}

// tries returns in how many places each corruption is tried; 95 of 100 must be found.
func tries() int {
	if raceEnabled || testing.Short() {
		return 10
	}
	return 50
}

// TestCorrupt makes good histories bad in one place, many times each, and looks whether that is found for what it is.
func TestCorrupt(t *testing.T) {
	corrupt(t, corruptions, play, check.Options{})
}

func TestCorrupt_Crash(t *testing.T) {
	corrupt(t, crashCorruptions, playCrash, check.Options{Durability: check.Durable})
}

func corrupt(t *testing.T, list []corruption, play func(seed uint64, until, step int64) *check.History, opt check.Options) {
	var good []*check.History
	for seed := range uint64(25) {
		good = append(good, play(1000+seed, 2500, 1))
	}
	places := tries()
	for _, x := range list {
		t.Run(strings.ReplaceAll(x.name, " ", "_"), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(len(x.name)), 3))
			found, tried := 0, 0
			var missed *check.Report
			for n := 0; n < places; tried++ {
				require.Less(t, tried, 40*places, "it cannot be tried")
				e := &editor{rng, good[rng.IntN(len(good))].Clone()}
				if !x.edit(e) {
					continue
				}
				n++
				if r := e.h.Check(opt); r.Has(x.anomaly) {
					found++
				} else {
					missed = r
				}
			}
			assert.GreaterOrEqual(t, found, (95*places+99)/100, "%s: found %d of %d; one that was missed:\n%s", x.anomaly, found, places, missed)
		})
	}
}
