package delivery_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/internal/atomicx"
)

// poll is a poller from beginning to end: it waits for records, takes them and hands them in.
func poll(t *testing.T, s *share, over *atomic.Bool, use func(m *Message)) {
	var news atomicx.Event
	w := atomicx.NewWaiter()
	x := s.NewSeat(delivery.SeatConfig{Slots: 32, Notify: news.Broadcast})
	x.Start()
	defer x.Leave()
	defer x.Stop(errOver)
	var buf []Message
	for range 20 {
		for {
			var gap delivery.Gap
			var err error
			news.Prepare(w)
			buf, gap, err = x.Take(buf[:0], 1+rand.IntN(9))
			assert.NoError(t, err)
			if len(buf) > 0 || gap != (delivery.Gap{}) || over.Load() {
				news.Cancel(w)
				break
			}
			done := make(chan struct{})
			timer := time.AfterFunc(ms(5), func() { close(done) })
			news.Wait(w, done)
			timer.Stop()
			if over.Load() {
				x.Rest()
				return
			}
		}
		for i := range buf {
			use(&buf[i])
		}
		if rand.IntN(2) == 0 {
			x.Commit()
		} else {
			x.HandIn()
		}
	}
}

// TestBUG101_WaitingPollsAreNotForgotten has many pollers wait, with nobody to wake them but Notify, and publishers that come
// now and then: each record is taken by one of them, and none waits for ever.
func TestBUG101_WaitingPollsAreNotForgotten(t *testing.T) {
	watchdog(t)
	n := int64(rounds(20_000))
	p := newPart(t, partitionSetup{segments: 256})
	s := newShare(t, p, delivery.ShareConfig{Window: group.SharedConfig{MaxInFlight: 30}})
	var taken atomic.Int64
	counts := make([]atomic.Int32, n)
	var wg sync.WaitGroup
	var all []*delivery.Seat
	var events []*atomicx.Event
	for range 16 {
		news := new(atomicx.Event)
		x := s.NewSeat(delivery.SeatConfig{Slots: 16, Notify: news.Broadcast})
		x.Start()
		all, events = append(all, x), append(events, news)
		wg.Go(func() {
			w := atomicx.NewWaiter()
			defer x.Leave()
			var buf []Message
			for taken.Load() < n {
				news.Prepare(w)
				var err error
				if buf, _, err = x.Take(buf[:0], 1+rand.IntN(8)); err != nil {
					news.Cancel(w)
					return
				}
				if len(buf) == 0 {
					news.Wait(w, nil)
					continue
				}
				news.Cancel(w)
				for i := range buf {
					counts[buf[i].Offset].Add(1)
				}
				taken.Add(int64(len(buf)))
				x.HandIn()
				if rand.IntN(16) == 0 {
					x.Pause()
					x.Resume()
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range n / 2 {
				_, err := p.Publish(background, value(0))
				assert.NoError(t, err)
				if rand.IntN(10) == 0 {
					await(func() bool { return s.Lag() == 0 || taken.Load() > 0 })
				}
			}
		})
	}
	await(func() bool { return taken.Load() >= n/2*2 })
	taken.Store(n)
	for i, x := range all {
		x.Stop(errOver)
		events[i].Broadcast()
	}
	wg.Wait()
	for off := range n / 2 * 2 {
		require.EqualValues(t, 1, counts[off].Load(), "offset %d", off)
	}
	require.Equal(t, n/2*2, s.Position())
}
