package check_test

import "github.com/leatlog/leat/internal/check"

// logCorruptions are of what is sent and read.
var logCorruptions = []corruption{
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
}
