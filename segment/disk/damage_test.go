package disk_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// specimen returns a file system with a small log of life 0: two sealed files and a third. If clean it has been closed.
// Otherwise it has been abandoned: known is then what a later frame, file, or the state proves to have been safe, and next
// where the log ends.
func specimen(flaw disk.Flaw, clean bool) (m *vfs.Mem, known, next uint64, err error) {
	m = vfs.NewMem()
	c := disk.Broken(small(m), flaw)
	l, err := disk.Open(dir, c)
	if err != nil {
		return nil, 0, 0, err
	}
	for len(l.Files()) < 3 || l.Files()[2].Bytes < 500 {
		known = l.Durable()
		if _, err = l.Write(batch(l.Next(), 2, 0)); err != nil {
			return nil, 0, 0, err
		}
		if _, err = l.Sync(); err != nil {
			return nil, 0, 0, err
		}
	}
	next = l.Next()
	if clean {
		return m, next, next, l.Close()
	}
	return m, known, next, l.Abandon()
}

// bear opens a log that has been damaged, and says what is wrong with what comes of it: it must be refused, or hold everything
// below known, and no other bytes.
func bear(m *vfs.Mem, flaw disk.Flaw, known, next uint64) error {
	c := disk.Broken(small(m), flaw)
	l, err := disk.Open(dir, c)
	if err != nil {
		if errors.Is(err, disk.ErrCorrupt) || errors.Is(err, disk.ErrVersion) || errors.Is(err, disk.ErrForeign) {
			return nil
		}
		return fmt.Errorf("neither refused nor sound: %w", err)
	}
	defer l.Abandon()
	if n := l.Next(); n < known || n > next {
		return fmt.Errorf("the log ends at %d, not [%d, %d]", n, known, next)
	}
	if l.First() != 0 {
		return fmt.Errorf("the log begins at %d", l.First())
	}
	got, err := lives(l, 0)
	if err != nil && !errors.Is(err, disk.ErrCorrupt) { // found when it is read: sealed files are not read at open
		return err
	}
	for off, life := range got {
		if life != 0 {
			return fmt.Errorf("life %d at offset %d", life, off)
		}
	}
	return nil
}

