package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/leatlog/leat/engine"
)

// TestExport_GoesRound exports a topic of which the front has been dropped, imports it elsewhere, and exports that.
func TestExport_GoesRound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	e := open(t, dir)
	fill(t, e, "orders", 200)
	top, err := e.Topic("orders")
	require.NoError(t, err)
	part, err := top.Partition(1)
	require.NoError(t, err)
	require.NoError(t, part.TruncateBefore(context.Background(), 77))
	require.NoError(t, e.Close())

	to := filepath.Join(t.TempDir(), "orders.json")
	assert.Empty(t, fine(t, "export", "-o", to, dir, "orders"))
	whole, err := os.ReadFile(to)
	require.NoError(t, err)
	assert.Equal(t, string(whole), fine(t, "export", dir, "orders"))
	var o opening
	require.NoError(t, json.Unmarshal(whole[:strings.IndexByte(string(whole), '\n')], &o))
	assert.Equal(t, []engine.Offset{0, 77}, o.First)
	assert.Equal(t, []engine.Offset{200, 200}, o.Next)
	assert.Equal(t, map[string][]engine.Offset{"orders-group": {30, 30}}, o.Groups)

	other := filepath.Join(t.TempDir(), "other")
	assert.Equal(t, "topic orders: 2 partitions, 323 records\n", fine(t, "import", "-i", to, other))
	code, out, stderr := callOn(string(whole), "import", other, "copy")
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, out, "topic copy:")
	assert.Contains(t, fine(t, "verify", other), "646 records")
	code, _, stderr = call("import", "-i", to, other)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "topic exists")
	again := fine(t, "export", other, "orders")
	body := func(s string) string { return s[strings.IndexByte(s, '\n'):strings.LastIndex(s, `,"crc32c"`)] }
	assert.Equal(t, body(string(whole)), body(again), "offsets, timestamps and append times are kept")

	// An engine has them, and the settings.
	e = open(t, other)
	top, err = e.Topic("copy")
	require.NoError(t, err)
	part, err = top.Partition(1)
	require.NoError(t, err)
	assert.Equal(t, engine.Offset(77), part.First())
	p, err := top.Publish(context.Background(), engine.Record{Partition: 1})
	require.NoError(t, err, "Explicit is kept")
	assert.Equal(t, engine.Published{Partition: 1, Offset: 200}, p)
}

// TestImport_NotWhole cuts a file behind each line, changes each line, and more: nothing is left of any of them.
func TestImport_NotWhole(t *testing.T) {
	dir := data(t, 2)
	whole := fine(t, "export", dir, "orders")
	lines := strings.SplitAfter(whole, "\n")
	lines = lines[:len(lines)-1]
	other := filepath.Join(t.TempDir(), "other")
	refused := func(text, why string) {
		t.Helper()
		code, _, stderr := callOn(text, "import", other)
		require.NotEqual(t, exitOK, code, why)
		require.NotEmpty(t, stderr)
		if _, err := os.Stat(other); err == nil {
			require.NotContains(t, fine(t, "topics", other), "orders", why)
		}
	}
	for i := range lines {
		refused(strings.Join(lines[:i], ""), "cut")
		refused(strings.Join(lines[:i], "")+lines[i][:len(lines[i])/2], "cut within a line")
		changed := append([]string(nil), lines...)
		changed[i] = ""
		refused(strings.Join(changed, ""), "a line is missing")
		changed[i] = strings.Replace(lines[i], "e", "E", 1)
		if i == len(lines)-1 {
			changed[i] = strings.Replace(lines[i], `"records":4`, `"records":5`, 1)
		}
		refused(strings.Join(changed, ""), "a line is different")
		changed[i] = lines[i] + lines[i]
		if i < len(lines)-1 {
			refused(strings.Join(changed, ""), "a line is there twice")
		}
	}
	refused(strings.Replace(whole, `"version":1`, `"version":2`, 1), "version")
	code, _, stderr := callOn(whole, "import", other)
	require.Equal(t, exitOK, code, stderr)
	names, err := os.ReadDir(other)
	require.NoError(t, err)
	assert.Len(t, names, 3, "the lock, the catalog and the topic")
}

