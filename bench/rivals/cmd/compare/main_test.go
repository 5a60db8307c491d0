package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/rivals"
	"github.com/leatlog/leat/bench/rivals/arena"
)

func compare(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err = run(t.Context(), args, &stdout, &stderr)
	return stdout.String(), err
}

func TestRun_ComparesAndWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	raw := filepath.Join(t.TempDir(), "raw.json")
	out, err := compare(t, "-rivals", "leat/async/reader,ring", "-topologies", "1->1,4x4", "-slices", "2", "-slice", "2ms", "-out", dir, "-raw", raw,
		"-rates", "max,20k", "-waits", "default,spin")
	require.NoError(t, err)
	assert.Contains(t, out, "4x4, 64 B, as fast as they can, against chan")
	assert.Contains(t, out, "ring,spin")
	assert.Contains(t, out, "20k messages a second")
	for _, pattern := range []string{"compare-*.json", "compare-*.svg", "compare-*.txt"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		assert.Len(t, found, 1, pattern)
	}
	text, err := os.ReadFile(raw)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"slices_a"`)
}

func TestRun_List(t *testing.T) {
	out, err := compare(t, "-list")
	require.NoError(t, err)
	for _, r := range rivals.All() {
		assert.Contains(t, out, r.Name)
	}
}

func TestRun_Refuses(t *testing.T) {
	for _, args := range [][]string{
		{"-rivals", "nobody"}, {"-rivals", "["}, {"-against", "nobody"}, {"-topologies", "2->2"}, {"-sizes", "65"}, {"-rates", "fast"}, {"-rates", "-1"},
		{"-rates", "0"}, {"-rates", "NaN"}, {"-waits", "pray"}, {"-slices", "0"}, {"-slice", "1us"}, {"-nonsense"}, {"word"}, {"-targets", "-floors"}, {"-cpuprofile", "/nowhere/file"},
		{"-rivals", "chan"}, // against itself there is nothing to say
		{"-rivals", "ring", "-topologies", "3->1"},
	} {
		_, err := compare(t, append(args, "-out", "")...)
		assert.Error(t, err, "%v", args)
	}
}

func TestRun_Interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	assert.ErrorIs(t, run(ctx, []string{"-rivals", "ring", "-out", ""}, &out, &out), context.Canceled)
}

// TestMains checks that the default compares every rival but the reference, and each of Leat's ways out.
func TestMains(t *testing.T) {
	list, err := named(mains)
	require.NoError(t, err)
	has := map[string]bool{}
	for _, r := range list {
		has[r.Name] = true
	}
	for _, r := range rivals.All() {
		switch {
		case r.Special(), len(r.Name) > 5 && r.Name[:5] == "leat/", r.Name == "chan":
		case r.Name == "nothing", strings.HasPrefix(r.Name, "kept"): // see -floors
		case r.Name == "ring10", r.Name == "ring100", r.Name == "lmax10", r.Name == "lmax100", r.Name == "kfake-nolinger":
		default:
			assert.True(t, has[r.Name], r.Name)
		}
	}
	assert.True(t, has["leat/async/poll"])
}

// TestTargets checks that everything that is named exists and can do what is asked of it.
func TestTargets(t *testing.T) {
	asked, err := planTargets(&options{slices: 1}, targets())
	require.NoError(t, err)
	require.Len(t, asked, len(targets()))
	told, err := planTargets(&options{slices: 1}, floors())
	require.NoError(t, err)
	require.Len(t, told, len(floors()))
	for i, m := range slices.Concat(asked, told) {
		spec := arena.Spec{Topology: m.Topology, Size: m.Size}
		for _, s := range []arena.Side{m.A, m.B} {
			spec.Wait = s.Wait
			assert.NoError(t, s.Check(spec), "%s: %v", m.target.What, s)
		}
		assert.Equal(t, i < len(asked), (m.target.Least > 0) != (m.target.Most > 0), m.target.What)
	}
}
