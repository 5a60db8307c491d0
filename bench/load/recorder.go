package load

import (
	"sync"

	"github.com/leatlog/leat/internal/atomicx"
)

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
// # Shared by many
//
// Where there are very many owners, many of them have one recorder, which keeps its histogram under a lock, or their histograms would
// be all there is room for: see recorders.
//
// Not promised: that a window is exact. An owner that records nothing for a while hands over what it has when it records
// again; the totals, which are taken after the owners have stopped, miss nothing.
type recorder struct {
	mu   *sync.Mutex // nil for one owner
	cur  *Histogram  // the owner's; under mu if there are many
	seen uint32      // the owner's: the last turn it has answered

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

// recorders makes recorders for n owners that may record at the same time.
type recorders struct {
	// turn is the run's: raised by the collector, loaded by owners, publishes nothing else.
	turn *atomicx.Uint32
	live bool
	many []*recorder // shared by all, if there are too many owners; else empty. Each is made when it is first needed
	next int
}

// sharedBy is how many recorders are shared where there are more owners than recordersMost.
const sharedBy = 32

func newRecorders(turn *atomicx.Uint32, live bool, n int) *recorders {
	rs := &recorders{turn: turn, live: live}
	if n > recordersMost {
		rs.many = make([]*recorder, sharedBy)
	}
	return rs
}

// one returns the next owner's.
func (rs *recorders) one() *recorder {
	if rs.many == nil {
		return newRecorder(rs.turn, rs.live)
	}
	rs.next++
	r := &rs.many[rs.next%len(rs.many)]
	if *r == nil {
		*r = newRecorder(rs.turn, false)
		(*r).mu = new(sync.Mutex)
	}
	return *r
}

// record counts v. Owner only.
func (r *recorder) record(v int64) {
	if r.mu != nil {
		r.mu.Lock()
		r.cur.Record(v)
		r.mu.Unlock()
		return
	}
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

// finish adds all that is left. Collector only, after the owner has stopped and something has ordered that. Of a shared one the first
// call has it all.
func (r *recorder) finish(into *Histogram) {
	r.collect(into)
	if r.cur.Count() > 0 {
		into.Merge(r.cur)
		r.cur.Reset()
	}
}
