package disk_test

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment"
	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// mixed writes batches of n records of all kinds, until the log ends at upTo.
func mixed(t testing.TB, l *disk.Log, n int, upTo uint64) {
	var b frame.Builder
	for l.Next() < upTo {
		b.Reset(0)
		for i := range n {
			off := l.Next() + uint64(i)
			r := frame.Record{Value: make([]byte, off%50), Appended: int64(1000 + off/2)}
			switch off % 4 {
			case 1:
				r.Key = []byte("key")
			case 2:
				r.Timestamp = int64(off*7919%5000) - 100
			case 3:
				r.Headers = segment.MakeHeaders(segment.Header{Name: "h", Value: []byte("v")}).Encoded()
				r.Timestamp = int64(off)
			}
			require.True(t, b.Add(&r))
		}
		_, err := l.Write(&b)
		require.NoError(t, err)
	}
}

// TestPieces compares what the indexes say of the records with the records: after rolls, a clean close, and a crash, whose end is
// sealed by the next open.
func TestPieces(t *testing.T) {
	for _, each := range []int{1, 7, 60} {
		m := vfs.NewMem()
		c := small(m)
		c.SegmentBytes = 64 << 10
		l := open(t, c)
		mixed(t, l, each, 5000)
		require.Greater(t, len(l.Files()), 2)
		require.NoError(t, l.Close())
		l = open(t, c)
		mixed(t, l, each, 6000)
		require.NoError(t, l.Abandon())
		l = open(t, c)
		defer l.Close()
		require.NoError(t, l.Trim(777))

		pieces := l.Pieces()
		next := uint64(777)
		for i := range pieces {
			p := &pieces[i]
			if i == 0 {
				require.LessOrEqual(t, p.First, next)
			} else {
				require.Equal(t, next, p.First)
			}
			next = p.End
			mem := segment.NewLog(segment.Config{First: p.First, SegmentBytes: 1 << 20})
			require.NoError(t, l.ReadPiece(p, func(b *frame.Batch) error { return disk.Fill(mem, b) }))
			require.NoError(t, mem.Publish())
			require.Equal(t, p.End, mem.Committed())
			_, bytes, _ := mem.Retained()
			require.Equal(t, bytes, p.Memory)
			last, ok := mem.TimeOf(p.End - 1)
			require.True(t, ok)
			require.Equal(t, last, p.Newest)
			first, _ := mem.TimeOf(p.First)
			require.LessOrEqual(t, p.Oldest, first)
			recs := make([]segment.Record, p.End-p.First)
			n, err := mem.ReadAt(p.First, recs)
			require.NoError(t, err)
			for _, r := range recs[:n] {
				require.LessOrEqual(t, r.Timestamp, p.Latest)
			}
		}
		require.EqualValues(t, l.Next(), next, "all but the file that records go to")
		v, err := l.Verify(nil)
		require.NoError(t, err)
		require.Empty(t, v.Damage)

		// Joined, as far as they lie in one file.
		joined := l.Pieces()
		var list []disk.Piece
		memory := int64(0)
		for i := range joined {
			memory += joined[i].Memory
			if len(list) == 0 || !list[len(list)-1].Join(&joined[i]) {
				list = append(list, joined[i])
			}
		}
		require.Less(t, len(list), len(joined))
		for i := range list {
			memory -= list[i].Memory
			n := uint64(0)
			require.NoError(t, l.ReadPiece(&list[i], func(b *frame.Batch) error { n += uint64(b.Count); return nil }))
			require.Equal(t, list[i].End-list[i].First, n)
		}
		require.Zero(t, memory)
	}
}

// TestPieces_End has the pieces end where the index does not say enough: before the file that records go to, and before one in
// which something is lost.
func TestPieces_End(t *testing.T) {
	m := vfs.NewMem()
	l := open(t, small(m))
	require.Empty(t, l.Pieces())
	mixed(t, l, 5, 20)
	require.Empty(t, l.Pieces())
	require.NoError(t, l.Roll())
	require.NotEmpty(t, l.Pieces())
	for len(l.Files()) < 6 {
		mixed(t, l, 5, l.Next()+5)
	}
	require.NoError(t, l.Close())
	files := l.Files()
	damaged := files[2]
	f, err := m.Open(damaged.Name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("xxxxxxxx"), 200)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	c := small(m)
	_, err = disk.Salvage("p", "q", c)
	require.NoError(t, err)
	l, err = disk.Open("q", c)
	require.NoError(t, err)
	defer l.Close()
	pieces := l.Pieces()
	if len(pieces) > 0 {
		require.LessOrEqual(t, pieces[len(pieces)-1].End, damaged.First+1)
	}
	r, err := l.NewReader(0)
	require.NoError(t, err)
	defer r.Close()
	lost := false
	for {
		b, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		lost = lost || b.Kind == frame.Lost
	}
	require.True(t, lost)
}

// TestReadPiece_Fails has the file be trimmed, removed, damaged, unreadable, and closed.
func TestReadPiece_Fails(t *testing.T) {
	m := vfs.NewMem()
	var fault *vfs.Fault
	l := open(t, small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if o.Kind == vfs.OpRead {
			return fault
		}
		return nil
	})))
	for len(l.Files()) < 6 {
		mixed(t, l, 5, l.Next()+5)
	}
	pieces := l.Pieces()
	read := func(p *disk.Piece) error { return l.ReadPiece(p, func(*frame.Batch) error { return nil }) }
	require.NoError(t, read(&pieces[0]))

	fault = &vfs.Fault{Err: errBoom}
	err := read(&pieces[0])
	require.ErrorIs(t, err, fault.Err)
	require.NotErrorIs(t, err, disk.ErrCorrupt)
	fault = nil
	require.NoError(t, read(&pieces[0]), "it may pass")

	boom := errors.New("yield")
	require.Equal(t, boom, l.ReadPiece(&pieces[0], func(*frame.Batch) error { return boom }))

	last := &pieces[len(pieces)-1]
	require.NoError(t, l.Trim(pieces[0].End))
	require.ErrorIs(t, read(&pieces[0]), disk.ErrBelow)
	require.NoError(t, read(last))

	files := l.Files()
	f, err := m.Open(files[0].Name)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("xxxxxxxx"), 200)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	var bad *disk.CorruptError
	require.ErrorAs(t, read(&pieces[1]), &bad)
	assert.Equal(t, files[0].Name, bad.File)
	assert.Equal(t, pieces[1].End, bad.To)
	assert.NotZero(t, bad.Pos)

	c := small(m)
	c.ReadOnly = true
	looker, err := disk.Open("p", c)
	require.NoError(t, err)
	defer looker.Close()
	require.NoError(t, m.Remove(files[0].Name))
	err = looker.ReadPiece(&looker.Pieces()[0], nil)
	require.ErrorIs(t, err, fs.ErrNotExist, "its owner may have trimmed it")
	require.NotErrorIs(t, err, disk.ErrCorrupt)
	require.ErrorAs(t, read(&pieces[1]), &bad)
	require.ErrorIs(t, bad, disk.ErrCorrupt)
	require.NoError(t, l.Abandon())
	require.Equal(t, disk.ErrClosed, read(last))
}
