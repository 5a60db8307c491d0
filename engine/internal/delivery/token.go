package delivery

import (
	"errors"
	"slices"
	"time"

	"github.com/leatlog/leat/engine/internal/group"
)

var (
	// ErrNoToken is returned for a message that is not settled by its token: its mode is not Manual.
	ErrNoToken = errors.New("leat: message is not settled by hand")

	// ErrNotOwner is returned by AckThrough in a shared group, where the records below are other members' as well.
	ErrNotOwner = errors.New("leat: cumulative acknowledgement in a shared group")
)

// leastWait is the shortest time after which a record is delivered again.
const leastWait = time.Millisecond

// Token stands for one delivery of one record. It can be kept, copied and used from any goroutine, also after the handler has
// returned. The zero value stands for none.
type Token struct {
	seat *Seat
	t    group.Token
}

// Token returns what the message can be settled by later, when the message itself is not valid any more.
func (m *Message) Token() Token { return m.hold }

// Ack is Token.Ack.
func (m *Message) Ack() error { return m.hold.Ack() }

// AckThrough is Token.AckThrough.
func (m *Message) AckThrough() error { return m.hold.AckThrough() }

// Nack is Token.Nack.
func (m *Message) Nack(delay time.Duration) error { return m.hold.Nack(delay) }

// Extend is Token.Extend.
func (m *Message) Extend() error { return m.hold.Extend() }

// Reject is Token.Reject.
func (m *Message) Reject(reason error) error { return m.hold.Reject(reason) }

// Ack says that the record is processed. Of all that settles one delivery (Ack, AckThrough, Nack, Reject, the handler's
// error, the end of AckWait) the first counts; for whatever comes later, or from a member that has lost the record, the error
// wraps ErrFenced. In a mode in which the engine settles records it is ErrNoToken.
func (k Token) Ack() error {
	return k.use(true, func(s *Share, now int64) error {
		err := s.w.Ack(k.seat.id, k.t)
		if err == nil {
			k.seat.acked++
			s.settled(k.t.Offset)
			s.freed(now)
		}
		return err
	})
}

// AckThrough is Ack for this record and all records of its partition below it that its owner holds or that wait to be
// delivered again. In a shared group it is ErrNotOwner.
func (k Token) AckThrough() error {
	return k.use(true, func(s *Share, now int64) error {
		if !s.cfg.Window.InOrder {
			return ErrNotOwner
		}
		for _, seat := range slices.Backward(s.busy.list) { // what is settled now must not be delivered any more
			seat.recallIf(func(d group.Delivery) bool { return d.Token.Offset <= k.t.Offset })
		}
		n, err := s.w.AckThrough(k.seat.id, k.t)
		k.seat.acked += int64(n)
		s.forget()
		s.review(now)
		return err
	})
}

// Nack says that the record could not be processed: it is delivered again after the delay, but not before a millisecond; a
// negative delay stands for the configured Backoff. It counts towards MaxDeliveries.
func (k Token) Nack(delay time.Duration) error {
	return k.use(true, func(s *Share, now int64) (err error) {
		if delay < 0 {
			_, err = s.w.Nack(k.seat.id, k.t, now)
		} else {
			_, err = s.w.NackAfter(k.seat.id, k.t, max(delay, leastWait), now)
		}
		if err == nil {
			k.seat.nacked++
			s.review(now)
		}
		return err
	})
}

// Extend gives whoever holds the record all of its AckWait from now on. It works in all modes in which records are held.
func (k Token) Extend() error {
	return k.use(false, func(s *Share, now int64) error {
		if k.seat.reap() { // its handler may have returned
			s.review(now)
		}
		_, err := s.w.Extend(k.seat.id, k.t, now)
		return err
	})
}

// Reject says that the record must never be delivered again; reason is for the dead letter and the hooks, and may be nil.
func (k Token) Reject(reason error) error {
	return k.use(true, func(s *Share, now int64) error {
		_, err := s.w.Reject(k.seat.id, k.t)
		if err == nil {
			s.settled(k.t.Offset)
			s.fate(k.t.Offset, reason)
			s.freed(now)
		}
		return err
	})
}

// Deadline returns until when the record has to be settled, as of its delivery: Extend moves it. It is zero without a token.
func (k Token) Deadline() time.Time {
	if k.seat == nil {
		return time.Time{}
	}
	s := k.seat.share
	s.mu.Lock()
	defer s.unlock()
	if k.seat.reap() {
		s.review(s.cfg.Clock.Now())
	}
	if at, ok := s.w.Deadline(k.seat.id, k.t); ok {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// use does something with a token.
func (k Token) use(settles bool, f func(s *Share, now int64) error) error {
	if k.seat == nil || settles && !k.seat.share.cfg.Manual {
		return ErrNoToken
	}
	s := k.seat.share
	now := s.cfg.Clock.Now()
	s.mu.Lock()
	defer s.unlock()
	if s.closed {
		return s.cause
	}
	err := f(s, now)
	if err != nil && errors.Is(err, group.ErrFenced) {
		s.n.fenced++
	}
	return err
}
