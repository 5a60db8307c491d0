// Package explore runs small concurrent scenarios under every interleaving up to a bound: a loom for Go.
//
// A scenario is a few threads that use the real code of this module. In a build with the tag explore, every operation on a
// word, mutex or parker of internal/atomicx hands control to the scheduler here, which lets exactly one thread run between
// two such operations and decides who is next. It plays all decisions, one schedule after the other:
//
//	explore.Run(t, explore.Options{}, explore.Scenario{
//		Name: "publish against park",
//		Setup: func(s *explore.S) {
//			var ready atomicx.Bool
//			s.Go("waker", func() { ready.Store(true) })
//			s.Go("sleeper", func() { ... })
//			s.Finally(func() error { ... })
//		},
//	})
//
// The package is empty without the tag; an ordinary test runs the scenarios through a second go test.
//
// # What it finds
//
//   - A panic in a thread (Assert panics), or an error from Finally: an order of events that breaks what was claimed.
//   - A deadlock: threads are left, none can go on, and nothing is under way that could change that. A lost wake-up is one.
//   - A livelock: a schedule of more steps than Options.MaxSteps.
//   - A race: two accesses of the same plain memory (Cell, Reads, Writes), one of them a write, that nothing orders.
//   - A scenario that does not do the same when it is given the same schedule.
//
// The first failure ends the search and comes with the scenario, the bound, the list of choices and a trace of what each
// thread did where. Replay runs that list again.
//
// # The model
//
// Atomic operations happen in one total order, as Go's memory model says. A store or read-modify-write that is observed by
// a load orders what came before it before what comes after the load; so do mutexes, parkers, and channels closed with
// S.Close. Plain memory is checked against that order by vector clocks, for each address by itself.
//
// StoreRelease is the exception: the store waits in a buffer of its thread, first in, first out. The thread itself reads
// its own store; the others see it once the scheduler has flushed it, which is a step of its own and may come late. A store,
// a read-modify-write, or a mutex or parker operation of that thread flushes its buffer first; a load does not. That is the
// memory model of amd64, and admits more than arm64 does with STLR and LDAR.
//
// Relax and Yield mean "I have found nothing to do": the thread goes on once another has changed something that it has read
// since its last turn. So a loop that waits does not make schedules without end, and a loop that waits for ever is a
// deadlock. Before that is reported, all who wait in such a loop get a few more turns, for those that gave way out of
// politeness.
//
// # The search
//
// Schedules are ordered by how often they depart from the plain one, in which a thread runs until it must wait and then the
// next in the circle does. Choosing the k-th thread after the one whose turn it is costs k delays, flushing a store early
// costs one, and so does letting done win against a token that is there, too. The search takes all schedules that cost
// nothing, then all that cost at most 1, 2, ... up to Options.Bound. Most bugs need one or two delays. For scenarios too
// large for that there are random schedules with a seed (Options.Random).
//
// # What a scenario must not do
//
// Wait for anything but a mutex or parker of internal/atomicx: a channel operation that blocks stops the whole search, and a
// watchdog ends the process. Start goroutines: those are not explored. Leave a mutex locked in Setup. Use TryLock without
// saying so in the Options. Depend on anything but the schedule, such as the time, random numbers or the order of a map.
//
// # What is not modelled
//
// Memory orders weaker than that of amd64. Plain memory that no note tells of: the notes are claims about that memory, and
// the memory itself is read and written in the order of the schedule. Channels other than a parker's and those closed by
// S.Close; closing a channel otherwise is seen by those who wait for it, but is no step and orders everything. A loop of
// Relax that gives up by itself after some turns: that happens only when nothing else can go on, so code that has one makes
// it short under atomicx.Exploring. Timers. The garbage collector: cleanups run whenever they do.
package explore
