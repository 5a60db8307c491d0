package delivery_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/engine/internal/retention"
)

// shareModes are how records may be settled.
var shareModes = map[string]delivery.ShareConfig{
	"AtLeastOnce": {},
	"AtMostOnce":  {AtMostOnce: true},
	"Manual":      {Manual: true},
}

// TestShare_EachRecordOnce gives each record to one of the seats, in every mode and by every kind of seat.
func TestShare_EachRecordOnce(t *testing.T) {
	const n = 500
	for mode, cfg := range shareModes {
		each := func(m *Message, b *book) error {
			if int64(binary.LittleEndian.Uint64(m.Value)) != m.Offset || m.Topic != "topic" || m.Attempt != 1 {
				return errors.New("wrong record")
			}
			b.add(m)
			if cfg.Manual {
				return m.Ack()
			}
			if err := m.Ack(); !errors.Is(err, delivery.ErrNoToken) {
				return errors.New("a token")
			}
			return nil
		}
		check := func(t *testing.T, s *share, b *book) {
			s.settled()
			s.check(t)
			assert.ElementsMatch(t, upTo(0, n), b.offsets())
			assert.Equal(t, int64(n), s.Position())
			assert.Zero(t, s.Lag())
			x := s.Window()
			assert.EqualValues(t, n, x.Acked)
			assert.EqualValues(t, n, x.Deliveries)
			assert.Zero(t, s.Stats().Fenced)
			assert.EqualValues(t, n, s.gate.Load())
		}
		t.Run(mode+"/one", func(t *testing.T) {
			watchdog(t)
			p := newPart(t, partitionSetup{segments: 64})
			s, b := newShare(t, p, cfg), &book{}
			for range 3 {
				s.run(t, func(_ context.Context, m *Message) error { return each(m, b) })
			}
			p.publish(t, n)
			check(t, s, b)
		})
		t.Run(mode+"/batch", func(t *testing.T) {
			watchdog(t)
			p := newPart(t, partitionSetup{segments: 64})
			s, b := newShare(t, p, cfg), &book{}
			p.publish(t, n/2)
			var mu sync.Mutex
			most := 0
			for range 2 {
				s.newSeat(t, delivery.SeatConfig{BatchSize: 10, Handler: delivery.Handler{Batch: func(_ context.Context, ms []Message) error {
					mu.Lock()
					most = max(most, len(ms))
					mu.Unlock()
					for i := range ms {
						if err := each(&ms[i], b); err != nil {
							return err
						}
					}
					return nil
				}}}).Start()
			}
			p.publish(t, n/2)
			check(t, s, b)
			assert.Equal(t, 10, most)
		})
		t.Run(mode+"/pull", func(t *testing.T) {
			watchdog(t)
			p := newPart(t, partitionSetup{segments: 64})
			s, b := newShare(t, p, cfg), &book{}
			x, y := s.pull(t, 128), s.pull(t, 128)
			p.publish(t, n)
			for b.len() < n {
				for _, seat := range []*pull{x, y} {
					for _, m := range seat.messages(t, 17) {
						require.NoError(t, each(&m, b))
					}
					require.LessOrEqual(t, seat.Out(), 17)
					seat.HandIn()
					require.Zero(t, seat.Out())
				}
			}
			check(t, s, b)
		})
	}
}

// TestShare_ByTurns: of seats with room each gets one in turn.
func TestShare_ByTurns(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{})
	s := newShare(t, p, delivery.ShareConfig{})
	hands := []*hand{newHand(), newHand(), newHand()}
	for _, h := range hands {
		s.run(t, h.handle)
	}
	for _, h := range hands { // all rest before the next record comes
		await(p.idle)
		p.publish(t, 1)
		(<-h.calls).end(nil)
		await(p.idle)
	}
	p = newPart(t, partitionSetup{})
	s = newShare(t, p, delivery.ShareConfig{Manual: true})
	x, y := s.pull(t, 64), s.pull(t, 64)
	require.Empty(t, x.take(t, 64))
	require.Empty(t, y.take(t, 64))
	p.publish(t, 6)
	await(p.idle)
	assert.Equal(t, []int64{0, 2, 4}, x.take(t, 64))
	assert.Equal(t, []int64{1, 3, 5}, y.take(t, 64))
	assert.NotZero(t, x.notified.Load())
	assert.NotZero(t, y.notified.Load())
}

