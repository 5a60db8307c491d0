package tool

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/bench/load"
)

func TestRun_Durable(t *testing.T) {
	for _, sync := range []string{"always", "never", "5ms"} {
		above := t.TempDir()
		dir := filepath.Join(above, "some", "files")
		code, stdout, stderr := call(with("-scenario", "durable", "-sync", sync, "-dir", dir)...)
		require.Equal(t, exitOK, code, stderr)
		assert.Contains(t, stdout, "sync "+sync)
		assert.Contains(t, stdout, "disk sync ")
		assert.Contains(t, stdout, "lost 0, duplicated 0, reordered 0, gap 0, corrupt 0")
		left, err := os.ReadDir(above)
		require.NoError(t, err)
		assert.Empty(t, left, "the directories that were made, too")
	}
	code, stdout, stderr := call(with("-scenario", "unicast", "-sync", "always", "-json", "-", "-q")...)
	require.Equal(t, exitOK, code, stderr)
	var res load.Result
	require.NoError(t, json.Unmarshal([]byte(stdout), &res))
	assert.Equal(t, "always", res.Sync)
	require.NotNil(t, res.Disk)
	assert.Positive(t, res.Disk.P50)
	code, stdout, _ = call(with("-json", "-", "-q")...)
	require.Equal(t, exitOK, code)
	assert.NotContains(t, stdout, "disk_sync_ns")
}

func TestRun_DurableRefused(t *testing.T) {
	for _, x := range []struct {
		says string
		args []string
	}{
		{"keeps nothing in files", []string{"-scenario", "durable", "-engine", "chan"}},
		{"must be one of always, never, or a time above 0s", []string{"-sync", "sometimes"}},
		{"must be one of always, never, or a time above 0s", []string{"-sync", "-5ms"}},
		{`-dir "x": without -sync scenario mixed keeps nothing in files: must be left out, or go with -sync always, -sync never or a time such as -sync 10ms` + "\n",
			[]string{"-dir", "x"}},
		{"such as -sync 10ms, and -engine leat, since chan keeps nothing in files\n", []string{"-dir", "x", "-engine", "chan"}},
		{`-sync "": must not be empty; it is (how) keep messages in files`, []string{"-dir", "x", "-scenario", "durable", "-sync", ""}},
		{"scenario fan-out keeps nothing in files", []string{"sweep", "-dir", "x", "-scenario", "fan-out"}},
		{"-sync is not for scenarios with a group", []string{"-scenario", "group", "-sync", "always"}},
	} {
		code, _, stderr := call(with(x.args...)...)
		assert.Equal(t, exitUsage, code, "%v", x.args)
		assert.Contains(t, stderr, x.says, "%v", x.args)
	}
}

// stuck keeps messages in files, and comes to no end before it may.
type stuck struct {
	twice
	opened, end chan struct{}
}

func (stuck) KeepsFiles() {}

func (x stuck) Open(s load.Scenario) (load.Instance, error) {
	dir, err := os.MkdirTemp(s.Dir, "mine-")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600)
	}
	close(x.opened)
	<-x.end
	return nil, errors.Join(err, errors.New("is stuck"))
}

// TestLeftovers_End: who would kill the process while it removes what it has made has to wait for that.
func TestLeftovers_End(t *testing.T) {
	left, undone := &leftovers{}, false
	b := &begun{left: left, removeDir: func() {
		undone = true
		assert.False(t, left.mu.TryLock(), "remove would find nothing, and the process be killed")
	}}
	left.set(b.undo)
	b.close()
	assert.True(t, undone)
	left.remove()
}

// TestLeftovers: a run that is killed leaves nothing behind: no directory, and no file that it has not written into.
func TestLeftovers(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(folder, "tmp"))
	require.NoError(t, os.Mkdir(filepath.Join(folder, "tmp"), 0o700))
	for _, dir := range []string{os.TempDir(), filepath.Join(folder, "new", "er")} {
		for _, command := range []string{"run", "sweep"} {
			left, x := &leftovers{}, stuck{opened: make(chan struct{}), end: make(chan struct{})}
			args := []string{command, "-scenario", "unicast", "-sync", "always", "-q", "-floor=false", "-json", filepath.Join(folder, "r.json")}
			if dir != os.TempDir() {
				args = append(args, "-dir", dir)
			}
			code := make(chan int)
			go func() { code <- run(t.Context(), left, []load.Target{x}, args, io.Discard, io.Discard) }()
			<-x.opened
			there, err := filepath.Glob(filepath.Join(dir, "leatload-*", "mine-*", "file"))
			require.NoError(t, err)
			assert.Len(t, there, 1)
			left.remove()
			files, err := os.ReadDir(folder)
			require.NoError(t, err)
			for _, f := range files {
				assert.Equal(t, "tmp", f.Name())
			}
			files, err = os.ReadDir(os.TempDir())
			require.NoError(t, err)
			assert.Empty(t, files)
			close(x.end)
			left.mu.Unlock() // the process would be gone
			assert.Equal(t, exitFailed, <-code)
		}
	}
}
