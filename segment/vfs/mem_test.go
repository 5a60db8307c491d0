package vfs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/vfs"
)

// look says what a file system has in its root.
func look(t testing.TB, m *vfs.Mem) string {
	names, err := m.List("/")
	require.NoError(t, err)
	var all []string
	for _, name := range names {
		info, err := m.Stat(name)
		require.NoError(t, err)
		if info.Dir {
			sub, err := m.List(name)
			require.NoError(t, err)
			all = append(all, name+"/"+strings.Join(sub, ","))
			continue
		}
		// Runs of one letter are written as the letter and how often.
		text := content(t, m, name)
		var short strings.Builder
		for i := 0; i < len(text); {
			n := 1
			for i+n < len(text) && text[i+n] == text[i] {
				n++
			}
			c := text[i : i+1]
			if c == "\x00" {
				c = "0x"
			}
			fmt.Fprintf(&short, "%s%d", c, n)
			i += n
		}
		all = append(all, name+"="+short.String())
	}
	return strings.Join(all, " ")
}

// states returns what a power cut may leave.
func states(t testing.TB, m *vfs.Mem, limit int) []string {
	var all []string
	for after := range m.Crashes(limit, 1) {
		assert.Zero(t, after.Pending())
		all = append(all, look(t, after))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestMem_CrashKeepsWhatWasSynced(t *testing.T) {
	m := vfs.NewMem()
	put(t, m, "a", strings.Repeat("a", 600))
	assert.Equal(t, []string{"", "a=a600"}, states(t, m, 100), "the file is safe, its name is not")
	require.NoError(t, m.SyncDir("/"))
	assert.Equal(t, []string{"a=a600"}, states(t, m, 100))
	assert.Zero(t, m.Pending())
}

func TestMem_CrashTearsAWrite(t *testing.T) {
	m := vfs.NewMem()
	put(t, m, "a", strings.Repeat("a", 600))
	require.NoError(t, m.SyncDir("/"))
	f, err := m.Open("a")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("b", 1100)), 500)
	require.NoError(t, err)
	// The new length, and parts of 12, 512, 512 and 64 bytes: the first two of these are seen without the new length.
	got := states(t, m, 100)
	for _, want := range []string{
		"a=a600", "a=a500b12a88", "a=a512b88", "a=a500b100", "a=a6000x1000", "a=a6000x424b576", "a=a500b12a880x424b512" + "0x64",
		"a=a500b1100",
	} {
		assert.Contains(t, got, want)
	}
	assert.Len(t, got, 4+16)
	require.NoError(t, f.Sync())
	assert.Equal(t, []string{"a=a500b1100"}, states(t, m, 100))
}

func TestMem_CrashTruncates(t *testing.T) {
	m := vfs.NewMem()
	put(t, m, "a", "aaaa")
	require.NoError(t, m.SyncDir("/"))
	f, err := m.Open("a")
	require.NoError(t, err)
	require.NoError(t, f.Truncate(2))
	require.NoError(t, f.Allocate(5))
	assert.Equal(t, "a=a20x3", look(t, m))
	assert.Equal(t, []string{"a=a2", "a=a20x3", "a=a4", "a=a40x1"}, states(t, m, 100))
}

func TestMem_CrashOfNames(t *testing.T) {
	m := vfs.NewMem()
	put(t, m, "old", "o")
	put(t, m, "tmp", "n")
	require.NoError(t, m.SyncDir("/"))
	require.NoError(t, m.Rename("tmp", "old"))
	assert.Equal(t, "old=n1", look(t, m))
	assert.Equal(t, []string{"old=n1", "old=o1 tmp=n1"}, states(t, m, 100), "a rename is never half")
	require.NoError(t, m.Remove("old"))
	assert.Equal(t, []string{"", "old=n1", "old=o1 tmp=n1"}, states(t, m, 100))
	require.NoError(t, m.SyncDir("/"))
	assert.Equal(t, []string{""}, states(t, m, 100))

	require.NoError(t, m.Mkdir("sub"))
	put(t, m, "sub/f", "x")
	require.NoError(t, m.SyncDir("sub"))
	assert.Equal(t, []string{"", "sub/f"}, states(t, m, 100), "what is in a directory that is not there is gone with it")
}

