package delivery

import (
	"fmt"

	"github.com/leatlog/leat/engine/internal/group"
)

// CountRings lets a test know how often the alarm has rung. It must come before all else.
func (s *Share) CountRings(n *int) {
	s.alarm.Init(s.cfg.Alarms, func(now int64) {
		*n++
		s.ring(now)
	})
}

// Window returns what the window says of its records.
func (s *Share) Window() group.Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Counts()
}

// Errors returns how many failures the share remembers.
func (s *Share) Errors() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.errs)
}

// Room returns how many records the seat takes at a time.
func (t *Seat) Room() int {
	t.share.mu.Lock()
	defer t.share.mu.Unlock()
	return t.room
}

// Walk returns how many seats a feed goes through that gives nobody anything.
func (s *Share) Walk() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(len(s.idle.list), 1) + 2*len(s.busy.list) // the first that has room; busiest and glean
}

// Locked calls f while nobody else can use the share.
func (s *Share) Locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Check says what is wrong with a share, whatever seats do meanwhile; quiet says that they do nothing.
func (s *Share) Check(quiet bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.w.Counts()
	limit := s.cfg.Window.MaxInFlight
	if limit == 0 {
		limit = group.DefaultMaxInFlight
	}
	if c.InFlight < 0 || c.InFlight > limit {
		return fmt.Errorf("%d in flight, of %d", c.InFlight, limit)
	}
	idle, spare := 0, 0
	for _, t := range s.seats.list {
		if t.idle() {
			idle++
		}
		if (t.taker.Taken() > 0) != s.busy.has(t) {
			return fmt.Errorf("seat %d: %d taken, busy: %v", t.id, t.taker.Taken(), s.busy.has(t))
		}
		span := t.span.Load()
		queued := uint32(span) - uint32(span>>32)
		if all := uint32(span) - uint32(t.reaped); int(all) != t.taker.Taken() || int(all) > len(t.entries) {
			return fmt.Errorf("seat %d: %d in its queue of %d, %d taken", t.id, all, len(t.entries), t.taker.Taken())
		}
		for i := uint32(span) - queued; i != uint32(span); i++ {
			d := t.entries[i&t.mask].d
			if _, ok := s.w.Deadline(t.id, d.Token); !ok && uint32(t.span.Load()>>32)-i-1 > queued {
				return fmt.Errorf("seat %d: offset %d has not been begun and is not held", t.id, d.Token.Offset)
			}
		}
		if in := t.taker.In(&s.chooser); in != (t.able() && t.room > 0) {
			return fmt.Errorf("seat %d: in the chooser: %v", t.id, in)
		}
		if quiet && t.idle() && t.ready() && t.queued() == 0 && !s.closed && len(s.gaps) == 0 {
			spare++
			if from := s.busiest(); from != nil {
				return fmt.Errorf("seat %d rests, and seat %d has %d", t.id, from.id, from.queued())
			}
			if s.w.Available(s.cfg.Part.Log().Committed()) {
				return fmt.Errorf("seat %d rests, and there is something", t.id)
			}
		}
	}
	if n := len(s.idle.list); idle != n {
		return fmt.Errorf("%d seats are idle, not %d", idle, n)
	}
	for _, set := range []*seatSet{&s.seats, &s.idle, &s.busy} {
		for i, t := range set.list {
			if int(t.places[set.kind]) != i+1 {
				return fmt.Errorf("set %d: seat %d is at %d and thinks %d", set.kind, t.id, i+1, t.places[set.kind])
			}
		}
	}
	if quiet && c.InFlight >= limit && spare > 0 {
		for _, t := range s.seats.list {
			if t.finished.Load() != t.reaped && !s.cfg.Manual && !s.cfg.AtMostOnce {
				return fmt.Errorf("seat %d has finished something, and others wait for that", t.id)
			}
		}
	}
	return nil
}
