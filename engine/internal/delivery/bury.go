package delivery

import (
	"fmt"
	"time"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/engine/internal/group"
	"github.com/leatlog/leat/internal/atomicx"
	"github.com/leatlog/leat/segment"
)

// grave is what the burier of a share works with.
type grave struct {
	seg   segment.Reader
	msg   Message
	began atomicx.Int64 // when its run began, 0 between two: stored by the burier, loaded by Drained; publishes no memory
}

// buriesPerTurn is how many records are buried before others get the worker.
const buriesPerTurn = 16

// burialRetry is after how long a record comes again that could not be buried, if there is no Backoff.
const burialRetry = time.Second

// DeathError is why a record was given up, if no handler's error says it.
type DeathError struct{ Cause group.Death }

func (e *DeathError) Error() string { return fmt.Sprintf("leat: given up: %v", e.Cause) }

// bury gives away what has been given up.
func (s *Share) bury() dispatch.Again {
	s.dead.began.Store(s.cfg.Clock.Now())
	defer func() {
		s.dead.seg.Close()
		s.dead.began.Store(0)
		s.cfg.Rested.Broadcast()
	}()
	for range buriesPerTurn {
		s.mu.Lock()
		s.drop()
		d, ok := s.w.TakeDead()
		err := s.errs[d.Token.Offset]
		s.unlock()
		if !ok {
			return false
		}
		if !s.dead.read(s, d, &err) {
			continue // dropped meanwhile, which the next turn notes
		}
		s.buried(d, s.give(d, err))
	}
	return true
}

// read reads a dead record.
func (g *grave) read(s *Share, d group.Dead, why *error) bool {
	if !g.seg.Jump(d.Token.Offset) {
		g.seg.Seek(d.Token.Offset)
		if g.seg.Refill() != segment.Ready {
			return false
		}
	}
	g.seg.Next(&g.msg.Record)
	g.msg.Topic, g.msg.Attempt = s.cfg.Topic, d.Attempt
	switch {
	case d.Cause == group.DeathRejected && *why != nil:
		*why = fmt.Errorf("%w: %w", ErrRejected, *why)
	case d.Cause == group.DeathRejected:
		*why = ErrRejected
	case *why == nil || d.Cause != group.DeathFailed:
		*why = &DeathError{d.Cause}
	}
	return true
}

// fates of a burial.
const (
	toBury = iota
	wasBuried
	wasDropped
)

// give gives one record away, and returns what became of it.
func (s *Share) give(d group.Dead, why error) (fate int) {
	m := &s.dead.msg
	if s.cfg.Bury != nil && (d.Cause != group.DeathRejected || s.cfg.BuryRejected) {
		if s.cfg.Bury(s.cfg.Context, m, why) != nil {
			return toBury
		}
		return wasBuried
	}
	// The hook may end the goroutine: the record is settled all the same.
	fate = wasDropped
	told := false
	defer func() {
		if !told {
			s.buried(d, wasDropped)
		}
	}()
	if s.cfg.OnDrop != nil {
		s.cfg.OnDrop(s.cfg.Context, m, why)
	}
	told = true
	return fate
}

// buried notes what became of a record that was to be buried.
func (s *Share) buried(d group.Dead, fate int) {
	s.mu.Lock()
	defer s.unlock()
	now := s.cfg.Clock.Now()
	if fate == toBury {
		wait := burialRetry
		if b := s.cfg.Window.Backoff; len(b) > 0 {
			wait = max(b[len(b)-1], leastWait)
		}
		_ = s.w.Unburied(d.Token, wait, now) // it may be the window's no longer
		return
	}
	if s.w.Buried(d.Token) != nil {
		return
	}
	s.settled(d.Token.Offset)
	if fate == wasBuried {
		s.n.buried++
	} else {
		s.n.dropped++
	}
	s.review(now)
}
