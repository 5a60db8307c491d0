package delivery_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

func TestLane_DeliversEachRecordOnceInOrder(t *testing.T) {
	watchdog(t)
	for _, batch := range []int{0, 1, 7} {
		for _, opt := range []dispatch.Options{{}, {Dedicated: true}} {
			t.Run(fmt.Sprintf("batch=%d dedicated=%v", batch, opt.Dedicated), func(t *testing.T) {
				p := newPart(t, partitionSetup{segments: 10})
				p.publish(t, 100)
				var got book
				check := func(m *Message) {
					assert.Equal(t, uint64(m.Offset), binary.LittleEndian.Uint64(m.Value))
					assert.Equal(t, "topic", m.Topic)
					got.add(m)
				}
				c := delivery.Config{Handler: delivery.Handler{One: func(_ context.Context, m *Message) error { check(m); return nil }}}
				if batch > 0 {
					c = batches(batch, func(_ context.Context, ms []Message) error {
						assert.LessOrEqual(t, len(ms), batch)
						for i := range ms {
							check(&ms[i])
						}
						return nil
					})
				}
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
func TestLane_DoesNothingBeforeStart(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 1})
	p.publish(t, 3)
	l := newLane(t, p, delivery.Config{Handler: delivery.Handler{One: func(context.Context, *Message) error {
		t.Error("delivered")
		return nil
	}}}, nil)
	l.Resume()
	l.Stop(errPoison)
	// The only worker has run whatever was to be run by the time it has run this.
	ran := make(chan struct{})
	p.workers.NewTask(func() dispatch.Again { close(ran); return false }, dispatch.Options{}).Wake()
	<-ran
	assert.Zero(t, l.ends.Load())
	l.Start()
	<-l.ended
	assert.Equal(t, errPoison, l.cause)
}

func TestLane_StopCountsTheFirstCause(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	l := run(t, p, func(context.Context, *Message) error { return nil })
	l.Stop(errPoison)
	l.Stop(errOver)
	<-l.ended
	assert.Equal(t, errPoison, l.cause)
	assert.Equal(t, errPoison, l.Seek(at(0)))
	l.Pause()
	l.Resume()
	assert.True(t, l.Drained())
}

// TestLane_EndsAfterItsHandler checks that OnEnd waits for a handler that is running, and that the gate does not.
func TestLane_EndsAfterItsHandler(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 2}, segments: 1})
	p.publish(t, 2)
	in, out := make(chan struct{}), make(chan struct{})
	l := run(t, p, func(context.Context, *Message) error { in <- struct{}{}; <-out; return nil })
	<-in
	l.Stop(errPoison)
	p.publish(t, 4) // nobody gates any more
	assert.Zero(t, l.ends.Load())
	assert.False(t, l.Drained(), "a handler is running")
	close(out)
	<-l.ended
	assert.True(t, l.Drained())
	assert.Equal(t, int64(1), l.Position(), "it was processed, after all")
	assert.Equal(t, int64(1), l.Stats(p.clock.Now()).Delivered)
}

// TestLane_GivesItsPinBack: no memory is lost to the log's pool for the sake of a lane that has ended.
func TestLane_GivesItsPinBack(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publish(t, 10)
	l := run(t, p, func(context.Context, *Message) error { return nil })
	await(l.Drained)
	l.Stop(errOver)
	<-l.ended
	used := p.pool.Used()
	p.Close(errOver)
	<-p.Done()
	p.Free()
	assert.Positive(t, used)
	assert.Equal(t, used, p.pool.Kept(), "all can be used again")
}

