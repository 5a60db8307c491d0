package atomicx_test

import (
	"testing"

	"github.com/leatlog/leat/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
