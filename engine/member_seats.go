package engine

import (
	"context"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/partition"
)

// sharedSeat is a seat of a member of a shared group. All of it is under g.mu.
type sharedSeat struct {
	part  *groupPart
	seat  *delivery.Seat
	left  bool // it has been taken away
	ended bool
	stop  context.CancelCauseFunc
}

// takeSeats gives a member of a shared group its seats at a partition. The caller holds g.mu.
func (m *Member) takeSeats(p *groupPart) {
	if m.gone || m.leaving || !m.wants(p.at.Topic) {
		return
	}
	n := m.cfg.MaxConcurrency
	if m.pull != nil {
		n = 1
	}
	share := p.sharing()
	for range n {
		s := &sharedSeat{part: p}
		cfg := delivery.SeatConfig{Slots: pollSlots}
		if m.pull != nil {
			cfg.Notify = m.pull.news.Broadcast
		} else {
			ctx, stop := context.WithCancelCause(m.ctx)
			s.stop = stop
			cfg = delivery.SeatConfig{
				Context:   partition.WithOrigin(ctx, p.gate, !m.opt.Dedicated),
				Handler:   m.handler,
				BatchSize: m.cfg.BatchSize,
				Options:   m.opt,
				OnFailure: m.g.onFailure,
				OnEnd:     func(cause error) { m.g.seatEnded(m, s, cause) },
			}
			m.running++
		}
		s.seat = share.NewSeat(cfg)
		m.seats.add(s, s)
		s.seat.Start()
	}
	if m.pull != nil {
		m.pull.news.Broadcast()
	}
}

func (m *Member) wants(topic string) bool {
	for _, t := range m.cfg.Topics {
		if t == topic {
			return true
		}
	}
	return false
}

// leaveSeats takes a member's seats away, at one topic or at all: what it holds is given back at once, but for what its
// handlers are working on. The caller holds g.mu.
func (m *Member) leaveSeats(t *Topic, cause error) {
	for s := range m.seats.all() {
		if t != nil && s.part.p.t != t || s.ended {
			continue
		}
		s.left = true
		s.seat.Stop(cause)
		if s.stop != nil {
			s.stop(cause)
		}
		if m.pull != nil {
			m.pull.left(s, cause)
			continue
		}
		s.seat.Release()
	}
}

// seatEnded is told by each push seat when its last handler has returned.
func (g *Group) seatEnded(m *Member, s *sharedSeat, cause error) {
	s.seat.Release() // what it holds by tokens
	g.mu.Lock()
	defer g.mu.Unlock()
	s.ended = true
	s.stop(cause)
	m.running--
	m.seats.remove(s)
	if !s.left {
		g.dismiss(m, cause) // there was a gap
	}
	g.settle(m)
}
