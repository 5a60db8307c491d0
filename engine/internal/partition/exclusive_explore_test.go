//go:build explore

package partition

import (
	"context"
	"errors"
	"testing"
	"unsafe"

	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/internal/explore"
	"github.com/leatlog/leat/segment"
)

// write fills in a value of one byte.
func write(place []byte, b byte) {
	atomicx.Writes(unsafe.Pointer(&place[0]))
	place[0] = b
}

// TestExplore_Exclusive explores the Appender, and its reservations.
func TestExplore_Exclusive(t *testing.T) {
	pool, ctx := noWorkers(), context.Background()
	exploreAll(t, []roleScenario{
		{"appender against publish", 3, func(s *explore.S) {
			x := newExplored(s, pool, 2, 0)
			s.Go("publisher", func() { definite(x.publish(ctx, 0)); x.leave() })
			s.Go("appender", func() {
				a, err := x.Appender(ctx)
				explore.Assert(err == nil, "appender: %v", err)
				off, err := a.Append(ctx, record(1))
				explore.Assert(err == nil, "append: %v", err)
				explore.Assert(a.Close() == nil, "close")
				x.in[1] = off
				x.leave()
			})
		}},
		{"appender that stays against publish", 3, func(s *explore.S) {
			// A publish that comes too late is turned away; it does not wait for the Appender to close.
			x := newExplored(s, pool, 1, 0)
			var told atomicx.Bool
			s.Go("publisher", func() { definite(x.publish(ctx, 0)); told.Store(true) })
			s.Go("appender", func() {
				a, err := x.Appender(ctx)
				explore.Assert(err == nil, "appender: %v", err)
				for !told.Load() {
					atomicx.Relax(0)
				}
				explore.Assert(a.Close() == nil, "close")
				x.leave()
			})
		}},
		{"appender against close", 3, func(s *explore.S) {
			// A record whose Append has returned is in the log, also if Close takes the role before Flush.
			x := newExplored(s, pool, 1, 0)
			s.Go("appender", func() {
				a, err := x.Appender(ctx)
				if err != nil {
					definite(err)
					return
				}
				if off, err := a.Append(ctx, record(1)); err == nil {
					x.in[1] = off
				} else {
					definite(err)
				}
				definite(a.Flush())
				a.Close()
			})
			s.Go("closer", func() { x.Close(errOver) })
		}},
		{"reservation against close", 3, func(s *explore.S) {
			// Close does not wait for it; it is committed, or over.
			x := newExplored(s, pool, 1, 0)
			s.Go("appender", func() {
				a, err := x.Appender(ctx)
				if err != nil {
					definite(err)
					return
				}
				var r segment.Reservation
				if err := a.Reserve(ctx, &r, 1, 1); err != nil {
					definite(err)
					return
				}
				write(r.Next(1), 1)
				if off, err := a.Commit(ctx, &r); err == nil {
					x.in[1] = off
				} else {
					definite(err)
				}
				explore.Assert(r.Over(), "not over")
				a.Close()
			})
			s.Go("closer", func() { x.Close(errOver) })
		}},
		{"reservation against truncate", 3, func(s *explore.S) {
			// Its segment may end while it is filled, and what it was filled with is in the log all the same, behind what is there.
			x := newExplored(s, pool, 2, 0)
			var ran atomicx.Bool
			s.Go("appender", func() {
				a, err := x.Appender(ctx)
				explore.Assert(err == nil, "appender: %v", err)
				_, err = a.Publish(ctx, record(0))
				explore.Assert(err == nil, "publish: %v", err)
				var r segment.Reservation
				explore.Assert(a.Reserve(ctx, &r, 2, 2) == nil, "reserve")
				place := r.Next(1)
				write(place, 1)
				write(r.Next(1), 2)
				off, err := a.Commit(ctx, &r)
				explore.Assert(err == nil && off == 1, "commit: %d, %v", off, err)
				x.in[0], x.in[1], x.in[2] = unknown, off, off+1
				explore.Assert(a.Close() == nil, "close")
				x.leave()
			})
			s.Go("control", func() {
				err := x.post(&control{run: func() { x.log.TruncateBefore(1); ran.Store(true) }})
				explore.Assert(err == nil, "post: %v", err)
				for !ran.Load() {
					atomicx.Relax(0)
				}
				x.leave()
			})
		}},
		{"reservation left behind", 3, func(s *explore.S) {
			// Its holder still writes there when others have the partition again.
			x := newExplored(s, pool, 2, 0)
			var closed atomicx.Bool
			s.Go("appender", func() {
				a, err := x.Appender(ctx)
				explore.Assert(err == nil, "appender: %v", err)
				var r segment.Reservation
				explore.Assert(a.Reserve(ctx, &r, 1, 4) == nil, "reserve")
				place := r.Next(1)
				explore.Assert(a.Close() == nil, "close")
				closed.Store(true)
				write(place, 7)
				_, err = a.Commit(ctx, &r)
				explore.Assert(errors.Is(err, ErrClosed), "commit: %v", err)
				x.leave()
			})
			s.Go("publisher", func() {
				for !closed.Load() {
					atomicx.Relax(0)
				}
				definite(x.publish(ctx, 1))
				x.leave()
			})
		}},
		{"appender against control", 3, func(s *explore.S) {
			x := newExplored(s, pool, 2, 0)
			var ran atomicx.Bool
			s.Go("appender", func() {
				a, err := x.Appender(ctx)
				explore.Assert(err == nil, "appender: %v", err)
				off, err := a.Append(ctx, record(1))
				explore.Assert(err == nil, "append: %v", err)
				x.in[1] = off
				for !ran.Load() { // the Appender stays open, and calls nothing
					atomicx.Relax(0)
				}
				explore.Assert(a.Close() == nil, "close")
				x.leave()
			})
			s.Go("control", func() {
				runs(x, &ran)
				x.leave()
			})
		}},
	})
}
