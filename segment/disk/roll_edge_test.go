package disk_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/frame"
	"github.com/leatlog/leat/segment/vfs"
)

// fits reports whether all can be written without a roll.
func fits(l *disk.Log, all ...*frame.Builder) bool {
	files := l.Files()
	need := files[len(files)-1].Bytes + disk.SealRoom
	for _, b := range all {
		need += b.Bytes()
	}
	return need <= disk.MinSegmentBytes
}

// TestTrim_WaitsForNoRollInVain trims a log while a roll is not finished: only a Trim that needs the full file to be sealed finishes it.
func TestTrim_WaitsForNoRollInVain(t *testing.T) {
	m, x := vfs.NewMem(), &later{}
	ops := 0
	c := small(vfs.NewFaulty(m, func(vfs.Op) *vfs.Fault { ops++; return nil }))
	c.Behind = x.behind
	l := open(t, c)
	old := rolled(t, l, x, 1)
	x.run()
	_, err := l.Sync()
	require.NoError(t, err)
	safe := l.Durable()
	base := rolled(t, l, x, 3)
	sealed := func() (all []bool) {
		for _, f := range l.Files() {
			all = append(all, f.Sealed)
		}
		return all
	}
	require.Equal(t, []bool{true, false, false}, sealed())

	before := ops
	require.NoError(t, l.Trim(0), "it changes nothing")
	require.ErrorIs(t, l.Trim(l.Next()+1), disk.ErrBeyond)
	require.Equal(t, before, ops)

	require.NoError(t, l.Trim(1), "it removes nothing")
	require.NoError(t, l.Trim(safe), "it removes the file before")
	require.Equal(t, []bool{false, false}, sealed())
	require.Equal(t, old, l.Files()[0].First)
	died := open(t, small(m.Crash(func(int) bool { return true })))
	requireHolds(t, died, safe, base+3)
	require.NoError(t, died.Close())
	cut := open(t, small(m.Crash(func(int) bool { return false })))
	requireHolds(t, cut, safe, safe)
	require.NoError(t, cut.Close())

	require.NoError(t, l.Trim(base), "it removes the full one")
	require.Len(t, l.Files(), 1)
	require.Equal(t, base, l.Files()[0].First)
	requireHolds(t, l, base, base+3)
	require.NoError(t, l.Close())
}

// TestTrim_UpToAFileThatBecomesFull has a roll begin during a Trim, with the file that is full then ending just where the log is to begin:
// that file stays, since the next one has no name yet.
func TestTrim_UpToAFileThatBecomesFull(t *testing.T) {
	for n := 1; ; n++ {
		m, x := vfs.NewMem(), &later{}
		armed, reached := false, false
		var l *disk.Log
		nth := vfs.Nth(n, vfs.Fault{})
		c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			if armed && o.Kind.Changes() && nth(o) != nil {
				armed, reached = false, true
				_, err := l.Write(batch(l.Next(), 1, 0))
				require.NoError(t, err)
				armed = true
			}
			if reached && o.Kind.Changes() {
				for after := range m.Crashes(20, uint64(o.N)) {
					survives(t, after, [2]uint64{l.Durable(), l.Durable()}, fmt.Sprint(n, o))
				}
			}
			return nil
		}))
		c.Behind = x.behind
		l = open(t, c)
		for b := batch(0, 1, 0); fits(l, b); b = batch(l.Next(), 1, 0) {
			_, err := l.Write(b)
			require.NoError(t, err)
		}
		below, err := l.Sync()
		require.NoError(t, err)
		armed = true
		require.NoError(t, l.Trim(below))
		armed = false
		if !reached {
			require.Greater(t, n, 3)
			return
		}
		require.Len(t, x.rests, 1)
		require.Equal(t, below, l.Files()[0].End)
		for _, kept := range []bool{false, true} {
			survives(t, m.Crash(func(int) bool { return kept }), [2]uint64{below, below}, "trimmed")
		}
		requireHolds(t, l, below, below+1)
		require.NoError(t, l.Close())
		l = open(t, small(m))
		requireHolds(t, l, below, below+1)
		require.NoError(t, l.Close())
	}
}

