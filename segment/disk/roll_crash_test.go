package disk_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// dying returns a file system on which nothing happens any more from the n-th change on, of which a part may be done.
func dying(m *vfs.Mem, n int) (fsys vfs.FS, died func() bool) {
	nth, dead := vfs.Nth(n, vfs.Fault{Err: errBoom, Keep: 10}), false
	return vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if dead {
			return &vfs.Fault{Err: errBoom}
		}
		f := nth(o)
		dead = f != nil
		return f
	}), func() bool { return dead }
}

// TestOpen_DiesBehindARoll ends a process in the middle of a roll, and two more while they open what it has left: whatever was written
// is there, in the end and whenever somebody looks.
func TestOpen_DiesBehindARoll(t *testing.T) {
	for i := 1; ; i++ {
		m, _, c, l, base := midRoll(t, 0, 3)
		require.NoError(t, l.Abandon())
		ended := false
		for j := 1; !ended; j++ {
			m := m.Crash(func(int) bool { return true })
			fsys, died := dying(m, i)
			c.FS = fsys
			if l, err := disk.Open(dir, c); err == nil {
				require.NoError(t, l.Abandon())
			}
			first := died()
			fsys, died = dying(m, j)
			c.FS = fsys
			if l, err := disk.Open(dir, c); err == nil {
				require.NoError(t, l.Abandon())
			}
			seen := open(t, disk.Config{FS: m, ReadOnly: true})
			require.Empty(t, seen.Recovery().Damage)
			requireHolds(t, seen, 0, base+3)
			require.NoError(t, seen.Close())
			s, err := disk.Salvage(dir, "salvaged", small(m))
			require.NoError(t, err)
			require.Empty(t, s.Lost)
			require.EqualValues(t, base+3, s.Records)
			l = open(t, small(m))
			requireHolds(t, l, 0, base+3)
			require.Equal(t, base+3, l.EndOf(1))
			require.NoError(t, l.Abandon())
			l = open(t, small(m.Crash(func(int) bool { return false })))
			requireHolds(t, l, 0, base+3)
			require.NoError(t, l.Abandon())
			if ended = !died(); ended && !first {
				require.Greater(t, i, 10)
				return
			}
		}
	}
}

// TestOpen_PowerCutBehindARoll ends a process in the middle of a roll, and has the power go while two more open what it has left.
func TestOpen_PowerCutBehindARoll(t *testing.T) {
	for n := 1; ; n++ {
		m, _, c, l, base := midRoll(t, 3, 3)
		require.NoError(t, l.Abandon())
		fsys, died := dying(m, n)
		c.FS = fsys
		if l, err := disk.Open(dir, c); err == nil {
			require.NoError(t, l.Abandon())
		}
		c.FS = vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			if o.Kind.Changes() {
				for after := range m.Crashes(60, uint64(o.N)) {
					survives(t, after, [2]uint64{3, 0}, fmt.Sprint(n, o))
				}
			}
			return nil
		})
		l = open(t, c)
		requireHolds(t, l, 0, base+3)
		require.NoError(t, l.Abandon())
		survives(t, m.Crash(func(int) bool { return false }), [2]uint64{base + 3, 0}, "opened")
		if !died() {
			require.Greater(t, n, 10)
			return
		}
	}
}

