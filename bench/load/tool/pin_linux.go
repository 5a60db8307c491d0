package tool

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// pinnable says which of these processors are not there for this process, and which are.
func pinnable(cpus []int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	for _, c := range cpus {
		if !set.IsSet(c) {
			return fmt.Errorf("processor %d is not there, or not for this process: must be of %s", c, ranges(set.IsSet, len(set)*64))
		}
	}
	return nil
}

// pin lets all threads of the process run on these processors only, and so those that they start. It returns what undoes that.
func pin(cpus []int) (undo func(), err error) {
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	for _, c := range cpus {
		set.Set(c)
	}
	if err := pinThreads(&set); err != nil {
		return nil, err
	}
	return func() { _ = pinThreads(&before) }, nil
}

// pinThreads goes through the threads until all that there are have been seen: those that begin meanwhile have what the one has that
// starts them.
func pinThreads(set *unix.CPUSet) error {
	seen := map[int]bool{}
	for {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		more := false
		for _, t := range tasks {
			id, err := strconv.Atoi(t.Name())
			if err != nil || seen[id] {
				continue
			}
			seen[id], more = true, true
			if err := unix.SchedSetaffinity(id, set); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}
