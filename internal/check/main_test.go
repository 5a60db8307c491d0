package check_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the collector come less often: histories are made, checked and thrown away.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
