package dispatch_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine/internal/dispatch"
	"github.com/leatlog/leat/internal/testkit"
)

// watchdog is how long a test waits before it calls a hang a failure. No test expects it to pass.
const watchdog = 3 * time.Minute

func TestMain(m *testing.M) { testkit.Main(m) }

// newPool returns a pool that is closed, and checked to have ended, when the test ends.
func newPool(t testing.TB, workers int) *dispatch.Pool {
	t.Helper()
	return newPoolHook(t, workers, func(v any, stack []byte) { t.Errorf("hook called: %v\n%s", v, stack) })
}

func newPoolHook(t testing.TB, workers int, hook func(v any, stack []byte)) *dispatch.Pool {
	t.Helper()
	p := dispatch.NewPool(workers, hook)
	t.Cleanup(func() {
		p.Close()
		await(t, "the pool's end", func(done <-chan struct{}) bool { return p.Wait(done) })
	})
	return p
}

// blockedPool returns a pool whose workers are all inside a run, until release is called.
func blockedPool(t testing.TB, workers int) (p *dispatch.Pool, release func()) {
	t.Helper()
	p = newPool(t, workers)
	started, end := make(chan struct{}), make(chan struct{})
	for range workers {
		p.NewTask(func() dispatch.Again { started <- struct{}{}; <-end; return false }, dispatch.Options{}).Wake()
	}
	for range workers {
		receive(t, started)
	}
	return p, func() { close(end) }
}

// await fails the test if wait does not return true before the watchdog.
func await(t testing.TB, what string, wait func(done <-chan struct{}) bool) {
	t.Helper()
	done := make(chan struct{})
	timer := time.AfterFunc(watchdog, func() { close(done) })
	defer timer.Stop()
	require.True(t, wait(done), "waited in vain for %s", what)
}

// receive returns what comes from c.
func receive[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	await(t, "a channel", func(done <-chan struct{}) bool {
		select {
		case v = <-c:
			return true
		case <-done:
			return false
		}
	})
	return v
}