// TestOpen_NextOfSomethingElse finds the file that comes next to be of another topic or partition, of another epoch, or to begin where
// the last one does: it is of no meaning.
func TestOpen_NextOfSomethingElse(t *testing.T) {
	for name, change := range map[string]func(c *disk.Config, f *disk.FileInfo){
		"":          nil, // but this one does mean something
		"topic":     func(c *disk.Config, _ *disk.FileInfo) { c.Topic[3]++ },
		"partition": func(c *disk.Config, _ *disk.FileInfo) { c.Partition++ },
		"epoch":     func(_ *disk.Config, f *disk.FileInfo) { f.Epoch++ },
		"garbage":   func(_ *disk.Config, f *disk.FileInfo) { f.Bytes = 0 },
		"base":      func(_ *disk.Config, f *disk.FileInfo) { f.First = 0 },
	} {
		m := vfs.NewMem()
		c := small(m)
		l := open(t, c)
		if name != "base" {
			write(t, l, 1, 10)
		}
		next, files := l.Next(), l.Files()
		f := files[len(files)-1]
		require.NoError(t, l.Abandon())
		f.First = f.End
		of := c
		if change != nil {
			change(&of, &f)
		}
		head := frame.Segment{Topic: of.Topic, Partition: of.Partition, Base: f.First, Epoch: f.Epoch}
		b := frame.AppendSegment(nil, &head)
		b = append(b, batch(f.First, 2, 0).Finish(head.Seed(), int64(len(b)), frame.Header{First: f.First, Epoch: f.Epoch})...)
		if f.Bytes == 0 {
			clear(b[:20])
		}
		put(t, m, dir+"/"+disk.SegmentName(f.First)+vfs.TempExt, append(b, make([]byte, 1000)...))
		if name == "" {
			next += 2
		}
		s, err := disk.Salvage(dir, "salvaged", c)
		require.NoError(t, err, name)
		assert.EqualValues(t, next, s.Records, name)
		seen := open(t, disk.Config{FS: m, ReadOnly: true})
		require.Empty(t, seen.Recovery().Damage)
		assert.Equal(t, next, seen.Next(), name)
		require.NoError(t, seen.Close())
		for range 2 {
			l, err = disk.Open(dir, c)
			if assert.NoError(t, err, name) && assert.Equal(t, next, l.Next(), name) {
				requireHolds(t, l, 0, next)
				require.NoError(t, l.Close())
			}
		}
	}
}

// TestSalvage_BehindARoll salvages a log that ended in the middle of a roll and was damaged then.
func TestSalvage_BehindARoll(t *testing.T) {
	m, _, c, l, base := midRoll(t, 3, 2)
	full := l.Files()[0]
	require.NoError(t, l.Abandon())
	damage := func(at, n int64) *vfs.Mem {
		m := m.Crash(func(int) bool { return true })
		f, err := m.Open(full.Name)
		require.NoError(t, err)
		_, err = f.WriteAt(make([]byte, n), at)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return m
	}
	for name, fsys := range map[string]*vfs.Mem{
		"the head": damage(0, 20), "a record": damage(200, 20), "both": damage(0, 300), "nearly all": damage(0, full.Bytes-1),
		"all records": damage(frame.SegmentBytes, full.Bytes),
		"all":         damage(0, full.Bytes),
	} {
		c.FS = fsys
		_, err := disk.Open(dir, c)
		require.ErrorIs(t, err, disk.ErrCorrupt, name)
		s, err := disk.Salvage(dir, "salvaged", c)
		require.NoError(t, err, name)
		l, err := disk.Open("salvaged", small(fsys))
		require.NoError(t, err)
		t.Log(name, base, s)
		if name != "the head" {
			require.NotEmpty(t, s.Lost, name)
		}
		require.GreaterOrEqual(t, s.Next, uint64(3), name)
		all, err := lives(l, 0)
		require.NoError(t, err)
		require.Len(t, all, int(s.Next))
		require.NoError(t, l.Close())
	}
}

