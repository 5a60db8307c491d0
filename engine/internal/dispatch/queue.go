package dispatch

import "github.com/leatlog/leat/internal/atomicx"

// list is a first-in first-out list of tasks, linked through the tasks themselves: it allocates nothing, never grows, and
// takes out any task in constant time. A task is on at most one list. Everything is under pool.mu.
type list struct {
	first, last *Task
	n           int
}

func (l *list) push(t *Task) {
	t.on, t.prev, t.next = l, l.last, nil
	if l.last != nil {
		l.last.next = t
	} else {
		l.first = t
	}
	l.last = t
	l.n++
}

func (l *list) pop() *Task {
	t := l.first
	if t != nil {
		l.remove(t)
	}
	return t
}

func (l *list) remove(t *Task) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		l.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		l.last = t.prev
	}
	t.on, t.prev, t.next = nil, nil, nil
	l.n--
}

// queue is a run queue and the workers that serve it. The pool has one that its workers share; each dedicated task has one
// of its own with a single worker. Except for length everything is under pool.mu.
//
// # Proof
//
// The invariant, true whenever pool.mu is free:
//
//	tasks.n <= searching, or no worker is parked
//
// A worker is searching from when it finds the queue empty, or is called back from the parked ones, until it next looks at
// the queue under mu. It parks only at such a look that finds nothing, under the same hold of mu. So no task on the queue is
// forgotten: either a searching worker is on its way for it, or no worker is parked, and then those that are inside a run
// (or have not started yet) look here as soon as they are through.
//
// Every step keeps it. push adds one task, and if that makes one too many it calls one parked worker back, which is then
// searching: so one Wake unparks at most one worker, and none if one is on its way with nothing to do. A worker that ends
// its search takes a task or finds tasks.n == 0. A worker that ends a run may push, is not counted as searching, but looks
// before it lets go of mu (that is what spare says); it takes a task, or finds tasks.n == 0. Stop only takes tasks away.
//
// One token each. A worker parks once for each time that it is put on the parked stack, and whoever takes it off unparks it
// once. So no token is left behind, and none is missing.
//
// Progress. A search ends after a fixed number of turns. An idle queue has all its workers parked, and nothing runs.
type queue struct {
	tasks     list
	parked    *worker // stack, linked through worker.below: the last to park is the warmest and is called first
	searching int     // workers that are awake and will look at tasks
	running   int     // workers that are inside a run
	closed    bool    // no further run starts; the workers end

	_ atomicx.Pad
	// length is a copy of tasks.n, stored under pool.mu and loaded without it by searching workers, who want to know when
	// a look is worth the lock, and by Queued. It publishes no memory, and no proof leans on it.
	length atomicx.Uint64
	_      atomicx.Pad
}

// push puts t at the end and returns a worker to unpark once pool.mu is released, or nil. spare is how many workers that
// are not searching will look at the queue under this same hold of mu.
func (q *queue) push(t *Task, spare int) (wake *worker) {
	q.tasks.push(t)
	q.note()
	if q.tasks.n <= q.searching+spare {
		return nil
	}
	return q.call()
}

// pop takes the first task off, or returns nil.
func (q *queue) pop() *Task {
	t := q.tasks.pop()
	if t != nil {
		q.note()
	}
	return t
}

// remove takes t off, wherever it is.
func (q *queue) remove(t *Task) {
	q.tasks.remove(t)
	q.note()
}

// note copies tasks.n to length. The release of mu, which follows, is a full barrier.
func (q *queue) note() { atomicx.StoreRelease(&q.length, uint64(q.tasks.n)) }

// call calls one worker back from the parked ones: it is now searching, and the caller unparks it once it has released
// pool.mu. It returns nil if none is parked.
func (q *queue) call() *worker {
	w := q.parked
	if w != nil {
		q.parked, w.below = w.below, nil
		q.searching++
	}
	return w
}
