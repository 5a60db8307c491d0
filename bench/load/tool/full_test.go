package tool

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/compare"
	"github.com/leatlog/leat/bench/load/slo"
	"github.com/leatlog/leat/bench/load/target"
)

// moment are flags for a run of 500 messages, however busy the machine is.
var moment = []string{"-engine", "chan", "-messages", "500", "-duration", "1m", "-warmup", "0s", "-floor=false"}

// quick are flags for a search of one run.
var quick = []string{"sweep", "-engine", "chan", "-scenario", "unicast", "-duration", "10ms", "-warmup", "0s", "-floor=false", "-runs", "1", "-slo", "lost=0"}

// TestFull_Files: a file that cannot be written is told of once, and by whom it was asked for, and the exit code says that it is missing.
func TestFull_Files(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("there is no " + full)
	}
	a := result(t, "a.json", "-rate", "20000")
	page := []string{"report", a, "-o", full}
	for _, x := range []struct {
		flag string
		args []string
		more []string
	}{
		{"json", moment, nil}, {"csv", moment, nil}, {"hgrm", moment, nil}, {"hlog", moment, nil},
		{"cpuprofile", moment, nil}, {"memprofile", moment, nil}, {"trace", moment, nil},
		{"json", moment, []string{"-q"}},
		{"json", quick, nil}, {"o", quick, nil}, {"cpuprofile", quick, nil}, {"memprofile", quick, nil}, {"trace", quick, nil},
		{"o", page[:2], nil},
	} {
		args := append(append(append([]string{}, x.args...), "-"+x.flag, full), x.more...)
		code, stdout, stderr := call(args...)
		if x.args[0] == "sweep" {
			assert.Contains(t, []int{exitFailed, exitMissed}, code, "%v: the machine may be busy", args)
		} else {
			assert.Equal(t, exitFailed, code, "%v", args)
		}
		assert.Equal(t, "leatload: -"+x.flag+" could not be written: write /dev/full: no space left on device\n", stderr, "%v", args)
		assert.Equal(t, x.args[0] == "report", stdout == "", "%v: what can be shown is", args)
	}
}

// failing writer: a device that has no room, or a pipe that nobody reads.
type noRoom struct{}

var errNoRoom = errors.New("no room")

func (noRoom) Write([]byte) (int, error) { return 0, errNoRoom }

// TestFull_Standard: the same of standard output and standard error.
func TestFull_Standard(t *testing.T) {
	a := result(t, "a.json", "-rate", "20000")
	page := filepath.Join(t.TempDir(), "r.html")
	with := func(args []string, more ...string) []string { return append(append([]string{}, args...), more...) }
	for _, x := range []struct {
		lost string
		args []string
	}{
		{"standard output", []string{"list"}},
		{"standard output", []string{"list", "-v", "churn"}},
		{"standard output", []string{"compare", a, a, "-anyway"}},
		{"standard output", []string{"compare", a, a, "-anyway", "-json"}},
		{"standard output", []string{"report", a, "-o", page}},
		{"-o", []string{"report", a, "-o", "-"}},
		{"standard output", moment},
		{"standard output", with(moment, "-q")},
		{"standard output", with(moment, "-slo", "lost=0")},
		{"-json", with(moment, "-json", "-")},
		{"-csv", with(moment, "-csv", "-")},
		{"-json", with(quick, "-json", "-")},
		{"-o", with(quick, "-o", "-")},
		{"standard output", quick},
	} {
		var stderr bytes.Buffer
		code := Run(t.Context(), target.All(), x.args, noRoom{}, &stderr)
		if x.args[0] == "sweep" {
			assert.Contains(t, []int{exitFailed, exitMissed}, code, "%v: the machine may be busy", x.args)
		} else {
			assert.Equal(t, exitFailed, code, "%v", x.args)
		}
		lines := strings.SplitAfter(stderr.String(), "leatload: ") // the table may be there
		assert.Equal(t, x.lost+" could not be written: no room\n", lines[len(lines)-1], "%v", x.args)
		assert.Equal(t, 1, strings.Count(stderr.String(), "could not be written"), "%v", x.args)
	}
	for _, args := range [][]string{{"-h"}, {"sweep", "-h"}, {"list", "-h"}, with(moment, "-json", "-")} {
		assert.Equal(t, exitFailed, Run(t.Context(), target.All(), args, io.Discard, noRoom{}), "%v", args)
	}
	b := result(t, "b.json", "-rate", "20000", "-size", "128")
	for _, x := range []struct {
		want int
		args []string
	}{
		{exitUsage, []string{"-rate", "x"}},
		{slo.Exit, with(moment, "-slo", "e2e.p99<1ns")},
		{slo.Exit, with(quick, "-slo", "e2e.max<1ns")},
		{compare.ExitIncomparable, []string{"compare", a, b}},
	} {
		assert.Equal(t, x.want, Run(t.Context(), target.All(), x.args, noRoom{}, noRoom{}), "%v: what says more goes before it", x.args)
	}
}

// TestOutFile_Once: what comes after what could not be written is not written either, and Close says the first of it, once.
func TestOutFile_Once(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	f, err := openOut("x", name, nil)
	require.NoError(t, err)
	o, ok := f.(*outFile)
	require.True(t, ok)
	_, err = f.Write([]byte("a"))
	require.NoError(t, err)
	o.err = errNoRoom
	_, err = f.Write([]byte("b"))
	require.ErrorIs(t, err, errNoRoom)
	require.EqualError(t, f.Close(), "-x could not be written: no room")
	require.NoError(t, f.Close())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "a", string(text))
}

// TestView_Remembered: a terminal is one though what cannot be written there is remembered.
func TestView_Remembered(t *testing.T) {
	f, err := os.OpenFile("/dev/zero", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no device that may pass for a terminal")
	}
	defer f.Close()
	t.Setenv("TERM", "xterm")
	assert.Equal(t, newView(f).repaint, newView(&printed{w: f}).repaint)
	assert.Equal(t, isTerminal(f), newView(&printed{w: f}).repaint)
	assert.False(t, newView(&printed{w: io.Discard}).repaint)
}
