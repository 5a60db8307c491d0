package delivery_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

// tally is what has become of each offset: how often it was delivered, and how often reported as lost.
type tally struct {
	mu              sync.Mutex
	delivered, lost map[int64]int
	gaps            []string
}

func newTally() *tally { return &tally{delivered: map[int64]int{}, lost: map[int64]int{}} }

func (y *tally) deliver(m *Message) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.delivered[m.Offset]++
}

func (y *tally) gap(_ int, from, to int64) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.gaps = append(y.gaps, fmt.Sprintf("%d-%d", from, to))
	for off := from; off < to; off++ {
		y.lost[off]++
	}
}

// check checks that each offset up to next was delivered or reported, and which were reported.
func (y *tally) check(t *testing.T, from, next int64) (lost int64) {
	t.Helper()
	y.mu.Lock()
	defer y.mu.Unlock()
	for off := from; off < next; off++ {
		require.LessOrEqual(t, y.lost[off], 1, "offset %d", off)
		require.Positive(t, y.delivered[off]+y.lost[off], "offset %d is forgotten", off)
		lost += int64(y.lost[off])
	}
	return lost
}

// TestKeyed_Gap drops what a slow lane has not read, what it has read and not begun with, and what waits for a retry. The two
// records that are in handlers stay as they are, and count when they end.
func TestKeyed_Gap(t *testing.T) {
	watchdog(t)
	for i := range 4 {
		fail, once := i&1 != 0, i&2 != 0
		t.Run(fmt.Sprintf("fail=%v/once=%v", fail, once), func(t *testing.T) {
			y := newTally()
			in, out := make(chan struct{}), make(chan struct{})
			c := each(func(_ context.Context, m *Message) error {
				switch m.Offset {
				case 0: // is to be tried again when all else is over
					return errPoison
				case 1, 3:
					in <- struct{}{}
					<-out
					assert.Equal(t, value(m.Offset).Value, m.Value)
				}
				y.deliver(m)
				return nil
			})
			c.Parallel, c.AtMostOnce, c.ErrorOnGap, c.OnGap = 3, once, fail, y.gap
			c.Backoff = []time.Duration{time.Hour}
			p := newPart(t, partitionSetup{onFull: partition.DropOldest, limits: retention.Limits{MaxRecords: 8}, segments: 2, workers: 3})
			k := newKeyed(t, p, c, nil)
			k.Start()
			p.publishKeys(t, "a")
			await(func() bool { return k.Stats(p.clock.Now()).Failed == 1 && p.idle() })
			k.Pause()
			p.publishKeys(t, "b", "b", "c", "c", "d")
			k.Resume()
			<-in
			<-in
			await(func() bool { return p.workers.Running() == 2 && p.workers.Queued() == 0 }) // 5 is delivered
			k.Pause()
			p.publishKeys(t, keys(94, 10)...)
			k.Resume()
			await(func() bool { return p.workers.Running() == 2 && p.workers.Queued() == 0 })
			first, next := p.Snapshot()
			if !once {
				assert.LessOrEqual(t, k.Position(), int64(1), "it is in a handler")
				assert.Equal(t, next-first, k.Lag())
			}
			close(out)
			if fail {
				<-k.ended
				var out *partition.OffsetError
				require.ErrorAs(t, k.cause, &out)
				assert.Less(t, out.Asked, first)
				assert.Equal(t, first, out.First)
				assert.Less(t, k.Position(), first)
				assert.Empty(t, y.gaps)
				return
			}
			await(k.Drained)
			assert.Equal(t, int64(100), k.Position())
			y.deliver(&Message{}) // 0 was delivered, and failed; it is lost under AtLeastOnce
			lost := y.check(t, 0, next)
			s := k.Stats(p.clock.Now())
			assert.Equal(t, lost, s.Lost)
			assert.Equal(t, next, s.Delivered+s.Lost+btoi(once), "delivered and lost are all")
			for off := range next {
				gone := off < first && off != 1 && off != 3 && off != 5 && (off != 0 || !once)
				assert.Equal(t, gone, y.lost[off] == 1, "offset %d", off)
			}
		})
	}
}

func btoi(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// TestKeyed_GapNeedsNoRecord: what was dropped before a lane began, or all there was, is reported, and nothing waits for the next
// record.
func TestKeyed_GapNeedsNoRecord(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 3})
	p.publishKeys(t, keys(10, 3)...)
	require.NoError(t, p.TruncateBefore(background, 10))
	y := newTally()
	c := each(func(_ context.Context, m *Message) error { y.deliver(m); return nil })
	c.OnGap = y.gap
	k := newKeyed(t, p, c, nil)
	k.Start()
	await(k.Drained)
	assert.Equal(t, int64(10), k.Position())
	assert.Equal(t, []string{"0-10"}, y.gaps)
	p.publishKeys(t, "a")
	await(k.Drained)
	assert.Equal(t, int64(10), y.check(t, 0, 11))
}

// TestKeyed_NoGapNoticeAfterStop: the notice of a gap is user code like a handler.
func TestKeyed_NoGapNoticeAfterStop(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{onFull: partition.DropOldest, limits: retention.Limits{MaxRecords: 2}, segments: 1})
	p.publishKeys(t, keys(10, 3)...)
	c := each(func(context.Context, *Message) error { t.Error("delivered"); return nil })
	c.OnGap = func(int, int64, int64) { t.Error("told of a gap") }
	k := newKeyed(t, p, c, nil)
	k.Stop(errPoison)
	k.Start()
	<-k.ended
}

// TestKeyed_StressGap publishes to a lane that is too slow for it, with retries: each record is delivered or reported, never both
// unless it had failed, and is what was published.
func TestKeyed_StressGap(t *testing.T) {
	watchdog(t)
	for _, once := range []bool{false, true} {
		p := newPart(t, partitionSetup{onFull: partition.DropOldest, limits: retention.Limits{MaxRecords: 60}, segments: 7})
		y, got := newTally(), newKeyBook(t)
		c := delivery.Config{
			AtMostOnce: once, Parallel: 3, MaxInFlight: 40, OnGap: y.gap, Backoff: []time.Duration{time.Microsecond},
			Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
				defer got.enter(m)()
				for range m.Offset % 50 {
					_ = got.len()
				}
				if m.Offset%11 == 0 && m.Attempt < 3 && !once {
					return errPoison
				}
				y.deliver(m)
				return nil
			}},
		}
		k := newKeyed(t, p, c, nil)
		k.Start()
		n := int64(rounds(20_000))
		p.publishKeys(t, keys(int(n), 17)...)
		await(k.Drained)
		assert.Equal(t, n, k.Position())
		lost := y.check(t, 0, n)
		for off := range n {
			require.Equal(t, 1, y.delivered[off]+y.lost[off], "offset %d: %d, %d", off, y.delivered[off], y.lost[off])
		}
		s := k.Stats(p.clock.Now())
		assert.Equal(t, n-lost, s.Delivered)
		assert.Equal(t, lost, s.Lost)
	}
}
