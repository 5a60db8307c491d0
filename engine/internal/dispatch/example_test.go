package dispatch_test

import (
	"fmt"
	"sync/atomic"

	"github.com/leatlog/leat/engine/internal/dispatch"
)

// A lane delivers a few records at a time and gives the worker back in between.
func Example() {
	pool := dispatch.NewPool(2, func(v any, stack []byte) { fmt.Println("a task panicked:", v) })
	const quantum = 2
	var records atomic.Int64 // what there is to do, in an atomic word
	delivered := make(chan struct{})

	lane := pool.NewTask(func() dispatch.Again {
		n := min(records.Load(), quantum)
		fmt.Println("deliver", n)
		if records.Add(-n) == 0 {
			close(delivered)
			return false
		}
		return true // go behind the others that wait for a worker
	}, dispatch.Options{})

	records.Store(5) // first make it true that there is something to do,
	lane.Wake()      // then say so
	<-delivered

	pool.Close()
	pool.Wait(nil)
	// Output:
	// deliver 2
	// deliver 2
	// deliver 1
}
