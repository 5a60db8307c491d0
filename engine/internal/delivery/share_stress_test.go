package delivery_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
	"github.com/leatlog/leat/segment"
)

// sealed is a value that says what it is all over, so that a block that is used again under its reader is found out.
func sealed(off int64) []byte {
	var v [64]byte
	for i := 0; i < len(v); i += 8 {
		binary.LittleEndian.PutUint64(v[i:], uint64(off+1)*0x9e3779b97f4a7c15)
	}
	return v[:]
}

func intact(m *Message) bool { return string(m.Value) == string(sealed(m.Offset)) }

// ledger is what has become of each record.
type ledger struct {
	tries, done []atomic.Int32
	torn        atomic.Int32
	beyond      atomic.Int64 // how many are published
}

// TestShare_StressEverything has seats of all kinds work on one partition while others pause, stop, fence and replace them, use
// each token from several goroutines, and watch. Nothing is lost, nothing is stuck, and what is said is true.
func TestShare_StressEverything(t *testing.T) {
	for mode, cfg := range shareModes {
		for _, full := range []partition.OnFull{partition.Block, partition.DropOldest} {
			t.Run(fmt.Sprintf("%s/%v", mode, full), func(t *testing.T) {
				watchdog(t)
				stressShare(t, cfg, full, rounds(20_000))
			})
		}
	}
}

func stressShare(t *testing.T, cfg delivery.ShareConfig, full partition.OnFull, n int) {
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 512}, segments: 32, onFull: full, workers: 3})
	cfg.Window = group.SharedConfig{
		MaxInFlight: 40,
		MaxWindow:   200,
		AckWait:     []time.Duration{ms(20)},
		Backoff:     []time.Duration{0, ms(1), ms(2)},
	}
	var gaps atomic.Int64
	cfg.OnGap = func(_ int, from, to int64) { gaps.Add(to - from) }
	cfg.OnDrop = func(context.Context, *Message, error) {}
	s := newShare(t, p, cfg)
	l := &ledger{tries: make([]atomic.Int32, n), done: make([]atomic.Int32, n)}
	var over atomic.Bool
	var background, workers sync.WaitGroup

	settle := func(m *Message) error {
		if !intact(m) {
			l.torn.Add(1)
		}
		off := m.Offset
		l.tries[off].Add(1)
		if !cfg.Manual {
			l.done[off].Add(1)
			return nil
		}
		k := m.Token()
		if rand.IntN(4) > 0 {
			if k.Ack() == nil {
				l.done[off].Add(1)
			}
			return nil
		}
		var settled atomic.Int32
		var wg sync.WaitGroup
		for _, use := range []func() error{
			func() error {
				err := k.Ack()
				if err == nil {
					l.done[off].Add(1)
				}
				return err
			},
			func() error { return k.Nack(-1) },
			func() error { return k.Nack(0) },
			func() error {
				if k.Extend() != nil {
					return errOver
				}
				return errPoison
			},
		} {
			wg.Go(func() {
				if use() == nil {
					settled.Add(1)
				}
			})
		}
		wg.Wait()
		if settled.Load() > 1 {
			l.torn.Add(1 << 16)
		}
		return nil
	}
	handle := func(_ context.Context, m *Message) error {
		switch x := rand.IntN(200); {
		case x == 0:
			panic("handler")
		case x == 1:
			runtime.Goexit()
		case x < 5:
			return errPoison
		case x < 8:
			return partition.ErrWorkersBlocked
		case x < 20:
			runtime.Gosched()
		}
		return settle(m)
	}
	newSeat := func() *seat {
		c := delivery.SeatConfig{Handler: delivery.Handler{One: handle}, OnFailure: func(context.Context, *Message, error) {
			if rand.IntN(10) == 0 {
				runtime.Goexit()
			}
		}}
		if rand.IntN(3) == 0 {
			c.BatchSize = 5
			c.Handler = delivery.Handler{Batch: func(ctx context.Context, ms []Message) error {
				if rand.IntN(20) == 0 {
					return errPoison
				}
				for i := range ms {
					if err := settle(&ms[i]); err != nil {
						return err
					}
				}
				return nil
			}}
		}
		x := s.newSeat(t, c)
		x.Start()
		return x
	}
	var seats [3]atomic.Pointer[seat]
	for i := range seats {
		seats[i].Store(newSeat())
	}
	stays := newSeat() // nobody does anything to it, so all gets done
	// Pollers, which come and go.
	for range 2 {
		workers.Go(func() {
			for !over.Load() {
				poll(t, s, &over, func(m *Message) { _ = settle(m) })
			}
		})
	}
	// Those who want something of seats.
	for i := range seats {
		background.Go(func() {
			for !over.Load() {
				x := seats[i].Load()
				switch rand.IntN(12) {
				case 0:
					x.Stop(errOver)
					if rand.IntN(2) == 0 {
						x.Release()
					}
					seats[i].Store(newSeat())
				case 1:
					x.Fence(errOver)
					seats[i].Store(newSeat())
				case 2:
					x.Release()
				default:
					x.Pause()
					runtime.Gosched()
					x.Resume()
				}
				for range rand.IntN(200) {
					runtime.Gosched()
				}
			}
		})
	}
	// Those who watch.
	background.Go(func() {
		for !over.Load() {
			assert.NoError(t, s.Check(false))
			s.LaneStats(p.clock.Now())
			stays.Stats(p.clock.Now())
			before := l.beyond.Load()
			if s.Drained() && full == partition.Block {
				for off := range before {
					if l.tries[off].Load() == 0 && !cfg.AtMostOnce {
						assert.Fail(t, "drained", "and offset %d has not been delivered", off)
					}
				}
			}
			runtime.Gosched()
		}
	})
	for off := range int64(n) {
		got, err := p.Publish(context.Background(), &segment.Record{Value: sealed(off)})
		require.NoError(t, err)
		require.Equal(t, off, got)
		l.beyond.Store(off + 1)
	}
	s.settled()
	over.Store(true)
	background.Wait()
	workers.Wait()
	s.settled()
	require.Zero(t, l.torn.Load(), "values or tokens")
	require.EqualValues(t, n, s.Position())
	twice, never := 0, 0
	for off := range n {
		done := l.done[off].Load()
		if done == 0 {
			never++
		}
		if done > 1 {
			twice++
		}
	}
	c := s.Window()
	require.Zero(t, c.InFlight+c.Again+c.Delayed+c.Dead)
	lost := int(s.Stats().Lost)
	switch {
	case cfg.AtMostOnce:
		require.Zero(t, twice, "at most once")
		require.EqualValues(t, n, int(c.Acked)+lost)
	case full == partition.Block:
		require.Zero(t, never)
		require.Zero(t, lost)
	default:
		require.LessOrEqual(t, never, lost)
	}
	if cfg.Manual {
		require.Zero(t, twice, "an Ack that was accepted is final")
	}
	require.Zero(t, s.Errors())
}

