package cursor_test

import (
	"runtime/debug"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rounds returns n, or a hundredth of it in a short run.
func rounds(n int) int {
	if testing.Short() {
		return max(n/100, 1)
	}
	return n
}

// watchdog ends the program with the stacks of all goroutines if the test is not over in a minute: what hangs has failed.
func watchdog(t testing.TB) {
	timer := time.AfterFunc(time.Minute, func() {
		debug.SetTraceback("all")
		panic(t.Name() + ": the watchdog barked")
	})
	t.Cleanup(func() { timer.Stop() })
}
