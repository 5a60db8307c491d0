package disk_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

var kills = flag.Int("kills", 15, "how often TestKill kills its child")

// victim is the environment variable that makes the test program the child of TestKill.
const victim = "LEAT_DISK_VICTIM"

// TestMain runs the child of TestKill, or the tests.
func TestMain(m *testing.M) {
	if os.Getenv(victim) != "" {
		if err := beKilled(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	debug.SetGCPercent(800) // file systems in memory are made by the hundred thousand, and are small
	os.Exit(m.Run())
}

// beKilled writes, syncs, trims and says what is durable, and after a + what is written, until it is killed.
func beKilled() error {
	c := small(vfs.OS{})
	c.Behind = func(rest func()) { go rest() }
	l, err := disk.Open(dir, c)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		if _, err := l.Write(batch(l.Next(), 1+n%7, 0)); err != nil {
			return err
		}
		fmt.Printf("+%d\n", l.Next())
		if n%3 == 0 {
			durable, err := l.Sync()
			if err != nil {
				return err
			}
			fmt.Println(durable)
		}
		if next := l.Next(); n%50 == 0 && next > 300 {
			if err := l.Trim(next - 300); err != nil {
				return err
			}
		}
	}
}

// TestKill kills a process that writes, at a moment that has nothing to do with what it is doing, and looks at what it has left.
// (What the system has in memory survives that: power cuts are another test.)
func TestKill(t *testing.T) {
	testkit.Watchdog(t)
	self, err := os.Executable()
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	durable, written, epoch := uint64(0), uint64(0), uint64(0)
	for range testkit.Rounds(*kills) {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), victim+"=1")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		next := func() bool {
			if !lines.Scan() {
				return false
			}
			more, isWritten := strings.CutPrefix(lines.Text(), "+")
			n, err := strconv.ParseUint(more, 10, 64)
			switch {
			case err != nil:
				require.False(t, strings.HasPrefix(lines.Text(), "error"), lines.Text())
			case isWritten:
				written = max(written, n)
			default:
				durable = max(durable, n)
			}
			return true
		}
		for before := durable; durable == before; { // it has done something of each kind
			require.True(t, next())
		}
		_, err = disk.Open(dir, small(vfs.OS{}))
		require.ErrorIs(t, err, disk.ErrLocked, "and keeps others out")
		for range rand.IntN(240) {
			require.True(t, next())
		}
		require.NoError(t, cmd.Process.Kill())
		for next() { // what it has still said counts
		}
		_ = cmd.Wait()
		l, err := disk.Open(dir, small(vfs.OS{}))
		require.NoError(t, err)
		require.GreaterOrEqual(t, l.Next(), durable)
		require.GreaterOrEqual(t, l.Next(), written, "the system has it, whoever dies")
		require.Greater(t, l.Epoch(), epoch)
		epoch = l.Epoch()
		requireHolds(t, l, l.First(), l.Next())
		require.NoError(t, l.Abandon())
	}
	require.Positive(t, durable)
	require.Positive(t, written)
}
