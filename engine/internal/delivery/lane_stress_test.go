package delivery_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

// busy is a lane that always has something to deliver: it goes round and round in a log.
func busy(t *testing.T, records int, h Handler) *lane {
	t.Helper()
	p := newPart(t, partitionSetup{segments: 50})
	p.publish(t, records)
	var l *lane
	l = newLane(t, p, each(func(ctx context.Context, m *Message) error {
		err := h(ctx, m)
		if m.Offset == int64(records)-1 {
			_ = l.Seek(at(0))
		}
		return err
	}), nil)
	l.Start()
	return l
}

// TestLane_StressPause attacks "no new delivery after Pause returned". If no handler runs after Pause has returned, none begins
// before Resume; if one runs, it is the last. Like the tests below it goes on until it has met a handler that was running.
func TestLane_StressPause(t *testing.T) {
	watchdog(t)
	var begun, over atomic.Int64
	l := busy(t, 200, func(context.Context, *Message) error {
		begun.Add(1)
		if rand.N(4) == 0 {
			runtime.Gosched()
		}
		over.Add(1)
		return nil
	})
	reached := 0
	for i, n := 0, rounds(20_000); i < n || reached == 0; i++ {
		l.Pause()
		if _, inside := l.Inside(); inside {
			reached++
			await(l.Drained)
		}
		n := begun.Load()
		for range rand.N(4) {
			runtime.Gosched()
		}
		require.Equal(t, n, begun.Load(), "a delivery has begun")
		require.Equal(t, n, over.Load())
		l.Resume()
		if rand.N(2) == 0 {
			await(func() bool { return begun.Load() > n })
		}
	}
}

// seekLog is what a handler got, and where the seeker went, in one order.
type seekLog struct {
	mu  sync.Mutex
	all []seekEvent
}

type seekEvent struct {
	kind byte // d: delivered; b, e: Seek to it begins, has ended
	off  int64
}

func (l *seekLog) add(kind byte, off int64) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, seekEvent{kind, off})
	return len(l.all)
}

func (l *seekLog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// check follows the log through all that may be. A seek takes effect somewhere between its beginning and its end; from then
// on the target and its successors come, but for one other offset at the most: that of a handler that had been called
// before and had not come to its first line.
func (l *seekLog) check(t *testing.T) {
	const none = -1
	type state struct {
		called int64 // what came next at the last delivery: its handler may have been called
		want   int64 // what comes next
		target int64 // of a seek that has begun and not taken effect
	}
	states := map[state]bool{{0, 0, none}: true}
	var passed []int64 // targets of seeks since the last delivery: so may theirs
	for i, e := range l.all {
		next := map[state]bool{}
		for s := range states {
			switch e.kind {
			case 'b':
				next[state{s.called, s.want, e.off}] = true
			case 'e':
				if s.target != none {
					s.want, s.target = s.target, none
				}
				next[s] = true
			case 'd':
				if len(passed) > 0 && (e.off == s.called || slices.Contains(passed[:len(passed)-1], e.off)) {
					next[state{s.want, s.want, s.target}] = true
				}
				if e.off == s.want {
					next[state{s.want + 1, s.want + 1, s.target}] = true
				}
				if e.off == s.target {
					next[state{s.target + 1, s.target + 1, none}] = true
				}
			}
		}
		require.NotEmpty(t, next, "%c %d cannot be: %v", e.kind, e.off, l.all[max(0, i-20):i+1])
		states = next
		switch e.kind {
		case 'd':
			passed = passed[:0]
		case 'e':
			passed = append(passed, e.off)
		}
	}
}

// TestLane_StressSeek attacks "a seek is never undone", under both modes.
func TestLane_StressSeek(t *testing.T) {
	watchdog(t)
	const records = 100
	for _, once := range []bool{false, true} {
		var log seekLog
		p := newPart(t, partitionSetup{segments: 7})
		p.publish(t, records)
		l := newLane(t, p, delivery.Config{AtMostOnce: once, Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
			log.add('d', m.Offset)
			if rand.N(3) == 0 {
				runtime.Gosched()
			}
			return nil
		}}}, nil)
		l.Start()
		reached := 0
		for i, n := 0, rounds(10_000); i < n || reached == 0; i++ {
			target := rand.Int64N(records)
			log.add('b', target)
			require.NoError(t, l.Seek(at(uint64(target))))
			if _, inside := l.Inside(); inside {
				reached++
			}
			for range 3 {
				require.GreaterOrEqual(t, l.Position(), target, "the handler that was running has moved the position")
			}
			n := log.add('e', target)
			if rand.N(2) == 0 {
				await(func() bool { return log.len() > n+1 || l.Drained() })
			}
		}
		await(l.Drained)
		log.check(t)
		require.Contains(t, log.all[len(log.all)-2:], seekEvent{'d', records - 1}) // maybe before the mark of the last Seek
	}
}