func TestMem_CrashesAreManyButBounded(t *testing.T) {
	m := vfs.NewMem()
	put(t, m, "a", "")
	require.NoError(t, m.SyncDir("/"))
	f, err := m.Open("a")
	require.NoError(t, err)
	require.NoError(t, f.Allocate(64*512))
	require.NoError(t, f.Sync())
	for i := range 64 {
		_, err = f.WriteAt([]byte{byte('a' + i%26)}, int64(i)*512)
		require.NoError(t, err)
	}
	require.Equal(t, 64, m.Pending())
	seen := map[string]bool{}
	for after := range m.Crashes(500, 7) {
		text := content(t, after, "a")
		require.False(t, seen[text], "each state once")
		seen[text] = true
	}
	assert.Len(t, seen, 500)
	assert.True(t, seen[content(t, m, "a")])
	assert.True(t, seen[strings.Repeat("\x00", 64*512)])
}

// TestMem_CrashSharesNothing changes a file system and what a crash has left of it, and neither sees the other's.
func TestMem_CrashSharesNothing(t *testing.T) {
	m := vfs.NewMem()
	put(t, m, "a", "aaaa")
	require.NoError(t, m.SyncDir("/"))
	lock, err := m.Lock("L")
	require.NoError(t, err)
	defer lock.Close()
	after := m.Crash(func(int) bool { return false })
	put(t, after, "b", "b")
	_, err = after.Lock("L")
	require.NoError(t, err, "a crash gives locks back")
	f, err := m.Open("a")
	require.NoError(t, err)
	g, err := after.Open("a")
	require.NoError(t, err)
	_, err = g.WriteAt([]byte("c"), 1)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("d"), 2)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, g.Sync())
	assert.Equal(t, "aada", content(t, m, "a"))
	assert.Equal(t, "acaa", content(t, after, "a"))
	assert.Equal(t, "aada", content(t, m.Crash(func(int) bool { return false }), "a"))
}

func TestMem_Limit(t *testing.T) {
	m := vfs.NewMem()
	m.SetLimit(1000)
	f, err := m.Create("a")
	require.NoError(t, err)
	n, err := f.WriteAt(make([]byte, 600), 0)
	require.NoError(t, err)
	require.Equal(t, 600, n)
	n, err = f.WriteAt(make([]byte, 600), 500)
	require.ErrorIs(t, err, vfs.ErrFull)
	assert.True(t, vfs.IsFull(err))
	assert.Equal(t, 500, n, "a short write")
	assert.EqualValues(t, 1000, m.Used())
	require.ErrorIs(t, f.Allocate(1001), vfs.ErrFull)
	require.NoError(t, f.Truncate(100))
	require.NoError(t, f.Allocate(1000))
	put(t, m, "b", "")
	require.NoError(t, m.Remove("a"))
	assert.Zero(t, m.Used())
	put(t, m, "b", "there is room again")
}

func TestFaulty_Faults(t *testing.T) {
	boom := errors.New("boom")
	at := func(f vfs.Fault, kind vfs.OpKind) (*vfs.Mem, vfs.FS) {
		f.Err = boom
		m := vfs.NewMem()
		put(t, m, "a", strings.Repeat("a", 2000))
		require.NoError(t, m.SyncDir("/"))
		return m, vfs.NewFaulty(m, vfs.Nth(1, f, kind))
	}
	for _, c := range []struct {
		fault vfs.Fault
		want  string
		n     int
	}{
		{vfs.Fault{}, "a=a2000", 0},
		{vfs.Fault{Keep: 7}, "a=b7a1993", 7},
		{vfs.Fault{Done: true}, "a=b2000", 2000},
		{vfs.Fault{Tear: true}, "a=b512a512b512a464", 0},
	} {
		m, fsys := at(c.fault, vfs.OpWrite)
		f, err := fsys.Open("a")
		require.NoError(t, err)
		n, err := f.WriteAt([]byte(strings.Repeat("b", 2000)), 0)
		require.ErrorIs(t, err, boom)
		assert.Equal(t, c.n, n)
		assert.Equal(t, c.want, look(t, m))
		_, err = f.WriteAt([]byte("c"), 0)
		require.NoError(t, err, "once is once")
	}

	m, fsys := at(vfs.Fault{Lose: true}, vfs.OpSync)
	f, err := fsys.Open("a")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("b"), 0)
	require.NoError(t, err)
	require.ErrorIs(t, f.Sync(), boom)
	require.NoError(t, f.Sync(), "it says so, but")
	assert.Equal(t, "a=b1a1999", look(t, m))
	assert.Equal(t, []string{"a=a2000"}, states(t, m, 10), "the bytes are gone")
	_, err = f.WriteAt([]byte("b"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	assert.Equal(t, []string{"a=b1a1999"}, states(t, m, 10), "until they are written again")

	liar := vfs.NewFaulty(m, vfs.Since(1, vfs.Fault{}))
	f, err = liar.Open("a")
	require.NoError(t, err)
	n, err := f.WriteAt([]byte("zzz"), 0)
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Truncate(0))
	require.NoError(t, liar.Remove("a"))
	require.NoError(t, liar.SyncDir("/"))
	assert.Equal(t, "a=b1a1999", look(t, m), "a disk that lies")

	m, fsys = at(vfs.Fault{Done: true}, vfs.OpRename)
	require.ErrorIs(t, fsys.Rename("a", "b"), boom)
	assert.Equal(t, "b=a2000", look(t, m))
	require.NoError(t, fsys.Rename("b", "a"))
	for _, kind := range []vfs.OpKind{vfs.OpCreate, vfs.OpOpen, vfs.OpRemove, vfs.OpList, vfs.OpMkdir, vfs.OpStat, vfs.OpSyncDir,
		vfs.OpLock, vfs.OpRead, vfs.OpTruncate, vfs.OpAllocate} {
		_, fsys := at(vfs.Fault{}, kind)
		var file vfs.File
		if kind == vfs.OpRead || kind == vfs.OpTruncate || kind == vfs.OpAllocate {
			file, err = fsys.Open("a")
			require.NoError(t, err)
		}
		for round := range 2 {
			switch kind {
			case vfs.OpCreate:
				_, err = fsys.Create("c")
			case vfs.OpOpen:
				_, err = fsys.Open("a")
			case vfs.OpRemove:
				err = fsys.Remove("a")
			case vfs.OpList:
				_, err = fsys.List("/")
			case vfs.OpMkdir:
				err = fsys.Mkdir("d")
			case vfs.OpStat:
				_, err = fsys.Stat("a")
			case vfs.OpSyncDir:
				err = fsys.SyncDir("/")
			case vfs.OpLock:
				_, err = fsys.Lock("l")
			case vfs.OpRead:
				_, err = file.ReadAt(make([]byte, 1), 0)
			case vfs.OpTruncate:
				err = file.Truncate(1)
			case vfs.OpAllocate:
				err = file.Allocate(5000)
			}
			if round == 0 {
				assert.ErrorIs(t, err, boom, "%s", kind)
			} else {
				assert.NoError(t, err, "%s", kind)
			}
		}
	}
}

