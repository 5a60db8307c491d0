// Package due keeps things in the order of the times at which they are due: one heap and one timer for many, instead of a
// timer or a goroutine for each.
//
// [Alarms] is for those who want to be called at a time. All alarms of an engine share one timer:
//
//	alarms := due.NewAlarms(&clock)
//	g.alarm.Init(alarms, func(now int64) { g.wake() })
//	g.alarm.SetEarlier(deadline) // one load if it is set to that time or an earlier one
//
// [Heap] is the data structure below it, for state machines that are told the time: it has no clock, and times are numbers.
//
//	h.Push(lane, now+delay)
//	...
//	for lane, ok := h.Pop(now); ok; lane, ok = h.Pop(now) {
//		lane.Wake()
//	}
//	if at, ok := h.Next(); ok {
//		alarm.Set(at)
//	}
//
// A key that is in the heap knows its place there, so that it can be moved or taken out without a search: the heap tells it
// by the function given to [New]. What has been taken out is gone: a timer that was set and stopped a million times leaves
// nothing behind.
package due
