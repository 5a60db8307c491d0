package explore_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// TestUnwind_RecoveredPanic leaves threads behind, on purpose.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/leatlog/leat/internal/explore_test.stubborn"))
}
