package cursor_test

import (
	"fmt"

	"github.com/leatlog/leat/cursor"
)

// Two readers of a log, one of them slower; what is below both may go.
func ExampleSet() {
	var readers cursor.Set
	var fast, slow cursor.Cursor
	readers.Add(&fast)
	readers.Add(&slow)

	fast.Raise(10)
	slow.Raise(4)
	low, holder, ok := readers.Min()
	fmt.Println(low, holder == &slow, ok)

	readers.Remove(&slow)
	low, _, _ = readers.Min()
	fmt.Println(low)
	// Output:
	// 4 true true
	// 10
}

// A log that was cut raises the cursors below the cut, and leaves the others where they are.
func ExampleCursor_Raise() {
	var c cursor.Cursor
	c.Store(80)
	fmt.Println(c.Raise(50), c.Load())
	fmt.Println(c.Raise(90), c.Load())
	// Output:
	// false 80
	// true 90
}

// A wait loop looks, and takes a turn of the backoff between two looks. Only WaitPark ever comes to the point where it parks.
func ExampleWait_Backoff() {
	looks := 0
	arrived := func() bool { looks++; return looks == 1000 }
	for b := cursor.WaitYield.Backoff(); !arrived(); {
		if !b.Again() {
			fmt.Println("now park")
			b.Reset()
		}
	}
	fmt.Println(looks)
	// Output: 1000
}
