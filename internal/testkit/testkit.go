// Package testkit holds what the tests of several packages need. Only tests import it.
package testkit

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// patience is how long a test may take before what it waits for counts as hanging, also on a machine that is busy.
const patience = 8 * time.Minute

// Rounds returns n, or a twentieth of it in a short run.
func Rounds(n int) int {
	if testing.Short() {
		return max(n/20, 1)
	}
	return n
}

// Watchdog ends the program with the stacks of all goroutines if the test takes much longer than it should: what hangs has
// failed.
func Watchdog(t testing.TB) { Steps(t) }

// Steps is Watchdog for a test of many steps: the function that it returns is to be called before each, and says that the test still
// gets on.
func Steps(t testing.TB) (step func()) {
	t.Helper()
	timer := time.AfterFunc(patience, func() {
		debug.SetTraceback("all")
		panic(t.Name() + ": the watchdog barked")
	})
	t.Cleanup(func() { timer.Stop() })
	return func() { timer.Reset(patience) }
}

// Await lets others run until cond holds. A watchdog ends it if that never comes.
func Await(cond func() bool) {
	for turn := 0; !cond(); turn++ {
		if turn < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(50 * time.Microsecond) // to leave the processor to what we wait for; nothing depends on it
		}
	}
}

// Bubble runs a test in which time is the bubble's own: it stands still while anybody is at work, so instants are exact.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	Watchdog(t)
	synctest.Test(t, f)
}

// Pass lets time pass in a bubble, and what comes of it.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// leaving is how long goroutines may take that are on their way out, also on a machine that lets them wait.
const leaving = 30 * time.Second

// NoLeaks fails the test if goroutines are left that do not end. goleak alone gives those that are about to end less than half a
// second, in which a busy machine may not have let them run once.
func NoLeaks(t testing.TB) {
	t.Helper()
	if err := leaks(); err != nil {
		t.Error(err)
	}
}

// Main runs the tests of a package and ends the program. It fails if goroutines are left in the end: see NoLeaks.
func Main(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if code == 0 {
		if err := leaks(options...); err != nil {
			fmt.Fprintln(os.Stderr, "after all tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// leaks returns what goleak finds once all that was on its way out has ended, or when it took too long.
func leaks(options ...goleak.Option) (err error) {
	for end := time.Now().Add(leaving); ; {
		if err = goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
