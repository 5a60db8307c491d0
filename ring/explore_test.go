//go:build !explore

package ring_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExplore runs the scenarios of this package, which need the tag explore: without it a plain "go test ./..." would leave
// them out.
func TestExplore(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("there is no go command here: %v", err)
	}
	args := []string{"test", "-tags", "explore", "-run", "^TestExplored", "-count=1", "-v", "."}
	if testing.Short() {
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
}
