package delivery

import (
	"errors"
	"fmt"
	"math"

	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/segment"
)

// The following are of a pull seat, and for one goroutine at a time.

// Gap is what a pull seat tells of records that were dropped before they were taken: [From, To). The zero value is none.
type Gap struct{ From, To int64 }

// Take appends the records that the seat gets now to dst, at most max and all of one segment. They are views that are valid
// until the next Take or Leave, and out until they are handed in, which has to come before the next Take. If there are none
// the seat waits for some, and Notify is called when there is one, or when something else has changed; Rest ends that.
//
// The error is what ends the seat, or ErrFrozen: then Thaw has to be called, under no lock, and after it Take again.
func (t *Seat) Take(dst []Message, max int) ([]Message, Gap, error) {
	s := t.share
	s.mu.Lock()
	defer s.unlock()
	t.room = min(max, len(t.entries))
	t.setIdle(true)
	for again := true; again; {
		t.reap()
		t.open()
		t.here = true
		s.feed(s.cfg.Clock.Now())
		t.here = false
		if t.cause != nil {
			t.rest()
			return dst, Gap{}, t.cause
		}
		if !t.able() {
			break
		}
		if len(s.gaps) > 0 {
			return dst, t.takeGap(), t.cause
		}
		from := len(dst)
		var cold bool
		if dst, again, cold = t.take(dst, from+max); cold {
			t.rest()
			return dst, Gap{}, ErrFrozen
		}
		if len(dst) > from {
			n := int64(len(dst) - from)
			t.n.handled += n
			t.n.delivered += n
			t.stats.set(&t.n)
			t.rest()
			return dst, Gap{}, nil
		}
	}
	t.unload()
	return dst, Gap{}, nil
}

// ErrFrozen says that what a pull seat takes next has to be loaded from the files first.
var ErrFrozen = errors.New("leat: records have to be loaded first")

// Thaw loads what Take has to have. It waits for the disk. The error is why that cannot be read.
func (t *Seat) Thaw() error {
	if err := t.share.cfg.Part.Log().Warm(t.frozen); err != nil {
		return t.share.cfg.Part.Unreadable(err)
	}
	return nil
}

// take begins with what is in the queue, up to end messages in dst. It reports whether it has skipped something, or found that the
// first record has to be loaded. The caller holds share.mu.
func (t *Seat) take(dst []Message, end int) (_ []Message, skips, cold bool) {
	from := len(dst)
	for len(dst) < end {
		next := t.peek()
		if next == nil {
			break
		}
		off, more := next.d.Token.Offset, len(dst) > from
		if more && !t.seg.Jump(off) {
			break
		}
		state := t.readWarm(off, &t.msg.Record)
		if state == segment.Frozen {
			t.frozen = off
			return dst, false, !more
		}
		ok := state == segment.Ready && (!t.share.cfg.AtMostOnce || t.share.w.Ack(t.id, next.d.Token) == nil)
		if !ok && more {
			break // it is skipped next time
		}
		t.begin()
		if !ok { // dropped meanwhile, which is to be told before what comes next
			t.finish(skipped, nil)
			return dst, true, false
		}
		t.msg.Attempt, t.msg.hold = next.d.Attempt, Token{t, next.d.Token}
		dst = append(dst, t.msg)
		if next.d.Attempt > 1 {
			t.n.redelivered++
		}
		t.share.taken = max(t.share.taken, off+1)
	}
	return dst, skips, false
}

// takeGap takes what is to be told next, or ends the seat with it. The caller holds share.mu.
func (t *Seat) takeGap() Gap {
	s := t.share
	g := s.nextGap()
	t.n.lost += int64(g.records)
	t.stats.set(&t.n)
	if s.cfg.FailOnGap {
		t.cause = s.cfg.Part.ReadError(g.from)
		t.rest()
		return Gap{}
	}
	t.rest()
	return Gap{int64(g.from), int64(g.to)}
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
	t.recall()
	t.share.review(t.share.cfg.Clock.Now())
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
	t.share.review(t.share.cfg.Clock.Now())
}

// Out reports how many records have been taken and not handed in.
func (t *Seat) Out() int { return t.begun }

// Commit settles all records that were taken, and have not been settled otherwise.
func (t *Seat) Commit() {
	if t.begun > 0 || t.share.cfg.Manual { // then it may hold what has been handed in
		_ = t.commit(math.MaxInt64)
	}
}

// CommitBelow settles those below an offset. That must not lie beyond what seats of this share have taken: the error is an
// OffsetError.
func (t *Seat) CommitBelow(off int64) error { return t.commit(min(off, math.MaxInt64-1)) }

func (t *Seat) commit(below int64) error {
	s := t.share
	s.mu.Lock()
	defer s.unlock()
	if s.closed {
		return s.cause
	}
	if next := int64(max(s.taken, s.position())); below > next && below != math.MaxInt64 || below < 0 {
		return &partition.OffsetError{Asked: below, First: int64(s.w.Floor()), Next: next}
	}
	t.recall() // what has not been taken is not the caller's to settle
	if below == math.MaxInt64 {
		if t.begun > 0 {
			t.finish(processed, nil)
		}
		t.reap()
	}
	t.acked += int64(s.w.AckHeld(t.id, uint64(below)))
	s.forget()
	s.review(s.cfg.Clock.Now())
	if len(s.gaps) > 0 && int64(s.gaps[0].from) < below && below != math.MaxInt64 {
		return fmt.Errorf("leat: records from %d on were dropped: %w", s.gaps[0].from, group.ErrFenced)
	}
	return nil
}

// Leave takes the seat off the share, which has been stopped. What it holds is released; its views are not valid any more.
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
	t.unload()
	t.leave(now)
}
