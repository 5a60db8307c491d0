package disk

import (
	"errors"
	"fmt"

	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

var (
	// ErrClosed is returned by every call after Close. It is final.
	ErrClosed = errors.New("disk: log is closed")

	// ErrReadOnly says that the log was opened only for reading. It is final.
	ErrReadOnly = errors.New("disk: log is open for reading only")

	// ErrLocked says that somebody else has the log open. Trying again helps once that one has closed it or is gone.
	ErrLocked = vfs.ErrLocked

	// ErrFailed says that an operation on a file failed, now or before, so that nothing can be written any more. What was
	// being written is indefinite: it may or may not be found after the next open. Resume, or Close and Open, help once the
	// cause has gone. The error that is returned is a *FailedError, which says the cause.
	ErrFailed = errors.New("disk: an operation on a file failed")

	// ErrFull says that ErrFailed has come because there is no space left. Nothing that was durable is lost.
	ErrFull = errors.New("disk: no space left")

	// ErrCorrupt says that records which had been safe are damaged or missing. Nothing has been changed. It is final until
	// the files are brought back, or Salvage has made a new directory of them. The error that is returned is a *CorruptError.
	ErrCorrupt = errors.New("disk: damaged")

	// ErrForeign says that the files belong to another topic or partition, or are none of ours. It is final.
	ErrForeign = errors.New("disk: files of something else")

	// ErrVersion says that the files are of a format that this version does not know. It is final.
	ErrVersion = frame.ErrVersion

	// ErrTooLarge says that a batch does not fit any file. It is final for that batch; nothing has changed.
	ErrTooLarge = errors.New("disk: batch too large")

	// ErrBelow says that what was asked for has been dropped; ErrBeyond that it is not there yet. The error that is returned
	// is an *OffsetError.
	ErrBelow  = errors.New("disk: offset below the first retained")
	ErrBeyond = errors.New("disk: offset beyond the end")
)

// FailedError is why nothing can be written any more. It matches ErrFailed, and ErrFull if that is the cause, and the cause.
type FailedError struct {
	// Op is what was done, and File to which file.
	Op, File string
	// Err is what came of it.
	Err error
}

// Error says what failed and why.
func (e *FailedError) Error() string { return fmt.Sprintf("disk: %s %s: %v", e.Op, e.File, e.Err) }

// Unwrap returns what e matches.
func (e *FailedError) Unwrap() []error {
	if vfs.IsFull(e.Err) {
		return []error{ErrFailed, ErrFull, e.Err}
	}
	return []error{ErrFailed, e.Err}
}

// CorruptError says what is damaged. It matches ErrCorrupt, and what is wrong with the bytes.
type CorruptError struct {
	// File is the damaged file, and Pos where in it the damage begins.
	File string
	Pos  int64
	// From is the first offset that cannot be read. To is the first after it that is known to be sound, or at least to have
	// been: what would be lost is [From, To), or more if To is 0, which says that nothing is known.
	From, To uint64
	// Err is what is wrong there.
	Err error
}

// Error says where the damage is.
func (e *CorruptError) Error() string {
	to := "?"
	if e.To > 0 {
		to = fmt.Sprint(e.To)
	}
	return fmt.Sprintf("disk: damaged: %s at %d: offsets [%d, %s): %v", e.File, e.Pos, e.From, to, e.Err)
}

// Unwrap returns what e matches.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }

// errMissing, errShort and errEvidence are causes of a CorruptError.
var (
	errMissing  = errors.New("a file is missing")
	errShort    = errors.New("the log ends early")
	errEvidence = errors.New("it had been synced")
	errOrder    = errors.New("frames out of order")
	errIndex    = errors.New("the index is not that of the file")
)

// OffsetError says that an offset was asked for that is not there. It matches ErrBelow or ErrBeyond.
type OffsetError struct {
	Asked       uint64
	First, Next uint64 // the log holds [First, Next)
}

// Error says what there is.
func (e *OffsetError) Error() string {
	return fmt.Sprintf("disk: offset %d of a log that holds [%d, %d)", e.Asked, e.First, e.Next)
}

// Is reports whether target is ErrBelow or ErrBeyond, whichever it is.
func (e *OffsetError) Is(target error) bool {
	return target == ErrBelow && e.Asked < e.First || target == ErrBeyond && e.Asked > e.Next
}
