package disk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/leatlog/leat/segment/disk"
	"github.com/leatlog/leat/segment/vfs"
)

func TestLog_Trim(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		l := open(t, c)
		write(t, l, 2, 100)
		n := len(l.Files())
		require.NoError(t, l.Trim(0))
		require.NoError(t, l.Trim(1))
		require.Len(t, l.Files(), n, "only whole files go")
		_, err := l.NewReader(0)
		require.ErrorIs(t, err, disk.ErrBelow)
		requireHolds(t, l, 1, 100)

		r, err := l.NewReader(1)
		require.NoError(t, err)
		_, err = r.Next()
		require.NoError(t, err)
		require.NoError(t, l.Trim(51))
		require.Less(t, len(l.Files()), n)
		requireHolds(t, l, 51, 100)
		for err == nil { // to the end of its file, which is gone
			_, err = r.Next()
		}
		var gap *disk.OffsetError
		require.ErrorAs(t, err, &gap)
		assert.ErrorIs(t, err, disk.ErrBelow)
		assert.NotErrorIs(t, err, disk.ErrBeyond)
		assert.EqualValues(t, 51, gap.First)
		require.NoError(t, r.Close())

		require.ErrorIs(t, l.Trim(101), disk.ErrBeyond)
		require.NoError(t, l.Trim(40), "below First it does nothing")
		require.NoError(t, l.Abandon())
		l = open(t, c)
		requireHolds(t, l, 51, 100)
		require.NoError(t, l.Close())
	})
}

// TestBUG085_NumberingGoesOnWhenEverythingHasBeenTrimmed drops every record, ends cleanly and not, and goes on.
func TestBUG085_NumberingGoesOnWhenEverythingHasBeenTrimmed(t *testing.T) {
	each(t, func(t *testing.T, c disk.Config) {
		next := uint64(0)
		for round := range 6 {
			l := open(t, c)
			requireHolds(t, l, next, next)
			write(t, l, 1, next+30)
			next += 30
			require.NoError(t, l.Trim(next))
			requireHolds(t, l, next, next)
			if round%2 == 0 {
				require.NoError(t, l.Close())
			} else {
				require.NoError(t, l.Abandon())
			}
		}
	})
}

// TestBUG119_EachFailingOperationOfATrim fails each operation of a trim, and then looks at what there is.
func TestBUG119_EachFailingOperationOfATrim(t *testing.T) {
	for _, fault := range []vfs.Fault{{Err: errBoom}, {Err: errBoom, Done: true}, {Err: errBoom, Keep: 10}, {Err: errBoom, Lose: true}} {
		for n := 1; ; n++ {
			m := vfs.NewMem()
			armed := false
			nth := vfs.Nth(n, fault)
			c := small(vfs.NewFaulty(m, func(o vfs.Op) *vfs.Fault {
				if !armed {
					return nil
				}
				return nth(o)
			}))
			l := open(t, c)
			write(t, l, 2, 60)
			_, err := l.Write(batch(60, 2, 0))
			require.NoError(t, err)
			armed = true
			err = l.Trim(61)
			armed = false
			first := l.First()
			if err == nil {
				require.EqualValues(t, 61, first)
				require.NoError(t, l.Close())
				require.Greater(t, n, 6)
				break
			}
			require.ErrorIs(t, err, errBoom)
			require.Contains(t, []uint64{0, 61}, first)
			requireHolds(t, l, first, 62)
			require.ErrorIs(t, l.Trim(62), errBoom)
			require.ErrorIs(t, l.Close(), errBoom)
			l = open(t, c)
			require.Contains(t, []uint64{first, 61}, l.First())
			requireHolds(t, l, l.First(), 62)
			require.NoError(t, l.Trim(61))
			require.NoError(t, l.Close())
			l = open(t, c)
			requireHolds(t, l, 61, 62)
			require.NoError(t, l.Close())
		}
	}
}
