package vfs_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/vfs"
)

func TestReplace(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := filepath.Join(dir, "a")
		_, err := vfs.ReadFile(fsys, name, 10)
		require.ErrorIs(t, err, fs.ErrNotExist)
		for _, text := range []string{"", "long", "x"} {
			require.NoError(t, vfs.Replace(fsys, name, []byte(text)))
			got, err := vfs.ReadFile(fsys, name, 10)
			require.NoError(t, err)
			assert.Equal(t, text, string(got))
		}
		require.NoError(t, vfs.Replace(fsys, name, []byte("0123456789ab")))
		got, err := vfs.ReadFile(fsys, name, 10)
		require.NoError(t, err)
		assert.Len(t, got, 11)
		names, err := fsys.List(dir)
		require.NoError(t, err)
		assert.Equal(t, []string{"a"}, names)
	})
}

func TestMkdirAll(t *testing.T) {
	each(t, func(t *testing.T, fsys vfs.FS, dir string) {
		deep := filepath.Join(dir, "x", "y", "z")
		for range 2 {
			require.NoError(t, vfs.MkdirAll(fsys, deep))
			put(t, fsys, filepath.Join(deep, "f"), "f")
		}
		assert.Error(t, vfs.MkdirAll(fsys, filepath.Join(deep, "f")))
	})
}

// TestBUG083_ReplaceIsSafe cuts the power before and after each operation, and fails each.
func TestBUG083_ReplaceIsSafe(t *testing.T) {
	olds, news := strings.Repeat("o", 1500), strings.Repeat("n", 1200)
	for n := 1; ; n++ {
		m := vfs.NewMem()
		require.NoError(t, vfs.MkdirAll(m, "x/y"))
		require.NoError(t, vfs.Replace(m, "x/y/a", []byte(olds)))
		fails := vfs.Nth(n, vfs.Fault{Err: errors.New("boom"), Keep: 600, Lose: true})
		err := vfs.Replace(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			for after := range m.Crashes(200, 1) {
				assert.Contains(t, []string{olds, news}, content(t, after, "x/y/a"))
			}
			return fails(o)
		}), "x/y/a", []byte(news))
		for after := range m.Crashes(200, 1) {
			got := content(t, after, "x/y/a")
			assert.True(t, got == news || got == olds && err != nil)
		}
		if err == nil {
			assert.Equal(t, 6, n, "create, write, sync, rename, sync of the directory")
			return
		}
	}
}