func TestFaulty_SinceAndFull(t *testing.T) {
	boom := errors.New("boom")
	m := vfs.NewMem()
	fsys := vfs.NewFaulty(m, vfs.Since(3, vfs.Fault{Err: boom}))
	f, err := fsys.Create("a") // 1
	require.NoError(t, err)
	_, err = fsys.Stat("a") // changes nothing
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("a"), 0) // 2
	require.NoError(t, err)
	for range 3 {
		require.ErrorIs(t, f.Sync(), boom)
		require.ErrorIs(t, fsys.SyncDir("/"), boom)
	}
	assert.Equal(t, 9, fsys.Count())

	fsys = vfs.NewFaulty(m, vfs.FullAfter(10))
	f, err = fsys.Create("b")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("12345678"), 0)
	require.NoError(t, err)
	n, err := f.WriteAt([]byte("12345678"), 8)
	require.True(t, vfs.IsFull(err))
	assert.Equal(t, 2, n)
	_, err = f.WriteAt([]byte("1"), 10)
	require.ErrorIs(t, err, vfs.ErrFull)
	assert.Equal(t, "1234567812", content(t, m, "b"))
}

// TestMem_Sum changes whatever is visible: each time it is another sum, and the same one if all is as before.
func TestMem_Sum(t *testing.T) {
	m := vfs.NewMem()
	seen := map[uint64]string{}
	other := func(what string) {
		t.Helper()
		sum := m.Sum()
		before, ok := seen[sum]
		assert.False(t, ok, "%s: as before it, %s", what, before)
		seen[sum] = what
		assert.Equal(t, sum, m.Sum(), what)
		assert.Equal(t, sum, m.Crash(func(int) bool { return true }).Sum(), "%s, and all of it kept", what)
	}
	other("nothing")
	put(t, m, "a", "")
	other("an empty file")
	put(t, m, "a", "x")
	other("a byte")
	put(t, m, "a", "y")
	other("another byte")
	put(t, m, "a", "y\x00")
	other("a zero behind it")
	require.NoError(t, m.Rename("a", "b"))
	other("another name")
	require.NoError(t, m.Remove("b"))
	require.NoError(t, m.Mkdir("b"))
	other("a directory")
	put(t, m, "b/b", "y\x00")
	other("the file in it")
	put(t, m, "c", "y\x00")
	other("a second file")
	require.NoError(t, m.Remove("b/b"))
	require.NoError(t, m.Remove("c"))
	assert.Equal(t, "a directory", seen[m.Sum()])
}
