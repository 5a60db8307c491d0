//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/leatlog/leat/engine"
)

// TestBUG026_IdleSubscriptionsCostNothing has 1000 subscriptions on 100 topics, a few of them paused, failing, behind a handler
// that hangs, or blocking publishers. The limit is an alarm for loops that run hot, not a measurement.
func TestBUG026_IdleSubscriptionsCostNothing(t *testing.T) {
	watchdog(t)
	e := open(t, engine.Config{Workers: 4})
	hung := newBlocker()
	defer hung.release()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var subs []*engine.Subscription
	for i := range 100 {
		topic := create(t, e, fmt.Sprint(i), bounded(8, engine.Block))
		for j := range 10 {
			var h engine.Handler = ignore
			c := engine.SubscribeConfig{NonGating: true, Mode: engine.Mode(j % 2)}
			switch {
			case i == 0 && j == 0:
				h = hung
				c.NonGating = false
			case i == 1 && j == 0:
				h = handle(func(*engine.Message) error { return errPoison })
				c.Backoff = []time.Duration{time.Hour}
			}
			s := subscribe(t, topic, h, c)
			if i == 2 {
				assert.NoError(t, s.Pause())
			} else if j > 0 {
				subs = append(subs, s)
			}
		}
		publish(t, topic, 0, 8)
		if i == 0 {
			for range 16 {
				go func() { _, _ = topic.Publish(ctx, value("x")) }()
			}
			await(func() bool { return part(t, topic, 0).Stats().Blocked == 16 })
		}
	}
	caughtUp(subs...)
	idle(t, 100*time.Millisecond, 5*time.Millisecond)
}
