// Package dispatch runs very many small state machines on few goroutines. It knows nothing of topics or records: a lane of
// a subscription is a [Task] to it, a function that is to be called whenever somebody says that there may be work.
//
// There are three types here: a [Pool] of workers, the [Task] that they run, and the [Limiter] that tasks can share.
//
//	              Wake                     full
//	  +--------+ ------> (permit free?) ---------> [ limiter: t7 t9 ]  oldest first
//	  | resting|               | yes                     |
//	  +--------+               v                         | a permit comes free
//	      ^             [ run queue: t4 t1 t6 ] <--------+
//	      |                    |         ^
//	      | false              v         | true, or woken during the run
//	      |               +---------+    |
//	      +-------------- | running | ---+        worker 1, worker 2, ... worker n
//	                      +---------+
//
//	p := dispatch.NewPool(4, nil)
//	lane := p.NewTask(func() dispatch.Again {
//		n := deliver(quantum) // at most so many records
//		return n == quantum   // true: maybe there is more; go behind the others that wait for a worker
//	}, dispatch.Options{})
//	...
//	publish()   // first make it true that there is work,
//	lane.Wake() // then say so
//
// # What is promised
//
// At most one goroutine runs a task at any instant, and each run sees the memory of the runs before, so a task's function
// keeps its state in plain fields. A Wake is never lost: a run starts after it, unless the task is stopped. After Stop has
// returned no run starts. The run queue is first in first out, and a task that always wants more takes one turn in each
// round, so it cannot starve the rest. The comments on [Task] and on queue carry the proofs.
//
// A pool has exactly its workers, plus one goroutine for each dedicated task, whatever the number of tasks; idle ones are
// parked and nobody polls. Starting and ending a run costs one lock, so it is paid for each quantum and not for each record;
// nothing is allocated. A function that panics or ends its goroutine costs the pool neither a worker nor the task.
//
// # What is not
//
// A worker is held for as long as a function runs: n functions that never return stop a pool of n. What helps is a [Limiter]
// below the pool's size for each group of tasks that may be slow, or a dedicated task; see also [Task.State]. There are no
// priorities.
package dispatch
