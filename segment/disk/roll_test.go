package disk_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// later keeps the rests of rolls.
type later struct{ rests []func() }

// behind is for disk.Config.
func (x *later) behind(rest func()) { x.rests = append(x.rests, rest) }

// run runs them.
func (x *later) run() {
	for _, rest := range x.rests {
		rest()
	}
	x.rests = nil
}

// rolled writes until a roll has been begun and there are n records more in the next file, which does not have its name yet. It
// returns the offset with which that begins.
func rolled(t testing.TB, l *disk.Log, x *later, n int) (base uint64) {
	for len(x.rests) == 0 {
		_, err := l.Write(batch(l.Next(), 1, 0))
		require.NoError(t, err)
	}
	base = l.Next() - 1
	for range n - 1 {
		_, err := l.Write(batch(l.Next(), 1, 0))
		require.NoError(t, err)
	}
	return base
}

// midRoll returns a log with so many durable records that is in the middle of a roll, with n records in the next file, which begins
// at base; the file system that it is on; and who has the rest of the roll.
func midRoll(t testing.TB, durable uint64, n int) (m *vfs.Mem, x *later, c disk.Config, l *disk.Log, base uint64) {
	m, x = vfs.NewMem(), &later{}
	c = small(m)
	c.Behind = x.behind
	l = open(t, c)
	if durable > 0 {
		write(t, l, 1, durable)
	}
	return m, x, c, l, rolled(t, l, x, n)
}

// TestLog_WritesGoOnBehindARoll looks at a log while a roll is not finished, and has each of those finish it that may.
func TestLog_WritesGoOnBehindARoll(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		for name, do := range map[string]func(t *testing.T, l *disk.Log, x *later){
			"on its own": func(_ *testing.T, _ *disk.Log, x *later) { x.run() },
			"by a sync": func(t *testing.T, l *disk.Log, _ *later) {
				durable, err := l.Sync()
				require.NoError(t, err)
				require.Equal(t, l.Next(), durable)
			},
			"by a trim": func(t *testing.T, l *disk.Log, _ *later) { require.NoError(t, l.Trim(1)) },
			"by the next roll": func(t *testing.T, l *disk.Log, x *later) {
				for len(x.rests) < 2 {
					_, err := l.Write(batch(l.Next(), 1, 0))
					require.NoError(t, err)
				}
			},
			"by Roll":  func(t *testing.T, l *disk.Log, _ *later) { require.NoError(t, l.Roll()) },
			"by Close": func(t *testing.T, l *disk.Log, _ *later) { require.NoError(t, l.Close()) },
		} {
			x := &later{}
			c := c
			c.Behind = x.behind
			l, err := disk.Open(name, c)
			require.NoError(t, err)
			base := rolled(t, l, x, 3)
			files := l.Files()
			require.Len(t, files, 2, name)
			assert.False(t, files[0].Sealed)
			assert.Equal(t, name+"/"+disk.SegmentName(base)+vfs.TempExt, files[1].Name)
			assert.Zero(t, l.Durable(), "nothing of it is")
			requireHolds(t, l, 0, base+3) // readers find what has been written
			v, err := l.Verify(nil)
			require.NoError(t, err)
			assert.Empty(t, v.Damage)
			assert.EqualValues(t, base+3, v.Records)

			do(t, l, x)
			files = l.Files()
			assert.True(t, files[0].Sealed, name)
			assert.Equal(t, name+"/"+disk.SegmentName(base), files[1].Name)
			assert.GreaterOrEqual(t, l.Durable(), base, name)
			x.run() // who comes too late finds nothing to do
			require.NoError(t, l.Close())
			l, err = disk.Open(name, c)
			require.NoError(t, err)
			assert.True(t, l.Recovery().Clean || name == "by a trim")
			require.NoError(t, l.Close())
		}
	})
}

