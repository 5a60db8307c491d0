package disk_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

// TestOpen_ReadOnlyWithoutFiles opens what is left of a log when all its files are gone.
func TestOpen_ReadOnlyWithoutFiles(t *testing.T) {
	m := vfs.NewMem()
	l := open(t, small(m))
	write(t, l, 2, 10)
	require.NoError(t, l.Close())
	for _, f := range l.Files() {
		require.NoError(t, m.Remove(f.Name))
	}
	_, err := disk.Open(dir, small(m))
	require.ErrorIs(t, err, disk.ErrCorrupt)
	seen := open(t, disk.Config{FS: m, ReadOnly: true})
	require.Len(t, seen.Recovery().Damage, 1)
	_, err = seen.Write(batch(10, 1, 0))
	require.ErrorIs(t, err, disk.ErrReadOnly)
	_, err = seen.Sync()
	require.ErrorIs(t, err, disk.ErrReadOnly)
	require.ErrorIs(t, seen.Roll(), disk.ErrReadOnly)
	require.Empty(t, seen.Files())
	require.NoError(t, seen.Close())
}

// TestOpen_ReadOnlyBesideItsOwner opens a log for reading only while its owner does something between any two looks at the files.
// Nothing of that is damage.
func TestOpen_ReadOnlyBesideItsOwner(t *testing.T) {
	x := &later{}
	for name, do := range map[string]func(l *disk.Log){
		"begins a roll":    func(l *disk.Log) { rolled(t, l, x, 3) },
		"finishes a roll":  func(l *disk.Log) { x.run() },
		"rolls and writes": func(l *disk.Log) { rolled(t, l, x, 3); x.run(); write(t, l, 2, l.Next()+2) },

		"writes": func(l *disk.Log) {
			write(t, l, 2, l.Next()+2)
			write(t, l, 2, l.Next()+2) // which says that the one before is safe
		},
		"trims": func(l *disk.Log) { require.NoError(t, l.Trim(l.Durable())) },
		"rolls and trims": func(l *disk.Log) {
			write(t, l, 2, l.Next()+2)
			require.NoError(t, l.Roll())
			require.NoError(t, l.Trim(l.Next()-1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				m := vfs.NewMem()
				c := small(m)
				c.SegmentBytes = 300_000 // more than is read at once
				c.Behind = x.behind
				x.rests = nil
				l := open(t, c)
				write(t, l, 2, 50)
				require.NoError(t, l.Roll())
				write(t, l, 2, 100)
				if name == "finishes a roll" {
					rolled(t, l, x, 3)
				}
				reached, opened := false, false
				nth := vfs.Nth(n, vfs.Fault{}, vfs.OpList, vfs.OpOpen, vfs.OpRead)
				seen, err := disk.Open(dir, disk.Config{ReadOnly: true, FS: vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
					if !opened && nth(o) != nil {
						reached = true
						do(l)
					}
					return nil
				})})
				opened = true
				require.NoError(t, err, "before operation %d", n)
				require.Empty(t, seen.Recovery().Damage, "before operation %d", n)
				if all, err := lives(seen, seen.First()); err != nil {
					require.ErrorIs(t, err, fs.ErrNotExist, "before operation %d", n) // trimmed after it had been looked at
				} else {
					assert.Len(t, all, int(seen.Next()-seen.First()))
				}
				require.NoError(t, seen.Close())
				require.NoError(t, l.Close())
				if !reached {
					return
				}
			}
		})
	}
}

// TestSalvage_KeepsEpochs salvages a log of several epochs.
func TestSalvage_KeepsEpochs(t *testing.T) {
	m := vfs.NewMem()
	c := small(m)
	for range 5 {
		l := open(t, c)
		write(t, l, 2, l.Next()+100)
		require.NoError(t, l.Close())
	}
	l := open(t, c)
	require.NoError(t, l.Trim(150))
	epoch, next := l.Epoch(), l.Next()
	ends := make([]uint64, epoch+1)
	for i := range ends {
		ends[i] = l.EndOf(uint64(i))
	}
	files := l.Files()
	require.NoError(t, l.Abandon())
	for i, f := range files[:len(files)-1] { // one after the other is damaged
		for _, pos := range []int64{3, f.Bytes / 2} {
			to := fmt.Sprint("q", i, "-", pos)
			hurt := m.Crash(func(int) bool { return true })
			in, err := hurt.Open(f.Name)
			require.NoError(t, err)
			_, err = in.WriteAt([]byte(strings.Repeat("x", 100)), pos)
			require.NoError(t, err)
			require.NoError(t, in.Close())
			c := c
			c.FS = hurt
			_, err = disk.Salvage(dir, to, c)
			require.NoError(t, err)
			c.Existing = true
			s, err := disk.Open(to, c)
			require.NoError(t, err)
			require.Equal(t, next, s.Next())
			require.Greater(t, s.Epoch(), epoch)
			for e := range ends {
				if e >= 2 { // those before have nothing left
					require.Equal(t, ends[e], s.EndOf(uint64(e)), "epoch %d, file %d", e, i)
				}
			}
			require.NoError(t, s.Close())
		}
	}
}
