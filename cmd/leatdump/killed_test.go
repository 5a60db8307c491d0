package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
)

// killed returns a directory with a topic whose process ended while a full file of partition 1 was being sealed. All in it is of records
// [0, n) there, and of 30 in the other.
func killed(t testing.TB) (dir string, n int) {
	t.Helper()
	dir = data(t, 30)
	all, err := engine.Inspect(dir)
	require.NoError(t, err)
	topic := all.Topics[0]
	begun := false
	c := partitionConfig(&topic, 1)
	c.ReadOnly, c.SegmentBytes, c.Behind = false, disk.MinSegmentBytes, func(func()) { begun = true }
	l, err := disk.Open(topic.Dirs[1], c)
	require.NoError(t, err)
	for more := 3; more > 0; {
		var b frame.Builder
		b.Add(&frame.Record{Value: fmt.Append(nil, "value-", l.Next()), Appended: 1 << 60})
		_, err := l.Write(&b)
		require.NoError(t, err)
		if begun {
			more--
		}
	}
	require.NoError(t, l.Abandon())
	names, err := filepath.Glob(filepath.Join(topic.Dirs[1], "*.leat.tmp"))
	require.NoError(t, err)
	require.Len(t, names, 1)
	return dir, int(l.Next())
}

// TestRun_BehindARoll looks at what a process has left that ended in the middle of a roll.
func TestRun_BehindARoll(t *testing.T) {
	dir, n := killed(t)
	before := files(t, dir)
	assert.Regexp(t, fmt.Sprintf(`orders +2 +%d +`, 30+n), fine(t, "topics", dir))
	assert.Contains(t, fine(t, "verify", dir), fmt.Sprintf("orders, partition 1: offsets [0, %d), %d records in 3 files", n, n))
	assert.Contains(t, fine(t, "segments", dir), ".leat.tmp ")
	assert.Contains(t, fine(t, "records", dir, "orders"), fmt.Sprintf("1:%d ", n-1))
	export := fine(t, "export", dir, "orders")
	assert.Contains(t, export, fmt.Sprintf("value-%d", n-1))

	e, err := engine.Open(engine.Config{Dir: dir, ReadOnly: true})
	require.NoError(t, err)
	top, err := e.Topic("orders")
	require.NoError(t, err)
	part, err := top.Partition(1)
	require.NoError(t, err)
	assert.EqualValues(t, n, part.Next())
	require.NoError(t, e.Close())
	assert.Equal(t, before, files(t, dir), "nothing has changed")

	e = open(t, dir)
	top, err = e.Topic("orders")
	require.NoError(t, err)
	part, err = top.Partition(1)
	require.NoError(t, err)
	assert.EqualValues(t, n, part.Next())
	_, err = part.Publish(context.Background(), engine.Record{Value: []byte("more")})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	assert.Contains(t, fine(t, "verify", dir), fmt.Sprintf("offsets [0, %d), %d records", n+1, n+1))

	// Damage of the last full file.
	dir, n = killed(t)
	names, err := filepath.Glob(filepath.Join(dir, "*", "00001", "*.leat"))
	require.NoError(t, err)
	last := names[len(names)-1]
	b, err := os.ReadFile(last)
	require.NoError(t, err)
	clear(b[100:])
	require.NoError(t, os.WriteFile(last, b, 0o666))
	code, _, _ := call("verify", dir)
	assert.Equal(t, exitOK, code, "nothing of it had been safe")
}
