package delivery

import (
	"math"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/segment"
)

// The following are of a pull seat, and for one goroutine at a time.

// Gap is what a pull seat tells of records that were dropped before they were taken: [From, To). The zero value is none.
type Gap struct{ From, To int64 }

// Take appends the records that the seat gets now to dst, at most max and all of one segment. They are views that are valid
// until the next Take or Leave, and out until they are handed in, which has to come before the next Take. If there are none the seat waits for some, and Notify is called when there is one; Rest ends
// that.
func (t *Seat) Take(dst []Message, max int) ([]Message, Gap, error) {
	s := t.share
	s.mu.Lock()
	defer s.unlock()
	t.setIdle(false)
	t.reap()
	if t.cause != nil || t.held || t.paused {
		return dst, Gap{}, t.cause
	}
	t.room = min(max, len(t.entries))
	t.open()
	s.feed(s.cfg.Clock.Now())
	if len(s.gaps) > 0 {
		g := s.gaps[0]
		s.gaps = s.gaps[1:]
		t.n.lost += int64(g.to - g.from)
		t.stats.set(&t.n)
		if s.cfg.FailOnGap {
			t.cause = s.cfg.Part.ReadError(g.from)
			t.rest()
			return dst, Gap{}, t.cause
		}
		return dst, Gap{int64(g.from), int64(g.to)}, nil
	}
	from := len(dst)
	for len(dst)-from < max {
		next := t.peek()
		if next == nil {
			break
		}
		off := next.d.Token.Offset
		if len(dst) > from && !t.seg.Jump(off) {
			break
		}
		ok := !s.cfg.AtMostOnce || s.w.Ack(t.id, next.d.Token) == nil
		t.begin()
		if !ok || !t.read(off, &t.msg.Record) { // given back or dropped meanwhile
			t.finish(skipped, nil)
			continue
		}
		t.msg.Attempt, t.msg.hold = next.d.Attempt, Token{t, next.d.Token}
		dst = append(dst, t.msg)
		if next.d.Attempt > 1 {
			t.n.redelivered++
		}
	}
	if n := len(dst) - from; n > 0 {
		t.n.handled += int64(n)
		t.n.delivered += int64(n)
		t.stats.set(&t.n)
		t.rest()
		return dst, Gap{}, nil
	}
	t.setIdle(true)
	return dst, Gap{}, nil
}

// Rest says that nobody waits for the seat's records.
func (t *Seat) Rest() {
	t.share.mu.Lock()
	defer t.share.unlock()
	t.rest()
}

// rest is Rest under share.mu.
func (t *Seat) rest() {
	t.setIdle(false)
	t.room = 0
	t.open()
	if t.queued() > 0 {
		t.recall()
		t.share.review(t.share.cfg.Clock.Now())
	}
}

// HandIn says that the records that were taken are done with. With Manual that settles nothing.
func (t *Seat) HandIn() {
	if t.begun == 0 {
		return
	}
	t.share.mu.Lock()
	defer t.share.unlock()
	t.finish(processed, nil)
	t.reap()
}

// Out reports how many records have been taken and not handed in.
func (t *Seat) Out() int { return t.begun }

// Commit settles all records that were taken, and have not been settled otherwise.
func (t *Seat) Commit() { _ = t.commit(math.MaxInt64) }

// CommitBelow settles those below an offset. That must not lie beyond what was ever handed out: the error is an OffsetError.
func (t *Seat) CommitBelow(off int64) error { return t.commit(off) }

func (t *Seat) commit(below int64) error {
	s := t.share
	s.mu.Lock()
	defer s.unlock()
	if s.closed {
		return s.cause
	}
	if next := int64(s.w.Next()); below > next && below != math.MaxInt64 || below < 0 {
		return &partition.OffsetError{Asked: below, First: s.Position(), Next: next}
	}
	if below == math.MaxInt64 {
		if t.begun > 0 {
			t.finish(processed, nil)
		}
		t.reap()
	}
	s.w.AckHeld(t.id, uint64(below))
	s.review(s.cfg.Clock.Now())
	return nil
}

// Leave takes a stopped seat off the share. What it holds is released; its views are not valid any more.
func (t *Seat) Leave() {
	s := t.share
	s.mu.Lock()
	defer s.unlock()
	now := s.cfg.Clock.Now()
	t.over = true
	t.recall()
	if t.begun > 0 {
		t.finish(skipped, nil)
	}
	t.reap()
	s.w.Release(t.id, now)
	t.seg.Close()
	t.msg.Record = segment.Record{}
	t.leave(now)
}
