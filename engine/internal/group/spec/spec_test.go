package spec_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// faults is how many are planted in group.pml.
const faults = 13

// verify lets Spin make a verifier of the model, runs it, and returns how many states there are and what is wrong with
// them.
func verify(t *testing.T, liveness bool, options ...string) (states int, errors string) {
	t.Helper()
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: the model is not checked here", tool)
		}
	}
	model, err := filepath.Abs("group.pml")
	require.NoError(t, err)
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %s:\n%s", name, strings.Join(args, " "), out)
		return string(out)
	}
	compile := []string{"-w", "-O0", "-o", "pan", "pan.c"} // compiling takes longer than looking, but with liveness
	check := []string{"-m200000", "-n", "-w20"}
	if liveness {
		options = append(options, "-DLTL")
		compile = append(compile, "-DNFAIR=4", "-O1")
		check = append(check, "-a", "-f")
	} else {
		compile = append(compile, "-DSAFETY")
	}
	run("spin", append(append([]string{"-a"}, options...), model)...)
	run("gcc", compile...)
	out := run("./pan", check...)

	found := regexp.MustCompile(`(\d+) states, stored`).FindStringSubmatch(out)
	require.NotNil(t, found, "%s", out)
	states, err = strconv.Atoi(found[1])
	require.NoError(t, err)
	require.NotContains(t, out, "max search depth too small")
	if strings.Contains(out, "errors: 0") {
		require.NotContains(t, out, "Search not completed")
		return states, ""
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "pan:1: ") {
			return states, strings.TrimSpace(line)
		}
	}
	require.Fail(t, "no verdict", "%s", out)
	return 0, ""
}

// TestGroup_Spin looks at every state of the model.
func TestGroup_Spin(t *testing.T) {
	t.Parallel()
	states, errors := verify(t, false)
	assert.Empty(t, errors)
	assert.Greater(t, states, 300_000, "the model has lost something")
	t.Logf("%d states", states)
}

// TestGroup_SpinConverges looks for executions that go on for ever, one member against another, without getting all done.
func TestGroup_SpinConverges(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	t.Parallel()
	states, errors := verify(t, true)
	assert.Empty(t, errors)
	t.Logf("%d states", states)
}

// TestGroup_SpinFindsFaults plants each fault, of which none may go unnoticed. Two events are needed for that: with one,
// fault 7 is not found.
func TestGroup_SpinFindsFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("makes and runs a verifier for each fault")
	}
	model, err := os.ReadFile("group.pml")
	require.NoError(t, err)
	for n := 1; n <= faults; n++ {
		option := fmt.Sprintf("-DMUT=%d", n)
		require.Regexp(t, fmt.Sprintf(`#(el)?if MUT [!=]= %d\n`, n), string(model), "the fault is not in the model")
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			_, errors := verify(t, false, option)
			assert.NotEmpty(t, errors)
			t.Log(errors)
		})
	}
}
