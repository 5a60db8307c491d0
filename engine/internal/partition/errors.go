package partition

import (
	"errors"
	"fmt"
)

// The errors of a partition, exported to users by package engine, where each says what to do about it.
var (
	ErrClosed         = errors.New("leat: closed")
	ErrDeleted        = errors.New("leat: topic deleted")
	ErrDraining       = errors.New("leat: draining")
	ErrFull           = errors.New("leat: full")
	ErrTooLarge       = errors.New("leat: record too large")
	ErrExclusive      = errors.New("leat: partition has an exclusive appender")
	ErrReserved       = errors.New("leat: a reservation is out")
	ErrReservation    = errors.New("leat: reservation not possible")
	ErrSelfBlock      = errors.New("leat: publish waits for the handler that called it")
	ErrWorkersBlocked = errors.New("leat: every worker waits inside a publish")
	ErrExhausted      = errors.New("leat: offsets exhausted")
	ErrEvicted        = errors.New("leat: evicted for its lag")
	ErrReadClosed     = errors.New("leat: reader closed")
)

// errNoMemory ends an attempt of a publish that had room in the log while the engine had no memory; see Partition.wait.
var errNoMemory = errors.New("leat: no memory")

// TooLargeError says which limit a record or batch is above.
type TooLargeError struct {
	Records int   // 1, or how many the batch has
	Size    int64 // bytes of keys, values and headers
	Limit   int64 // the most bytes that can ever fit; 0 if it is the number of records that cannot
}

func (e *TooLargeError) Error() string {
	switch {
	case e.Limit == 0:
		return fmt.Sprintf("leat: batch too large: %d records are more than the partition may hold", e.Records)
	case e.Records > 1:
		return fmt.Sprintf("leat: batch too large: %d records of %d bytes, limit %d bytes", e.Records, e.Size, e.Limit)
	default:
		return fmt.Sprintf("leat: record too large: %d bytes, limit %d", e.Size, e.Limit)
	}
}

// Is makes errors.Is(err, ErrTooLarge) true.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// OffsetError reports an offset outside of what a partition holds.
type OffsetError struct {
	Asked       int64
	First, Next int64 // the partition holds [First, Next)
}

func (e *OffsetError) Error() string {
	return fmt.Sprintf("leat: offset %d out of range: the partition holds [%d, %d)", e.Asked, e.First, e.Next)
}
