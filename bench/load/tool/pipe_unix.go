//go:build unix

package tool

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// keepPipes has a write into a pipe that nobody reads fail, where it would kill the process.
func keepPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// loosePipes has it kill again, if it is standard output or standard error.
func loosePipes() { signal.Reset(syscall.SIGPIPE) }

// isPipe reports whether a write has failed so.
func isPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
