package group

import "time"

// Postpone gives back a record whose delivery did not count: it is delivered again after the delay, under the same attempt.
func (s *Shared) Postpone(m MemberID, t Token, delay time.Duration, now int64) error {
	x, err := s.find(m, t)
	if err != nil {
		return err
	}
	low := uint32(t.Offset)
	s.drop(low, x)
	if x.attempt > 1 {
		s.counts.Redeliveries--
	}
	s.counts.Deliveries--
	x.attempt--
	s.counts.Delayed++
	s.wait(low, x, stateDelayed, after(now, delay))
	return nil
}

// ReleaseBut is Release that leaves the member what keep says, by its offset.
func (s *Shared) ReleaseBut(m MemberID, keep func(offset uint64) bool, now int64) (n int) {
	for i := range s.held {
		l := &s.held[i]
		low := l.head
		for range l.n {
			x := s.at(low)
			following := x.next
			if x.member == m && (keep == nil || !keep(s.offset(low))) {
				s.drop(low, x)
				s.counts.Released++
				s.fail(low, x, DeathReleased, now, now)
				n++
			}
			low = following
		}
	}
	return n
}

// Deadline returns until when the member has to settle a record that it holds.
func (s *Shared) Deadline(m MemberID, t Token) (at int64, ok bool) {
	x, err := s.find(m, t)
	if err != nil {
		return 0, false
	}
	return x.due, true
}

// AckHeld settles all records below an offset that the member holds, and returns how many.
func (s *Shared) AckHeld(m MemberID, below uint64) (n int) {
	for i := range s.held {
		l := &s.held[i]
		low := l.head
		for range l.n {
			x := s.at(low)
			following, off := x.next, s.offset(low)
			if x.member == m && off < below {
				s.drop(low, x)
				s.counts.Acked++
				x.state = stateSettled
				s.settled++
				n++
			}
			low = following
		}
	}
	s.advance()
	return n
}