// TestShare_StressNothingBegins: once Pause, Stop or Fence has returned and the seat is not at work no handler is called.
func TestShare_StressNothingBegins(t *testing.T) {
	for mode, cfg := range shareModes {
		t.Run(mode, func(t *testing.T) {
			watchdog(t)
			p := newPart(t, partitionSetup{workers: 2, segments: 1000})
			s := newShare(t, p, cfg)
			var calls atomic.Int64
			handle := func(_ context.Context, m *Message) error {
				calls.Add(1)
				if cfg.Manual {
					return m.Ack()
				}
				return nil
			}
			p.publish(t, 2000)
			for i := range rounds(2000) {
				x := s.run(t, handle)
				for range rand.IntN(100) {
					runtime.Gosched()
				}
				quiet := func() {
					await(func() bool { _, yes := x.Inside(); return !yes })
					n := calls.Load()
					for range 20 {
						runtime.Gosched()
					}
					require.Equal(t, n, calls.Load())
				}
				x.Pause()
				quiet()
				if i%4 == 0 {
					require.NoError(t, s.Seek(at(uint64(rand.IntN(100)))))
					require.LessOrEqual(t, s.Position(), int64(100))
					quiet()
				}
				x.Resume()
				if i%2 == 0 {
					x.Stop(errOver)
				} else {
					x.Fence(errOver)
					at := s.Position()
					if !cfg.AtMostOnce {
						<-x.ended
						require.Equal(t, at, s.Position())
					}
				}
				quiet()
				<-x.ended
				x.Release()
				require.Zero(t, s.Window().InFlight)
			}
		})
	}
}