// TestTrim_BehindARoll has rolls begin and end between the operations of a Trim, and the power go before each of them.
func TestTrim_BehindARoll(t *testing.T) {
	for _, rolling := range []bool{false, true} {
		for _, back := range []uint64{0, 1, 2, 3, 4, 8} {
			for n := 1; ; n++ {
				m, x := vfs.NewMem(), &later{}
				armed, reached := false, false
				var l *disk.Log
				var known [2]uint64 // what is durable, and what may be dropped
				nth := vfs.Nth(n, vfs.Fault{})
				c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
					if !armed || !o.Kind.Changes() {
						return nil
					}
					if nth(o) != nil {
						reached, armed = true, false
						files := l.Files()
						full := len(files) > 1 && !files[len(files)-2].Sealed
						mayRoll := o.Kind == vfs.OpCreate || o.Kind == vfs.OpWrite || o.Kind == vfs.OpRemove // the others may be of a roll
						if mayRoll && !full {
							x.rests = nil
							rolled(t, l, x, 3)
						} else {
							_, err := l.Write(batch(l.Next(), 2, 0))
							require.NoError(t, err)
						}
						armed = true
					}
					for after := range m.Crashes(12, uint64(o.N)) {
						survives(t, after, known, fmt.Sprint(rolling, back, n, o))
					}
					return nil
				}))
				c.Behind = x.behind
				l = open(t, c)
				if rolling {
					rolled(t, l, x, 3)
				} else {
					for range 40 {
						_, err := l.Write(batch(l.Next(), 1, 0))
						require.NoError(t, err)
					}
					x.run()
				}
				below := l.Next() - back
				known = [2]uint64{l.Durable(), below}
				armed = true
				require.NoError(t, l.Trim(below))
				armed = false
				next := l.Next()
				requireHolds(t, l, below, next)
				require.GreaterOrEqual(t, l.Durable(), below)
				known[0] = l.Durable()
				survives(t, m.Crash(func(int) bool { return false }), known, "trimmed")
				died := open(t, small(m.Crash(func(int) bool { return true })))
				requireHolds(t, died, below, next)
				require.NoError(t, died.Close())
				x.run()
				require.NoError(t, l.Trim(l.Next()))
				require.Len(t, l.Files(), 1)
				require.NoError(t, l.Close())
				if !reached {
					break
				}
			}
		}
	}
}

// survives opens what a power cut has left, twice.
func survives(t testing.TB, m *vfs.Mem, known [2]uint64, when string) {
	for range 2 {
		l, err := disk.Open(dir, small(m))
		require.NoError(t, err, when)
		require.GreaterOrEqual(t, l.Next(), known[0], when)
		require.LessOrEqual(t, l.First(), known[1], when)
		require.Empty(t, l.Recovery().Mended, when)
		_, err = lives(l, l.First())
		require.NoError(t, err, when)
		require.NoError(t, l.Abandon())
	}
}

// TestResume_BehindARoll lets a Resume fail at each of its operations in the middle of a roll, and the next one too.
func TestResume_BehindARoll(t *testing.T) {
	for _, tail := range []bool{false, true} {
		for i := 1; ; i++ {
			over, first := false, true // no Resume is hit any more, nor the first one
			for j := 1; !over; j++ {
				m, x := vfs.NewMem(), &later{}
				var fault func(vfs.Op) *vfs.Fault
				c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
					if fault == nil {
						return nil
					}
					return fault(o)
				}))
				c.Behind = x.behind
				l := open(t, c)
				base := rolled(t, l, x, 3)
				if tail {
					fault = vfs.Nth(1, vfs.Fault{Err: errBoom, Done: true})
					_, err := l.Write(batch(l.Next(), 1, 7))
					require.ErrorIs(t, err, errBoom)
				} else {
					l.Fail(errBoom)
				}
				hit := [2]bool{}
				for k, n := range []int{i, j} {
					nth := vfs.Nth(n, vfs.Fault{Err: errBoom, Keep: 10})
					fault = func(o vfs.Op) *vfs.Fault {
						f := nth(o)
						hit[k] = hit[k] || f != nil
						return f
					}
					err := l.Resume()
					if hit[k] {
						require.ErrorIs(t, err, errBoom)
						require.ErrorIs(t, l.Trim(1), errBoom)
						_, err = l.Sync()
						require.ErrorIs(t, err, errBoom)
					}
					x.run()
					requireHolds(t, l, 0, base+3)
					if !hit[k] {
						break
					}
				}
				fault = nil
				require.NoError(t, l.Resume())
				requireHolds(t, l, 0, base+3)
				require.Equal(t, base+3, l.Durable())
				cut := small(m.Crash(func(int) bool { return false }))
				after := open(t, cut)
				requireHolds(t, after, 0, base+3)
				require.NoError(t, after.Close())
				rolled(t, l, x, 3)
				require.NoError(t, l.Close())
				require.NoError(t, errors.Join(l.Abandon(), l.Close()))
				over = !hit[1]
				first = first && !hit[0]
			}
			if first {
				require.Greater(t, i, 8)
				break
			}
		}
	}
}

