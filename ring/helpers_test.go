package ring_test

import (
	"testing"

	"github.com/leatlog/leat/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// What tests of several packages share; functions, not variables, so that a closure passed to one is not allocated.

func rounds(n int) int { return testkit.Rounds(n) }

func watchdog(t testing.TB) { testkit.Watchdog(t) }

func await(cond func() bool) { testkit.Await(cond) }
