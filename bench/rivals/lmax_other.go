//go:build !linux

package rivals

// processCPU knows nothing here: what Java says has to do.
func processCPU(int) (int64, bool) { return 0, false }