// TestShare_SeatsAreParallel has as many handlers run at a time as there are seats, and no two of one seat.
func TestShare_SeatsAreParallel(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{workers: 4})
	s := newShare(t, p, delivery.ShareConfig{})
	hands := make([]*hand, 4)
	for i := range hands {
		hands[i] = newHand()
		s.run(t, hands[i].handle)
	}
	p.publish(t, 40)
	for range 10 {
		var calls []*call
		for _, h := range hands {
			calls = append(calls, <-h.calls)
		}
		for i, h := range hands {
			assert.Empty(t, h.calls)
			calls[i].end(nil)
		}
	}
	s.settled()
}

// TestShare_NothingIsBehindAHandlerThatHangs lets a seat that is fast, and so has many records to come, hang in each of its
// first records: another one gets all the others, and what the first has finished is settled.
func TestShare_NothingIsBehindAHandlerThatHangs(t *testing.T) {
	for mode, cfg := range shareModes {
		for _, limit := range []int{1, 2, 3, 1000} {
			t.Run(fmt.Sprintf("%s/limit=%d", mode, limit), func(t *testing.T) {
				watchdog(t)
				for hang := range int64(rounds(40)) {
					cfg.Window.MaxInFlight = limit
					if cfg.Manual && limit == 1 {
						continue // the one that hangs is all that may be in flight
					}
					p := newPart(t, partitionSetup{segments: 64})
					s := newShare(t, p, cfg)
					out := make(chan struct{})
					var in atomic.Bool
					handle := func(_ context.Context, m *Message) error {
						if m.Offset == hang && in.CompareAndSwap(false, true) {
							<-out
						}
						if cfg.Manual {
							return m.Ack()
						}
						return nil
					}
					n := 200
					if limit == 1 && !cfg.AtMostOnce {
						n = int(hang) + 1 // no more can be in flight
					}
					s.run(t, handle)
					s.run(t, handle)
					p.publish(t, n)
					want := int64(n - 1)
					if cfg.AtMostOnce {
						want++
					}
					await(func() bool { return in.Load() && int64(s.Window().Acked) == want })
					s.check(t)
					close(out)
					s.settled()
				}
			})
		}
	}
}

// TestShare_SlowBatches: what a batch takes does not make batches small.
func TestShare_SlowBatches(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 1000})
	s := newShare(t, p, delivery.ShareConfig{})
	p.publish(t, 640)
	var sizes []int
	s.newSeat(t, delivery.SeatConfig{BatchSize: 64, Handler: delivery.Handler{Batch: func(_ context.Context, ms []Message) error {
		sizes = append(sizes, len(ms))
		for start := p.clock.Now(); p.clock.Now() < start+5e6; { // much longer than a seat should need for what it has
			runtime.Gosched()
		}
		return nil
	}}}).Start()
	s.settled()
	assert.LessOrEqual(t, len(sizes), 20, "all that there is of a segment, up to the limit: %v", sizes)
}

