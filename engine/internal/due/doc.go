// Package due keeps things in the order of the times at which they are due: one [Heap] for many, instead of a timer or a
// goroutine for each.
//
// It is a data structure without a clock: times are numbers, and the caller says what time it is. The caller also owns the
// one timer that is set to [Heap.Next]:
//
//	h.Push(lane, now+delay)
//	...
//	for lane, ok := h.Pop(now); ok; lane, ok = h.Pop(now) {
//		lane.Wake()
//	}
//	if at, ok := h.Next(); ok {
//		timer.Reset(at - now)
//	}
//
// A key that is in the heap knows its place there, so that it can be moved or taken out without a search: the heap tells it
// by the function given to [New]. What has been taken out is gone: a timer that was set and stopped a million times leaves
// nothing behind.
package due
