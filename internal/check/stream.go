package check

import (
	"cmp"
	"slices"
)

// ownership is the time during which a member has a partition. A consumer without members has one all the time.
type ownership struct {
	assign int // the operation, or -1
	gen    uint64
	member Member
	start  int64 // offset, or -1 if unknown
	from   int64 // when the member was told
	how    ended
	end    int   // the operation that ended it, or -1
	until  int64 // it was over not before that ...
	over   int64 // ... and not after that
	reads  []int // its handles or polls, by Call

	// Where it stood at its end, if its records come one after the other, and the seeks that it had not obeyed for certain.
	place   place
	pending []jump
}

// ended is how an ownership ended.
type ended uint8

const (
	notEnded ended = iota
	given          // it was given back: nothing was in progress
	taken          // it was taken away: what was in progress was not committed
)

// timeline is what happened to a consumer in a partition, sorted by what it is.
type timeline struct {
	*stream
	gens   []uint64 // of each of ops
	owners []ownership
	byGen  map[uint64]int // index into owners

	handles []int
	polls   []int
	seeks   []int           // that may have taken effect
	tells   []int           // what says where the consumer stands: commits that were accepted, look-ups, assigns
	settles []int           // acks, nacks, rejects and the like, that may have been accepted
	gaps    []int           // operations that told of a gap
	gapsAt  map[int64][]int // the same, by where it begins
	dropped map[int64]int   // the first operation that gave a record up
	tries   map[int64]int   // deliveries of a record that count towards MaxDeliveries
	gaveUp  map[int64]int64 // since when it may have been given up
	idles   []int
	leaves  []int

	settlement *settlement     // made by settled
	pulled     map[int64][]int // made by pulls
	walked     map[int64]int64 // by resumesAtFloor: from each beginning, the first offset that was not done with
}

// stream checks what happened to one consumer in one partition.
func (c *checker) stream(s *stream) {
	t := &timeline{stream: s, byGen: make(map[uint64]int)}
	c.sortOut(t)
	c.ownerships(t)
	c.cutShort(t)
	if s.consumer == 0 {
		c.positions(t)
		return
	}
	c.owners(t)
	c.zombies(t)
	c.late(t)
	if s.cfg.Kind == Shared {
		c.holds(t)
	} else {
		c.overlaps(t)
		c.positions(t)
		c.resumes(t)
		c.deliveries(t)
	}
	c.commits(t)
}

// sortOut fills in the timeline but for the ownerships.
func (c *checker) sortOut(t *timeline) {
	latest := make(map[Member]uint64)
	t.gens = make([]uint64, len(t.ops))
	for j, i := range t.ops {
		o := &c.h.Ops[i]
		if t.gens[j] = o.Gen; o.Gen == 0 && o.Member != 0 && t.cfg.Kind == Assigned {
			t.gens[j] = latest[o.Member]
		}
		switch o.Kind {
		case OpAssign:
			latest[o.Member] = o.Gen
			t.tells = append(t.tells, i)
		case OpHandle:
			if len(o.Recs) == 0 {
				break
			}
			t.handles = append(t.handles, i)
			if t.cfg.MaxDeliveries > 0 && (o.Res == Fail || t.cfg.Mode == Manual || t.cfg.Kind == Shared) {
				for k := range o.Recs {
					off := o.Recs[k].Off
					put(&t.tries, off, t.tries[off]+1)
					// Those that former owners did not live to settle count, too, and are not among the tries: the attempt says so.
					last := o.Res == Fail && o.Attempt >= int32(t.cfg.MaxDeliveries)
					if _, ok := t.gaveUp[off]; ok || t.tries[off] < t.cfg.MaxDeliveries && !last {
						continue
					}
					when := o.Call
					if o.Res == Fail {
						when = o.Ret
					}
					put(&t.gaveUp, off, when)
				}
			}
		case OpPoll:
			t.polls = append(t.polls, i)
			if o.To >= 0 && o.Off >= 0 {
				t.gap(i, o)
			}
		case OpSeek:
			if o.may() {
				t.seeks = append(t.seeks, i)
			}
		case OpTruncated:
			t.seeks = append(t.seeks, i)
		case OpCommitted, OpCommit:
			if o.Res == Ok {
				t.tells = append(t.tells, i)
			}
		case OpAck, OpAckThrough, OpNack, OpReject, OpExtend:
			if o.may() {
				t.settles = append(t.settles, i)
			}
		case OpGap:
			t.gap(i, o)
		case OpDropped:
			if _, ok := t.dropped[o.Off]; !ok {
				put(&t.dropped, o.Off, i)
			}
		case OpIdle:
			if o.Res == Ok {
				t.idles = append(t.idles, i)
			}
		case OpLeave:
			t.leaves = append(t.leaves, i)
		}
	}
}

