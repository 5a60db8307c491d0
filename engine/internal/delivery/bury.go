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
	began atomicx.Int64 // when its run began, 0 between two: stored by the burier, loaded by Drained under mu; publishes no memory
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
		s.dead.msg.Record = segment.Record{} // a view, which would keep memory
		s.dead.began.Store(0)
		s.cfg.Rested.Broadcast()
	}()
	for range buriesPerTurn {
		s.mu.Lock()
		if s.drop() {
			s.review(s.cfg.Clock.Now())
		}
		d, ok := s.w.TakeDead()
		err := s.errs[d.Token.Offset]
		s.unlock()
		if !ok {
			return false
		}
		switch s.dead.read(s, d, &err) {
		case segment.Ready:
		case segment.Unreadable:
			s.unburied(d) // it may be readable later
			continue
		default:
			continue // dropped meanwhile, which the next look notes
		}
		s.inter(d, err)
	}
	return true
}

// read reads a dead record. If it does not return Ready that is gone, or cannot be read.
func (g *grave) read(s *Share, d group.Dead, why *error) segment.State {
	if !g.seg.Jump(d.Token.Offset) {
		g.seg.Seek(d.Token.Offset)
		if state := g.seg.Refill(); state != segment.Ready {
			return state
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
	return segment.Ready
}

// inter gives one record away, to the dead-letter topic or to the hook, and settles it. Either may end the goroutine: what was
// to be buried is tried again then, and what was dropped is dropped.
func (s *Share) inter(d group.Dead, why error) {
	m := &s.dead.msg
	if s.cfg.Bury != nil && (d.Cause != group.DeathRejected || s.cfg.BuryRejected) {
		err := ErrGoexit
		defer func() {
			if err != nil {
				s.unburied(d)
			} else {
				s.gone(d, &s.n.buried)
			}
		}()
		err = s.cfg.Bury(s.cfg.Context, m, why)
		return
	}
	defer s.gone(d, &s.n.dropped)
	if s.cfg.OnDrop != nil {
		s.cfg.OnDrop(s.cfg.Context, m, why)
	}
}

// unburied has a record come again that could not be buried.
func (s *Share) unburied(d group.Dead) {
	s.mu.Lock()
	defer s.unlock()
	wait := burialRetry
	if b := s.cfg.Window.Backoff; len(b) > 0 {
		wait = max(b[len(b)-1], leastWait)
	}
	_ = s.w.Unburied(d.Token, wait, s.cfg.Clock.Now()) // it may be the window's no longer
}

// gone settles a record that has been given away, and counts it.
func (s *Share) gone(d group.Dead, n *int64) {
	s.mu.Lock()
	defer s.unlock()
	if s.w.Buried(d.Token) != nil {
		return // it is the window's no longer
	}
	s.settled(d.Token.Offset)
	*n++
	s.freed(s.cfg.Clock.Now())
}
