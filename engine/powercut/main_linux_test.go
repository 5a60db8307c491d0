package powercut_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// inside is the environment variable of a process that has mounts of its own.
const inside = "LEAT_POWERCUT_INSIDE"

// TestMain runs the tests in a process that nobody else shares its mounts with: they go with it, however it ends. Where that
// is not allowed the tests may still be, or they say why not.
func TestMain(m *testing.M) {
	if os.Geteuid() == 0 && os.Getenv(inside) == "" {
		self, err := os.Executable()
		if err == nil {
			runtime.LockOSThread()         // the other process is told when this thread ends
			signal.Ignore(syscall.SIGQUIT) // it prints its stacks, and that is enough
			cmd := exec.Command(self, os.Args[1:]...)
			cmd.Env = append(os.Environ(), inside+"=1")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
			err = cmd.Run()
			var code *exec.ExitError
			switch {
			case err == nil:
				os.Exit(0)
			case errors.As(err, &code):
				os.Exit(max(1, code.ExitCode()))
			}
		}
	}
	goleak.VerifyTestMain(m)
}