// gap adds an operation that told of a gap.
func (t *timeline) gap(i int, o *Op) {
	t.gaps = append(t.gaps, i)
	if t.gapsAt == nil {
		t.gapsAt = make(map[int64][]int)
	}
	t.gapsAt[o.Off] = append(t.gapsAt[o.Off], i)
}

// pastGap returns where the gap ends that begins at an offset, if one was told of until some time; of several that which ends
// highest, but not above an offset.
func (c *checker) pastGap(t *timeline, from, most, when int64) int64 {
	to := from
	if t.cfg.Held {
		for _, g := range t.gaps {
			if o := &c.h.Ops[g]; o.Off < from && o.Call <= when && o.To <= most {
				to = max(to, o.To)
			}
		}
	}
	for _, g := range t.gapsAt[from] {
		if o := &c.h.Ops[g]; o.Call <= when && o.To <= most {
			to = max(to, o.To)
		}
	}
	return to
}

// put sets an entry of a map that may not have been made yet.
func put[V any](m *map[int64]V, k int64, v V) {
	if *m == nil {
		*m = make(map[int64]V)
	}
	(*m)[k] = v
}

// ownerships finds out who had the partition when, and who read what.
func (c *checker) ownerships(t *timeline) {
	add := func(o ownership) {
		if _, ok := t.byGen[o.gen]; !ok {
			t.byGen[o.gen] = len(t.owners)
		}
		t.owners = append(t.owners, o)
	}
	for _, i := range t.ops {
		if o := &c.h.Ops[i]; o.Kind == OpAssign {
			add(ownership{assign: i, gen: o.Gen, member: o.Member, start: o.Off, from: o.Call, end: -1, until: Never, over: Never})
		}
	}
	for j, i := range t.ops {
		o, gen := &c.h.Ops[i], t.gens[j]
		if len(o.Recs) == 0 && (o.Kind != OpPoll || o.To < 0) || o.Kind != OpHandle && o.Kind != OpPoll {
			continue
		}
		at, ok := t.byGen[gen]
		if !ok {
			add(ownership{assign: -1, gen: gen, member: o.Member, start: -1, from: o.Call, end: -1, until: Never, over: Never})
			at = t.byGen[gen]
		}
		t.owners[at].reads = append(t.owners[at].reads, i)
	}
	for j, i := range t.ops {
		o, gen := &c.h.Ops[i], t.gens[j]
		switch o.Kind {
		case OpRevoke, OpLost, OpFence:
			if at, ok := t.byGen[gen]; ok {
				t.owners[at].ends(i, o)
			}
		}
	}
	for _, i := range t.ops {
		o := &c.h.Ops[i]
		switch o.Kind {
		case OpLeave, OpCrash:
			for k := range t.owners {
				w := &t.owners[k]
				if w.from <= o.Call && w.how == notEnded && (o.Kind == OpCrash || w.member == o.Member) {
					w.ends(i, o)
				}
			}
		}
	}
	// The callback that told of one that was lost may have been on its way while the next one began.
	for k := range t.owners {
		if w := &t.owners[k]; w.how == taken && c.h.Ops[w.end].Kind == OpLost {
			for n := range t.owners {
				if x := &t.owners[n]; x.gen > w.gen && x.assign >= 0 {
					w.from = min(w.from, x.from)
				}
			}
		}
	}
	slices.SortStableFunc(t.owners, func(a, b ownership) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.gen, b.gen)) })
	for k := range t.owners {
		t.byGen[t.owners[k].gen] = k
	}
	// One that was taken away was over when the next one began. If its member was told, or would have been but for a crash, that
	// may have been at any time after it happened.
	for k := range t.owners {
		w := &t.owners[k]
		if w.how == given && t.cfg.Impatient && c.h.Ops[w.end].Kind == OpRevoke && k+1 < len(t.owners) && t.owners[k+1].from <= w.over {
			w.how, w.until = taken, min(w.until, t.owners[k+1].from)
		}
		if w.how != taken {
			continue
		}
		for n := k + 1; n < len(t.owners); n++ {
			if next := &t.owners[n]; next.gen != w.gen {
				w.over = min(w.over, next.from)
				if end := c.h.Ops[w.end].Kind; end == OpLost || end == OpCrash {
					w.until = min(w.until, next.from)
				}
				break
			}
		}
	}
}

