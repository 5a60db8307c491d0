package disk_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// verify reads all of a log.
func verify(t *testing.T, m vfs.FS) (disk.Verified, disk.Recovery) {
	t.Helper()
	c := small(m)
	c.ReadOnly, c.Existing = true, true
	l, err := disk.Open(dir, c)
	require.NoError(t, err)
	defer l.Close()
	read := int64(0)
	v, err := l.Verify(func(n int64) { read += n })
	require.NoError(t, err)
	if len(v.Damage) == 0 {
		assert.Equal(t, v.Bytes-64*v.Files, read, "all but what each file begins with")
	}
	return v, l.Recovery()
}

func TestVerify_Sound(t *testing.T) {
	for _, clean := range []bool{true, false} {
		m, _, next, err := specimen(0, clean)
		require.NoError(t, err)
		v, rec := verify(t, m)
		assert.Empty(t, v.Damage)
		assert.Equal(t, int64(3), v.Files)
		assert.Equal(t, int64(next), v.Records)
		assert.Positive(t, v.Frames)
		assert.Equal(t, clean, rec.Clean)
	}
}

// TestVerify_EveryByte flips each byte of a log that was closed, one after the other: Verify tells, or Open has mended it.
func TestVerify_EveryByte(t *testing.T) {
	m, _, next, err := specimen(0, true)
	require.NoError(t, err)
	names, err := m.List(dir)
	require.NoError(t, err)
	told := 0
	for _, name := range names {
		if _, ok := disk.ParseName(name); !ok && name != disk.StateName {
			continue
		}
		f, err := m.Open(filepath.Join(dir, name))
		require.NoError(t, err)
		size, err := f.Size()
		require.NoError(t, err)
		for at := range size {
			b := make([]byte, 1)
			_, err := f.ReadAt(b, at)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte{b[0] ^ 0x10}, at)
			require.NoError(t, err)
			require.NoError(t, flipped(m, next), "%s at %d", name, at)
			told++
			_, err = f.WriteAt(b, at)
			require.NoError(t, err)
		}
		require.NoError(t, f.Close())
	}
	assert.Greater(t, told, 1000)
	v, _ := verify(t, m)
	assert.Empty(t, v.Damage)
}

// flipped looks whether a log with one wrong byte is told to be so.
func flipped(m vfs.FS, next uint64) error {
	c := small(m)
	c.ReadOnly, c.Existing = true, true
	l, err := disk.Open(dir, c)
	if err != nil {
		return nil // told at once: of another version, or of something else
	}
	defer l.Close()
	v, err := l.Verify(nil)
	switch {
	case err != nil:
		return err
	case len(v.Damage) > 0, len(l.Recovery().Mended) > 0:
		return nil
	case l.Recovery().Cut != nil && !l.Recovery().Clean:
		return nil // of the last file: its seal
	case v.Records != int64(next):
		return fmt.Errorf("%d records of %d, and no damage", v.Records, next)
	}
	return fmt.Errorf("nobody has noticed")
}

// resealed returns a function that gives the first file of a log that was closed another seal, made of what it says.
func resealed(t *testing.T, m *vfs.Mem) func(change func(index []frame.Entry, sum *frame.Sum)) {
	name := filepath.Join(dir, disk.SegmentName(0))
	whole, err := vfs.ReadFile(m, name, 1<<20)
	require.NoError(t, err)
	head, err := frame.DecodeSegment(whole)
	require.NoError(t, err)
	pos, ok := frame.FindSeal(whole, int64(len(whole)))
	require.True(t, ok)
	seal, err := frame.Decode(whole[pos:], head.Seed(), pos)
	require.NoError(t, err)
	return func(change func(index []frame.Entry, sum *frame.Sum)) {
		index, sum, err := seal.Index(nil, head.Base, pos)
		require.NoError(t, err)
		require.NotNil(t, sum)
		change(index, sum)
		f, err := m.Open(name)
		require.NoError(t, err)
		defer f.Close()
		_, err = f.WriteAt(frame.AppendSeal(nil, head.Seed(), pos, seal.Header, index, sum), pos)
		require.NoError(t, err)
	}
}

// TestVerify_Sums has a seal say sums that are not those of the records: Verify tells.
func TestVerify_Sums(t *testing.T) {
	m, _, _, err := specimen(0, true)
	require.NoError(t, err)
	reseal := resealed(t, m)
	damage := func(change func(index []frame.Entry, sum *frame.Sum)) []*disk.CorruptError {
		reseal(change)
		v, _ := verify(t, m)
		return v.Damage
	}
	assert.Empty(t, damage(func([]frame.Entry, *frame.Sum) {}))
	assert.Len(t, damage(func(_ []frame.Entry, s *frame.Sum) { s.Body++ }), 1)
	assert.Len(t, damage(func(_ []frame.Entry, s *frame.Sum) { s.Latest++ }), 1)
	assert.Len(t, damage(func(index []frame.Entry, s *frame.Sum) {
		index[0].Sum = frame.Sum{Body: 1, Latest: 1} // of no records
		s.Body++
		s.Latest = max(s.Latest, 1)
	}), 1)
}

// TestPieces_Impossible has an index say what cannot be: its file is no piece, and is read.
func TestPieces_Impossible(t *testing.T) {
	for name, change := range map[string]func(index []frame.Entry, sum *frame.Sum){
		"too large":   func(_ []frame.Entry, s *frame.Sum) { s.Body = 1 << 20 },
		"much larger": func(_ []frame.Entry, s *frame.Sum) { s.Body = 1<<64 - 1 },
		"too late":    func(index []frame.Entry, _ *frame.Sum) { index[len(index)-1].Before = 1<<63 - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			m, _, next, err := specimen(0, true)
			require.NoError(t, err)
			c := small(m)
			c.ReadOnly = true
			pieces := func() []disk.Piece {
				l, err := disk.Open(dir, c)
				require.NoError(t, err)
				defer l.Close()
				require.EqualValues(t, next, l.Next())
				return l.Pieces()
			}
			require.NotEmpty(t, pieces())
			resealed(t, m)(change)
			require.Empty(t, pieces())
		})
	}
}
