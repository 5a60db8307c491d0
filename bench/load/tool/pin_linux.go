package tool

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin lets all threads of the process run on these processors only, and so those that they start. It returns what undoes that.
func pin(cpus []int) (undo func(), err error) {
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	for _, c := range cpus {
		if !before.IsSet(c) {
			return nil, errors.New("processor " + strconv.Itoa(c) + " is not there, or not for this process")
		}
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
