package delivery

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/leatlog/leat/engine/internal/partition"
)

// ErrGoexit is the failure of a handler that ended its goroutine.
var ErrGoexit = errors.New("leat: handler called runtime.Goexit")

// PanicError is the failure of a handler that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("leat: handler panicked: %v", e.Value) }

// Unwrap returns the value of the panic if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// call calls the handler and turns a panic into an error.
func (l *Lane) call() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if l.cfg.Handler.Batch != nil {
		ms := l.batch[:l.ready:l.ready]
		for i := range ms {
			ms[i].Attempt = l.attempt
		}
		return l.cfg.Handler.Batch(l.ctx, ms)
	}
	l.msg.Attempt = l.attempt
	return l.cfg.Handler.One(l.ctx, &l.msg)
}

// failed decides what becomes of records whose handler has failed: they are tried again after a while, or given up. It is
// all decided before anybody is told, since who is told may end the goroutine.
func (l *Lane) failed(err error) {
	n, attempt := l.ready, l.attempt
	l.seg.Back(l.at)
	l.take(n) // as they were before the handler had them
	l.n.failed += int64(n)
	// When all workers wait the record has to wait, too. That is no fault of its own and does not count.
	crowded := errors.Is(err, partition.ErrWorkersBlocked)
	dropped := false
	switch {
	case l.cfg.AtMostOnce:
		l.ready = 0 // committed before the call, whatever came of it
	case l.ctx.Err() == nil && l.cfg.MaxDeliveries > 0 && attempt >= l.cfg.MaxDeliveries && !crowded:
		dropped = true
		l.n.dropped += int64(n)
		l.commit()
		l.ready = 0
	default:
		if crowded {
			l.attempt--
		}
		wait := int64(l.cfg.Backoff[max(min(l.attempt, len(l.cfg.Backoff))-1, 0)])
		now := l.cfg.Clock.Now()
		l.due = now + min(wait, math.MaxInt64-now)
	}
	if l.cfg.OnFailure != nil {
		l.cfg.OnFailure(l.ctx, l.message(0, attempt), err)
	}
	if dropped && l.cfg.OnDrop != nil {
		for i := range n {
			l.cfg.OnDrop(l.ctx, l.message(i, attempt), err)
		}
	}
}

// message returns one of the messages that have just been handled.
func (l *Lane) message(i, attempt int) *Message {
	m := &l.msg
	if l.cfg.Handler.Batch != nil {
		m = &l.batch[i]
	}
	m.Attempt = attempt
	return m
}
