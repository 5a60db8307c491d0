package vfs_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/vfs"
)

// TestCounting: what is open is named, whatever it was opened by, and what could not be opened is not.
func TestCounting(t *testing.T) {
	c := vfs.NewCounting(vfs.NewMem())
	require.NoError(t, c.Mkdir("d"))
	require.Empty(t, c.Left())
	f, err := c.Create("d/f")
	require.NoError(t, err)
	again, err := c.Open("d/f")
	require.NoError(t, err)
	read, err := c.OpenRead("d/f")
	require.NoError(t, err)
	lock, err := c.Lock("d/LOCK")
	require.NoError(t, err)
	for _, open := range []func(string) (vfs.File, error){c.Open, c.OpenRead} {
		_, err = open("d/nothing")
		require.Error(t, err)
	}
	require.Equal(t, []string{"d/LOCK", "d/f", "d/f", "d/f"}, c.Left())
	require.NoError(t, f.Close())
	require.NoError(t, lock.Close())
	require.Equal(t, []string{"d/f", "d/f"}, c.Left())
	require.NoError(t, again.Close())
	require.NoError(t, read.Close())
	require.Empty(t, c.Left())
}

func TestFailNth(t *testing.T) {
	boom := errors.New("boom")
	c, failed := vfs.FailNth(2, vfs.NewMem(), boom)
	require.NoError(t, c.Mkdir("d"))
	require.False(t, failed())
	_, err := c.List("d") // one that changes nothing counts, too
	require.ErrorIs(t, err, boom)
	require.True(t, failed())
	_, err = c.List("d")
	require.NoError(t, err, "only that one")
}
