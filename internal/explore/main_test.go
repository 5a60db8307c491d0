package explore_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/leatlog/leat/internal/testkit"
)

func TestMain(m *testing.M) {
	// TestUnwind_RecoveredPanic leaves threads behind, on purpose.
	testkit.Main(m, goleak.IgnoreAnyFunction("github.com/leatlog/leat/internal/explore_test.stubborn"))
}
