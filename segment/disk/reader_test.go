package disk_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

func TestReader_FollowsTheWriter(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		l := open(t, c)
		r, err := l.NewReader(0)
		require.NoError(t, err)
		for n := range uint64(100) {
			_, err = r.Next()
			require.ErrorIs(t, err, io.EOF)
			_, err = l.Write(batch(n, 1, 0))
			require.NoError(t, err)
			b, err := r.Next()
			require.NoError(t, err)
			require.Equal(t, n, b.First)
			require.Equal(t, n+1, r.Offset())
		}
		_, err = l.NewReader(101)
		require.ErrorIs(t, err, disk.ErrBeyond)
		require.NoError(t, l.Close())
		_, err = r.Next()
		require.ErrorIs(t, err, disk.ErrClosed)
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
	})
}

// TestReader_OutlivesAResume lets readers stand before, in and behind what a Resume takes away.
func TestReader_OutlivesAResume(t *testing.T) {
	m := vfs.NewMem()
	var fault func(vfs.Op) *vfs.Fault
	l := open(t, small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if fault == nil {
			return nil
		}
		return fault(o)
	})))
	write(t, l, 2, 30)
	_, err := l.Write(batch(30, 2, 0))
	require.NoError(t, err)
	var readers []*disk.Reader
	for _, from := range []uint64{0, 26, 30, 32} {
		r, err := l.NewReader(from)
		require.NoError(t, err)
		readers = append(readers, r)
	}
	for _, r := range readers[:2] {
		_, err = r.Next()
		require.NoError(t, err)
	}
	fault = vfs.Nth(1, vfs.Fault{Err: errBoom, Lose: true}, vfs.OpSync)
	_, err = l.Sync()
	require.ErrorIs(t, err, errBoom)
	path := l.Files()[len(l.Files())-1].Name
	f, err := m.Open(path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(l.Files()[len(l.Files())-1].Bytes-8)) // the last frame is gone
	require.NoError(t, f.Close())
	require.NoError(t, l.Resume())
	require.EqualValues(t, 30, l.Next())
	for i, want := range []uint64{30, 30, 30, 32} {
		r := readers[i]
		for err = nil; err == nil; {
			_, err = r.Next()
		}
		if i < 3 {
			require.ErrorIs(t, err, io.EOF)
		} else {
			require.ErrorIs(t, err, disk.ErrBeyond)
		}
		require.Equal(t, want, r.Offset())
	}
	write(t, l, 2, 34)
	for _, r := range readers {
		for err = nil; err == nil; {
			_, err = r.Next()
		}
		require.ErrorIs(t, err, io.EOF)
		require.EqualValues(t, 34, r.Offset())
		require.NoError(t, r.Close())
	}
	require.NoError(t, l.Close())
}
