package engine_test

import (
	"errors"
	"time"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/check"
)

// settler settles one delivery.
type settler struct {
	*chaosConsumer
	owner   check.Owner
	token   engine.Token
	off     engine.Offset
	attempt int
}

func (s *settler) ack() bool {
	s.x.strike(faultAck)
	return s.done(s.x.handlers.Ack(s.owner, s.off, s.attempt), s.token.Ack())
}

func (s *settler) through() bool {
	s.x.strike(faultAckThrough)
	o := s.x.handlers.AckThrough(s.owner, s.off)
	return s.done(o, s.token.AckThrough())
}

func (s *settler) nack(delay time.Duration) bool {
	s.x.strike(faultNack)
	o := s.x.handlers.Nack(s.owner, s.off, s.attempt)
	return s.done(o, s.token.Nack(delay))
}

func (s *settler) reject() bool {
	s.x.strike(faultReject)
	o := s.x.handlers.Reject(s.owner, s.off, s.attempt)
	return s.done(o, s.token.Reject(errPoison))
}

func (s *settler) extend() bool {
	s.x.strike(faultExtend)
	o := s.x.handlers.Extend(s.owner, s.off, s.attempt)
	return s.done(o, s.token.Extend())
}

// done ends what was begun, and reports whether it was accepted.
func (s *settler) done(o check.Open, err error) bool {
	if o.Done(err) == nil {
		return true
	}
	s.x.strike(faultFenced)
	if *chaosDump != "" {
		s.x.t.Logf("REFUSED %s %d %d: %v", s.name, s.owner.Partition, s.off, err)
	}
	for _, allowed := range []error{engine.ErrFenced, engine.ErrClosed, engine.ErrTopicDeleted, engine.ErrSubscriptionClosed} {
		if errors.Is(err, allowed) {
			return false
		}
	}
	s.x.t.Errorf("%s: settling offset %d: %v", s.name, s.off, err)
	return false
}

// once checks that of two that settle the same delivery one is refused.
func (s *settler) once(first, second bool) {
	if first && second {
		s.x.t.Errorf("%s: offset %d, attempt %d was settled twice", s.name, s.off, s.attempt)
	}
}

// later does something after a while.
func (s *settler) later(after time.Duration, do func()) {
	s.x.strike(faultAckLate)
	s.x.pending.Add(1)
	time.AfterFunc(after, func() {
		defer s.x.pending.Done()
		do()
	})
}
