package load

import "github.com/leatlog/leat/internal/atomicx"

// recorder is a histogram that one goroutine fills while another, the collector, takes what there is from time to time. The
// owner never waits and never does more at a hand-over than swap two pointers.
//
// # Roles
//
//   - owner: the goroutine that records. For a lane of a push subscriber that may be a different goroutine each time; the
//     target orders them.
//   - collector: the goroutine of Run.
//
// # Shared state
//
//	turn     of the whole run: raised by the collector, read by owners, says that the collector wants what there is
//	offered  stored by the owner (a full histogram), taken by the collector; publishes what the owner recorded in it
//	spare    stored by the collector (an empty histogram), taken by the owner
//
// # Proof
//
// A histogram is in one place at a time: cur, offered, spare, or the collector's hands. The owner gives cur away only after
// it took one from spare, so that it always has one; each store into offered finds it empty, since there are two histograms
// and the owner holds the other. What is given away is not touched again by who gave it, and the pointers are atomics.
//
// Not promised: that a window is exact. An owner that records nothing for a while hands over what it has when it records
// again; the totals, which are taken after the owners have stopped, miss nothing.
type recorder struct {
	cur  *Histogram // the owner's
	seen uint32     // the owner's: the last turn it has answered

	turn    *atomicx.Uint32            // raised by the collector, loaded by the owner; see above, as for the next two
	offered atomicx.Pointer[Histogram] // stored by the owner and taken by the collector: publishes what is in it
	spare   atomicx.Pointer[Histogram] // stored by the collector and taken by the owner: publishes that it is empty
}

func newRecorder(turn *atomicx.Uint32, live bool) *recorder {
	r := &recorder{cur: NewHistogram(), turn: turn}
	if live {
		r.spare.Store(NewHistogram())
	}
	return r
}

// record counts v. Owner only.
func (r *recorder) record(v int64) {
	if t := r.turn.Load(); t != r.seen {
		r.hand(t)
	}
	r.cur.Record(v)
}

// hand gives the collector what was recorded up to now, if it has brought back what it was given last.
func (r *recorder) hand(turn uint32) {
	r.seen = turn
	if r.cur.Count() == 0 {
		return
	}
	if empty := r.spare.Swap(nil); empty != nil {
		r.offered.Store(r.cur)
		r.cur = empty
	}
}

// collect adds what the owner has offered to each of into. Collector only.
func (r *recorder) collect(into ...*Histogram) {
	if h := r.offered.Swap(nil); h != nil {
		for _, t := range into {
			t.Merge(h)
		}
		h.Reset()
		r.spare.Store(h)
	}
}

// finish adds all that is left. Collector only, after the owner has stopped and something has ordered that.
func (r *recorder) finish(into *Histogram) {
	r.collect(into)
	into.Merge(r.cur)
	r.cur.Reset()
}