// TestLog_FullBehindARoll has the disk fill up wherever it may, and the process end then or go on once there is room.
func TestLog_FullBehindARoll(t *testing.T) {
	for room := int64(6000); room < 16000; room += 150 {
		for _, resume := range []bool{false, true} {
			m, x := vfs.NewMem(), &later{}
			c := small(m)
			c.Behind = x.behind
			l := open(t, c)
			m.SetLimit(room)
			var err error
			for n := 1; err == nil; n++ {
				if _, err = l.Write(batch(l.Next(), 1+n%3, 0)); err == nil && n%5 == 0 {
					x.run()
					err = l.Err()
				}
			}
			require.ErrorIs(t, err, disk.ErrFull)
			next, durable := l.Next(), l.Durable()
			requireHolds(t, l, 0, next)
			for after := range m.Crashes(20, uint64(room)) {
				after.SetLimit(-1)
				survives(t, after, [2]uint64{durable, 0}, "full")
			}
			if resume {
				_ = l.Resume() // there may be room enough for that
				m.SetLimit(-1)
				require.NoError(t, l.Resume())
			} else {
				require.NoError(t, l.Abandon())
				if l, err = disk.Open(dir, c); err != nil {
					m.SetLimit(-1)
					l = open(t, c)
				}
				m.SetLimit(-1)
			}
			requireHolds(t, l, 0, next)
			rolled(t, l, x, 2)
			require.NoError(t, l.Close())
		}
	}
}

// TestPieces_BehindARoll reads what is cold while a roll is not finished, and after that.
func TestPieces_BehindARoll(t *testing.T) {
	m, x, _, l, base := midRoll(t, 3, 2)
	pieces := l.Pieces()
	seen := open(t, disk.Config{FS: m, ReadOnly: true})
	cold := seen.Pieces()
	readAll := func(l *disk.Log, pieces []disk.Piece) {
		next := uint64(0)
		for i := range pieces {
			require.NoError(t, l.ReadPiece(&pieces[i], func(b *frame.Batch) error {
				require.Equal(t, next, b.First)
				next = b.Next()
				return nil
			}))
		}
		require.Equal(t, base, next, "the file that records go to is none")
	}
	readAll(l, pieces)
	readAll(seen, cold)
	x.run()
	readAll(l, pieces)
	readAll(l, l.Pieces())
	readAll(seen, cold)
	requireHolds(t, seen, 0, base+2) // though the file has its name now
	require.NoError(t, l.Trim(l.Next()))
	require.ErrorIs(t, l.ReadPiece(&pieces[0], nil), disk.ErrBelow)
	require.NoError(t, seen.Close())
	require.NoError(t, l.Close())
}

// TestReader_OfAFileThatMeansNothing has a Resume find that the full file is torn, when a reader is about to open the next one.
func TestReader_OfAFileThatMeansNothing(t *testing.T) {
	m, x := vfs.NewMem(), &later{}
	var l *disk.Log
	var next disk.FileInfo
	armed := false
	c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if armed && o.Kind == vfs.OpOpen && o.Name == next.Name {
			armed = false
			full := l.Files()[0]
			f, err := m.Open(full.Name)
			require.NoError(t, err)
			_, err = f.WriteAt(make([]byte, 40), full.Bytes-40)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			l.Fail(errBoom)
			require.NoError(t, l.Resume())
		}
		return nil
	}))
	c.Behind = x.behind
	l = open(t, c)
	base := rolled(t, l, x, 3)
	next = l.Files()[1]
	r, err := l.NewReader(base + 1)
	require.NoError(t, err)
	armed = true
	_, err = r.Next()
	require.ErrorIs(t, err, disk.ErrBeyond)
	require.Equal(t, base-1, l.Next())
	require.NoError(t, r.Close())
	require.NoError(t, l.Close())
}
