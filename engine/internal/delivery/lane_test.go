package delivery_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

func TestLane_DeliversEachRecordOnceInOrder(t *testing.T) {
	watchdog(t)
	for _, batch := range []int{0, 1, 7} {
		for _, opt := range []dispatch.Options{{}, {Dedicated: true}} {
			t.Run(fmt.Sprintf("batch=%d dedicated=%v", batch, opt.Dedicated), func(t *testing.T) {
				p := newPart(t, partitionSetup{segments: 10})
				p.publish(t, 100)
				var got book
				c := singlesOr(batch, func(ms []*Message) error {
					assert.LessOrEqual(t, len(ms), max(batch, 1))
					for _, m := range ms {
						assert.Equal(t, uint64(m.Offset), binary.LittleEndian.Uint64(m.Value))
						assert.Equal(t, "topic", m.Topic)
						got.add(m)
					}
					return nil
				})
				l := newLaneOpt(t, p, c, at(20), opt, &partition.Gate{Gating: true})
				assert.Equal(t, int64(20), l.Position())
				assert.Equal(t, int64(80), l.Lag())
				l.Start()
				await(func() bool { return l.Position() == 100 })
				p.publish(t, 50)
				await(l.Drained)
				assert.Equal(t, upTo(20, 150), got.offsets())
				assert.Equal(t, int64(150), l.Position())
				assert.Zero(t, l.Lag())
				for _, e := range got.entries() {
					require.Equal(t, 1, e.attempt)
				}
				await(func() bool { return l.Stats(p.clock.Now()).Delivered == 130 })
			})
		}
	}
}

// TestLane_DoesNothingBeforeStart stops a lane that has not been started: only Start lets it end.
func TestLane_DoesNothingBeforeStart(t *testing.T) { doesNothingBeforeStart(t, newAnyLane) }

// TestLane_SegmentsAreUsedAgain: publishers that wait for the lane drop each segment when it is through with it, and not
// while it still stands there.
func TestLane_SegmentsAreUsedAgain(t *testing.T) {
	segmentsAreUsedAgain(t, func(p *part) { run(t, p, nothing) })
}

func TestLane_Gap(t *testing.T) {
	watchdog(t)
	for _, fail := range []bool{false, true} {
		t.Run(fmt.Sprintf("fail=%v", fail), func(t *testing.T) {
			p := newPart(t, partitionSetup{onFull: partition.DropOldest, limits: retention.Limits{MaxRecords: 8}, segments: 2})
			in, out := make(chan struct{}), make(chan struct{})
			var got []string
			c := delivery.Config{
				ErrorOnGap: fail,
				Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
					got = append(got, fmt.Sprint(m.Offset))
					if m.Offset == 0 {
						in <- struct{}{}
						<-out
					}
					return nil
				}},
				OnGap: func(part int, from, to int64) { got = append(got, fmt.Sprintf("%d-%d", from, to)) },
			}
			l := newLane(t, p, c, nil)
			l.Start()
			p.publish(t, 1)
			<-in
			p.publish(t, 99)
			first, next := p.Snapshot()
			assert.Equal(t, next-first, l.Lag())
			close(out)
			if fail {
				<-l.ended
				var out *partition.OffsetError
				require.ErrorAs(t, l.cause, &out)
				assert.Equal(t, partition.OffsetError{Asked: 1, First: first, Next: next}, *out)
				assert.Equal(t, []string{"0"}, got)
				return
			}
			await(l.Drained)
			want := []string{"0", fmt.Sprintf("1-%d", first)}
			for _, o := range upTo(first, next) {
				want = append(want, fmt.Sprint(o))
			}
			assert.Equal(t, want, got)
			s := l.Stats(p.clock.Now())
			assert.Equal(t, next, s.Delivered+s.Lost, "delivered and lost are all")
		})
	}
}

// TestLane_NoGapNoticeAfterStop: the notice of a gap is user code like a handler.
func TestLane_NoGapNoticeAfterStop(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{onFull: partition.DropOldest, limits: retention.Limits{MaxRecords: 2}, segments: 1})
	p.publish(t, 10)
	l := newLane(t, p, delivery.Config{
		Handler: delivery.Handler{One: func(context.Context, *Message) error { t.Error("delivered"); return nil }},
		OnGap:   func(int, int64, int64) { t.Error("told of a gap") },
	}, nil)
	l.Stop(errPoison)
	l.Start()
	<-l.ended
}

// TestBUG040_Lag: never negative, never more than is there, and what was lost counts elsewhere.
func TestBUG040_Lag(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 1})
	l := newLane(t, p, each(nothing), nil)
	lag := func(want int64) {
		t.Helper()
		assert.Equal(t, want, l.Lag())
		s := l.Stats(p.clock.Now())
		assert.Equal(t, want, s.Lag)
		assert.GreaterOrEqual(t, s.LagTime, time.Duration(0))
	}
	lag(0)
	l.Start()
	p.publish(t, 1)
	await(l.Drained)
	l.Pause()
	lag(0)
	p.publish(t, 4)
	lag(4)
	require.NoError(t, p.TruncateBefore(background, 4))
	lag(1)
	l.Resume()
	await(l.Drained)
	lag(0)
	assert.Equal(t, int64(3), l.Stats(p.clock.Now()).Lost)
	l.Pause()
	require.NoError(t, l.Seek(earliest))
	lag(1)
	require.NoError(t, l.Seek(at(2))) // below first
	lag(1)
	require.NoError(t, p.TruncateBefore(background, 5))
	lag(0)
}
