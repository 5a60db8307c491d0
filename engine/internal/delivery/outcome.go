package delivery

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"
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
		ms := l.messages()
		for i := range ms {
			ms[i].Attempt = l.attempt
		}
		return l.cfg.Handler.Batch(l.ctx, ms)
	}
	l.msg.Attempt = l.attempt
	return l.cfg.Handler.One(l.ctx, &l.msg)
}

// failed decides what becomes of records whose handler has failed: they are tried again after a while, or given up.
func (l *Lane) failed(err error) {
	l.n.failed += int64(l.ready)
	m := &l.msg
	if l.cfg.Handler.Batch != nil {
		m = &l.batch[0]
	}
	if l.cfg.OnFailure != nil {
		l.cfg.OnFailure(m, err)
	}
	if l.cfg.AtMostOnce {
		l.ready = 0 // committed before the call, whatever came of it
		return
	}
	if l.ctx.Err() == nil && l.cfg.MaxDeliveries > 0 && l.attempt >= l.cfg.MaxDeliveries {
		l.n.dropped += int64(l.ready)
		l.commit()
		l.ready = 0
		if l.cfg.OnDrop != nil {
			l.cfg.OnDrop(m, err)
		}
		return
	}
	backoff := l.cfg.Backoff
	l.due = time.Now().Add(backoff[min(l.attempt, len(backoff))-1])
}
