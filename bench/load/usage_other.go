//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || solaris)

package load

// CPUTime returns 0: the processor time of a process is not known here, and results say so by 0.
func CPUTime() int64 { return 0 }
