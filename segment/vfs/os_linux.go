package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// retry calls f until no signal has interrupted it.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// control calls f with the descriptor of a file that stays open meanwhile.
func control(file *os.File, op string, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = retry(func() error { return f(int(fd)) }) }); err != nil {
		return err
	}
	if inner != nil {
		return &os.PathError{Op: op, Path: file.Name(), Err: inner}
	}
	return nil
}

// syncData makes the bytes and the length of f safe, but not its times, which would cost a second write.
func syncData(f *os.File) error { return control(f, "fdatasync", unix.Fdatasync) }

// allocate takes space for f from have to size, and makes it that long.
func allocate(f *os.File, have, size int64) error {
	err := control(f, "fallocate", func(fd int) error { return unix.Fallocate(fd, 0, have, size-have) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return extend(f, size) // a file system that cannot promise space
	}
	return err
}