// TestShare_WhatEndsAHandler: each of the ways in which a handler can fail.
func TestShare_WhatEndsAHandler(t *testing.T) {
	watchdog(t)
	for mode, cfg := range shareModes {
		for _, batch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/batch=%v", mode, batch), func(t *testing.T) {
				p := newPart(t, partitionSetup{})
				cfg.Window = group.SharedConfig{MaxDeliveries: 3}
				s := newShare(t, p, cfg)
				b := &book{}
				crowds := 0
				one := func(_ context.Context, m *Message) error {
					b.add(m)
					if m.Attempt > 1 {
						if cfg.Manual {
							return m.Ack()
						}
						return nil
					}
					switch m.Offset {
					case 0:
						return errPoison
					case 1:
						panic("handler")
					case 2:
						runtime.Goexit()
					case 3:
						return fmt.Errorf("with a reason: %w", delivery.ErrRejected)
					case 4:
						if crowds++; crowds <= 3 {
							return partition.ErrWorkersBlocked
						}
					}
					if cfg.Manual {
						return m.Ack()
					}
					return nil
				}
				failures := map[int64]error{}
				c := delivery.SeatConfig{
					Handler: delivery.Handler{One: one},
					OnFailure: func(_ context.Context, m *Message, err error) {
						if failures[m.Offset] == nil {
							failures[m.Offset] = err
						}
						if cfg.Manual {
							assert.ErrorIs(t, m.Ack(), group.ErrFenced, "it is decided")
						}
						if m.Offset%2 == 0 {
							runtime.Goexit()
						}
						panic("hook")
					},
				}
				if batch {
					c.Handler = delivery.Handler{Batch: func(ctx context.Context, ms []Message) error { return one(ctx, &ms[0]) }}
					c.BatchSize = 1
				}
				x := s.newSeat(t, c)
				p.publish(t, 6)
				x.Start()
				s.settled()
				x.Stop(errOver)
				<-x.ended
				assert.Equal(t, errOver, x.cause)
				assert.ErrorIs(t, failures[0], errPoison)
				var panicked *delivery.PanicError
				assert.ErrorAs(t, failures[1], &panicked)
				assert.ErrorIs(t, failures[2], delivery.ErrGoexit)
				assert.ErrorIs(t, failures[3], delivery.ErrRejected)
				assert.ErrorIs(t, failures[4], partition.ErrWorkersBlocked)
				assert.Nil(t, failures[5])
				if cfg.AtMostOnce {
					assert.Equal(t, upTo(0, 6), b.offsets())
					assert.Empty(t, s.tales())
					return
				}
				for _, e := range b.entries() {
					if e.off == 4 {
						assert.Equal(t, 1, e.attempt, "crowded workers are no failure of the record")
					}
				}
				assert.Equal(t, []string{"drop 3/1 leat: record rejected: with a reason: leat: record rejected"}, s.tales())
				assert.EqualValues(t, 6, s.Position())
				assert.Zero(t, s.Errors())
			})
		}
	}
}

// TestBUG058_RetentionTakesWhatIsHeld takes records away that are held by a token, queued, delayed, dead and new: each is
// lost once, and the others come with their own content.
func TestBUG058_RetentionTakesWhatIsHeld(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 4})
	cfg := delivery.ShareConfig{Manual: true, Window: group.SharedConfig{MaxDeliveries: 2}}
	s := newShare(t, p, cfg)
	x := s.pull(t, 64)
	p.publish(t, 10)
	var tokens []delivery.Token
	for _, m := range x.messages(t, 4) {
		tokens = append(tokens, m.Token())
	}
	x.HandIn()
	for _, m := range x.messages(t, 4) { // one segment
		tokens = append(tokens, m.Token())
	}
	x.HandIn()
	require.Len(t, tokens, 8)
	require.NoError(t, tokens[1].Ack())
	require.NoError(t, tokens[2].Nack(1e15))
	require.NoError(t, tokens[5].Nack(-1))
	require.NoError(t, p.TruncateBefore(background, 4))
	ms, gap, err := x.Take(nil, 64)
	require.NoError(t, err)
	require.Empty(t, ms)
	assert.Equal(t, delivery.Gap{From: 0, To: 4}, gap)
	assert.EqualValues(t, 3, s.Stats().Lost, "1 was settled")
	assert.EqualValues(t, 3, x.Stats(0).Lost)
	assert.EqualValues(t, 4, s.Position())
	for i, k := range tokens {
		if err := k.Ack(); i < 4 || i == 5 {
			assert.ErrorIs(t, err, group.ErrFenced, "%d", i)
		} else {
			assert.NoError(t, err, "%d", i)
		}
	}
	for _, want := range []int64{5, 8, 9} {
		for _, m := range x.messages(t, 1) {
			assert.Equal(t, want, m.Offset)
			assert.EqualValues(t, want, binary.LittleEndian.Uint64(m.Value))
			require.NoError(t, m.Ack())
			x.HandIn()
		}
	}
	assert.EqualValues(t, 10, s.Position())
	assert.Equal(t, group.Counts{Deliveries: 11, Redeliveries: 1, Acked: 7, Failed: 2, Lost: 3}, s.Window())
}

// TestShare_LostInAQueue: what retention takes from the queue of a seat that hangs is not delivered, and told by another one.
func TestShare_LostInAQueue(t *testing.T) {
	watchdog(t)
	for _, limit := range []int{0, 8} {
		p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 64}, segments: 8, onFull: partition.DropOldest})
		s := newShare(t, p, delivery.ShareConfig{Manual: true, Window: group.SharedConfig{MaxInFlight: limit}})
		x, y := s.pull(t, 64), s.pull(t, 64)
		require.Empty(t, x.take(t, 64)) // it waits, and nobody comes
		p.publish(t, 200)
		await(p.idle)
		var all []int64
		gaps := int64(0)
		x.Rest()
		for {
			ms, gap, err := y.Take(nil, 64)
			require.NoError(t, err)
			gaps += gap.To - gap.From
			for _, m := range ms {
				require.EqualValues(t, m.Offset, binary.LittleEndian.Uint64(m.Value))
				all = append(all, m.Offset)
				require.NoError(t, m.Ack())
			}
			y.HandIn()
			if len(ms) == 0 && gap == (delivery.Gap{}) {
				break
			}
		}
		first := int64(p.Log().First())
		assert.Equal(t, upTo(first, 200), all)
		assert.Equal(t, first, gaps)
		assert.Equal(t, first, s.Stats().Lost)
		s.check(t)
	}
}

