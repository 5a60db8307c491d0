//go:build explore

package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"unsafe"

	"github.com/leatlog/leat/cursor"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
	"github.com/leatlog/leat/segment"
)

var errOver = errors.New("over")

// explored is a partition in a scenario: its goroutine is a thread, and so are the publishers.
type explored struct {
	*Partition
	s     *explore.S
	clock atomicx.Clock
	left  atomicx.Int64 // threads before the partition is finished
	in    [8]int64      // by thread: the offset that its record got, or -1
	took  [8]bool       // by thread: PublishAsync has accepted its record
	keep  int64         // of newExplored
}

// newExplored returns a partition that keeps at most so many records (0: all), one in each segment, and is finished by the
// last of so many threads to call leave.
func newExplored(s *explore.S, pool *dispatch.Pool, threads int, keep int64) *explored {
	x := &explored{s: s, clock: atomicx.NewClock(), keep: keep}
	for i := range x.in {
		x.in[i] = -1
	}
	x.left.Store(int64(threads))
	x.Partition = New(Config{
		Limits:         retention.Limits{MaxRecords: keep},
		MaxRecordBytes: 1 << 10,
		HandoverSlots:  2,
		Log:            segment.Config{SegmentBytes: 4 << 10, SegmentRecords: 1, Pool: segment.NewPool(0, 1<<20)},
		Clock:          &x.clock,
		Workers:        pool,
	})
	s.Go("goroutine", x.Run)
	s.Finally(x.check)
	return x
}

// handedOver has a publisher that comes again and again hand the role over.
func (x *explored) handedOver() *explored {
	x.hotStreak = 0
	x.alone.Store(1)
	return x
}

// awake has the goroutine awake, which lends the role at every look.
func (x *explored) awake() *explored {
	x.streamAfter = -1
	x.ring.TakeIdle()
	x.wake.Unpark()
	return x
}

// gate adds a gate at the first record.
func (x *explored) gate() *Gate {
	g := &Gate{Gating: true}
	_, err := x.AddGate(g, func(first, _ uint64) (uint64, error) { return first, nil })
	explore.Assert(err == nil, "gate: %v", err)
	return g
}

// leave finishes the partition when the last thread has called it.
func (x *explored) leave() {
	if x.left.Add(-1) == 0 {
		x.Finish(errOver)
	}
}

// record returns the record of a thread.
func record(id int) *segment.Record { return &segment.Record{Value: []byte{byte(id)}} }

// publish publishes the record of a thread, and then changes its bytes, as the caller may.
func (x *explored) publish(ctx context.Context, id int) error {
	r := record(id)
	off, err := x.Publish(ctx, r)
	return x.published(id, r, off, err)
}

// batch is publish by PublishBatch.
func (x *explored) batch(ctx context.Context, id int) error {
	batch := []segment.Record{*record(id)}
	off, err := x.PublishBatch(ctx, batch)
	return x.published(id, &batch[0], off, err)
}

// async is publish by PublishAsync, which nobody is told of.
func (x *explored) async(ctx context.Context, id int) {
	x.in[id] = unknown
	err := x.PublishAsync(ctx, record(id), nil)
	x.took[id] = err == nil
	definite(err)
}

func (x *explored) published(id int, r *segment.Record, off int64, err error) error {
	atomicx.Writes(unsafe.Pointer(&r.Value[0]))
	r.Value[0] = 0xFF
	if err == nil {
		explore.Assert(x.log.Committed() > uint64(off), "published at %d, not visible", off)
		x.in[id] = off
	}
	return err
}

// try is publish by TryPublish, which copies.
func (x *explored) try(id int) error {
	r := record(id)
	err := x.TryPublish(r)
	r.Value[0] = 0xFF
	return err
}

// check compares the log with what the threads were told. A record that no thread has an offset for may be there only if
// that thread was not told either way (try). What PublishAsync has accepted is there if nothing is dropped and the partition was
// finished.
func (x *explored) check() error {
	x.End()
	var recs [8]segment.Record
	first, next := x.Snapshot()
	n, err := x.log.ReadAt(uint64(first), recs[:])
	if err != nil || int64(n) != next-first || !x.log.Sealed() {
		return fmt.Errorf("read %d of [%d, %d): %v", n, first, next, err)
	}
	seen := map[int]int64{}
	for i := range n {
		id := int(recs[i].Value[0])
		if _, twice := seen[id]; twice || id >= len(x.in) {
			return fmt.Errorf("record of thread %d at %d", id, recs[i].Offset)
		}
		seen[id] = recs[i].Offset
	}
	for id, off := range x.in {
		at, found := seen[id]
		if off >= first && (!found || at != off) {
			return fmt.Errorf("thread %d was told %d, its record is at %d (found %v)", id, off, at, found)
		}
		if found && off == -1 {
			return fmt.Errorf("thread %d was told that its record would never appear, and it is at %d", id, at)
		}
		if !found && x.took[id] && x.keep == 0 && x.state.Load()&stateClosing == 0 {
			return fmt.Errorf("the record of thread %d was accepted, and is not there", id)
		}
	}
	return nil
}

