//go:build explore

package partition

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
)

// TestExplore_Drain: once a barrier that was sent after Drain is through, nothing comes into the log any more, in whatever way
// it was on its way; and each publisher was told which of the two it was.
func TestExplore_Drain(t *testing.T) {
	pool, ctx := noWorkers(), context.Background()
	definite := func(err error) {
		explore.Assert(err == nil || errors.Is(err, ErrDraining) || errors.Is(err, ErrFull), "error %v", err)
	}
	// setup returns a partition for so many threads, those of this scenario included. The explorer lets threads run in the
	// order in which they were made, so the drainer comes last: what it takes is a publisher that is interrupted once.
	setup := func(s *explore.S, threads int, others func(x *explored)) {
		x := newExplored(s, pool, threads+1, 0)
		x.cfg.OnWorker = func() bool { return false }
		others(x)
		var end atomicx.Int64
		s.Go("drainer", func() {
			x.Drain()
			if x.exclusive.Load() == nil { // as Flush does
				req := x.newRequest()
				req.barrier = true
				_, err := x.wait(ctx, req)
				explore.Assert(err == nil, "barrier: %v", err)
			}
			_, next := x.Snapshot()
			end.Store(next)
			x.leave()
		})
		s.Finally(func() error {
			if _, next := x.Snapshot(); next != end.Load() {
				return fmt.Errorf("the log ended at %d after the barrier, and ends at %d", end.Load(), next)
			}
			return nil
		})
	}
	// taken lets somebody have the role at first, so that a publisher may find it taken and still claim when all is over.
	taken := func(s *explore.S, x *explored) {
		x.ring.TakeIdle()
		s.Go("holder", func() { x.hold(); x.leave() })
	}
	publish := func(x *explored, id int) func() {
		return func() { definite(x.publish(ctx, id)); x.leave() }
	}
	batch := func(x *explored, id int) func() {
		return func() { definite(x.batch(ctx, id)); x.leave() }
	}
	unwaited := func(x *explored, id int, f func() error) func() {
		return func() {
			err := f()
			if err == nil {
				x.in[id] = unknown
			}
			definite(err)
			x.leave()
		}
	}
	try := func(x *explored, id int) func() { return unwaited(x, id, func() error { return x.try(id) }) }
	async := func(x *explored, id int) func() {
		return unwaited(x, id, func() error { return x.PublishAsync(ctx, record(id), nil) })
	}
	var scenarios []roleScenario
	for name, how := range map[string]func(x *explored, id int) func(){"publish": publish, "batch": batch, "try": try, "async": async} {
		scenarios = append(scenarios,
			roleScenario{name, 2, func(s *explore.S) {
				setup(s, 2, func(x *explored) {
					s.Go("publisher0", how(x, 0))
					s.Go("publisher1", how(x, 1))
				})
			}},
			roleScenario{name + " while the role is taken", 2, func(s *explore.S) {
				setup(s, 2, func(x *explored) {
					s.Go("publisher", how(x, 0))
					taken(s, x)
				})
			}})
	}
	scenarios = append(scenarios,
		roleScenario{"async in a stream", 2, func(s *explore.S) {
			setup(s, 1, func(x *explored) {
				x.streamAfter = -1
				x.ring.TakeIdle()
				x.wake.Unpark() // the goroutine has the role, and stays awake for a while
				s.Go("publisher", async(x, 0))
			})
		}},
		roleScenario{"async with the role on loan", 2, func(s *explore.S) {
			setup(s, 1, func(x *explored) {
				x.streamAfter = -1
				x.alone.Store(1)
				x.ring.TakeIdle()
				x.wake.Unpark()
				s.Go("publisher", async(x, 0))
			})
		}},
		roleScenario{"async with the role handed over", 2, func(s *explore.S) {
			setup(s, 1, func(x *explored) {
				x.hotStreak = 0
				x.alone.Store(1)
				s.Go("publisher", func() {
					for id := range 2 {
						err := x.PublishAsync(ctx, record(id), nil)
						if err == nil {
							x.in[id] = unknown
						}
						definite(err)
					}
					x.leave()
				})
			})
		}},
		roleScenario{"append", 2, func(s *explore.S) {
			setup(s, 1, func(x *explored) {
				s.Go("appender", func() {
					a, err := x.Appender(ctx)
					if err != nil {
						definite(err)
					} else {
						off, err := a.Append(ctx, record(0))
						if definite(err); err == nil {
							x.in[0] = off
						}
						explore.Assert(a.Close() == nil, "close")
					}
					x.leave()
				})
			})
		}})
	exploreAll(t, scenarios) // .ci/run goes one further
}