// TestLane_SegmentsAreUsedAgain: publishers that wait for the lane drop each segment when it is through with it, and not
// while it still stands there.
func TestLane_SegmentsAreUsedAgain(t *testing.T) {
	watchdog(t)
	const records, bytes = 64, 64 << 10
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 4 * records}, segments: records})
	run(t, p, func(context.Context, *Message) error { return nil })
	r := segment.Record{Value: make([]byte, bytes/records)}
	fill := func(segments int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range segments * records {
			_, err := p.Publish(background, &r)
			require.NoError(t, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	fill(20)
	n := rounds(1000)
	assert.Less(t, fill(n), uint64(n*bytes/4+20*bytes), "new memory")
}

// TestLane_LeavesNothingBehind: the pool keeps a task until it is stopped, and a dedicated one has a goroutine.
func TestLane_LeavesNothingBehind(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	p.publish(t, 1)
	for range 100 {
		l := newLaneOpt(t, p, delivery.Config{Handler: delivery.Handler{One: func(context.Context, *Message) error { return nil }}},
			nil, dispatch.Options{Dedicated: true}, &partition.Gate{})
		l.Start()
		await(l.Drained)
		l.Stop(errOver)
		<-l.ended
	}
	before := runtime.NumGoroutine()
	await(func() bool { return runtime.NumGoroutine() < 50 })
	assert.Less(t, runtime.NumGoroutine(), 50, "from %d", before)
}

func TestLane_PauseInsideTheHandler(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	var l *lane
	var got book
	l = newLane(t, p, delivery.Config{Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
		got.add(m)
		if m.Offset == 4 {
			l.Pause()
		}
		return nil
	}}}, nil)
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
		batch              bool
	}
	var tries []try
	for _, target := range []uint64{0, 4, 5, 6, 7, 10} {
		for i := range 16 {
			tries = append(tries, try{target, i&1 != 0, i&2 != 0, i&4 != 0, i&8 != 0})
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
			c := delivery.Config{AtMostOnce: try.once, Handler: delivery.Handler{
				One: func(_ context.Context, m *Message) error { return handle([]*Message{m}) },
			}}
			if try.batch {
				c = batches(3, func(_ context.Context, ms []Message) error {
					var all []*Message
					for i := range ms {
						all = append(all, &ms[i])
					}
					return handle(all)
				})
				c.AtMostOnce = try.once
			}
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
			if try.batch {
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
	l = newLane(t, p, delivery.Config{Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
		assert.NoError(t, l.Seek(at(uint64(m.Offset))))
		l.Pause()
		return nil
	}}}, nil)
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
	l := newLane(t, p, delivery.Config{Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
		got.add(m)
		return nil
	}}}, at(2))
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
	l := run(t, p, func(context.Context, *Message) error { return nil })
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

func TestLane_EndsWithItsPartition(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	l := run(t, p, func(context.Context, *Message) error { return nil })
	p.publish(t, 10)
	p.Finish(errPoison)
	<-l.ended
	assert.Equal(t, errPoison, l.cause)
	assert.Equal(t, int64(10), l.Position(), "what was there is delivered before")
}

// TestLane_Evicted hangs a handler: the gate is gone, and who asked is told, long before the lane can end.
func TestLane_Evicted(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 8}, segments: 1})
	in, out, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
	c := delivery.Config{
		Handler:   delivery.Handler{One: func(context.Context, *Message) error { in <- struct{}{}; <-out; return nil }},
		OnEvicted: func() { close(told) },
	}
	l := newLaneOpt(t, p, c, nil, dispatch.Options{}, &partition.Gate{Gating: true, MaxLag: 4})
	l.Start()
	p.publish(t, 1)
	<-in
	p.publish(t, 20)
	<-told
	assert.Zero(t, l.ends.Load())
	assert.Equal(t, partition.ErrEvicted, l.Seek(at(20)))
	close(out)
	<-l.ended
	assert.Equal(t, partition.ErrEvicted, l.cause)
	assert.Equal(t, int64(1), l.Position())
}

// TestLane_DrainedCountsTheHandler: under AtMostOnce the position is beyond the record whose handler still runs.
func TestLane_DrainedCountsTheHandler(t *testing.T) {
	watchdog(t)
	for _, once := range []bool{false, true} {
		p := newPart(t, partitionSetup{})
		in, out := make(chan struct{}), make(chan struct{})
		l := newLane(t, p, delivery.Config{AtMostOnce: once, Handler: delivery.Handler{One: func(context.Context, *Message) error {
			in <- struct{}{}
			<-out
			return nil
		}}}, nil)
		l.Start()
		assert.True(t, l.Drained())
		p.publish(t, 1)
		<-in
		assert.Equal(t, once, l.Position() == 1)
		assert.False(t, l.Drained())
		l.Pause()
		assert.False(t, l.Drained())
		require.NoError(t, l.Seek(latest))
		assert.False(t, l.Drained())
		out <- struct{}{}
		await(l.Drained)
	}
}

// TestBUG040_Lag: never negative, never more than is there, and what was lost counts elsewhere.
func TestBUG040_Lag(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 1})
	l := newLane(t, p, delivery.Config{Handler: delivery.Handler{One: func(context.Context, *Message) error { return nil }}}, nil)
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
