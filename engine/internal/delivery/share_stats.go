package delivery

import "time"

// ShareStats is what a share knows of its records.
type ShareStats struct {
	InFlight  int // held by seats, or by those who have their tokens
	Delayed   int // waiting to be delivered again
	Dead      int // given up, and not yet in the dead-letter topic
	Lost      int64
	Dropped   int64 // given up
	Buried    int64 // in the dead-letter topic
	Expired   int64 // not settled in time
	Fenced    int64 // outcomes and tokens that came too late
	Delivered int64 // settled as processed
}

// LaneStats returns a snapshot of what all seats together have done; now is the engine's clock.
func (s *Share) LaneStats(now int64) Stats {
	r := new(shared).read(s.cfg.Part, s.Position, now)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.w.Counts()
	r.Delivered, r.Failed, r.Redelivered = int64(c.Acked), int64(c.Failed), int64(c.Redeliveries)
	r.Dropped, r.Buried, r.Lost, r.InFlight = s.n.dropped, s.n.buried, s.n.lost, c.InFlight
	for _, seat := range s.seats.list {
		r.HandlerTime += time.Duration(seat.stats.busy.Load())
		if since, yes := seat.Inside(); yes {
			r.Running, r.RunningFor = true, max(r.RunningFor, since)
		}
	}
	return r
}

// Stats returns a snapshot.
func (s *Share) Stats() ShareStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.w.Counts()
	return ShareStats{
		InFlight:  c.InFlight,
		Delayed:   c.Delayed + c.Again,
		Dead:      c.Dead,
		Lost:      s.n.lost,
		Dropped:   s.n.dropped,
		Buried:    s.n.buried,
		Expired:   s.n.expired,
		Fenced:    s.n.fenced,
		Delivered: int64(c.Acked),
	}
}
