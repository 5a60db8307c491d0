//go:build explore

package explore

import (
	"sync/atomic"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
)

// pending is what a thread that waits for its turn is about to touch.
type pending struct {
	p     unsafe.Pointer
	token chan struct{}   // of a Park
	done  <-chan struct{} // of a Park
}

// buffered is a store in a thread's store buffer.
type buffered struct {
	p     unsafe.Pointer
	value uint64
	clock vector // the thread's when it stored
}

// readMark says which version of a place a thread has read.
type readMark struct {
	at      *place
	version uint32
}

// maxReadMarks is how many places a thread may read between two turns of Relax before it is woken by any change.
const maxReadMarks = 24

// Step implements atomicx.Scheduler.
func (r *runner) Step(op atomicx.Op, p unsafe.Pointer) {
	t := r.running
	t.op, t.at.p = op, p
	if op == atomicx.OpUnlock && len(t.buffer) == 0 && !r.o.TryLock && !r.unwind {
		if r.trace != nil {
			r.trace.pending(t)
		}
		return // what came before it and the unlock can be one step: nobody can tell without TryLock
	}
	if op == atomicx.OpTryLock && !r.o.TryLock {
		panic("explore: a scenario that uses TryLock must say so in its Options")
	}
	r.step(t)
	if op != atomicx.OpLoad && op != atomicx.OpRelax {
		for len(t.buffer) > 0 {
			r.flush(t)
		}
	}
}

// step lets the scheduler choose who does its pending operation next, and returns when that is t.
func (r *runner) step(t *thread) {
	r.checkUnwind(t)
	if r.trace != nil {
		r.trace.pending(t)
	}
	if r.stalls == 0 || r.stalled != r.changes { // turns that are only given away do not count
		r.steps++
	}
	if r.steps > r.o.MaxSteps {
		r.abort(Livelock, "more than %d steps", r.o.MaxSteps)
	}
	if r.prologue {
		r.leave(t)
		return
	}
	next := r.pick(t)
	if r.unwind {
		panic(unwinding{})
	}
	if next != t {
		r.next = next
		r.leave(t)
	}
}

// Done implements atomicx.Scheduler.
func (r *runner) Done(op atomicx.Op, p unsafe.Pointer, a, b uint64, wrote bool) {
	t := r.running
	at := r.places.at(p)
	if r.trace != nil {
		r.trace.did(t, op, p, a, b, wrote)
	}
	if op == atomicx.OpLock || op == atomicx.OpTryLock && wrote {
		at.locked = true
	} else if op == atomicx.OpUnlock {
		at.locked = false
	}
	// An Unpark that finds a token there is no send on the channel, and orders nothing.
	if op != atomicx.OpStore && op != atomicx.OpUnlock && (op != atomicx.OpUnpark || wrote) {
		t.clock.join(&at.released)
		t.mark(at)
	}
	if wrote {
		r.wrote(t, at, &t.clock)
		t.clock[t.id]++
	}
}

// wrote notes that t has changed a place, with the clock that it had then.
func (r *runner) wrote(t *thread, at *place, clock *vector) {
	at.released = *clock
	at.version++
	r.changes++
	for i := range t.reads {
		if m := &t.reads[i]; m.at == at && m.version+1 == at.version {
			m.version++ // its own change is no news to it
		}
	}
}

// mark notes that t has seen the present version of a place.
func (t *thread) mark(at *place) {
	for i := range t.reads {
		if t.reads[i].at == at {
			t.reads[i].version = at.version
			return
		}
	}
	if len(t.reads) == maxReadMarks {
		t.lost = true
		return
	}
	t.reads = append(t.reads, readMark{at, at.version})
}

// news reports whether something that t has read since its last Relax was changed by another since then.
func (r *runner) news(t *thread) bool {
	if t.polite || len(t.reads) == 0 {
		return true
	}
	if t.lost && t.since != r.changes {
		return true
	}
	for i := range t.reads {
		if m := &t.reads[i]; m.version != m.at.version {
			return true
		}
	}
	return false
}

// Relax implements atomicx.Scheduler.
func (r *runner) Relax() {
	t := r.running
	t.op, t.at.p = atomicx.OpRelax, nil
	r.step(t)
	t.reads, t.lost, t.polite = t.reads[:0], false, false
	t.since = r.changes
	if r.trace != nil {
		r.trace.did(t, atomicx.OpRelax, nil, 0, 0, false)
	}
}

// enabled reports whether t can do its pending operation.
func (r *runner) enabled(t *thread) bool {
	if t.ended {
		return false
	}
	switch t.op {
	case atomicx.OpLock:
		return !r.places.at(t.at.p).locked // if a goroutine outside holds it, the real Lock waits for that one
	case atomicx.OpPark:
		return len(t.at.token) > 0 || closed(t.at.done)
	case atomicx.OpRelax:
		return r.news(t)
	}
	return true
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false // also when done is nil
	}
}

