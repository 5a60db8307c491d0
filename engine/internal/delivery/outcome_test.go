package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
)

// failures are all the ways in which a handler can fail.
var failures = []struct {
	name  string
	fail  func() error
	check func(t *testing.T, err error)
}{
	{"error", func() error { return errPoison }, func(t *testing.T, err error) { assert.Equal(t, errPoison, err) }},
	{"panic with a string", func() error { panic("no") }, func(t *testing.T, err error) {
		var p *delivery.PanicError
		require.ErrorAs(t, err, &p)
		assert.Equal(t, "no", p.Value)
		assert.Contains(t, string(p.Stack), "outcome_test.go")
		assert.NoError(t, p.Unwrap())
		assert.Contains(t, err.Error(), "no")
	}},
	{"panic with an error", func() error { panic(errPoison) }, func(t *testing.T, err error) { assert.ErrorIs(t, err, errPoison) }},
	{"panic with nil", func() error { panic(nil) }, func(t *testing.T, err error) {
		var p *runtime.PanicNilError
		assert.ErrorAs(t, err, &p)
	}},
	{"nil map", func() error { var m map[int]int; m[1] = 1; return nil }, func(t *testing.T, err error) {
		var p runtime.Error
		assert.ErrorAs(t, err, &p)
	}},
	{"Goexit", func() error { runtime.Goexit(); return nil }, func(t *testing.T, err error) {
		assert.Equal(t, delivery.ErrGoexit, err)
	}},
	{"Goexit under a panic", func() error {
		defer runtime.Goexit()
		panic("no")
	}, func(t *testing.T, err error) { assert.Equal(t, delivery.ErrGoexit, err) }},
}

// TestBUG013_FailingHandlers fails record 5 in every way, under both modes, for single records and batches: under AtMostOnce
// it is counted and 6 follows; under AtLeastOnce it is delivered again until it succeeds, or given up. A second lane on the
// same worker sees everything.
func TestBUG013_FailingHandlers(t *testing.T) {
	watchdog(t)
	for _, f := range failures {
		for i := range 8 {
			once, drop, batch := i&1 != 0, i&2 != 0, i/4*3
			t.Run(fmt.Sprintf("%s/once=%v/drop=%v/batch=%v", f.name, once, drop, batch), func(t *testing.T) {
				p := newPart(t, partitionSetup{segments: 4, workers: 1})
				p.publish(t, 10)
				var got, failed, dropped, other book
				handle := func(ms []*Message) error {
					bad := false
					for _, m := range ms {
						got.add(m)
						bad = bad || m.Offset == 5 && (drop || m.Attempt < 3)
						m.Offset, m.Value, m.Attempt = -1, nil, -1 // changes nothing for anybody
					}
					if bad {
						return f.fail()
					}
					return nil
				}
				c := singlesOr(batch, handle)
				c.AtMostOnce, c.MaxDeliveries = once, 3
				c.OnFailure = func(_ context.Context, m *Message, err error) {
					f.check(t, err)
					assert.Len(t, m.Value, 8)
					failed.add(m)
				}
				c.OnDrop = func(_ context.Context, m *Message, err error) {
					f.check(t, err)
					assert.Len(t, m.Value, 8)
					dropped.add(m)
				}
				l := newLane(t, p, c, nil)
				l.Start()
				second := run(t, p, func(_ context.Context, m *Message) error { other.add(m); return nil })
				await(func() bool { return l.Drained() && second.Drained() })

				// Batches of 3 in segments of 4: 0 1 2, 3, 4 5 6, 7, 8 9.
				bad := []int64{5}
				if batch > 0 {
					bad = upTo(4, 7)
				}
				var want []entry
				for _, off := range upTo(0, bad[0]) {
					want = append(want, entry{off, 1})
				}
				attempts := 3
				if once {
					attempts = 1
				}
				for attempt := 1; attempt <= attempts; attempt++ {
					for _, off := range bad {
						want = append(want, entry{off, attempt})
					}
				}
				for _, off := range upTo(bad[len(bad)-1]+1, 10) {
					want = append(want, entry{off, 1})
				}
				assert.Equal(t, want, got.entries())

				n, failures := int64(len(bad)), 2
				var wantDropped []entry
				switch {
				case once:
					failures = 1
				case drop:
					failures = 3
					for _, off := range bad {
						wantDropped = append(wantDropped, entry{off, 3})
					}
				}
				var wantFailed []entry
				for attempt := 1; attempt <= failures; attempt++ {
					wantFailed = append(wantFailed, entry{bad[0], attempt})
				}
				assert.Equal(t, wantFailed, failed.entries())
				assert.Equal(t, wantDropped, dropped.entries())
				assert.Equal(t, upTo(0, 10), other.offsets())

				s := l.Stats(p.clock.Now())
				assert.Equal(t, int64(10), s.Position)
				assert.Equal(t, n*int64(failures), s.Failed)
				assert.Equal(t, n*int64(attempts-1), s.Redelivered)
				assert.Equal(t, int64(len(wantDropped)), s.Dropped)
				delivered := int64(10)
				if once || drop {
					delivered -= n
				}
				assert.Equal(t, delivered, s.Delivered)
				assert.Equal(t, 1, p.workers.Workers())
			})
		}
	}
}

// TestLane_HooksMayEndTheGoroutine: what is decided about a record does not depend on who is told of it.
func TestLane_HooksMayEndTheGoroutine(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 1})
	p.publish(t, 3)
	var got book
	c := delivery.Config{
		MaxDeliveries: 2,
		Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
			got.add(m)
			return errPoison
		}},
		OnFailure: func(context.Context, *Message, error) { runtime.Goexit() },
		OnDrop:    func(context.Context, *Message, error) { runtime.Goexit() },
	}
	l := newLane(t, p, c, nil)
	l.Start()
	await(l.Drained)
	assert.Equal(t, []entry{{0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 1}, {2, 2}}, got.entries())
}

// TestLane_GapHookMayEndTheGoroutine: it is told once all the same.
func TestLane_GapHookMayEndTheGoroutine(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 1, workers: 1})
	p.publish(t, 10)
	require.NoError(t, p.TruncateBefore(background, 4))
	var got book
	gaps := 0
	l := newLane(t, p, delivery.Config{
		Handler: delivery.Handler{One: func(_ context.Context, m *Message) error { got.add(m); return nil }},
		OnGap:   func(int, int64, int64) { gaps++; runtime.Goexit() },
	}, nil)
	l.Start()
	await(l.Drained)
	assert.Equal(t, 1, gaps)
	assert.Equal(t, upTo(4, 10), got.offsets())
}

// TestLane_NotDroppedOnceItsContextIsOver: a subscription that is being closed fails its handlers, and that must not use up
// their attempts.
func TestLane_NotDroppedOnceItsContextIsOver(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	in := make(chan struct{}, 1)
	c := delivery.Config{
		MaxDeliveries: 1,
		Handler: delivery.Handler{One: func(ctx context.Context, _ *Message) error {
			in <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}},
		OnDrop: func(context.Context, *Message, error) { t.Error("dropped") },
	}
	l := newLane(t, p, c, nil)
	l.Start()
	p.publish(t, 1)
	<-in
	l.Stop(errPoison)
	l.cancel()
	<-l.ended
	assert.Zero(t, l.Position())
	assert.False(t, errors.Is(l.cause, context.Canceled))
}
