// Package atomicx is the ground that every lock-free part of Leat stands on: the only home of padding, assembly, spinning
// and parking.
//
// The main things here:
//
//   - atomic words ([Uint64], [Uint32], [Pointer]) and their padded forms ([PaddedUint64]);
//   - [StoreRelease], a store that publishes without the full barrier of an atomic store;
//   - [Cell] and the notes [Reads] and [Writes], for plain memory that several goroutines touch at different times;
//   - [Parker] and [Event], which put a goroutine to sleep without losing the wake-up and without polling;
//   - [Backoff] and [Relax], which say how to wait before that; [Clock] and [Watch]; [Prefetch] and [PrefetchWrite].
//
// # One memory order, and one exception
//
// Go's sync/atomic operations behave as if they happened in one total order (the Go memory model, "Synchronization via
// atomics"). So a comment on an atomic says who writes it, who reads it and what a store publishes; it never has to
// choose between acquire, release and the rest. StoreRelease is the one exception: a load that follows it in the same
// goroutine may be served before other goroutines see the store. Whoever stores with it and then asks "is anybody asleep?"
// needs a full barrier in between, a read-modify-write of any word; every such place says which operation is that barrier.
//
// # The explore build
//
// With the build tag explore every word, cell, parker, mutex and the clock of this package becomes a thin shim that hands
// control to a scheduler (package internal/explore), which runs a small scenario under every interleaving up to a bound,
// checks plain memory for races, and holds release stores back in a store buffer. In a normal build the same names are
// aliases of sync/atomic types and empty inlined functions: the shim costs nothing. Code that is to be explored therefore
// takes its atomics, mutexes, parking, yielding and time from here, and from nowhere else.
package atomicx
