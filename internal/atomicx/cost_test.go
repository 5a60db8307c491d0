package atomicx_test

import (
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNormalBuild_CostsNothing compiles a function that uses words, cells and notes, and looks at its assembly: the aliases
// must be the compiler's own intrinsics, and the notes nothing at all. By hand:
//
//	go build -gcflags=-S ./internal/atomicx/testdata/hot 2>&1 | grep -A200 'hot.Touch STEXT' | grep CALL
func TestNormalBuild_CostsNothing(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("on other platforms 64-bit atomics may be calls")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("there is no go command here: %v", err)
	}
	touch := assembly(t)
	assert.Empty(t, calls(touch), "calls in a normal build:\n%s", touch)
	// With the shims there are some: this test can fail.
	assert.NotEmpty(t, calls(assembly(t, "-tags", "explore")))
}

var called = regexp.MustCompile(`\bCALL\s+\S+`)

// calls returns the calls in the assembly of a function, except the one that makes its stack grow.
func calls(assembly string) (all []string) {
	for _, c := range called.FindAllString(assembly, -1) {
		if !strings.Contains(c, "runtime.morestack") {
			all = append(all, c)
		}
	}
	return all
}

// assembly returns the assembly of hot.Touch.
func assembly(t *testing.T, flags ...string) string {
	t.Helper()
	args := append([]string{"build", "-gcflags=-S"}, flags...)
	out, err := exec.CommandContext(t.Context(), "go", append(args, "./testdata/hot")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, touch, found := strings.Cut(string(out), "hot.Touch STEXT")
	require.True(t, found, "%s", out)
	touch, _, _ = strings.Cut(touch, " STEXT") // up to the next function
	return touch
}
