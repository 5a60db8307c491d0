package explore_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
)

// TestExplore runs the tests of this package that need the tag explore: the scenarios over the real packages, and the
// explorer's own tests. Without it a plain "go test ./..." would leave them out.
func TestExplore(t *testing.T) {
	if atomicx.Exploring {
		t.Skip("this is the run with the tag")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("there is no go command here: %v", err)
	}
	args := []string{"test", "-tags", "explore", "-count=1", "-timeout=10m"}
	if testing.Short() {
		args = append(args, "-short")
	}
	if testing.Verbose() {
		args = append(args, "-v")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(os.Environ(), "GOWORK=off")
	err := cmd.Run()
	t.Logf("go %s\n%s", cmd.Args[1:], &out)
	require.NoError(t, err)
}
