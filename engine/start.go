package engine

import (
	"math"
	"time"

	"github.com/leatlog/leat/engine/internal/partition"
)

// Start says where in a partition to begin. The zero value is the default of whoever takes it; Seek and ResetOffsets have
// none, and refuse it.
type Start struct {
	kind startKind
	n    int64
}

type startKind uint8

const (
	startDefault startKind = iota
	startEarliest
	startLatest
	startAt
	startSince
	startLast
	startShift
)

// Earliest begins at the oldest record that is still there.
func Earliest() Start { return Start{kind: startEarliest} }

// Latest begins behind the newest record: only what is published from now on.
func Latest() Start { return Start{kind: startLatest} }

// At begins at an offset. One that the partition does not hold, nor will give to the next record, is an *OffsetError.
func At(off Offset) Start { return Start{kind: startAt, n: off} }

// Since begins at the first record whose timestamp is t or later: of those that are there the one with the smallest offset,
// and otherwise the next one. A record that was published after t may be stamped a little before it (see Record): to be sure to find
// that, take an earlier t. In a durable topic it may have to read some of them from the files, and fail with a *LoadError.
func Since(t time.Time) Start {
	n := t.UnixNano()
	switch { // a time that does not fit lies before or after all timestamps
	case t.Before(time.Unix(0, math.MinInt64)):
		n = math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		n = math.MaxInt64
	}
	return Start{kind: startSince, n: n}
}

// Last begins n records before the end, or at the oldest if there are fewer. Last(0) is Latest.
func Last(n int64) Start { return Start{kind: startLast, n: n} }

// Shift moves a position by n records: forward, or back if n is negative, and not beyond what there is. It is for Seek and
// ResetOffsets; elsewhere there is no position yet that could be moved, and it is ErrConfig.
func Shift(n int64) Start { return Start{kind: startShift, n: n} }

// from is in for who is at a position already.
func (s Start) from(p *partition.Partition, at Offset) func(first, next uint64) (uint64, error) {
	switch s.kind {
	case startShift:
	case startDefault:
		return func(uint64, uint64) (uint64, error) { return 0, configError("no Start says where to go") }
	default:
		return s.in(p, startLatest)
	}
	return func(first, next uint64) (uint64, error) {
		from := min(max(uint64(at), first), next)
		if s.n < 0 {
			return from - min(uint64(-s.n), from-first), nil
		}
		return from + min(uint64(s.n), next-from), nil
	}
}

// ready reads from the files what in, or from, has to look at: they are called under locks, and should not wait for a disk there.
func (s Start) ready(parts ...*Partition) error {
	if s.kind != startSince {
		return nil
	}
	for _, p := range parts {
		if _, err := p.p.Log().OffsetAt(s.n); err != nil {
			return p.p.Unreadable(err)
		}
	}
	return nil
}

// readyOf is ready for one partition of a topic, or all if it is negative. What there is not is for the caller to find.
func (s Start) readyOf(e *Engine, topic string, partition int) error {
	t, err := e.Topic(topic)
	if s.kind != startSince || err != nil {
		return nil
	}
	parts := t.made.load()
	switch {
	case partition >= len(parts):
		return nil
	case partition >= 0:
		parts = parts[partition : partition+1]
	}
	return s.ready(parts...)
}

// in returns the function that makes an offset of s, given what the partition holds; the default is def.
func (s Start) in(p *partition.Partition, def startKind) func(first, next uint64) (uint64, error) {
	kind := s.kind
	if kind == startDefault {
		kind = def
	}
	return func(first, next uint64) (uint64, error) {
		switch kind {
		case startEarliest:
			return first, nil
		case startAt:
			if s.n < int64(first) || s.n > int64(next) {
				return 0, &OffsetError{Asked: s.n, First: int64(first), Next: int64(next)}
			}
			return uint64(s.n), nil
		case startSince:
			off, err := p.Log().OffsetAt(s.n)
			if err != nil {
				return 0, p.Unreadable(err)
			}
			return min(max(off, first), next), nil
		case startShift:
			return 0, configError("Shift where there is no position")
		case startLast:
			if s.n < 0 {
				return 0, configError("Last(%d)", s.n)
			}
			if uint64(s.n) > next-first {
				return first, nil
			}
			return next - uint64(s.n), nil
		default:
			return next, nil
		}
	}
}
