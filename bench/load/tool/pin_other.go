//go:build !linux

package tool

import "errors"

// pinnable says that none is.
func pinnable([]int) error { return errPin }

var errPin = errors.New("only on Linux can a process be pinned")

// pin says that this system has no way to do it.
func pin([]int) (undo func(), err error) {
	return nil, errPin
}
