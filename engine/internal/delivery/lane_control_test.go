package delivery_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/retention"
)

func TestLane_PauseInsideTheHandler(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	var l *lane
	var got book
	l = newLane(t, p, each(func(_ context.Context, m *Message) error {
		got.add(m)
		if m.Offset == 4 {
			l.Pause()
		}
		return nil
	}), nil)
	l.Start()
	p.publish(t, 10)
	await(func() bool { return l.Paused() && l.Drained() })
	assert.Equal(t, upTo(0, 5), got.offsets())
	assert.Equal(t, int64(5), l.Lag(), "a pause skips nothing")
	assert.Zero(t, p.Committed().Waiting(), "a paused lane costs publishers nothing")
	l.Resume()
	await(l.Drained)
	assert.Equal(t, upTo(0, 10), got.offsets())
}

// TestBUG008_SeekDuringDelivery seeks while the handler has 5, from outside and from inside, under both modes, with a handler
// that succeeds and one that fails, for single records and batches: what is delivered next is the target, and the return
// of the handler moves nothing.
func TestBUG008_SeekDuringDelivery(t *testing.T) {
	watchdog(t)
	type try struct {
		target             uint64
		inside, once, fail bool
		batch              int
	}
	var tries []try
	for _, target := range []uint64{0, 4, 5, 6, 7, 10} {
		for i := range 16 {
			tries = append(tries, try{target, i&1 != 0, i&2 != 0, i&4 != 0, i / 8 * 3})
		}
	}
	for _, try := range tries {
		t.Run(fmt.Sprintf("%+v", try), func(t *testing.T) {
			p := newPart(t, partitionSetup{segments: 4})
			p.publish(t, 10)
			in, out := make(chan struct{}), make(chan struct{})
			var (
				l    *lane
				got  book
				done bool
			)
			handle := func(ms []*Message) error {
				for _, m := range ms {
					got.add(m)
				}
				for _, m := range ms {
					if m.Offset != 5 || done {
						continue
					}
					done = true
					if try.inside {
						assert.NoError(t, l.Seek(at(try.target)))
					} else {
						in <- struct{}{}
						<-out
					}
					if try.fail {
						return errPoison
					}
				}
				return nil
			}
			c := singlesOr(try.batch, handle)
			c.AtMostOnce = try.once
			l = newLane(t, p, c, at(3))
			l.Start()
			if !try.inside {
				<-in
				require.NoError(t, l.Seek(at(try.target)))
				assert.Equal(t, int64(try.target), l.Position(), "at once")
				close(out)
			}
			await(l.Drained)
			// Batches end with the segment: 3 alone, then 4 5 6.
			before := upTo(3, 6)
			if try.batch > 0 {
				before = upTo(3, 7)
			}
			want := append(before, upTo(int64(try.target), 10)...)
			assert.Equal(t, want, got.offsets())
			for _, e := range got.entries()[len(before):] {
				assert.Equal(t, 1, e.attempt, "attempts start over")
			}
			assert.Equal(t, int64(10), l.Position())
		})
	}
}

// TestSEED02_SeekToTheRecordInTheHandler: it is not processed, whatever the handler returns.
func TestSEED02_SeekToTheRecordInTheHandler(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	var l *lane
	l = newLane(t, p, each(func(_ context.Context, m *Message) error {
		assert.NoError(t, l.Seek(at(uint64(m.Offset))))
		l.Pause()
		return nil
	}), nil)
	l.Start()
	p.publish(t, 3)
	await(func() bool { return l.Paused() && l.Drained() })
	assert.Zero(t, l.Position())
	assert.Equal(t, int64(3), l.Lag())
}

// TestLane_SeekTakesTheLast: of several seeks the last one counts.
func TestLane_SeekTakesTheLast(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publish(t, 10)
	var got book
	l := newLane(t, p, each(func(_ context.Context, m *Message) error {
		got.add(m)
		return nil
	}), at(2))
	l.Pause()
	l.Start()
	for _, off := range []uint64{9, 0, 7} {
		require.NoError(t, l.Seek(at(off)))
		assert.Equal(t, int64(off), l.Position())
	}
	l.Resume()
	await(l.Drained)
	assert.Equal(t, upTo(7, 10), got.offsets())
}

// TestLane_SeekOfAPausedLaneFreesRoom: publishers that wait for a paused lane go on once it is moved.
func TestLane_SeekOfAPausedLaneFreesRoom(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 4}, segments: 1})
	l := run(t, p, nothing)
	l.Pause()
	p.publish(t, 4)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.publish(t, 2)
	}()
	await(func() bool { return p.Stats().HeldBy == "lane" })
	require.NoError(t, l.Seek(at(2)))
	<-done
	assert.Equal(t, int64(2), l.Position())
}

// TestSEED05_RewindTakesNoRoomBack rewinds a gating lane on a full log: publishers do not wait for what it reads again.
func TestSEED05_RewindTakesNoRoomBack(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 8}, segments: 1})
	var lost int64
	l := newLane(t, p, delivery.Config{
		Handler: delivery.Handler{One: func(context.Context, *Message) error { return nil }},
		OnGap:   func(_ int, from, to int64) { lost += to - from },
	}, nil)
	l.Start()
	p.publish(t, 8)
	await(l.Drained)
	l.Pause()
	require.NoError(t, l.Seek(earliest))
	p.publish(t, 8) // these drop what it wanted to read again
	assert.Equal(t, int64(0), l.Position())
	l.Resume()
	await(l.Drained)
	assert.Equal(t, int64(8), lost)
	assert.Equal(t, int64(16), l.Stats(p.clock.Now()).Delivered)
}
