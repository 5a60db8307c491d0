package disk_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// FuzzOpen opens whatever the files hold: it is refused, or it can be read and written, and the next open finds that. Salvage
// makes something of it that can be opened.
func FuzzOpen(f *testing.F) {
	for _, clean := range []bool{false, true} {
		m, _, _, err := specimen(0, clean)
		require.NoError(f, err)
		names, err := m.List(dir)
		require.NoError(f, err)
		var files [][]byte
		for _, name := range names {
			if name != "LOCK" {
				files = append(files, read(f, m, filepath.Join(dir, name)))
			}
		}
		f.Add(files[0], files[1], files[2], files[3], uint8(8), uint8(16))
		f.Add(files[0], files[1], files[2], []byte{}, uint8(8), uint8(0))
		f.Add([]byte{}, files[1], files[2], files[3], uint8(0), uint8(255))
	}
	f.Fuzz(func(t *testing.T, first, second, third, state []byte, base1, base2 uint8) {
		m := vfs.NewMem()
		require.NoError(t, m.Mkdir(dir))
		for name, b := range map[string][]byte{disk.SegmentName(0): first, disk.SegmentName(uint64(base1)): second,
			disk.SegmentName(uint64(base2)): third, disk.StateName: state} {
			if len(b) > 0 {
				put(t, m, filepath.Join(dir, name), b)
			}
		}
		c := small(m)
		before := snapshot(t, m)
		l, err := disk.Open(dir, c)
		if err == nil {
			_, _ = lives(l, l.First())
			n := l.Next()
			write(t, l, 1, n+3)
			require.NoError(t, l.Close())
			l, err = disk.Open(dir, c)
			require.NoError(t, err)
			require.Equal(t, n+3, l.Next())
			require.NoError(t, l.Close())
		} else if errors.Is(err, disk.ErrCorrupt) {
			delete(before, "LOCK")
			after := snapshot(t, m)
			delete(after, "LOCK")
			require.Equal(t, before, after)
		}
		ro := c
		ro.ReadOnly = true
		if l, err := disk.Open(dir, ro); err == nil {
			_, _ = lives(l, l.First())
			_, _ = l.OffsetAt(5)
			require.NoError(t, l.Close())
		}
		if _, err := disk.Salvage(dir, "q", c); err == nil {
			l, err := disk.Open("q", c)
			require.NoError(t, err)
			require.NoError(t, l.Close())
		}
	})
}
