package explore_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/atomicx"
)

// TestExplore runs the tests that need the tag explore: the scenarios over the real packages, and the explorer's own tests.
// Without it a plain "go test ./..." would leave them out.
func TestExplore(t *testing.T) {
	if atomicx.Exploring {
		t.Skip("this is the run with the tag")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("there is no go command here: %v", err)
	}
	for _, x := range []struct{ name, dir, run string }{
		{"explore", ".", "."},
		{"partition", "../../engine/internal/partition", "^TestExplore_"}, // white box, and so not here
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"test", "-tags=explore", "-count=1", "-timeout=10m", "-run=" + x.run}
			if testing.Short() {
				args = append(args, "-short")
			}
			if testing.Verbose() {
				args = append(args, "-v")
			}
			cmd := exec.CommandContext(t.Context(), "go", append(args, x.dir)...)
			cmd.WaitDelay = time.Second
			out, err := cmd.CombinedOutput()
			t.Logf("go %s\n%s", strings.Join(cmd.Args[1:], " "), out)
			require.NoError(t, err)
		})
	}
}
