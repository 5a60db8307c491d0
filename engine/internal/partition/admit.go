package partition

import (
	"context"

	"github.com/leatlog/leat/ring"
)

// admit says whether a publish of a record of so many bytes may go on. A nil context is that of a publish that never waits.
func (p *Partition) admit(ctx context.Context, size int64) error {
	if p.state.Load() != 0 {
		if err := p.refuse(ctx); err != nil {
			return err
		}
	}
	if size > p.cfg.MaxRecordBytes {
		return p.tooLarge(size)
	}
	return nil
}

// refuse says why the partition takes no publish, if it does not.
func (p *Partition) refuse(ctx context.Context) error {
	s := p.state.Load()
	switch {
	case s&(stateClosing|stateFinishing) != 0:
		return p.refusal()
	case s&stateReadOnly != 0:
		return p.unwritable()
	case s&stateExclusive != 0:
		return ErrExclusive
	case s&stateDraining != 0 && !p.fromHandler(ctx):
		return ErrDraining
	}
	return nil
}

// tooLate reports whether a publish that was admitted before Drain has come to its claim after it, and must not go on. Pairs with
// Drain: it sets the state's bit, and Flush then sends a barrier through the ring. A claim that comes after the barrier's
// therefore sees the bit here; what was claimed before is in the log when the barrier is through.
func (p *Partition) tooLate(ctx context.Context) bool {
	return p.state.Load()&stateDraining != 0 && !p.fromHandler(ctx)
}

// void fills a claim with nothing.
func (p *Partition) void(pos uint64, n int, o ring.Outcome) {
	p.fillRequest(pos, n, gone)
	p.ring.Ready(pos)
	if o == ring.ClaimedIdle {
		p.hold()
	} else {
		p.lookForAppender()
	}
}

// fromHandler reports whether a call comes from a handler or a callback: by its context, or because it is made on a worker.
func (p *Partition) fromHandler(ctx context.Context) bool {
	return ctx != nil && originOf(ctx) != nil || p.cfg.OnWorker()
}

// refusal is what a publisher gets that found the ring closed.
func (p *Partition) refusal() error {
	if err := p.Cause(); err != nil {
		return err
	}
	return ErrClosed
}

func (p *Partition) tooLarge(size int64) error {
	return &TooLargeError{Records: 1, Size: size, Limit: p.cfg.MaxRecordBytes}
}

// batchTooLarge says which limit a batch is above that it will always be above. size is what its keys, values and headers
// take, bytes what they take in the log.
func (p *Partition) batchTooLarge(size, bytes int64, records int) error {
	cost, l := p.cost(bytes, records), &p.cfg.Limits
	if l.RecordsLeft(0) < int64(records) {
		return &TooLargeError{Records: records, Size: size}
	}
	limit := l.BytesLeft(0)
	if largest := p.cfg.Log.Pool.Largest(); largest > 0 && records > 1 {
		limit = min(limit, largest) // where memory is bounded a batch must fit one block: see Partition.stageAll
	}
	if cost > limit {
		return &TooLargeError{Records: records, Size: size, Limit: max(1, limit-(cost-size))}
	}
	return nil
}
