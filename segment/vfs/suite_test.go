package vfs_test

import (
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/internal/testkit"
	"github.com/leatlog/leat/segment/vfs"
)

// sound decides that nothing goes wrong.
func sound(vfs.Op) *vfs.Fault { return nil }

// each runs a test on every file system, in an empty directory.
func each(t *testing.T, test func(t *testing.T, fsys vfs.FS, dir string)) {
	testkit.Watchdog(t)
	inMem := func(t *testing.T) *vfs.Mem {
		m := vfs.NewMem()
		require.NoError(t, m.Mkdir("dir"))
		return m
	}
	t.Run("os", func(t *testing.T) { test(t, vfs.OS{}, t.TempDir()) })
	t.Run("mem", func(t *testing.T) { test(t, inMem(t), "dir") })
	t.Run("faulty os", func(t *testing.T) { test(t, vfs.NewFaulty(vfs.OS{}, sound), t.TempDir()) })
	t.Run("faulty mem", func(t *testing.T) { test(t, vfs.NewFaulty(inMem(t), sound), "dir") })
	t.Run("after a crash", func(t *testing.T) { test(t, inMem(t).Crash(func(int) bool { return true }), "dir") })
}

// content returns what is in a file.
func content(t testing.TB, fsys vfs.FS, name string) string {
	f, err := fsys.OpenRead(name)
	require.NoError(t, err)
	defer f.Close()
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); err != io.EOF {
		require.NoError(t, err)
		require.Equal(t, int(size), n)
	}
	return string(b)
}

// put makes a file.
func put(t testing.TB, fsys vfs.FS, name, text string) {
	f, err := fsys.Create(name)
	require.NoError(t, err)
	n, err := f.WriteAt([]byte(text), 0)
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
}

func TestFile_ReadsWhatWasWritten(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		f, err := fsys.Create(name)
		require.NoError(t, err)
		n, err := f.WriteAt([]byte("hello"), 3)
		require.NoError(t, err)
		assert.Equal(t, 5, n)
		assert.Equal(t, "\x00\x00\x00hello", content(t, fsys, name), "a hole is zeroes")
		_, err = f.WriteAt([]byte("J"), 3)
		require.NoError(t, err)
		assert.Equal(t, "\x00\x00\x00Jello", content(t, fsys, name))
		require.NoError(t, f.Sync())

		b := make([]byte, 4)
		n, err = f.ReadAt(b, 6)
		assert.Equal(t, 2, n)
		assert.ErrorIs(t, err, io.EOF)
		n, err = f.ReadAt(b, 100)
		assert.Zero(t, n)
		assert.ErrorIs(t, err, io.EOF)
		n, err = f.ReadAt(b, 3)
		assert.Equal(t, 4, n)
		require.NoError(t, err)
		assert.Equal(t, "Jell", string(b))
		require.NoError(t, f.Close())
		_, err = f.ReadAt(b, 0)
		assert.ErrorIs(t, err, fs.ErrClosed)
		_, err = f.WriteAt(b, 0)
		assert.ErrorIs(t, err, fs.ErrClosed)
	})
}

func TestFile_SizeChanges(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		put(t, fsys, name, "abcdef")
		f, err := fsys.Open(name)
		require.NoError(t, err)
		defer f.Close()
		require.NoError(t, f.Truncate(3))
		require.NoError(t, f.Allocate(6))
		assert.Equal(t, "abc\x00\x00\x00", content(t, fsys, name))
		require.NoError(t, f.Allocate(2))
		size, err := f.Size()
		require.NoError(t, err)
		assert.EqualValues(t, 6, size, "Allocate makes nothing shorter")
		require.NoError(t, f.Truncate(8))
		info, err := fsys.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, vfs.Info{Size: 8}, info)
		assert.Error(t, f.Truncate(-1))
		require.NoError(t, f.Sync())
	})
}

func TestFile_OpenedForReading(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		put(t, fsys, name, "abc")
		f, err := fsys.OpenRead(name)
		require.NoError(t, err)
		defer f.Close()
		_, err = f.WriteAt([]byte("x"), 0)
		assert.Error(t, err)
		assert.Error(t, f.Truncate(0))
		assert.Equal(t, "abc", content(t, fsys, name))
	})
}

