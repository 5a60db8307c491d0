//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris

package load

import "golang.org/x/sys/unix"

// CPUTime returns the processor time that the process has used, in nanoseconds.
func CPUTime() int64 {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return ru.Utime.Nano() + ru.Stime.Nano()
}