// TestLog_DiesBehindARoll ends a process before each operation of the rest of a roll: whatever it has written is there.
func TestLog_DiesBehindARoll(t *testing.T) {
	for n := 1; ; n++ {
		m, x := vfs.NewMem(), &later{}
		armed, reached := false, false
		nth := vfs.Nth(n, vfs.Fault{Err: errBoom})
		c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			if armed && nth(o) != nil {
				reached = true
			}
			if reached {
				return &vfs.Fault{Err: errBoom} // it is not there any more
			}
			return nil
		}))
		c.Behind = x.behind
		l := open(t, c)
		base := rolled(t, l, x, 3)
		armed = true
		x.run()
		_ = l.Abandon()
		c = small(m)
		for range 2 {
			seen := open(t, disk.Config{FS: m, ReadOnly: true})
			require.Empty(t, seen.Recovery().Damage)
			requireHolds(t, seen, 0, base+3)
			v, err := seen.Verify(nil)
			require.NoError(t, err)
			require.Empty(t, v.Damage)
			require.NoError(t, seen.Close())
		}
		to := "salvaged"
		s, err := disk.Salvage(dir, to, c)
		require.NoError(t, err)
		require.Empty(t, s.Lost)
		require.EqualValues(t, base+3, s.Records, "before operation %d", n)
		l = open(t, c)
		requireHolds(t, l, 0, base+3)
		require.Equal(t, base+3, l.Durable(), "it has been made safe")
		c.FS = m.Crash(func(int) bool { return false })
		require.NoError(t, l.Abandon())
		l = open(t, c)
		requireHolds(t, l, 0, base+3)
		require.NoError(t, l.Close())
		if !reached {
			require.Greater(t, n, 6)
			return
		}
	}
}

// TestLog_FailsBehindARoll lets each operation of the rest of a roll fail: Write and Sync say so, and Resume finds all.
func TestLog_FailsBehindARoll(t *testing.T) {
	for _, fault := range []vfs.Fault{{Err: errBoom}, {Err: errBoom, Done: true}, {Err: errBoom, Keep: 10}, {Err: errBoom, Lose: true}} {
		for n := 1; ; n++ {
			m, x := vfs.NewMem(), &later{}
			armed, hit := false, false
			nth := vfs.Nth(n, fault)
			c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
				if !armed {
					return nil
				}
				f := nth(o)
				hit = hit || f != nil
				return f
			}))
			c.Behind = x.behind
			l := open(t, c)
			base := rolled(t, l, x, 3)
			armed = true
			x.run()
			armed = false
			if !hit {
				require.NoError(t, l.Close())
				require.Greater(t, n, 6)
				break
			}
			require.ErrorIs(t, l.Err(), errBoom)
			_, err := l.Write(batch(l.Next(), 1, 0))
			require.ErrorIs(t, err, errBoom)
			_, err = l.Sync()
			require.ErrorIs(t, err, errBoom)
			require.ErrorIs(t, l.Trim(1), errBoom)
			requireHolds(t, l, 0, base+3)
			require.NoError(t, l.Resume())
			require.Equal(t, base+3, l.Durable())
			requireHolds(t, l, 0, base+3)
			cut := c
			cut.FS = m.Crash(func(int) bool { return false })
			after := open(t, cut)
			requireHolds(t, after, 0, base+3)
			require.NoError(t, after.Close())
			base = rolled(t, l, x, 2)
			require.NoError(t, l.Close())
			l = open(t, c)
			requireHolds(t, l, 0, base+2)
			require.NoError(t, l.Close())
		}
	}
}

