//go:build !amd64

package atomicx

const (
	constantSpeed   = false // there is no time stamp counter that is read
	fetchesForWrite = true  // where there is an instruction for it, every processor has it
)
