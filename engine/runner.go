package engine

import (
	"context"

	"github.com/leatlog/leat/engine/internal/delivery"
	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/partition"
)

// newRunner returns what delivers the records of a partition to one owner in order: of the partition, or of each key.
func newRunner(ctx context.Context, cfg *delivery.Config, part *partition.Partition, gate *partition.Gate, pool *dispatch.Pool, opt dispatch.Options, start delivery.Start) (delivery.Runner, error) {
	if cfg.Parallel > 0 {
		return delivery.NewKeyed(ctx, cfg, part, gate, pool, opt, start)
	}
	return delivery.New(ctx, cfg, part, gate, pool, opt, start)
}

// solo is the only seat of a share: what delivers the records of a partition to a subscription that settles them by hand.
type solo struct {
	*delivery.Seat
	part *partition.Partition
	gate *partition.Gate
}

// newSolo makes the solo for a partition.
func (s *Subscription) newSolo(p *Partition, gate *partition.Gate, start delivery.Start) (delivery.Runner, error) {
	e, c := s.t.e, s.cfg
	gate.Evicted = s.evicted
	floor, err := p.p.AddGate(gate, start)
	if err != nil {
		return nil, err
	}
	window := c.Settling.window(c.Backoff, c.MaxDeliveries)
	window.InOrder = true
	share := delivery.NewShare(delivery.ShareConfig{
		Topic:        s.t.name,
		Part:         p.p,
		Window:       window,
		Pool:         e.work,
		Alarms:       e.alarms,
		Clock:        &e.clock,
		Context:      partition.WithOrigin(s.ctx, gate, true),
		FailOnGap:    c.Gap == FailOnGap,
		Manual:       true,
		Rested:       &e.rested,
		OnGap:        s.onGap,
		OnDrop:       s.onDrop,
		Bury:         s.bury,
		BuryRejected: c.DeadLetterRejected,
	}, floor)
	share.SetGate(gate)
	seat := share.NewSeat(delivery.SeatConfig{
		Context:   partition.WithOrigin(s.ctx, gate, !c.Dedicated),
		Handler:   s.lane.Handler,
		BatchSize: c.BatchSize,
		Options:   s.opt,
		OnFailure: s.onFailure,
		OnEnd:     func(cause error) { share.Close(cause); s.lane.OnEnd(cause) },
	})
	return &solo{seat, p.p, gate}, nil
}

// Stop ends the seat, and the gate is gone.
func (o *solo) Stop(cause error) {
	o.Seat.Stop(cause)
	o.part.RemoveGate(o.gate)
}
