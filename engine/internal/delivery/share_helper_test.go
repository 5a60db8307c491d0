package delivery_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/due"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/atomicx"
)

// share is a share under test with what it has told.
type share struct {
	*delivery.Share
	part   *part
	gate   *partition.Gate
	rested atomicx.Event
	rings  int // read when nobody rings
	open   atomic.Int32

	mu   sync.Mutex
	told []string // gaps and drops, in order
}

func (s *share) tell(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

func (s *share) tales() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.told...)
}

// newShare returns a share that begins at 0. When the test ends its seats have ended, or it fails, and nothing is left of it.
func newShare(t testing.TB, p *part, c delivery.ShareConfig) *share {
	t.Helper()
	s := &share{part: p, gate: &partition.Gate{Name: "share", Gating: true}}
	alarms := due.NewAlarms(p.clock)
	c.Topic, c.Part, c.Pool, c.Alarms, c.Clock, c.Context, c.Rested = "topic", p.Partition, p.workers, alarms, p.clock, background, &s.rested
	if c.OnGap == nil {
		c.OnGap = func(_ int, from, to int64) { s.tell("gap %d-%d", from, to) }
	}
	if c.OnDrop == nil {
		c.OnDrop = func(_ context.Context, m *Message, err error) { s.tell("drop %d/%d %v", m.Offset, m.Attempt, err) }
	}
	s.Share = delivery.NewShare(c, 0)
	s.CountRings(&s.rings)
	_, err := p.AddGate(s.gate, at(0))
	require.NoError(t, err)
	s.SetGate(s.gate)
	t.Cleanup(func() {
		require.NoError(t, s.Check(false))
		s.Close(errOver)
		p.RemoveGate(s.gate)
		alarms.Close()
		<-alarms.Done()
		require.Zero(t, s.open.Load(), "seats")
	})
	return s
}

// check is for when nobody is at work but handlers that hang.
func (s *share) check(t require.TestingT) { require.NoError(t, s.Check(true)) }

// seat is a seat under test.
type seat struct {
	*delivery.Seat
	*ending
	share *share
}

// newSeat returns a push seat that has not been started. It is stopped, and checked to have ended, when the test ends.
func (s *share) newSeat(t testing.TB, c delivery.SeatConfig) *seat {
	t.Helper()
	x := &seat{ending: newEnding(), share: s}
	ctx, cancel := context.WithCancel(partition.WithOrigin(background, s.gate, true))
	c.Context = ctx
	c.OnEnd = func(err error) {
		s.open.Add(-1)
		x.tell(err)
	}
	s.open.Add(1)
	x.Seat = s.NewSeat(c)
	t.Cleanup(func() {
		cancel()
		x.Stop(errOver)
		x.Start()
		x.once(t)
	})
	return x
}

// run is newSeat with a handler, started.
func (s *share) run(t testing.TB, h Handler) *seat {
	t.Helper()
	x := s.newSeat(t, delivery.SeatConfig{Handler: delivery.Handler{One: h}})
	x.Start()
	return x
}

// pull is a pull seat with its own event.
type pull struct {
	*delivery.Seat
	notified atomic.Int64
	news     atomicx.Event
}

func (s *share) pull(t testing.TB, slots int) *pull {
	t.Helper()
	x := &pull{}
	x.Seat = s.NewSeat(delivery.SeatConfig{Slots: slots, Notify: func() {
		x.notified.Add(1)
		x.news.Broadcast()
	}})
	x.Start()
	s.open.Add(1)
	t.Cleanup(func() {
		x.Stop(errOver)
		x.Leave()
		s.open.Add(-1)
	})
	return x
}

// take is a Take that meets no gap and no end, of which the offsets are returned.
func (x *pull) take(t testing.TB, max int) (offs []int64) {
	t.Helper()
	for _, m := range x.messages(t, max) {
		offs = append(offs, m.Offset)
	}
	return offs
}

func (x *pull) messages(t testing.TB, max int) []Message {
	t.Helper()
	ms, gap, err := x.Take(nil, max)
	require.NoError(t, err)
	require.Zero(t, gap)
	return ms
}

// hand is a handler whose calls end when the test says how.
type hand struct {
	calls chan *call
}

type call struct {
	off     int64
	attempt int
	token   delivery.Token
	out     chan func() error
}

func newHand() *hand { return &hand{calls: make(chan *call, 1000)} }

func (h *hand) handle(_ context.Context, m *Message) error {
	c := &call{m.Offset, m.Attempt, m.Token(), make(chan func() error)}
	h.calls <- c
	return (<-c.out)()
}

func (c *call) end(err error) { c.out <- func() error { return err } }

// ms is a number of milliseconds.
func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// settled waits until all that has been published is settled.
func (s *share) settled() { await(s.Drained) }

func newWaiter() *atomicx.Waiter { return atomicx.NewWaiter() }
