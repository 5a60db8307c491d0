package rivals

import "golang.org/x/sys/unix"

// processCPU returns the processor time that a process has used, in nanoseconds; false if that cannot be known. Java's own
// figure comes in steps of 10 ms.
func processCPU(pid int) (int64, bool) {
	const schedClock = 2 // of all threads, those that have ended included
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &ts); err != nil {
		return 0, false
	}
	return ts.Nano(), true
}
