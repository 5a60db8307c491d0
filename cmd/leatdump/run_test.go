package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/engine"
	"github.com/leatlog/leat/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// call runs the program.
func call(args ...string) (code int, stdout, stderr string) { return callOn("", args...) }

// callOn runs the program with something on its standard input.
func callOn(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// fine runs the program, which must have nothing to complain about.
func fine(t testing.TB, args ...string) string {
	t.Helper()
	code, stdout, stderr := call(args...)
	require.Equal(t, exitOK, code, "%v: %s", args, stderr)
	require.Empty(t, stderr)
	return stdout
}

// open opens an engine.
func open(t testing.TB, dir string) *engine.Engine {
	t.Helper()
	e, err := engine.Open(engine.Config{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// fill makes a topic with two partitions, several files, and records of all kinds, and a group that has done 30 of them.
func fill(t testing.TB, e *engine.Engine, name string, n int) {
	t.Helper()
	ctx := context.Background()
	top, err := e.CreateTopic(name, engine.TopicConfig{Partitions: 2, Partitioner: engine.Explicit(),
		Durable: &engine.Durable{Sync: engine.Never, FileBytes: 8 << 10}})
	require.NoError(t, err)
	for p := range 2 {
		part, err := top.Partition(p)
		require.NoError(t, err)
		for i := range n {
			r := engine.Record{Key: fmt.Append(nil, "key-", i), Value: fmt.Append(nil, "value-", i, strings.Repeat("+", i%200))}
			switch i % 5 {
			case 1:
				r.Key, r.Value = nil, []byte{}
			case 2:
				r.Value = []byte{0xff, 0, byte(i), '<', '>'}
			case 3:
				r.Headers = engine.MakeHeaders(engine.Header{Name: "h<", Value: []byte("x")}, engine.Header{Name: "\xfe"})
			case 4:
				r.Timestamp = int64(-i)
			}
			_, err := part.Publish(ctx, r)
			require.NoError(t, err)
		}
	}
	_, err = e.CreateGroup(name+"-group", engine.GroupConfig{Topics: []string{name}, Start: engine.At(int64(min(n, 30)))})
	require.NoError(t, err)
	require.NoError(t, top.Flush(ctx))
}

// data returns a directory with a topic.
func data(t testing.TB, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	e := open(t, dir)
	fill(t, e, "orders", n)
	require.NoError(t, e.Close())
	return dir
}

// files returns what is in a directory, by name.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			var b []byte
			b, err = os.ReadFile(name)
			all[name] = string(b)
		}
		return err
	}))
	return all
}

func TestRun_LookingChangesNothing(t *testing.T) {
	dir := data(t, 300)
	before := files(t, dir)
	out := fine(t, "topics", dir)
	assert.Regexp(t, `orders +2 +600 +\d+ KiB +\d+ +never +64 MiB +- +block`, out)
	out = fine(t, "segments", dir, "orders", "-partition", "1")
	assert.Contains(t, out, "orders, partition 1: offsets [0, 300) in "+dir)
	assert.NotContains(t, out, "partition 0")
	assert.Regexp(t, `  00000000000000000000.leat +0 +\d+ +\d+ +1 +true +20`, out)
	out = fine(t, "groups", dir)
	assert.Regexp(t, `orders-group +assigned, at least once +orders +1 +30 +300 +270`, out)
	assert.Equal(t, out, fine(t, "groups", dir, "orders-group"))
	assert.Len(t, strings.Split(fine(t, "records", dir, "orders"), "\n"), 601)
	assert.Contains(t, fine(t, "verify", dir), "all is sound")
	assert.Contains(t, fine(t, "verify", dir, "orders"), "orders, partition 1: offsets [0, 300), 300 records in ")
	fine(t, "export", dir, "orders")
	assert.Equal(t, before, files(t, dir))
}

func TestRun_BesideAnEngine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	e := open(t, dir)
	fill(t, e, "orders", 100)
	assert.Regexp(t, `orders +2 +200`, fine(t, "topics", dir))
	assert.Contains(t, fine(t, "verify", dir), "200 records")
	code, _, stderr := callOn(fine(t, "export", dir, "orders"), "import", dir, "copy")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "in use")
}

func TestRun_Usage(t *testing.T) {
	out := fine(t, "-h")
	for _, c := range commands() {
		assert.Contains(t, out, c.name+" ")
		assert.Contains(t, fine(t, c.name, "-h"), "usage: leatdump "+c.name)
	}
	assert.Contains(t, out, "Exit code: 0 all is well")
	assert.Equal(t, out, fine(t, "help"))
	for _, args := range [][]string{
		{}, {"dump"}, {"-x"}, {"topics"}, {"topics", "a", "b"}, {"records", "a"}, {"verify", "a", "b", "c"}, {"topics", "a", "-n", "3"},
		{"records", "a", "b", "-format", "xml"}, {"records", "a", "b", "-from", "1", "-since", "1m"}, {"records", "a", "b", "-n", "-1"},
		{"verify", "a", "-progress", "loud"},
	} {
		code, _, stderr := call(args...)
		assert.Equal(t, exitUsage, code, "%v", args)
		assert.Contains(t, stderr, "leatdump: ", "%v", args)
	}
	dir := data(t, 1)
	for _, args := range [][]string{{"records", dir, "orders", "-since", "yesterday"}, {"records", dir, "orders", "-partition", "2"}} {
		code, _, _ := call(args...)
		assert.Equal(t, exitUsage, code, "%v", args)
	}
	for _, args := range [][]string{{"topics", dir + "x"}, {"records", dir, "order"}, {"groups", dir, "g"}, {"import", dir, "-i", dir + "x"},
		{"export", dir, "orders", "-o", dir + "x/y"}} {
		code, _, stderr := call(args...)
		assert.Equal(t, exitFailed, code, "%v: %s", args, stderr)
	}
}

