package segment

import (
	"errors"
	"fmt"
)

var (
	// ErrNoMemory says that the pool has no block within its budget now. Nothing has changed; the same record can be tried
	// again once memory comes back (Pool.Freed says when to look), or after the caller has dropped segments of its own.
	ErrNoMemory = errors.New("segment: no memory within the budget")

	// ErrTooLarge says that a record is larger than any block may be. It will never fit. The error that is returned is a
	// *SizeError, which says the size and the limit.
	ErrTooLarge = errors.New("segment: record too large")

	// ErrExhausted says that the record would get an offset beyond the last one, which is 2^63-2. The log takes no more
	// records; what it holds stays readable.
	ErrExhausted = errors.New("segment: offsets exhausted")

	// ErrSealed says that Seal has ended the log. What was staged and not yet published never becomes visible.
	ErrSealed = errors.New("segment: log is sealed")

	// ErrBelow says that the offset asked for has been dropped: it lies below First.
	ErrBelow = errors.New("segment: offset below the first retained")

	// ErrBeyond says that the offset asked for lies above Committed: nothing has been there yet.
	ErrBeyond = errors.New("segment: offset beyond the committed end")

	// ErrHeaders says that bytes are no list of headers. It is final for them.
	ErrHeaders = errors.New("segment: not a list of headers")
)

// SizeError is the error for a record that can never fit. It matches ErrTooLarge.
type SizeError struct {
	// Size is how many bytes key, value and headers are together (for Ensure, of all records); math.MaxUint64 if the sum
	// would wrap.
	Size uint64
	// Limit is how many there may be: MaxRecordBytes, or less if the pool could never hand out a block for that.
	Limit uint64
}

// Error says both sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("segment: record too large: %d bytes of at most %d", e.Size, e.Limit)
}

// Is reports whether target is ErrTooLarge.
func (e *SizeError) Is(target error) bool { return target == ErrTooLarge }