// TestExport_AfterASalvage leaves out what is before the last loss.
func TestExport_AfterASalvage(t *testing.T) {
	dir := data(t, 300)
	names, err := filepath.Glob(filepath.Join(dir, "*", "00001", "0*.leat"))
	require.NoError(t, err)
	require.Greater(t, len(names), 2)
	b, err := os.ReadFile(names[0])
	require.NoError(t, err)
	b[3000] ^= 0xff
	// An index that is damaged as well makes the engine read the frames, and refuse them.
	b[len(b)-1] ^= 0xff
	require.NoError(t, os.WriteFile(names[0], b, 0o666))
	e, err := engine.Open(engine.Config{Dir: dir, Salvage: true, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	code, out, stderr := call("export", dir, "orders")
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stderr, "partition 1: records were lost in a salvage")
	code, imported, stderr := callOn(out, "import", filepath.Join(t.TempDir(), "other"))
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, imported, "topic orders: 2 partitions")
	code, _, stderr = call("records", dir, "orders")
	assert.Equal(t, exitOK, code)
	assert.Contains(t, stderr, "were lost in a salvage")
}

func TestLine_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytes := func(name string) []byte {
			switch rapid.IntRange(0, 3).Draw(t, name+" is") {
			case 0:
				return nil
			case 1:
				return []byte(rapid.String().Draw(t, name))
			}
			return append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, name)...)
		}
		want := engine.Record{Partition: int32(rapid.IntRange(0, 9).Draw(t, "partition")), Offset: rapid.Int64Min(0).Draw(t, "offset"),
			Key: bytes("key"), Value: bytes("value")}
		if rapid.Bool().Draw(t, "own") {
			want.Timestamp = rapid.Int64().Draw(t, "timestamp")
		}
		var hs []engine.Header
		for range rapid.IntRange(0, 3).Draw(t, "headers") {
			hs = append(hs, engine.Header{Name: string(bytes("name")), Value: bytes("header")})
		}
		want.Headers = engine.MakeHeaders(hs...)
		appended := rapid.Int64().Draw(t, "appended")
		b, err := json.Marshal(newLine(&want, appended, want.Timestamp != 0))
		if err != nil {
			t.Fatal(err)
		}
		var l line
		if err := strict(b, &l); err != nil {
			t.Fatal(err)
		}
		got, at := l.record()
		assert.Equal(t, want, got)
		assert.Equal(t, appended, at)
	})
}

func TestBar(t *testing.T) {
	dir := data(t, 300)
	for _, args := range [][]string{{"verify", dir}, {"export", dir, "orders"}} {
		code, _, stderr := call(append(args, "-progress", "always")...)
		assert.Equal(t, exitOK, code)
		assert.Contains(t, stderr, "%")
		assert.Regexp(t, `^\r`+args[0], stderr)
		assert.Regexp(t, `\r +\r$`, stderr, "it is gone in the end")
		_, _, stderr = call(args...)
		assert.Empty(t, stderr, "it is no terminal")
	}
	now := time.Now()
	var w strings.Builder
	b := &bar{w: &w, what: "x", total: 100 << 20, begun: now, last: now.Add(barAfter - barEvery), now: func() time.Time { return now }}
	b.add(10 << 20)
	assert.Empty(t, w.String(), "quick work shows none")
	now = now.Add(2 * time.Second)
	b.add(40 << 20)
	assert.Equal(t, "\rx [===============               ]  50 % of 100 MiB, 25 MiB/s", w.String())
	b.add(1)
	b.done()
	b.add(1)
	b.done()
	assert.Equal(t, 2, strings.Count(w.String(), "\rx")+1)
	unknown := &bar{w: io.Discard, what: "x", now: time.Now}
	unknown.draw()
	assert.Positive(t, unknown.width)
}