// TestSalvage_NextUnderALaterEpoch loses all of the full file, the only one by whose epoch the new log could have begun. What comes
// behind it is of a later epoch, and does not fit one file of the new log.
func TestSalvage_NextUnderALaterEpoch(t *testing.T) {
	rolls := 0
	for first := range uint64(40) {
		m, x := vfs.NewMem(), &later{}
		c := small(m)
		c.First = first
		for range 2 {
			require.NoError(t, open(t, c).Abandon()) // nothing is written under these epochs
		}
		var l *disk.Log
		die := false
		c.Behind = x.behind
		c.FS = vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
			if die && o.Kind == vfs.OpRename {
				_, err := l.Write(batch(l.Next(), 1, 0)) // the file before is safe, says this one
				require.NoError(t, err)
				return &vfs.Fault{Err: errBoom}
			}
			return nil
		})
		l = open(t, c)
		base := rolled(t, l, x, 1)
		for next := l.Next(); fits(l, batch(next, 1, 0), batch(next+1, 1, 0)); next = l.Next() {
			_, err := l.Write(batch(next, 1, 0))
			require.NoError(t, err)
		}
		die = true
		x.run()
		require.ErrorIs(t, l.Err(), errBoom)
		full, next := l.Files()[0], l.Files()[1]
		if next.Bytes+frame.HeaderBytes+disk.SealRoom > disk.MinSegmentBytes {
			rolls++
		}
		require.NoError(t, l.Abandon())
		put(t, m, full.Name, make([]byte, full.Bytes))

		s, err := disk.Salvage(dir, "salvaged", small(m))
		require.NoError(t, err)
		require.Len(t, s.Lost, 1)
		require.Equal(t, base, s.Lost[0].To)
		require.Equal(t, next.End-base, s.Records)
		l, err = disk.Open("salvaged", small(m))
		require.NoError(t, err)
		all, err := lives(l, first)
		require.NoError(t, err)
		require.Len(t, all, int(next.End-first))
		require.NoError(t, l.Close())
	}
	require.Positive(t, rolls)
}

// TestSalvage_NextOfSomethingElse loses all of the full file, so that what comes behind it has to say itself that it is of this log.
func TestSalvage_NextOfSomethingElse(t *testing.T) {
	for name, change := range map[string]func(head *frame.Segment){
		"":              func(*frame.Segment) {}, // this one does mean something
		"topic":         func(head *frame.Segment) { head.Topic[3]++ },
		"partition":     func(head *frame.Segment) { head.Partition++ },
		"earlier epoch": func(head *frame.Segment) { head.Epoch-- },
	} {
		m := vfs.NewMem()
		require.NoError(t, open(t, small(m)).Abandon())
		l := open(t, small(m))
		write(t, l, 1, 5)
		require.NoError(t, l.Trim(1)) // so that the epoch is known
		full := l.Files()[0]
		require.NoError(t, l.Abandon())
		put(t, m, full.Name, make([]byte, full.Bytes))
		head := frame.Segment{Topic: topic, Partition: 4, Base: 5, Epoch: 2}
		change(&head)
		b := frame.AppendSegment(nil, &head)
		b = append(b, batch(5, 2, 0).Finish(head.Seed(), int64(len(b)), frame.Header{First: 5, Epoch: head.Epoch, SyncedTo: 5})...)
		put(t, m, dir+"/"+disk.SegmentName(5)+vfs.TempExt, append(b, make([]byte, 1000)...))
		s, err := disk.Salvage(dir, "salvaged", small(m))
		require.NoError(t, err)
		if name != "" {
			require.Zero(t, s.Records, name)
			continue
		}
		require.EqualValues(t, 2, s.Records)
		require.Len(t, s.Lost, 1)
		require.EqualValues(t, 5, s.Lost[0].To)
	}
}

// TestLog_FailsDuringAWrite has something else fail while a write is under way: it does not count, though it goes well.
func TestLog_FailsDuringAWrite(t *testing.T) {
	var l *disk.Log
	armed := false
	c := small(vfs.NewFaulty(vfs.NewMem(), func(o vfs.Op) *vfs.Fault {
		if armed && o.Kind == vfs.OpWrite {
			armed = false
			l.Fail(errBoom)
		}
		return nil
	}))
	l = open(t, c)
	write(t, l, 1, 5)
	armed = true
	_, err := l.Write(batch(5, 2, 1))
	require.ErrorIs(t, err, errBoom)
	require.NoError(t, l.Resume())
	write(t, l, 2, 9)
	requireHolds(t, l, 0, 9)
	require.NoError(t, l.Close())
}