func TestRun_Stopped(t *testing.T) {
	dir := data(t, 10)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{{"verify", dir}, {"records", dir, "orders"}, {"export", dir, "orders"}} {
		var out, err bytes.Buffer
		assert.Equal(t, exitFailed, run(ctx, args, strings.NewReader(""), &out, &err), "%v", args)
		assert.Contains(t, err.String(), "canceled")
	}
}

func TestRecords(t *testing.T) {
	dir := data(t, 20)
	args := func(more ...string) []string { return append([]string{"records", dir, "orders"}, more...) }
	text := strings.Split(fine(t, args("-partition", "1", "-from", "5", "-to", "10")...), "\n")
	require.Len(t, text, 6)
	assert.Regexp(t, `^1:5 20\S+Z key="key-5" value="value-5\+\+\+\+\+"$`, text[0])
	assert.Regexp(t, `key=nil value=""$`, text[1])
	assert.Regexp(t, `value="\\xff\\x00\\a<>"$`, text[2])
	assert.Regexp(t, `"h<"="x" "\\xfe"=nil$`, text[3])
	assert.Regexp(t, `timestamp=1969-12-31T23:59:59.999999991Z key=`, text[4])

	assert.Equal(t, 6, strings.Count(fine(t, args("-n", "3")...), "\n"), "of each partition")
	assert.Empty(t, fine(t, args("-from", "20")...))
	assert.Empty(t, fine(t, args("-since", "2100-01-01T00:00:00Z")...))
	assert.Equal(t, 40, strings.Count(fine(t, args("-since", "24h")...), "\n"))
	code, out, stderr := call(args("-from", "21")...)
	assert.Equal(t, exitOK, code)
	assert.Empty(t, out)
	assert.Contains(t, stderr, "partition 1 ends at 20")

	out = fine(t, args("-format", "hex", "-from", "2", "-to", "4", "-partition", "0")...)
	assert.Contains(t, out, "0:2 appended 20")
	assert.Contains(t, out, "  value: 5 bytes\n    00000000  ff 00 02 3c 3e ")
	assert.Contains(t, out, "  header \"\\xfe\": nil\n")

	lines := strings.Split(strings.TrimSpace(fine(t, args("-format", "json", "-partition", "0")...)), "\n")
	require.Len(t, lines, 20)
	for i, l := range lines {
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(l), &got))
		assert.Equal(t, float64(i), got["offset"])
	}
	assert.Contains(t, lines[0], `"value":"value-0"`)
	assert.NotContains(t, lines[1], `"key"`)
	assert.Contains(t, lines[1], `"value":""`)
	assert.Contains(t, lines[2], `"valueBase64":"`)
	assert.Contains(t, lines[3], `"name":"h<","value":"x"`)
}

// TestRun_Damage flips a byte of a record in the first of several files.
func TestRun_Damage(t *testing.T) {
	dir := data(t, 300)
	names, err := filepath.Glob(filepath.Join(dir, "*", "00001", "00000000000000000000.leat"))
	require.NoError(t, err)
	require.Len(t, names, 1)
	b, err := os.ReadFile(names[0])
	require.NoError(t, err)
	b[3000] ^= 0xff
	require.NoError(t, os.WriteFile(names[0], b, 0o666))

	code, out, stderr := call("verify", dir)
	assert.Equal(t, exitDamaged, code)
	assert.Contains(t, out, "orders, partition 0: offsets [0, 300), 300 records in ")
	assert.Regexp(t, `DAMAGED: disk: damaged: \S+00001\S+ at 2\d\d\d: offsets \[\d+, \d+\)`, out)
	assert.Contains(t, out, "1 places DAMAGED")
	assert.Contains(t, stderr, "damaged")

	code, out, stderr = call("records", dir, "orders", "-partition", "1")
	assert.Equal(t, exitDamaged, code)
	assert.Contains(t, stderr, names[0])
	assert.Contains(t, out, "1:0 ")
	assert.Contains(t, out, "1:299 ", "what is in the other files is shown")
	assert.Less(t, strings.Count(out, "\n"), 300)

	to := filepath.Join(t.TempDir(), "x.json")
	code, _, stderr = call("export", "-o", to, dir, "orders")
	assert.Equal(t, exitDamaged, code)
	assert.Contains(t, stderr, "export was not finished")
	assert.NoFileExists(t, to)

	// The catalog, and positions.
	catalog := filepath.Join(dir, "catalog")
	groups, err := filepath.Glob(filepath.Join(dir, "group-*"))
	require.NoError(t, err)
	require.Len(t, groups, 1)
	require.NoError(t, os.Truncate(groups[0], 30))
	code, out, _ = call("groups", dir)
	assert.Equal(t, exitDamaged, code)
	assert.Contains(t, out, "DAMAGED")
	code, out, _ = call("verify", dir)
	assert.Equal(t, exitDamaged, code)
	assert.Contains(t, out, "group orders-group: DAMAGED")
	require.NoError(t, os.RemoveAll(filepath.Dir(names[0])))
	for _, cmd := range []string{"topics", "verify", "segments"} {
		code, out, _ = call(cmd, dir)
		assert.Equal(t, exitDamaged, code, cmd)
		assert.Contains(t, out, "DAMAGED", cmd)
	}
	require.NoError(t, os.Truncate(catalog, 30))
	code, _, stderr = call("topics", dir)
	assert.Equal(t, exitDamaged, code)
	assert.Contains(t, stderr, catalog)
}
