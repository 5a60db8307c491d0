package delivery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/leatlog/leat/engine/internal/partition"
	"github.com/leatlog/leat/internal/mutant"
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

// recovered turns a panic into an error. It is to be deferred.
func recovered(err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{Value: v, Stack: debug.Stack()}
	}
}

// call calls the handler and turns a panic into an error.
func (l *Lane) call() (err error) {
	defer recovered(&err)
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
	case mutant.Enabled && mutant.Is(mutant.CommitBeforeCall):
		l.commit()
		l.ready = 0
	case l.cfg.AtMostOnce && !(mutant.Enabled && mutant.Is(mutant.CommitAfterCall)):
		l.ready = 0 // committed before the call, whatever came of it
	case l.ctx.Err() == nil && l.cfg.MaxDeliveries > 0 && attempt >= l.cfg.MaxDeliveries && !crowded:
		if l.cfg.Bury != nil {
			l.dying = err
			break
		}
		dropped = true
		l.n.dropped += int64(n)
		l.commit()
		l.ready = 0
	default:
		if crowded {
			l.attempt--
		}
		l.later(l.cfg.Backoff[max(min(l.attempt, len(l.cfg.Backoff))-1, 0)])
	}
	if l.cfg.OnFailure != nil {
		l.cfg.OnFailure(l.ctx, l.message(0, attempt), err)
	}
	if l.dying != nil {
		l.bury()
	}
	if dropped && l.cfg.OnDrop != nil {
		for i := range n {
			l.cfg.OnDrop(l.ctx, l.message(i, attempt), err)
		}
	}
}

// spent reports whether what has been read was delivered to others as often as it may be.
func (l *Lane) spent() bool {
	return !l.cfg.AtMostOnce && l.cfg.MaxDeliveries > 0 && l.at == l.carried && l.attempt >= l.cfg.MaxDeliveries
}

// giveUp gives up what has been read without calling the handler.
func (l *Lane) giveUp(err error) {
	if l.cfg.Bury != nil {
		l.dying = err
		l.bury()
		return
	}
	n, attempt := l.ready, l.attempt
	l.n.dropped += int64(n)
	l.commit()
	l.ready = 0
	if l.cfg.OnDrop != nil {
		for i := range n {
			l.cfg.OnDrop(l.ctx, l.message(i, attempt), err)
		}
	}
}

// callBury calls Bury and turns a panic into an error.
func (c *Config) callBury(ctx context.Context, m *Message, cause error) (err error) {
	defer recovered(&err)
	return c.Bury(ctx, m, cause)
}

// bury gives away what has been given up.
func (l *Lane) bury() {
	for ; l.buried < l.ready; l.buried++ {
		l.later(l.cfg.Backoff[len(l.cfg.Backoff)-1]) // unless it is buried, whatever comes of the call
		if l.cfg.callBury(l.ctx, l.message(l.buried, l.attempt), l.dying) != nil {
			return
		}
		l.due = 0
		l.n.buried++
	}
	l.commit()
	l.ready, l.dying, l.buried = 0, nil, 0
}

// later keeps what has been read for a while.
func (l *Lane) later(wait time.Duration) {
	now := l.cfg.Clock.Now()
	l.due = now + min(int64(wait), math.MaxInt64-now)
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
