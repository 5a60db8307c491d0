package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/segment/vfs"
)

// dir is where durable engines of these tests are on a vfs.Mem.
const dir = "data"

// durable is a TopicConfig for small files.
func durable(s engine.Sync, n int) engine.TopicConfig {
	return engine.TopicConfig{Partitions: n, Partitioner: engine.Explicit(), Durable: &engine.Durable{Sync: s, FileBytes: 16 << 10}}
}

// on opens an engine on a file system that is not the system's; it need not close well.
func on(t testing.TB, fsys vfs.FS, c engine.Config) *engine.Engine {
	t.Helper()
	c.Dir = dir
	e, err := engine.Open(c.WithFS(fsys))
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// lost returns what a power cut leaves of which nothing was written that was not synced.
func lost(m *vfs.Mem) *vfs.Mem { return m.Crash(func(int) bool { return false }) }

// kept returns what a power cut leaves of which everything was written.
func kept(m *vfs.Mem) *vfs.Mem { return m.Crash(func(int) bool { return true }) }

// send publishes n records to each partition, whose values are their numbers.
func send(t testing.TB, top *engine.Topic, n int) {
	t.Helper()
	for p := range top.Partitions() {
		part := part(t, top, p)
		for range n {
			off := part.Next()
			got, err := part.Publish(background, engine.Record{Key: []byte("k"), Value: fmt.Append(nil, off)})
			require.NoError(t, err)
			require.Equal(t, off, got.Offset)
		}
	}
}

// holds checks that each partition has the records [0, n) that send published.
func holds(t testing.TB, top *engine.Topic, n int) {
	t.Helper()
	for p := range top.Partitions() {
		part := part(t, top, p)
		require.Equal(t, engine.Offset(n), part.Next(), "partition %d", p)
		at := engine.Offset(0)
		for off, r := range part.Records(0) {
			require.Equal(t, at, off)
			require.Equal(t, fmt.Sprint(off), string(r.Value))
			require.Equal(t, "k", string(r.Key))
			at++
		}
		require.Equal(t, engine.Offset(n), at)
	}
}