// TestLane_StressStop attacks "no delivery begins after Stop returned", and checks that each lane ends exactly once, whoever
// stops it, pauses it, moves it or publishes meanwhile, and that its gate is gone.
func TestLane_StressStop(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 16}, segments: 1})
	over := make(chan struct{})
	var publishers sync.WaitGroup
	publishers.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				_, next := p.Snapshot()
				_, _ = p.Publish(background, value(next))
				runtime.Gosched() // with one processor others would wait for their turn
			}
		}
	})
	reached := 0
	for i, n := 0, rounds(2_000); i < n || reached == 0; i++ {
		var stopped atomic.Bool
		var late, begun, ended atomic.Int64
		l := newLaneOpt(t, p, each(func(context.Context, *Message) error {
			if stopped.Load() {
				late.Add(1)
			}
			begun.Add(1)
			runtime.Gosched()
			ended.Add(1)
			return nil
		}), earliest, dispatch.Options{Dedicated: i%10 == 0}, &partition.Gate{Gating: i%2 == 0, MaxLag: uint64(i % 3)})
		l.Start()
		var others sync.WaitGroup
		others.Go(func() { _ = l.Seek(latest); l.Pause(); l.Resume() })
		if i%3 == 0 {
			others.Go(func() { l.Stop(errPoison) })
		}
		for range rand.N(20) {
			runtime.Gosched()
		}
		l.Stop(errOver)
		_, inside := l.Inside()
		stopped.Store(true)
		<-l.ended
		others.Wait()
		n := begun.Load()
		require.Equal(t, n, ended.Load(), "it has ended, and a handler runs")
		if inside {
			reached++
			require.LessOrEqual(t, late.Load(), int64(1))
		} else {
			require.Zero(t, late.Load(), "a delivery has begun")
		}
		l.Start() // once more does nothing
		require.Equal(t, int32(1), l.ends.Load())
	}
	close(over)
	publishers.Wait()
	p.publish(t, 100) // nobody gates
}

// TestLane_StressFence: of what was delivered only the last may not count, which was going on. So whoever goes on from the
// position gets one record again at the most, however long the one who fences is held up.
func TestLane_StressFence(t *testing.T) {
	watchdog(t)
	const records = 20_000
	p := newPart(t, partitionSetup{segments: 1000})
	p.publish(t, records)
	met := 0
	for i, n := 0, rounds(2000); i < n || met == 0; i++ {
		var last atomic.Int64
		last.Store(-1)
		l := run(t, p, func(_ context.Context, m *Message) error {
			last.Store(m.Offset)
			if m.Offset%64 == 0 {
				runtime.Gosched() // or on one processor all of it has been delivered before anybody fences
			}
			return nil
		})
		until := rand.Int64N(200)
		await(func() bool { return last.Load() >= until })
		l.Fence(errOver)
		pos := l.Position()
		<-l.ended
		require.Equal(t, pos, l.Position(), "it was final")
		require.LessOrEqual(t, last.Load(), pos, "more than one delivery was for nothing")
		if last.Load() == pos {
			require.Equal(t, 1, l.Tried(), "it counts as one that the next owner is told of")
		}
		if pos < records {
			met++
		}
		l.cancel()
	}
}

// TestLane_StressPublish attacks "no record is forgotten": each round waits until the record that it publishes has been
// delivered, with nobody else to wake the lane.
func TestLane_StressPublish(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 16, limits: retention.Limits{MaxRecords: 64}})
	seen := make(chan int64)
	for range 2 {
		run(t, p, func(_ context.Context, m *Message) error { seen <- m.Offset; return nil })
	}
	for i := range int64(rounds(20_000)) {
		p.publish(t, 1)
		require.Equal(t, i, <-seen)
		require.Equal(t, i, <-seen)
	}
}

// TestLane_StressDrained attacks "Drained is true only if nothing is left": when it is, all that was published before is
// handled, its handler has returned, and the counters say so.
func TestLane_StressDrained(t *testing.T) {
	watchdog(t)
	for _, once := range []bool{false, true} {
		p := newPart(t, partitionSetup{segments: 16, limits: retention.Limits{MaxRecords: 64}})
		var over atomic.Int64
		l := newLane(t, p, delivery.Config{AtMostOnce: once, Handler: delivery.Handler{One: func(context.Context, *Message) error {
			runtime.Gosched()
			over.Add(1)
			return nil
		}}}, nil)
		l.Start()
		for i := range int64(rounds(5_000)) {
			p.publish(t, 1)
			for !l.Drained() {
				runtime.Gosched()
			}
			require.Equal(t, i+1, over.Load())
			require.Equal(t, i+1, l.Stats(p.clock.Now()).Delivered)
		}
	}
}

// TestBUG106_TruncateAtTheTail truncates to the end while the lane is just there: it gets the record or a gap, and each
// exactly once.
func TestBUG106_TruncateAtTheTail(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 3})
	var next, lost int64
	l := newLane(t, p, delivery.Config{
		Handler: delivery.Handler{One: func(_ context.Context, m *Message) error {
			if m.Offset != next {
				t.Errorf("got %d, want %d", m.Offset, next)
			}
			next = m.Offset + 1
			return nil
		}},
		OnGap: func(_ int, from, to int64) {
			if from != next || to <= from {
				t.Errorf("a gap from %d to %d, want from %d", from, to, next)
			}
			next = to
			lost += to - from
		},
	}, nil)
	l.Start()
	n := rounds(20_000)
	for range n {
		p.publish(t, 1)
		_, end := p.Snapshot()
		require.NoError(t, p.TruncateBefore(background, end-rand.Int64N(2)))
	}
	await(l.Drained)
	s := l.Stats(p.clock.Now())
	require.Equal(t, int64(n), s.Delivered+s.Lost)
	require.Equal(t, lost, s.Lost)
}