// cancelled is a context that a thread ends by a step.
type cancelled struct {
	context.Context
	done chan struct{}
}

func newCancelled() *cancelled {
	return &cancelled{Context: context.Background(), done: make(chan struct{})}
}

func (c *cancelled) Done() <-chan struct{} { return c.done }

func (c *cancelled) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
	}
}

// definite makes sure that an error is one that a publish may have here.
func definite(err error) {
	explore.Assert(err == nil || errors.Is(err, errOver) || errors.Is(err, ErrFull) || errors.Is(err, ErrExclusive) ||
		errors.Is(err, context.Canceled), "error %v", err)
}

// runs posts a control and waits until it has run: nothing else will happen that has it run.
func runs(x *explored, ran *atomicx.Bool) {
	err := x.post(&control{run: func() { ran.Store(true) }})
	explore.Assert(err == nil, "post: %v", err)
	for !ran.Load() {
		atomicx.Relax(0)
	}
}

// inOrder returns a look at the log in the end: there are the records of n threads, and those of some in this order.
func inOrder(x *explored, n int, ids ...byte) func() error {
	return func() error {
		recs := make([]segment.Record, n+1)
		got, err := x.log.ReadAt(0, recs)
		if err != nil || got != n {
			return fmt.Errorf("%d records: %v", got, err)
		}
		at := map[byte]int64{}
		for i := range recs[:n] {
			at[recs[i].Value[0]] = recs[i].Offset
		}
		if len(at) != n || !slices.IsSortedFunc(ids, func(a, b byte) int { return cmp.Compare(at[a], at[b]) }) {
			return fmt.Errorf("offsets %v", at)
		}
		return nil
	}
}

// roleScenario is a scenario and how many preemptions it is explored with.
type roleScenario struct {
	name  string
	bound int
	setup func(s *explore.S)
}

// exploreAll explores scenarios.
func exploreAll(t *testing.T, list []roleScenario) {
	for _, sc := range list {
		t.Run(sc.name, func(t *testing.T) {
			o := explore.Options{Bound: sc.bound, MaxSchedules: 100_000_000}
			if testing.Short() {
				o.Bound--
			}
			if more, err := strconv.Atoi(os.Getenv("LEAT_EXPLORE_BOUND")); err == nil {
				o.Bound = more
			}
			explore.Run(t, o, explore.Scenario{Name: sc.name, Setup: sc.setup})
		})
	}
}

// noWorkers returns a pool without workers: they would be goroutines outside of the scenarios. So there are no callbacks.
func noWorkers() *dispatch.Pool {
	pool := dispatch.NewPool(1, nil)
	pool.Close()
	return pool
}

