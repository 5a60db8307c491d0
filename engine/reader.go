package engine

import (
	"context"
	"errors"

	"github.com/leatlog/leat/engine/internal/partition"
)

// Reader reads one partition at its own pace: a position that nobody else moves. One goroutine at a time may use it; Close
// may come from any.
type Reader struct {
	p    *Partition
	r    *partition.Reader
	cfg  ReaderConfig
	lost int64
}

// Reader returns a new reader. It must be closed: while it is open the memory that it stands in is not reused, and if it is
// gating publishers wait for it.
func (p *Partition) Reader(c ReaderConfig) (*Reader, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var gate *partition.Gate
	if c.Gating || c.MaxLag > 0 {
		gate = &partition.Gate{Name: c.Name, Gating: c.Gating, MaxLag: uint64(c.MaxLag)}
	}
	if err := c.Start.ready(p); err != nil {
		return nil, err
	}
	r, err := p.p.NewReader(gate, c.Wait, c.Start.in(p.p, startLatest))
	if err != nil {
		return nil, err
	}
	return &Reader{p: p, r: r, cfg: c}, nil
}

// Next returns the next record and waits for it. The record is valid until the next call of any method but Position, Lag
// and Lost. An error leaves the position where it was: that of ctx, ErrClosed, ErrTopicDeleted, ErrReaderClosed,
// ErrEvicted, or a *LoadError if the record is in the files only and cannot be read: the next call tries again. A gap is told once, by a *GapError, and the call after it goes on behind the gap; under FailOnGap every call
// fails with an *OffsetError until Seek.
func (r *Reader) Next(ctx context.Context) (Record, error) {
	var rec Record
	if err := r.r.Next(ctx, &rec); err != nil {
		return Record{}, r.explain(err)
	}
	return rec, nil
}

// NextBatch is Next for as many records as are there and fit dst; it waits only while there is none. It returns how many:
// at least one, or none with an error, or none at once for an empty dst. They are valid until the next call.
func (r *Reader) NextBatch(ctx context.Context, dst []Record) (int, error) {
	n, err := r.r.NextBatch(ctx, dst)
	if err != nil {
		return 0, r.explain(err)
	}
	return n, nil
}

// NextRun is NextValues for records of one size, as Reservation.NextRun makes them: it returns the values of at most so many, one behind the
// other, and how many they are, so that each has len(values)/n bytes. It ends where a record has a value of another size, or a key, headers
// or a timestamp of its own; such a one comes alone, as does one with a nil value (an empty key is none here). It returns at least one, or
// none with an error, or none at once if most is not above 0.
func (r *Reader) NextRun(ctx context.Context, most int) (values []byte, n int, err error) {
	values, n, err = r.r.NextRun(ctx, most)
	if err != nil {
		return nil, 0, r.explain(err)
	}
	return values, n, nil
}

// NextValues is NextBatch for who wants the values alone: the fastest way out but NextRun. A nil value stays nil. The records have consecutive
// offsets; the last one's is Position() - 1.
func (r *Reader) NextValues(ctx context.Context, dst [][]byte) (int, error) {
	n, err := r.r.NextValues(ctx, dst)
	if err != nil {
		return 0, r.explain(err)
	}
	return n, nil
}

// explain makes a gap of an offset that is too low.
func (r *Reader) explain(err error) error {
	var out *OffsetError
	if r.cfg.Gap != SkipGap || !errors.As(err, &out) || out.Asked >= out.First {
		return err
	}
	gap := &GapError{Partition: r.p.Index(), From: out.Asked, To: out.First}
	if err := r.r.Seek(func(first, _ uint64) (uint64, error) {
		gap.To = int64(first)
		return first, nil
	}); err != nil {
		return err
	}
	r.lost += gap.Lost()
	return gap
}

// Seek moves the reader; the next record is the one that to says. A gating reader that goes back does not make publishers
// wait for what it had read before: room that was given is not taken back.
func (r *Reader) Seek(to Start) error {
	if err := to.ready(r.p); err != nil {
		return err
	}
	return r.r.Seek(to.in(r.p.p, startLatest))
}

// Position returns the offset of the next record.
func (r *Reader) Position() Offset { return int64(r.r.Position()) }

// Lag returns how many records are there to read.
func (r *Reader) Lag() int64 {
	first, next := r.p.p.Snapshot()
	return next - min(max(r.Position(), first), next)
}

// Lost returns how many records were dropped before this reader got to them.
func (r *Reader) Lost() int64 { return r.lost }

// Close ends the reader; a call of Next that waits returns ErrReaderClosed. Closing again does nothing.
func (r *Reader) Close() { r.r.Close() }
