package storage

import (
	"errors"
	"fmt"

	"github.com/leatlog/leat/segment/disk"
)

// The errors of durable topics, exported to users by package engine, where each says what to do about it.
var (
	ErrIndefinite = errors.New("leat: outcome unknown")
	ErrReadOnly   = errors.New("leat: read-only")
	ErrNoSpace    = errors.New("leat: no space left for files")
	ErrCorrupt    = errors.New("leat: files are damaged")
	ErrLocked     = errors.New("leat: directory is in use")
	ErrForgotten  = errors.New("leat: records were lost by the files and are not in memory any more")
)

// Error is why a partition takes no records any more. It matches ErrReadOnly, ErrNoSpace if that is why, ErrIndefinite if the
// record that it is told about may yet be found, and its cause.
type Error struct {
	Indefinite bool
	Err        error
}

// Error says what failed.
func (e *Error) Error() string {
	if e.Indefinite {
		return fmt.Sprintf("leat: outcome unknown, and the partition is read-only: %v", e.Err)
	}
	return fmt.Sprintf("leat: the partition is read-only: %v", e.Err)
}

// Unwrap returns what e matches.
func (e *Error) Unwrap() []error {
	list := []error{ErrReadOnly, e.Err}
	if e.Indefinite {
		list = append(list, ErrIndefinite)
	}
	if errors.Is(e.Err, disk.ErrFull) {
		list = append(list, ErrNoSpace)
	}
	return list
}

// Opening says what an error at open means.
func Opening(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, disk.ErrCorrupt), errors.Is(err, disk.ErrLost):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	case errors.Is(err, disk.ErrFull):
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	case errors.Is(err, disk.ErrLocked):
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return err
}
