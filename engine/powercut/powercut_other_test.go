//go:build !linux

package powercut_test

import "testing"

func TestPowerCut(t *testing.T) {
	t.Skip("loop devices are Linux's: TestDurable_CrashAnywhere of package engine has power cuts on a file system of its own")
}
