package disk_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// TestLog_LeaksNothing fails each operation in turn of all that a log does, and looks whether files are left open, or lie around.
func TestLog_LeaksNothing(t *testing.T) {
	boom := errors.New("boom")
	for n := 1; ; n++ {
		m := vfs.NewMem()
		fsys, failed := vfs.FailNth(n, m, boom)
		c := small(fsys)
		err := live(c)
		require.Empty(t, fsys.Left(), "operation %d: %v", n, err)
		if !failed() {
			return
		}
		require.ErrorIs(t, err, boom, "operation %d", n)

		// The next life finds all that was safe, and leaves nothing.
		l, err := disk.Open(dir, c)
		require.NoError(t, err, "operation %d", n)
		names, err := m.List(dir)
		require.NoError(t, err)
		want := []string{"LOCK", disk.StateName}
		for _, f := range l.Files() {
			want = append(want, strings.TrimPrefix(f.Name, dir+"/"))
		}
		slices.Sort(want)
		require.Equal(t, want, names, "operation %d", n)
		require.NoError(t, l.Close())
		require.Empty(t, fsys.Left())
	}
}

// live does all that a log can do. What fails is tried again once, after a Resume, and noted.
func live(c disk.Config) (all error) {
	for range 2 {
		l, err := disk.Open(dir, c)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		try := func(f func() error) {
			for range 2 {
				err := f()
				if err == nil {
					return
				}
				all = errors.Join(all, err)
				if l.Err() != nil {
					if err := l.Resume(); err != nil {
						all = errors.Join(all, err, l.Resume())
					}
				}
			}
		}
		for range 60 {
			try(func() error { _, err := l.Write(batch(l.Next(), 2, 0)); return err })
		}
		try(func() error { _, err := l.Sync(); return err })
		try(func() error { return l.Trim(l.First() + 40) })
		try(l.Roll)
		try(func() error { _, err := lives(l, l.First()); return err })
		try(func() error { _, err := l.OffsetAt(500); return err })
		try(func() error {
			for _, p := range l.Pieces() {
				if err := l.ReadPiece(&p, func(*frame.Batch) error { return nil }); err != nil {
					return err
				}
			}
			return nil
		})
		try(func() error {
			v, err := l.Verify(nil)
			if err == nil && len(v.Damage) > 0 {
				err = v.Damage[0]
			}
			return err
		})
		if n := l.Next(); n != l.Durable() {
			all = errors.Join(all, fmt.Errorf("durable %d of %d", l.Durable(), n))
		}
		all = errors.Join(all, l.Close())
	}
	return all
}
