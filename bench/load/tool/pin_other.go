//go:build !linux

package tool

import "errors"

// pin says that this system has no way to do it.
func pin([]int) (undo func(), err error) {
	return nil, errors.New("only on Linux can a process be pinned")
}