// cutShort counts the last delivery of a record that its owner did not live to settle: it was the last all the same, and the
// next owner gives the record up without a call.
func (c *checker) cutShort(t *timeline) {
	for k := range t.owners {
		w := &t.owners[k]
		if t.cfg.MaxDeliveries == 0 || w.how != taken {
			continue
		}
		for n, i := range w.reads {
			o := &c.h.Ops[i]
			if o.Kind != OpHandle || o.Attempt < int32(t.cfg.MaxDeliveries) || o.Ret < w.until && c.followed(t, w, n) {
				continue
			}
			for n := range o.Recs {
				if at, ok := t.gaveUp[o.Recs[n].Off]; !ok || o.Call < at {
					put(&t.gaveUp, o.Recs[n].Off, o.Call)
				}
			}
		}
	}
}

// followed reports whether the owner was given something after one of its reads that tells that it had settled that: if not, it
// may have been fenced between the return of the handler and what was to come of it.
func (c *checker) followed(t *timeline, w *ownership, n int) bool {
	if !t.cfg.ByKey {
		return n < len(w.reads)-1
	}
	key := c.h.Ops[w.reads[n]].Recs[0].Key
	return key != 0 && slices.ContainsFunc(w.reads[n+1:], func(i int) bool { return c.h.Ops[i].Recs[0].Key == key })
}

// ends notes an operation that ended the ownership. Being taken away counts more than being given back.
func (w *ownership) ends(i int, o *Op) {
	how := taken
	if o.Kind == OpRevoke || o.Kind == OpLeave {
		how = given
		if o.Res != Ok {
			how = taken // the callback did not come to its end
		}
	}
	if w.how == taken && how == given {
		return
	}
	w.how, w.end = how, i
	if o.Kind == OpFence && w.until < o.Call {
		return // it was told of before
	}
	w.until, w.over = o.Call, o.Ret
}

// owner returns the ownership under which an operation was done, or nil. The operation is the j-th of the stream.
func (t *timeline) owner(gen uint64) *ownership {
	if k, ok := t.byGen[gen]; ok {
		return &t.owners[k]
	}
	return nil
}

// reset reports whether the consumer's position may have been set, or the process have crashed, between two times.
func (c *checker) reset(t *timeline, from, to int64) bool {
	for _, i := range t.seeks {
		if o := &c.h.Ops[i]; o.Call <= to && o.Ret >= from {
			return true
		}
	}
	for _, i := range c.crashed {
		if o := &c.h.Ops[i]; o.Call <= to && o.Ret >= from {
			return true
		}
	}
	return false
}
