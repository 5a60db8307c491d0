package delivery

import "time"

// Runner pushes the records of one partition to one owner: a broadcast subscription, or the member of a group that has the
// partition. All its methods may be called from any goroutine, its handlers included, and none of them waits for a handler.
type Runner interface {
	// Start lets it deliver. Nothing at all happens before, not even its end.
	Start()

	// Pause stops deliveries: none begins after it returned. One that is going on may still end. Resume lets them go on.
	Pause()
	Resume()
	Paused() bool

	// Stop ends it for a reason, of which the first counts: no delivery begins after it returned. One that is going on may
	// still end, and commits. Config.OnEnd is called once, after the last of them.
	Stop(cause error)

	// Fence is Stop that makes the position final: what is still going on commits no more.
	Fence(cause error)

	// Seek makes the record at the offset that start chooses the next one to process. What is going on commits no more.
	Seek(start Start) error

	// Partition is the partition's number.
	Partition() int

	// Position is the offset of the next record to process: everything below it is settled.
	Position() int64

	// Lag is how many retained records there are from the position on.
	Lag() int64

	// Drained reports whether there is nothing left to do: all is settled, or nothing is to be delivered because it is paused
	// or stopped, and no user code is being called.
	Drained() bool

	// Inside reports whether user code is being called, and for how long that has been going on, at most.
	Inside() (since time.Duration, yes bool)

	// Stats returns a snapshot; now is the engine's clock.
	Stats(now int64) Stats
}

var (
	_ Runner = (*Lane)(nil)
	_ Runner = (*Keyed)(nil)
	_ Runner = (*Seat)(nil)
)