// damageEverywhere flips bits in each byte of each file of a small log, and cuts it at each byte; of so many, one.
func damageEverywhere(flaw disk.Flaw, one int) error {
	for _, clean := range []bool{false, true} {
		m, known, next, err := specimen(flaw, clean)
		if err != nil {
			return err
		}
		names, err := m.List(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			info, err := m.Stat(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			for at := int64(0); at < info.Size; at += int64(one) {
				for k, change := range []func(f vfs.File) error{
					func(f vfs.File) error {
						var b [1]byte
						if _, err := f.ReadAt(b[:], at); err != nil {
							return err
						}
						b[0] ^= 1 << (at % 8)
						_, err := f.WriteAt(b[:], at)
						return err
					},
					func(f vfs.File) error { return f.Truncate(at) },
				} {
					after := m.Crash(func(int) bool { return true })
					f, err := after.Open(filepath.Join(dir, name))
					if err != nil {
						return err
					}
					if err := change(f); err != nil {
						return err
					}
					if err := f.Close(); err != nil {
						return err
					}
					least := known
					if base, ok := disk.ParseName(name); ok && k == 1 && !clean {
						least = min(least, base) // what had been proven may be cut off with the proof
					}
					if err := bear(after, flaw, least, next); err != nil {
						return fmt.Errorf("%s, byte %d, clean %v: %w", name, at, clean, err)
					}
				}
			}
		}
	}
	return nil
}

// TestDamage_OfEachByte wants damage to be refused, or to be harmless.
func TestDamage_OfEachByte(t *testing.T) {
	one := 1
	if testing.Short() || raceEnabled {
		one = 13
	}
	require.NoError(t, damageEverywhere(0, one))
}

// TestDamage_OfSectors puts zeroes, copies of other sectors, and sectors of another log where they do not belong.
func TestDamage_OfSectors(t *testing.T) {
	const sector = 512
	for _, clean := range []bool{false, true} {
		m, known, next, err := specimen(0, clean)
		require.NoError(t, err)
		names, err := m.List(dir)
		require.NoError(t, err)
		for _, name := range names {
			path := filepath.Join(dir, name)
			text := read(t, m, path)
			for at := 0; at < len(text); at += sector {
				for from := -sector; from < len(text); from += sector {
					b := make([]byte, min(sector, len(text)-at))
					if from >= 0 {
						copy(b, text[from:])
					}
					after := m.Crash(func(int) bool { return true })
					f, err := after.Open(path)
					require.NoError(t, err)
					_, err = f.WriteAt(b, int64(at))
					require.NoError(t, err)
					require.NoError(t, bear(after, 0, known, next), "%s: sector at %d from %d", name, at, from)
				}
			}
		}
	}
}

// TestDamage_OfFiles removes files, and puts one in the place of another.
func TestDamage_OfFiles(t *testing.T) {
	m, known, next, err := specimen(0, true)
	require.NoError(t, err)
	names, err := m.List(dir)
	require.NoError(t, err)
	require.Len(t, names, 5)
	for _, name := range names {
		for _, other := range names {
			after := m.Crash(func(int) bool { return true })
			if name == other {
				require.NoError(t, after.Remove(filepath.Join(dir, name)))
			} else {
				put(t, after, filepath.Join(dir, name), read(t, m, filepath.Join(dir, other)))
			}
			require.NoError(t, bear(after, 0, known, next), "%s in the place of %s", other, name)
		}
	}
}

// TestOpen_TellsDamageFromATornTail damages a frame in the active file. If a later one says that it had been safe Open refuses,
// and changes nothing; if not it cuts.
func TestOpen_TellsDamageFromATornTail(t *testing.T) {
	for _, synced := range []bool{false, true} {
		m := vfs.NewMem()
		c := small(m)
		c.SegmentBytes = 64 << 10
		l := open(t, c)
		var at []int64
		for n := range uint64(10) {
			at = append(at, l.Files()[0].Bytes)
			_, err := l.Write(batch(2*n, 2, 0))
			require.NoError(t, err)
			if synced {
				_, err = l.Sync()
				require.NoError(t, err)
			}
		}
		require.NoError(t, l.Abandon())
		path := filepath.Join(dir, disk.SegmentName(0))
		f, err := m.Open(path)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte{0xff}, at[6]+100)
		require.NoError(t, err)
		before := snapshot(t, m)
		if !synced {
			l = open(t, c)
			requireHolds(t, l, 0, 12)
			cut := l.Recovery().Cut
			require.NotNil(t, cut)
			assert.Equal(t, path, cut.File)
			assert.Equal(t, at[6], cut.Pos)
			assert.Greater(t, cut.Bytes, at[9]-at[6])
			assert.ErrorIs(t, cut.Err, frame.ErrChecksum)
			require.NoError(t, l.Abandon())
			l = open(t, c)
			assert.Nil(t, l.Recovery().Cut, "it has been cut")
			require.NoError(t, l.Close())
			continue
		}
		_, err = disk.Open(dir, c)
		var bad *disk.CorruptError
		require.ErrorAs(t, err, &bad)
		assert.ErrorIs(t, err, disk.ErrCorrupt)
		assert.ErrorIs(t, err, frame.ErrChecksum)
		assert.Equal(t, disk.CorruptError{File: path, Pos: at[6], From: 12, To: 18, Err: bad.Err}, *bad)
		assert.Equal(t, before, snapshot(t, m), "nothing has been changed")
		c.ReadOnly = true
		l = open(t, c)
		assert.Len(t, l.Recovery().Damage, 1)
		requireHolds(t, l, 0, 12)
		require.NoError(t, l.Close())
	}
}

