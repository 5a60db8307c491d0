package tool

import (
	"encoding/json"
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