// TestShare_StressTokensSettleOnce has everything that can settle a delivery race for it: each delivery has one end.
func TestShare_StressTokensSettleOnce(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	s := newShare(t, p, delivery.ShareConfig{Manual: true, Window: group.SharedConfig{
		AckWait: []time.Duration{ms(1), ms(1), ms(1), ms(1), ms(100)},
		Backoff: []time.Duration{0, ms(1)},
	}})
	n := rounds(3000)
	var ends [3]atomic.Int64
	var wg sync.WaitGroup
	s.run(t, func(_ context.Context, m *Message) error {
		wg.Wait() // for those of the delivery before
		k := m.Token()
		for i, use := range []func() error{k.Ack, func() error { return k.Nack(-1) }, func() error { return k.Reject(nil) }} {
			wg.Go(func() {
				for range rand.IntN(50) {
					runtime.Gosched()
				}
				switch err := use(); {
				case err == nil:
					ends[i].Add(1)
				case !errors.Is(err, group.ErrFenced):
					panic(err)
				}
			})
		}
		if m.Offset%7 == 0 && m.Attempt < 3 {
			return errPoison
		}
		return nil
	})
	p.publish(t, n)
	s.settled()
	wg.Wait()
	c := s.Window()
	assert.EqualValues(t, ends[0].Load(), c.Acked)
	assert.EqualValues(t, ends[2].Load(), c.Rejected)
	assert.EqualValues(t, c.Acked+c.Rejected, n)
	assert.EqualValues(t, c.Deliveries, c.Acked+c.Rejected+c.Failed+c.Expired)
	assert.EqualValues(t, s.Stats().Dropped, c.Rejected)
}

// TestBUG029_InFlightOfSeats takes, hands in, acknowledges, fails, times out, seeks and leaves at random with a limit of 3: what
// is in flight is never less than 0 nor more than 3.
func TestBUG029_InFlightOfSeats(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 64})
	s := newShare(t, p, delivery.ShareConfig{Manual: true, Window: group.SharedConfig{
		MaxInFlight: 3, AckWait: []time.Duration{ms(1)}, MaxDeliveries: 3,
	}})
	p.publish(t, 500)
	seats := []*pull{s.pull(t, 8), s.pull(t, 8), s.pull(t, 8)}
	var tokens []delivery.Token
	seen := map[int]int{}
	for range rounds(200_000) {
		x := seats[rand.IntN(len(seats))]
		switch rand.IntN(10) {
		case 0, 1, 2:
			x.HandIn()
			ms, _, err := x.Take(nil, []int{1, 2, 7}[rand.IntN(3)])
			require.NoError(t, err)
			require.LessOrEqual(t, len(ms), 3)
			for i := range ms {
				tokens = append(tokens, ms[i].Token())
			}
			if len(tokens) > 20 {
				tokens = tokens[len(tokens)-20:]
			}
		case 3:
			x.Commit()
		case 4:
			x.Rest()
		case 5:
			if rand.IntN(50) == 0 {
				require.NoError(t, s.Seek(at(uint64(rand.IntN(500)))))
			}
		case 6:
			if rand.IntN(10) == 0 {
				x.HandIn()
				x.Release()
			}
		default:
			if len(tokens) > 0 {
				k := tokens[rand.IntN(len(tokens))]
				var err error
				switch rand.IntN(4) {
				case 0:
					err = k.Nack(-1)
				case 1:
					err = k.Reject(nil)
				default:
					err = k.Ack()
				}
				if err != nil {
					require.ErrorIs(t, err, group.ErrFenced)
				}
			}
		}
		n := s.Stats().InFlight
		require.True(t, n >= 0 && n <= 3, n)
		seen[n]++
		if rand.IntN(64) == 0 {
			require.NoError(t, s.Check(false))
		}
		if s.Position() == 500 {
			require.NoError(t, s.Seek(at(0)))
		}
	}
	for n := range 4 {
		assert.NotZero(t, seen[n], "%d in flight", n)
	}
}