// TestOpen_MendsAnIndex damages the seal of a file whose records are whole.
func TestOpen_MendsAnIndex(t *testing.T) {
	m, _, next, err := specimen(0, false)
	require.NoError(t, err)
	path := filepath.Join(dir, disk.SegmentName(0))
	f, err := m.Open(path)
	require.NoError(t, err)
	size, err := f.Size()
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size-1))
	l := open(t, small(m))
	assert.Equal(t, []string{path}, l.Recovery().Mended)
	requireHolds(t, l, 0, next)
	require.NoError(t, l.Close())
}

func TestSalvage(t *testing.T) {
	m, _, next, err := specimen(0, true)
	require.NoError(t, err)
	list, err := m.List(dir)
	require.NoError(t, err)
	var bases []uint64
	for _, name := range list {
		if base, ok := disk.ParseName(name); ok {
			bases = append(bases, base)
		}
	}
	require.Len(t, bases, 3)
	path := func(i int) string { return filepath.Join(dir, disk.SegmentName(bases[i])) }
	flip := func(name string, at int64) func(m *vfs.Mem) {
		return func(m *vfs.Mem) {
			f, err := m.Open(name)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte{0xee}, at)
			require.NoError(t, err)
			require.NoError(t, f.Sync())
			require.NoError(t, f.Close())
		}
	}
	for name, x := range map[string]struct {
		damage func(m *vfs.Mem)
		lost   [][2]uint64
	}{
		"nothing":          {func(*vfs.Mem) {}, nil},
		"first frame":      {flip(path(0), 64+80), [][2]uint64{{0, 2}}},
		"head of a frame":  {flip(path(1), 64+30), [][2]uint64{{bases[1], bases[1] + 2}}},
		"head of a file":   {flip(path(1), 30), nil},
		"a file":           {func(m *vfs.Mem) { require.NoError(t, m.Remove(path(1))) }, [][2]uint64{{bases[1], bases[2]}}},
		"the last file":    {func(m *vfs.Mem) { require.NoError(t, m.Remove(path(2))) }, [][2]uint64{{bases[2], next}}},
		"the state":        {flip(filepath.Join(dir, disk.StateName), 20), nil},
		"no state":         {func(m *vfs.Mem) { require.NoError(t, m.Remove(filepath.Join(dir, disk.StateName))) }, nil},
		"a seal":           {flip(path(1), int64(len(read(t, m, path(1)))-3)), nil},
		"two in two files": {func(m *vfs.Mem) { flip(path(0), 64+80)(m); flip(path(2), 64+80)(m) }, [][2]uint64{{0, 2}, {bases[2], bases[2] + 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := m.Crash(func(int) bool { return true })
			x.damage(m)
			before := snapshot(t, m)
			c := small(m)
			rep, err := disk.Salvage(dir, "q", c)
			require.NoError(t, err)
			assert.Equal(t, before, snapshot(t, m), "nothing has been changed")
			var lost [][2]uint64
			n := uint64(0)
			for _, r := range rep.Lost {
				lost = append(lost, [2]uint64{r.From, r.To})
				assert.Error(t, r.Err)
				assert.NotEmpty(t, r.File)
				n += r.To - r.From
			}
			assert.Equal(t, x.lost, lost)
			assert.EqualValues(t, 0, rep.First)
			assert.Equal(t, next, rep.Next)
			assert.Equal(t, next-n, rep.Records)

			_, err = disk.Salvage(dir, "q", c)
			require.Error(t, err, "there is something already")
			old, err := disk.Open(dir, disk.Config{FS: m, ReadOnly: true})
			require.NoError(t, err)
			l, err := disk.Open("q", c)
			require.NoError(t, err)
			assert.Greater(t, l.Epoch(), old.Epoch(), "epochs go on")
			got, err := lives(l, 0)
			require.NoError(t, err)
			require.Len(t, got, int(next))
			for off, life := range got {
				gone := false
				for _, r := range rep.Lost {
					gone = gone || uint64(off) >= r.From && uint64(off) < r.To
				}
				assert.Equal(t, gone, life != 0, "offset %d", off)
			}
			require.NoError(t, l.Close())
		})
	}
}
