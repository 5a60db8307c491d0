//go:build unix

package tool

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load/target"
)

// TestMain is the program, if the environment says so: a signal has to kill a process.
func TestMain(m *testing.M) {
	if os.Getenv("LEATLOAD_MAIN") != "" {
		Main(target.All()...)
	}
	os.Exit(m.Run())
}

// TestMain_Unread: a program whose output nobody reads any more ends at once, by the signal that ends others, and leaves nothing behind.
func TestMain_Unread(t *testing.T) {
	for _, args := range [][]string{
		{"-scenario", "durable", "-duration", "1h", "-warmup", "0s", "-floor=false", "-rate", "1000"},
		{"sweep", "-scenario", "durable", "-duration", "300ms", "-warmup", "0s", "-floor=false", "-slo", "lost<1,e2e.max<1ns"},
		{"list"},
	} {
		tmp := t.TempDir()
		in, out, err := os.Pipe()
		require.NoError(t, err)
		var errs bytes.Buffer
		program := exec.CommandContext(t.Context(), os.Args[0], append(args, "-json", filepath.Join(tmp, "r.json"))...)
		if args[0] == "list" {
			program.Args = program.Args[:2]
		}
		program.Env = append(os.Environ(), "LEATLOAD_MAIN=1", "TMPDIR="+tmp)
		program.Stdout, program.Stderr = out, &errs
		program.WaitDelay = time.Minute
		if args[0] == "list" { // too short to be still there after a line
			require.NoError(t, in.Close())
		}
		require.NoError(t, program.Start())
		require.NoError(t, out.Close())
		if args[0] != "list" {
			_, err := bufio.NewReader(in).ReadString('\n')
			require.NoError(t, err)
			made, err := filepath.Glob(filepath.Join(tmp, "leatload-*"))
			require.NoError(t, err)
			assert.Len(t, made, 1)
			require.NoError(t, in.Close())
		}
		var how *exec.ExitError
		require.ErrorAs(t, program.Wait(), &how, "%v", args)
		status, ok := how.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		assert.True(t, status.Signaled() && status.Signal() == syscall.SIGPIPE, "%v: %v: %s", args, how, &errs)
		assert.Empty(t, errs.String(), "%v", args)
		left, err := os.ReadDir(tmp)
		require.NoError(t, err)
		assert.Empty(t, left, "%v", args)
	}
}

// TestRun_Unread: a program that runs in another one does not end that: it says what could not be written.
func TestRun_Unread(t *testing.T) {
	var errs bytes.Buffer
	code := Run(t.Context(), target.All(), []string{"list"}, unread{}, &errs)
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, "leatload: standard output could not be written: "+syscall.EPIPE.Error()+"\n", errs.String())
}

type unread struct{}

func (unread) Write([]byte) (int, error) { return 0, errors.Join(syscall.EPIPE) }