// TestLog_NextOfATornFile cuts the file that is full: what comes behind is gone as well, and what it says to have been safe must be
// there.
func TestLog_NextOfATornFile(t *testing.T) {
	m, _, c, l, base := midRoll(t, 3, 2)
	full, next := l.Files()[0], l.Files()[1]
	require.NoError(t, l.Abandon())
	hurt := func(m *vfs.Mem, name string, pos int64) {
		f, err := m.Open(name)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("damage"), pos)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	exists := func(m *vfs.Mem, name string) bool {
		_, err := m.OpenRead(name)
		return !errors.Is(err, fs.ErrNotExist)
	}
	after := func() *vfs.Mem { return m.Crash(func(int) bool { return true }) }

	// looked has somebody look at what is there first, who is told of the same end.
	looked := func(next uint64, cut string) {
		seen := open(t, disk.Config{FS: c.FS, ReadOnly: true})
		require.Empty(t, seen.Recovery().Damage)
		require.Equal(t, next, seen.Next())
		if cut == "" {
			require.Nil(t, seen.Recovery().Cut)
		} else {
			require.Equal(t, cut, seen.Recovery().Cut.File)
		}
		require.NoError(t, seen.Close())
	}

	// The last record of the full file is torn.
	c.FS = after()
	hurt(c.FS.(*vfs.Mem), full.Name, full.Bytes-20)
	looked(base-1, full.Name)
	l = open(t, c)
	requireHolds(t, l, 0, base-1)
	require.Equal(t, full.Name, l.Recovery().Cut.File)
	require.False(t, exists(c.FS.(*vfs.Mem), next.Name))
	require.NoError(t, l.Close())

	// Nothing of it is there: only the next file is left of what was cut off.
	c.FS = after()
	f, err := c.FS.Open(full.Name)
	require.NoError(t, err)
	last := batch(base-1, 1, 0).Bytes()
	_, err = f.WriteAt(make([]byte, last), full.Bytes-last)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	looked(base-1, next.Name)
	l = open(t, c)
	requireHolds(t, l, 0, base-1)
	require.Equal(t, &disk.Cut{File: next.Name, Pos: frame.SegmentBytes, Bytes: next.Bytes - frame.SegmentBytes,
		Err: l.Recovery().Cut.Err}, l.Recovery().Cut)
	require.Error(t, l.Recovery().Cut.Err)
	require.False(t, exists(c.FS.(*vfs.Mem), next.Name))
	require.NoError(t, l.Close())

	// The head of the next one: it never became one.
	c.FS = after()
	hurt(c.FS.(*vfs.Mem), next.Name, 40)
	looked(base, "")
	l = open(t, c)
	requireHolds(t, l, 0, base)
	require.NoError(t, l.Close())

	// Its first record.
	c.FS = after()
	hurt(c.FS.(*vfs.Mem), next.Name, frame.SegmentBytes+10)
	looked(base, next.Name)
	l = open(t, c)
	requireHolds(t, l, 0, base)
	require.Equal(t, next.Name, l.Recovery().Cut.File)
	require.False(t, exists(c.FS.(*vfs.Mem), next.Name))
	require.NoError(t, l.Close())

	// Its last.
	c.FS = after()
	hurt(c.FS.(*vfs.Mem), next.Name, next.Bytes-20)
	looked(base+1, next.Name)
	l = open(t, c)
	requireHolds(t, l, 0, base+1)
	require.Equal(t, l.Files()[1].Name, l.Recovery().Cut.File, "it has its name now")
	require.NoError(t, l.Close())

	// All of the full file from a durable record on: only the next file is left to say so.
	c.FS = after()
	f, err = c.FS.Open(full.Name)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, full.Bytes-200), 200)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = disk.Open(dir, c)
	var bad *disk.CorruptError
	require.ErrorAs(t, err, &bad)
	require.EqualValues(t, 3, bad.To)
	s, err := disk.Salvage(dir, "salvaged", c)
	require.NoError(t, err)
	require.Len(t, s.Lost, 1)
	require.EqualValues(t, 3, s.Lost[0].To)
	require.NoError(t, c.FS.Remove(next.Name))
	_, err = disk.Open(dir, c)
	require.NoError(t, err, "without it nothing tells it from a torn end")
}

// TestRemove_BehindARoll removes a log that ended in the middle of a roll.
func TestRemove_BehindARoll(t *testing.T) {
	m, _, _, l, _ := midRoll(t, 0, 2)
	require.NoError(t, l.Abandon())
	require.NoError(t, disk.Remove(dir, m))
	_, err := m.List(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
