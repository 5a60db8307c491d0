package check_test

import "github.com/leatlog/leat/internal/check"

// ownerCorruptions are of owners, of what they commit, and of their handlers.
var ownerCorruptions = []corruption{
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
}
