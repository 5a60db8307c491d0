package delivery_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestLane_Bury: what is given up is given to Bury, and again after the last Backoff until that succeeds, whatever it does
// instead; the handler is not called again, and records behind wait.
func TestLane_Bury(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error":  func() error { return errPoison },
		"panic":  func() error { panic(errPoison) },
		"Goexit": func() error { runtime.Goexit(); return nil },
	} {
		for _, batch := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s/batch=%d", name, batch), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					p := newPart(t, partitionSetup{workers: 1})
					start := time.Now()
					var calls int
					var buried []string
					one := func(_ context.Context, m *Message) error {
						calls++
						if m.Offset < 3 {
							return errPoison
						}
						return nil
					}
					c := each(one)
					if batch > 0 {
						c = batches(batch, func(ctx context.Context, ms []Message) error { return one(ctx, &ms[0]) })
					}
					c.Backoff, c.MaxDeliveries = []time.Duration{time.Second, 3 * time.Second}, 2
					c.OnDrop = func(context.Context, *Message, error) { t.Error("dropped") }
					c.Bury = func(_ context.Context, m *Message, err error) error {
						buried = append(buried, fmt.Sprintf("%d/%d@%v", m.Offset, m.Attempt, time.Since(start)))
						assert.ErrorIs(t, err, errPoison)
						if m.Offset == 1 && time.Since(start) < 10*time.Second {
							return fail()
						}
						return nil
					}
					p.publish(t, 6)
					l := newLane(t, p, c, earliest)
					l.Start()
					pass(time.Hour)
					assert.EqualValues(t, 6, l.Position())
					assert.EqualValues(t, 3, l.Stats(0).Buried)
					if batch > 0 {
						assert.Equal(t, []string{"0/2@1s", "1/2@1s", "1/2@4s", "1/2@7s", "1/2@10s", "2/2@10s"}, buried)
						assert.Equal(t, 3, calls)
						return
					}
					assert.Equal(t, []string{"0/2@1s", "1/2@2s", "1/2@5s", "1/2@8s", "1/2@11s", "2/2@12s"}, buried)
					assert.Equal(t, 9, calls)
				})
			})
		}
	}
}