// Forward implements atomicx.Scheduler.
func (r *runner) Forward(p unsafe.Pointer) (uint64, bool) {
	t := r.running
	for i := len(t.buffer) - 1; i >= 0; i-- {
		if b := &t.buffer[i]; b.p == p {
			t.mark(r.places.at(p))
			if r.trace != nil {
				r.trace.forwarded(t, p, b.value)
			}
			return b.value, true
		}
	}
	return 0, false
}

// StoreRelease implements atomicx.Scheduler. It is no step: nobody else sees it before it is flushed.
func (r *runner) StoreRelease(p unsafe.Pointer, v uint64) {
	t := r.running
	r.checkUnwind(t)
	if r.trace != nil {
		t.op, t.at.p = atomicx.OpStoreRelease, p
		r.trace.pending(t)
		r.trace.did(t, atomicx.OpStoreRelease, p, v, 0, true)
	}
	r.places.at(p) // keeps it
	t.buffer = append(t.buffer, buffered{p, v, t.clock})
	t.clock[t.id]++
}

// flush makes the oldest store in t's buffer visible.
func (r *runner) flush(t *thread) {
	b := &t.buffer[0]
	(*atomic.Uint64)(b.p).Store(b.value) // a shim has the layout of what it stands for
	if r.trace != nil {
		r.trace.flushed(t, b.p, b.value)
	}
	r.wrote(t, r.places.at(b.p), &b.clock)
	t.buffer = t.buffer[:copy(t.buffer, t.buffer[1:])]
}

// Park implements atomicx.Scheduler.
func (r *runner) Park(token chan struct{}, done <-chan struct{}) bool {
	t := r.running
	p := chanPointer(token)
	t.at.token, t.at.done = token, done
	r.Step(atomicx.OpPark, p)
	t.at.token, t.at.done = nil, nil
	t.reads, t.lost = t.reads[:0], false
	woken := len(token) > 0
	if woken && closed(done) {
		woken = r.choose(2, 1) == 0
	}
	if woken {
		<-token
		r.Done(atomicx.OpPark, p, 1, 0, true)
		return true
	}
	if at := r.places.at(chanPointer(done)); at.closed {
		t.clock.join(&at.released)
	} else { // closed by no step, so nobody knows by whom
		for _, u := range r.threads {
			t.clock.join(&u.clock)
		}
	}
	if r.trace != nil {
		r.trace.did(t, atomicx.OpPark, p, 0, 0, false)
	}
	return false
}

// Unpark implements atomicx.Scheduler.
func (r *runner) Unpark(token chan struct{}) {
	p := chanPointer(token)
	r.Step(atomicx.OpUnpark, p)
	select {
	case token <- struct{}{}:
		r.Done(atomicx.OpUnpark, p, 0, 0, true)
	default:
		r.Done(atomicx.OpUnpark, p, 0, 0, false)
	}
}

func (r *runner) closeChannel(ch chan struct{}) {
	p := chanPointer(ch)
	r.Step(atomicx.OpClose, p)
	r.places.at(p).closed = true
	for _, t := range r.threads {
		t.polite = true // it may be one who looks at ch in a loop
	}
	r.Done(atomicx.OpClose, p, 0, 0, true)
	close(ch)
}

// Plain implements atomicx.Scheduler: it finds races, as FastTrack does, but with the reads as a whole vector.
func (r *runner) Plain(p unsafe.Pointer, write bool) {
	if r.unwind {
		return
	}
	t := r.running
	at := r.places.at(p)
	if r.trace != nil {
		r.trace.plain(t, p, write)
	}
	if w := at.writer; w != nil && w != t && at.writeTime > t.clock[w.id] {
		r.race(t, w, p, write, true)
	}
	if !write {
		at.reads[t.id] = t.clock[t.id]
		if r.trace != nil {
			r.trace.ran(t, p, write)
		}
		return
	}
	for _, u := range r.threads {
		if u != t && at.reads[u.id] > t.clock[u.id] {
			r.race(t, u, p, write, false)
		}
	}
	at.writer, at.writeTime = t, t.clock[t.id]
	at.reads = vector{}
	if r.trace != nil {
		r.trace.ran(t, p, write)
	}
}

func (r *runner) race(t, u *thread, p unsafe.Pointer, write, wrote bool) {
	verb := map[bool]string{false: "reads", true: "writes"}
	where := ""
	if r.trace != nil {
		where = r.trace.race(t, u, p, wrote)
	}
	r.abort(Race, "%s %s plain memory that %s %s, and nothing orders the two%s", t.name, verb[write], u.name, verb[wrote], where)
}

// Now implements atomicx.Scheduler.
func (r *runner) Now() int64 {
	if t := r.running; t != nil {
		t.mark(r.places.at(unsafe.Pointer(&r.now)))
	}
	return r.now
}

func (r *runner) advance(ns int64) {
	if r.running == nil {
		r.now += ns
		return
	}
	p := unsafe.Pointer(&r.now)
	r.Step(atomicx.OpAdd, p)
	r.now += ns
	r.Done(atomicx.OpAdd, p, uint64(ns), uint64(r.now), true)
}