func TestFS_Names(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		at := func(name string) string { return filepath.Join(dir, name) }
		_, err := fsys.Open(at("a"))
		assert.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.OpenRead(at("a"))
		assert.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.Create(at("no/a"))
		assert.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.Stat(at("a"))
		assert.ErrorIs(t, err, fs.ErrNotExist)
		_, err = fsys.List(at("no"))
		assert.ErrorIs(t, err, fs.ErrNotExist)
		assert.ErrorIs(t, fsys.SyncDir(at("no")), fs.ErrNotExist)
		assert.ErrorIs(t, fsys.Remove(at("a")), fs.ErrNotExist)
		assert.ErrorIs(t, fsys.Rename(at("a"), at("b")), fs.ErrNotExist)
		assert.ErrorIs(t, fsys.Mkdir(at("no/sub")), fs.ErrNotExist)

		put(t, fsys, at("b"), "of b")
		put(t, fsys, at("a"), "of a")
		require.NoError(t, fsys.Mkdir(at("sub")))
		require.NoError(t, fsys.Mkdir(at("sub")), "it is there")
		assert.ErrorIs(t, fsys.Mkdir(at("a")), fs.ErrExist)
		put(t, fsys, at("sub/c"), "of c")
		info, err := fsys.Stat(at("sub"))
		require.NoError(t, err)
		assert.True(t, info.Dir)
		assert.Error(t, fsys.Remove(at("sub")), "it is not empty")
		names, err := fsys.List(dir)
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "sub"}, names)
		require.NoError(t, fsys.SyncDir(dir))

		open, err := fsys.OpenRead(at("b"))
		require.NoError(t, err)
		defer open.Close()
		require.NoError(t, fsys.Rename(at("a"), at("b")), "the name was taken")
		assert.Equal(t, "of a", content(t, fsys, at("b")))
		b := make([]byte, 4)
		_, err = open.ReadAt(b, 0)
		require.NoError(t, err)
		assert.Equal(t, "of b", string(b), "an open file outlives its name")
		require.NoError(t, fsys.Remove(at("b")))
		require.NoError(t, fsys.Remove(at("sub/c")))
		require.NoError(t, fsys.Remove(at("sub")))
		names, err = fsys.List(dir)
		require.NoError(t, err)
		assert.Empty(t, names)

		put(t, fsys, at("d"), "long")
		put(t, fsys, at("d"), "new")
		assert.Equal(t, "new", content(t, fsys, at("d")), "Create empties a file")
	})
}

func TestFS_Lock(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		lock, err := fsys.Lock(name)
		require.NoError(t, err)
		_, err = fsys.Lock(name)
		require.ErrorIs(t, err, vfs.ErrLocked)
		other, err := fsys.Lock(name + "2")
		require.NoError(t, err)
		require.NoError(t, other.Close())
		require.NoError(t, lock.Close())
		lock, err = fsys.Lock(name)
		require.NoError(t, err, "it was given back")
		require.NoError(t, lock.Close())
		_, err = fsys.Stat(name)
		require.NoError(t, err, "the file stays")
	})
}

// TestFile_ReadersBesideAWriter lets a file be read and synced while it grows.
func TestFile_ReadersBesideAWriter(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		const n = 200
		f, err := fsys.Create(filepath.Join(dir, "a"))
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range n {
				_, err := f.WriteAt([]byte{1, 2, 3, 4}, int64(i)*4)
				assert.NoError(t, err)
			}
		})
		wg.Go(func() {
			for range n / 20 {
				assert.NoError(t, f.Sync())
			}
		})
		for range 2 {
			wg.Go(func() {
				b := make([]byte, 4)
				for i := range n {
					if k, err := f.ReadAt(b, int64(i)*4); err == nil {
						assert.Equal(t, 4, k)
					}
				}
			})
		}
		wg.Wait()
		size, err := f.Size()
		require.NoError(t, err)
		assert.EqualValues(t, 4*n, size)
		require.NoError(t, f.Close())
	})
}