func TestExplore_Role(t *testing.T) {
	pool, ctx := noWorkers(), context.Background()
	exploreAll(t, []roleScenario{
		{"two publish", 3, func(s *explore.S) {
			// Whoever finds the partition idle has the role; the other's record is served by it, or by the goroutine.
			x := newExplored(s, pool, 2, 0)
			for id := range 2 {
				s.Go(fmt.Sprint("publisher", id), func() {
					definite(x.publish(ctx, id))
					explore.Assert(x.in[id] >= 0, "refused")
					x.leave()
				})
			}
		}},
		{"batch against batch", 3, func(s *explore.S) {
			// Each appends by itself if the role is free, or becomes so soon.
			x := newExplored(s, pool, 2, 0)
			for id := range 2 {
				s.Go(fmt.Sprint("publisher", id), func() {
					definite(x.batch(ctx, id))
					explore.Assert(x.in[id] >= 0, "refused")
					x.leave()
				})
			}
		}},
		{"batch against publish and close", 3, func(s *explore.S) {
			x := newExplored(s, pool, 1, 0)
			s.Go("batch", func() { definite(x.batch(ctx, 0)) })
			s.Go("publisher", func() { definite(x.publish(ctx, 1)) })
			s.Go("closer", x.leave)
		}},
		{"publish against try", 3, func(s *explore.S) {
			x := newExplored(s, pool, 2, 0)
			s.Go("publisher", func() { definite(x.publish(ctx, 0)); x.leave() })
			s.Go("trier", func() {
				if x.try(1) == nil {
					x.in[1] = unknown
				}
				x.leave()
			})
		}},
		{"publish against park", 3, func(s *explore.S) {
			// A reader waits for the record.
			x := newExplored(s, pool, 2, 0)
			s.Go("publisher", func() { definite(x.publish(ctx, 0)); x.leave() })
			s.Go("reader", func() {
				r, err := x.NewReader(nil, cursor.WaitPark, func(first, _ uint64) (uint64, error) { return first, nil })
				explore.Assert(err == nil, "reader: %v", err)
				var rec segment.Record
				explore.Assert(r.Next(ctx, &rec) == nil && rec.Value[0] == 0, "read %v", rec)
				r.Close()
				x.leave()
			})
		}},
		{"end against park", 3, func(s *explore.S) {
			// A reader waits at the end of the log, and finds that nothing will come.
			x := newExplored(s, pool, 1, 0)
			s.Go("reader", func() {
				r, err := x.NewReader(nil, cursor.WaitPark, func(first, _ uint64) (uint64, error) { return first, nil })
				if err == nil {
					err = r.Next(ctx, new(segment.Record))
					r.Close()
				}
				explore.Assert(errors.Is(err, errOver), "error %v", err)
			})
			s.Go("closer", x.leave)
		}},
		{"cancel against wake", 3, func(s *explore.S) {
			// The publisher returns either with an offset, and the record is there, or with an error, and it never will be.
			x := newExplored(s, pool, 2, 0)
			c := newCancelled()
			s.Go("patient", func() { definite(x.publish(ctx, 1)); x.leave() })
			s.Go("impatient", func() { definite(x.publish(c, 0)); x.leave() })
			s.Go("canceller", func() { s.Close(c.done) })
		}},
		{"close against publish", 3, func(s *explore.S) {
			x := newExplored(s, pool, 1, 0)
			for id := range 2 {
				s.Go(fmt.Sprint("publisher", id), func() { definite(x.publish(ctx, id)) })
			}
			s.Go("closer", func() { x.Close(errOver) })
		}},
		{"finish against publish", 3, func(s *explore.S) {
			x := newExplored(s, pool, 1, 0)
			for id := range 2 {
				s.Go(fmt.Sprint("publisher", id), func() { definite(x.publish(ctx, id)) })
			}
			s.Go("closer", x.leave)
		}},
		{"full against a gate that moves", 3, func(s *explore.S) {
			// One record fits. The second publish waits until the reader is done with the first.
			x := newExplored(s, pool, 2, 1)
			g := x.gate()
			s.Go("publisher", func() {
				for id := range 2 {
					definite(x.publish(ctx, id))
					explore.Assert(x.in[id] == int64(id), "at %d", x.in[id])
				}
				x.leave()
			})
			s.Go("reader", func() { g.Advance(1); x.leave() })
		}},
		{"full against cancel and close", 3, func(s *explore.S) {
			x := newExplored(s, pool, 1, 1)
			x.gate()
			c := newCancelled()
			s.Go("publisher", func() { definite(x.publish(ctx, 0)); definite(x.publish(c, 1)) })
			s.Go("canceller", func() { s.Close(c.done) })
			s.Go("closer", func() { x.Close(errOver) })
		}},
		{"full against giving up", 2, func(s *explore.S) {
			// The goroutine waits for room for a publish that is given up. What is behind that must not wait any longer.
			x := newExplored(s, pool, 2, 1)
			x.gate()
			c := newCancelled()
			s.Go("impatient", func() {
				definite(x.publish(ctx, 0))
				explore.Assert(errors.Is(x.publish(c, 1), context.Canceled), "there was no room")
				x.leave()
			})
			s.Go("barrier", func() {
				req := x.newRequest()
				req.barrier = true
				_, err := x.wait(ctx, req)
				explore.Assert(err == nil, "barrier: %v", err)
				x.leave()
			})
			s.Go("canceller", func() { s.Close(c.done) })
		}},
		{"control against publish", 3, func(s *explore.S) {
			// What is posted runs under the role, also if the partition is idle or about to be.
			x := newExplored(s, pool, 2, 0)
			var ran atomicx.Bool
			s.Go("publisher", func() { definite(x.publish(ctx, 0)); x.leave() })
			s.Go("control", func() {
				runs(x, &ran)
				x.leave()
			})
		}},
		{"lent role", 2, func(s *explore.S) {
			// The goroutine is awake and lends the role at every look; a producer that finds the ring in use drains it.
			x := newExplored(s, pool, 2, 0).awake()
			s.Go("first", func() { x.async(ctx, 0); x.async(ctx, 1); x.leave() })
			s.Go("second", func() { x.async(ctx, 2); x.leave() })
			s.Finally(inOrder(x, 3, 0, 1))
		}},
		{"direct", 2, func(s *explore.S) {
			// A producer that seems to be alone appends with the role on loan; it is in order with what it hands over, and what it
			// has waited for is visible, and all before it.
			x := newExplored(s, pool, 2, 0).awake()
			x.alone.Store(1)
			s.Go("first", func() {
				x.async(ctx, 0)
				x.async(ctx, 1)
				definite(x.publish(ctx, 2))
				explore.Assert(x.in[2] >= 2, "before what was published before: %d", x.in[2])
				x.leave()
			})
			s.Go("second", func() { x.async(ctx, 3); x.leave() })
			s.Finally(inOrder(x, 4, 0, 1, 2))
		}},
		{"handed over", 2, func(s *explore.S) {
			// A publisher that comes again and again hands the role over; before the goroutine has it, any of them may use it.
			x := newExplored(s, pool, 2, 0).handedOver()
			s.Go("first", func() { x.async(ctx, 0); x.async(ctx, 1); x.leave() })
			s.Go("second", func() { x.async(ctx, 2); x.leave() })
			s.Finally(inOrder(x, 3, 0, 1))
		}},
		{"handed over and waited for", 2, func(s *explore.S) {
			x := newExplored(s, pool, 1, 0).handedOver()
			s.Go("publisher", func() {
				for id := range 2 {
					x.async(ctx, id)
				}
				definite(x.publish(ctx, 2))
				explore.Assert(x.in[2] == 2, "what was published before comes later: %d", x.in[2])
				x.leave()
			})
		}},
		{"handed over and left", 2, func(s *explore.S) {
			// What has been appended while nobody has the role becomes visible, though nobody comes any more.
			x := newExplored(s, pool, 2, 0).handedOver()
			s.Go("publisher", func() {
				for id := range 2 {
					x.async(ctx, id)
				}
				x.leave()
			})
			s.Go("reader", func() {
				for x.log.Committed() < 2 {
					atomicx.Relax(0)
				}
				x.leave()
			})
		}},
		{"handed over against close", 3, func(s *explore.S) {
			x := newExplored(s, pool, 1, 0).handedOver()
			for id := range 2 {
				s.Go(fmt.Sprint("producer", id), func() { x.async(ctx, id) })
			}
			s.Go("closer", x.leave)
		}},
		{"handed over against control", 2, func(s *explore.S) {
			x := newExplored(s, pool, 2, 0).handedOver()
			var ran atomicx.Bool
			s.Go("publisher", func() {
				for id := range 2 {
					x.async(ctx, id)
				}
				x.leave()
			})
			s.Go("control", func() {
				runs(x, &ran)
				x.leave()
			})
		}},
		{"handed over when full", 3, func(s *explore.S) {
			// One record fits. The goroutine waits for room for what is published behind it.
			x := newExplored(s, pool, 2, 1).handedOver()
			g := x.gate()
			s.Go("publisher", func() {
				x.async(ctx, 0)
				definite(x.publish(ctx, 1))
				explore.Assert(x.in[1] == 1, "at %d", x.in[1])
				x.leave()
			})
			s.Go("reader", func() { g.Advance(1); x.leave() })
		}},
		{"direct against close", 2, func(s *explore.S) {
			x := newExplored(s, pool, 1, 0).awake()
			x.alone.Store(1)
			for id := range 2 {
				s.Go(fmt.Sprint("producer", id), func() { x.async(ctx, id) })
			}
			s.Go("closer", x.leave)
		}},
		{"lent role against close", 2, func(s *explore.S) {
			x := newExplored(s, pool, 1, 0).awake()
			for id := range 2 {
				s.Go(fmt.Sprint("producer", id), func() { x.async(ctx, id) })
			}
			s.Go("closer", x.leave)
		}},
	})
}

// unknown is the offset of a record that was accepted by TryPublish: it is in the log, nobody was told where.
const unknown = -2
