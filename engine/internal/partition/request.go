package partition

import (
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// request is a publish that somebody waits for, or one that is too large for the ring and owns a copy of its record.
//
// # Roles
//
//   - publisher: the goroutine that made it and waits in await.
//   - holder: whoever holds the partition's role and finds the request in the ring.
//
// # Shared state
//
//	state  phase (waiting, taken, copied, done, left, abandoned) and the parked bit; CASed and swapped by both
//	batch  the caller's records: the publisher's until the phase is taken, then the holder's until it is copied or done
//	off, err  written by the holder before done, read by the publisher after it
//
// # Proof
//
// Who owns the bytes. The holder reads the caller's records only after its CAS from waiting to taken; the publisher returns
// (and with that the caller may change its buffers) only after it has seen done, or after its own CAS from waiting to
// left. Both CAS expect waiting, so exactly one succeeds: the bytes are read while the caller stands still, or never. In a
// partition with files it may also return after its CAS from copied to abandoned; the holder's CAS to copied comes after its last
// look at the bytes.
//
// A cancel is definite. A publisher that leaves has moved the phase to left, and the holder that then finds it skips the
// request. A publisher that comes too late to leave waits for done, which is near: the holder takes a request only when
// there is room for it, and between taken and done, or copied, it runs no user code and waits for nobody. From copied to done the
// holder waits for files; a publisher that leaves then is told that nobody knows, and the holder, which tells it all the same,
// drops the last reference.
//
// No lost wake-up. The publisher sets the parked bit by a CAS that expects a phase other than done, and then parks. The
// holder swaps in done and looks at what was there: with the parked bit set it leaves the token, of which there is
// therefore exactly one for each time the bit was set, and the publisher consumes it before it returns.
type request struct {
	// state is CASed by the publisher (parked bit, left, abandoned) and by the holder (taken, copied), and swapped by the holder
	// (done).
	// Done publishes off and err to the publisher.
	state  atomicx.Uint32
	parker atomicx.Parker

	one     [1]segment.Record // backs batch for a single record
	batch   []segment.Record
	size    int64 // what they take in the log, without index entries
	records int   // len(batch), for the holder before it has taken the batch
	barrier bool  // carries no record: done as soon as all before it is
	tight   bool  // memory was short before: have it for the whole batch, or do not begin
	handler bool  // a handler on a worker of the pool waits for it
	slow    bool  // the partition has files: it may be long from taken to done
	owned   bool  // nobody waits: batch is a copy of the request's own
	done    Done  // whom to tell about an owned one, or nil

	off int64 // of the first record
	err error
}

const (
	waiting   uint32 = iota // in the ring, or on its way
	taken                   // the holder copies its bytes
	done                    // off and err say how it ended
	left                    // the publisher has given up; the record will never appear
	copied                  // its bytes are copied, and the holder waits for the files
	abandoned               // the publisher has given up then; nobody knows yet whether the record will appear

	phaseMask uint32 = 7
	parkedBit uint32 = 8
)

// newRequest returns a request, a used one if there is any. They are kept by each partition for itself: a parker is a
// channel, and one that was made in a synctest bubble must not be seen outside of it.
func (p *Partition) newRequest() *request {
	if !atomicx.Exploring {
		if r, ok := p.requests.Get().(*request); ok {
			return r
		}
	}
	return &request{parker: atomicx.NewParker()}
}

// free gives r back. Nobody may hold it any more.
func (p *Partition) free(r *request) {
	r.state.Store(waiting)
	r.one[0] = segment.Record{}
	r.batch, r.size, r.records, r.done, r.off, r.err = nil, 0, 0, nil, 0, nil
	r.barrier, r.tight, r.handler, r.owned, r.slow = false, false, false, false, false
	p.requests.Put(r)
}

// set makes r the publish of a batch.
func (r *request) set(batch []segment.Record, size int64) {
	r.batch, r.size, r.records = batch, size, len(batch)
}

// setOne makes r the publish of one record, whose bytes stay the caller's.
func (r *request) setOne(rec segment.Record, size int64) {
	r.one[0] = rec
	r.set(r.one[:], size)
}

// take is the holder's: it reports whether the record is still wanted.
func (r *request) take() bool {
	for {
		s := r.state.Load()
		if s&phaseMask == left {
			return false
		}
		if r.state.CompareAndSwap(s, s&^phaseMask|taken) {
			return true
		}
	}
}

// copy is the holder's: it has the bytes of a request that it has taken, and what comes now may last.
func (r *request) copy() {
	for {
		s := r.state.Load()
		if s&phaseMask != taken || r.state.CompareAndSwap(s, s&^phaseMask|copied) {
			return
		}
	}
}

// wanted is the holder's look without taking.
func (r *request) wanted() bool { return r.state.Load()&phaseMask != left }

// finish is the holder's: it ends a request that it has taken.
func (r *request) finish(off int64, err error) {
	r.off, r.err = off, err
	if r.state.Swap(done)&parkedBit != 0 { // publishes off and err
		r.parker.Unpark()
	}
}

// leave is the publisher's: it reports whether it has given up in time, or when its bytes were copied.
func (r *request) leave() (inTime, late bool) {
	for {
		s := r.state.Load()
		switch s & phaseMask {
		case waiting:
			if r.state.CompareAndSwap(s, left) {
				return true, false
			}
		case copied:
			if r.state.CompareAndSwap(s, abandoned) {
				return false, true
			}
		default:
			return false, false
		}
	}
}

// await waits until r is done and returns true, or gives up when the channel is closed; late says that it did when the bytes had
// been copied. Before it parks it looks around as b says.
func (r *request) await(cancel <-chan struct{}, b atomicx.Backoff) (in, late bool) {
	for {
		if r.state.Load()&phaseMask == done {
			return true, false
		}
		if !b.Again() {
			break
		}
	}
	for {
		s := r.state.Load()
		if s&phaseMask == done {
			return true, false
		}
		if r.state.CompareAndSwap(s, s|parkedBit) {
			break
		}
	}
	if r.parker.Park(cancel) {
		return true, false
	}
	for turn := uint32(0); ; turn++ {
		inTime, late := r.leave()
		if inTime || late {
			return false, late
		}
		if !r.slow || r.state.Load()&phaseMask == done {
			break
		}
		atomicx.Relax(turn) // taken: its bytes are being copied, which is over soon
	}
	r.parker.Park(nil) // taken or done: the token is near, and must not be left behind
	return true, false
}