// TestShare_FailOnGap: the seat that finds a gap ends with it.
func TestShare_FailOnGap(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 4})
	s := newShare(t, p, delivery.ShareConfig{FailOnGap: true})
	p.publish(t, 8)
	require.NoError(t, p.TruncateBefore(background, 4))
	x := s.run(t, nothing)
	<-x.ended
	var off *partition.OffsetError
	require.ErrorAs(t, x.cause, &off)
	assert.EqualValues(t, 4, s.Position())
	y := s.pull(t, 8)
	assert.Equal(t, upTo(4, 8), y.take(t, 8))
	y.HandIn()
	p.publish(t, 4)
	require.NoError(t, p.TruncateBefore(background, 12))
	_, gap, err := y.Take(nil, 8)
	require.ErrorAs(t, err, &off)
	assert.Zero(t, gap)
	_, _, err = y.Take(nil, 8)
	require.ErrorAs(t, err, &off, "it stays ended")
}

// TestShare_GapsAreTold also when nobody has anything else to do.
func TestShare_GapsAreTold(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{segments: 4})
	s := newShare(t, p, delivery.ShareConfig{})
	x := s.run(t, nothing)
	y := s.newSeat(t, delivery.SeatConfig{Handler: delivery.Handler{One: func(context.Context, *Message) error { return nil }}})
	_ = y // it has not been started, and tells of nothing
	x.Pause()
	p.publish(t, 8)
	require.NoError(t, p.TruncateBefore(background, 8))
	assert.False(t, s.Drained())
	x.Resume()
	s.settled()
	assert.Equal(t, []string{"gap 0-8"}, s.tales())
	assert.EqualValues(t, 8, x.Stats(0).Lost)
}

// TestShare_GateFollowsTheFloor: a publisher that waits for room goes on as records are settled, by whoever it is.
func TestShare_GateFollowsTheFloor(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 16}, segments: 4})
	s := newShare(t, p, delivery.ShareConfig{Manual: true})
	x := s.pull(t, 64)
	p.publish(t, 16)
	published := make(chan error)
	go func() {
		_, err := p.Publish(background, value(16))
		published <- err
	}()
	var tokens []delivery.Token
	for range 4 {
		for _, m := range x.messages(t, 64) {
			tokens = append(tokens, m.Token())
		}
		x.HandIn()
	}
	require.Len(t, tokens, 16)
	for _, k := range tokens[1:] {
		require.NoError(t, k.Ack())
		require.Zero(t, s.gate.Load())
		require.Empty(t, published)
	}
	require.NoError(t, tokens[0].Ack())
	require.NoError(t, <-published)
	assert.EqualValues(t, 16, s.gate.Load())
}

// TestShare_MemoryComesBack: when all has ended no segment is kept, by whatever had been looking at it.
func TestShare_MemoryComesBack(t *testing.T) {
	watchdog(t)
	p := newPart(t, partitionSetup{limits: retention.Limits{MaxRecords: 64}, segments: 8, onFull: partition.DropOldest})
	s := newShare(t, p, delivery.ShareConfig{Window: group.SharedConfig{MaxDeliveries: 1}})
	x := s.run(t, func(_ context.Context, m *Message) error {
		if m.Offset%3 == 0 {
			return errPoison
		}
		return nil
	})
	y := s.pull(t, 64)
	p.publish(t, 60)
	y.take(t, 5)
	y.HandIn()
	assert.Empty(t, y.take(t, 0))
	s.settled()
	used := p.pool.Used()
	p.publish(t, 64)
	s.settled()
	p.publish(t, 64)
	s.settled()
	assert.Equal(t, used, p.pool.Used(), "no segment is pinned beside those of the log")
	x.Stop(errOver)
	<-x.ended
}
