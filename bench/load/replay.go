package load

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/leatlog/leat/internal/atomicx"
)

// rerun is a reader that reads all that is kept, again and again. One goroutine runs it.
type rerun struct {
	lane   Lane // of all partitions: -1, or where the first fault was
	passes uint64
	last   []int64 // for each producer, the number of the last message in this pass, or -1
	err    error

	_ atomicx.Pad
	// read is how many messages it has read. Written by its goroutine with a release store, read by the collector, publishes
	// nothing else.
	read atomicx.Uint64
	_    atomicx.Pad
}

// ReplayResult is what readers did that read all that was kept again and again.
type ReplayResult struct {
	Readers int `json:"readers"`
	// Passes is how many times one of them has read a partition, and Messages how many messages that were, in the whole run.
	Passes   uint64 `json:"passes"`
	Messages uint64 `json:"messages"`
	// MsgsPerS is how many messages a second all of them together read, in the whole run.
	MsgsPerS float64 `json:"msgs_per_s"`
}

// launchStorm starts them.
func (r *run) launchStorm() {
	if r.s.Replays == 0 {
		return
	}
	in := r.inst.(Replayer) // see open
	for i := range r.s.Replays {
		x := &rerun{lane: Lane{Consumer: fmt.Sprintf("replay %d", i), Partition: -1}, last: make([]int64, r.s.Producers)}
		r.storm = append(r.storm, x)
		r.storms.Go(func() {
			for p := i; !r.halt.Load() && x.err == nil; p++ {
				x.pass(r, in, p%r.s.Partitions)
			}
		})
	}
}

// pass reads a partition once.
func (x *rerun) pass(r *run, in Replayer, partition int) {
	for i := range x.last {
		x.last[i] = -1
	}
	before := x.lane.Received
	x.err = in.Replay(partition, func(p []byte) { x.deliver(r, partition, p) })
	x.passes++
	if x.lane.Received == before {
		time.Sleep(time.Millisecond) // there is nothing yet
	}
}

// replayTurn is after how many messages a reader that never waits lets others run: where there are fewer processors than such readers
// nobody else would for 10 ms at a time.
const replayTurn = 256

// deliver checks one message: within a pass, numbers go up by one, but the first may be any.
func (x *rerun) deliver(r *run, partition int, p []byte) {
	x.lane.Received++
	atomicx.StoreRelease(&x.read, x.lane.Received)
	if x.lane.Received%replayTurn == 0 {
		runtime.Gosched()
	}
	_, producer, seq, ok := parse(p, r.s.Sizes.Least(), r.s.Sizes.Most(), partition)
	if !ok || producer >= len(x.last) {
		x.lane.Corrupt++
		x.fault(partition, "delivery %d (of %d bytes) is damaged or was not sent here", x.lane.Received, len(p))
		return
	}
	last := x.last[producer]
	switch n := int64(seq); {
	case last < 0 || n == last+1:
	case n > last:
		x.lane.Gap++
		x.lane.Lost += uint64(n - last - 1)
		x.fault(partition, "producer %d: %d came where %d was due", producer, n, last+1)
	case n == last:
		x.lane.Duplicated++
		x.fault(partition, "producer %d: %d came again", producer, n)
		return
	default:
		x.lane.Reordered++
		x.fault(partition, "producer %d: %d came after %d", producer, n, last)
		return
	}
	x.last[producer] = int64(seq)
}

// fault keeps the first fault's story, and where it was.
func (x *rerun) fault(partition int, format string, args ...any) {
	if x.lane.FirstFault == "" {
		x.lane.Partition = partition
		x.lane.FirstFault = fmt.Sprintf(format, args...)
	}
}

// endStorm ends them, after the producers.
func (r *run) endStorm(ctx context.Context) error {
	if r.storm == nil {
		return nil
	}
	r.halt.Store(true)
	if !r.waitFor(ctx, func() { r.storms.Wait() }) {
		return fmt.Errorf("%w: a Replay does not return", ErrStuck)
	}
	for _, x := range r.storm {
		if x.err != nil {
			select {
			case r.failed <- fmt.Errorf("%w: %s: %w", ErrTarget, x.lane.Consumer, x.err):
			default:
			}
		}
	}
	return nil
}

// replayResult adds what came of it.
func (r *run) replayResult(res *Result, took int64) {
	if r.storm == nil {
		return
	}
	res.Replay = &ReplayResult{Readers: r.s.Replays}
	for _, x := range r.storm {
		res.Replay.Passes += x.passes
		res.Replay.Messages += x.lane.Received
		res.Faults.add(x.lane.Faults)
		res.Lanes = append(res.Lanes, x.lane)
	}
	if took > 0 {
		res.Replay.MsgsPerS = float64(res.Replay.Messages) / (float64(took) / 1e9)
	}
}
