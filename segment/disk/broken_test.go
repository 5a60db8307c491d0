package disk_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

func TestLog_FullDisk(t *testing.T) {
	m := vfs.NewMem()
	c := small(m)
	l := open(t, c)
	m.SetLimit(40_000)
	var err error
	for err == nil {
		_, err = l.Write(batch(l.Next(), 3, 0))
		if err == nil {
			_, err = l.Sync()
		}
	}
	require.ErrorIs(t, err, disk.ErrFull)
	require.ErrorIs(t, err, disk.ErrFailed)
	require.True(t, vfs.IsFull(err))
	names, err := m.List(dir)
	require.NoError(t, err)
	require.Len(t, names, 2+len(l.Files()), "what there was no room for takes none")
	end := l.Next()
	require.Greater(t, end, uint64(50))
	requireHolds(t, l, 0, end)
	_, err = l.Write(batch(end, 1, 0))
	require.ErrorIs(t, err, disk.ErrFull, "it stays")
	_, err = l.Sync()
	require.ErrorIs(t, err, disk.ErrFull)
	m.SetLimit(m.Used())
	require.ErrorIs(t, l.Resume(), disk.ErrFull)
	requireHolds(t, l, 0, end)
	_, err = l.Write(batch(end, 1, 0))
	require.ErrorIs(t, err, disk.ErrFull)

	m.SetLimit(100_000)
	require.NoError(t, l.Resume())
	require.NoError(t, l.Err())
	require.NoError(t, l.Resume(), "when it works there is nothing to do")
	requireHolds(t, l, 0, end)
	write(t, l, 3, end+9)
	require.NoError(t, l.Close())
	l = open(t, c)
	requireHolds(t, l, 0, end+9)
	require.NoError(t, l.Close())
}

// TestBUG080_FailedSyncIsFinal fails one sync, and lets all later ones succeed, of which the kernel says nothing is wrong. What
// it had lost must not count as durable, then or after Resume or an open.
func TestBUG080_FailedSyncIsFinal(t *testing.T) {
	for _, how := range []string{"resume", "open"} {
		failures := 0
		for n := 1; n < 40; n++ {
			m := vfs.NewMem()
			failed := false
			nth := vfs.Nth(n, vfs.Fault{Err: errBoom, Lose: true}, vfs.OpSync)
			c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
				f := nth(o)
				failed = failed || f != nil
				return f
			}))
			l, err := disk.Open(dir, c)
			acked := uint64(0)
			for round := 0; err == nil && round < 20; round++ {
				for range 2 {
					if err == nil {
						_, err = l.Write(batch(l.Next(), 2, 0))
					}
				}
				if err == nil {
					acked, err = l.Sync()
				}
			}
			require.Equal(t, failed, err != nil)
			if l != nil && failed {
				failures++
				require.ErrorIs(t, err, errBoom)
				require.Equal(t, acked, l.Durable())
				for range 3 {
					_, err = l.Sync()
					require.ErrorIs(t, err, errBoom, "it is not tried again")
					_, err = l.Write(batch(0, 1, 0))
					require.ErrorIs(t, err, disk.ErrFailed)
				}
				if how == "resume" {
					require.NoError(t, l.Resume())
				} else {
					require.ErrorIs(t, l.Close(), errBoom)
					l = nil
				}
			}
			if l == nil {
				l = open(t, c)
			}
			requireHolds(t, l, 0, l.Next())
			end := l.Next()
			require.GreaterOrEqual(t, end, acked)
			require.Equal(t, end, l.Durable())
			// What it says now is true: a power cut that takes all that is not safe takes nothing of it.
			c.FS = m.Crash(func(int) bool { return false })
			after := open(t, c)
			requireHolds(t, after, 0, end)
			require.NoError(t, after.Close())
			require.NoError(t, l.Close())
		}
		require.Greater(t, failures, 20, "of a log that was open")
	}
}

// TestResume_FailsBehindATrim has a Trim fail when its state is there, and a Resume when it has removed what the state does not want any
// more: a reader is told where the log begins.
func TestResume_FailsBehindATrim(t *testing.T) {
	m := vfs.NewMem()
	var fails func(vfs.Op) bool
	c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
		if fails != nil && fails(o) {
			return &vfs.Fault{Err: errBoom, Done: true}
		}
		return nil
	}))
	l := open(t, c)
	write(t, l, 1, 30)
	below := l.Files()[1].First
	fails = func(o vfs.Op) bool { return o.Kind == vfs.OpRename }
	require.ErrorIs(t, l.Trim(below), errBoom)
	require.Zero(t, l.First())
	fails = func(o vfs.Op) bool { return o.Kind == vfs.OpCreate }
	require.ErrorIs(t, l.Resume(), errBoom)
	require.Equal(t, below, l.First())
	_, err := l.NewReader(0)
	require.ErrorIs(t, err, disk.ErrBelow)
	requireHolds(t, l, below, 30)
	fails = nil
	require.NoError(t, l.Resume())
	requireHolds(t, l, below, 30)
	require.NoError(t, l.Close())
}
